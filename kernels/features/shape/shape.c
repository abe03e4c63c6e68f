/*
 * shape.c - how large a region is and where it lies (of IBSI 3.1), from its bits.
 */
#include "kernels/features/shape/shape.h"

static const struct feature_definition shape_definitions[SHAPE_FEATURES] = {
    {"voxel_count", "Number of voxels", "", .unit = "1"},
    {"volume", "Volume (voxel counting)", "YEKZ", .unit = "ml"},
    {"centroid_x", "Centroid x (LPS)", "", .unit = "mm"},
    {"centroid_y", "Centroid y (LPS)", "", .unit = "mm"},
    {"centroid_z", "Centroid z (LPS)", "", .unit = "mm"},
    {"box_columns", "Bounding box along columns", "", .unit = "mm"},
    {"box_rows", "Bounding box along rows", "", .unit = "mm"},
    {"box_slices", "Bounding box along slices", "", .unit = "mm"},
};

/* The sum of the places of the bits that are set. */
static int64_t
sum_of_places(uint64_t bits)
{
    static const uint64_t place_has[6] = {
        0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000,
    };
    int64_t sum = 0;

    for (int i = 0; i < 6; i++)
        sum += (int64_t)__builtin_popcountll(bits & place_has[i]) << i;
    return sum;
}

/* Bits of a row: how many, the sum of their columns, the first and the last. */
static void
shape_place_add_row(const uint64_t *row, int64_t words, int64_t y, int64_t z,
                    struct shape_place *place)
{
    for (int64_t w = 0; w < words; w++) {
        const uint64_t bits = row[w];
        const int64_t count = __builtin_popcountll(bits);
        int64_t first, last;

        if (bits == 0)
            continue;
        first = 64 * w + __builtin_ctzll(bits);
        last = 64 * w + 63 - __builtin_clzll(bits);
        place->voxels += count;
        place->sum[1] += count * y;
        place->sum[2] += count * z;
        place->first[0] = first < place->first[0] ? first : place->first[0];
        place->last[0] = last > place->last[0] ? last : place->last[0];
        place->first[1] = y < place->first[1] ? y : place->first[1];
        place->last[1] = y > place->last[1] ? y : place->last[1];
        place->first[2] = z < place->first[2] ? z : place->first[2];
        place->last[2] = z > place->last[2] ? z : place->last[2];
        place->sum[0] += count * 64 * w + sum_of_places(bits);
    }
}

void
shape_place_of(const uint64_t *bits, int64_t columns, int64_t rows, int64_t slices,
               struct shape_place *place)
{
    const int64_t words = (columns + 63) / 64;

    *place = (struct shape_place){.first = {columns, rows, slices}, .last = {-1, -1, -1}};
    for (int64_t z = 0; z < slices; z++)
        for (int64_t y = 0; y < rows; y++)
            shape_place_add_row(bits + (z * rows + y) * words, words, y, z, place);
}

/* Of all voxels of the volume. */
static void
shape_place_of_volume(const struct feature_volume *volume, struct shape_place *place)
{
    const int64_t size[3] = {volume->columns, volume->rows, volume->slices};

    place->voxels = size[0] * size[1] * size[2];
    for (int axis = 0; axis < 3; axis++) {
        place->sum[axis] = place->voxels / size[axis] * (size[axis] * (size[axis] - 1) / 2);
        place->first[axis] = 0;
        place->last[axis] = size[axis] - 1;
    }
}

static int
shape_values(const struct feature_region *region, size_t set, const uint64_t *counts,
             struct feature_value *values)
{
    const struct feature_volume *volume = region->volume;
    const double voxel = volume->spacing[0] * volume->spacing[1] * volume->spacing[2];
    struct shape_place place;
    double centre[3];

    (void)set;
    (void)counts;
    if (region->bits)
        shape_place_of(region->bits, volume->columns, volume->rows, volume->slices, &place);
    else
        shape_place_of_volume(volume, &place);
    values[SHAPE_VOXEL_COUNT] = feature_present((double)place.voxels);
    values[SHAPE_VOLUME_ML] = feature_present((double)place.voxels * voxel / 1000);
    if (place.voxels == 0)
        return 0;
    for (int i = 0; i < 3; i++)
        centre[i] = (double)(place.sum[i] + place.voxels * volume->first[i]) / (double)place.voxels;
    for (int i = 0; i < 3; i++) {
        const double *to = volume->voxel_to_mm[i];

        values[SHAPE_CENTROID_X + i] =
            feature_present(to[0] * centre[0] + to[1] * centre[1] + to[2] * centre[2] + to[3]);
        values[SHAPE_BOX_X + i] =
            feature_present((double)(place.last[i] - place.first[i] + 1) * volume->spacing[i]);
    }
    return 0;
}

/* One option has both this family and the first-order one. */
static bool
shape_wanted(const struct texture_options *options)
{
    return options->first_order || texture_wants(options, TEXTURE_FAMILY_shape);
}

const struct feature_family family_shape = {
    .name = "shape",
    .definitions = shape_definitions,
    .definition_count = SHAPE_FEATURES,
    .wanted = shape_wanted,
    .values = shape_values,
};
