/*
 * file_ops.h - what file handling needs beyond libc: checked copies, stamps, and opening below a
 * folder without following a symbolic link.
 *
 * All calls block and are made from pool threads. They return 0 (or a descriptor) or -errno, retry
 * on EINTR and log nothing. Descriptors are opened close-on-exec.
 */
#ifndef NOCTULE_SERVICE_COMMON_FILE_OPS_H
#define NOCTULE_SERVICE_COMMON_FILE_OPS_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Tells whether a file is still the one that was looked at. */
struct file_stamp {
    uint64_t device, inode;
    int64_t size, mtime_ns, ctime_ns;
};

void file_stamp_from(const struct stat *status, struct file_stamp *stamp);
int file_stamp_of(int fd, struct file_stamp *stamp);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

/* 64 bits of the bytes (FNV-1a, mixed): names and tables, not security. `seed` chains calls. */
uint64_t file_digest(uint64_t seed, const void *bytes, size_t size);
/* Of a path; never 0. */
uint64_t file_key(const char *path);

/*
 * Opens `relative` below the open directory `base`, one component at a time, so that no symbolic
 * link on the way can lead out: -ELOOP or -ENOTDIR for one, -EINVAL for "..".
 */
int file_open_below(int base, const char *relative, int flags);
/* The same for the directory that holds `relative`; *name points at the last component. */
int file_open_parent(int base, const char *relative, const char **name);

/*
 * Copies everything from the start of `from` into the empty file `to`. *read_failed tells on
 * failure whether the source was to blame.
 */
int file_copy(int from, int to, bool *read_failed);
/* Are the two files equal byte by byte? */
int file_same_bytes(int a, int b, bool *same);

/* A directory to be read; `flags` are open's. */
int file_open_directory(int base, const char *name, int flags, DIR **directory);
/* Makes every missing directory of an absolute path. */
int file_make_path(const char *path);
/* A file, or a directory with all in it, no link followed; 0 also when it is not there. *stop, which may be NULL, ends
 * it with -EINTR. */
int file_remove(int base, const char *name, const atomic_bool *stop);

#endif
