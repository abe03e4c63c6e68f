/*
 * store.h - store a file durably below the root: stage it in incoming/, sync it, rename it to its
 * final name. Existing files must not be overwritten.
 *
 * The steps are separate so that a batch of files can take each step together. After all files are
 * staged, the first sync commits the file system's journal for most of the others, and each folder
 * is synced once. Thread-safe; a struct staged must be used by one thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_STORE_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_STORE_H

#include "service/common/file_ops.h"

struct store;

/* Opens the store. `root` must be absolute and exist. Returns 0 or -errno. */
int store_open(const char *root, struct store **store);
void store_close(struct store *store);
const char *store_root(const struct store *store);
int store_fd(const struct store *store); /* of the root, for the *at calls */
/* Sets whether the SHA-256 of files stored from now on is computed. Initially false. Thread-safe. */
void store_want_digests(struct store *store, bool wanted);
bool store_wants_digests(const struct store *store);

/* Prepares the store. Must be called before a file is staged. Syncs everything below the root, so that it can be
 * reported as stored, and removes unfinished files of earlier runs from incoming/. Returns 0 or -errno. */
int store_begin(struct store *store);

/* A file being stored. The caller must publish or discard it. */
struct staged {
    int fd;        /* for reading and writing; -1: no file is staged */
    char name[64]; /* in incoming/ */
};

/* Copies the open source under a temporary name, with its modification time. Processes that have
 * the source open cannot change the copy. On failure *source_failed is true if reading failed. */
int store_stage(struct store *store, int source, const struct stat *status, int64_t token, struct staged *staged,
                bool *source_failed);
/* Stages an empty file, open for reading and writing, for bytes from another source. */
int store_create(struct store *store, struct staged *staged);
/* Writes the absolute path of the staged file. Returns 0 or -ENAMETOOLONG. */
int store_staged_path(const struct store *store, const struct staged *staged, char *path, size_t size);
/* Starts writing the data to disk, without a guarantee; the caller must still call store_sync. */
void store_hurry(const struct staged *staged);
/* Closes the file. Returns 0 if its data and size are on disk, or -errno. */
int store_sync(struct staged *staged);
/* Renames the file to folder/name below the root. Creates the folder if it is missing. Returns
 * -EEXIST if the name is taken; the file then stays staged. */
int store_publish(struct store *store, struct staged *staged, const char *folder, const char *name);
/* Removes the staged file, if any. */
void store_discard(struct store *store, struct staged *staged);
/* Makes the entries of a folder, and its own entry, durable. Returns 0 or -errno. */
int store_sync_folder(struct store *store, const char *folder);

/* --------------------------------------------------------------------------- folder_sync.c ---- */

/*
 * Syncs the entries of a folder. Concurrent callers share syncs: a rename before the start of a sync is durable after its
 * end, so one of the threads that call during a sync runs the next one for all of them. Thread-safe.
 */

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
