/*
 * object.h - segments that are regions of objects which came beside the images: what someone drew.
 *
 * An object is looked at when it is of the configured kind. It fits when it names the series of the
 * stack as one that it was drawn on, or else when its region lies in the images' frame of reference;
 * a region of another frame of reference never fits. Of all objects that fit exactly one has to
 * have the region; an object that is there twice counts once. The mask is that of contours.h, on the
 * planes of the stack, and is made before there are pixels.
 *
 * Codes: those of reading, OBJECT_MISSING, OBJECT_OTHER_SERIES, OBJECT_OTHER_FRAME,
 * OBJECT_AMBIGUOUS, ROI_NOT_FOUND, ROI_AMBIGUOUS, ROI_EMPTY and those of kernels_mask_contours.
 */
#ifndef NOCTULE_SEGMENT_OBJECT_H
#define NOCTULE_SEGMENT_OBJECT_H

#include "dicom/objects/seg/seg.h"
#include "kernels/mask/contours.h"
#include "service/pipeline/segment/segment.h"

/* A region that became a segment. */
struct object_region {
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    struct seg_origin origin; /* where the segment is the region as it is; of the texts above */
    char name[DICOM_LO_SIZE];
    int32_t number;
    int64_t contours, left_out; /* closed ones, and others */
    struct contours_drawn drawn;
    struct image_mask mask;
    uint64_t *bits; /* its own */
};

/* The region of a segment that was prepared; NULL where it is found in another way. */
const struct object_region *object_region_of(const struct segmentation *segmentation,
                                             size_t segment);

#endif
