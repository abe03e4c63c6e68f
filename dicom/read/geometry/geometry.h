/*
 * geometry.h - groups the instances of a series into stacks of parallel planes, and checks their
 * geometry.
 *
 * Pure C: opens no file. A stack becomes one volume and one SEG. It has frames of one orientation,
 * size, echo, phase, b-value, temporal position and so on, in ascending order along the normal (row
 * direction x column direction). The result does not depend on the order of the instances. The cost
 * is that of sorting. A series of more than LIMIT_STACKS orientations or volumes is one stack,
 * which is rejected (TOO_MANY_STACKS).
 *
 * One series. All instances must agree in Series UID, Patient ID with its issuer, Patient's Name
 * and Study UID. All images must also agree in Modality and Frame of Reference UID.
 *
 * Excluded frames. Frames that their header excludes (frame->excluded) make one stack per reason:
 * "mosaic", "localizer", "screenshot" and "derived". Such a stack is rejected with its code; all
 * but the first count as skipped. Derived frames (frame->derived) are excluded too if the series
 * has originals. With include_derived, they are images. Later rules ignore excluded frames, except
 * "Whole".
 *
 * 2-D images (instance->flat). With take_flat, each frame is a stack of its own, "image 3" by Instance Number, or "image 3,
 * frame 7" of several frames. Only its rescale is checked. Otherwise they are excluded too ("2-D images", FLAT_IMAGE). They
 * may differ from the volumes in modality and frame of reference.
 *
 * Stacks. Frames of one orientation (each direction cosine within 4e-3) belong together. The keys
 * of keys.def split them further, in that order:
 *
 * - A key of VOLUMES splits if its values differ. It does not split if there are more than half as
 *   many values as frames: one value per slice is not a volume. Numbers within the key's tolerance
 *   are one value if no position of their frames repeats.
 * - Any key splits if at least half of the positions are repeated, splitting leaves fewer repeats,
 *   and each value covers at least half of the positions on average. So trigger times of an ungated
 *   series, and image types that change along the body, do not split.
 * - A key of SCANS (Acquisition Number) also splits if one value has a frame at most positions,
 *   once each, and some position repeats (bolus tracking).
 * - A key of SCANS also splits if each value has a regular stack, two of these interleave, and
 *   together they share positions or are not one stack. They are not one stack if they are uneven,
 *   or overlap by more than a quarter of the Slice Thickness. Blocks and interleaved halves of one
 *   volume stay together, also with gaps.
 *
 * Then acquisition time splits. A run is the planes between two pauses that are longer than half of
 * the longest pause. Runs are split if one run has most positions, once each, and each other run
 * lies at one position. They are also split if each is a regular stack, two interleave, and
 * together they cannot be one stack of slices that only touch, with or without gaps.
 *
 * Then the general rule applies, if every position occurs k >= 2 times. It tries Acquisition
 * Number, Acquisition Date and Time, Instance Number (with the order of frames in a file), and
 * Content Date and Time. It uses the first that every frame has and that sorts the frames into k
 * volumes:
 *
 * - One volume after the other, each with every position once. Positions come equally late in all
 *   volumes, to a quarter of the shortest volume. No step within a volume is longer than twice the
 *   shortest step between volumes. By Instance Number, the first volume must not begin above 1
 *   within the positions, because it then lacks slices.
 * - By Instance Number only: one position after the other, equally far apart, and with equal steps
 *   within each. The j-th frame of each position is in volume j.
 *
 * A stack's name has the value of each key that split it ("b 1000, direction 3", "volume 2"). Names
 * are unique (" #2"). split_by has the attributes. Sizes never split: mixed sizes are SIZE_MIXED.
 * Positions closer than 0.02 mm are one position. Images at one position alone are not split into
 * volumes.
 *
 * Pieces. Stacks of orientations within 2e-2 that share no position are rejected as VOLUMES_MIXED
 * if together they are one regular stack, whose slices do not overlap by more than a quarter of
 * their thickness. They are parts of several volumes, or of one volume whose header varies.
 *
 * Mixtures. A stack is rejected as VOLUMES_MIXED, also with allow_missing, in two cases.
 *
 * - Runs in time (see "Stacks"), or values of a key of SCANS, interleave. They are not regular
 *   stacks each, and together they are unevenly spaced or overlap. There are at most half as many
 *   values as slices.
 * - The stack is the only one of its orientation. The Instance Numbers of its files are not 1 (or
 *   0) to the number of files, each once. The slices are not where the numbers put them with gaps.
 *   And one of these holds:
 *   - The numbers follow the planes, at least half of the steps are the same, n, and one step
 *     continues in another volume. If n is 1, it differs by a whole number of stacks. Otherwise it
 *     is not a multiple of n.
 *   - The numbers, which do not have equal steps, are those of several volumes of as many slices.
 *   - Each number is among the n numbers of its slice, for n volumes that are numbered slice by
 *     slice.
 *
 * Duplicates. With newest_of_duplicates, if fewer than half of the positions are repeated, the
 * stack has the newest plane of each position. The newest is found by Instance Creation Date and
 * Time, or else Content Date and Time, the first that both have and in which they differ. The
 * others are a stack "older slices", which counts as skipped. The rule does not apply if the newest
 * plane of a position is unknown, or if two planes are not copies. Copies agree in the keys of
 * keys.def, in Instance Number and, if both have it, in Acquisition Date and Time.
 *
 * Tolerances.
 *
 * - A step between planes is regular within spacing_tolerance of the median step, and at least
 *   within 0.02 mm. Each plane must also lie within a quarter of a step of the grid with the mean
 *   step.
 * - A stack is sheared if planes shift from one to the next by more than 0.01 of the step.
 * - A stack whose coordinates were rounded is even and upright. Each coordinate of each plane must
 *   then lie within half a unit of its last digit of one line of equal steps, and the line must not
 *   be sheared from the first plane to the last. If the digits are coarser than spacing_tolerance,
 *   half of it along the normal is allowed besides. The digits of a coordinate are the most decimals, of seven digits and without
 *   trailing zeros, that it has in the stack. Half a step must not be hidden: along the normal, the
 *   units of the three coordinates add up to at most half of the mean step, and to at most a quarter
 *   if a single step is irregular.
 * - Positions closer than these units repeat, and a gap is a multiple of the regular step within
 *   them. The regular step is then the mean of the steps that the digits allow.
 * - No tolerance of a step exceeds a quarter of the step.
 * - Digits of Image Orientation need no rule. Rounding to three decimals turns the normal by less than
 *   0.003; fewer decimals are not orthonormal to 1e-3, except those that are exact. Pixel Spacing does
 *   not enter the distance of planes.
 * - The spacing of an accepted stack is its mean step. A stack of one plane is accepted if
 *   min_planes allows it.
 *
 * Straightening. With `straighten`, a stack that is only sheared or unevenly spaced is accepted and
 * marked (tilted, uneven). Users must resample it to an upright grid. In these cases it is
 * rejected, as without `straighten`:
 *
 * - allow_missing is not set and a step is too long to fill, because a slice may be missing: 1.5
 *   times the longer neighbouring step, or 1.5 times the expected step. The expected step is the
 *   median step. If every plane has a Slice Thickness, it is the mean thickness of the two planes
 *   times the median ratio of step and thickness. So 2.5 mm slices followed by 5 mm slices are
 *   unevenly spaced, and no slice is missing.
 * - A plane is shifted from the previous one by more than their distance (45 degrees).
 * - Its planes differ in rescale or padding: values between two planes would be meaningless.
 *
 * Whole. Unless allow_missing is set, a stack without visible gaps is rejected as INCOMPLETE_SERIES
 * in these cases. Those marked [1] apply only to planes that are separate files.
 *
 * - More than half of the positions have k >= 2 planes and the others fewer.
 * - A stack of its orientation that shares a position with it, directly or through another stack,
 *   has a position that it lacks.
 * - A derived frame, in a series with originals, lies where its next plane would be, at either end.
 * - [1] There are fewer images than Images in Acquisition of one of its planes, counting those with
 *   the same value there. The excluded frames with that value count if they make up the exact
 *   number.
 * - [1] There are fewer images than expected_instances. The excluded frames with that value count
 *   if they make up the exact number. This is ignored in three cases. Images in Acquisition is 1.
 *   Or it equals the stack's planes, which agree in all keys before phase and are numbered in equal
 *   steps. Or it equals the number of images, which are all in stacks of as many planes that share
 *   their positions, and there are at least expected_instances / Images in Acquisition such stacks.
 * - [1] Its slices are unevenly spaced, as their Instance Numbers are, and numbers between them
 *   have no slice.
 * - [1] Its Instance Numbers follow the planes, one by one, and a few numbers before or after them
 *   are of no file of the series. A few are up to a tenth of the planes, and at least one. A number
 *   before these (or 0) and one after are of a file. The stacks that share its positions do not
 *   lack as many.
 * - Parts of a concatenation are missing, by In-concatenation Total Number or a gap in the numbers.
 *   Or all files are multi-frame and are numbered consecutively from 2 or more.
 * - Original images announce more slice locations (counts.def) than all stacks have positions. Or,
 *   with one grid, two such elements announce different numbers.
 * - The steps are regularly two or more times Spacing Between Slices, except in derived images. Or
 *   they are at least 1.5 times the thickness, the slices are numbered evenly, and the series lacks
 *   4 of 10 numbers between the first and the last.
 * - Images have at least two different Temporal Position Identifiers (or indices, or times), and
 *   the series has fewer of them than the largest Number of Temporal Positions of all images.
 *   Images without identifier are not rejected for that.
 *
 * Images of one position that are not distinguished count once.
 *
 * Temporal positions. If Number of Temporal Positions is more than one, the series reports how many
 * are present: the different identifiers. If there are fewer than two identifiers (each volume is a
 * series of its own, or volumes are not numbered), stacks are counted instead: those with the first
 * stack's orientation, echo and complex component. This number is not checked.
 */
#ifndef NOCTULE_DICOM_READ_GEOMETRY_GEOMETRY_H
#define NOCTULE_DICOM_READ_GEOMETRY_GEOMETRY_H

#include "base/limits.h"
#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GEOMETRY_NAME_SIZE  128
#define GEOMETRY_SPLIT_SIZE 256

/* End of the message of INCOMPLETE_SERIES. */
#define GEOMETRY_REMEDY " Send the missing images, or accept the series without them (--accept-missing)."

/* A frame of the stack: instances[instance]->frames[frame]. */
struct geometry_plane {
    int32_t instance;
    int32_t frame;
    double position; /* mm along the normal */
};

struct geometry_stack {
    char name
        /* differences from the other stacks, for display: "echo 1, b 800"; "" for the only stack */
        [GEOMETRY_NAME_SIZE];
    bool accepted;
    /* excluded by its kind (LOCALIZER and others): not accepted, but not an error */
    bool passed_over;
    struct error error; /* if not accepted */
    char split_by
        /* attributes that distinguish it, for display; "" for the only stack */
        [GEOMETRY_SPLIT_SIZE];
    int32_t columns, rows;
    int32_t plane_count;
    struct geometry_plane *planes; /* ascending position */
    enum image_pixel pixel;
    bool has_geometry; /* in the patient: false for 2-D images and for rejected stacks */
    /* One frame of a 2-D image: no patient geometry. `origin` is 0, and `axes` are columns, rows and depth. spacing[2] is 1
     * without a meaning. spacing[0] and [1] are mm only if geometry_is_in_mm(). */
    bool flat;
    enum dicom_spacing spacing_source; /* of spacing[0] and [1]; for volumes DICOM_SPACING_PIXEL */
    /* 2-D images: first column, first row, last column and last row with this spacing; the image, except of ultrasound. */
    int32_t calibrated[4];
    double normal[3];
    /* mm between columns (x), rows (y), planes (z). For one plane z is the slice thickness, or
     * 1. */
    double spacing[3];
    double origin[3]; /* mm, centre of voxel (0, 0, 0) */
    double axes[9];   /* unit vectors of x, y, z in patient coordinates */
    /* Accepted, but must be straightened: spacing, origin and axes do not give the positions of
     * its voxels. */
    bool tilted, uneven;
    double tilt_degrees; /* shear of a tilted stack */
};

struct geometry_series {
    int32_t stack_count;
    struct geometry_stack *stacks;  /* ascending by name; independent of the input order */
    int32_t times, times_announced; /* temporal positions; 0 if at most one is announced */
};

struct geometry_limits {
    int32_t min_planes;       /* TOO_FEW_SLICES if fewer; at least 1 */
    double spacing_tolerance; /* relative to the median spacing, for example 0.01 */
    bool allow_missing;       /* INCOMPLETE_SERIES was checked before, or an operator accepts it */
    bool include_derived;     /* frames that are excluded only as derived are images */
    /* keep the newer of two slices at one position; otherwise reject them */
    bool newest_of_duplicates;
    bool straighten; /* accept sheared or unevenly spaced stacks, to be resampled */
    bool take_flat;  /* accept 2-D images, regardless of min_planes */
};

/*
 * Groups, sorts and checks. Returns -EINVAL only if the instances are not of one series:
 * SERIES_MIXED, MIXED_PATIENTS, MIXED_STUDIES, MIXED_MODALITIES, MIXED_FRAMES_OF_REFERENCE. Returns
 * -ENOMEM with OUT_OF_MEMORY.
 *
 * A rejected stack is not a failure. It has accepted = false and its error. TOO_MANY_STACKS,
 * MOSAIC, LOCALIZER, SCREENSHOT, DERIVED_IMAGE and FLAT_IMAGE stand alone. The others are NO_GEOMETRY,
 * SIZE_MIXED, PIXELS_MIXED, RESCALE_INVALID, TOO_FEW_SLICES, DUPLICATE_POSITION (or
 * INCOMPLETE_SERIES in its place), GANTRY_TILT, MISSING_SLICE, SPACING_NOT_UNIFORM, VOLUMES_MIXED
 * and INCOMPLETE_SERIES. If several apply, the first in this order, which is that of docs/codes.md,
 * is the code, and the message lists the others.
 */
int geometry_group(struct dicom_instance *const *instances, int32_t count, const struct geometry_limits *limits,
                   struct geometry_series **series, struct error *error);
void geometry_series_free(struct geometry_series *series);

/* Returns whether a stack must be resampled before it is used. */
static inline bool
geometry_needs_resampling(const struct geometry_stack *stack)
{
    return stack->tilted || stack->uneven;
}

/* Returns whether spacing[0] and [1] are in mm. Without, quantities in mm are unknown, and must not be reported. */
static inline bool
geometry_is_in_mm(const struct geometry_stack *stack)
{
    return !stack->flat || stack->spacing_source != DICOM_SPACING_NONE;
}

/* Returns whether a frame has a Real World Value Mapping that differs from its rescale. */
static inline bool
geometry_has_own_mapping(const struct dicom_frame *frame)
{
    return frame->has_mapping && (frame->mapping_slope != frame->slope || frame->mapping_intercept != frame->intercept);
}

/* Computes the voxel coordinates of a point in mm, LPS. They may be fractional or outside the
 * stack. */
void geometry_voxel_from_mm(const struct geometry_stack *stack, const double mm[3], double voxel[3]);

#ifdef __cplusplus
}
#endif
#endif
