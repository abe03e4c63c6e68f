/*
 * audit.c - checks once at start that the files of all instance rows exist. (The receiver reports files without rows.)
 * A thread accesses the file system, so the loop does not block. Declared in series.h.
 *
 * All paths are read at once into one block of memory (a hundred bytes per instance). The thread accesses only that
 * block and its own list of missing files.
 */
#include "service/daemon/series/series.h"

#include "base/array.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/retention/retention.h"
#include "service/daemon/series/inspection.h"
#include "service/daemon/series/known.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct audit {
    uv_work_t work;
    struct core *core;
    char *paths; /* one after the other, each with its NUL */
    size_t size, capacity;
    size_t *missing; /* offsets of the missing ones */
    size_t missing_count, missing_capacity;
    size_t checked;
    atomic_bool stop;
    bool over; /* the thread has ended, and audit_stop() must free it */
};

static int
audit_add_path(void *context, const char *path)
{
    struct audit *audit = context;
    size_t length = strlen(path) + 1;
    char *paths = array_grow(audit->paths, &audit->capacity, audit->size + length, 1);
    if (!paths)
        return -ENOMEM;
    audit->paths = paths;
    memcpy(audit->paths + audit->size, path, length);
    audit->size += length;
    return 0;
}

static bool
audit_is_gone(const struct audit *audit, size_t offset)
{
    char *path = core_path(audit->core, audit->paths + offset);
    bool gone = path && access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
    free(path);
    return gone;
}

static void
audit_check_paths(uv_work_t *work)
{
    struct audit *audit = work->data;
    for (size_t at = 0; at < audit->size && !atomic_load(&audit->stop); at += strlen(audit->paths + at) + 1) {
        audit->checked++;
        if (!audit_is_gone(audit, at))
            continue;
        size_t *missing =
            array_grow(audit->missing, &audit->missing_capacity, audit->missing_count + 1, sizeof *missing);
        if (!missing)
            continue; /* the next start reports it */
        audit->missing = missing;
        audit->missing[audit->missing_count++] = at;
    }
}

static void
audit_free(struct audit *audit)
{
    free(audit->paths);
    free(audit->missing);
    free(audit);
}

static void
audit_on_checked(uv_work_t *work, int status)
{
    (void)status;
    struct audit *audit = work->data;
    struct core *core = audit->core;
    if (atomic_load(&audit->stop)) {
        audit_free(audit);
        return;
    }
    log_info("audit.done", LOG_INT("files", audit->checked), LOG_INT("missing", audit->missing_count));
    for (size_t i = 0; i < audit->missing_count; i++) {
        const char *path = audit->paths + audit->missing[i];
        if (!audit_is_gone(audit, audit->missing[i]))
            continue; /* the file was received again meanwhile */
        log_error("file.missing", LOG_STR("path", path));
        if (!core_change(core))
            break;
        int error = queue_report_missing(core->queue, path, clock_unix_ms());
        if (error == -ENOENT)
            continue; /* its instance was replaced meanwhile */
        if (core_failed(core, error, "report a missing file"))
            break;
    }
    audit->over = true;
    core->auditing = false;
    inspections_check(core->inspections);
    known_answer(core->known);
    retention_sweep_now(core->retention);
}

int
audit_start(struct core *core, struct audit **out)
{
    struct audit *audit = calloc(1, sizeof *audit);
    if (!audit)
        return -ENOMEM;
    audit->core = core;
    audit->work.data = audit;
    int error = queue_each_path(core->queue, audit_add_path, audit);
    if (!error)
        error = uv_queue_work(&core->loop, &audit->work, audit_check_paths, audit_on_checked);
    if (error) {
        audit_free(audit);
        return error;
    }
    core->auditing = true;
    *out = audit;
    return 0;
}

void
audit_stop(struct audit *audit)
{
    if (!audit)
        return;
    atomic_store(&audit->stop, true);
    if (audit->over)
        audit_free(audit);
}
