/*
 * geometry.h - from the instances of a series to stacks of parallel planes, and the gate.
 *
 * Pure C: no file is opened. A stack is what becomes one volume and one SEG: frames of one
 * orientation, size, echo, phase, b-value, temporal position and so on, in ascending order along the
 * normal (row direction x column direction). Nothing depends on the order of the instances. The cost
 * is that of sorting; a series of more than LIMIT_STACKS orientations or volumes is one
 * stack that is refused (TOO_MANY_STACKS).
 *
 * One series. All instances agree in Series UID, Patient ID with its issuer, Patient's Name and
 * Study UID, and those that are images in Modality and Frame of Reference UID, too.
 *
 * What is no image. Frames that their header excludes (frame->excluded) make one stack for each
 * reason, "mosaic", "localizer", "screenshot" and "derived", that is refused with its code; all but
 * the first are passed over. So are derived frames (frame->derived) where the series has originals.
 * With include_derived, what is derived is an image. Nothing that follows looks at what was set
 * aside, but for "Whole".
 *
 * Stacks. Frames of one orientation (each direction cosine within 4e-3) belong together. They are
 * split further by the keys of keys.def, in that order:
 *   - a key of VOLUMES splits wherever its values differ, unless more than half as many values as frames
 *     occur (a value for every slice is no volume). Numbers within the key's tolerance are one value where
 *     no position of their frames repeats;
 *   - any key splits where at least half of the positions are repeated, splitting leaves fewer repeats,
 *     and its values cover at least half of the positions each, on average. So trigger times of an
 *     ungated series and image types that change along the body split nothing;
 *   - a key of SCANS (Acquisition Number) also splits where one value has a frame at most positions, once
 *     each, and some position repeats (bolus tracking); and where each value has a regular stack, two of
 *     them reach into one another, and all together are uneven or overlap by more than a quarter of the
 *     Slice Thickness, or share positions. Blocks and interleaved halves of one volume stay together,
 *     also with gaps.
 * Then by acquisition time. Runs lie between pauses of more than half of the longest pause. They split where one run
 * has most positions, once each, and all others lie at one position each; and where each is a regular stack, two of
 * them reach into one another, and all together are no stack of slices that only touch, with gaps or without.
 * Then the general rule: where no key is left and every position occurs k >= 2 times, the first of
 * Acquisition Number, Acquisition Date and Time, Instance Number (with the order of frames in a
 * file) and Content Date and Time that every frame has and that sorts the frames into k volumes,
 *   - one after the other, each with every position once, the positions alike in all (each as late
 *     after the volume's first, to a quarter of the shortest volume), and no step within one more
 *     than twice as long as the shortest from one to the next. Volumes by Instance Number do
 *     not begin above 1 within the positions, for the first lacks slices then; or,
 *   - by Instance Number only, position by position, equally far apart, and with equal steps within
 *     each: the j-th of each position is of volume j.
 * A stack's name has the value of each key that split it ("b 1000, direction 3", "volume 2"), none
 * is twice (" #2"), and split_by has the attributes. Sizes never split: they make SIZE_MIXED.
 * Positions closer than 0.02 mm are one position. Images at one position alone are no volumes.
 *
 * Pieces. Stacks of orientations within 2e-2 that share no position and together are one regular stack,
 * whose slices do not overlap by more than a quarter of their thickness, are refused as
 * VOLUMES_MIXED: they are parts of several volumes, or of one whose header varies.
 *
 * Mixtures. A stack is refused as VOLUMES_MIXED, also with allow_missing, where
 *   - runs in time (see "Stacks"), or values of a key of SCANS, half as many as slices at most, reach into one another, are
 *     no regular stacks each, and together are unevenly spaced or overlap;
 *   - Instance Numbers of its files are not 1 (or 0) to the number of files, each once, it is the only stack of its orientation, its
 *     slices do not lie where the numbers put them with gaps, and
 *     - the numbers run with the planes in steps of which at least half are the same, n, and one goes on in another volume: by
 *       a whole number of stacks more where n is 1, and else by no multiple of n; or
 *     - the numbers, which do not run in equal steps, are those of several volumes of as many slices; or each is among the n
 *       numbers of its slice, for n volumes that are numbered slice by slice.
 *
 * Duplicates. With newest_of_duplicates, where fewer than half of the positions are repeated, the
 * newest of each is taken: by Instance Creation Date and Time, else Content, the first that both have
 * and in which they differ. The others are a stack "older slices" that is passed over. Where nothing says which is
 * the newest of a position, or two are no copies, nothing is taken: copies agree in the keys of keys.def, in
 * Instance Number and, if both have it, in Acquisition Date and Time.
 *
 * Tolerances. A step between planes is regular within spacing_tolerance of the median step, but at
 * least within 0.02 mm, if each plane lies within a quarter of a step of the grid with the mean step. The
 * shift within the planes from one to the next, beyond which the stack is sheared, may be 0.01 of the step
 * at most. Where the digits that the file writes are coarser than that (the most decimals, without zeros
 * at the end, of each coordinate in the stack, over the three of them along the normal), the regular step is the
 * mean of those that they can have made of one, each is regular within the digits, and what the
 * digits can have shifted is no shear, unless it adds up from the first plane to the last. No
 * tolerance is more than a quarter of the step. The spacing of an accepted stack is its mean step. A
 * stack of one plane is accepted where min_planes allows.
 *
 * Straightening. With `straighten`, a stack that is only sheared or unevenly spaced is accepted, and
 * says so (tilted, uneven): whoever computes with it resamples it to an upright grid. It stays
 * refused as it is without where
 *   - allow_missing is not set and a step is too long to be filled, for a slice may be missing: one and a half times as long as the
 *     longer step beside it, or as is to be expected: the median step; or, where every plane tells its
 *     Slice Thickness, the mean thickness of the two planes times the median of what steps are of it
 *     (so 2.5 mm slices that go on as 5 mm ones are unevenly spaced, and none is missing);
 *   - a plane is shifted from the one before by more than it is away from it (45 degrees);
 *   - its planes differ in rescale or padding: values between two planes would mean nothing.
 *
 * Whole. Unless allow_missing, a stack is refused as INCOMPLETE_SERIES where no gap shows it, but:
 *   - more than half of the positions have k >= 2 planes and the others fewer;
 *   - a stack of its orientation that shares a position with it, or one that shares one with that,
 *     has a position that it lacks;
 *   - something that is derived beside originals lies where its next plane would, at either end;
 *   - there are fewer images than Images in Acquisition of one of its planes, counting those that
 *     have the same value there, unless what was set aside with that value makes it exactly as many;
 *   - there are fewer images than expected_instances, unless what was set aside with that value makes
 *     it exactly as many; or Images in Acquisition is 1; or as many as the stack's planes, which agree
 *     in all keys before phase and are numbered in equal steps; or as many as there are images, all of
 *     them in stacks of the same planes that share their positions, and as many stacks as
 *     expected_instances is times that, at least;
 *   - its slices are unevenly spaced as their Instance Numbers are, and numbers between them are of none of them;
 *   - its Instance Numbers run with the planes, one by one, and as many as a tenth of the planes (at
 *     least one) before or after them are of no file of the series, though a number before (or 0)
 *     and one after it are; unless the stacks that share its positions lack as many.
 *   - parts of a concatenation are missing, by In-concatenation Total Number or a gap in the numbers, or all
 *     files are multi-frame and numbered in a row from 2 or more on;
 *   - original images announce more slice locations (counts.def) than all stacks have positions, or, of one
 *     grid, two such elements announce different numbers;
 *   - the slices are regularly two or more times Spacing Between Slices apart; or at least 1.5 times their
 *     thickness, numbered evenly, and the series lacks 4 of 10 numbers between the first and the last.
 *     The former does not count for derived images;
 *   - images have at least two different Temporal Position Identifiers (or indices, or times) and
 *     there are fewer of them in the series than Number of Temporal Positions, the largest of all
 *     images; what has no identifier is not refused for that.
 * Images of one position that are not told apart count once. The four before the last are of planes
 * that are files of their own.
 *
 * Temporal positions. Where Number of Temporal Positions is more than one, the series says how many
 * there are: the different identifiers, or, where there are not two (each volume is a series of its
 * own, or nothing numbers them), as many stacks as the first one's orientation, echo and complex
 * component have. They are taken as they are.
 */
#ifndef NOCTULE_GEOMETRY_H
#define NOCTULE_GEOMETRY_H

#include "base/limits.h"
#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GEOMETRY_NAME_SIZE  128
#define GEOMETRY_SPLIT_SIZE 256

/* The end of what INCOMPLETE_SERIES says. */
#define GEOMETRY_REMEDY " Send what is missing, or take the series without it (--accept-missing)."

/* A frame of the stack: instances[instance]->frames[frame]. */
struct geometry_plane {
    int32_t instance;
    int32_t frame;
    double position; /* mm along the normal */
};

struct geometry_stack {
    char name
        [GEOMETRY_NAME_SIZE]; /* what sets it apart, for people: "echo 1, b 800"; "" for the only stack */
    bool accepted;
    bool passed_over;   /* by what it is (LOCALIZER, ...): not accepted, and nobody's mistake */
    struct error error; /* when not accepted */
    char split_by
        [GEOMETRY_SPLIT_SIZE]; /* the attributes that set it apart, for people; "" for the only stack */
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
    /* Accepted to be straightened: spacing, origin and axes alone do not say where its voxels are. */
    bool tilted, uneven;
    double tilt_degrees; /* of a tilted one: its shear */
};

struct geometry_series {
    int32_t stack_count;
    struct geometry_stack
        *stacks; /* in ascending order of name, deterministic whatever the input order */
    int32_t times, times_announced; /* temporal positions; 0 where none or one is announced */
};

struct geometry_limits {
    int32_t min_planes;        /* fewer: TOO_FEW_SLICES; at least 1 */
    double spacing_tolerance;  /* relative to the median spacing, e.g. 0.01 */
    bool allow_missing;        /* INCOMPLETE_SERIES was judged before, or an operator accepts it */
    bool include_derived;      /* what is only excluded as derived is an image */
    bool newest_of_duplicates; /* of two slices at one position the newer, else neither */
    bool straighten;           /* what is sheared or unevenly spaced is accepted, to be resampled */
};

/*
 * Groups, sorts and judges. -EINVAL only when the instances are not of one series: SERIES_MIXED,
 * MIXED_PATIENTS, MIXED_STUDIES, MIXED_MODALITIES, MIXED_FRAMES_OF_REFERENCE. A stack that the gate
 * refuses fails nothing but has accepted = false and its error: TOO_MANY_STACKS, MOSAIC, LOCALIZER,
 * SCREENSHOT, DERIVED_IMAGE by themselves; NO_GEOMETRY, SIZE_MIXED, PIXELS_MIXED, RESCALE_INVALID,
 * TOO_FEW_SLICES, DUPLICATE_POSITION (or INCOMPLETE_SERIES in its place), GANTRY_TILT,
 * MISSING_SLICE, SPACING_NOT_UNIFORM, VOLUMES_MIXED, INCOMPLETE_SERIES. When several apply, the first in this
 * order, that of docs/codes.md, is the code and the message names the others. -ENOMEM with
 * OUT_OF_MEMORY.
 */
int geometry_group(struct dicom_instance *const *instances, int32_t count,
                   const struct geometry_limits *limits, struct geometry_series **series,
                   struct error *error);
void geometry_series_free(struct geometry_series *series);

/* Whether it has to be resampled before anything is computed of it. */
static inline bool
geometry_is_crooked(const struct geometry_stack *stack)
{
    return stack->tilted || stack->uneven;
}

/* Returns whether a frame has a Real World Value Mapping that differs from its rescale. */
static inline bool
geometry_has_own_mapping(const struct dicom_frame *frame)
{
    return frame->has_mapping &&
           (frame->mapping_slope != frame->slope || frame->mapping_intercept != frame->intercept);
}

/* Voxel coordinates (may be fractional or outside) of a point in mm, LPS. */
void geometry_voxel_from_mm(const struct geometry_stack *stack, const double mm[3],
                            double voxel[3]);

#ifdef __cplusplus
}
#endif
#endif
