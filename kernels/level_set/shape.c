/* shape.c - see shape.h. */
#include "kernels/level_set/shape.h"

#include <math.h>

/* A line through the volume along one axis; the other two axes have added up to y_term, z_term. */
struct shape_line {
    const struct kernels_shape *shape;
    int axis;
    double others[2];
};

/* A difference of 0 counts as 0 whatever the radius, so that a radius of 0 keeps its plane. */
static double
term(const struct kernels_shape *shape, int axis, double index)
{
    double distance = index - shape->center[axis];
    double ratio = 0;

    switch (shape->kind) {
    case KERNELS_SPHERE:
        return distance * distance;
    case KERNELS_ELLIPSOID:
        if (distance != 0)
            ratio = distance / shape->radius[axis];
        return ratio * ratio;
    case KERNELS_BOX:
        return fabs(distance) <= shape->radius[axis] ? 0 : HUGE_VAL;
    }
    return HUGE_VAL;
}

static double
limit(const struct kernels_shape *shape)
{
    switch (shape->kind) {
    case KERNELS_SPHERE:
        return shape->radius[0] * shape->radius[0];
    case KERNELS_ELLIPSOID:
        return 1;
    case KERNELS_BOX:
        return 0;
    }
    return -1;
}

static bool
passes(const struct shape_line *line, int64_t index)
{
    double own = term(line->shape, line->axis, (double)index);

    return (own + line->others[0]) + line->others[1] <= limit(line->shape);
}

/* Half the length of the interval, as good as floating point gives it; may be NaN or infinite. */
static double
half_length(const struct shape_line *line)
{
    const struct kernels_shape *shape = line->shape;
    double rest = limit(shape) - line->others[0] - line->others[1];

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

static int64_t
clamp(double value, int64_t low, int64_t high)
{
    if (!(value > (double)low))
        return low;
    return value < (double)high ? (int64_t)value : high;
}

/*
 * The last index that passes on the way from `from`, which does, to `to`; step is the direction.
 * The guess is nearly always right; where it is not, bisection is.
 */
static int64_t
reach(const struct shape_line *line, int64_t from, int64_t to, int64_t step, double guess)
{
    int64_t inside = from, outside = to + step;
    int64_t probe = step > 0 ? clamp(guess, from, to) : clamp(guess, to, from);

    for (int tries = 0; inside + step != outside; tries++) {
        if (tries > 1)
            probe = inside + (outside - inside) / 2;
        if (passes(line, probe)) {
            inside = probe;
            probe = tries == 0 && probe + step != outside ? probe + step : probe;
        } else {
            outside = probe;
            probe = tries == 0 && probe - step != inside ? probe - step : probe;
        }
    }
    return inside;
}

static struct shape_interval
find_interval(const struct shape_line *line, int64_t size)
{
    double center = line->shape->center[line->axis];
    int64_t nearest = clamp(nearbyint(center), 0, size - 1);

    if (!passes(line, nearest))
        return (struct shape_interval){0, -1};
    double half = half_length(line);
    return (struct shape_interval){
        reach(line, nearest, 0, -1, ceil(center - half)),
        reach(line, nearest, size - 1, 1, floor(center + half)),
    };
}

struct shape_interval
shape_extent(const struct kernels_shape *shape, int axis, int64_t size)
{
    struct shape_line line = {.shape = shape, .axis = axis};

    return find_interval(&line, size);
}

struct shape_interval
shape_row(const struct kernels_shape *shape, int64_t y, int64_t z, int64_t columns)
{
    struct shape_line line = {.shape = shape,
                              .others = {term(shape, 1, (double)y), term(shape, 2, (double)z)}};

    return find_interval(&line, columns);
}
