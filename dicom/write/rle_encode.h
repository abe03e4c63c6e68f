/*
 * rle_encode.h - encodes frames in RLE (PS3.5 annex G); private to dicom/.
 *
 * DCMTK's encoder must not be used: it needs all frames in memory.
 */
#ifndef NOCTULE_DICOM_WRITE_RLE_ENCODE_H
#define NOCTULE_DICOM_WRITE_RLE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

/* One frame of one sample per pixel, of 1 or 2 bytes, little endian; or of 3 samples of 1 byte (R, G and B). */
struct rle_frame {
    const uint8_t *bytes;
    size_t bytes_per_pixel;
    size_t columns, rows;
};

/* Returns the max size of an encoded frame. */
size_t rle_encoded_max(const struct rle_frame *frame);

/* Encodes the frame, padded to an even size. Returns its size. Equal frames give equal bytes. */
size_t rle_encode(const struct rle_frame *frame, uint8_t *encoded);

#endif
