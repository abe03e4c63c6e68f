/* ref_contours.c - see ref_contours.h. Whether an edge lies left of a centre is the sign of a product, no quotient. */
#include "tests/kernels/ref_contours.h"

#include <math.h>

__extension__ typedef __int128 ref_product;

static double
dot(const double a[3], const double b[3], const double axis[3])
{
    return ((a[0] - b[0]) * axis[0] + (a[1] - b[1]) * axis[1]) + (a[2] - b[2]) * axis[2];
}

/* In units of 2^-32 pixels. */
static int64_t
place(const struct image_planes *planes, int64_t plane, const double point[3], int axis)
{
    const double pixels =
        dot(point, planes->origins + 3 * plane, planes->axes + 3 * axis) / planes->spacing[axis];
    return (int64_t)rint(ldexp(pixels, 32));
}

static bool
is_left(const struct image_planes *planes, const struct contour *contour, int64_t edge,
        const int64_t voxel[3])
{
    const double *a = contour->points + 3 * edge;
    const double *b = contour->points + 3 * ((edge + 1) % contour->count);
    const ref_product x = (ref_product)voxel[0] << 32, y = (ref_product)voxel[1] << 32;
    ref_product ax = place(planes, voxel[2], a, 0), ay = place(planes, voxel[2], a, 1);
    ref_product bx = place(planes, voxel[2], b, 0), by = place(planes, voxel[2], b, 1);

    if ((ay <= y) == (by <= y))
        return false;
    /* The edge crosses the row where (by - ay) is positive once both are swapped alike. */
    const ref_product side = (x - ax) * (by - ay) - (y - ay) * (bx - ax);
    return by > ay ? side >= 0 : side <= 0;
}

static int64_t
nearest(const struct image_planes *planes, const struct contour *contour)
{
    const double *a = planes->axes, *b = planes->axes + 3;
    const double normal[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                              a[0] * b[1] - a[1] * b[0]};
    int64_t best = 0;

    for (int64_t z = 1; z < planes->extent.slices; z++)
        if (fabs(dot(contour->points, planes->origins + 3 * z, normal)) <
            fabs(dot(contour->points, planes->origins + 3 * best, normal)))
            best = z;
    return best;
}

bool
ref_contours_has(const struct image_planes *planes, const struct contour *contours, int64_t count,
                 const int64_t voxel[3])
{
    bool inside = false;

    for (int64_t i = 0; i < count; i++) {
        if (contours[i].count < 3 || nearest(planes, &contours[i]) != voxel[2])
            continue;
        for (int64_t edge = 0; edge < contours[i].count; edge++)
            inside ^= is_left(planes, &contours[i], edge, voxel);
    }
    return inside;
}
