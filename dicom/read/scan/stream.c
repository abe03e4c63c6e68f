#include "dicom/read/scan/stream.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

struct stream_inflater {
    z_stream zlib;
    int64_t file_offset; /* of the next compressed byte to read from the file */
    int ended;
    uint8_t input[STREAM_WINDOW];
};

static int
stream_take(struct stream *stream, int fd)
{
    if (fd < 0)
        return -errno;
    memset(stream, 0, offsetof(struct stream, window));
    stream->fd = fd;
    struct stat status;
    int error = 0;
    if (fstat(stream->fd, &status) < 0)
        error = -errno;
    else if (!S_ISREG(status.st_mode))
        error = -EINVAL;
    if (error) {
        close(stream->fd);
        return error;
    }
    stream->file_size = status.st_size;
    return 0;
}

int
stream_open(struct stream *stream, const char *path)
{
    return stream_take(stream, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

int
stream_open_again(struct stream *stream, int fd)
{
    return stream_take(stream, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void
stream_rewind(struct stream *stream)
{
    if (stream->inflater) {
        inflateEnd(&stream->inflater->zlib);
        free(stream->inflater);
    }
    stream->inflater = NULL;
    stream->position = stream->window_start = 0;
    stream->window_size = 0;
}

void
stream_close(struct stream *stream)
{
    stream_rewind(stream);
    close(stream->fd);
}

int
stream_inflate(struct stream *stream)
{
    struct stream_inflater *inflater = calloc(1, sizeof(*inflater));
    if (!inflater)
        return -ENOMEM;
    if (inflateInit2(&inflater->zlib, -MAX_WBITS) != Z_OK) {
        free(inflater);
        return -ENOMEM;
    }
    inflater->file_offset = stream->position;
    stream->inflater = inflater;
    stream->window_start = stream->position;
    stream->window_size = 0;
    return 0;
}

/* Returns the bytes read, 0 at the end of the file, or -errno. */
static ssize_t
read_at(int fd, void *destination, size_t count, int64_t offset)
{
    ssize_t got;
    do
        got = pread(fd, destination, count, offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

int
stream_read_at(int fd, void *destination, size_t count, int64_t offset)
{
    uint8_t *next = destination;
    while (count > 0) {
        const ssize_t got = read_at(fd, next, count, offset);
        if (got <= 0)
            return got < 0 ? (int)got : -ENODATA;
        next += got;
        offset += got;
        count -= (size_t)got;
    }
    return 0;
}

/* Inflates up to `count` bytes into `destination`. Returns the bytes made, 0 at the end, or a
 * negative errno: -EFBIG if more was inflated than is plausible for the file's size. */
static ssize_t
inflate_some(struct stream *stream, uint8_t *destination, size_t count)
{
    struct stream_inflater *inflater = stream->inflater;
    z_stream *zlib = &inflater->zlib;
    zlib->next_out = destination;
    zlib->avail_out = (uInt)(count > INT32_MAX ? INT32_MAX : count);
    const uInt wanted = zlib->avail_out;
    while (zlib->avail_out == wanted && !inflater->ended) {
        if (zlib->avail_in == 0) {
            ssize_t got = read_at(stream->fd, inflater->input, sizeof(inflater->input), inflater->file_offset);
            if (got < 0)
                return got;
            inflater->file_offset += got;
            zlib->next_in = inflater->input;
            zlib->avail_in = (uInt)got;
        }
        /* Call also without input: zlib may hold output that did not fit last time. */
        int result = inflate(zlib, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            inflater->ended = 1;
        else if (result == Z_BUF_ERROR)
            return 0;
        else if (result == Z_MEM_ERROR)
            return -ENOMEM;
        else if (result != Z_OK)
            return -EBADMSG;
    }
    const int64_t made = (int64_t)zlib->total_out;
    if (!stream->is_own && made > (int64_t)LIMIT_EXPANDED_MIB << 20 && made / LIMIT_EXPANSION > stream->file_size)
        return -EFBIG;
    return (ssize_t)(wanted - zlib->avail_out);
}

const uint8_t *
stream_peek(struct stream *stream, size_t count, int *error)
{
    const int64_t ahead = stream->window_start + (int64_t)stream->window_size - stream->position;
    *error = 0;
    if (ahead >= (int64_t)count)
        return stream->window + (stream->position - stream->window_start);
    /* Fill the window from the current position until it holds `count` bytes. */
    const size_t kept = ahead > 0 ? (size_t)ahead : 0;
    if (kept > 0)
        memmove(stream->window, stream->window + stream->window_size - kept, kept);
    stream->window_start = stream->position;
    stream->window_size = kept;
    while (stream->window_size < count) {
        uint8_t *end = stream->window + stream->window_size;
        const size_t room = sizeof(stream->window) - stream->window_size;
        const ssize_t got = stream->inflater
                                ? inflate_some(stream, end, room)
                                : read_at(stream->fd, end, room, stream->window_start + (int64_t)stream->window_size);
        if (got <= 0) {
            *error = got < 0 ? (int)got : -ENODATA;
            return NULL;
        }
        stream->window_size += (size_t)got;
    }
    return stream->window;
}

/* Consumes those of the next `count` bytes that the window holds. Returns their number. */
static size_t
take_from_window(struct stream *stream, uint8_t *destination, int64_t count)
{
    const int64_t ahead = stream->window_start + (int64_t)stream->window_size - stream->position;
    if (ahead <= 0)
        return 0;
    const size_t taken = (size_t)(ahead < count ? ahead : count);
    if (destination)
        memcpy(destination, stream->window + (stream->position - stream->window_start), taken);
    stream->position += (int64_t)taken;
    return taken;
}

int
stream_read(struct stream *stream, void *destination, int64_t count)
{
    uint8_t *next = destination;
    int64_t left = count;
    while (left > 0) {
        size_t taken = take_from_window(stream, next, left);
        int error;
        if (taken == 0 && left < STREAM_WINDOW) {
            if (!stream_peek(stream, 1, &error))
                return error;
        } else if (taken == 0) {
            /* Long values bypass the window. */
            ssize_t got = stream->inflater ? inflate_some(stream, next, (size_t)left)
                                           : read_at(stream->fd, next, (size_t)left, stream->position);
            if (got < 0)
                return (int)got;
            if (got == 0)
                return -ENODATA;
            taken = (size_t)got;
            stream->position += got;
        }
        next += taken;
        left -= (int64_t)taken;
    }
    return 0;
}

int
stream_skip(struct stream *stream, int64_t count)
{
    if (!stream->inflater) {
        if (count > stream_remaining(stream))
            return -ENODATA;
        stream->position += count;
        return 0;
    }
    int64_t left = count;
    while (left > 0) {
        const size_t step = (size_t)(left < STREAM_WINDOW ? left : STREAM_WINDOW);
        int error;
        if (!stream_peek(stream, step, &error))
            return error;
        left -= (int64_t)take_from_window(stream, NULL, (int64_t)step);
    }
    return 0;
}

int
stream_show(struct stream *stream, int64_t count, stream_visit *visit, void *context)
{
    while (count > 0) {
        int error;
        const uint8_t *bytes = stream_peek(stream, 1, &error);
        if (!bytes)
            return error;
        const int64_t ahead = stream->window_start + (int64_t)stream->window_size - stream->position;
        const int64_t step = ahead < count ? ahead : count;
        visit(context, bytes, (size_t)step);
        stream->position += step;
        count -= step;
    }
    return 0;
}

int64_t
stream_remaining(const struct stream *stream)
{
    return stream->inflater ? INT64_MAX : stream->file_size - stream->position;
}
