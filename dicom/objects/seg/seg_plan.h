/*
 * seg_plan.h - frames of a segmentation object, found in one pass over masks or maps.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SEG_SEG_PLAN_H
#define NOCTULE_DICOM_OBJECTS_SEG_SEG_PLAN_H

#include "dicom/objects/seg/seg.h"
#include "dicom/write/mask_bits.h"

struct seg_plan {
    int32_t segment_count;
    int32_t plane_count;
    bool *present; /* present[segment * plane_count + plane]: the frame is written */
    /* Dimension Index Values (PS3.3 C.7.6.17.1): ordinals from 1, without gaps, of segments and
     * planes that have a frame. 0 if they have none. A plane has the same value in every
     * segment. */
    uint32_t *segment_index;
    uint32_t *plane_index;
    int64_t frames;
    bool overlap; /* a voxel is in two segments; always false for maps */
};

/* Return the voxels of one plane: of a BINARY object, or of a FRACTIONAL one (rows * columns of
 * them). */
struct mask_plane seg_plan_mask(const struct seg_request *request, int32_t segment, int32_t plane);
const uint16_t *seg_plan_map(const struct seg_request *request, int32_t segment, int32_t plane);
int64_t seg_plan_voxels(const struct seg_request *request); /* number per plane */

/* Returns 0 or -ENOMEM. */
int seg_plan_make(const struct seg_request *request, struct seg_plan *plan);
void seg_plan_free(struct seg_plan *plan);

#endif
