/* grid_fill.c - see grid.h: the values and the padding of the grid. */
#include "service/pipeline/grid.h"

#include "service/pipeline/volume.h"

#include "base/array.h"
#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------- padding ---- */

static bool
padding_has(const struct image_range *padding, int32_t value)
{
    return padding->lo <= value && value <= padding->hi;
}

/* Returns the possible padding values of the planes' pixels; an empty range: no padding. */
static struct image_range
grid_source_padding(const struct grid *grid)
{
    const struct image_range limits = image_pixel_range(grid->source->pixel);
    const struct dicom_instance *first =
        grid->real ? grid->source_instances[grid->source->planes[0].instance] : grid_first_instance(grid);
    struct image_range padding = volume_padding(first);
    padding.lo = padding.lo > limits.lo ? padding.lo : limits.lo;
    padding.hi = padding.hi < limits.hi ? padding.hi : limits.hi;
    return padding;
}

/* Finds `count` values that no voxel has and that do not lie between two values of voxels. */
static int
grid_find_outside(const struct grid *grid, const void *voxels, enum image_pixel pixel, int64_t count, int32_t *outside,
                  struct error *error)
{
    const struct image_range limits = image_pixel_range(grid->demand.pixel);
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    for (int64_t i = 0; i < count; i++) {
        const int32_t value = image_value(voxels, pixel, i);
        lo = value < lo ? value : lo;
        hi = value > hi ? value : hi;
    }
    *outside = lo > limits.lo ? lo - 1 : hi + 1;
    if (*outside <= limits.hi)
        return 0;
    return error_set(error, -EINVAL, CODE_GRID_VALUES_FULL,
                     "the slices have stored values from %d to %d, which are all values, so that none is left for "
                     "%s",
                     lo, hi,
                     grid->straight ? "voxels outside of them on an upright grid"
                                    : "voxels that padding has a share in (texture.resample)");
}

/* Marks the source's padding voxels, in their order; NULL: no padding. */
static int
grid_find_padding(const struct grid *grid, const void *voxels, const struct image_range *padding, uint64_t **bits,
                  struct error *error)
{
    const int64_t count = image_voxels(&grid->planes.extent);
    bool any = false;
    *bits = NULL;
    if (volume_range_is_empty(*padding))
        return 0;
    *bits = calloc((size_t)(count + 63) / 64, sizeof **bits);
    if (!*bits)
        return error_set_system(error, -ENOMEM, "resample the volume");
    for (int64_t i = 0; i < count; i++)
        if (padding_has(padding, image_value(voxels, grid->source->pixel, i))) {
            (*bits)[i / 64] |= UINT64_C(1) << (i % 64);
            any = true;
        }
    if (!any) {
        free(*bits);
        *bits = NULL;
    }
    return 0;
}

/* -------------------------------------------------------------------------------- resampling -- */

struct image_extent
grid_source_extent(const struct grid *grid)
{
    const struct image_extent *from = &grid->planes.extent;
    const int64_t more = 2 * grid->edge;
    return (struct image_extent){from->columns + more, from->rows + more, from->slices + more};
}

/* Returns the sample of the source at an index along an axis of its extended volume. */
static int64_t
grid_source_at(const struct grid *grid, int64_t i, int64_t samples)
{
    const int64_t at = i - grid->edge;
    return at < 0 ? 0 : at < samples ? at : samples - 1;
}

/* Copies voxels of this size, and continues the ends. */
static void
grid_extend(const struct grid *grid, const void *voxels, size_t size, void *place)
{
    const struct image_extent *from = &grid->planes.extent, to = grid_source_extent(grid);
    char *next = place;
    for (int64_t row = 0; row < to.rows * to.slices; row++) {
        const int64_t y = grid_source_at(grid, row % to.rows, from->rows);
        const int64_t z = grid_source_at(grid, row / to.rows, from->slices);
        const char *line = (const char *)voxels + (size_t)((z * from->rows + y) * from->columns) * size;
        for (int64_t x = 0; x < grid->edge; x++, next += size)
            memcpy(next, line, size);
        memcpy(next, line, (size_t)from->columns * size);
        next += (size_t)from->columns * size;
        for (int64_t x = 0; x < grid->edge; x++, next += size)
            memcpy(next, line + (size_t)(from->columns - 1) * size, size);
    }
}

void
grid_copy_source(const struct grid *grid, const void *voxels, void *place)
{
    grid_extend(grid, voxels, image_pixel_size(grid->source->pixel), place);
}

/* A sum, and the part of it that rounding lost (Neumaier). */
struct grid_sum {
    double sum, lost;
};

static void
grid_sum_add(struct grid_sum *to, double value)
{
    const double sum = to->sum + value;
    to->lost += fabs(to->sum) >= fabs(value) ? (to->sum - sum) + value : (value - sum) + to->sum;
    to->sum = sum;
}

double
grid_normalised(const struct grid *grid, double value)
{
    const struct texture_normalise *wanted = grid->normalise;
    if (!wanted)
        return value;
    value = (value - grid->mean) * grid->per_deviation;
    if (wanted->outliers > 0 && fabs(value) > wanted->outliers)
        value = value > 0 ? wanted->outliers : -wanted->outliers;
    return value * wanted->scale;
}

/* Normalises the source's values by their mean and their standard deviation (of N - 1), both without padding (`bits`). */
static void
grid_normalise(struct grid *grid, const uint64_t *bits, double *values)
{
    const int64_t count = image_voxels(&grid->planes.extent);
    struct grid_sum sum = {0, 0}, squares = {0, 0};
    double used = 0;
    for (int64_t i = 0; i < count; i++)
        if (!bits || !(bits[i / 64] >> (i % 64) & 1)) {
            grid_sum_add(&sum, values[i]);
            used++;
        }
    grid->mean = (sum.sum + sum.lost) / used;
    for (int64_t i = 0; i < count; i++)
        if (!bits || !(bits[i / 64] >> (i % 64) & 1))
            grid_sum_add(&squares, (values[i] - grid->mean) * (values[i] - grid->mean));
    grid->per_deviation = 1 / sqrt((squares.sum + squares.lost) / (used - 1));
    for (int64_t i = 0; i < count; i++)
        values[i] = grid_normalised(grid, values[i]);
}

/* Returns the real-world values of the source, normalised if wanted; NULL: no memory, or those that are kept serve. */
static double *
grid_normal_values(struct grid *grid, const void *voxels, const struct image_rescale *rescales, const uint64_t *bits)
{
    const int64_t count = image_voxels(&grid->planes.extent), slice = image_slice_voxels(&grid->planes.extent);
    double *values = grid->normalise ? malloc((size_t)count * sizeof *values) : NULL;
    for (int64_t i = 0; i < count && values; i++)
        values[i] = grid->from->keeps_reals ? grid->from->reals[i]
                                            : rescales[i / slice].slope * image_value(voxels, grid->source->pixel, i) +
                                                  rescales[i / slice].intercept;
    if (values)
        grid_normalise(grid, bits, values);
    return values;
}

/* Returns the values of the source and its continued ends, which the caller must free; NULL: no memory. */
static double *
grid_samples(struct grid *grid, const void *voxels, const struct image_rescale *rescales, const uint64_t *bits)
{
    const struct image_extent extent = grid_source_extent(grid);
    double *samples = malloc((size_t)image_voxels(&extent) * sizeof *samples);
    double *values = grid_normal_values(grid, voxels, rescales, bits);
    if (samples && (values || !grid->normalise))
        grid_extend(grid, values ? values : grid->from->reals, sizeof *samples, samples);
    else {
        free(samples);
        samples = NULL;
    }
    free(values);
    return samples;
}

static int
grid_run(const struct grid *grid, struct kernels_lane *lane, int32_t outside, const struct image_rescale *rescales,
         const double *samples, const void **voxels, struct error *error)
{
    struct image_planes planes = grid->planes;
    struct resample_grid to = grid->to;
    struct resample_request request = {
        .planes = &planes,
        .grid = &to,
        .order = grid->demand.order,
        .outside = outside,
        .rescales = rescales,
        .samples = samples,
    };
    if (grid->edge == 0)
        return kernels_resample(lane, &request, voxels, error);
    /* The extended source: its planes, and its rescales. The grid begins as far from its first voxel. */
    planes.extent = grid_source_extent(grid);
    double *origins = calloc((size_t)planes.extent.slices, 3 * sizeof *origins);
    struct image_rescale *more = calloc((size_t)planes.extent.slices, sizeof *more);
    const double step = grid->source->spacing[2], edge = (double)grid->edge;
    double normal[3];
    image_planes_normal(&planes, normal);
    for (int64_t z = 0; z < planes.extent.slices && origins && more; z++) {
        for (int i = 0; i < 3; i++)
            origins[3 * z + i] = grid->origins[i] + ((double)z - edge) * step * normal[i] -
                                 edge * (planes.spacing[0] * planes.axes[i] + planes.spacing[1] * planes.axes[3 + i]);
        if (rescales)
            more[z] = rescales[grid_source_at(grid, z, grid->planes.extent.slices)];
    }
    planes.origins = origins;
    request.rescales = rescales ? more : NULL;
    to.origin[0] += edge * planes.spacing[0];
    to.origin[1] += edge * planes.spacing[1];
    to.origin[2] += edge * step;
    const int rc = origins && more ? kernels_resample(lane, &request, voxels, error)
                                   : error_set_system(error, -ENOMEM, "resample the volume");
    free(origins);
    free(more);
    return rc;
}

/*
 * Resamples a volume with the largest pixel value at padding and 0 elsewhere. Where the result is
 * not 0, padding contributes at least half a stored value.
 */
static int
grid_spread_padding(struct grid *grid, struct kernels_lane *lane, const uint64_t *bits, int32_t outside,
                    int64_t most_bytes, struct error *error)
{
    struct resample_demand demand = grid->demand;
    struct kernels_demand all = {.of = {[KERNELS_RESAMPLE] = &demand}, .most_bytes = most_bytes};
    const struct image_extent *from = &grid->planes.extent, extent = grid_source_extent(grid);
    /* The weights of a spline have signs. */
    const enum image_pixel pixel = demand.order == RESAMPLE_CUBIC ? IMAGE_INT16 : IMAGE_UINT16;
    const uint16_t mark = (uint16_t)image_pixel_range(pixel).hi;
    void *marks;
    const void *spread;
    demand.pixel = pixel;
    demand.values = RESAMPLE_STORED;
    int rc = kernels_volume_begin(lane, extent, pixel, &all, &marks, error);
    if (rc)
        return rc;
    for (int64_t i = 0; i < image_voxels(&extent); i++) {
        const int64_t x = grid_source_at(grid, i % extent.columns, from->columns);
        const int64_t y = grid_source_at(grid, i / extent.columns % extent.rows, from->rows);
        const int64_t z = grid_source_at(grid, i / image_slice_voxels(&extent), from->slices);
        const int64_t at = (z * from->rows + y) * from->columns + x;
        ((uint16_t *)marks)[i] = bits[at / 64] >> (at % 64) & 1 ? mark : 0;
    }
    rc = kernels_volume_ready(lane, 0, extent.slices, error);
    if (rc == 0)
        rc = grid_run(grid, lane, 0, NULL, NULL, &spread, error);
    /* Both kinds of pixels have 16 bits. */
    for (int64_t i = 0; rc == 0 && i < image_voxels(&grid->to.extent); i++)
        if (((const uint16_t *)spread)[i] != 0 && grid->real)
            ((double *)grid->voxels)[i] = NAN;
        else if (((const uint16_t *)spread)[i] != 0)
            ((uint16_t *)grid->voxels)[i] = (uint16_t)outside;
    return rc;
}

static void
grid_set_padding(struct grid *grid, const struct image_range *padding, int32_t outside)
{
    const bool none = volume_range_is_empty(*padding);
    for (size_t i = 0; i < grid->own_instances.count; i++) {
        struct dicom_instance *instance = &grid->own_instances.at[i];
        instance->has_padding = true;
        instance->padding_lo = outside;
        instance->padding_hi = none ? outside : padding->hi;
    }
}

/* Rounds values between stored values to stored values, as RESAMPLE_STORED does, and keeps those that are not rounded. */
static void
grid_keep_reals(struct grid *grid, const double *between)
{
    const struct image_range limits = image_pixel_range(grid->demand.pixel);
    const struct image_rescale rescale = volume_rescale(grid->instances, &grid->stack->planes[0]);
    for (int64_t i = 0; i < image_voxels(&grid->to.extent); i++) {
        const double rounded = floor(fmin(fmax(between[i], limits.lo), limits.hi) + 0.5);
        ((uint16_t *)grid->voxels)[i] = (uint16_t)(int32_t)rounded; /* straight grids have 16-bit pixels */
        grid->reals[i] = rescale.slope * between[i] + rescale.intercept;
    }
}

int
grid_resample(struct grid *grid, struct kernels_lane *lane, const void *voxels, int64_t most_bytes, struct error *error)
{
    const struct image_range padding = grid_source_padding(grid);
    const void *resampled;
    uint64_t *bits = NULL;
    int32_t outside = padding.lo;
    grid->voxels = malloc((size_t)image_voxels(&grid->to.extent) * image_pixel_size(grid->demand.pixel));
    grid->reals = grid->keeps_reals ? malloc(grid_voxel_bytes(grid)) : NULL;
    int rc = grid->voxels && (grid->reals || !grid->keeps_reals)
                 ? 0
                 : error_set_system(error, -ENOMEM, "resample the volume");
    if (rc == 0 && volume_range_is_empty(padding))
        rc = grid_find_outside(grid, voxels, grid->source->pixel, image_voxels(&grid->planes.extent), &outside, error);
    if (rc == 0)
        rc = grid_find_padding(grid, voxels, &padding, &bits, error);
    if (rc == 0)
        rc = grid_run(grid, lane, outside, NULL, NULL, &resampled, error);
    if (rc == 0 && grid->keeps_reals)
        grid_keep_reals(grid, resampled);
    else if (rc == 0)
        memcpy(grid->voxels, resampled, grid_voxel_bytes(grid));
    if (rc == 0 && bits)
        rc = grid_spread_padding(grid, lane, bits, outside, most_bytes, error);
    free(bits);
    if (rc == 0)
        grid_set_padding(grid, &padding, outside);
    return rc;
}

/* Clipped values of a spline would be wrong. */
static int
grid_check_swing(const struct grid *grid, struct error *error)
{
    const struct image_range limits = image_pixel_range(grid->demand.pixel);
    const struct image_range padding = volume_padding(grid_first_instance(grid));
    for (int64_t i = 0; i < image_voxels(&grid->to.extent); i++) {
        const int32_t value = image_value(grid->voxels, grid->demand.pixel, i);
        if ((value == limits.lo || value == limits.hi) && !padding_has(&padding, value))
            return error_set(error, -EINVAL, CODE_GRID_VALUES_FULL,
                             "a cubic spline through the stored values swings beyond %d to %d, which "
                             "16 bits hold: use texture.resample with interpolation = \"linear\"",
                             limits.lo, limits.hi);
    }
    return 0;
}

bool
grid_is_whole(const struct grid *grid)
{
    bool is_whole = !grid->from->keeps_reals && !grid->normalise;
    for (int32_t z = 0; z < grid->source->plane_count; z++) {
        const struct image_rescale rescale = volume_rescale(grid->source_instances, &grid->source->planes[z]);
        is_whole &= rescale.slope == rint(rescale.slope) && rescale.intercept == rint(rescale.intercept);
    }
    return is_whole;
}

/* The values of a grid of the source's voxels. */
struct grid_values {
    const struct grid *grid;
    const void *voxels;
    const struct image_rescale *rescales; /* per slice */
    const double *samples;                /* real-world values of the source; NULL: those of the voxels */
    const uint64_t *bits;                 /* padding; NULL: there is none */
};

/* Fills a slice with the values of the source, NAN at padding. */
static void
grid_fill_slice(void *context, int64_t slice)
{
    const struct grid_values *values = context;
    const struct grid *grid = values->grid;
    const struct image_extent *part = &grid->to.extent, *whole = &grid->planes.extent;
    const int64_t z = grid->to.first[2] + slice;
    const struct image_rescale *rescale = &values->rescales[z];
    for (int64_t row = 0; row < part->rows; row++) {
        const int64_t first = (z * whole->rows + grid->to.first[1] + row) * whole->columns + grid->to.first[0];
        double *to = (double *)grid->voxels + (slice * part->rows + row) * part->columns;
        for (int64_t x = 0; x < part->columns; x++)
            to[x] = values->samples ? values->samples[first + x]
                                    : rescale->slope * image_value(values->voxels, grid->source->pixel, first + x) +
                                          rescale->intercept;
        for (int64_t x = 0; x < part->columns && values->bits; x++)
            if (values->bits[(first + x) / 64] >> ((first + x) % 64) & 1)
                to[x] = NAN;
    }
}

/* Resamples to real-world values, NAN at padding (`bits`). Slices with one rescale are interpolated first. */
static int
grid_run_real(struct grid *grid, struct kernels_lane *lane, const void *voxels, const uint64_t *bits,
              int64_t most_bytes, struct error *error)
{
    const struct geometry_stack *source = grid->source;
    const int64_t count = image_voxels(&grid->to.extent);
    double *values = grid->voxels;
    struct image_rescale *rescales = calloc((size_t)source->plane_count, sizeof *rescales);
    const bool each = grid->demand.values == RESAMPLE_RESCALED;
    const bool sampled = each && (grid->from->keeps_reals || grid->normalise);
    const void *resampled;
    for (int32_t z = 0; z < source->plane_count && rescales; z++)
        rescales[z] = volume_rescale(grid->source_instances, &source->planes[z]);
    double *samples = !sampled || !rescales ? NULL
                      : grid->same          ? grid_normal_values(grid, voxels, rescales, bits)
                                            : grid_samples(grid, voxels, rescales, bits);
    if (!rescales || (sampled && !samples && !(grid->same && !grid->normalise))) {
        free(rescales);
        free(samples);
        return error_set_system(error, -ENOMEM, "resample the volume");
    }
    if (grid->same) {
        struct grid_values same = {grid, voxels, rescales, samples, bits};
        if (sampled && !samples)
            same.samples = grid->from->reals;
        kernels_lane_for(lane, grid->to.extent.slices, grid_fill_slice, &same);
        free(rescales);
        free(samples);
        return 0;
    }
    const int rc = grid_run(grid, lane, 0, each && !sampled ? rescales : NULL, samples, &resampled, error);
    if (rc == 0)
        memcpy(values, resampled, grid_voxel_bytes(grid));
    for (int64_t i = 0; i < count && rc == 0 && grid->rounded; i++)
        values[i] = floor(values[i] + 0.5);
    for (int64_t i = 0; i < count && rc == 0 && !each; i++)
        values[i] = rescales[0].slope * values[i] + rescales[0].intercept;
    if (grid->pyradiomics && grid_is_whole(grid))
        for (int64_t i = 0; i < count && rc == 0; i++)
            values[i] = trunc(values[i]);
    if (grid->pyradiomics && rc == 0)
        resample_clear_beyond(&grid->planes, &grid->to, values);
    free(rescales);
    free(samples);
    return rc == 0 && bits ? grid_spread_padding(grid, lane, bits, 0, most_bytes, error) : rc;
}

/* Resamples to stored values. `bits` has the padding, NULL: there is none. */
static int
grid_run_stored(struct grid *grid, struct kernels_lane *lane, const uint64_t *bits, int64_t most_bytes,
                struct error *error)
{
    const struct image_range none = {.lo = 1, .hi = 0};
    int32_t outside;
    const void *resampled;
    int rc = grid_run(grid, lane, 0, NULL, NULL, &resampled, error); /* no voxel is outside */
    if (rc == 0)
        memcpy(grid->voxels, resampled, grid_voxel_bytes(grid));
    /* Voxels between padding and values get a value that no other voxel has. */
    if (rc == 0 && bits)
        rc = grid_find_outside(grid, grid->voxels, grid->demand.pixel, image_voxels(&grid->to.extent), &outside, error);
    if (rc == 0 && bits)
        rc = grid_spread_padding(grid, lane, bits, outside, most_bytes, error);
    if (rc == 0 && bits)
        grid_set_padding(grid, &none, outside);
    return rc || grid->demand.order != RESAMPLE_CUBIC ? rc : grid_check_swing(grid, error);
}

int
grid_interpolate(struct grid *grid, struct kernels_lane *lane, const void *voxels, int64_t most_bytes,
                 struct error *error)
{
    uint64_t *bits = NULL;
    grid_fill_instances(grid); /* the source's padding may be known only here */
    const struct image_range padding = grid_source_padding(grid);
    for (size_t i = 0; i < grid->own_instances.count; i++)
        grid->own_instances.at[i].has_padding = false;
    grid->voxels = array_take_pages(grid_voxel_bytes(grid));
    int rc = grid->voxels ? 0 : error_set_system(error, -ENOMEM, "resample the volume");
    if (rc == 0)
        rc = grid_find_padding(grid, voxels, &padding, &bits, error);
    grid->has_none = bits != NULL;
    if (rc == 0)
        rc = grid->real ? grid_run_real(grid, lane, voxels, bits, most_bytes, error)
                        : grid_run_stored(grid, lane, bits, most_bytes, error);
    free(bits);
    return rc;
}

int
grid_take_values(struct grid *grid, struct grid *from, bool takes, struct error *error)
{
    const struct image_extent *part = &grid->to.extent, *whole = &from->to.extent;
    const size_t size = resample_voxel_size(&grid->demand);
    grid_fill_instances(grid);
    for (size_t i = 0; i < grid->own_instances.count; i++) {
        grid->own_instances.at[i].has_padding = from->own_instances.at[i].has_padding;
        grid->own_instances.at[i].padding_lo = from->own_instances.at[i].padding_lo;
        grid->own_instances.at[i].padding_hi = from->own_instances.at[i].padding_hi;
    }
    takes = takes && image_voxels(part) == image_voxels(whole);
    grid->voxels = takes ? from->voxels : malloc(grid_voxel_bytes(grid));
    if (!grid->voxels)
        return error_set_system(error, -ENOMEM, "resample the volume");
    if (takes)
        from->voxels = NULL;
    for (int64_t row = 0; row < part->rows * part->slices && !takes; row++) {
        const int64_t y = grid->to.first[1] - from->to.first[1] + row % part->rows;
        const int64_t z = grid->to.first[2] - from->to.first[2] + row / part->rows;
        const int64_t at = (z * whole->rows + y) * whole->columns + grid->to.first[0] - from->to.first[0];
        memcpy((char *)grid->voxels + (size_t)(row * part->columns) * size,
               (const char *)from->voxels + (size_t)at * size, (size_t)part->columns * size);
    }
    return 0;
}

void
grid_cut_padding(const struct grid *grid, const void *voxels, struct image_mask *mask)
{
    const struct image_range padding = volume_padding(grid_first_instance(grid));
    const int64_t rows = grid->to.extent.rows * grid->to.extent.slices;
    uint64_t *bits = (uint64_t *)(uintptr_t)mask->bits; /* the lane owns it and lends it */
    mask->voxels = 0;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t w = 0; w < mask->words_per_row; w++) {
            uint64_t *word = &bits[y * mask->words_per_row + w];
            const int64_t first = y * grid->to.extent.columns + w * 64;
            uint64_t kept = *word;
            for (uint64_t left = kept; left; left &= left - 1) {
                const int bit = __builtin_ctzll(left);
                if (padding_has(&padding, image_value(voxels, grid->stack->pixel, first + bit)))
                    kept &= ~(UINT64_C(1) << bit);
            }
            if (kept != *word)
                *word = kept;
            mask->voxels += __builtin_popcountll(kept);
        }
}
