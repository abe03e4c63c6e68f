/*
 * level_set_shape.h - the parametric initial curves as intervals of voxels.
 *
 * Every test of level_set.h is a sum of three terms, one per axis, with an upper limit. A term
 * never decreases as the distance from the centre grows (rounding keeps order). The voxels of any
 * line that pass are therefore one interval, whose ends the test itself determines.
 */
#ifndef NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_SHAPE_H
#define NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_SHAPE_H

#include "kernels/level_set/level_set.h"

/* first .. last, inclusive; empty if first > last. */
struct shape_interval {
    int64_t first;
    int64_t last;
};

/* Returns the indices 0 .. size - 1 of an axis (0 x, 1 y, 2 z) whose own term passes. Voxels with
 * other indices fail the test. */
struct shape_interval shape_extent(const struct kernels_shape *shape, int axis, int64_t size);

/* Returns the exact columns of row y of slice z in the shape. */
struct shape_interval shape_row(const struct kernels_shape *shape, int64_t y, int64_t z, int64_t columns);

#endif
