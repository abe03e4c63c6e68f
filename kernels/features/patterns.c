#include "kernels/features/patterns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CODES = 256 };

static bool
patterns_wanted(const struct texture_options *options)
{
    return options->patterns != 0;
}

static size_t
patterns_sets(const struct texture_options *options)
{
    return (size_t)__builtin_popcount(options->patterns);
}

/* A set is one of the requested patterns. */
static enum texture_pattern
patterns_of_set(const struct texture_options *options, size_t set)
{
    unsigned left = options->patterns;

    while (set-- > 0)
        left &= left - 1;
    return (enum texture_pattern)__builtin_ctz(left);
}

static void
patterns_title(const struct texture_options *options, size_t set, struct feature_title *title)
{
    static const struct coded_concept quantities[TEXTURE_PATTERNS] = {
#define PATTERN(id, name, scheme, code, meaning) {code, CONCEPT_OWN_SCHEME, meaning},
#include "base/terms.def"
    };
    const enum texture_pattern pattern = patterns_of_set(options, set);

    *title = (struct feature_title){
        .word = texture_pattern_names[pattern],
        .quantity = quantities[pattern],
        .place = (int32_t)pattern,
    };
    if (pattern == TEXTURE_TLBAP)
        snprintf(title->settings, sizeof(title->settings), "threshold=%.7g%s",
                 patterns_request(options).threshold_millionths / 1e6, options->tlbap_strict ? ",strict" : "");
    else if (pattern == TEXTURE_LANADP && options->lanadp_integer)
        snprintf(title->settings, sizeof(title->settings), "integer");
}

struct texture_patterns
patterns_request(const struct texture_options *options)
{
    struct texture_patterns request = {
        .threshold_millionths = (int32_t)lround(options->tlbap_threshold * 1e6),
        .strict = options->tlbap_strict,
        .integer_average = options->lanadp_integer,
    };

    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        request.wanted[p] = (options->patterns & 1u << p) != 0;
    return request;
}

/* Returns one code per voxel not on its slice's edge. */
static size_t
patterns_map_size(const struct feature_volume *volume)
{
    const struct image_extent extent = feature_extent(volume);

    return texture_patterns_codes(&extent);
}

static const void *
patterns_demand(const struct texture_options *options, bool maps)
{
    return &texture_patterns_demands[maps ? patterns_sets(options) : 0];
}

/* Returns the size of the histograms of all regions and patterns (struct texture_patterns). */
static size_t
patterns_prepared_size(const struct feature_volume *volume)
{
    return volume->region_count * TEXTURE_PATTERNS * CODES * sizeof(uint64_t);
}

static int
patterns_prepare(const struct feature_volume *volume, void *prepared, struct feature_map *maps, struct error *error)
{
    struct texture_patterns request = patterns_request(volume->options);
    int rc;

    request.regions = volume->regions;
    request.region_count = volume->region_count;
    request.histograms = (uint64_t *)prepared;
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        request.maps[p] = maps && request.wanted[p];
    rc = texture_patterns_run(volume->lane, &request, error);
    for (int p = 0; p < TEXTURE_PATTERNS && maps && rc == 0; p++)
        if (request.maps[p])
            maps++->codes = texture_patterns_map(volume->lane, (enum texture_pattern)p);
    return rc;
}

static int
patterns_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    const uint64_t *histograms = (const uint64_t *)region->prepared;
    const enum texture_pattern pattern = patterns_of_set(region->volume->options, set);
    const int rc = feature_counts_make(CODES, counts, error);

    if (rc == 0)
        memcpy(*counts, histograms + (region->number * TEXTURE_PATTERNS + pattern) * CODES, CODES * sizeof(**counts));
    return rc;
}

const struct feature_family family_patterns = {
    .name = "patterns",
    .keeps = FEATURE_KEEPS_HISTOGRAM,
    .wanted = patterns_wanted,
    .sets = patterns_sets,
    .title = patterns_title,
    .prepared_size = patterns_prepared_size,
    .prepare = patterns_prepare,
    .map_size = patterns_map_size,
    .no_map = "texture: slices of less than 3 x 3 voxels have no patterns",
    .op = KERNELS_PATTERNS,
    .demand = patterns_demand,
    .count = patterns_count,
};
