/*
 * byte_sink.h - buffered writes to a file descriptor, with checks.
 *
 * Every write(2) is repeated after short writes and EINTR. The first error is kept: later calls do
 * nothing, and byte_sink_finish returns it. The caller keeps the descriptor. One thread per sink.
 */
#ifndef NOCTULE_DICOM_WRITE_BYTE_SINK_H
#define NOCTULE_DICOM_WRITE_BYTE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct byte_deflater;

struct byte_sink {
    int fd;
    int error; /* 0, or the first -errno */
    uint8_t *buffer;
    size_t used;
    int64_t total;                  /* bytes appended, written or still buffered; before they were deflated */
    int64_t saved;                  /* by deflating, once the sink is finished: total - saved bytes are in the file */
    struct byte_deflater *deflater; /* NULL: the bytes are written as they are */
    bool wants_past_cache;
    bool past_cache; /* cleared once the file system refuses */
    bool direct;     /* O_DIRECT is set on the descriptor */
    bool begun;      /* some bytes have been written */
};

/*
 * Opens a sink. Returns 0 or -ENOMEM. Set `past_cache` for a new, empty file that is synced as soon as it is complete.
 * Then most of it bypasses the page cache. This saves a copy and memory, and leaves little for the sync to do. The
 * first BYTE_SINK_HEAD bytes stay in the cache for the next reader of the header. If the file system cannot do this,
 * writes go through the cache. byte_sink_finish clears O_DIRECT on the descriptor.
 */
#define BYTE_SINK_HEAD 16384
int byte_sink_open(struct byte_sink *sink, int fd, bool past_cache);
/* Starts another file with the same buffer. Allocating a buffer per file costs more than the copy. */
void byte_sink_restart(struct byte_sink *sink, int fd);
/* Deflates all bytes that follow (raw deflate, PS3.5 A.5). Returns 0 or -ENOMEM. */
int byte_sink_deflate(struct byte_sink *sink);
/* Deflates pixels from here on: only runs of equal bytes. For masks that is five times as fast, and about as small. */
void byte_sink_deflate_runs(struct byte_sink *sink);
void byte_sink_close(struct byte_sink *sink); /* frees; does not write */

void byte_sink_append(struct byte_sink *sink, const void *bytes, size_t size);

/* Returns space for `size` bytes (at most BYTE_SINK_RESERVE), to fill in place and then commit.
 * Bytes that are not committed may be overwritten. Never returns NULL, also after an error. */
#define BYTE_SINK_RESERVE 65536
uint8_t *byte_sink_reserve(struct byte_sink *sink, size_t size);
void byte_sink_commit(struct byte_sink *sink, size_t size);

int byte_sink_finish(struct byte_sink *sink); /* Writes the rest. Returns 0 or the first -errno. */

#ifdef __cplusplus
}
#endif
#endif
