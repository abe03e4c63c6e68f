/*
 * seg_writer.h - the segmentation writer: its frames, found in one pass over masks or maps; stored
 * values of a FRACTIONAL object; and its state. Private to seg*.c.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SEG_SEG_WRITER_H
#define NOCTULE_DICOM_OBJECTS_SEG_SEG_WRITER_H

#include "dicom/objects/seg/seg_parts.h"
#include "dicom/write/mask_bits.h"
#include "dicom/write/stack_writer.h"

/* --- frames --- */

struct seg_plan {
    int32_t segment_count; /* 1 in a LABELMAP: its frames have all segments */
    int32_t plane_count;
    bool *present; /* present[segment * plane_count + plane]: the frame is written */
    /* Dimension Index Values (PS3.3 C.7.6.17.1): ordinals from 1, without gaps, of segments and
     * planes that have a frame. 0 if they have none. A plane has the same value in every
     * segment. */
    uint32_t *segment_index;
    uint32_t *plane_index;
    int64_t frames;
    int32_t overlap; /* first plane with a voxel in two segments, or -1; always -1 for maps */
};

/* Return the voxels of one plane: of a BINARY object, or of a FRACTIONAL one (rows * columns of them). */
struct mask_plane seg_plan_mask(const struct seg_request *request, int32_t segment, int32_t plane);
const uint16_t *seg_plan_map(const struct seg_request *request, int32_t segment, int32_t plane);
int64_t seg_plan_voxels(const struct seg_request *request); /* number per plane */

/* Sets the segments and the voxel (column and row) of the plane's first voxel that is in two segments, if any. */
struct seg_overlap {
    int32_t first, second, column, row;
};

bool seg_find_overlap(const struct seg_request *request, int32_t plane, struct seg_overlap *found);

/* Returns 0 or -ENOMEM. */
int seg_plan_make(const struct seg_request *request, struct seg_plan *plan);
void seg_plan_free(struct seg_plan *plan);

/*
 * --- fractional values ---
 *
 * Convert a plane of a connectedness map, 0 to 65535 per voxel, to 8-bit probabilities, 255 for
 * certainty (PS3.3 C.8.20.2.3).
 */
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

/* Write or append the stored values, one byte each. */
void seg_fractional_fill(uint8_t *values, const uint16_t *voxels, int64_t count);
void seg_fractional_append(struct byte_sink *sink, const uint16_t *voxels, int64_t count);

/* --- the object --- */

struct seg_writer {
    const struct seg_request *request;
    struct stack_writer out;
    struct seg_plan plan;
    uint8_t *frame; /* pixels of one frame of a LABELMAP, or of one to encode */
};

/* Returns the bytes of Pixel Data without compression, an even number, for less than 2^31 frames. */
uint64_t seg_pixel_data_length(const struct seg_writer *w);

/* Put the parts of the object that no other kind has, in tag order. Each returns 0, -ENOMEM, or
 * -EOVERFLOW if a sequence exceeds its length field. The sink keeps write errors, the buffers keep
 * encoding errors. */
int seg_put_segments(struct seg_writer *w);
int seg_put_functional_groups(struct seg_writer *w);
int seg_put_pixel_data(struct seg_writer *w);

#endif
