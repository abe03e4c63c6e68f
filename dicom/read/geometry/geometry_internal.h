/*
 * geometry_internal.h - planes and groups, from which stacks are made, and functions that the parts
 * of geometry*.c share; private to geometry*.c.
 *
 * In the order of use: geometry_series.c (checks one patient, one study and so on),
 * geometry_excluded.c (excluded frames), geometry_groups.c (orientations and keys),
 * geometry_scans.c (volumes that share few positions), geometry_order.c (the general rule, and the
 * newest of duplicates), geometry_names.c, geometry_siblings.c, geometry_pieces.c,
 * geometry_counts.c, geometry_times.c and geometry_whole.c (completeness), geometry_check.c (the
 * geometry check). geometry.c makes the stacks.
 */
#ifndef NOCTULE_DICOM_READ_GEOMETRY_GEOMETRY_INTERNAL_H
#define NOCTULE_DICOM_READ_GEOMETRY_GEOMETRY_INTERNAL_H

#include "dicom/read/geometry/geometry.h"

#include <stdbool.h>
#include <stdint.h>

/* Positions are decimal strings, mostly written to 0.01 mm or finer. Over three coordinates this
 * rounding changes a step between two of them by up to 0.0173 mm. Positions that differ by less
 * than this constant are one position, and no step is known more precisely. */
#define POSITION_FLOOR_MM 0.02

/* For the rounding of times of day in seconds. */
#define ORDER_EPSILON         1e-4

#define GEOMETRY_LACKING_SIZE 80

struct plane {
    const struct dicom_instance *instance;
    const struct dicom_frame *frame;
    int32_t instance_index, frame_index;
    enum code excluded;  /* reason for exclusion; CODE_NONE for an image */
    int32_t orientation; /* index in the series */
    int32_t place;       /* index of its position in its group */
    int32_t scan;        /* index of its value of a key of SCANS, or of its run in time */
    double position;     /* along the normal of its orientation; the index if it has no geometry */
    double order;        /* sort key of the general rule */
};

/* Planes that are not split so far: a range of the planes array, and the values that distinguish
 * it. */
struct group {
    struct plane *planes;
    int32_t count;
    enum code excluded; /* as its planes */
    char name[GEOMETRY_NAME_SIZE];
    char split_by[GEOMETRY_SPLIT_SIZE];
    bool varies;            /* its planes differ in a key of contrast or time */
    bool alone;             /* the only stack of its orientation */
    bool has_newest;        /* duplicates = "newest" would resolve its repeated positions */
    bool mixes_runs;        /* runs in time interleave, and are not a regular stack together */
    int32_t stacks_of_grid; /* number of stacks that share positions, with itself */
    int32_t lost_of_grid;   /* planes that these lack */
    /* Number of positions that stacks of its grid have and it lacks, and a plane of theirs at
     * the first. */
    int32_t lacking;
    const struct plane *lacks;
    int32_t grid;                 /* index of the largest stack that shares positions with this one, or its own */
    const struct plane *piece_of; /* a plane of a stack that completes this one to a regular stack, or NULL */
};

/* A derived frame in a series with originals, with its position along the normal of an
 * orientation. */
struct neighbour {
    int32_t orientation;
    double position;
    const struct plane *plane;
};

struct grouping {
    const struct geometry_limits *limits;
    struct dicom_instance *const *instances;
    int32_t instance_count;
    struct plane *planes; /* images first, then excluded frames */
    int32_t plane_count, image_count;
    double *scratch; /* temporary arrays: plane_count + 1 numbers, and as many marks */
    int32_t *marks;
    const struct dicom_frame **orientations; /* the first frame of each */
    int32_t orientation_count;
    struct group *groups;
    int32_t group_count, group_room;
    /* Values in the headers about the whole series, sorted (geometry_whole.c). */
    int32_t *numbers;   /* Instance Number of every instance */
    int32_t *announced; /* Images in Acquisition of every image that is a separate file */
    int32_t announced_count;
    /* Images in Acquisition and expected_instances of every excluded frame that is a separate
     * file. */
    int32_t *excluded_announced, *excluded_expected;
    int32_t excluded_count;
    const struct dicom_instance **parts; /* of concatenations, by UID and number */
    int32_t part_count;
    int32_t grid_count, location_count; /* of all stacks: grids, and positions in them */
    struct neighbour *neighbours;
    int32_t neighbour_count;
    /* Temporal positions (geometry_times.c). */
    const struct plane *times_of;   /* an image that announces the most */
    int32_t times, times_announced; /* number found, and number announced */
    bool times_named;               /* at least two identifiers */
    char times_lacking[GEOMETRY_LACKING_SIZE];
};

static inline double
geometry_dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Returns whether slices at this distance overlap by more than a quarter of their thickness.
 * Then they are of different volumes. */
static inline bool
geometry_slices_overlap(double step, const struct plane *plane)
{
    return step < 0.75 * plane->frame->slice_thickness;
}

/* Computes the unit normal of a plane: row direction x column direction. */
void geometry_normal(const double orientation[6], double normal[3]);

/* Sorts in ascending order. */
void geometry_sort_numbers(double *numbers, int32_t count);

/* Compare planes for qsort. The order does not depend on the order of the instances. */
int geometry_compare_identity(const void *left, const void *right);
int geometry_compare_position(const void *left, const void *right);

/* Returns whether all planes have a position along a normal. */
bool geometry_is_placed(const struct group *group);

/* Compares planes by `order`, for qsort. */
int geometry_compare_order(const void *left, const void *right);

/* Returns the seconds of "YYYYMMDDHHMMSS.F" or "HHMMSS.F", ascending in time and exact within a
 * day. Returns NAN if there are none. */
double geometry_seconds(const char *text);

/* Number of different positions of some planes, and of those with several planes. */
struct position_spread {
    int32_t positions, repeated;
};

/* Counts positions. Leaves them in ascending order in the scratch. */
struct position_spread geometry_find_spread(struct grouping *grouping, const struct plane *planes, int32_t count);
bool geometry_has_repeats(struct grouping *grouping, const struct plane *planes, int32_t count);

/* Returns the file's name, for messages. */
const char *geometry_plane_name(const struct plane *plane);

/* Checks for one series, patient, study, modality and frame of reference. Returns 0, or -EINVAL.
 * With `accept`, names and frames of reference may differ. */
int geometry_check_series(struct dicom_instance *const *instances, int32_t count, bool accept, struct error *error);

/* Returns whether a group is a frame of a 2-D image to process. Other functions treat it as excluded. */
static inline bool
geometry_is_flat_stack(const struct grouping *grouping, const struct group *group)
{
    return group->excluded == CODE_FLAT_IMAGE && grouping->limits->take_flat;
}

/* Moves excluded frames to the end of the planes, and makes a group of each kind. */
int geometry_exclude(struct grouping *grouping);

/* Fills the name and error of an excluded group. */
void geometry_report_excluded(const struct group *group, struct geometry_stack *stack);

/* Returns 0, -ENOMEM, or -E2BIG beyond LIMIT_STACKS groups. */
int geometry_add_group(struct grouping *grouping, const struct group *group);

/* Adds to the group's name and split_by: "b 800" from prefix "b " and value "800". */
void geometry_extend_name(struct group *group, const char *prefix, const char *value, const char *what);

/* Makes all names unique. The planes of every group must be sorted. */
void geometry_finish_names(struct grouping *grouping);

/* Returns the index of a frame's orientation, or -1. `hint` is the index to try first. */
int32_t geometry_find_orientation(const struct grouping *grouping, const struct dicom_frame *frame, int32_t hint);

/* Sorts the images and adds their groups: see "Stacks" in geometry.h. Returns 0, -ENOMEM or
 * -E2BIG. */
int geometry_make_groups(struct grouping *grouping);

/* Returns the attributes of the first key of keys.def in which two planes differ, or NULL. */
const char *geometry_difference(const struct plane *a, const struct plane *b);

/*
 * Return whether the scans of a group, consecutive planes of equal `scan`, are separate volumes.
 * geometry_has_main_scan: one has a plane at most positions, once each, and some position repeats.
 * geometry_are_scans: each is a regular stack, two interleave, and they share positions or cannot
 * be one stack of slices that only touch. The latter sets mixes_runs.
 */
bool geometry_has_main_scan(struct grouping *grouping, const struct group *group);
bool geometry_are_scans(struct grouping *grouping, struct group *group);

/* Returns the attributes in which two planes at one position differ, so that they are not
 * copies, or NULL. */
const char *geometry_copy_difference(const struct plane *a, const struct plane *b);

/* Adds a group that no key splits. Splits it by acquisition time if that separates scans. */
int geometry_add_scans(struct grouping *grouping, struct group *group);

/* Adds a group that no key splits. Splits it into volumes if positions repeat. */
int geometry_add_volumes(struct grouping *grouping, struct group *group);

/* Collects the values in the headers about the whole series. The planes of every group must be
 * sorted, and must stay in place. */
int geometry_gather_evidence(struct grouping *grouping);

/* Sets alone, stacks_of_grid, lost_of_grid, lacking, lacks and grid of every group, and the
 * numbers of grids and locations. */
int geometry_compare_siblings(struct grouping *grouping);

/* Sets parts. */
int geometry_sort_parts(struct grouping *grouping);

/* Sets piece_of of every group. geometry_compare_siblings must have set grid. */
void geometry_find_pieces(struct grouping *grouping);

/* Sets times and the members after it. The planes of every group must be sorted. */
int geometry_count_times(struct grouping *grouping);

/* Findings about one stack, in order of precedence. The first gives the code and the files. */
struct verdict {
    struct error *error;
    bool refused;
};

void geometry_refuse(struct verdict *verdict, enum code code, const struct plane *a, const struct plane *b,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Checks for VOLUMES_MIXED, if the stack has parts of several volumes, and for
 * INCOMPLETE_SERIES, unless allow_missing is set. */
void geometry_check_whole(struct verdict *verdict, const struct grouping *grouping, const struct group *group);

/* Returns true, with INCOMPLETE_SERIES, if temporal positions are missing. */
bool geometry_check_times(struct verdict *verdict, const struct grouping *grouping, const struct group *group);

/* Return true, with INCOMPLETE_SERIES, if parts of a concatenation or announced slice locations
 * are missing, or if announced counts contradict each other. */
bool geometry_check_parts(struct verdict *verdict, const struct grouping *grouping, const struct group *group);
bool geometry_check_locations(struct verdict *verdict, const struct grouping *grouping, const struct group *group);

/* Checks whether the group is a valid stack. Sets accepted, has_geometry and error. Planes must
 * be in ascending position. */
void geometry_check(struct grouping *grouping, const struct group *group, struct geometry_stack *stack);

#endif
