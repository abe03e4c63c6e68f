/*
 * level_set_shape.cuh - shape.c on the device: the same tests in the same order of operations, each
 * rounded on its own.
 */
#ifndef NOCTULE_LEVEL_SET_SHAPE_CUH
#define NOCTULE_LEVEL_SET_SHAPE_CUH

#include "kernels/level_set/level_set.h"
extern "C" {
#include "kernels/level_set/shape.h"
}

/* A row: its terms along y and z. */
struct device_row {
    const struct kernels_shape *shape;
    double y_term, z_term;
};

/* See shape.c; a division of IEEE 754 either way. */
__device__ static double
device_shape_term(const struct kernels_shape &shape, int axis, double index)
{
    double distance = __dsub_rn(index, shape.center[axis]), ratio = 0;

    switch (shape.kind) {
    case KERNELS_SPHERE:
        return __dmul_rn(distance, distance);
    case KERNELS_ELLIPSOID:
        if (distance != 0)
            ratio = __ddiv_rn(distance, shape.radius[axis]);
        return __dmul_rn(ratio, ratio);
    case KERNELS_BOX:
        return fabs(distance) <= shape.radius[axis] ? 0 : HUGE_VAL;
    }
    return HUGE_VAL;
}

__device__ static double
device_shape_limit(const struct kernels_shape &shape)
{
    switch (shape.kind) {
    case KERNELS_SPHERE:
        return __dmul_rn(shape.radius[0], shape.radius[0]);
    case KERNELS_ELLIPSOID:
        return 1;
    case KERNELS_BOX:
        return 0;
    }
    return -1;
}

__device__ static bool
device_shape_passes(const struct device_row &row, int64_t x)
{
    double own = device_shape_term(*row.shape, 0, (double)x);

    return __dadd_rn(__dadd_rn(own, row.y_term), row.z_term) <= device_shape_limit(*row.shape);
}

/* As good as it gets; may be NaN or infinite. */
__device__ static double
device_shape_half(const struct device_row &row)
{
    double rest = device_shape_limit(*row.shape) - row.y_term - row.z_term;

    switch (row.shape->kind) {
    case KERNELS_SPHERE:
        return sqrt(rest);
    case KERNELS_ELLIPSOID:
        return row.shape->radius[0] * sqrt(rest);
    case KERNELS_BOX:
        return row.shape->radius[0];
    }
    return 0;
}

__device__ static int64_t
device_shape_clamp(double value, int64_t low, int64_t high)
{
    if (!(value > (double)low))
        return low;
    return value < (double)high ? (int64_t)value : high;
}

/* The last column that passes on the way from `from`, which does, to `to`. */
__device__ static int64_t
device_shape_reach(const struct device_row &row, int64_t from, int64_t to, int64_t step,
                   double guess)
{
    int64_t inside = from, outside = to + step;
    int64_t probe =
        step > 0 ? device_shape_clamp(guess, from, to) : device_shape_clamp(guess, to, from);

    for (int tries = 0; inside + step != outside; tries++) {
        if (tries > 1)
            probe = inside + (outside - inside) / 2;
        if (device_shape_passes(row, probe)) {
            inside = probe;
            probe = tries == 0 && probe + step != outside ? probe + step : probe;
        } else {
            outside = probe;
            probe = tries == 0 && probe - step != inside ? probe - step : probe;
        }
    }
    return inside;
}

/* shape_row. */
__device__ static struct shape_interval
device_shape_row(const struct kernels_shape &shape, int64_t y, int64_t z, int64_t columns)
{
    struct device_row row = {&shape, device_shape_term(shape, 1, (double)y),
                             device_shape_term(shape, 2, (double)z)};
    double center = shape.center[0], half;
    int64_t nearest = device_shape_clamp(rint(center), 0, columns - 1);

    if (!device_shape_passes(row, nearest))
        return {0, -1};
    half = device_shape_half(row);
    return {device_shape_reach(row, nearest, 0, -1, ceil(center - half)),
            device_shape_reach(row, nearest, columns - 1, 1, floor(center + half))};
}

#endif
