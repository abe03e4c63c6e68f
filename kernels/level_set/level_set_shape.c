/* level_set_shape.c - see level_set_shape.h. */
#include "kernels/level_set/shape_line.h"

struct shape_interval
shape_extent(const struct kernels_shape *shape, int axis, int64_t size)
{
    struct shape_line line = {.shape = shape, .axis = axis};

    return shape_find(&line, size);
}

struct shape_interval
shape_row(const struct kernels_shape *shape, int64_t y, int64_t z, int64_t columns)
{
    return shape_find_row(shape, y, z, columns);
}
