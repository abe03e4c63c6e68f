#include "tests/kernels/ref_morphology.h"

#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <stdlib.h>
#include <string.h>

bool
ref_morphology_has(struct image_extent extent, const struct morphology_region *region, int64_t x, int64_t y, int64_t z)
{
    return x >= 0 && y >= 0 && z >= 0 && x < extent.columns && y < extent.rows && z < extent.slices &&
           ref_in_region(region->bits, extent, x, y, z);
}

static uint64_t
value_of(struct image_extent extent, enum image_pixel pixel, const void *voxels, int64_t x, int64_t y, int64_t z)
{
    const int64_t voxel = (z * extent.rows + y) * extent.columns + x;

    return (uint64_t)(ref_stored(pixel, voxels, voxel) - ref_texture_smallest(pixel));
}

bool
ref_morphology_keeps(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                     const struct morphology_region *region, int64_t x, int64_t y, int64_t z)
{
    const size_t table = region->table_count > 1 ? (size_t)z : 0;
    const uint64_t *kept = region->kept + table * ref_texture_values(pixel) / 64;

    if (!ref_morphology_has(extent, region, x, y, z))
        return false;
    const uint64_t value = value_of(extent, pixel, voxels, x, y, z);
    return kept[value / 64] >> value % 64 & 1;
}

static void
add_cell(struct image_extent extent, const struct morphology_region *region, int64_t x, int64_t y, int64_t z,
         uint64_t *counts)
{
    int configuration = 0;

    for (int corner = 0; corner < 8; corner++)
        configuration |= ref_morphology_has(extent, region, x + (corner & 1), y + (corner >> 1 & 1), z + (corner >> 2))
                         << corner;
    counts[configuration] += configuration > 0;
}

static void
add_voxel(struct image_extent extent, enum image_pixel pixel, const void *voxels, int64_t x, int64_t y, int64_t z,
          uint64_t *sums)
{
    const uint64_t value = value_of(extent, pixel, voxels, x, y, z);

    sums[MORPHOLOGY_VOXELS]++;
    sums[MORPHOLOGY_X] += (uint64_t)x;
    sums[MORPHOLOGY_Y] += (uint64_t)y;
    sums[MORPHOLOGY_VALUE] += value;
    sums[MORPHOLOGY_VALUE_X] += value * (uint64_t)x;
    sums[MORPHOLOGY_VALUE_Y] += value * (uint64_t)y;
}

void
ref_morphology(struct image_extent extent, enum image_pixel pixel, const void *voxels,
               const struct morphology_region *region, uint64_t *counts)
{
    memset(counts, 0, morphology_size(extent.slices) * sizeof(*counts));
    for (int64_t z = -1; z < extent.slices; z++)
        for (int64_t y = -1; y < extent.rows; y++)
            for (int64_t x = -1; x < extent.columns; x++) {
                add_cell(extent, region, x, y, z, counts);
                if (ref_morphology_keeps(extent, pixel, voxels, region, x, y, z))
                    add_voxel(extent, pixel, voxels, x, y, z, counts + MORPHOLOGY_CONFIGURATIONS + z * MORPHOLOGY_SUMS);
            }
}

static void
add_pair(const struct texture_box *box, const int64_t apart[3], const uint64_t values[2], uint64_t *counts)
{
    const size_t lags = lags_size(box) / LAGS_KINDS;
    const int64_t x = llabs(apart[0]), y = llabs(apart[1]), z = llabs(apart[2]);

    counts += (z * box->size[1] + y) * box->size[0] + x;
    counts[LAGS_PAIRS * lags]++;
    counts[LAGS_VALUES * lags] += values[0];
    counts[LAGS_PRODUCTS * lags] += values[0] * values[1];
    counts[LAGS_SQUARES * lags] += values[0] * values[0];
}

static int64_t
coordinate(const struct image_extent *extent, int64_t voxel, int axis)
{
    const int64_t row = voxel / extent->columns;

    return axis == 0 ? voxel % extent->columns : axis == 1 ? row % extent->rows : row / extent->rows;
}

void
ref_lags(struct image_extent extent, enum image_pixel pixel, const void *voxels, const struct lags *lags,
         uint64_t *counts)
{
    int64_t *kept = calloc((size_t)ref_voxels(extent), sizeof(*kept)), count = 0;
    struct texture_box box;

    texture_box_of(lags->region.bits, &extent, &box);
    memset(counts, 0, lags_size(&box) * sizeof(*counts));
    for (int64_t i = 0; i < ref_voxels(extent); i++)
        if (ref_morphology_keeps(extent, pixel, voxels, &lags->region, coordinate(&extent, i, 0),
                                 coordinate(&extent, i, 1), coordinate(&extent, i, 2)))
            kept[count++] = i;
    for (int64_t i = 0; i < count * count; i++) {
        const int64_t a = kept[i / count], b = kept[i % count];
        const int32_t least = ref_texture_smallest(pixel) + (int32_t)lags->least;
        const uint64_t values[2] = {(uint64_t)(ref_stored(pixel, voxels, a) - least),
                                    (uint64_t)(ref_stored(pixel, voxels, b) - least)};
        int64_t apart[3];

        for (int axis = 0; axis < 3; axis++)
            apart[axis] = coordinate(&extent, a, axis) - coordinate(&extent, b, axis);
        add_pair(&box, apart, values, counts);
    }
    free(kept);
}
