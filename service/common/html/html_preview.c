/* html_preview.c - read preview images for HTML documents. */
#include "service/common/html/html.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char png_begins[] = "\x89PNG\r\n\x1a\n";

enum { PNG_BEGINS = sizeof png_begins - 1 };

static int
preview_fill(int fd, unsigned char *bytes, size_t size)
{
    size_t used = 0;
    while (used < size) {
        const ssize_t got = read(fd, bytes + used, size - used);
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        used += (size_t)got;
    }
    return memcmp(bytes, png_begins, PNG_BEGINS) == 0 ? 0 : -EBADMSG;
}

static int
preview_read(int fd, size_t max_size, unsigned char **bytes, size_t *size)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size <= PNG_BEGINS)
        return -EBADMSG;
    if ((size_t)status.st_size > max_size)
        return -EFBIG;
    *size = (size_t)status.st_size;
    *bytes = malloc(*size);
    if (!*bytes)
        return -ENOMEM;
    const int rc = preview_fill(fd, *bytes, *size);
    if (rc)
        free(*bytes);
    return rc;
}

int
html_read_preview(const char *root, const char *path, size_t max_size, unsigned char **bytes,
                  size_t *size)
{
    char *whole;
    if (asprintf(&whole, "%s/%s", root, path) < 0)
        return -ENOMEM;
    const int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int rc = fd < 0 ? -errno : preview_read(fd, max_size, bytes, size);
    if (fd >= 0)
        close(fd);
    free(whole);
    return rc;
}
