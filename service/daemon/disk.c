/*
 * disk.c - limits by free space on the root's file system: reception stops below min_free_mib, and no job starts below
 * half of it. Loop thread only. Declared in daemon.h.
 */
#include "service/daemon/daemon.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/retention/retention.h"
#include "service/daemon/series/series.h"
#include "service/daemon/spool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RECOVERY_FACTOR 1.1 /* times min_free_mib: low disk ends here */

void
disk_watch(struct core *core)
{
    double free_mib, min_mib = core->conf->min_free_mib;
    char detail[128];
    int error = spool_free_mib(core->root, &free_mib);
    if (error) {
        log_error("disk.unknown", LOG_STR("root", core->root), LOG_STR("error", strerror(-error)));
        return;
    }
    retention_disk(core->retention, free_mib);
    /* Lets jobs use the space that reception leaves: files of finished work can be removed. If jobs waited as well, a
     * disk full of queued work would stay full. */
    const double half_mib = min_mib / 2;
    const bool spent = free_mib < (core->disk_spent ? RECOVERY_FACTOR * half_mib : half_mib);
    if (spent != core->disk_spent) {
        core->disk_spent = spent;
        due_now(&core->jobs_due);
    }
    bool low = free_mib < (core->disk_low ? RECOVERY_FACTOR * min_mib : min_mib);
    if (low == core->disk_low)
        return;
    core->disk_low = low;
    core->disk_low_since_ms = clock_unix_ms();
    snprintf(detail, sizeof detail, "%.0f MiB are free, min_free_mib is %.0f", free_mib, min_mib);
    if (low)
        log_error("disk.low", LOG_NUM("free_mib", floor(free_mib)), LOG_NUM("min_free_mib", min_mib));
    else
        log_info("disk.ok", LOG_NUM("free_mib", floor(free_mib)), LOG_NUM("min_free_mib", min_mib));
    core_note(core, low ? "DISK_LOW" : "DISK_OK", detail);
    arrivals_pause_or_resume(core, "the disk is almost full");
}
