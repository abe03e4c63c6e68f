/*
 * store.h - bringing a file durably into the root folder: staged under incoming/, synced, renamed
 * to where it stays. Nothing there is ever overwritten.
 *
 * The steps are apart so that a batch of files can take each step together: after all are staged,
 * the first sync commits the file system's journal for most of the others, and each folder is
 * synced once. Any thread; one thread a struct staged.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_STORE_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_STORE_H

#include "service/common/file_ops.h"

struct store;

/* `root` is absolute and must exist. */
int store_open(const char *root, struct store **store);
void store_close(struct store *store);
const char *store_root(const struct store *store);
int store_fd(const struct store *store); /* of the root, for the *at calls */
/* Is what is stored from now on to have its SHA-256 taken? Not at first; any thread. */
void store_want_digests(struct store *store, bool wanted);
bool store_wants_digests(const struct store *store);

/*
 * Before anything is staged: makes sure that all that lies below the root is on disk, so that it
 * can be reported as stored, and removes what an earlier run left half-done in incoming/.
 */
int store_begin(struct store *store);

/* A file on its way in. What is not published must be discarded. */
struct staged {
    int fd;        /* for writing and reading; -1: nothing is staged */
    char name[64]; /* in incoming/ */
};

/*
 * Copies the open source under a temporary name with its modification time: whoever has the source
 * open can write into that only. *source_failed tells on failure whether it was reading that failed.
 */
int store_stage(struct store *store, int source, const struct stat *status, int64_t token,
                struct staged *staged, bool *source_failed);
/* Stages an empty file, open for writing and reading, for bytes that come from elsewhere. */
int store_create(struct store *store, struct staged *staged);
/* The absolute path of what is staged; -ENAMETOOLONG. */
int store_staged_path(const struct store *store, const struct staged *staged, char *path,
                      size_t size);
/* Starts the disk on what is written so far; store_sync is what counts. */
void store_hurry(const struct staged *staged);
/* Data and size are on disk when this returns 0; closes. */
int store_sync(struct staged *staged);
/* Renames it to folder/name below the root; the folder is made when missing. -EEXIST when that is
 * taken: the staged file is still there. */
int store_publish(struct store *store, struct staged *staged, const char *folder, const char *name);
/* Removes what is staged, if anything. */
void store_discard(struct store *store, struct staged *staged);
/* Makes the entries of a folder (and its own entry) durable. */
int store_sync_folder(struct store *store, const char *folder);

#endif
