#include "base/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int
durable_close(int fd)
{
    /* Linux frees the descriptor on EINTR as well, so close must not be called again. */
    return close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

int
durable_create(int folder, const char *part, mode_t mode)
{
    int fd = openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    return fd < 0 ? -errno : fd;
}

int
durable_write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t written = write(fd, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        at += written;
        size -= (size_t)written;
    }
    return 0;
}

int
durable_finish(int fd, int rc)
{
    while (rc == 0 && fdatasync(fd) != 0) {
        if (errno != EINTR)
            rc = -errno;
    }
    int closed = durable_close(fd);
    return rc ? rc : closed;
}

int
durable_rename_new(int from_folder, const char *from, int to_folder, const char *to)
{
    if (renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* Network file systems do not support the flag; link(2) does not overwrite either. */
    if (linkat(from_folder, from, to_folder, to, 0) != 0)
        return -errno;
    return unlinkat(from_folder, from, 0) == 0 ? 0 : -errno;
}

int
durable_write(int folder, const char *name, const void *bytes, size_t size, mode_t mode, enum durable_target target)
{
    char *part;
    if (asprintf(&part, "%s.part", name) < 0)
        return -ENOMEM;
    int fd = durable_create(folder, part, mode);
    int rc = fd < 0 ? fd : durable_finish(fd, durable_write_all(fd, bytes, size));
    if (rc == 0 && target == DURABLE_NEW)
        rc = durable_rename_new(folder, part, folder, name);
    else if (rc == 0 && renameat(folder, part, folder, name) != 0)
        rc = -errno;
    if (rc && fd >= 0)
        unlinkat(folder, part, 0);
    free(part);
    return rc;
}

int
durable_sync_folder(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}
