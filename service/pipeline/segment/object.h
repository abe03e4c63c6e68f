/*
 * object.h - segments from regions of annotation objects (RTSTRUCT, SEG, SR).
 *
 * An object is considered if it is of the configured kind. It fits if it refers to the series of
 * the stack, or else if its region lies in the images' frame of reference; a region of another
 * frame of reference never fits. Exactly one of the objects that fit must have the region, or the
 * regions if the segment unites several (object_pick.h). An object that is stored twice counts
 * once.
 *
 * The mask is made before there are pixels, on the planes of the source: by contours.h,
 * object_frames.h or object_figures.h. For a straightened stack it is converted to the grid
 * (grid.h); a region that is not changed afterwards is written as it was drawn. Results of Noctule
 * are used only if the segment allows it.
 *
 * Codes: those of reading, OBJECT_MISSING, OBJECT_OTHER_SERIES, OBJECT_OTHER_FRAME,
 * OBJECT_AMBIGUOUS, OWN_RESULT, OBJECT_NOT_REFERABLE, ROI_NOT_FOUND, ROI_AMBIGUOUS, ROI_EMPTY,
 * those of kernels_mask_contours(), SEG_GRID_DIFFERS, SEED_OUTSIDE and FIGURE_UNSUPPORTED.
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
    const char *path; /* path of the object; owned by the job */
    char class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    struct seg_origin origin;        /* if the segment equals the region; borrows the texts above */
    char roi_type[DICOM_CS_SIZE];    /* RT ROI Interpreted Type, of a single region of a structure set; "" */
    char name[DICOM_LO_SIZE];        /* of united regions: their names, cut */
    int32_t number;                  /* of united regions: that of the first */
    int32_t united;                  /* number of united regions; 0: a single one */
    char absent[OBJECT_ABSENT_SIZE]; /* reason why an optional segment has no voxel; "" */
    /* "": the region has none */
    char tracking_id[SEG_TRACKING_ID_SIZE], tracking_uid[DICOM_UID_SIZE];
    const struct provenance *provenance;
    int64_t contours, left_out; /* closed contours, and others; of a structure set */
    int64_t frames;             /* of a Segmentation */
    double between;             /* mm between frames, if slices took the nearest frame; else 0 */
    int64_t points;             /* of a report, besides contours */
    int64_t elsewhere;          /* figures of a report on other 2-D images or frames */
    struct contours_drawn drawn;
    struct image_mask mask;     /* on the working grid */
    struct image_mask whole;    /* on the source's planes, as it was drawn */
    uint64_t *bits, *grid_bits; /* storage; without a grid of its own there is no second one */
};

struct object_search;

/*
 * Makes the mask of the region that was found, on the planes of the source and on the working grid. The caller must free
 * region->bits and region->grid_bits, also after an error.
 */
int object_region_make(const struct object_search *search, struct object_region *region, struct error *error);

/* Returns the region of a prepared segment; NULL: the segment does not come from an object. */
const struct object_region *object_region_of(const struct segmentation *segmentation, size_t segment);

/*
 * Returns whether Noctule changed the region: by steps, by other segments, or by interpolated
 * slices.
 */
bool object_region_is_changed(const struct segmentation *segmentation, size_t segment);

/* Returns the region of a segment that equals it; NULL: other segments. */
const struct object_region *object_region_alone(const struct segmentation *segmentation, size_t segment);

/*
 * Describes the planes of a stack, as contours are drawn on them. Returns the origins, which `planes` borrows and the
 * caller must free, or NULL if there is no memory. Origins need not be evenly spaced in a regular stack.
 */
double *object_make_planes(const struct geometry_stack *stack, struct dicom_instance *const *instances,
                           struct image_planes *planes);

#endif
