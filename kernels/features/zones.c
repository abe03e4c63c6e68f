/* zones.c - see zones.h. */
#include "kernels/features/zones.h"

#include "kernels/texture/texture.h"

#include <errno.h>
#include <stdlib.h>

/* Each voxel with a level may be a zone. */
size_t
zones_list_size(const struct feature_region *region)
{
    const size_t entries = region->volume->tables * region->volume->values;
    size_t voxels = 0;

    for (size_t i = 0; i < entries; i++)
        voxels += region->level_of[i] > 0 ? region->histograms[i] : 0;
    return voxels + 1;
}

int
zones_list_count(const struct feature_region *region, bool of_distances, uint64_t *list,
                 struct error *error)
{
    const enum aggregation aggregation = region->volume->options->aggregation;
    const struct texture_zones request = {
        .levels = {region->levels, region->level_of, region->volume->tables},
        .region = region->bits,
        .of_distances = of_distances,
        .in_slice = aggregation_is_2d(aggregation),
        .per_slice = aggregation_per_slice(aggregation),
    };

    return texture_zones_run(region->volume->lane, &request, list + 1, list, error);
}

/* Cells of the zones of one slice, from first on; returns where the next slice begins. */
static size_t
zones_take_slice(const uint64_t *list, size_t first, struct level_cell *cells, size_t *count)
{
    const uint64_t *keys = list + 1;
    size_t z = first;

    *count = 0;
    for (; z < list[0] && texture_zone_slice(keys[z]) == texture_zone_slice(keys[first]); z++) {
        if (z == first || keys[z] != keys[z - 1])
            cells[(*count)++] =
                (struct level_cell){texture_zone_level(keys[z]), texture_zone_value(keys[z]), 0};
        cells[*count - 1].count++;
    }
    return z;
}

int
zones_list_values(const uint64_t *list, const uint64_t *sizes, struct feature_value *values)
{
    struct level_cell *cells = malloc((list[0] + 1) * sizeof(*cells));
    struct level_average average = {.matrices = 0};
    size_t count;

    if (!cells)
        return -ENOMEM;
    for (size_t first = 0, next; first < list[0]; first = next) {
        uint64_t voxels = 0;

        next = zones_take_slice(list, first, cells, &count);
        for (size_t z = first; z < next; z++) /* as many zones by size, in the same slices */
            voxels += texture_zone_value(sizes[1 + z]);
        level_average_add(&average, cells, count, voxels);
    }
    level_average_take(&average, ZONE_FEATURES, values);
    free(cells);
    return 0;
}
