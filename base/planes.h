/* planes.h - where the slices of a stack lie in space. */
#ifndef NOCTULE_PLANES_H
#define NOCTULE_PLANES_H

#include "base/image.h"

/* Planes of one size and orientation, each with its own origin, so that a stack may be tilted and
 * unevenly spaced; ascending along the normal, row direction x column direction. */
struct image_planes {
    struct image_extent extent;
    double axes[6];        /* unit vectors along the columns' index and the rows', orthogonal */
    double spacing[2];     /* mm between columns, mm between rows */
    double thickness;      /* mm; stands for the distance of planes where there is one plane */
    const double *origins; /* of each plane x, y, z in mm of the centre of its pixel (0, 0) */
};

static inline void
image_planes_normal(const struct image_planes *planes, double normal[3])
{
    const double *a = planes->axes, *b = planes->axes + 3;

    normal[0] = a[1] * b[2] - a[2] * b[1];
    normal[1] = a[2] * b[0] - a[0] * b[2];
    normal[2] = a[0] * b[1] - a[1] * b[0];
}

/* mm from an origin to a point along an axis. */
static inline double
image_planes_along(const double point[3], const double origin[3], const double axis[3])
{
    return ((point[0] - origin[0]) * axis[0] + (point[1] - origin[1]) * axis[1]) +
           (point[2] - origin[2]) * axis[2];
}

#endif
