/*
 * folder_sync.h - sync the entries of a folder, sharing syncs among concurrent callers.
 *
 * A rename before the start of a sync is durable after its end. If threads call while a folder is
 * being synced, one of them therefore runs the next sync for all of them. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_FOLDER_SYNC_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_FOLDER_SYNC_H

struct folder_sync;

typedef int (*folder_sync_call)(int base, const char *folder);

/* Creates the set. `call` must sync a folder below the directory `base` and return 0 or -errno.
 * Returns 0 or -ENOMEM. */
int folder_sync_open(int base, folder_sync_call call, struct folder_sync **sync);
void folder_sync_close(struct folder_sync *sync); /* no thread may be in folder_sync_run */

/* Returns 0 once the current entries of `folder` are on disk. A failure is returned to all callers
 * that waited for that sync or an earlier one, since the kernel reports a lost write only once. */
int folder_sync_run(struct folder_sync *sync, const char *folder);

#endif
