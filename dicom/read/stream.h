/*
 * stream.h - a file read forwards through a small window, inflated on the way where the transfer
 * syntax says so; private to dicom/.
 *
 * The header walk of every file goes through this: memory is one window whatever the lengths in the
 * file claim, and nothing is mapped (a file that shrinks under a mapping would kill the process). A
 * stream belongs to one thread; the file descriptor is its own.
 */
#ifndef NOCTULE_DICOM_STREAM_H
#define NOCTULE_DICOM_STREAM_H

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
    int64_t position; /* of the next byte; in the inflated bytes once stream_inflate was called */
    int64_t window_start; /* position of window[0] */
    size_t window_size;
    struct stream_inflater *inflater;
    uint8_t window[STREAM_WINDOW];
};

/* 0, or -errno of open(2) and fstat(2); -EINVAL for what is no regular file. */
int stream_open(struct stream *stream, const char *path);
/* The same of a file that is open, and stays the caller's. */
int stream_open_again(struct stream *stream, int fd);
void stream_close(struct stream *stream);
/* Back to the first byte of the file. */
void stream_rewind(struct stream *stream);

/*
 * All that follows is inflated (raw deflate, PS3.5 A.5). -ENOMEM when zlib cannot start.
 */
int stream_inflate(struct stream *stream);

/*
 * The next `count` bytes (at most STREAM_WINDOW) without consuming them, valid until the next call.
 * NULL with *error = -ENODATA at the end of the data, -EBADMSG when they cannot be inflated, -EFBIG
 * when so much has been that no file of this size would hold it (LIMIT_EXPANSION), or -errno of
 * pread(2).
 */
const uint8_t *stream_peek(struct stream *stream, size_t count, int *error);

/*
 * Consumes `count` bytes; with a destination, copies them there. Errors as above; the position is
 * undefined after one. Skipping in a plain file reads nothing but checks the file's size.
 */
int stream_read(struct stream *stream, void *destination, int64_t count);
int stream_skip(struct stream *stream, int64_t count);

/* Consumes `count` bytes, which the visitor sees, a window at a time. Errors as above. */
typedef void stream_visit(void *context, const void *bytes, size_t size);
int stream_show(struct stream *stream, int64_t count, stream_visit *visit, void *context);

/* Exactly so many bytes of any file: 0, -ENODATA at its end, or -errno of pread(2). */
int stream_read_at(int fd, void *destination, size_t count, int64_t offset);

/* Bytes that can still follow: exact for a plain file, INT64_MAX for a deflated one. */
int64_t stream_remaining(const struct stream *stream);

#ifdef __cplusplus
}
#endif
#endif
