/*
 * ref_contours.c - see ref_contours.h. Decides whether an edge is left of a centre by the sign of a product, without
 * a quotient.
 */
#include "tests/kernels/ref_contours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 ref_product;

static double
dot(const double a[3], const double b[3], const double axis[3])
{
    return ((a[0] - b[0]) * axis[0] + (a[1] - b[1]) * axis[1]) + (a[2] - b[2]) * axis[2];
}

/* Returns a place in units of 2^-32 pixels. */
static int64_t
place(const struct image_planes *planes, int64_t plane, const double point[3], int axis)
{
    const double pixels = dot(point, planes->origins + 3 * plane, planes->axes + 3 * axis) / planes->spacing[axis];
    return (int64_t)rint(ldexp(pixels, 32));
}

struct ref_planes {
    const struct image_planes *planes;
    int64_t z;
    bool centres;
};

/* Finds a point of a contour. If `centres` is set, a point near the centre of a voxel moves there. */
static void
ref_point(const struct ref_planes *on, const struct contour *contour, int64_t number, ref_product at[2])
{
    const double *point = contour->points + 3 * (number % contour->count);
    const double near = 0.05 * ldexp(1, 32);
    int64_t centre[2];
    bool is_near = on->centres;

    for (int axis = 0; axis < 2; axis++) {
        at[axis] = place(on->planes, on->z, point, axis);
        centre[axis] = (int64_t)floor(ldexp((double)at[axis], -32) + 0.5);
        is_near &= fabs((double)(at[axis] - ((ref_product)centre[axis] << 32))) <= near;
    }
    for (int axis = 0; axis < 2 && is_near; axis++)
        at[axis] = (ref_product)centre[axis] << 32;
}

static bool
is_left(const struct ref_planes *on, const struct contour *contour, int64_t edge, int64_t column, int64_t row)
{
    const ref_product x = (ref_product)column << 32, y = (ref_product)row << 32;
    ref_product a[2], b[2];

    ref_point(on, contour, edge, a);
    ref_point(on, contour, edge + 1, b);
    if ((a[1] <= y) == (b[1] <= y))
        return false;
    /* The edge crosses the row if (b - a) is positive after both are swapped in the same way. */
    const ref_product side = (x - a[0]) * (b[1] - a[1]) - (y - a[1]) * (b[0] - a[0]);
    return b[1] > a[1] ? side >= 0 : side <= 0;
}

static bool
is_between(ref_product value, ref_product a, ref_product b)
{
    return (a <= value && value <= b) || (b <= value && value <= a);
}

static bool
is_on(const struct ref_planes *on, const struct contour *contour, int64_t edge, int64_t column, int64_t row)
{
    const ref_product x = (ref_product)column << 32, y = (ref_product)row << 32;
    ref_product a[2], b[2];

    ref_point(on, contour, edge, a);
    ref_point(on, contour, edge + 1, b);
    return is_between(x, a[0], b[0]) && is_between(y, a[1], b[1]) &&
           (x - a[0]) * (b[1] - a[1]) == (y - a[1]) * (b[0] - a[0]);
}

/* Returns the sign of the area from the trapezoids below the edges; 0 if directions do not count. */
static int
ref_direction(const struct ref_planes *on, const struct contour *contour)
{
    ref_product sum = 0, a[2], b[2];

    for (int64_t edge = 0; edge < contour->count && on->centres; edge++) {
        ref_point(on, contour, edge, a);
        ref_point(on, contour, edge + 1, b);
        sum += (b[0] - a[0]) * (b[1] + a[1]);
    }
    return (sum > 0) - (sum < 0);
}

static int64_t
nearest(const struct image_planes *planes, const struct contour *contour)
{
    const double *a = planes->axes, *b = planes->axes + 3;
    const double normal[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    int64_t best = 0;

    for (int64_t z = 1; z < planes->extent.slices; z++)
        if (fabs(dot(contour->points, planes->origins + 3 * z, normal)) <
            fabs(dot(contour->points, planes->origins + 3 * best, normal)))
            best = z;
    return best;
}

/* Returns the voxels of one plane inside a contour. */
static bool *
ref_area(const struct ref_planes *on, const struct contour *contour)
{
    const struct image_extent *extent = &on->planes->extent;
    bool *area = calloc((size_t)(extent->rows * extent->columns), sizeof(*area));

    for (int64_t y = 0; y < extent->rows; y++)
        for (int64_t x = 0; x < extent->columns; x++)
            for (int64_t edge = 0; edge < contour->count; edge++)
                area[y * extent->columns + x] ^= is_left(on, contour, edge, x, y);
    return area;
}

/* Adds the voxels of one plane whose centres lie on a contour. */
static void
ref_edges(const struct ref_planes *on, const struct contour *contour, bool *mask)
{
    const struct image_extent *extent = &on->planes->extent;

    for (int64_t y = 0; y < extent->rows; y++)
        for (int64_t x = 0; x < extent->columns; x++)
            for (int64_t edge = 0; edge < contour->count; edge++)
                mask[y * extent->columns + x] |= is_on(on, contour, edge, x, y);
}

/* Counts the voxels of a, of b, and of both. */
static void
ref_compare(const bool *a, const bool *b, int64_t count, int64_t of[3])
{
    of[0] = of[1] = of[2] = 0;
    for (int64_t i = 0; i < count; i++) {
        of[0] += a[i];
        of[1] += b[i];
        of[2] += a[i] && b[i];
    }
}

/* Removes duplicates of areas and replaces crossing areas by their union, until there are no more of either. */
static int64_t
ref_reduce(bool **areas, int *directions, int64_t areas_count, int64_t voxels)
{
    bool again = true;

    /* Remove copies first, because a union may equal another area. */
    for (int64_t i = 0; i < areas_count; i++)
        for (int64_t k = i + 1; k < areas_count; k++) {
            int64_t of[3];
            ref_compare(areas[i], areas[k], voxels, of);
            if (of[2] == of[0] && of[2] == of[1] && directions[i] == directions[k]) {
                free(areas[k]);
                directions[k] = directions[--areas_count];
                areas[k--] = areas[areas_count];
            }
        }
    int64_t *whole = calloc((size_t)areas_count + 1, sizeof(*whole));
    for (int64_t i = 0; i < areas_count; i++)
        whole[i] = i;
    while (again) {
        again = false;
        for (int64_t i = 0; i < areas_count; i++)
            for (int64_t k = 0; k < areas_count; k++) {
                int64_t of[3];
                ref_compare(areas[i], areas[k], voxels, of);
                if (of[2] > 0 && of[2] < of[0] && of[2] < of[1] && whole[k] > whole[i]) {
                    whole[k] = whole[i];
                    again = true;
                }
            }
    }
    for (int64_t i = 0; i < areas_count; i++)
        for (int64_t v = 0; v < voxels && whole[i] < i; v++)
            areas[whole[i]][v] |= areas[i][v];
    int64_t kept = 0;
    for (int64_t i = 0; i < areas_count; i++)
        if (whole[i] == i)
            areas[kept++] = areas[i];
        else
            free(areas[i]);
    free(whole);
    return kept;
}

void
ref_contours_plane(const struct image_planes *planes, const struct contour *contours, int64_t count, int64_t z,
                   bool centres, bool *mask)
{
    const struct ref_planes on = {planes, z, centres};
    const int64_t fewest = centres ? 1 : 3;
    const int64_t voxels = planes->extent.rows * planes->extent.columns;
    bool **areas = calloc((size_t)count + 1, sizeof(*areas));
    int *directions = calloc((size_t)count + 1, sizeof(*directions));
    int64_t of_plane = 0;

    memset(mask, 0, (size_t)voxels * sizeof(*mask));
    for (int64_t i = 0; i < count; i++)
        if (contours[i].count >= fewest && !contours[i].is_xor && nearest(planes, &contours[i]) == z) {
            directions[of_plane] = ref_direction(&on, &contours[i]);
            areas[of_plane++] = ref_area(&on, &contours[i]);
        }
    of_plane = ref_reduce(areas, directions, of_plane, voxels);
    for (int64_t i = 0; i < count; i++)
        if (contours[i].count >= fewest && contours[i].is_xor && nearest(planes, &contours[i]) == z) {
            bool *area = ref_area(&on, &contours[i]);
            for (int64_t v = 0; v < voxels; v++)
                mask[v] ^= area[v];
            free(area);
        }
    for (int64_t i = 0; i < of_plane; i++) {
        for (int64_t v = 0; v < voxels; v++)
            mask[v] ^= areas[i][v];
        free(areas[i]);
    }
    for (int64_t i = 0; i < count && centres; i++)
        if (contours[i].count > 0 && nearest(planes, &contours[i]) == z)
            ref_edges(&on, &contours[i], mask);
    free(directions);
    free(areas);
}
