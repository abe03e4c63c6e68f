/* planes.h - positions of the slices of a stack in space. */
#ifndef NOCTULE_BASE_PLANES_H
#define NOCTULE_BASE_PLANES_H

#include "base/image.h"

/*
 * Planes of one size and orientation, each with its own origin: a stack may be tilted and unevenly spaced. Planes must
 * ascend along the normal, row direction x column direction.
 */
struct image_planes {
    struct image_extent extent;
    double axes[6];        /* orthogonal unit vectors of increasing column index and row index */
    double spacing[2];     /* mm between columns, mm between rows */
    double thickness;      /* mm; replaces the distance of planes in a stack of one plane */
    const double *origins; /* x, y, z in mm, LPS, of the centre of pixel (0, 0), per plane */
};

static inline void
image_planes_normal(const struct image_planes *planes, double normal[3])
{
    const double *a = planes->axes, *b = planes->axes + 3;

    normal[0] = a[1] * b[2] - a[2] * b[1];
    normal[1] = a[2] * b[0] - a[0] * b[2];
    normal[2] = a[0] * b[1] - a[1] * b[0];
}

/* Returns the distance in mm from an origin to a point along an axis. */
static inline double
image_planes_along(const double point[3], const double origin[3], const double axis[3])
{
    return ((point[0] - origin[0]) * axis[0] + (point[1] - origin[1]) * axis[1]) + (point[2] - origin[2]) * axis[2];
}

/* Returns the distance in mm from the first plane to a point, along the normal. */
static inline double
image_planes_height(const struct image_planes *planes, const double point[3])
{
    double normal[3];

    image_planes_normal(planes, normal);
    return image_planes_along(point, planes->origins, normal);
}

#endif
