#include "dicom/write/byte_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    CAPACITY = 512 * 1024, /* beyond 256 KiB the cost of the system call is negligible */
    DIRECT = 64 * 1024,    /* from here on, a copy costs more than a separate system call */
    /* O_DIRECT requires addresses, offsets and sizes that are multiples of this */
    BLOCK = 4096,
    DEFLATE_LEVEL = 6,
    DEFLATE_PART = 1 << 30, /* zlib counts in 32 bits */
};

struct byte_deflater {
    z_stream zlib;
    int64_t begun;  /* bytes appended before it */
    int64_t stored; /* bytes that it made */
    /* Small parts, gathered because a call of zlib for each row of a mask costs more than its work. */
    size_t gathered;
    uint8_t parts[2 * BYTE_SINK_RESERVE];
};

static void
sink_end_deflater(struct byte_sink *sink)
{
    if (sink->deflater)
        deflateEnd(&sink->deflater->zlib);
    free(sink->deflater);
    sink->deflater = NULL;
}

int
byte_sink_open(struct byte_sink *sink, int fd, bool past_cache)
{
    *sink = (struct byte_sink){.buffer = aligned_alloc(BLOCK, CAPACITY), .wants_past_cache = past_cache};
    byte_sink_restart(sink, fd);
    return sink->buffer ? 0 : -ENOMEM;
}

void
byte_sink_restart(struct byte_sink *sink, int fd)
{
    sink_end_deflater(sink);
    *sink = (struct byte_sink){.fd = fd,
                               .buffer = sink->buffer,
                               .wants_past_cache = sink->wants_past_cache,
                               .past_cache = sink->wants_past_cache};
}

void
byte_sink_close(struct byte_sink *sink)
{
    sink_end_deflater(sink);
    free(sink->buffer);
    sink->buffer = NULL;
}

static bool
set_direct(struct byte_sink *sink, bool direct)
{
    const int flags = fcntl(sink->fd, F_GETFL);
    if (flags < 0 || fcntl(sink->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) != 0)
        return false;
    sink->direct = direct;
    return true;
}

static void
sink_write_all(struct byte_sink *sink, const uint8_t *bytes, size_t size)
{
    while (size > 0 && !sink->error) {
        ssize_t written = write(sink->fd, bytes, size);
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        } else {
            const int error = written == 0 ? -EIO : -errno;
            if (error == -EINVAL && sink->direct && set_direct(sink, false))
                sink->past_cache = false; /* the file system refuses O_DIRECT */
            else if (error != -EINTR)
                sink->error = error;
        }
    }
}

static void
sink_flush(struct byte_sink *sink)
{
    if (sink->past_cache) {
        /* Writes whole blocks. Moves the rest, less than one block, to the front of the buffer. */
        const size_t whole = sink->used - sink->used % BLOCK;
        size_t head = 0;
        if (!sink->begun && whole > BYTE_SINK_HEAD) {
            head = BYTE_SINK_HEAD;
            sink_write_all(sink, sink->buffer, head);
        }
        sink->begun = true;
        if (!sink->direct && !set_direct(sink, true))
            sink->past_cache = false;
        sink_write_all(sink, sink->buffer + head, whole - head);
        sink->used -= whole;
        memmove(sink->buffer, sink->buffer + whole, sink->used);
    } else {
        sink_write_all(sink, sink->buffer, sink->used);
        sink->used = 0;
    }
}

/* Appends bytes as they are, without counting them. */
static void
sink_store(struct byte_sink *sink, const void *bytes, size_t size)
{
    if (sink->past_cache) { /* only full buffers bypass the cache */
        const uint8_t *from = bytes;
        while (size > 0) {
            size_t part = CAPACITY - sink->used;
            part = part < size ? part : size;
            memcpy(sink->buffer + sink->used, from, part);
            sink->used += part;
            from += part;
            size -= part;
            if (sink->used == CAPACITY)
                sink_flush(sink);
        }
        return;
    }
    if (size > CAPACITY - sink->used)
        sink_flush(sink);
    if (size >= DIRECT) {
        sink_flush(sink);
        sink_write_all(sink, bytes, size);
        return;
    }
    memcpy(sink->buffer + sink->used, bytes, size);
    sink->used += size;
}

/* Gives zlib input, and the rest of the buffer. The caller must call sink_made after the call of zlib. */
static void
sink_feed(struct byte_sink *sink, const uint8_t *from, size_t size)
{
    z_stream *zlib = &sink->deflater->zlib;
    if (sink->used == CAPACITY)
        sink_flush(sink);
    zlib->next_in = (Bytef *)(uintptr_t)from; /* zlib does not change it */
    zlib->avail_in = (uInt)size;
    zlib->next_out = sink->buffer + sink->used;
    zlib->avail_out = (uInt)(CAPACITY - sink->used);
}

static void
sink_made(struct byte_sink *sink)
{
    const size_t used = CAPACITY - sink->deflater->zlib.avail_out;
    sink->deflater->stored += (int64_t)(used - sink->used);
    sink->used = used;
}

/* Deflates straight into the buffer. `flush` is zlib's. */
static void
sink_deflate(struct byte_sink *sink, const uint8_t *from, size_t size, int flush)
{
    z_stream *zlib = &sink->deflater->zlib;
    int rc = Z_OK;
    while (size > 0 || (flush == Z_FINISH && rc != Z_STREAM_END)) {
        const size_t part = size < DEFLATE_PART ? size : DEFLATE_PART;
        sink_feed(sink, from, part);
        rc = deflate(zlib, flush);
        sink_made(sink);
        from += part - zlib->avail_in;
        size -= part - zlib->avail_in;
    }
}

static void
sink_deflate_parts(struct byte_sink *sink, int flush)
{
    sink_deflate(sink, sink->deflater->parts, sink->deflater->gathered, flush);
    sink->deflater->gathered = 0;
}

/* Returns room for a part of at most BYTE_SINK_RESERVE bytes. */
static uint8_t *
sink_part(struct byte_sink *sink, size_t size)
{
    if (size > sizeof(sink->deflater->parts) - sink->deflater->gathered)
        sink_deflate_parts(sink, Z_NO_FLUSH);
    return sink->deflater->parts + sink->deflater->gathered;
}

void
byte_sink_deflate_runs(struct byte_sink *sink)
{
    int rc;
    sink_deflate_parts(sink, Z_NO_FLUSH);
    do {
        sink_feed(sink, (const uint8_t *)"", 0);
        rc = deflateParams(&sink->deflater->zlib, DEFLATE_LEVEL, Z_RLE);
        sink_made(sink);
    } while (rc == Z_BUF_ERROR); /* zlib needs more room for its pending output */
}

void
byte_sink_append(struct byte_sink *sink, const void *bytes, size_t size)
{
    sink->total += (int64_t)size;
    if (!sink->deflater) {
        sink_store(sink, bytes, size);
    } else if (size <= BYTE_SINK_RESERVE) {
        memcpy(sink_part(sink, size), bytes, size);
        sink->deflater->gathered += size;
    } else {
        sink_deflate_parts(sink, Z_NO_FLUSH);
        sink_deflate(sink, bytes, size, Z_NO_FLUSH);
    }
}

int
byte_sink_deflate(struct byte_sink *sink)
{
    struct byte_deflater *deflater = calloc(1, sizeof(*deflater));
    if (!deflater ||
        deflateInit2(&deflater->zlib, DEFLATE_LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(deflater);
        return -ENOMEM;
    }
    deflater->begun = sink->total;
    sink->deflater = deflater;
    return 0;
}

uint8_t *
byte_sink_reserve(struct byte_sink *sink, size_t size)
{
    if (sink->deflater)
        return sink_part(sink, size);
    if (size > CAPACITY - sink->used)
        sink_flush(sink);
    return sink->buffer + sink->used;
}

void
byte_sink_commit(struct byte_sink *sink, size_t size)
{
    sink->total += (int64_t)size;
    if (sink->deflater)
        sink->deflater->gathered += size;
    else
        sink->used += size;
}

int
byte_sink_finish(struct byte_sink *sink)
{
    if (sink->deflater) {
        sink_deflate_parts(sink, Z_FINISH);
        /* The data set of a file has an even length. */
        const int64_t odd = sink->deflater->stored % 2;
        sink_store(sink, "", (size_t)odd);
        sink->saved = sink->total - sink->deflater->begun - sink->deflater->stored - odd;
    }
    if (sink->past_cache && sink->used >= DIRECT)
        sink_flush(sink);
    if (sink->direct && !set_direct(sink, false) && !sink->error)
        sink->error = -EIO;
    sink_write_all(sink, sink->buffer, sink->used);
    sink->used = 0;
    return sink->error;
}
