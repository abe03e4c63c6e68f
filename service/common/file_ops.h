/*
 * file_ops.h - file operations that libc lacks: checked copies, file stamps, and opening below a
 * folder without following symbolic links.
 *
 * All calls block and must run in pool threads. Unless stated otherwise they return 0 or a
 * descriptor, or -errno. They retry on EINTR and do not log. Descriptors are opened close-on-exec.
 */
#ifndef NOCTULE_SERVICE_COMMON_FILE_OPS_H
#define NOCTULE_SERVICE_COMMON_FILE_OPS_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Identifies a file and its state. If two stamps are equal, the file was not changed or replaced between them. */
struct file_stamp {
    uint64_t device, inode;
    int64_t size, mtime_ns, ctime_ns;
};

void file_stamp_from(const struct stat *status, struct file_stamp *stamp);
int file_stamp_of(int fd, struct file_stamp *stamp);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

/* Returns a 64-bit hash of the bytes (FNV-1a with a final mix). For names and hash tables; it must
 * not be used for security. `seed` chains calls. */
uint64_t file_digest(uint64_t seed, const void *bytes, size_t size);
/* Returns a hash of the path, never 0. */
uint64_t file_key(const char *path);

/* Opens `relative` below the open directory `base`, one component at a time, so that a symbolic link cannot lead out of
 * it. Returns -ELOOP or -ENOTDIR for a symbolic link and -EINVAL for "..". */
int file_open_below(int base, const char *relative, int flags);
/* Opens the directory that holds `relative`. Sets *name to the last component, inside `relative`. */
int file_open_parent(int base, const char *relative, const char **name);

/* Copies all bytes of `from` into the empty file `to`. If it fails, *read_failed is true if reading
 * the source failed. */
int file_copy(int from, int to, bool *read_failed);
/* Compares two files byte by byte. */
int file_same_bytes(int a, int b, bool *same);

/* Opens a directory for readdir; `flags` are those of open(2). The caller must call closedir. */
int file_open_directory(int base, const char *name, int flags, DIR **directory);
/* Creates all missing directories of an absolute path. */
int file_make_path(const char *path);
/* Removes a file, or a directory with its contents, without following links. Returns 0 if it does
 * not exist. If *stop becomes true, returns -EINTR. `stop` may be NULL. */
int file_remove(int base, const char *name, const atomic_bool *stop);

#endif
