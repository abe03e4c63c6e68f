/* glszm.c - grey level size zones (IBSI 3.8): sizes of zones of one level. */
#include "kernels/features/matrices/neighbourhood.h"
#include "kernels/features/matrices/zones.h"

static const struct feature_definition glszm_definitions[ZONE_FEATURES] = {
    {"small_zone_emphasis", "Small zone emphasis", "5QRC", .unit = "1"},
    {"large_zone_emphasis", "Large zone emphasis", "48P8", .unit = "1"},
    {"low_grey_level_zone_emphasis", "Low grey level zone emphasis", "XMSY", .unit = "1"},
    {"high_grey_level_zone_emphasis", "High grey level zone emphasis", "5GN9", .unit = "1"},
    {"small_zone_low_grey_level_emphasis", "Small zone low grey level emphasis", "5RAI", .unit = "1"},
    {"small_zone_high_grey_level_emphasis", "Small zone high grey level emphasis", "HW1V", .unit = "1"},
    {"large_zone_low_grey_level_emphasis", "Large zone low grey level emphasis", "YH51", .unit = "1"},
    {"large_zone_high_grey_level_emphasis", "Large zone high grey level emphasis", "J17V", .unit = "1"},
    {"grey_level_non_uniformity", "Grey level non-uniformity", "JNSA", .unit = "1"},
    {"normalised_grey_level_non_uniformity", "Normalised grey level non-uniformity", "Y1RO", .unit = "1"},
    {"zone_size_non_uniformity", "Zone size non-uniformity", "4JP3", .unit = "1"},
    {"normalised_zone_size_non_uniformity", "Normalised zone size non-uniformity", "VB3A", .unit = "1"},
    {"zone_percentage", "Zone percentage", "P30P", .unit = "1"},
    {"grey_level_variance", "Grey level variance", "BYLV", .unit = "1"},
    {"zone_size_variance", "Zone size variance", "3NSA", .unit = "1"},
    {"zone_size_entropy", "Zone size entropy", "GU8N", .unit = "1"},
};

static int
glszm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    (void)region;
    (void)set;
    return zones_values(counts, TEXTURE_ZONE_SIZES, values);
}

const struct feature_family family_glszm = {
    .name = "glszm",
    .definitions = glszm_definitions,
    .definition_count = ZONE_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .choice = TEXTURE_FAMILY_glszm,
    .describe = neighbourhood_describe,
    .op = KERNELS_ZONES,
    .count = zones_count,
    .bytes = zones_bytes,
    .values = glszm_values,
};
