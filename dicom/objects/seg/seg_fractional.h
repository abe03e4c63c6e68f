/*
 * seg_fractional.h - converts a plane of a connectedness map, 0 to 65535 per voxel, to the stored
 * values of a FRACTIONAL segmentation: 8-bit probabilities, 255 for certainty (PS3.3 C.8.20.2.3).
 */
#ifndef NOCTULE_DICOM_OBJECTS_SEG_SEG_FRACTIONAL_H
#define NOCTULE_DICOM_OBJECTS_SEG_SEG_FRACTIONAL_H

#include "dicom/write/byte_sink.h"

#include <stdbool.h>
#include <stdint.h>

#define SEG_FRACTIONAL_MAX 255

/* Returns round(connectedness * 255 / 65535), which equals round(connectedness / 257). 257 is
 * odd, so halves do not occur. Uses 16 bits, for which compilers make wider vectors. The largest
 * values give 255 with or without rounding. */
static inline uint8_t
seg_fractional_value(uint16_t connectedness)
{
    uint16_t up = connectedness > UINT16_MAX - 128 ? UINT16_MAX : (uint16_t)(connectedness + 128);
    return (uint8_t)(up / 257);
}

/* Returns whether any stored value is not 0. */
bool seg_fractional_any(const uint16_t *voxels, int64_t count);

/* Appends the stored values, one byte each. */
void seg_fractional_append(struct byte_sink *sink, const uint16_t *voxels, int64_t count);

#endif
