#include "byte_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CAPACITY = 512 * 1024, /* beyond 256 KiB the system call no longer shows */
    DIRECT = 64 * 1024,    /* from here on, a copy costs more than a call of its own */
};

int
byte_sink_open(struct byte_sink *sink, int fd)
{
    *sink = (struct byte_sink){.fd = fd, .buffer = malloc(CAPACITY)};
    return sink->buffer ? 0 : -ENOMEM;
}

void
byte_sink_close(struct byte_sink *sink)
{
    free(sink->buffer);
    sink->buffer = NULL;
}

static void
write_all(struct byte_sink *sink, const uint8_t *bytes, size_t size)
{
    while (size > 0 && !sink->error) {
        ssize_t written = write(sink->fd, bytes, size);
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (written == 0) {
            sink->error = -EIO;
        } else if (errno != EINTR) {
            sink->error = -errno;
        }
    }
}

static void
flush(struct byte_sink *sink)
{
    write_all(sink, sink->buffer, sink->used);
    sink->used = 0;
}

void
byte_sink_append(struct byte_sink *sink, const void *bytes, size_t size)
{
    sink->total += (int64_t)size;
    if (size > CAPACITY - sink->used)
        flush(sink);
    if (size >= DIRECT) {
        flush(sink);
        write_all(sink, bytes, size);
        return;
    }
    memcpy(sink->buffer + sink->used, bytes, size);
    sink->used += size;
}

uint8_t *
byte_sink_reserve(struct byte_sink *sink, size_t size)
{
    if (size > CAPACITY - sink->used)
        flush(sink);
    return sink->buffer + sink->used;
}

void
byte_sink_commit(struct byte_sink *sink, size_t size)
{
    sink->used += size;
    sink->total += (int64_t)size;
}

int
byte_sink_finish(struct byte_sink *sink)
{
    flush(sink);
    return sink->error;
}
