/*
 * stream.h - reads a file forwards through a small window, and inflates it if the transfer syntax
 * requires it; private to dicom/.
 *
 * The header walk of every file uses it. Memory is one window, whatever lengths the file claims.
 * Files are not mapped, because a file that shrinks under a mapping would kill the process. A
 * stream belongs to one thread and has its own file descriptor.
 */
#ifndef NOCTULE_DICOM_READ_SCAN_STREAM_H
#define NOCTULE_DICOM_READ_SCAN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STREAM_WINDOW 16384

struct stream_inflater;

struct stream {
    int fd;
    int64_t file_size;
    bool is_own;          /* a result of this program: its inflated size has no limit */
    int64_t position;     /* of the next byte; in the inflated bytes after stream_inflate */
    int64_t window_start; /* position of window[0] */
    size_t window_size;
    struct stream_inflater *inflater;
    uint8_t window[STREAM_WINDOW];
};

/* Returns 0, or -errno of open(2) and fstat(2), or -EINVAL if it is not a regular file. */
int stream_open(struct stream *stream, const char *path);
/* Opens a stream on an open file, which the caller keeps. */
int stream_open_again(struct stream *stream, int fd);
void stream_close(struct stream *stream);
/* Returns to the first byte of the file. */
void stream_rewind(struct stream *stream);

/* Inflates all bytes that follow (raw deflate, PS3.5 A.5). Returns -ENOMEM if zlib cannot start. */
int stream_inflate(struct stream *stream);

/*
 * Returns the next `count` bytes (at most STREAM_WINDOW) without consuming them, valid until the
 * next call. Returns NULL with *error = -ENODATA at the end of the data, -EBADMSG if they cannot be
 * inflated, -EFBIG if the inflated size is implausible for the file's size (LIMIT_EXPANSION), or
 * -errno of pread(2).
 */
const uint8_t *stream_peek(struct stream *stream, size_t count, int *error);

/* Consume `count` bytes, or copy them to the destination too. Errors as above; then the position
 * is undefined. Skipping in a plain file checks only the file's size, without a read. */
int stream_read(struct stream *stream, void *destination, int64_t count);
int stream_skip(struct stream *stream, int64_t count);

/* Consumes `count` bytes and passes them to the visitor, one window at a time. Errors as above. */
typedef void stream_visit(void *context, const void *bytes, size_t size);
int stream_show(struct stream *stream, int64_t count, stream_visit *visit, void *context);

/* Reads exactly `count` bytes of any file. Returns 0, -ENODATA at its end, or -errno of
 * pread(2). */
int stream_read_at(int fd, void *destination, size_t count, int64_t offset);

/* Returns the bytes that can still follow: exact for a plain file, INT64_MAX for a deflated one. */
int64_t stream_remaining(const struct stream *stream);

#ifdef __cplusplus
}
#endif
#endif
