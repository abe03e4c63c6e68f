/*
 * rle.h - decodes RLE frames (PS3.5 annex G); private to dicom/.
 *
 * DCMTK's decoder must not be used: version 3.6.7 writes beyond its buffers if a frame's header or
 * runs are damaged (tests/unit/dicom/test_pixels.c, damaged_bytes).
 */
#ifndef NOCTULE_DICOM_READ_PIXELS_RLE_H
#define NOCTULE_DICOM_READ_PIXELS_RLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Decodes one of the segments of a frame: a byte of each of `count` pixels, to every stride-th byte. Returns NULL, or why
 * the frame cannot be decoded; then these bytes are undefined.
 */
const char *rle_decode_segment(const uint8_t *bytes, size_t size, size_t segments, size_t segment, size_t count,
                               uint8_t *to, size_t stride);

/* Decodes one frame of `count` pixels of one sample in `bytes_per_pixel` (1 or 2) bytes, in the order of this machine.
 * Returns as above. */
const char *rle_decode(const uint8_t *bytes, size_t size, size_t bytes_per_pixel, size_t count, void *pixels);

#ifdef __cplusplus
}
#endif
#endif
