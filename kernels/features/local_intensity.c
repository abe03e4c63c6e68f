/* local_intensity.c - local and global intensity peak (IBSI 3.2): the largest mean of 1 cm3. */
#include "kernels/features/family.h"
#include "kernels/peaks/peaks.h"

#include <math.h>
#include <string.h>

enum { LOCAL_INTENSITY_PEAK, GLOBAL_INTENSITY_PEAK, LOCAL_INTENSITY_FEATURES };

static const struct feature_definition local_intensity_definitions[LOCAL_INTENSITY_FEATURES] = {
    {"local_intensity_peak", "Local intensity peak", "VJGA", .unit = "", .value_power = 1},
    {"global_intensity_peak", "Global intensity peak", "0F91", .unit = "", .value_power = 1},
};

static int
local_intensity_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    const struct feature_volume *volume = region->volume;
    struct peaks request = {
        .region = region->bits,
        .rescales = volume->rescales,
        .paddings = volume->paddings,
        .table_count = volume->tables,
        .kept = {region->kept[0], region->kept[1]},
        .largest = region->extremes[1],
    };
    struct peaks_found found = {.balls = 0};
    int rc = feature_counts_make(sizeof(found) / sizeof(**counts), counts, error);

    (void)set;
    memcpy(request.spacing, volume->spacing, sizeof(request.spacing));
    const struct image_extent extent = feature_extent(volume);

    if (rc == 0 && isfinite(request.largest) && !peaks_too_fine(volume->spacing) && volume->reals)
        rc = peaks_of_reals(&request, volume->reals, &extent, &found) ? error_set_system(error, -ENOMEM, "find peaks")
                                                                      : 0;
    else if (rc == 0 && isfinite(request.largest) && !peaks_too_fine(volume->spacing))
        rc = peaks_run(volume->lane, &request, &found, error);
    if (rc == 0)
        memcpy(*counts, &found, sizeof(found));
    return rc;
}

static int
local_intensity_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                       struct feature_value *values)
{
    struct peaks_found found;

    (void)set;
    memcpy(&found, counts, sizeof(found));
    if (found.balls > 0) {
        values[LOCAL_INTENSITY_PEAK] = feature_present(found.local);
        values[GLOBAL_INTENSITY_PEAK] = feature_present(found.global);
    } else if (peaks_too_fine(region->volume->spacing)) {
        values[LOCAL_INTENSITY_PEAK] = values[GLOBAL_INTENSITY_PEAK] = feature_absent(FEATURE_TOO_LARGE);
    }
    return 0;
}

/* Returns the sums before each voxel of real-world values (peaks.c). */
static size_t
local_intensity_bytes(const struct feature_region *largest, size_t set)
{
    const struct image_extent extent = feature_extent(largest->volume);

    (void)set;
    return largest->volume->reals ? 2 * (size_t)image_voxels(&extent) * sizeof(int64_t) : 0;
}

const struct feature_family family_local_intensity = {
    .name = "local-intensity",
    .definitions = local_intensity_definitions,
    .definition_count = LOCAL_INTENSITY_FEATURES,
    .needs = FEATURE_NEEDS_VALUES,
    .margin_mm = PEAKS_RADIUS_MM,
    .of_intensities = true,
    .space = FEATURE_OF_VOLUME,
    .choice = TEXTURE_FAMILY_local_intensity,
    .op = KERNELS_PEAKS,
    .counted_last = true,
    .count = local_intensity_count,
    .bytes = local_intensity_bytes,
    .values = local_intensity_values,
};
