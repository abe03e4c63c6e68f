#include "tests/kernels/ref_texture.h"

#include "tests/kernels/ref_volumes.h"

#include <stdlib.h>
#include <string.h>

size_t
ref_texture_values(enum image_pixel pixel)
{
    return pixel == IMAGE_UINT8 ? 256 : 65536;
}

int32_t
ref_texture_smallest(enum image_pixel pixel)
{
    return pixel == IMAGE_INT16 ? -32768 : 0;
}

bool
ref_in_region(const uint64_t *region, struct image_extent extent, int64_t x, int64_t y, int64_t z)
{
    const int64_t words = (extent.columns + 63) / 64;

    return !region || region[(z * extent.rows + y) * words + x / 64] >> (x % 64) & 1;
}

/* Returns the index of a voxel's stored value in a table or a histogram. */
static size_t
place_of(struct image_extent extent, enum image_pixel pixel, const void *voxels, int64_t x, int64_t y, int64_t z)
{
    const int64_t voxel = (z * extent.rows + y) * extent.columns + x;

    return (size_t)(ref_stored(pixel, voxels, voxel) - ref_texture_smallest(pixel));
}

struct scene {
    struct image_extent extent;
    enum image_pixel pixel;
    const void *voxels;
    const struct texture_levels *levels;
    const uint64_t *region;
};

/* Returns the level of a voxel, or 0 if it does not count: without a level, outside the region or the volume. */
static int
level_at(const struct scene *scene, int64_t x, int64_t y, int64_t z)
{
    const struct texture_levels *levels = scene->levels;
    const struct image_extent extent = scene->extent;
    const size_t values = ref_texture_values(scene->pixel);

    if (x < 0 || y < 0 || z < 0 || x >= extent.columns || y >= extent.rows || z >= extent.slices)
        return 0;
    if (!ref_in_region(scene->region, extent, x, y, z))
        return 0;
    return levels->level_of[(levels->table_count > 1 ? (size_t)z * values : 0) +
                            place_of(extent, scene->pixel, scene->voxels, x, y, z)];
}

static void
count_pair(const struct scene *scene, const struct texture_glcm *request, size_t o, int64_t x, int64_t y, int64_t z,
           uint64_t *counts)
{
    const struct texture_offset offset = request->offsets[o];
    const size_t n = (size_t)request->levels.levels;
    const size_t matrix = (request->per_slice ? (size_t)z : 0) * request->offset_count + o;
    const int i = level_at(scene, x, y, z);
    const int j = level_at(scene, x + offset.x, y + offset.y, z + offset.z);

    if (i > 0 && j > 0)
        counts[(matrix * n + (size_t)i - 1) * n + (size_t)j - 1]++;
}

void
ref_texture_glcm(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                 const struct texture_glcm *request, uint64_t *counts)
{
    const struct scene scene = {extent, pixel, voxels, &request->levels, request->region};
    const size_t square = (size_t)request->levels.levels * (size_t)request->levels.levels;
    const size_t slices = request->per_slice ? (size_t)extent.slices : 1;

    memset(counts, 0, slices * request->offset_count * square * sizeof(*counts));
    for (size_t o = 0; o < request->offset_count; o++)
        for (int64_t z = 0; z < extent.slices; z++)
            for (int64_t y = 0; y < extent.rows; y++)
                for (int64_t x = 0; x < extent.columns; x++)
                    count_pair(&scene, request, o, x, y, z, counts);
}

void
ref_texture_histogram(struct image_extent extent, enum image_pixel pixel, const void *voxels, const uint64_t *region,
                      bool per_slice, uint64_t *counts)
{
    const size_t values = ref_texture_values(pixel);
    const size_t histograms = per_slice ? (size_t)extent.slices : 1;

    memset(counts, 0, histograms * values * sizeof(*counts));
    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++)
                if (ref_in_region(region, extent, x, y, z))
                    counts[(per_slice ? (size_t)z * values : 0) + place_of(extent, pixel, voxels, x, y, z)]++;
}

struct neighbourhood {
    size_t present, alike;
    int64_t sum;
};

static struct neighbourhood
neighbourhood_at(const struct scene *scene, const struct texture_neighbours *request, int64_t x, int64_t y, int64_t z)
{
    const int64_t d = request->distance, deep = request->in_slice ? 0 : d;
    const int own = level_at(scene, x, y, z);
    struct neighbourhood found = {0, 0, 0};

    for (int64_t dz = -deep; dz <= deep; dz++)
        for (int64_t dy = -d; dy <= d; dy++)
            for (int64_t dx = -d; dx <= d; dx++) {
                const int level = level_at(scene, x + dx, y + dy, z + dz);

                if (level == 0 || (dx == 0 && dy == 0 && dz == 0))
                    continue;
                found.present++;
                found.alike += abs(level - own) <= request->alpha;
                found.sum += level;
            }
    return found;
}

void
ref_texture_neighbours(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                       const struct texture_neighbours *request, uint64_t *counts)
{
    const struct scene scene = {extent, pixel, voxels, &request->levels, request->region};
    const size_t width = texture_neighbours_width(request);
    const size_t plane = (size_t)request->levels.levels * width;
    const size_t entries = TEXTURE_NEIGHBOUR_KINDS * plane;

    memset(counts, 0, (request->per_slice ? (size_t)extent.slices : 1) * entries * sizeof(*counts));
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t x = i % extent.columns, y = i / extent.columns % extent.rows;
        const int64_t z = i / extent.columns / extent.rows, level = level_at(&scene, x, y, z);
        const struct neighbourhood found = neighbourhood_at(&scene, request, x, y, z);
        uint64_t *own = counts + (request->per_slice ? (size_t)z * entries : 0) + (size_t)(level - 1) * width;

        if (level == 0)
            continue;
        own[TEXTURE_ALIKE * plane + found.alike]++;
        own[TEXTURE_PRESENT * plane + found.present]++;
        own[TEXTURE_DEVIATION * plane + found.present] += (uint64_t)llabs((int64_t)found.present * level - found.sum);
    }
}

/* Counts a run at its last voxel, by going back from there. */
static void
count_run(const struct scene *scene, const struct texture_runs *request, size_t d, int64_t x, int64_t y, int64_t z,
          uint64_t *counts)
{
    const struct texture_offset to = request->directions[d];
    const int level = level_at(scene, x, y, z);
    const size_t matrix = (request->per_slice ? (size_t)z : 0) * request->direction_count + d;
    int64_t length = 1;

    if (level == 0 || level_at(scene, x + to.x, y + to.y, z + to.z) == level)
        return;
    while (level_at(scene, x - length * to.x, y - length * to.y, z - length * to.z) == level)
        length++;
    counts[(matrix * (size_t)request->levels.levels + (size_t)level - 1) * (size_t)request->longest + (size_t)length -
           1]++;
}

void
ref_texture_runs(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                 const struct texture_runs *request, uint64_t *counts)
{
    const struct scene scene = {extent, pixel, voxels, &request->levels, request->region};

    memset(counts, 0, texture_runs_size(request, extent.slices) * sizeof(*counts));
    for (size_t d = 0; d < request->direction_count; d++)
        for (int64_t z = 0; z < extent.slices; z++)
            for (int64_t y = 0; y < extent.rows; y++)
                for (int64_t x = 0; x < extent.columns; x++)
                    count_run(&scene, request, d, x, y, z, counts);
}

/* Returns the steps out of the region or the volume, by trying one length after the other. */
static uint64_t
steps_out(const struct scene *scene, bool in_slice, int64_t x, int64_t y, int64_t z)
{
    for (int64_t steps = 1;; steps++)
        for (int64_t dz = in_slice ? 0 : -steps; dz <= (in_slice ? 0 : steps); dz++)
            for (int64_t dy = llabs(dz) - steps; dy <= steps - llabs(dz); dy++) {
                const int64_t dx = steps - llabs(dz) - llabs(dy);

                for (int side = -1; side <= 1; side += 2) {
                    const int64_t at[3] = {x + side * dx, y + dy, z + dz};

                    if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= scene->extent.columns ||
                        at[1] >= scene->extent.rows || at[2] >= scene->extent.slices ||
                        !ref_in_region(scene->region, scene->extent, at[0], at[1], at[2]))
                        return (uint64_t)steps;
                }
            }
}

/* Grows a zone from a voxel, with a list of the reached voxels. */
static uint64_t
grow_zone(const struct scene *scene, const struct texture_zones *request, enum texture_zone_kind kind, int64_t first,
          uint8_t *seen, int64_t *reached)
{
    const int64_t columns = scene->extent.columns, rows = scene->extent.rows;
    const int level = level_at(scene, first % columns, first / columns % rows, first / columns / rows);
    const int64_t deep = request->in_slice ? 0 : 1;
    int64_t count = 1;
    uint64_t least = UINT64_MAX;

    reached[0] = first;
    seen[first] = 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = reached[i] % columns, y = reached[i] / columns % rows;
        const int64_t z = reached[i] / columns / rows;
        const uint64_t steps = kind == TEXTURE_ZONE_DISTANCES ? steps_out(scene, request->in_slice, x, y, z) : 0;

        least = steps < least ? steps : least;
        for (int64_t n = 0; n < 9 * (2 * deep + 1); n++) {
            const int64_t nx = x + n % 3 - 1, ny = y + n / 3 % 3 - 1, nz = z + n / 9 - deep;
            const int64_t next = (nz * rows + ny) * columns + nx;

            if (level_at(scene, nx, ny, nz) != level || seen[next])
                continue;
            seen[next] = 1;
            reached[count++] = next;
        }
    }
    return kind == TEXTURE_ZONE_DISTANCES ? least : (uint64_t)count;
}

static int
key_compare(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

uint64_t
ref_texture_zones(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                  const struct texture_zones *request, enum texture_zone_kind kind, uint64_t *keys)
{
    const struct scene scene = {extent, pixel, voxels, &request->levels, request->region};
    const int64_t size = ref_voxels(extent);
    uint8_t *seen = calloc((size_t)size, 1);
    int64_t *reached = malloc((size_t)size * sizeof(*reached));
    uint64_t count = 0;

    for (int64_t i = 0; seen && reached && i < size; i++) {
        const int64_t x = i % extent.columns, y = i / extent.columns % extent.rows;
        const int64_t z = i / extent.columns / extent.rows;
        const int level = level_at(&scene, x, y, z);

        if (level > 0 && !seen[i])
            keys[count++] = texture_zone_key(request->per_slice ? z : 0, (uint32_t)level,
                                             grow_zone(&scene, request, kind, i, seen, reached));
    }
    free(seen);
    free(reached);
    qsort(keys, count, sizeof(*keys), key_compare);
    return count;
}

uint64_t
ref_texture_listed(const struct texture_zone_list *list, uint64_t *keys)
{
    uint64_t count = 0;

    for (size_t z = 0; z < list->count; z++)
        for (uint64_t i = 0; i < list->zones[z].count; i++)
            keys[count++] = list->zones[z].key;
    return count;
}

size_t
ref_directions(bool in_slice, int32_t distance, struct texture_offset *offsets)
{
    const int32_t depth = in_slice ? 0 : distance;
    size_t count = 0;

    for (int32_t z = 0; z <= depth; z++)
        for (int32_t y = -distance; y <= distance; y++)
            for (int32_t x = -distance; x <= distance; x++) {
                const bool at_distance = abs(x) == distance || abs(y) == distance || abs(z) == distance;
                const bool first_of_pair = z > 0 || (z == 0 && (y > 0 || (y == 0 && x > 0)));

                if (at_distance && first_of_pair)
                    offsets[count++] = (struct texture_offset){x, y, z};
            }
    return count;
}
