/*
 * mask_bits.h - tests and packing of masks of one bit per voxel whose rows begin on 64-bit words.
 * Bits beyond `columns` in a row's last word are ignored.
 */
#ifndef NOCTULE_DICOM_WRITE_MASK_BITS_H
#define NOCTULE_DICOM_WRITE_MASK_BITS_H

#include "dicom/write/byte_sink.h"

#include <stdbool.h>

/* One plane of a mask. */
struct mask_plane {
    const uint64_t *words;
    int64_t words_per_row; /* at least columns / 64, rounded up */
    int32_t columns;
    int32_t rows;
};

bool mask_any(const struct mask_plane *plane);

/* Adds the plane to `seen` (rows * (columns / 64 rounded up) words). Returns whether a voxel was in it already. */
bool mask_add(const struct mask_plane *plane, uint64_t *seen);

/* Appends the planes' voxels, in raster order, to one bit stream without gaps between rows or
 * planes, least significant bit first (PS3.5 8.1.1). At most 65535 columns. */
struct mask_packer {
    struct byte_sink *sink;
    uint64_t pending;
    unsigned pending_bits; /* less than 64 */
};

void mask_pack(struct mask_packer *packer, const struct mask_plane *plane);
/* writes the last bits, padded with 0 to a byte */
void mask_pack_finish(struct mask_packer *packer);

#endif
