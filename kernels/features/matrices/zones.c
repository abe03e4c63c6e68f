#include "kernels/features/matrices/zones.h"

#include "kernels/features/matrices/wide.h"

#include <math.h>
#include <string.h>

/* Head of a family's counts: the number of keys of each kind, followed by the keys. */
struct zones_told {
    uint64_t count[TEXTURE_ZONE_KINDS];
    uint64_t wide; /* keys are those of wide.h */
    struct texture_zone zones[];
};

int
zones_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    const struct texture_options *options = region->volume->options;
    const struct texture_zones request = {
        .levels = {region->levels, region->level_of, region->volume->tables},
        .region = region->bits,
        .distances = texture_wants(options, TEXTURE_FAMILY_gldzm),
        .in_slice = aggregation_is_2d(options->aggregation),
        .per_slice = aggregation_per_slice(options->aggregation),
    };
    struct texture_zone_list lists[TEXTURE_ZONE_KINDS] = {{NULL, 0}};
    int rc = region->wide ? wide_zones(region, &request, lists, error)
                          : texture_zones_run(region->volume->lane, &request, lists, error);

    (void)set;
    if (rc == 0) {
        const size_t all = lists[TEXTURE_ZONE_SIZES].count + lists[TEXTURE_ZONE_DISTANCES].count;
        const size_t size = sizeof(struct zones_told) + all * sizeof(struct texture_zone);
        rc = feature_counts_make(size / sizeof(**counts), counts, error);
        struct zones_told *told = (struct zones_told *)*counts;
        struct texture_zone *at = rc ? NULL : told->zones;

        if (rc == 0)
            told->wide = region->wide != NULL;

        for (int kind = 0; kind < TEXTURE_ZONE_KINDS && rc == 0; kind++) {
            told->count[kind] = lists[kind].count;
            if (lists[kind].count > 0)
                memcpy(at, lists[kind].zones, lists[kind].count * sizeof(*at));
            at += lists[kind].count;
        }
    }
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
        free(lists[kind].zones);
    return rc;
}

/*
 * Zones of k sizes have at least k * k / 2 voxels. There are most keys if all levels have equally
 * many sizes. A table uses four places per key, and two more while it grows. The family's counts
 * use one.
 */
size_t
zones_bytes(const struct feature_region *largest, size_t set)
{
    const struct feature_volume *volume = largest->volume;
    const bool per_slice = aggregation_per_slice(volume->options->aggregation);
    const double voxels = (double)volume->columns * (double)volume->rows * (double)volume->slices;
    const double levels = (double)largest->levels * (double)(per_slice ? volume->slices : 1);
    const double sizes = fmin(sqrt(2 * voxels * levels), voxels);
    const double side = fmin((double)volume->columns, (double)volume->rows);
    const double distances =
        texture_wants(volume->options, TEXTURE_FAMILY_gldzm) ? fmin(levels * (side / 2 + 1), voxels) : 0;

    (void)set;
    return (size_t)(6 * sizes + 5 * distances) * sizeof(struct texture_zone);
}

/* Returns the parts of a key. */
static struct level_cell
zones_cell(const struct zones_told *told, const struct texture_zone *zone, uint64_t *slice)
{
    const int values = told->wide ? WIDE_ZONE_VALUE_BITS : TEXTURE_ZONE_VALUE_BITS;
    const int levels = told->wide ? WIDE_ZONE_LEVEL_BITS : TEXTURE_ZONE_LEVEL_BITS;

    *slice = zone->key >> (values + levels);
    return (struct level_cell){zone->key >> values & ((UINT64_C(1) << levels) - 1),
                               zone->key & ((UINT64_C(1) << values) - 1), zone->count};
}

/* Lists the zones in the slice of the first one. Returns their number. */
static size_t
zones_of_slice(const struct zones_told *told, const struct texture_zone *zones, size_t count, struct level_cell *cells)
{
    uint64_t first = 0, slice;
    size_t z = 0;

    for (; z < count; z++) {
        cells[z] = zones_cell(told, &zones[z], &slice);
        if (z > 0 && slice != first)
            break;
        first = slice;
    }
    return z;
}

/* Both kinds have zones in the same slices. */
int
zones_values(const uint64_t *counts, enum texture_zone_kind kind, struct feature_value *values)
{
    const struct zones_told *told = (const struct zones_told *)counts;
    const struct texture_zone *sizes = told->zones, *sizes_end = sizes + told->count[0];
    const struct texture_zone *zones = kind == TEXTURE_ZONE_SIZES ? sizes : sizes_end;
    const struct texture_zone *end = zones + told->count[kind];
    const size_t most = told->count[0] > told->count[kind] ? told->count[0] : told->count[kind];
    struct level_cell *cells = malloc((most + 1) * sizeof(*cells));
    struct level_average average = {.matrices = 0};

    if (!cells)
        return -ENOMEM;
    while (zones < end) {
        const size_t of_sizes = zones_of_slice(told, sizes, (size_t)(sizes_end - sizes), cells);
        uint64_t voxels = 0;

        for (size_t z = 0; z < of_sizes; z++)
            voxels += cells[z].length * cells[z].count;
        const size_t count = zones_of_slice(told, zones, (size_t)(end - zones), cells);

        level_average_add(&average, cells, count, voxels);
        zones += count;
        sizes += of_sizes;
    }
    level_average_take(&average, ZONE_FEATURES, values);
    free(cells);
    return 0;
}
