/*
 * folder_sync.h - syncing a folder's entries, shared by those who need it at the same time.
 *
 * What was renamed before a sync began is durable when that sync is done. So of the threads that
 * come while a folder is being synced one makes the next sync, for all of them. Any thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_FOLDER_SYNC_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_FOLDER_SYNC_H

struct folder_sync;

typedef int (*folder_sync_call)(int base, const char *folder);

/* `call` syncs a folder below the directory `base`: 0 or -errno. -ENOMEM. */
int folder_sync_open(int base, folder_sync_call call, struct folder_sync **sync);
void folder_sync_close(struct folder_sync *sync); /* nobody may be in folder_sync_run */

/*
 * The entries of `folder` are on disk as they are now when this returns 0. A failure is everybody's
 * who waited for that sync or an earlier one: the kernel reports a lost write once.
 */
int folder_sync_run(struct folder_sync *sync, const char *folder);

#endif
