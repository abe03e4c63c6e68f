/* resample_mask.c - see resample.h: masks and maps by the nearest voxel or pixel, with a table per
 * axis. */
#include "kernels/resample/resample.h"

#include "kernels/cpu/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Finds the grid's voxel of each pixel along an axis of a plane; -1: none. */
static void
resample_fill_nearest(const struct resample_frame *frame, const struct resample_grid *grid, int64_t plane, int axis,
                      int32_t *nearest)
{
    const struct image_planes *planes = frame->planes;
    struct image_extent from = planes->extent, to = grid->extent;
    const double shift = resample_shift(frame, plane, axis);

    for (int64_t i = 0; i < *resample_side(&from, axis); i++) {
        const double mm = shift + (double)i * planes->spacing[axis];

        nearest[i] = resample_nearest(resample_rounded((mm - grid->origin[axis]) / grid->spacing[axis]),
                                      *resample_side(&to, axis));
    }
}

/* Returns the grid's slice of a plane; -1: none. */
static int32_t
resample_nearest_slice(const struct resample_frame *frame, const struct resample_grid *grid, int64_t plane)
{
    const double height = resample_shift(frame, plane, 2);

    return resample_nearest(resample_rounded((height - grid->origin[2]) / grid->spacing[2]), grid->extent.slices);
}

/* Resamples a row from its nearest row. Returns the number of bits set. */
static int64_t
resample_mask_row(const uint64_t *bits, const int32_t *nearest, int64_t columns, uint64_t *row)
{
    int64_t voxels = 0;

    for (int64_t x = 0; x < columns; x += 64) {
        const int64_t count = columns - x < 64 ? columns - x : 64;
        uint64_t word = 0;

        for (int64_t i = 0; i < count; i++) {
            const int32_t at = nearest[x + i];

            if (at >= 0)
                word |= (bits[at / 64] >> at % 64 & 1) << i;
        }
        row[x / 64] = word;
        voxels += __builtin_popcountll(word);
    }
    return voxels;
}

/* ---- from the grid ---- */

/* Walks over all planes' rows, with an action for rows that have a nearest row of the grid. */
struct resample_walk {
    const struct image_planes *planes;
    const struct resample_grid *grid;
    void (*take)(struct resample_walk *walk, int64_t row, int64_t from);
    int32_t *columns; /* the grid's voxel per pixel of the row; -1: none */
};

static int
resample_walk_rows(struct resample_walk *walk, struct error *error)
{
    const struct resample_frame frame = resample_frame_of(walk->planes);
    const struct image_extent *from = &walk->planes->extent;
    int32_t *columns = calloc((size_t)(from->columns + from->rows), sizeof(*columns));

    if (!columns)
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to resample masks and maps.");
    int32_t *rows = columns + from->columns;
    walk->columns = columns;
    for (int64_t z = 0; z < from->slices; z++) {
        const int64_t slice = resample_nearest_slice(&frame, walk->grid, z);

        if (slice < 0)
            continue;
        resample_fill_nearest(&frame, walk->grid, z, 0, columns);
        resample_fill_nearest(&frame, walk->grid, z, 1, rows);
        for (int64_t y = 0; y < from->rows; y++)
            if (rows[y] >= 0)
                walk->take(walk, z * from->rows + y, slice * walk->grid->extent.rows + rows[y]);
    }
    free(columns);
    return 0;
}

struct resample_mask_walk {
    struct resample_walk walk; /* first */
    const uint64_t *bits;
    uint64_t *on_planes;
    int64_t voxels;
};

static void
resample_take_bits(struct resample_walk *walk, int64_t row, int64_t from)
{
    struct resample_mask_walk *mask = (struct resample_mask_walk *)walk;
    const int64_t columns = walk->planes->extent.columns;
    const int64_t grid_words = (walk->grid->extent.columns + 63) / 64;
    const uint64_t *bits = mask->bits + from * grid_words;

    if (!bits_row_is_empty(bits, grid_words))
        mask->voxels += resample_mask_row(bits, walk->columns, columns, mask->on_planes + row * ((columns + 63) / 64));
}

int
kernels_resample_mask(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                      uint64_t *on_planes, int64_t *voxels, struct error *error)
{
    const struct image_extent *from = &planes->extent;
    struct resample_mask_walk mask = {{planes, grid, resample_take_bits, NULL}, bits, on_planes, 0};
    const int64_t words = (from->columns + 63) / 64 * from->rows * from->slices;

    memset(on_planes, 0, (size_t)words * sizeof(*on_planes));
    const int rc = resample_walk_rows(&mask.walk, error);
    *voxels = mask.voxels;
    return rc;
}

struct resample_map_walk {
    struct resample_walk walk; /* first */
    const uint16_t *map;
    uint16_t *on_planes;
};

static void
resample_take_values(struct resample_walk *walk, int64_t row, int64_t from)
{
    const struct resample_map_walk *map = (const struct resample_map_walk *)walk;
    const int64_t columns = walk->planes->extent.columns;
    const uint16_t *values = map->map + from * walk->grid->extent.columns;

    for (int64_t x = 0; x < columns; x++)
        if (walk->columns[x] >= 0)
            map->on_planes[row * columns + x] = values[walk->columns[x]];
}

int
kernels_resample_map(const struct image_planes *planes, const struct resample_grid *grid, const uint16_t *map,
                     uint16_t *on_planes, struct error *error)
{
    struct resample_map_walk walk = {{planes, grid, resample_take_values, NULL}, map, on_planes};

    memset(on_planes, 0, (size_t)image_voxels(&planes->extent) * sizeof(*on_planes));
    return resample_walk_rows(&walk.walk, error);
}

/* ---- drawn masks ---- */

/* The sample of each voxel of the grid. `back` has room for a table of the samples; NULL: each voxel takes the nearest. */
struct resample_drawn {
    int32_t *columns, *rows, *slices, *back;
};

static int64_t
resample_longest(const struct image_extent *extent)
{
    const int64_t side = extent->columns > extent->rows ? extent->columns : extent->rows;

    return side > extent->slices ? side : extent->slices;
}

static int
resample_drawn_reserve(struct resample_drawn *drawn, const struct image_extent *from, const struct image_extent *to,
                       struct error *error)
{
    const int64_t own = to->columns + to->rows + to->slices;

    drawn->columns = calloc((size_t)(own + resample_longest(from)), sizeof(*drawn->columns));
    if (!drawn->columns)
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to resample a mask.");
    drawn->rows = drawn->columns + to->columns;
    drawn->slices = drawn->rows + to->rows;
    drawn->back = drawn->slices + to->slices;
    return 0;
}

/* A voxel takes the first of the samples that would take it on the way back. */
static void
resample_invert(const int32_t *back, int64_t samples, int32_t *taken)
{
    for (int64_t i = samples - 1; i >= 0; i--)
        if (back[i] >= 0)
            taken[back[i]] = (int32_t)i;
}

/* Returns the nearest sample of a voxel; -1: none. */
static int32_t
resample_drawn_at(const struct resample_grid *grid, int axis, double place, int64_t samples)
{
    return grid->mirrors && resample_is_beyond(grid, axis, place, samples) ? -1 : resample_nearest(place, samples);
}

static void
resample_fill_drawn(const struct resample_frame *frame, const struct resample_grid *grid, int64_t plane, int axis,
                    int32_t *back, int32_t *taken)
{
    struct image_extent from = frame->planes->extent, to = grid->extent;
    const double shift = resample_shift(frame, plane, axis);

    for (int64_t i = 0; i < *resample_side(&to, axis); i++)
        taken[i] =
            resample_drawn_at(grid, axis, resample_beside(frame->planes, resample_mm(grid, axis, i), shift, axis),
                              *resample_side(&from, axis));
    if (!back)
        return;
    resample_fill_nearest(frame, grid, plane, axis, back);
    resample_invert(back, *resample_side(&from, axis), taken);
}

static void
resample_fill_drawn_planes(const struct resample_frame *frame, const struct resample_grid *grid, int32_t *back,
                           int32_t *taken)
{
    const int64_t planes = frame->planes->extent.slices;

    for (int64_t k = 0; k < grid->extent.slices; k++) {
        const double place = resample_between(frame, resample_mm(grid, 2, k));

        taken[k] = resample_drawn_at(grid, 2, place, planes);
        if (grid->from_end && taken[k] > 0 && place == taken[k] - 0.5)
            taken[k]--;
    }
    for (int64_t z = 0; z < planes && back; z++)
        back[z] = resample_nearest_slice(frame, grid, z);
    if (back)
        resample_invert(back, planes, taken);
}

/* Makes a slice of the grid from a plane's rows. Returns the number of bits set. */
static int64_t
resample_drawn_slice(const struct resample_drawn *drawn, const struct image_extent *from, const struct image_extent *to,
                     const uint64_t *plane, uint64_t *slice)
{
    const int64_t words = (from->columns + 63) / 64, grid_words = (to->columns + 63) / 64;
    int64_t voxels = 0;

    for (int64_t y = 0; y < to->rows; y++) {
        const uint64_t *row = plane + drawn->rows[y] * words;

        if (drawn->rows[y] >= 0 && !bits_row_is_empty(row, words))
            voxels += resample_mask_row(row, drawn->columns, to->columns, slice + y * grid_words);
    }
    return voxels;
}

static int
resample_take_samples(const struct image_planes *planes, const struct resample_grid *grid, bool draws,
                      const uint64_t *bits, uint64_t *on_grid, int64_t *voxels, struct error *error)
{
    const struct resample_frame frame = resample_frame_of(planes);
    const struct image_extent *from = &planes->extent, *to = &grid->extent;
    const int64_t plane_words = (from->columns + 63) / 64 * from->rows;
    const int64_t slice_words = (to->columns + 63) / 64 * to->rows;
    struct resample_drawn drawn = {0};
    const int rc = resample_drawn_reserve(&drawn, from, to, error);

    if (rc)
        return rc;
    if (!draws)
        drawn.back = NULL;
    *voxels = 0;
    memset(on_grid, 0, (size_t)(slice_words * to->slices) * sizeof(*on_grid));
    resample_fill_drawn_planes(&frame, grid, drawn.back, drawn.slices);
    for (int64_t k = 0; k < to->slices; k++) {
        const int32_t z = drawn.slices[k];

        if (z < 0)
            continue;
        resample_fill_drawn(&frame, grid, z, 0, drawn.back, drawn.columns);
        resample_fill_drawn(&frame, grid, z, 1, drawn.back, drawn.rows);
        *voxels += resample_drawn_slice(&drawn, from, to, bits + z * plane_words, on_grid + k * slice_words);
    }
    free(drawn.columns);
    return 0;
}

int
kernels_resample_drawn(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                       uint64_t *on_grid, int64_t *voxels, struct error *error)
{
    return resample_take_samples(planes, grid, true, bits, on_grid, voxels, error);
}

int
kernels_resample_nearest_mask(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                              uint64_t *on_grid, int64_t *voxels, struct error *error)
{
    return resample_take_samples(planes, grid, false, bits, on_grid, voxels, error);
}
