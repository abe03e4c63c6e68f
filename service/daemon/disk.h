/*
 * disk.h - limits by free space on the root's file system: reception stops below min_free_mib, and
 * no job starts below half of it. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DISK_H
#define NOCTULE_SERVICE_DAEMON_DISK_H

#include "service/daemon/core.h"

/* Checks the free space, and pauses or resumes reception and jobs. */
void disk_watch(struct core *core);

#endif
