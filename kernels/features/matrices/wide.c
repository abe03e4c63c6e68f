/* wide.c - see wide.h. */
#include "kernels/features/matrices/wide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A region's levels, and the box of its bits. */
struct wide {
    const uint32_t *levels;
    struct image_extent extent;
    struct texture_box box;
};

static struct wide
wide_of(const struct feature_region *region)
{
    struct wide wide = {.levels = region->wide, .extent = feature_extent(region->volume)};

    texture_box_of(region->bits, &wide.extent, &wide.box);
    return wide;
}

static int64_t
wide_index(const struct wide *wide, const int64_t at[3])
{
    return (at[2] * wide->extent.rows + at[1]) * wide->extent.columns + at[0];
}

/* Returns the level of a voxel; 0: none, or outside the volume. */
static uint32_t
wide_level(const struct wide *wide, const int64_t at[3])
{
    const bool inside = at[0] >= 0 && at[0] < wide->extent.columns && at[1] >= 0 && at[1] < wide->extent.rows &&
                        at[2] >= 0 && at[2] < wide->extent.slices;

    return inside ? wide->levels[wide_index(wide, at)] : 0;
}

/* Moves to the next voxel of the box with a level. Begin with at[0] one before the first. Returns false at the end. */
static bool
wide_next(const struct wide *wide, int64_t at[3])
{
    const int64_t *first = wide->box.first, *size = wide->box.size;

    do
        if (++at[0] >= first[0] + size[0]) {
            at[0] = first[0];
            if (++at[1] >= first[1] + size[1]) {
                at[1] = first[1];
                if (++at[2] >= first[2] + size[2])
                    return false;
            }
        }
    while (wide->levels[wide_index(wide, at)] == 0);
    return true;
}

#define WIDE_EACH(wide, at)                                                                                            \
    for (int64_t at[3] = {(wide).box.first[0] - 1, (wide).box.first[1], (wide).box.first[2]};                          \
         (wide).box.size[0] > 0 && wide_next(&(wide), at);)

void
wide_glcm(const struct feature_region *region, const struct texture_glcm *request, uint64_t *counts)
{
    const struct wide wide = wide_of(region);
    const size_t levels = (size_t)region->levels;

    WIDE_EACH(wide, at)
    for (size_t o = 0; o < request->offset_count; o++) {
        const struct texture_offset *offset = &request->offsets[o];
        const int64_t there[3] = {at[0] + offset->x, at[1] + offset->y, at[2] + offset->z};
        const uint32_t level = wide.levels[wide_index(&wide, at)], other = wide_level(&wide, there);
        const size_t matrix = (request->per_slice ? (size_t)at[2] * request->offset_count : 0) + o;

        if (other > 0)
            counts[(matrix * levels + level - 1) * levels + other - 1]++;
    }
}

void
wide_runs(const struct feature_region *region, const struct texture_runs *request, uint64_t *counts)
{
    const struct wide wide = wide_of(region);
    const size_t levels = (size_t)region->levels;

    WIDE_EACH(wide, at)
    for (size_t d = 0; d < request->direction_count; d++) {
        const struct texture_offset *step = &request->directions[d];
        const uint32_t level = wide.levels[wide_index(&wide, at)];
        int64_t there[3] = {at[0] - step->x, at[1] - step->y, at[2] - step->z}, length = 0;
        const size_t matrix = (request->per_slice ? (size_t)at[2] * request->direction_count : 0) + d;

        if (wide_level(&wide, there) == level)
            continue; /* not the run's first voxel */
        do {
            length++;
            there[0] = at[0] + length * step->x;
            there[1] = at[1] + length * step->y;
            there[2] = at[2] + length * step->z;
        } while (wide_level(&wide, there) == level);
        counts[(matrix * levels + level - 1) * (size_t)request->longest + (size_t)length - 1]++;
    }
}

void
wide_neighbours(const struct feature_region *region, const struct texture_neighbours *request, uint64_t *counts)
{
    const struct wide wide = wide_of(region);
    const size_t levels = (size_t)region->levels, width = texture_neighbours_width(request);
    const int64_t reach = request->distance, deep = request->in_slice ? 0 : reach;

    WIDE_EACH(wide, at)
    {
        const int64_t level = wide.levels[wide_index(&wide, at)];
        const size_t slice = request->per_slice ? (size_t)at[2] : 0;
        int64_t present = 0, alike = 0, sum = 0;

        for (int64_t z = at[2] - deep; z <= at[2] + deep; z++)
            for (int64_t y = at[1] - reach; y <= at[1] + reach; y++)
                for (int64_t x = at[0] - reach; x <= at[0] + reach; x++) {
                    const int64_t other = wide_level(&wide, (int64_t[3]){x, y, z});

                    if (other == 0 || (x == at[0] && y == at[1] && z == at[2]))
                        continue;
                    present++;
                    alike += llabs(other - level) <= request->alpha;
                    sum += other;
                }
        uint64_t *const of = counts + (slice * TEXTURE_NEIGHBOUR_KINDS * levels + (size_t)level - 1) * width;

        of[TEXTURE_ALIKE * levels * width + (size_t)alike]++;
        of[TEXTURE_PRESENT * levels * width + (size_t)present]++;
        of[TEXTURE_DEVIATION * levels * width + (size_t)present] += (uint64_t)llabs(present * level - sum);
    }
}

/* ---- zones ---- */

/* Lowers the distances along an axis, in both directions, by city-block steps. */
static void
wide_sweep(const struct image_extent *extent, int axis, uint32_t *distances)
{
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    const int64_t strides[3] = {1, extent->columns, image_slice_voxels(extent)};
    const int64_t side = sides[axis], stride = strides[axis];

    for (int64_t line = 0; line < image_voxels(extent) / side; line++) {
        uint32_t *first = distances + line / stride * stride * side + line % stride;

        for (int back = 0; back < 2; back++) {
            uint32_t steps = 0;

            for (int64_t i = 0; i < side; i++) {
                uint32_t *at = first + (back ? side - 1 - i : i) * stride;

                steps = steps + 1 < *at ? steps + 1 : *at;
                *at = steps;
            }
        }
    }
}

/* Makes the distances of all voxels to the nearest one outside the region or the volume. Returns NULL without memory. */
static uint32_t *
wide_distances(const struct feature_region *region, const struct image_extent *extent, bool in_slice)
{
    const int64_t columns = extent->columns;
    uint32_t *distances = malloc((size_t)image_voxels(extent) * sizeof(*distances));

    for (int64_t row = 0; distances && row < extent->rows * extent->slices; row++)
        for (int64_t x = 0; x < columns; x++)
            distances[row * columns + x] = image_has(region->bits, columns, row, x) ? UINT32_MAX : 0;
    for (int axis = 0; distances && axis < (in_slice ? 2 : 3); axis++)
        wide_sweep(extent, axis, distances);
    return distances;
}

static int
wide_key_compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* Sorts keys, and lists each with its count. */
static int
wide_list(uint64_t *keys, size_t count, struct texture_zone_list *list)
{
    qsort(keys, count, sizeof(*keys), wide_key_compare);
    list->zones = malloc((count + 1) * sizeof(*list->zones));
    if (!list->zones)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || keys[i] != keys[i - 1])
            list->zones[list->count++] = (struct texture_zone){keys[i], 0};
        list->zones[list->count - 1].count++;
    }
    return 0;
}

/* The work of a call, for all voxels: keys of sizes and of distances, visited voxels, and those of a zone to visit. */
struct wide_work {
    uint64_t *keys[TEXTURE_ZONE_KINDS];
    uint8_t *seen;
    int32_t *stack;
    uint32_t *distances;
};

/* Visits the zone of a voxel. Returns its size, and its smallest distance if there are distances. */
static uint64_t
wide_flood(const struct wide *wide, bool in_slice, const int64_t from[3], struct wide_work *work, uint32_t *distance)
{
    const int64_t deep = in_slice ? 0 : 1;
    const uint32_t level = wide->levels[wide_index(wide, from)];
    uint64_t size = 0;
    size_t left = 1;

    work->stack[0] = (int32_t)wide_index(wide, from);
    work->seen[work->stack[0]] = 1;
    *distance = UINT32_MAX;
    while (left > 0) {
        const int64_t i = work->stack[--left], row = i / wide->extent.columns;
        const int64_t at[3] = {i % wide->extent.columns, row % wide->extent.rows, row / wide->extent.rows};

        size++;
        if (work->distances && work->distances[i] < *distance)
            *distance = work->distances[i];
        for (int64_t z = at[2] - deep; z <= at[2] + deep; z++)
            for (int64_t y = at[1] - 1; y <= at[1] + 1; y++)
                for (int64_t x = at[0] - 1; x <= at[0] + 1; x++) {
                    const int64_t there[3] = {x, y, z};

                    if (wide_level(wide, there) != level || work->seen[wide_index(wide, there)])
                        continue;
                    work->seen[wide_index(wide, there)] = 1;
                    work->stack[left++] = (int32_t)wide_index(wide, there);
                }
    }
    return size;
}

/* Makes the keys of all zones. Returns the number of zones. */
static size_t
wide_find_zones(const struct wide *wide, const struct texture_zones *request, struct wide_work *work)
{
    size_t count = 0;

    WIDE_EACH(*wide, at)
    {
        const uint64_t slice = request->per_slice ? (uint64_t)at[2] : 0;
        const uint64_t group = slice << WIDE_ZONE_LEVEL_BITS | wide->levels[wide_index(wide, at)];
        uint32_t distance;

        if (work->seen[wide_index(wide, at)])
            continue;
        const uint64_t size = wide_flood(wide, request->in_slice, at, work, &distance);

        work->keys[TEXTURE_ZONE_SIZES][count] = group << WIDE_ZONE_VALUE_BITS | size;
        work->keys[TEXTURE_ZONE_DISTANCES][count++] = group << WIDE_ZONE_VALUE_BITS | distance;
    }
    return count;
}

int
wide_zones(const struct feature_region *region, const struct texture_zones *request,
           struct texture_zone_list lists[TEXTURE_ZONE_KINDS], struct error *error)
{
    const struct wide wide = wide_of(region);
    const size_t voxels = (size_t)image_voxels(&wide.extent);
    struct wide_work work = {.seen = NULL};
    size_t count = 0, levels = 0;
    int rc = 0;

    if (voxels >= UINT64_C(1) << WIDE_ZONE_VALUE_BITS)
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE, "zones of more than %d levels exceed 2^31 voxels",
                         TEXTURE_MAX_LEVELS);
    for (size_t i = 0; i < voxels; i++)
        levels += wide.levels[i] > 0;
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
        work.keys[kind] = malloc((levels + 1) * sizeof(**work.keys));
    work.stack = malloc((levels + 1) * sizeof(*work.stack));
    work.seen = calloc(voxels, sizeof(*work.seen));
    if (request->distances)
        work.distances = wide_distances(region, &wide.extent, request->in_slice);
    if (!work.keys[0] || !work.keys[1] || !work.stack || !work.seen || (request->distances && !work.distances))
        rc = -ENOMEM;
    else
        count = wide_find_zones(&wide, request, &work);
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS && rc == 0; kind++)
        if (kind == TEXTURE_ZONE_SIZES || request->distances)
            rc = wide_list(work.keys[kind], count, &lists[kind]);
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
        free(work.keys[kind]);
    free(work.stack);
    free(work.seen);
    free(work.distances);
    return rc ? error_set_system(error, rc, "count zones") : 0;
}
