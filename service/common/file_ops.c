#include "service/common/file_ops.h"

#include "base/durable.h"
#include "base/test_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_BUFFER ((size_t)256 << 10)
#define COPY_CHUNK  ((size_t)64 << 20)

static int64_t
nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

void
file_stamp_from(const struct stat *status, struct file_stamp *stamp)
{
    *stamp = (struct file_stamp){
        .device = status->st_dev,
        .inode = status->st_ino,
        .size = status->st_size,
        .mtime_ns = nanoseconds(&status->st_mtim),
        .ctime_ns = nanoseconds(&status->st_ctim),
    };
}

int
file_stamp_of(int fd, struct file_stamp *stamp)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    file_stamp_from(&status, stamp);
    return 0;
}

bool
file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

uint64_t
file_digest(uint64_t seed, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    /* The low bits of FNV are poorly mixed, and hash tables use those. */
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

uint64_t
file_key(const char *path)
{
    uint64_t key = file_digest(0, path, strlen(path));
    return key ? key : 1;
}

/* Copies the component at *at and advances *at. Returns false at the end or on an error. */
static bool
next_component(const char **at, char component[NAME_MAX + 1], int *error)
{
    while (**at == '/')
        ++*at;
    size_t length = strcspn(*at, "/");
    if (length == 0)
        return false;
    if (length > NAME_MAX) {
        *error = -ENAMETOOLONG;
        return false;
    }
    memcpy(component, *at, length);
    component[length] = '\0';
    *at += length;
    if (strcmp(component, "..") == 0) {
        *error = -EINVAL;
        return false;
    }
    return true;
}

int
file_open_below(int base, const char *relative, int flags)
{
    char component[NAME_MAX + 1];
    int error = 0;
    int directory = fcntl(base, F_DUPFD_CLOEXEC, 0);
    if (directory < 0)
        return -errno;
    while (next_component(&relative, component, &error)) {
        int mode = *relative ? O_PATH | O_DIRECTORY : flags;
        int next = openat(directory, component, mode | O_NOFOLLOW | O_CLOEXEC);
        error = next < 0 ? -errno : 0;
        close(directory);
        if (error)
            return error;
        directory = next;
    }
    if (error) {
        close(directory);
        return error;
    }
    return directory;
}

int
file_open_parent(int base, const char *relative, const char **name)
{
    const char *slash = strrchr(relative, '/');
    *name = slash ? slash + 1 : relative;
    if (!slash)
        return file_open_below(base, "", O_PATH);
    char *parent = strndup(relative, (size_t)(slash - relative));
    if (!parent)
        return -ENOMEM;
    int fd = file_open_below(base, parent, O_PATH | O_DIRECTORY);
    free(parent);
    return fd;
}

static ssize_t
read_some(int fd, void *buffer, size_t size)
{
    ssize_t got;
    do
        got = read(fd, buffer, size);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* Reads until the buffer is full or the file ends. Returns the bytes read or -errno. */
static ssize_t
read_full(int fd, char *buffer, size_t size)
{
    size_t total = 0;
    while (total < size) {
        ssize_t got = read_some(fd, buffer + total, size - total);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        total += (size_t)got;
    }
    return (ssize_t)total;
}

static int
copy_through_buffer(int from, int to, bool *read_failed)
{
    char *buffer = malloc(COPY_BUFFER);
    if (!buffer)
        return -ENOMEM;
    int error = 0;
    for (;;) {
        ssize_t got = read_some(from, buffer, COPY_BUFFER);
        if (got <= 0) {
            *read_failed = got < 0;
            error = (int)got;
            break;
        }
        error = durable_write_all(to, buffer, (size_t)got);
        if (error)
            break;
    }
    free(buffer);
    return error;
}

int
file_copy(int from, int to, bool *read_failed)
{
    *read_failed = false;
    if (lseek(from, 0, SEEK_SET) < 0) {
        *read_failed = true;
        return -errno;
    }
    for (;;) {
        ssize_t copied = copy_file_range(from, NULL, to, NULL, COPY_CHUNK, 0);
        if (copied > 0 || (copied < 0 && errno == EINTR))
            continue;
        if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            return -errno;
        /* At the end of the file, on another file system, or on an error of an unknown side,
         * continue with a plain copy. It finds which side fails. */
        return copy_through_buffer(from, to, read_failed);
    }
}

static int
compare_streams(int a, int b, char *buffer, bool *same)
{
    char *const other = buffer + COPY_BUFFER;
    for (;;) {
        ssize_t got_a = read_full(a, buffer, COPY_BUFFER);
        ssize_t got_b = read_full(b, other, COPY_BUFFER);
        if (got_a < 0 || got_b < 0)
            return (int)(got_a < 0 ? got_a : got_b);
        *same = got_a == got_b && memcmp(buffer, other, (size_t)got_a) == 0;
        if (!*same || got_a == 0)
            return 0;
    }
}

int
file_same_bytes(int a, int b, bool *same)
{
    struct file_stamp stamp_a, stamp_b;
    int error = file_stamp_of(a, &stamp_a);
    if (!error)
        error = file_stamp_of(b, &stamp_b);
    if (error)
        return error;
    *same = stamp_a.device == stamp_b.device && stamp_a.inode == stamp_b.inode;
    if (*same || stamp_a.size != stamp_b.size)
        return 0;
    if (lseek(a, 0, SEEK_SET) < 0 || lseek(b, 0, SEEK_SET) < 0)
        return -errno;
    char *buffer = malloc(2 * COPY_BUFFER);
    if (!buffer)
        return -ENOMEM;
    error = compare_streams(a, b, buffer, same);
    free(buffer);
    return error;
}

int
file_open_directory(int base, const char *name, int flags, DIR **directory)
{
    int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    *directory = fd < 0 ? NULL : fdopendir(fd);
    if (*directory)
        return 0;
    int error = -errno;
    if (fd >= 0)
        close(fd);
    return error;
}

int
file_make_path(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    int error = 0;
    for (char *at = copy + 1; !error; at++) {
        at += strcspn(at, "/");
        const char end = *at;
        *at = '\0';
        if (mkdir(copy, 0750) != 0 && errno != EEXIST)
            error = -errno;
        *at = end;
        if (!end)
            break;
    }
    free(copy);
    return error;
}

static int file_remove_directory(int base, const char *name, const atomic_bool *stop);

int
file_remove(int base, const char *name, const atomic_bool *stop)
{
    if (unlinkat(base, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM ? file_remove_directory(base, name, stop) : -errno;
}

static int
file_remove_directory(int base, const char *name, const atomic_bool *stop)
{
    DIR *directory;
    int error = file_open_directory(base, name, O_NOFOLLOW, &directory);
    if (error)
        return error;
    for (const struct dirent *entry; !error && (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        crash_point("file_in_remove");
        error = stop && atomic_load(stop) ? -EINTR : file_remove(dirfd(directory), entry->d_name, stop);
    }
    closedir(directory);
    return !error && unlinkat(base, name, AT_REMOVEDIR) != 0 ? -errno : error;
}
