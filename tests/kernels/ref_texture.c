/* ref_texture.c - see ref_texture.h. */
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

/* Where the stored value of a voxel stands in a table or a histogram. */
static size_t
place_of(struct image_extent extent, enum image_pixel pixel, const void *voxels, int64_t x,
         int64_t y, int64_t z)
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

/* The level of a voxel, 0 where it does not count: left out, outside the region or the volume. */
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
count_pair(const struct scene *scene, const struct texture_glcm *request, size_t o, int64_t x,
           int64_t y, int64_t z, uint64_t *counts)
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
ref_texture_histogram(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                      const uint64_t *region, bool per_slice, uint64_t *counts)
{
    const size_t values = ref_texture_values(pixel);
    const size_t histograms = per_slice ? (size_t)extent.slices : 1;

    memset(counts, 0, histograms * values * sizeof(*counts));
    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++)
                if (ref_in_region(region, extent, x, y, z))
                    counts[(per_slice ? (size_t)z * values : 0) +
                           place_of(extent, pixel, voxels, x, y, z)]++;
}

/* What the neighbours of a voxel are. */
struct neighbourhood {
    size_t present, alike;
    int64_t sum;
};

static struct neighbourhood
neighbourhood_at(const struct scene *scene, const struct texture_neighbours *request, int64_t x,
                 int64_t y, int64_t z)
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
        uint64_t *own =
            counts + (request->per_slice ? (size_t)z * entries : 0) + (size_t)(level - 1) * width;

        if (level == 0)
            continue;
        own[TEXTURE_ALIKE * plane + found.alike]++;
        own[TEXTURE_PRESENT * plane + found.present]++;
        own[TEXTURE_DEVIATION * plane + found.present] +=
            (uint64_t)llabs((int64_t)found.present * level - found.sum);
    }
}

/* Counts a run at its last voxel, by going back from there. */
static void
count_run(const struct scene *scene, const struct texture_runs *request, size_t d, int64_t x,
          int64_t y, int64_t z, uint64_t *counts)
{
    const struct texture_offset to = request->directions[d];
    const int level = level_at(scene, x, y, z);
    const size_t matrix = (request->per_slice ? (size_t)z : 0) * request->direction_count + d;
    int64_t length = 1;

    if (level == 0 || level_at(scene, x + to.x, y + to.y, z + to.z) == level)
        return;
    while (level_at(scene, x - length * to.x, y - length * to.y, z - length * to.z) == level)
        length++;
    counts[(matrix * (size_t)request->levels.levels + (size_t)level - 1) *
               (size_t)request->longest +
           (size_t)length - 1]++;
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

size_t
ref_directions(bool in_slice, int32_t distance, struct texture_offset *offsets)
{
    const int32_t depth = in_slice ? 0 : distance;
    size_t count = 0;

    for (int32_t z = 0; z <= depth; z++)
        for (int32_t y = -distance; y <= distance; y++)
            for (int32_t x = -distance; x <= distance; x++) {
                const bool at_distance =
                    abs(x) == distance || abs(y) == distance || abs(z) == distance;
                const bool first_of_pair = z > 0 || (z == 0 && (y > 0 || (y == 0 && x > 0)));

                if (at_distance && first_of_pair)
                    offsets[count++] = (struct texture_offset){x, y, z};
            }
    return count;
}
