#include "tests/kernels/ref_fuzzy.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRENGTHS = 65536,
    CHUNK = 510, /* voxels */
};

#define NONE INT64_C(-1)

static double
object_part(const struct kernels_fuzzy_object *object, int32_t sum)
{
    double distance = sum / 2.0 - object->mean;

    return object->weight * exp(-(distance * distance) / (2 * (object->sigma * object->sigma)));
}

static double
homogeneity_part(const struct kernels_fuzzy_object *object, int32_t difference)
{
    double distance = difference / 2.0, sigma = object->homogeneity_sigma;

    return (1 - object->weight) * exp(-(distance * distance) / (2 * (sigma * sigma)));
}

static bool
is_padding(const struct kernels_fuzzy_object *object, int32_t value)
{
    return object->padding.lo <= value && value <= object->padding.hi;
}

static uint16_t
quantise(double membership)
{
    double scaled = floor(65535 * membership);

    return scaled > 65535 ? 65535 : (uint16_t)scaled;
}

uint16_t
ref_fuzzy_affinity(const struct kernels_fuzzy_object *object, int32_t a, int32_t b)
{
    if (is_padding(object, a) || is_padding(object, b))
        return 0;
    return quantise(object_part(object, a + b) + homogeneity_part(object, abs(a - b)));
}

/* Exponentials of every sum and difference of values low .. high. A volume needs each many times. */
struct parts {
    int32_t low;
    double *sum;
    double *difference;
};

static struct parts
parts_of(const struct kernels_fuzzy_object *object, int32_t low, int32_t high)
{
    int32_t span = high - low;
    struct parts parts = {low, malloc((2 * (size_t)span + 1) * sizeof(double)),
                          malloc(((size_t)span + 1) * sizeof(double))};

    if (!parts.sum || !parts.difference)
        abort();
    for (int32_t s = 0; s <= 2 * span; s++)
        parts.sum[s] = object_part(object, s + 2 * low);
    for (int32_t d = 0; d <= span; d++)
        parts.difference[d] = homogeneity_part(object, d);
    return parts;
}

/* Voxels in one bucket: the last one in is the first one out. */
struct chunk {
    struct chunk *next;
    int count;
    int64_t voxels[CHUNK];
};

/* Buckets by strength. A voxel that has become stronger is in several; only the strongest entry counts. */
struct buckets {
    struct chunk *first[STRENGTHS];
    struct chunk *spare;
};

static struct chunk *
take_chunk(struct buckets *buckets)
{
    struct chunk *chunk = buckets->spare;

    if (chunk)
        buckets->spare = chunk->next;
    else
        chunk = malloc(sizeof(*chunk));
    if (!chunk)
        abort();
    chunk->count = 0;
    return chunk;
}

static void
enter(struct buckets *buckets, uint16_t strength, int64_t i)
{
    struct chunk *chunk = buckets->first[strength];

    if (!chunk || chunk->count == CHUNK) {
        chunk = take_chunk(buckets);
        chunk->next = buckets->first[strength];
        buckets->first[strength] = chunk;
    }
    chunk->voxels[chunk->count++] = i;
}

/* Takes a voxel out of this bucket. Returns NONE if it is empty. */
static int64_t
take(struct buckets *buckets, uint16_t strength)
{
    struct chunk *chunk = buckets->first[strength];
    int64_t i;

    if (!chunk)
        return NONE;
    i = chunk->voxels[--chunk->count];
    if (chunk->count == 0) {
        buckets->first[strength] = chunk->next;
        chunk->next = buckets->spare;
        buckets->spare = chunk;
    }
    return i;
}

static void
buckets_free(struct buckets *buckets)
{
    while (buckets->spare) {
        struct chunk *chunk = buckets->spare;
        buckets->spare = chunk->next;
        free(chunk);
    }
    free(buckets);
}

struct search {
    struct image_extent extent;
    enum image_pixel pixel;
    const void *voxels;
    const struct kernels_fuzzy_object *object;
    struct parts parts;
    uint16_t *map;
    struct buckets *buckets;
};

/* Raises the strength of voxel i to at least this one. No path continues with strength 0. */
static void
strengthen(struct search *search, int64_t i, uint16_t strength)
{
    if (strength <= search->map[i])
        return;
    search->map[i] = strength;
    enter(search->buckets, strength, i);
}

/* Extends a path of this strength from voxel i, whose value is a, to its neighbour j. */
static void
extend(struct search *search, uint16_t strength, int32_t a, int64_t j)
{
    int32_t b = ref_stored(search->pixel, search->voxels, j);
    const struct parts *parts = &search->parts;
    uint16_t affinity;

    if (is_padding(search->object, b))
        return;
    affinity = quantise(parts->sum[a + b - 2 * parts->low] + parts->difference[abs(a - b)]);
    strengthen(search, j, affinity < strength ? affinity : strength);
}

static void
extend_all(struct search *search, int64_t i, uint16_t strength)
{
    struct image_extent extent = search->extent;
    int64_t row = extent.columns, slice = extent.columns * extent.rows;
    int64_t x = i % row, y = i / row % extent.rows, z = i / slice;
    int32_t a = ref_stored(search->pixel, search->voxels, i);

    if (is_padding(search->object, a))
        return;
    if (x > 0)
        extend(search, strength, a, i - 1);
    if (x + 1 < extent.columns)
        extend(search, strength, a, i + 1);
    if (y > 0)
        extend(search, strength, a, i - row);
    if (y + 1 < extent.rows)
        extend(search, strength, a, i + row);
    if (z > 0)
        extend(search, strength, a, i - slice);
    if (z + 1 < extent.slices)
        extend(search, strength, a, i + slice);
}

static void
find_parts(struct search *search)
{
    int32_t low = INT32_MAX, high = INT32_MIN;

    for (int64_t i = 0; i < ref_voxels(search->extent); i++) {
        int32_t value = ref_stored(search->pixel, search->voxels, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    search->parts = parts_of(search->object, low, high);
}

void
ref_fuzzy_map(struct image_extent extent, enum image_pixel pixel, const void *voxels,
              const struct kernels_fuzzy_object *object, uint16_t *map)
{
    struct search search = {extent, pixel, voxels, object, .map = map};

    find_parts(&search);
    search.buckets = calloc(1, sizeof(*search.buckets));
    if (!search.buckets)
        abort();
    memset(map, 0, (size_t)ref_voxels(extent) * sizeof(*map));
    for (size_t s = 0; s < object->seed_count; s++) {
        const struct kernels_voxel *seed = &object->seeds[s];
        strengthen(&search, (seed->z * extent.rows + seed->y) * extent.columns + seed->x, 65535);
    }
    for (int64_t i = 0; object->start && i < ref_voxels(extent); i++)
        if (object->start[i / extent.columns * ((extent.columns + 63) / 64) + i % extent.columns / 64] >>
                i % extent.columns % 64 &
            1)
            strengthen(&search, i, 65535);
    for (int strength = STRENGTHS - 1; strength > 0; strength--) {
        int64_t i;

        while ((i = take(search.buckets, (uint16_t)strength)) != NONE)
            if (map[i] == strength)
                extend_all(&search, i, (uint16_t)strength);
    }
    buckets_free(search.buckets);
    free(search.parts.sum);
    free(search.parts.difference);
}

static bool
wins(const struct kernels_fuzzy_object *objects, uint16_t *const *maps, size_t count, size_t which, int64_t i)
{
    for (size_t other = 0; other < count; other++)
        if (other != which && maps[other][i] > objects[other].threshold && maps[other][i] >= maps[which][i])
            return false;
    return true;
}

void
ref_fuzzy_object(int64_t voxels, const struct kernels_fuzzy_object *objects, uint16_t *const *maps, size_t count,
                 size_t which, bool relative, uint8_t *in)
{
    for (int64_t i = 0; i < voxels; i++)
        in[i] = maps[which][i] > objects[which].threshold && (!relative || wins(objects, maps, count, which, i));
}
