/*
 * shape.h - the parametric initial curves as intervals of voxels.
 *
 * Every test of kernels.h is a sum of three terms, one an axis, that may not exceed a limit, and a
 * term never falls as the distance from the centre grows (rounding keeps order). So along any line
 * the voxels that pass are one interval, and its ends can be fixed by the test itself.
 */
#ifndef NOCTULE_SHAPE_H
#define NOCTULE_SHAPE_H

#include "kernels/level_set/level_set.h"

/* first .. last, both inclusive; empty when first > last. */
struct shape_interval {
    int64_t first;
    int64_t last;
};

/* The indices 0 .. size - 1 of an axis (0 x, 1 y, 2 z) whose own term passes: none outside can. */
struct shape_interval shape_extent(const struct kernels_shape *shape, int axis, int64_t size);

/* The columns of row y of slice z that lie in the shape, exactly. */
struct shape_interval shape_row(const struct kernels_shape *shape, int64_t y, int64_t z,
                                int64_t columns);

#endif
