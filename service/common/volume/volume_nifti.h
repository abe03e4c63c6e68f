/*
 * volume_nifti.h - headers of NIfTI-1 and NIfTI-2 (nifti1.h and nifti2.h of nifti.nimh.nih.gov).
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_NIFTI_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_NIFTI_H

#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_stream.h"

#define NIFTI_HEAD_SIZE 352

/* Reads the header at the start of a stream. Errors: volume_read_header(). */
int volume_nifti_read(struct volume_stream *stream, const char *name, struct volume_header *header,
                      struct error *error);

/* Writes a NIfTI-1 header, and the empty extension behind it. Returns false if the format has no room for such a size. */
bool volume_nifti_write(const struct volume_grid *grid, enum volume_type type, uint8_t head[NIFTI_HEAD_SIZE]);

#endif
