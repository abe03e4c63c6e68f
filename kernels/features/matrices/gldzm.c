/* gldzm.c - grey level distance zones (IBSI 3.9): distances of zones of one level from the border
 * of the region's morphological mask. */
#include "kernels/features/matrices/neighbourhood.h"
#include "kernels/features/matrices/zones.h"

static const struct feature_definition gldzm_definitions[ZONE_FEATURES] = {
    {"small_distance_emphasis", "Small distance emphasis", "0GBI", .unit = "1"},
    {"large_distance_emphasis", "Large distance emphasis", "MB4I", .unit = "1"},
    {"low_grey_level_zone_emphasis", "Low grey level zone emphasis", "S1RA", .unit = "1"},
    {"high_grey_level_zone_emphasis", "High grey level zone emphasis", "K26C", .unit = "1"},
    {"small_distance_low_grey_level_emphasis", "Small distance low grey level emphasis", "RUVG", .unit = "1"},
    {"small_distance_high_grey_level_emphasis", "Small distance high grey level emphasis", "DKNJ", .unit = "1"},
    {"large_distance_low_grey_level_emphasis", "Large distance low grey level emphasis", "A7WM", .unit = "1"},
    {"large_distance_high_grey_level_emphasis", "Large distance high grey level emphasis", "KLTH", .unit = "1"},
    {"grey_level_non_uniformity", "Grey level non-uniformity", "VFT7", .unit = "1"},
    {"normalised_grey_level_non_uniformity", "Normalised grey level non-uniformity", "7HP3", .unit = "1"},
    {"zone_distance_non_uniformity", "Zone distance non-uniformity", "V294", .unit = "1"},
    {"normalised_zone_distance_non_uniformity", "Normalised zone distance non-uniformity", "IATH", .unit = "1"},
    {"zone_percentage", "Zone percentage", "VIWW", .unit = "1"},
    {"grey_level_variance", "Grey level variance", "QK93", .unit = "1"},
    {"zone_distance_variance", "Zone distance variance", "7WT1", .unit = "1"},
    {"zone_distance_entropy", "Zone distance entropy", "GBDU", .unit = "1"},
};

static int
gldzm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    (void)region;
    (void)set;
    return zones_values(counts, TEXTURE_ZONE_DISTANCES, values);
}

const struct feature_family family_gldzm = {
    .name = "gldzm",
    .definitions = gldzm_definitions,
    .definition_count = ZONE_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .choice = TEXTURE_FAMILY_gldzm,
    .describe = neighbourhood_describe,
    .op = KERNELS_ZONES,
    .count = zones_count,
    .bytes = zones_bytes,
    .values = gldzm_values,
};
