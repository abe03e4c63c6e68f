/*
 * geometry_internal.h - planes on their way to stacks, and what the parts of geometry*.c share.
 * In the order of use: geometry_series.c (one patient, one study, ...), geometry_aside.c (what is no
 * image), geometry_groups.c (orientations and keys), geometry_scans.c (volumes that share few positions), geometry_order.c (the general rule and the
 * newest of duplicates), geometry_names.c, geometry_siblings.c, geometry_pieces.c, geometry_counts.c, geometry_times.c and
 * geometry_whole.c (is anything missing), geometry_gate.c (the judge); geometry.c makes the stacks.
 * Private to geometry*.c.
 */
#ifndef NOCTULE_GEOMETRY_INTERNAL_H
#define NOCTULE_GEOMETRY_INTERNAL_H

#include "dicom/read/geometry/geometry.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Positions are decimal strings, most often written to 0.01 mm or finer; over three coordinates
 * that puts a step between two of them off by up to 0.0173 mm. What differs by less than this is
 * one position, and no step is known better.
 */
#define POSITION_FLOOR_MM 0.02

/* Against the rounding of times of day in seconds. */
#define ORDER_EPSILON         1e-4

#define GEOMETRY_LACKING_SIZE 80

struct plane {
    const struct dicom_instance *instance;
    const struct dicom_frame *frame;
    int32_t instance_index, frame_index;
    enum code set_aside; /* why it is no image of a stack; CODE_NONE: it is */
    int32_t orientation; /* its number in the series */
    int32_t place;       /* the number of its position in its group */
    int32_t scan;        /* the number of its value of a key of SCANS, or of its run in time */
    double position;     /* along the normal of its orientation; the index without geometry */
    double order;        /* what the general rule sorts by */
};

/* Planes that belong together so far: a range of the planes array and what set it apart. */
struct group {
    struct plane *planes;
    int32_t count;
    enum code set_aside; /* as its planes' */
    char name[GEOMETRY_NAME_SIZE];
    char split_by[GEOMETRY_SPLIT_SIZE];
    bool varies;     /* its planes differ in a key of contrast or time */
    bool alone;      /* the only stack of its orientation */
    bool has_newest; /* where positions repeat, duplicates = "newest" would make a volume */
    bool mixes_runs; /* runs in time reach into one another, and are no regular stack together */
    int32_t stacks_of_grid; /* that share positions, itself among them */
    int32_t lost_of_grid;   /* planes that they lack */
    /* Positions that stacks beside it have and it lacks, and a plane of theirs at the first. */
    int32_t lacking;
    const struct plane *lacks;
    int32_t grid; /* index of the largest stack that shares positions with this one, or its own */
    const struct plane
        *piece_of; /* of a stack that completes this one to a regular stack; NULL: none */
};

/* A frame that is derived, beside originals: its place along the normal of an orientation. */
struct beside {
    int32_t orientation;
    double position;
    const struct plane *plane;
};

struct grouping {
    const struct geometry_limits *limits;
    struct dicom_instance *const *instances;
    int32_t instance_count;
    struct plane *planes; /* images first, then what was set aside */
    int32_t plane_count, image_count;
    double *scratch; /* plane_count + 1 numbers, and as many marks, for whoever runs */
    int32_t *marks;
    const struct dicom_frame **orientations; /* the first frame of each */
    int32_t orientation_count;
    struct group *groups;
    int32_t group_count, group_room;
    /* What the headers say of the whole series, sorted (geometry_whole.c). */
    int32_t *numbers;   /* Instance Number of every instance */
    int32_t *announced; /* Images in Acquisition of every image that is a file */
    int32_t announced_count;
    /* Images in Acquisition and expected_instances of every such file that was set aside. */
    int32_t *aside_announced, *aside_expected;
    int32_t aside_count;
    const struct dicom_instance **parts; /* of concatenations, by UID and number */
    int32_t part_count;
    int32_t grid_count, location_count; /* of all stacks: grids, and positions in them */
    struct beside *beside;
    int32_t beside_count;
    /* Temporal positions (geometry_times.c). */
    const struct plane *times_of;   /* an image that announces the most */
    int32_t times, times_announced; /* how many there are, and are announced */
    bool times_named;               /* two or more, by their identifiers */
    char times_lacking[GEOMETRY_LACKING_SIZE];
};

static inline double
dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Returns whether slices this far apart overlap by more than a quarter of their thickness: they are of different volumes. */
static inline bool
geometry_slices_overlap(double step, const struct plane *plane)
{
    return step < 0.75 * plane->frame->slice_thickness;
}

/* Unit normal of a plane: row direction x column direction. */
void geometry_normal(const double orientation[6], double normal[3]);

/* Ascending. */
void geometry_sort_numbers(double *numbers, int32_t count);

/* For qsort, of planes: the same order whatever order the instances come in. */
int geometry_compare_identity(const void *left, const void *right);
int geometry_compare_position(const void *left, const void *right);

/* Whether all planes have a position along a normal. */
bool geometry_is_placed(const struct group *group);

/* For qsort, of planes: by order. */
int geometry_compare_order(const void *left, const void *right);

/* Returns the seconds of "YYYYMMDDHHMMSS.F" or "HHMMSS.F", in ascending order, exact within a day; NAN: there are none. */
double geometry_seconds(const char *text);

/* The different positions of some planes, and how many of them have several planes. */
struct position_spread {
    int32_t positions, repeated;
};

/* Leaves the positions in ascending order in the scratch. */
struct position_spread geometry_find_spread(struct grouping *grouping, const struct plane *planes,
                                            int32_t count);
bool geometry_has_repeats(struct grouping *grouping, const struct plane *planes, int32_t count);

/* For messages: the file's name. */
const char *geometry_plane_name(const struct plane *plane);

/* Whether all are of one series, patient, study, modality and frame of reference: 0, or -EINVAL. With
 * `accept`, names and frames of reference may differ. */
int geometry_check_series(struct dicom_instance *const *instances, int32_t count, bool accept,
                          struct error *error);

/* Moves what is no image to the end of the planes and makes a group of each kind. */
int geometry_set_aside(struct grouping *grouping);

/* How a group that was set aside is told. */
void geometry_tell_aside(const struct group *group, struct geometry_stack *stack);

/* -ENOMEM, or -E2BIG when it would be more groups than LIMIT_STACKS. */
int geometry_add_group(struct grouping *grouping, const struct group *group);

/* Adds to the group's name and to what it was split by: "b 800" of prefix "b " and value "800". */
void geometry_extend_name(struct group *group, const char *prefix, const char *value,
                          const char *what);

/* Makes all names different. The planes of every group are in their order. */
void geometry_finish_names(struct grouping *grouping);

/* The number of a frame's orientation, or -1; `hint` is where to look first. */
int32_t geometry_find_orientation(const struct grouping *grouping, const struct dicom_frame *frame,
                                  int32_t hint);

/* Reorders the images and adds the groups that they make: see "Stacks" in geometry.h. 0, -ENOMEM or
 * -E2BIG. */
int geometry_make_groups(struct grouping *grouping);

/* Returns the attributes of the first key of keys.def in which two planes differ; NULL: none. */
const char *geometry_difference(const struct plane *a, const struct plane *b);

/*
 * Return whether the scans of a group, planes of equal `scan` that follow one another, are volumes of their own: one has a plane
 * at most positions, once each, and some position repeats; or each is a regular stack, two reach into one another, and they
 * share positions or cannot be one stack of slices that only touch. The latter fills mixes_runs.
 */
bool geometry_has_main_scan(struct grouping *grouping, const struct group *group);
bool geometry_are_scans(struct grouping *grouping, struct group *group);

/* Returns the attributes in which two planes at one position differ, so that neither is a copy of the other; NULL: none. */
const char *geometry_copy_difference(const struct plane *a, const struct plane *b);

/* Adds a group that no key splits, by acquisition time where that names scans. */
int geometry_add_scans(struct grouping *grouping, struct group *group);

/* Adds a group that no key splits, by volumes where positions repeat. */
int geometry_add_volumes(struct grouping *grouping, struct group *group);

/* Collects what the headers say of the whole series. The planes of every group are in their order,
 * and stay. */
int geometry_gather_evidence(struct grouping *grouping);

/* Fills alone, stacks_of_grid, lost_of_grid, lacking, lacks and grid of every group, and the counts of grids and locations. */
int geometry_compare_siblings(struct grouping *grouping);

/* Fills parts. */
int geometry_sort_parts(struct grouping *grouping);

/* Fills piece_of of every group. geometry_compare_siblings must have filled grid. */
void geometry_find_pieces(struct grouping *grouping);

/* Fills times and what stands with it. The planes of every group are in their order. */
int geometry_count_times(struct grouping *grouping);

/* Findings about one stack, in order of precedence; the first gives the code and the files. */
struct verdict {
    struct error *error;
    bool refused;
};

void geometry_refuse(struct verdict *verdict, enum code code, const struct plane *a,
                     const struct plane *b, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* VOLUMES_MIXED where evidence says that the stack is of several volumes; INCOMPLETE_SERIES, unless allow_missing, where it says
 * that the stack is not whole. */
void geometry_check_whole(struct verdict *verdict, const struct grouping *grouping,
                          const struct group *group);

/* INCOMPLETE_SERIES, and true, where temporal positions are missing. */
bool geometry_check_times(struct verdict *verdict, const struct grouping *grouping,
                          const struct group *group);

/* INCOMPLETE_SERIES, and true, where parts of a concatenation or announced slice locations are missing, or the announced
 * counts contradict each other. */
bool geometry_check_parts(struct verdict *verdict, const struct grouping *grouping,
                          const struct group *group);
bool geometry_check_locations(struct verdict *verdict, const struct grouping *grouping,
                              const struct group *group);

/* Whether the group may be a stack, and else why not: accepted, has_geometry and error. Planes are
 * in ascending position. */
void geometry_judge(struct grouping *grouping, const struct group *group,
                    struct geometry_stack *stack);

#endif
