/*
 * spatial_correlation.c - spatial autocorrelation of values (IBSI 3.1.28, 3.1.29): Moran's I and
 * Geary's C over all pairs of the intensity mask, weighted by the inverse of their distance in mm.
 */
#include "kernels/features/shape/pair_sums.h"
#include "kernels/features/shape/shape.h"
#include "kernels/morphology/lags.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MORAN, GEARY, SPATIAL_CORRELATIONS };

static const struct feature_definition spatial_correlation_definitions[SPATIAL_CORRELATIONS] = {
    {"morans_i", "Moran's I index", "N365", .unit = "1"},
    {"gearys_c", "Geary's C measure", "NPT7", .unit = "1"},
};

__extension__ typedef __int128 pair_sum; /* max 2^24 voxels, squared, times pairs of 16-bit squares */

/*
 * Counts: integer sums by lag (lags.h) if all slices share a rescale and the box is small enough, else the pair_sums of
 * real-world values.
 */
enum method { BY_LAGS, BY_VALUES };

static enum method
spatial_correlation_method(const struct feature_volume *volume, const struct texture_box *box)
{
    int64_t length[3];

    if (volume->reals || !lags_lengths(box->size, length))
        return BY_VALUES;
    for (size_t i = 1; i < volume->tables; i++)
        if (volume->rescales[i].slope != volume->rescales[0].slope ||
            volume->rescales[i].intercept != volume->rescales[0].intercept)
            return BY_VALUES;
    return BY_LAGS;
}

/* Returns the number of voxels of a region's histograms. */
static int64_t
kept_voxels(const struct feature_region *region)
{
    const size_t entries = region->volume->tables * region->volume->values;
    uint64_t voxels = 0;

    for (size_t i = 0; i < entries; i++)
        voxels += region->histograms[i];
    return (int64_t)voxels;
}

/* Returns the reason why a region has no values, before counting; FEATURE_PRESENT: it may have
 * them. */
static enum feature_missing
spatial_correlation_missing(const struct feature_region *region, const struct texture_box *box)
{
    if (box->size[0] == 0)
        return FEATURE_EMPTY_REGION;
    if (spatial_correlation_method(region->volume, box) == BY_VALUES &&
        (pair_sums_points(box->size) == 0 || kept_voxels(region) > PAIR_SUMS_VOXELS))
        return FEATURE_TOO_LARGE;
    return FEATURE_PRESENT;
}

/* Returns the least value of the intensity mask, relative to the smallest of the pixel type. */
static uint32_t
least_value(const struct feature_region *region)
{
    const size_t values = region->volume->values;
    size_t least = values;

    for (size_t i = 0; i < region->volume->tables * values; i++)
        if (region->histograms[i] > 0 && i % values < least)
            least = i % values;
    return least < values ? (uint32_t)least : 0;
}

/* Makes the values of the box, NAN outside the intensity mask. Returns NULL without memory. */
static double *
box_values(const struct feature_region *region, const struct texture_box *box)
{
    const struct feature_volume *volume = region->volume;
    const enum image_pixel pixel = kernels_volume_pixel(volume->lane);
    const void *voxels = kernels_volume_voxels(volume->lane);
    double *values = malloc((size_t)(box->size[0] * box->size[1] * box->size[2]) * sizeof(*values)), *next = values;

    for (int64_t row = 0; values && row < box->size[1] * box->size[2]; row++) {
        const int64_t y = box->first[1] + row % box->size[1], z = box->first[2] + row / box->size[1];
        const int64_t line = z * volume->rows + y;
        const struct image_rescale *rescale = &volume->rescales[volume->tables > 1 ? z : 0];

        for (int64_t x = box->first[0]; x < box->first[0] + box->size[0]; x++, next++) {
            const int64_t i = line * volume->columns + x;
            const int32_t stored = volume->reals ? 0 : image_value(voxels, pixel, i);

            *next = NAN;
            if (!image_has(region->bits, volume->columns, line, x))
                continue;
            if (volume->reals && volume->reals[i] >= region->kept[0] && volume->reals[i] <= region->kept[1])
                *next = volume->reals[i];
            else if (!volume->reals && feature_region_keeps(region, z, stored))
                *next = rescale->slope * stored + rescale->intercept;
        }
    }
    return values;
}

static int
spatial_correlation_count_values(const struct feature_region *region, const struct texture_box *box, uint64_t **counts,
                                 struct error *error)
{
    const double *spacing = region->volume->spacing;
    struct pair_box pairs = {.spacing = {spacing[0], spacing[1], spacing[2]}};
    struct pair_sums sums;
    double *values = box_values(region, box);
    int rc = values ? 0 : -ENOMEM;

    memcpy(pairs.size, box->size, sizeof(pairs.size));
    pairs.values = values;
    if (rc == 0)
        rc = pair_sums_make(&pairs, kernels_lane_threads(region->volume->lane), &sums);
    free(values);
    if (rc)
        return error_set_system(error, rc, "correlate values");
    rc = feature_counts_make(sizeof(sums) / sizeof(**counts), counts, error);
    if (rc == 0)
        memcpy(*counts, &sums, sizeof(sums));
    return rc;
}

static int
spatial_correlation_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    const struct image_extent extent = feature_extent(region->volume);
    struct lags request = {.least = least_value(region)};
    struct texture_box box;
    uint64_t *kept;
    int rc;

    (void)set;
    texture_box_of(region->bits, &extent, &box);
    if (spatial_correlation_missing(region, &box))
        return 0;
    if (spatial_correlation_method(region->volume, &box) == BY_VALUES)
        return spatial_correlation_count_values(region, &box, counts, error);
    rc = shape_kept_make(region, &request.region, &kept, error);
    if (rc == 0)
        rc = feature_counts_make(lags_size(&box), counts, error);
    if (rc == 0)
        rc = lags_run(region->volume->lane, &request, *counts, error);
    free(kept);
    return rc;
}

/* Returns the memory for the largest box that fits a transform: a quarter of its points, in one
 * slice. */
static size_t
spatial_correlation_bytes(const struct feature_region *largest, size_t set)
{
    const struct image_extent extent = feature_extent(largest->volume);
    const int64_t voxels = image_voxels(&extent), most = LAGS_POINTS / 4;
    const int64_t points = voxels < PAIR_SUMS_POINTS / 4 ? 4 * voxels : PAIR_SUMS_POINTS;
    const size_t by_lags = LAGS_KINDS * (size_t)(voxels < most ? voxels : most) * sizeof(uint64_t);

    (void)set;
    /* A point has a complex number, a quarter of a weight, and a quarter of a value. */
    if (largest->volume->reals || voxels > most)
        return (size_t)points * (2 * sizeof(double) + sizeof(double) / 2);
    return by_lags;
}

/* ----------------------------------------------------------------------------------- values ---- */

/* Takes the weighted sums over all pairs. Those of products are times n^2, and those of deviations times n. */
static void
pair_sums_take(const uint64_t *counts, const struct texture_box *box, const double spacing[3], struct pair_sums *sums)
{
    const size_t lags = lags_size(box) / LAGS_KINDS;
    /* The sums over all voxels' values, and their squares, are at lag 0. */
    const pair_sum voxels = counts[LAGS_PAIRS * lags], total = counts[LAGS_VALUES * lags];
    size_t lag = 0;

    for (int64_t slice = 0; slice < box->size[2]; slice++)
        for (int64_t row = 0; row < box->size[1]; row++)
            for (int64_t column = 0; column < box->size[0]; column++, lag++) {
                const double x = (double)column * spacing[0], y = (double)row * spacing[1];
                const double z = (double)slice * spacing[2];

                /* false for half of the lags in a ball's box */
                if (lag > 0 && counts[LAGS_PAIRS * lags + lag] > 0) {
                    const double weight = 1 / sqrt(x * x + y * y + z * z);
                    const uint64_t pairs = counts[LAGS_PAIRS * lags + lag];
                    const uint64_t values = counts[LAGS_VALUES * lags + lag];
                    const uint64_t products = counts[LAGS_PRODUCTS * lags + lag];
                    const uint64_t squares = counts[LAGS_SQUARES * lags + lag]; /* below 2^57 */

                    sums->weights += weight * (double)pairs;
                    sums->products += weight * (double)(voxels * voxels * products - 2 * voxels * total * values +
                                                        total * total * pairs);
                    sums->squares += weight * (double)(2 * ((int64_t)squares - (int64_t)products));
                }
            }
    sums->voxels = (double)voxels;
    sums->deviations = (double)(voxels * (pair_sum)counts[LAGS_SQUARES * lags] - total * total);
}

static int
spatial_correlation_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                           struct feature_value *values)
{
    const struct image_extent extent = feature_extent(region->volume);
    struct pair_sums sums = {0};
    enum feature_missing missing;
    struct texture_box box;
    double products_by = 1, squares_by = 1; /* so that all sums are times n */

    (void)set;
    texture_box_of(region->bits, &extent, &box);
    missing = spatial_correlation_missing(region, &box);
    if (missing == FEATURE_PRESENT && spatial_correlation_method(region->volume, &box) == BY_VALUES) {
        memcpy(&sums, counts, sizeof(sums));
        products_by = sums.voxels;
    } else if (missing == FEATURE_PRESENT) {
        pair_sums_take(counts, &box, region->volume->spacing, &sums);
        squares_by = sums.voxels;
    }
    if (missing == FEATURE_PRESENT && sums.voxels == 0)
        missing = FEATURE_EMPTY_REGION;
    else if (missing == FEATURE_PRESENT && !(sums.deviations > 0 && sums.voxels > 1))
        missing = FEATURE_ONE_GREY_LEVEL;
    if (missing == FEATURE_PRESENT) {
        values[MORAN] = feature_present(products_by * sums.products / (sums.deviations * sums.weights));
        values[GEARY] =
            feature_present((sums.voxels - 1) * squares_by * sums.squares / (2 * sums.deviations * sums.weights));
    } else
        values[MORAN] = values[GEARY] = feature_absent(missing);
    return 0;
}

const struct feature_family family_spatial_correlation = {
    .name = "spatial-correlation",
    .definitions = spatial_correlation_definitions,
    .definition_count = SPATIAL_CORRELATIONS,
    .needs = FEATURE_NEEDS_VALUES,
    .of_intensities = true,
    .space = FEATURE_OF_PLANE,
    .choice = TEXTURE_FAMILY_spatial_correlation,
    .op = KERNELS_LAGS,
    .count = spatial_correlation_count,
    .bytes = spatial_correlation_bytes,
    .values = spatial_correlation_values,
};
