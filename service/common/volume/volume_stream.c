#include "service/common/volume/volume_stream.h"

#include "service/common/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define STREAM_INPUT 131072

struct volume_stream {
    int fd;
    int64_t position; /* of the next byte to read from the file */
    bool inflating;
    bool member_ended; /* the gzip member that was inflated last is complete */
    z_stream zlib;
    uint8_t input[STREAM_INPUT];
};

static int
stream_refuse(int rc, struct error *error)
{
    if (rc == -ENOENT)
        return error_set(error, rc, CODE_PROGRAM_NO_OUTPUT, "the file is absent");
    if (rc == -ELOOP || rc == -ENOTDIR || rc == -ENXIO || rc == -EISDIR)
        return error_set(error, rc, CODE_PROGRAM_OUTPUT_NOT_REGULAR, "the file is a link, a pipe or a folder");
    if (rc == -EACCES || rc == -EPERM)
        return error_set(error, rc, CODE_PROGRAM_OUTPUT_UNREADABLE, "the file must be readable for its owner");
    return error_set_system(error, rc, "open the file");
}

int
volume_stream_open(int folder, const char *name, struct volume_stream **stream, struct error *error)
{
    struct stat status;
    const int fd = file_open_below(folder, name, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    int rc = fd < 0 ? fd : fstat(fd, &status) != 0 ? -errno : 0;
    *stream = NULL;
    if (rc)
        rc = stream_refuse(rc, error);
    else if (!S_ISREG(status.st_mode))
        rc = stream_refuse(-ENXIO, error);
    else if (status.st_nlink != 1)
        rc = error_set(error, -EMLINK, CODE_PROGRAM_OUTPUT_NOT_REGULAR, "the file has more than one name");
    else if (!(*stream = calloc(1, sizeof **stream)))
        rc = error_set_system(error, -ENOMEM, "read the file");
    else
        (*stream)->fd = fd;
    if (rc && fd >= 0)
        close(fd);
    return rc;
}

static void
stream_end_inflating(struct volume_stream *stream)
{
    if (stream->inflating)
        inflateEnd(&stream->zlib);
    stream->inflating = false;
}

void
volume_stream_close(struct volume_stream *stream)
{
    if (!stream)
        return;
    stream_end_inflating(stream);
    close(stream->fd);
    free(stream);
}

/* Returns the bytes read, 0 at the end, or -errno. */
static ssize_t
stream_fetch(struct volume_stream *stream, void *bytes, size_t size, struct error *error)
{
    ssize_t got;
    do
        got = pread(stream->fd, bytes, size, (off_t)stream->position);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set_system(error, -errno, "read the file");
    stream->position += got;
    return got;
}

bool
volume_stream_is_gzip(const struct volume_stream *stream)
{
    uint8_t magic[2];
    return pread(stream->fd, magic, sizeof magic, 0) == sizeof magic && magic[0] == 0x1f && magic[1] == 0x8b;
}

int
volume_stream_begin(struct volume_stream *stream, int64_t offset, bool gzip, struct error *error)
{
    stream_end_inflating(stream);
    stream->position = offset;
    if (!gzip)
        return 0;
    stream->zlib = (z_stream){0};
    stream->member_ended = false;
    if (inflateInit2(&stream->zlib, MAX_WBITS + 16) != Z_OK)
        return error_set_system(error, -ENOMEM, "inflate the file");
    stream->inflating = true;
    return 0;
}

static ssize_t
stream_inflate(struct volume_stream *stream, void *bytes, size_t size, struct error *error)
{
    z_stream *zlib = &stream->zlib;
    zlib->next_out = bytes;
    zlib->avail_out = (uInt)size;
    while (zlib->avail_out > 0) {
        if (zlib->avail_in == 0) {
            const ssize_t got = stream_fetch(stream, stream->input, sizeof stream->input, error);
            if (got < 0)
                return got;
            zlib->next_in = stream->input;
            zlib->avail_in = (uInt)got;
        }
        if (stream->member_ended && zlib->avail_in == 0)
            break;
        if (stream->member_ended)
            inflateReset(zlib);
        /* Call also without input: zlib may hold output that did not fit last time. */
        const int result = inflate(zlib, Z_NO_FLUSH);
        stream->member_ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return error_set_system(error, -ENOMEM, "inflate the file");
        if (result != Z_OK && result != Z_STREAM_END)
            return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "the gzip data are %s",
                             result == Z_BUF_ERROR ? "cut off" : "damaged");
    }
    return (ssize_t)(size - zlib->avail_out);
}

ssize_t
volume_stream_read(struct volume_stream *stream, void *bytes, size_t size, struct error *error)
{
    if (stream->inflating)
        return stream_inflate(stream, bytes, size, error);
    size_t total = 0;
    while (total < size) {
        const ssize_t got = stream_fetch(stream, (uint8_t *)bytes + total, size - total, error);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        total += (size_t)got;
    }
    return (ssize_t)total;
}
