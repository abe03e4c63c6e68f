/*
 * durable.h - files that are complete or absent after a crash: write under another name, sync, rename.
 *
 * Calls block, retry on EINTR, and return 0 (or a descriptor) or -errno. `folder` is an open directory or AT_FDCWD. The
 * caller must also sync the directory with durable_sync_folder; one sync may cover many files.
 */
#ifndef NOCTULE_BASE_DURABLE_H
#define NOCTULE_BASE_DURABLE_H

#include <stddef.h>
#include <sys/types.h>

enum durable_target {
    DURABLE_NEW,     /* returns -EEXIST if the name exists, and does not change that file */
    DURABLE_REPLACE, /* replaces a file of this name */
};

/* Writes NAME.part and renames it to NAME. Removes NAME.part on failure. */
int durable_write(int folder, const char *name, const void *bytes, size_t size, mode_t mode,
                  enum durable_target target);

/* Steps of durable_write, for contents from other sources. durable_create overwrites a part that a killed process left,
 * and does not follow links. */
int durable_create(int folder, const char *part, mode_t mode);
int durable_write_all(int fd, const void *bytes, size_t size);
/* Syncs if `rc` is 0, and closes. Returns the first failure, `rc` included. */
int durable_finish(int fd, int rc);
/* Renames. Returns -EEXIST if the target exists, and does not change it. */
int durable_rename_new(int from_folder, const char *from, int to_folder, const char *to);

int durable_sync_folder(int folder, const char *name);

/* Closes, and returns an error of close(2): network file systems report lost writes there. */
int durable_close(int fd);

#endif
