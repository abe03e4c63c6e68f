/* pattern_maps.c - see pattern_maps.h. One run of the kernels for all regions. */
#include "service/pipeline/measure/pattern_maps.h"

#include "base/error.h"

#include "kernels/features/patterns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A code for each voxel that is not on its slice's edge; 0 where there is none. */
static size_t
pattern_map_size(const struct geometry_stack *stack)
{
    if (stack->columns < 3 || stack->rows < 3)
        return 0;
    return (size_t)(stack->columns - 2) * (size_t)(stack->rows - 2) * (size_t)stack->plane_count;
}

static int
pattern_maps_make(const struct texture_request *request, struct texture_result *result)
{
    const size_t size = pattern_map_size(request->stack);
    for (int p = 0; p < TEXTURE_PATTERNS && size > 0; p++) {
        if (!pattern_wanted(request->options, (enum texture_pattern)p))
            continue;
        result->maps[p] = malloc(size);
        if (!result->maps[p])
            return -ENOMEM;
    }
    if (size == 0)
        texture_note(result, "texture: slices of less than 3 x 3 voxels have no patterns");
    return 0;
}

static int
pattern_histograms_add(const struct texture_request *request, const uint64_t *counts,
                       struct feature_set *set)
{
    set->histograms = calloc(request->region_count * patterns_wanted(request->options) + 1,
                             sizeof *set->histograms);
    if (!set->histograms)
        return -ENOMEM;
    for (size_t r = 0; r < request->region_count; r++) {
        for (int p = 0; p < TEXTURE_PATTERNS; p++) {
            const enum texture_pattern pattern = (enum texture_pattern)p;
            if (!pattern_wanted(request->options, pattern))
                continue;
            struct feature_histogram *histogram = &set->histograms[set->histogram_count++];
            histogram->segment = request->regions[r].segment;
            snprintf(histogram->label, sizeof histogram->label, "%s", request->regions[r].label);
            snprintf(histogram->pattern, sizeof histogram->pattern, "%s", texture_pattern_names[p]);
            pattern_settings(request->options, pattern, histogram->settings);
            memcpy(histogram->counts, counts + (r * TEXTURE_PATTERNS + (size_t)p) * 256,
                   sizeof histogram->counts);
        }
    }
    return 0;
}

static int
patterns_run(const struct texture_request *request, const struct texture_result *result,
             const uint64_t **regions, uint64_t *counts, struct error *error)
{
    struct texture_patterns run = patterns_request(request->options);
    for (size_t r = 0; r < request->region_count; r++)
        regions[r] = request->regions[r].bits;
    run.regions = regions;
    run.region_count = request->region_count;
    run.histograms = counts;
    memcpy(run.maps, result->maps, sizeof run.maps);
    return texture_patterns_run(request->lane, &run, error);
}

int
texture_measure_patterns(const struct texture_request *request, struct texture_result *result,
                         struct error *error)
{
    const size_t count = request->region_count;
    const uint64_t **regions = calloc(count, sizeof *regions);
    uint64_t *counts = calloc(count * TEXTURE_PATTERNS * 256, sizeof *counts);
    int rc = regions && counts ? 0 : -ENOMEM;
    if (rc == 0 && request->maps)
        rc = pattern_maps_make(request, result);
    if (rc == 0)
        rc = patterns_run(request, result, regions, counts, error);
    if (rc == 0)
        rc = pattern_histograms_add(request, counts, &result->features);
    free(regions);
    free(counts);
    return rc == -ENOMEM ? error_set_system(error, rc, "measure texture") : rc;
}
