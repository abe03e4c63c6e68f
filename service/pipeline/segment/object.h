/*
 * object.h - segments that are regions of objects which came beside the images: what someone
 * drew, or another program found.
 *
 * An object is looked at when it is of the configured kind. It fits when it names the series of the
 * stack as one that it was drawn on, or else when its region lies in the images' frame of reference;
 * a region of another frame of reference never fits. Of all objects that fit exactly one has to
 * have the region, or the regions if the segment is of several (object_pick.h); an object that is there twice counts once.
 * The mask is that of contours.h or of
 * object_frames.h or object_figures.h, on the planes of the source, and is made before there are pixels. Of a straightened
 * stack it comes to the grid as grid.h says; what is written of it, where nothing else was done with
 * it, is what was drawn. Noctule's own results are taken where the segment says so.
 *
 * Codes: those of reading, OBJECT_MISSING, OBJECT_OTHER_SERIES, OBJECT_OTHER_FRAME,
 * OBJECT_AMBIGUOUS, OWN_RESULT, OBJECT_NOT_REFERABLE, ROI_NOT_FOUND, ROI_AMBIGUOUS, ROI_EMPTY, those of
 * kernels_mask_contours, SEG_GRID_DIFFERS, SEED_OUTSIDE and
 * FIGURE_UNSUPPORTED.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_H

#include "dicom/objects/seg/seg.h"
#include "kernels/mask/contours.h"
#include "service/pipeline/segment/object_pick.h"
#include "service/pipeline/segment/segment.h"

/* A region that became a segment. */
struct object_region {
    const char *what; /* "RT Structure Set"; NULL: the object has no such region */
    const char *path; /* of the object; the job's */
    char class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    struct seg_origin origin; /* where the segment is the region as it is; of the texts above */
    char name[DICOM_LO_SIZE]; /* of several that are united: their names, cut */
    int32_t number;           /* of several: of the first */
    int32_t united;           /* how many; 0: it is one */
    char absent[OBJECT_ABSENT_SIZE]; /* why an optional segment has no voxel; "" */
    char tracking_id[SEG_TRACKING_ID_SIZE], tracking_uid[DICOM_UID_SIZE]; /* "" where it has none */
    const struct provenance *provenance;
    int64_t contours, left_out; /* closed ones, and others; of a structure set */
    int64_t frames;             /* of a Segmentation */
    double between; /* mm from one of these to the next, where slices took the nearest; else 0 */
    int64_t points; /* of a report, beside contours */
    struct contours_drawn drawn;
    struct image_mask mask;     /* on the grid that is computed on */
    struct image_mask whole;    /* on the source's planes, as it was drawn */
    uint64_t *bits, *grid_bits; /* their own; on the planes themselves there is no second */
};

/* The region of a segment that was prepared; NULL where it is found in another way. */
const struct object_region *object_region_of(const struct segmentation *segmentation,
                                             size_t segment);

/* Whether Noctule changed the region: by steps, by other segments, or by interpolated slices. */
bool object_region_is_changed(const struct segmentation *segmentation, size_t segment);

/* The same, of a segment that is nothing but its region. */
const struct object_region *object_region_alone(const struct segmentation *segmentation,
                                                size_t segment);

#endif
