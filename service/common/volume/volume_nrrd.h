/*
 * volume_nrrd.h - headers of NRRD (teem.sourceforge.net/nrrd/format.html), versions 1 to 5.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_NRRD_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_NRRD_H

#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_stream.h"

#define NRRD_HEAD_SIZE 1024

/* Reads the header at the start of a stream. Errors: volume_read_header(). */
int volume_nrrd_read(struct volume_stream *stream, struct volume_header *header, struct error *error);

/* Writes a header with its voxels behind it, and returns its length. */
int volume_nrrd_write(const struct volume_grid *grid, enum volume_type type, char head[NRRD_HEAD_SIZE]);

#endif
