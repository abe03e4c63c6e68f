/*
 * geometry_internal.h - planes on their way to stacks, and what the parts of geometry*.c share:
 * geometry_groups.c finds which planes belong together, geometry_gate.c judges them, geometry.c
 * makes the stacks. Private to geometry*.c.
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

struct plane {
    const struct dicom_instance *instance;
    const struct dicom_frame *frame;
    int32_t instance_index, frame_index;
    double position; /* along the normal of its orientation group; the index without geometry */
    int32_t orientation;
};

/* Planes that belong together so far: a range of the planes array and what set it apart. */
struct group {
    struct plane *planes;
    int32_t count;
    char name[128];
};

struct grouping {
    const struct geometry_limits *limits;
    struct plane *planes;
    int32_t plane_count;
    double *scratch; /* plane_count positions */
    struct group *groups;
    int32_t group_count, group_room;
};

static inline double
dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Unit normal of a plane: row direction x column direction. */
void geometry_normal(const double orientation[6], double normal[3]);

/* Ascending. */
void geometry_sort_numbers(double *numbers, int32_t count);

/* For qsort, of planes: the same order whatever order the instances come in. */
int geometry_compare_identity(const void *left, const void *right);

/* Whether all planes have a position along a normal. */
bool geometry_is_placed(const struct group *group);

/* Reorders the planes, and adds the groups that they make: see "Stacks" in geometry.h. 0 or
 * -ENOMEM. */
int geometry_make_groups(struct grouping *grouping);

/* Whether the group may be a stack, and else why not: accepted, has_geometry and error. Planes are
 * in ascending position. */
void geometry_judge(struct grouping *grouping, const struct group *group,
                    struct geometry_stack *stack);

#endif
