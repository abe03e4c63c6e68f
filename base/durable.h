/*
 * durable.h - files that are whole or not there: written under another name, synced, renamed.
 *
 * Calls block, retry on EINTR and return 0 (or a descriptor) or -errno. `folder` is an open
 * directory or AT_FDCWD. A name is durable once its directory is synced too, which is the caller's:
 * one sync may serve many files.
 */
#ifndef NOCTULE_DURABLE_H
#define NOCTULE_DURABLE_H

#include <stddef.h>
#include <sys/types.h>

enum durable_target {
    DURABLE_NEW,     /* -EEXIST when the name is taken; what is there stays untouched */
    DURABLE_REPLACE, /* takes the place of what is there */
};

/* Writes NAME.part and gives it its name; on failure neither is left behind by it. */
int durable_write(int folder, const char *name, const void *bytes, size_t size, mode_t mode,
                  enum durable_target target);

/* The steps of the above, for contents that come in other ways. A part that a killed process left
 * is written over; links are not followed. */
int durable_create(int folder, const char *part, mode_t mode);
int durable_write_all(int fd, const void *bytes, size_t size);
/* Syncs, unless `rc` says that writing failed, and closes: the first failure. */
int durable_finish(int fd, int rc);
/* Renames; -EEXIST when the target is there, which stays untouched. */
int durable_rename_new(int from_folder, const char *from, int to_folder, const char *to);

int durable_sync_folder(int folder, const char *name);

/* close(2) whose result counts, as it may be where a network file system tells of a lost write. */
int durable_close(int fd);

#endif
