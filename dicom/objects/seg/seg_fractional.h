/*
 * seg_fractional.h - a plane of a connectedness map, 0 to 65535 per voxel, as the stored values of a
 * FRACTIONAL segmentation: probabilities of 8 bits, 255 for certainty (PS3.3 C.8.20.2.3).
 */
#ifndef NOCTULE_SEG_FRACTIONAL_H
#define NOCTULE_SEG_FRACTIONAL_H

#include "dicom/write/byte_sink.h"

#include <stdbool.h>
#include <stdint.h>

#define SEG_FRACTIONAL_MAX 255

/* round(connectedness * 255 / 65535), which is round(connectedness / 257); 257 is odd, so nothing
 * lies half-way. In 16 bits, which compilers make wider vectors of: the greatest are 255 with or
 * without their half. */
static inline uint8_t
seg_fractional_value(uint16_t connectedness)
{
    uint16_t up = connectedness > UINT16_MAX - 128 ? UINT16_MAX : (uint16_t)(connectedness + 128);
    return (uint8_t)(up / 257);
}

/* Whether a stored value is not 0. */
bool seg_fractional_any(const uint16_t *voxels, int64_t count);

/* Appends the stored values, a byte each. */
void seg_fractional_append(struct byte_sink *sink, const uint16_t *voxels, int64_t count);

#endif
