/* peaks.c - the balls, and the argument checks of peaks.h, for all backends. */
#include "kernels/peaks/peaks.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Returns the number of voxels of this size within the radius on one side of a position at squared
 * distance `away` from the centre; -1: not even that position. */
static int64_t
peaks_reach(double spacing, double away)
{
    const double left = PEAKS_RADIUS_MM * PEAKS_RADIUS_MM - away;
    int64_t reach;

    if (left < 0)
        return -1;
    reach = (int64_t)(sqrt(left) / spacing);
    while ((double)reach * spacing * ((double)reach * spacing) > left)
        reach--;
    while ((double)(reach + 1) * spacing * ((double)(reach + 1) * spacing) <= left)
        reach++;
    return reach;
}

bool
peaks_too_fine(const double spacing[3])
{
    double sides[3];

    for (int axis = 0; axis < 3; axis++)
        sides[axis] = 2 * floor(PEAKS_RADIUS_MM / spacing[axis]) + 1;
    return !(sides[1] * sides[2] <= PEAKS_MAX_ROWS && sides[0] * sides[1] * sides[2] <= PEAKS_MAX_VOXELS);
}

static int
peaks_make_ball(const double spacing[3], struct peaks_ball *ball)
{
    *ball = (struct peaks_ball){.rows = NULL};
    for (int axis = 0; axis < 3; axis++)
        ball->reach[axis] = peaks_reach(spacing[axis], 0);
    ball->rows = malloc((size_t)((2 * ball->reach[1] + 1) * (2 * ball->reach[2] + 1)) * sizeof(*ball->rows));
    if (!ball->rows)
        return -ENOMEM;
    for (int64_t z = -ball->reach[2]; z <= ball->reach[2]; z++)
        for (int64_t y = -ball->reach[1]; y <= ball->reach[1]; y++) {
            const double across = (double)y * spacing[1], deep = (double)z * spacing[2];
            const int64_t reach = peaks_reach(spacing[0], across * across + deep * deep);

            if (reach >= 0)
                ball->rows[ball->row_count++] = (struct peaks_row){(int32_t)y, (int32_t)z, (int32_t)reach};
        }
    return 0;
}

int
peaks_run(struct kernels_lane *lane, const struct peaks *peaks, struct peaks_found *found, struct error *error)
{
    struct peaks_ball ball = {.rows = NULL};
    const struct peaks_request request = {peaks, &ball, found};
    int rc = kernels_op_check(lane, KERNELS_PEAKS, error);

    *found = (struct peaks_found){.local = -INFINITY, .global = -INFINITY};
    if (rc)
        return rc;
    if (!peaks->rescales || !peaks->paddings ||
        (peaks->table_count != 1 && peaks->table_count != (size_t)lane->extent.slices))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "there are %zu rescales; it takes 1 or one for each of %lld slices",
                         peaks->rescales ? peaks->table_count : 0, (long long)lane->extent.slices);
    for (int axis = 0; axis < 3; axis++)
        if (!(peaks->spacing[axis] > 0))
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "voxels of %g mm are none", peaks->spacing[axis]);
    if (peaks_too_fine(peaks->spacing))
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE, "voxels of %g x %g x %g mm are too many in 1 cm3",
                         peaks->spacing[0], peaks->spacing[1], peaks->spacing[2]);
    rc = peaks_make_ball(peaks->spacing, &ball) ? kernels_no_memory(lane, error)
                                                : kernels_op_run(lane, KERNELS_PEAKS, &request, error);
    free(ball.rows);
    return rc;
}

/* ---- real-world values ---- */

enum { REAL_BITS = 39 }; /* a ball has fewer than 2^24 voxels */

/* Values before each voxel of a row, and one more: their sum and their number. */
struct peaks_before {
    int64_t sum, voxels;
};

/* Fills a row, whose values are multiples of 1 / scale. */
static void
peaks_sum_reals(const double *reals, int64_t columns, double scale, struct peaks_before *before)
{
    before[0] = (struct peaks_before){0, 0};
    for (int64_t x = 0; x < columns; x++) {
        before[x + 1] = before[x];
        if (isnan(reals[x]))
            continue;
        before[x + 1].sum += (int64_t)floor(reals[x] * scale + 0.5);
        before[x + 1].voxels++;
    }
}

/* Returns the mean of the ball around a voxel. */
static double
peaks_mean_of_reals(const struct peaks_ball *ball, const struct image_extent *extent, const struct peaks_before *rows,
                    const int64_t at[3], double scale)
{
    struct peaks_before all = {0, 0};

    for (size_t r = 0; r < ball->row_count; r++) {
        const struct peaks_row *row = &ball->rows[r];
        const int64_t y = at[1] + row->y, z = at[2] + row->z;

        if (y < 0 || y >= extent->rows || z < 0 || z >= extent->slices)
            continue;
        const struct peaks_before *const of = rows + (z * extent->rows + y) * (extent->columns + 1);
        const int64_t first = at[0] > row->reach ? at[0] - row->reach : 0;
        const int64_t end = at[0] + row->reach + 1 < extent->columns ? at[0] + row->reach + 1 : extent->columns;

        all.sum += of[end].sum - of[first].sum;
        all.voxels += of[end].voxels - of[first].voxels;
    }
    return (double)all.sum / (double)all.voxels / scale;
}

int
peaks_of_reals(const struct peaks *peaks, const double *reals, const struct image_extent *extent,
               struct peaks_found *found)
{
    const int64_t rows = extent->rows * extent->slices, columns = extent->columns;
    struct peaks_ball ball;
    double largest = 0;
    int exponent;

    *found = (struct peaks_found){.local = -INFINITY, .global = -INFINITY};
    for (int64_t i = 0; i < rows * columns; i++)
        largest = fabs(reals[i]) > largest ? fabs(reals[i]) : largest;
    frexp(largest, &exponent);
    const double scale = ldexp(1, REAL_BITS - exponent);
    struct peaks_before *before = calloc((size_t)(rows * (columns + 1)), sizeof(*before));

    if (!before)
        return -ENOMEM;
    if (peaks_make_ball(peaks->spacing, &ball)) {
        free(before);
        return -ENOMEM;
    }
    for (int64_t y = 0; y < rows; y++)
        peaks_sum_reals(reals + y * columns, columns, scale, before + y * (columns + 1));
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) {
            const double value = reals[y * columns + x];

            if (!image_has(peaks->region, columns, y, x) || !(value >= peaks->kept[0]) || !(value <= peaks->kept[1]))
                continue;
            const double mean =
                peaks_mean_of_reals(&ball, extent, before, (int64_t[3]){x, y % extent->rows, y / extent->rows}, scale);

            found->balls++;
            found->global = fmax(found->global, mean);
            if (value == peaks->largest)
                found->local = fmax(found->local, mean);
        }
    free(before);
    free(ball.rows);
    return 0;
}
