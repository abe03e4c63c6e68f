/*
 * byte_sink.h - a buffered, checked way into a file descriptor.
 *
 * Every write(2) is looped over short writes and EINTR and its result is kept: the first error is
 * latched, later calls do nothing, and byte_sink_finish returns it. The descriptor stays the
 * caller's. One thread a sink.
 */
#ifndef NOCTULE_BYTE_SINK_H
#define NOCTULE_BYTE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct byte_sink {
    int fd;
    int error; /* 0 or the first -errno */
    uint8_t *buffer;
    size_t used;
    int64_t total; /* bytes handed in, written or still buffered */
    bool wants_past_cache;
    bool past_cache; /* the file system has not refused */
    bool direct;     /* O_DIRECT is set on the descriptor */
    bool begun;      /* something has been written */
};

/*
 * 0 or -ENOMEM. Past the cache, for a new, empty file that is to be synced as soon as it is complete: the bulk of it is written
 * past the page cache, which spares the processor a copy and the machine the memory, and leaves
 * little for the sync to do. Its first BYTE_SINK_HEAD bytes stay in the cache for who reads the
 * header next. A file system that cannot do this is written to as usual. The descriptor's O_DIRECT
 * is off again after byte_sink_finish.
 */
#define BYTE_SINK_HEAD 16384
int byte_sink_open(struct byte_sink *sink, int fd, bool past_cache);
/* Another file, with the same buffer: one that is made anew for each costs more than the copy. */
void byte_sink_restart(struct byte_sink *sink, int fd);
void byte_sink_close(struct byte_sink *sink); /* frees; writes nothing */

void byte_sink_append(struct byte_sink *sink, const void *bytes, size_t size);

/*
 * Room for `size` bytes (at most BYTE_SINK_RESERVE) to be filled in place, then committed; what is
 * not committed may be scribbled on. Never NULL, also after an error.
 */
#define BYTE_SINK_RESERVE 65536
uint8_t *byte_sink_reserve(struct byte_sink *sink, size_t size);
void byte_sink_commit(struct byte_sink *sink, size_t size);

int byte_sink_finish(struct byte_sink *sink); /* writes the rest; 0 or the latched -errno */

#ifdef __cplusplus
}
#endif
#endif
