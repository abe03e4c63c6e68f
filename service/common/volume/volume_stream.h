/*
 * volume_stream.h - the bytes of a file that a program wrote, inflated if they are gzip (RFC 1952, also several members).
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_STREAM_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_STREAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct volume_stream;

/*
 * Opens a file below the folder, at its first byte. Follows no link, and does not wait for a pipe. Returns 0 or -errno:
 * PROGRAM_NO_OUTPUT if it is absent, PROGRAM_OUTPUT_NOT_REGULAR if it is no regular file with one name. The caller must
 * close the stream with volume_stream_close().
 */
int volume_stream_open(int folder, const char *name, struct volume_stream **stream, struct error *error);
void volume_stream_close(struct volume_stream *stream);

/* Returns whether the file begins as gzip does. */
bool volume_stream_is_gzip(const struct volume_stream *stream);
/* Continues at a byte of the file, from where all is gzip if `gzip`. Returns 0 or -ENOMEM. */
int volume_stream_begin(struct volume_stream *stream, int64_t offset, bool gzip, struct error *error);

/*
 * Reads the next `size` bytes, at most 1 GiB. Returns their number, which is less only at the end, or -errno:
 * PROGRAM_OUTPUT_UNREADABLE for gzip that is damaged or cut off.
 */
ssize_t volume_stream_read(struct volume_stream *stream, void *bytes, size_t size, struct error *error);

#endif
