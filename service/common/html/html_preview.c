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
preview_read(int fd, size_t max_size, unsigned char **bytes, size_t *size)
{
    struct stat status;
    int rc = 0;
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
    ssize_t got = 1;
    for (size_t used = 0; used < *size && got > 0; used += (size_t)got) {
        got = read(fd, *bytes + used, *size - used);
        if (got <= 0)
            rc = got < 0 ? -errno : -EIO;
    }
    if (rc == 0 && memcmp(*bytes, png_begins, PNG_BEGINS) != 0)
        rc = -EBADMSG;
    if (rc)
        free(*bytes);
    return rc;
}

int
html_read_preview(const char *root, const char *path, size_t max_size, unsigned char **bytes, size_t *size)
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

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
html_png(const unsigned char *bytes, size_t size, const char *alt, FILE *out)
{
    fputs("<img alt=\"", out);
    html_text(alt, out);
    fputs("\" src=\"data:image/png;base64,", out);
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const unsigned triple = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                                (left > 2 ? (unsigned)bytes[i + 2] : 0);
        fputc(base64_digits[triple >> 18], out);
        fputc(base64_digits[triple >> 12 & 63], out);
        fputc(left > 1 ? base64_digits[triple >> 6 & 63] : '=', out);
        fputc(left > 2 ? base64_digits[triple & 63] : '=', out);
    }
    fputs("\">", out);
}
