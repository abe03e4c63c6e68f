/*
 * geometry.h - from the instances of a series to stacks of parallel planes, and the gate.
 *
 * Pure C: no file is opened. A stack is what becomes one volume and one SEG: frames of one
 * orientation, size, echo, phase, b-value and temporal position, in ascending order along the
 * normal (row direction x column direction).
 *
 * Stacks. Frames of one orientation (each direction cosine within 1e-3) belong together. They are
 * split further, in this order, by echo, b-value, temporal position, cardiac or respiratory phase,
 * type of image (magnitude, phase, ...) and acquisition number, where a value really means another
 * volume and does not merely vary from slice to slice:
 *   - echo, b-value and temporal position always do, unless there are fewer than two frames for
 *     each value (a value for every slice is no volume);
 *   - any of the six does when positions are repeated, splitting leaves fewer repeats, and its
 *     values cover at least half of the positions each, on average. So trigger times of an ungated
 *     series, image types and acquisition numbers that change along the body split nothing.
 * Sizes never split: they make SIZE_MIXED. Positions closer than 0.02 mm are one position.
 *
 * Tolerances. A step between planes is regular within spacing_tolerance of the median step, but at
 * least within 0.02 mm, the rounding of the decimal strings; so is the shift within the planes from
 * one to the next, beyond which the stack is sheared. The spacing of an accepted stack is its mean
 * step. A stack of one plane is accepted where min_planes allows.
 */
#ifndef NOCTULE_GEOMETRY_H
#define NOCTULE_GEOMETRY_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A frame of the stack: instances[instance]->frames[frame]. */
struct geometry_plane {
    int32_t instance;
    int32_t frame;
    double position; /* mm along the normal */
};

struct geometry_stack {
    char name[128]; /* what sets it apart, for people: "echo 1, b 800"; "" for the only stack */
    bool accepted;
    bool passed_over;   /* by what it is (LOCALIZER, ...): not accepted, and nobody's mistake */
    struct error error; /* when not accepted */
    char split_by[256]; /* the attributes that set it apart, for people; "" for the only stack */
    int32_t columns, rows;
    int32_t plane_count;
    struct geometry_plane *planes; /* ascending position */
    enum image_pixel pixel;
    bool has_geometry;
    double normal[3];
    double spacing[3]; /* mm between columns (x), rows (y), planes (z); z is the slice thickness, or
                          1, for one plane */
    double origin[3];  /* mm, centre of voxel (0, 0, 0) */
    double axes[9];    /* unit vectors of x, y, z in patient coordinates */
};

struct geometry_series {
    int32_t stack_count;
    struct geometry_stack
        *stacks; /* in ascending order of name, deterministic whatever the input order */
};

struct geometry_limits {
    int32_t min_planes;        /* fewer: TOO_FEW_SLICES; at least 1 */
    double spacing_tolerance;  /* relative to the median spacing, e.g. 0.01 */
    bool allow_missing;        /* INCOMPLETE_SERIES was judged before, or an operator accepts it */
    bool include_derived;      /* what is only excluded as derived is an image */
    bool newest_of_duplicates; /* of two slices at one position the newer, else neither */
};

/*
 * Groups, sorts and judges. -EINVAL only when the instances belong to several series
 * (SERIES_MIXED); a stack that the gate refuses fails nothing but has accepted = false and its error:
 * NO_GEOMETRY, SIZE_MIXED, PIXELS_MIXED, FRAME_OF_REFERENCE_MIXED, RESCALE_INVALID,
 * TOO_FEW_SLICES, DUPLICATE_POSITION, GANTRY_TILT, MISSING_SLICE, SPACING_NOT_UNIFORM. When several
 * apply, the first in this order, that of docs/codes.md, is the code and the message names the
 * others. -ENOMEM with OUT_OF_MEMORY.
 */
int geometry_group(struct dicom_instance *const *instances, int32_t count,
                   const struct geometry_limits *limits, struct geometry_series **series,
                   struct error *error);
void geometry_series_free(struct geometry_series *series);

/* Voxel coordinates (may be fractional or outside) of a point in mm, LPS. */
void geometry_voxel_from_mm(const struct geometry_stack *stack, const double mm[3],
                            double voxel[3]);

#ifdef __cplusplus
}
#endif
#endif
