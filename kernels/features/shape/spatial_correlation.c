/*
 * spatial_correlation.c - spatial autocorrelation of values (IBSI 3.1.28, 3.1.29): Moran's I and
 * Geary's C over all pairs of the intensity mask, weighted by the inverse of their distance in mm.
 */
#include "kernels/features/shape/shape.h"
#include "kernels/morphology/lags.h"

#include <math.h>
#include <stdlib.h>

enum { MORAN, GEARY, SPATIAL_CORRELATIONS };

static const struct feature_definition spatial_correlation_definitions[SPATIAL_CORRELATIONS] = {
    {"morans_i", "Moran's I index", "N365", .unit = "1"},
    {"gearys_c", "Geary's C measure", "NPT7", .unit = "1"},
};

__extension__ typedef __int128 pair_sum; /* max 2^24 voxels, squared, times pairs of 16-bit squares */

/* Returns the reason why a region has no values, before counting; FEATURE_PRESENT: it may have
 * them. */
static enum feature_missing
spatial_correlation_missing(const struct feature_region *region, const struct texture_box *box)
{
    const struct feature_volume *volume = region->volume;
    int64_t length[3];

    for (size_t i = 1; i < volume->tables; i++)
        if (volume->rescales[i].slope != volume->rescales[0].slope ||
            volume->rescales[i].intercept != volume->rescales[0].intercept)
            return FEATURE_RESCALE_VARIES;
    if (box->size[0] == 0)
        return FEATURE_EMPTY_REGION;
    return lags_lengths(box->size, length) ? FEATURE_PRESENT : FEATURE_TOO_LARGE;
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

    (void)set;
    return LAGS_KINDS * (size_t)(voxels < most ? voxels : most) * sizeof(uint64_t);
}

/* ----------------------------------------------------------------------------------- values ---- */

/* Weighted sums over all pairs of two voxels: of 1, of the products of their deviations from the
 * mean times n^2, and of the squares of their differences. */
struct pair_sums {
    double weights, products, squares;
};

static void
pair_sums_take(const uint64_t *counts, const struct texture_box *box, const double spacing[3], struct pair_sums *sums)
{
    const size_t lags = lags_size(box) / LAGS_KINDS;
    size_t lag = 0;

    for (int64_t slice = 0; slice < box->size[2]; slice++)
        for (int64_t row = 0; row < box->size[1]; row++)
            for (int64_t column = 0; column < box->size[0]; column++, lag++) {
                const double x = (double)column * spacing[0], y = (double)row * spacing[1];
                const double z = (double)slice * spacing[2];

                /* false for half of the lags in a ball's box */
                if (lag > 0 && counts[LAGS_PAIRS * lags + lag] > 0) {
                    /* The sums over all voxels' values, and their squares, are at lag 0. */
                    const double weight = 1 / sqrt(x * x + y * y + z * z);
                    const pair_sum voxels = counts[LAGS_PAIRS * lags], total = counts[LAGS_VALUES * lags];
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
}

static int
spatial_correlation_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                           struct feature_value *values)
{
    const struct image_extent extent = feature_extent(region->volume);
    struct pair_sums sums = {0};
    enum feature_missing missing;
    struct texture_box box;

    (void)set;
    texture_box_of(region->bits, &extent, &box);
    missing = spatial_correlation_missing(region, &box);
    if (missing == FEATURE_PRESENT)
        pair_sums_take(counts, &box, region->volume->spacing, &sums);
    const size_t lags = lags_size(&box) / LAGS_KINDS;
    if (missing == FEATURE_PRESENT && counts[LAGS_PAIRS * lags] == 0)
        missing = FEATURE_EMPTY_REGION;
    else if (missing == FEATURE_PRESENT && sums.squares == 0)
        missing = FEATURE_ONE_GREY_LEVEL;
    if (missing == FEATURE_PRESENT) {
        const pair_sum voxels = counts[LAGS_PAIRS * lags], total = counts[LAGS_VALUES * lags];
        const double deviations = /* sum of their squares, times n */
            (double)(voxels * (pair_sum)counts[LAGS_SQUARES * lags] - total * total);
        const double n = (double)voxels;

        values[MORAN] = feature_present(sums.products / (deviations * sums.weights));
        values[GEARY] = feature_present((n - 1) * n * sums.squares / (2 * deviations * sums.weights));
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
    .choice = TEXTURE_FAMILY_spatial_correlation,
    .op = KERNELS_LAGS,
    .count = spatial_correlation_count,
    .bytes = spatial_correlation_bytes,
    .values = spatial_correlation_values,
};
