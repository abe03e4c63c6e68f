/* shape_line.h - a parametric initial curve along a line, identical on the host and in kernels:
 * products must not be fused with sums. */
#ifndef NOCTULE_KERNELS_LEVEL_SET_SHAPE_LINE_H
#define NOCTULE_KERNELS_LEVEL_SET_SHAPE_LINE_H

#include "kernels/level_set/level_set_shape.h"

#include <math.h>

#ifdef __CUDACC__
#define SHAPE_INLINE        static __device__
#define SHAPE_PRODUCT(a, b) __dmul_rn(a, b)
#else
#define SHAPE_INLINE        static inline
#define SHAPE_PRODUCT(a, b) ((a) * (b)) /* compiled with -ffp-contract=off */
#endif

/* A line through the volume along one axis. `others` has the terms of the other two axes. */
struct shape_line {
    const struct kernels_shape *shape;
    int axis;
    double others[2];
};

/* A difference of 0 counts as 0 for every radius, so that a radius of 0 keeps its plane. */
SHAPE_INLINE double
shape_term(const struct kernels_shape *shape, int axis, double index)
{
    double distance = index - shape->center[axis];
    double ratio = 0;

    switch (shape->kind) {
    case KERNELS_SPHERE:
        return SHAPE_PRODUCT(distance, distance);
    case KERNELS_ELLIPSOID:
        if (distance != 0)
            ratio = distance / shape->radius[axis];
        return SHAPE_PRODUCT(ratio, ratio);
    case KERNELS_BOX:
        return fabs(distance) <= shape->radius[axis] ? 0 : HUGE_VAL;
    }
    return HUGE_VAL;
}

SHAPE_INLINE double
shape_limit(const struct kernels_shape *shape)
{
    switch (shape->kind) {
    case KERNELS_SPHERE:
        return SHAPE_PRODUCT(shape->radius[0], shape->radius[0]);
    case KERNELS_ELLIPSOID:
        return 1;
    case KERNELS_BOX:
        return 0;
    }
    return -1;
}

SHAPE_INLINE bool
shape_passes(const struct shape_line *line, int64_t index)
{
    double own = shape_term(line->shape, line->axis, (double)index);

    return (own + line->others[0]) + line->others[1] <= shape_limit(line->shape);
}

/* Returns an estimate of half the interval's length, which may be NaN or infinite. */
SHAPE_INLINE double
shape_half(const struct shape_line *line)
{
    const struct kernels_shape *shape = line->shape;
    double rest = shape_limit(shape) - line->others[0] - line->others[1];

    switch (shape->kind) {
    case KERNELS_SPHERE:
        return sqrt(rest);
    case KERNELS_ELLIPSOID:
        return shape->radius[line->axis] * sqrt(rest);
    case KERNELS_BOX:
        return shape->radius[line->axis];
    }
    return 0;
}

SHAPE_INLINE int64_t
shape_clamp(double value, int64_t low, int64_t high)
{
    if (!(value > (double)low))
        return low;
    return value < (double)high ? (int64_t)value : high;
}

/* Returns the last index that passes from `from`, which must pass, to `to`, in direction `step`.
 * The guess is almost always right; otherwise bisects. */
SHAPE_INLINE int64_t
shape_reach(const struct shape_line *line, int64_t from, int64_t to, int64_t step, double guess)
{
    int64_t inside = from, outside = to + step;
    int64_t probe = step > 0 ? shape_clamp(guess, from, to) : shape_clamp(guess, to, from);

    for (int tries = 0; inside + step != outside; tries++) {
        if (tries > 1)
            probe = inside + (outside - inside) / 2;
        if (shape_passes(line, probe)) {
            inside = probe;
            probe = tries == 0 && probe + step != outside ? probe + step : probe;
        } else {
            outside = probe;
            probe = tries == 0 && probe - step != inside ? probe - step : probe;
        }
    }
    return inside;
}

SHAPE_INLINE struct shape_interval
shape_find(const struct shape_line *line, int64_t size)
{
    struct shape_interval interval = {0, -1};
    double center = line->shape->center[line->axis], half;
    int64_t nearest = shape_clamp(nearbyint(center), 0, size - 1);

    if (!shape_passes(line, nearest))
        return interval;
    half = shape_half(line);
    interval.first = shape_reach(line, nearest, 0, -1, ceil(center - half));
    interval.last = shape_reach(line, nearest, size - 1, 1, floor(center + half));
    return interval;
}

/* Implements shape_row for host and kernels. */
SHAPE_INLINE struct shape_interval
shape_find_row(const struct kernels_shape *shape, int64_t y, int64_t z, int64_t columns)
{
    const struct shape_line line = {shape, 0, {shape_term(shape, 1, (double)y), shape_term(shape, 2, (double)z)}};

    return shape_find(&line, columns);
}

#endif
