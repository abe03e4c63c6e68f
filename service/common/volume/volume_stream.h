/*
 * volume_stream.h - the bytes of a file that a program wrote, inflated if they are gzip (RFC 1952, also several members).
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_STREAM_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_STREAM_H

#include "base/error.h"
#include "service/common/volume/volume_file.h"

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

/* -------------------------------------------------------------------------- volume_nifti.c ---- */

/* Headers of NIfTI-1 and NIfTI-2 (nifti1.h and nifti2.h of nifti.nimh.nih.gov). */

#define NIFTI_HEAD_SIZE 352

/* Reads the header at the start of a stream. Errors: volume_read_header(). */
int volume_nifti_read(struct volume_stream *stream, const char *name, struct volume_header *header,
                      struct error *error);

/* Writes a NIfTI-1 header, and the empty extension behind it. Returns false if the format has no room for such a size. */
bool volume_nifti_write(const struct volume_grid *grid, enum volume_type type, uint8_t head[NIFTI_HEAD_SIZE]);

/* --------------------------------------------------------------------------- volume_nrrd.c ---- */

/* Headers of NRRD (teem.sourceforge.net/nrrd/format.html), versions 1 to 5. */

#define NRRD_HEAD_SIZE 1024

/* Reads the header at the start of a stream. Errors: volume_read_header(). */
int volume_nrrd_read(struct volume_stream *stream, struct volume_header *header, struct error *error);

/* Writes a header with its voxels behind it, and returns its length. */
int volume_nrrd_write(const struct volume_grid *grid, enum volume_type type, char head[NRRD_HEAD_SIZE]);

#endif
