/* ref_contours.c - see ref_contours.h. Whether an edge lies left of a centre is the sign of a product, no quotient. */
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

/* The voxels of one plane that a contour encloses. */
static bool *
ref_area(const struct image_planes *planes, const struct contour *contour, int64_t z)
{
    const struct image_extent *extent = &planes->extent;
    bool *area = calloc((size_t)(extent->rows * extent->columns), sizeof(*area));

    for (int64_t y = 0; y < extent->rows; y++)
        for (int64_t x = 0; x < extent->columns; x++)
            for (int64_t edge = 0; edge < contour->count; edge++)
                area[y * extent->columns + x] ^=
                    is_left(planes, contour, edge, (const int64_t[3]){x, y, z});
    return area;
}

/* Voxels of a, of b, and of both. */
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

/* Leaves one of equal areas, and replaces two that cross by their union, until none do. */
static int64_t
ref_reduce(bool **areas, int64_t areas_count, int64_t voxels)
{
    bool again = true;

    /* Copies first: a union may equal an area by chance. */
    for (int64_t i = 0; i < areas_count; i++)
        for (int64_t k = i + 1; k < areas_count; k++) {
            int64_t of[3];
            ref_compare(areas[i], areas[k], voxels, of);
            if (of[2] == of[0] && of[2] == of[1]) {
                free(areas[k]);
                areas[k--] = areas[--areas_count];
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
ref_contours_plane(const struct image_planes *planes, const struct contour *contours, int64_t count,
                   int64_t z, bool *mask)
{
    const int64_t voxels = planes->extent.rows * planes->extent.columns;
    bool **areas = calloc((size_t)count + 1, sizeof(*areas));
    int64_t of_plane = 0;

    memset(mask, 0, (size_t)voxels * sizeof(*mask));
    for (int64_t i = 0; i < count; i++)
        if (contours[i].count >= 3 && !contours[i].is_xor && nearest(planes, &contours[i]) == z)
            areas[of_plane++] = ref_area(planes, &contours[i], z);
    of_plane = ref_reduce(areas, of_plane, voxels);
    for (int64_t i = 0; i < count; i++)
        if (contours[i].count >= 3 && contours[i].is_xor && nearest(planes, &contours[i]) == z) {
            bool *area = ref_area(planes, &contours[i], z);
            for (int64_t v = 0; v < voxels; v++)
                mask[v] ^= area[v];
            free(area);
        }
    for (int64_t i = 0; i < of_plane; i++) {
        for (int64_t v = 0; v < voxels; v++)
            mask[v] ^= areas[i][v];
        free(areas[i]);
    }
    free(areas);
}
