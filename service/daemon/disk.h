/*
 * disk.h - what the free space of the root's file system allows: nothing is taken in below
 * min_free_mib, and no job starts below half of it. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DISK_H
#define NOCTULE_SERVICE_DAEMON_DISK_H

#include "service/daemon/core.h"

/* Looks, and tells who has to pause or may go on. */
void disk_watch(struct core *core);

#endif
