/* rescaled_fuzzy.c - fuzzy connectedness of real values: the bucket queue of Dial 1969, one bucket per strength. */
#include "kernels/fuzzy/affinity.h"
#include "kernels/rescaled/rescaled_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRENGTHS = UINT16_MAX + 1 };

#define NO_VOXEL UINT32_MAX

struct strength_growth {
    const struct rescaled_values *values;
    const struct kernels_fuzzy_object *object;
    uint16_t *map;
    /* Per strength, a list of the voxels that have it and may strengthen their neighbours. */
    uint32_t *first, *next, *before;
};

static void
growth_unlink(struct strength_growth *growth, uint32_t voxel)
{
    const uint32_t next = growth->next[voxel], before = growth->before[voxel];

    if (next != NO_VOXEL)
        growth->before[next] = before;
    if (before != NO_VOXEL)
        growth->next[before] = next;
    else
        growth->first[growth->map[voxel]] = next;
}

/* Raises the strength of a voxel that is in a list, or has the strength 0. */
static void
growth_raise(struct strength_growth *growth, uint32_t voxel, uint16_t strength)
{
    if (growth->map[voxel] > 0)
        growth_unlink(growth, voxel);
    growth->map[voxel] = strength;
    growth->before[voxel] = NO_VOXEL;
    growth->next[voxel] = growth->first[strength];
    if (growth->next[voxel] != NO_VOXEL)
        growth->before[growth->next[voxel]] = voxel;
    growth->first[strength] = voxel;
}

static bool
growth_is_padding(const struct strength_growth *growth, uint32_t voxel)
{
    const struct image_range padding = growth->object->padding;
    const int32_t stored = image_value(growth->values->voxels, growth->values->pixel, voxel);

    return stored >= padding.lo && stored <= padding.hi;
}

/* Returns the affinity of two voxels, by the expressions of fuzzy_fill_tables(). */
static uint16_t
growth_affinity(const struct strength_growth *growth, uint32_t one, uint32_t other)
{
    const struct kernels_fuzzy_object *object = growth->object;
    const double a = rescaled_value(growth->values, one), b = rescaled_value(growth->values, other);
    const double first = object->weight * fuzzy_gaussian((a + b) / 2.0 - object->mean, object->sigma);
    const double second = (1 - object->weight) * fuzzy_gaussian(fabs(a - b) / 2.0, object->homogeneity_sigma);
    const double scaled = 65535.0 * (first + second);

    if (growth_is_padding(growth, one) || growth_is_padding(growth, other))
        return 0;
    return scaled >= 65535.0 ? 65535 : (uint16_t)scaled;
}

static void
growth_strengthen(struct strength_growth *growth, uint32_t from, int64_t to)
{
    const uint16_t strength = growth->map[from];

    if (growth->map[to] >= strength)
        return;
    const uint16_t affinity = growth_affinity(growth, from, (uint32_t)to);
    const uint16_t reached = affinity < strength ? affinity : strength;

    if (reached > growth->map[to])
        growth_raise(growth, (uint32_t)to, reached);
}

/* Strengthens the six neighbours of a voxel. */
static void
growth_spread(struct strength_growth *growth, uint32_t voxel)
{
    const struct image_extent *extent = &growth->values->extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    int64_t step = 1, rest = voxel;

    for (int axis = 0; axis < 3; axis++) {
        const int64_t at = rest % sides[axis];

        if (at > 0)
            growth_strengthen(growth, voxel, voxel - step);
        if (at + 1 < sides[axis])
            growth_strengthen(growth, voxel, voxel + step);
        rest /= sides[axis];
        step *= sides[axis];
    }
}

static void
growth_start(struct strength_growth *growth)
{
    const struct image_extent *extent = &growth->values->extent;
    const struct kernels_fuzzy_object *object = growth->object;
    const int64_t words = (extent->columns + 63) / 64;

    memset(growth->map, 0, (size_t)image_voxels(extent) * sizeof(*growth->map));
    memset(growth->first, 0xff, STRENGTHS * sizeof(*growth->first));
    for (size_t i = 0; i < object->seed_count; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];

        growth_raise(growth, (uint32_t)((seed->z * extent->rows + seed->y) * extent->columns + seed->x), UINT16_MAX);
    }
    for (int64_t i = 0; object->start && i < words * extent->rows * extent->slices; i++)
        for (uint64_t left = object->start[i]; left; left &= left - 1) {
            const int64_t x = i % words * 64 + __builtin_ctzll(left);

            if (x < extent->columns)
                growth_raise(growth, (uint32_t)(i / words * extent->columns + x), UINT16_MAX);
        }
}

/* Finds the strengths of all voxels, or only those above the threshold if no map is wanted. */
static void
growth_run(struct strength_growth *growth)
{
    const int least = growth->object->map ? 1 : growth->object->threshold + 1;

    growth_start(growth);
    for (int strength = UINT16_MAX; strength >= least; strength--)
        while (growth->first[strength] != NO_VOXEL) {
            const uint32_t voxel = growth->first[strength];

            growth->first[strength] = growth->next[voxel];
            if (growth->next[voxel] != NO_VOXEL)
                growth->before[growth->next[voxel]] = NO_VOXEL;
            growth_spread(growth, voxel);
        }
}

/* Returns whether a voxel belongs to an object; with `relative`, only to the strongest. */
static bool
fuzzy_has(const struct kernels_fuzzy_object *objects, const struct rescaled_fuzzy *found, size_t count, bool relative,
          size_t which, int64_t voxel)
{
    const uint16_t own = found[which].map[voxel];
    bool has = own > objects[which].threshold;

    for (size_t k = 0; k < count && relative; k++)
        has &= k == which || found[k].map[voxel] <= objects[k].threshold || found[k].map[voxel] < own;
    return has;
}

int
rescaled_fuzzy(const struct rescaled_values *values, const struct kernels_fuzzy_object *objects, size_t count,
               bool relative, struct rescaled_fuzzy *found, struct error *error)
{
    const struct image_extent *extent = &values->extent;
    const int64_t voxels = image_voxels(extent), words = (extent->columns + 63) / 64;
    struct strength_growth growth = {.values = values};
    int rc = fuzzy_check_objects(objects, count, extent, error);

    if (rc == 0 && voxels >= NO_VOXEL)
        rc = error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                       "fuzzy connectedness of slices with rescales of their own has at most 2^32 - 2 voxels");
    if (rc)
        return rc;
    growth.first = calloc(STRENGTHS, sizeof(*growth.first));
    growth.next = calloc((size_t)voxels, sizeof(*growth.next));
    growth.before = calloc((size_t)voxels, sizeof(*growth.before));
    bool has_memory = growth.first && growth.next && growth.before;

    for (size_t k = 0; k < count; k++) {
        if (!found[k].map)
            found[k].map = calloc((size_t)voxels, sizeof(*found[k].map));
        if (!found[k].bits)
            found[k].bits = calloc((size_t)(words * extent->rows * extent->slices), sizeof(*found[k].bits));
        has_memory = has_memory && found[k].map && found[k].bits;
    }
    for (size_t k = 0; k < count && has_memory; k++) {
        growth.object = &objects[k];
        growth.map = found[k].map;
        growth_run(&growth);
    }
    for (size_t k = 0; k < count && has_memory; k++)
        for (int64_t voxel = 0; voxel < voxels; voxel++) {
            const int64_t x = voxel % extent->columns;
            uint64_t *word = &found[k].bits[voxel / extent->columns * words + x / 64];
            const uint64_t has = fuzzy_has(objects, found, count, relative, k, voxel);

            *word = (*word & ~(UINT64_C(1) << x % 64)) | has << x % 64;
        }
    free(growth.first);
    free(growth.next);
    free(growth.before);
    return has_memory ? 0 : error_set_system(error, -ENOMEM, "find the objects");
}

int64_t
rescaled_fuzzy_bytes(const struct image_extent *extent)
{
    return (2 * image_voxels(extent) + STRENGTHS) * (int64_t)sizeof(uint32_t);
}
