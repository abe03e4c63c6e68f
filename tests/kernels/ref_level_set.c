#include "tests/kernels/ref_level_set.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double
squared_ratio(double distance, double radius)
{
    return distance == 0 ? 0 : (distance / radius) * (distance / radius);
}

bool
ref_in_shape(const struct kernels_shape *shape, int64_t x, int64_t y, int64_t z)
{
    const double *radius = shape->radius;
    double dx = (double)x - shape->center[0];
    double dy = (double)y - shape->center[1];
    double dz = (double)z - shape->center[2];

    switch (shape->kind) {
    case KERNELS_SPHERE:
        return dx * dx + dy * dy + dz * dz <= radius[0] * radius[0];
    case KERNELS_ELLIPSOID:
        return squared_ratio(dx, radius[0]) + squared_ratio(dy, radius[1]) + squared_ratio(dz, radius[2]) <= 1;
    case KERNELS_BOX:
        return fabs(dx) <= radius[0] && fabs(dy) <= radius[1] && fabs(dz) <= radius[2];
    }
    return false;
}

static bool
holds(struct image_range range, int32_t value)
{
    return range.lo <= value && value <= range.hi;
}

static bool
in_any_shape(const struct kernels_level_set_label *label, int64_t x, int64_t y, int64_t z)
{
    for (size_t i = 0; i < label->shape_count; i++)
        if (ref_in_shape(&label->shapes[i], x, y, z))
            return true;
    return false;
}

static bool
in_mask(struct image_extent extent, const uint64_t *mask, int64_t x, int64_t y, int64_t z)
{
    int64_t words_per_row = (extent.columns + 63) / 64;

    return mask && mask[(z * extent.rows + y) * words_per_row + x / 64] >> x % 64 & 1;
}

void
ref_level_set_start(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                    const struct kernels_level_set_label *label, int8_t *states)
{
    int64_t i = 0;

    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++, i++) {
                int32_t value = ref_stored(pixel, voxels, i);
                bool in_range =
                    holds(label->ranges[label->range_count == 1 ? 0 : z], value) && !holds(label->padding, value);
                bool initial = in_any_shape(label, x, y, z) || in_mask(extent, label->mask, x, y, z);

                for (size_t m = 0; m < label->within_count; m++)
                    in_range = in_range && in_mask(extent, label->within[m], x, y, z);
                initial = initial && (in_range || !label->strict);
                states[i] = (int8_t)(in_range ? (initial ? 1 : -1) : (initial ? 2 : -2));
            }
}

/* Finds the existing 6-neighbours of voxel i. Returns their number. */
static int
neighbours(struct image_extent extent, int64_t i, int64_t near[6])
{
    int64_t x = i % extent.columns, y = i / extent.columns % extent.rows;
    int64_t row = extent.columns, slice = extent.columns * extent.rows, z = i / slice;
    int count = 0;

    if (x > 0)
        near[count++] = i - 1;
    if (x + 1 < extent.columns)
        near[count++] = i + 1;
    if (y > 0)
        near[count++] = i - row;
    if (y + 1 < extent.rows)
        near[count++] = i + row;
    if (z > 0)
        near[count++] = i - slice;
    if (z + 1 < extent.slices)
        near[count++] = i + slice;
    return count;
}

static bool
has_neighbour(struct image_extent extent, const int8_t *states, int64_t i, int8_t state)
{
    int64_t near[6];

    for (int count = neighbours(extent, i, near); count > 0; count--)
        if (states[near[count - 1]] == state)
            return true;
    return false;
}

void
ref_level_set_iterate(struct image_extent extent, int8_t *states)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (int64_t i = 0; i < ref_voxels(extent); i++) {
            if (states[i] == -1 && has_neighbour(extent, states, i, 1))
                states[i] = 1;
            else if (states[i] == 2 && has_neighbour(extent, states, i, -2))
                states[i] = -2;
            else
                continue;
            changed = true;
        }
    }
}

void
ref_level_set_search(struct image_extent extent, int8_t *states)
{
    int64_t count = ref_voxels(extent), first = 0, end = 0;
    int64_t *queue = malloc((size_t)count * sizeof(*queue));

    if (!queue)
        abort();
    for (int64_t i = 0; i < count; i++)
        if (states[i] == 1 || states[i] == -2)
            queue[end++] = i;
    while (first < end) {
        int64_t i = queue[first++], near[6];

        for (int n = neighbours(extent, i, near); n > 0; n--) {
            int64_t j = near[n - 1];
            if ((states[i] == 1 && states[j] == -1) || (states[i] == -2 && states[j] == 2)) {
                states[j] = states[i];
                queue[end++] = j;
            }
        }
    }
    free(queue);
}

void
ref_level_set_codes(struct image_extent extent, const int8_t *states, int8_t *codes)
{
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        bool inside = states[i] > 0, border = false;
        int64_t near[6];

        for (int n = neighbours(extent, i, near); n > 0; n--)
            border |= (states[near[n - 1]] > 0) != inside;
        codes[i] = (int8_t)(inside ? (border ? 2 : 1) : (border ? -1 : -2));
    }
}

static double
random_coordinate(uint64_t *random, int64_t size)
{
    double coordinate = (double)(ref_random_below(random, 8 * size) - 2 * size) / 4;

    return ref_random_below(random, 2) ? nearbyint(coordinate) : coordinate;
}

struct kernels_shape
ref_random_shape(uint64_t *random, struct image_extent extent)
{
    int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    struct kernels_shape shape = {.kind = (enum kernels_shape_kind)ref_random_below(random, 3)};

    for (int i = 0; i < 3; i++) {
        shape.center[i] = random_coordinate(random, size[i]);
        shape.radius[i] = fabs(random_coordinate(random, size[i])) / 2;
        if (ref_random_below(random, 6) == 0)
            shape.radius[i] = 0;
    }
    return shape;
}

struct image_range
ref_random_range(uint64_t *random)
{
    static const struct image_range special[] = {
        {1, 0}, {INT32_MIN, INT32_MAX}, {-40000, 2}, {70000, 80000}, {INT32_MAX, INT32_MIN}};
    int32_t lo = (int32_t)ref_random_below(random, 8);

    if (ref_random_below(random, 8) == 0)
        return special[ref_random_below(random, sizeof(special) / sizeof(special[0]))];
    return (struct image_range){lo, lo + (int32_t)ref_random_below(random, 6)};
}

struct image_range
ref_random_padding(uint64_t *random)
{
    int32_t lo = (int32_t)ref_random_below(random, 8);

    if (ref_random_below(random, 2))
        return (struct image_range){1, 0};
    return (struct image_range){lo, lo + (int32_t)ref_random_below(random, 2)};
}
