/*
 * resample_linear.c - see resample.h: masks on a grid by trilinear interpolation, and the part of a
 * grid that it covers.
 *
 * Rows of the grid between rows of the planes without bits are skipped, so that the cost depends on
 * the region, not on the volume.
 */
#include "kernels/resample/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* State of a call: positions of the grid's columns and rows on the two planes around a slice. */
struct linear_mask {
    const struct resample_grid *grid;
    const uint64_t *bits;
    struct resample_frame frame;
    int64_t words; /* per row of the planes */
    struct resample_pair *columns[2], *rows[2];
    double *line, *values[2]; /* a row of the planes plus one; rows of the grid */
};

static int
linear_mask_reserve(struct linear_mask *mask, struct error *error)
{
    const struct image_extent *from = &mask->frame.planes->extent, *to = &mask->grid->extent;
    const size_t taps = (size_t)(to->columns + to->rows);
    const size_t values = (size_t)(from->columns + 1 + 2 * to->columns);

    mask->columns[0] = calloc(2 * taps, sizeof(struct resample_pair));
    mask->line = calloc(values, sizeof(double));
    if (!mask->columns[0] || !mask->line)
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to resample a mask.");
    mask->columns[1] = mask->columns[0] + to->columns;
    mask->rows[0] = mask->columns[1] + to->columns;
    mask->rows[1] = mask->rows[0] + to->rows;
    mask->values[0] = mask->line + from->columns + 1;
    mask->values[1] = mask->values[0] + to->columns;
    return 0;
}

static void
linear_mask_fill(struct linear_mask *mask, int64_t plane, int beside)
{
    const struct image_extent *to = &mask->grid->extent;

    for (int64_t i = 0; i < to->columns; i++)
        mask->columns[beside][i] = resample_tap_beside(&mask->frame, mask->grid, plane, 0, i, RESAMPLE_LINEAR);
    for (int64_t j = 0; j < to->rows; j++)
        mask->rows[beside][j] = resample_tap_beside(&mask->frame, mask->grid, plane, 1, j, RESAMPLE_LINEAR);
}

static const uint64_t *
linear_mask_row(const struct linear_mask *mask, int64_t y, int64_t z)
{
    return mask->bits + (z * mask->frame.planes->extent.rows + y) * mask->words;
}

static bool
linear_mask_row_has_bits(const struct linear_mask *mask, int64_t y, int64_t z)
{
    const uint64_t *row = linear_mask_row(mask, y, z);
    uint64_t any = 0;

    for (int64_t w = 0; w < mask->words; w++)
        any |= row[w];
    return any != 0;
}

/* Returns whether row j of the grid is next to a bit of a plane. */
static bool
linear_mask_reaches(const struct linear_mask *mask, int64_t j, int64_t z, int beside)
{
    const struct resample_pair tap = mask->rows[beside][j];

    return tap.at >= 0 && (linear_mask_row_has_bits(mask, tap.at, z) ||
                           (tap.part > 0 && linear_mask_row_has_bits(mask, tap.at + 1, z)));
}

static double
linear_mask_bit(const uint64_t *row, int64_t x)
{
    return (double)(row[x / 64] >> x % 64 & 1);
}

/* Computes row j of the grid on a plane: NAN outside. */
static void
linear_mask_on_plane(const struct linear_mask *mask, int64_t j, int64_t z, int beside)
{
    const int64_t columns = mask->frame.planes->extent.columns;
    const struct resample_pair tap = mask->rows[beside][j];
    double *line = mask->line, *values = mask->values[beside];

    for (int64_t x = 0; x < columns && tap.at >= 0; x++) {
        line[x] = linear_mask_bit(linear_mask_row(mask, tap.at, z), x);
        if (tap.part > 0)
            line[x] = (1 - tap.part) * line[x] + tap.part * linear_mask_bit(linear_mask_row(mask, tap.at + 1, z), x);
    }
    line[columns] = line[columns - 1];
    for (int64_t i = 0; i < mask->grid->extent.columns; i++) {
        const struct resample_pair x = mask->columns[beside][i];

        values[i] = x.at < 0 || tap.at < 0 ? (double)NAN : (1 - x.part) * line[x.at] + x.part * line[x.at + 1];
    }
}

/* Thresholds a row of the grid. Returns the number of bits set. Comparisons with NAN are false. */
static int64_t
linear_mask_take(const struct linear_mask *mask, struct resample_pair tap, int64_t j, uint64_t *row)
{
    const int64_t columns = mask->grid->extent.columns;
    int64_t voxels = 0;

    linear_mask_on_plane(mask, j, tap.at, 0);
    if (tap.part > 0)
        linear_mask_on_plane(mask, j, tap.at + 1, 1);
    for (int64_t i = 0; i < columns; i++) {
        double value = mask->values[0][i];

        if (tap.part > 0)
            value = (1 - tap.part) * value + tap.part * mask->values[1][i];
        if (!(value + 0.5 >= 1)) /* rounded as stored values */
            continue;
        row[i / 64] |= UINT64_C(1) << i % 64;
        voxels++;
    }
    return voxels;
}

static int64_t
linear_mask_slice(struct linear_mask *mask, int64_t k, uint64_t *slice)
{
    const struct image_extent *to = &mask->grid->extent;
    const struct resample_pair tap = resample_tap_between(&mask->frame, mask->grid, k, RESAMPLE_LINEAR);
    int64_t voxels = 0;

    if (tap.at < 0)
        return 0;
    linear_mask_fill(mask, tap.at, 0);
    if (tap.part > 0)
        linear_mask_fill(mask, tap.at + 1, 1);
    for (int64_t j = 0; j < to->rows; j++)
        if (linear_mask_reaches(mask, j, tap.at, 0) || (tap.part > 0 && linear_mask_reaches(mask, j, tap.at + 1, 1)))
            voxels += linear_mask_take(mask, tap, j, slice + j * ((to->columns + 63) / 64));
    return voxels;
}

int
kernels_resample_linear_mask(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                             uint64_t *on_grid, int64_t *voxels, struct error *error)
{
    const int64_t slice_words = (grid->extent.columns + 63) / 64 * grid->extent.rows;
    struct linear_mask mask = {
        .grid = grid, .bits = bits, .frame = resample_frame_of(planes), .words = (planes->extent.columns + 63) / 64};
    const int rc = linear_mask_reserve(&mask, error);

    *voxels = 0;
    memset(on_grid, 0, (size_t)(slice_words * grid->extent.slices) * sizeof(*on_grid));
    for (int64_t k = 0; rc == 0 && k < grid->extent.slices; k++)
        *voxels += linear_mask_slice(&mask, k, on_grid + k * slice_words);
    free(mask.columns[0]);
    free(mask.line);
    return rc;
}

/* Finds the position of each slice of a grid: at one plane or, with a part, between it and the
 * next. */
void
resample_reach(const struct image_planes *planes, const struct resample_grid *grid, int64_t k, int64_t first[2],
               int64_t last[2])
{
    const struct resample_frame frame = resample_frame_of(planes);
    const struct resample_pair height = resample_tap_between(&frame, grid, k, RESAMPLE_LINEAR);

    for (int axis = 0; axis < 2; axis++) {
        first[axis] = 0;
        last[axis] = (axis ? grid->extent.rows : grid->extent.columns) - 1;
        if (height.at < 0)
            last[axis] = -1;
        for (int64_t z = height.at; height.at >= 0 && z <= height.at + (height.part > 0); z++) {
            while (first[axis] <= last[axis] &&
                   resample_tap_beside(&frame, grid, z, axis, first[axis], RESAMPLE_LINEAR).at < 0)
                first[axis]++;
            while (first[axis] <= last[axis] &&
                   resample_tap_beside(&frame, grid, z, axis, last[axis], RESAMPLE_LINEAR).at < 0)
                last[axis]--;
        }
    }
}
