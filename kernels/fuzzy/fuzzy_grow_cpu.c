/*
 * fuzzy_grow_cpu.c - see fuzzy_grow_cpu.h.
 *
 * A bucket (Dial) Dijkstra: reached voxels wait in the bucket of their strength. Buckets are
 * emptied from the strongest down, last in, first out. A voxel that becomes stronger waits in
 * several buckets, and only the strongest entry counts.
 *
 * The sixteen floods of fuzzy_cpu.c process the whole volume. Growing costs time per reached voxel,
 * and more the more neighbours it is joined to, since it may then wait several times. With 2.2
 * neighbours on average, growing took a third of the floods' time on one thread and 0.6 of it on
 * two; with 2.7, it took 0.9 and 1.7. Voxels of a path have 2 neighbours, of a full volume 6.
 */
#include "kernels/fuzzy/fuzzy_grow_cpu.h"
#include "kernels/fuzzy/seeds.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    FACES = 6,
    WAITING = 14, /* per chunk, a cache line */
    BETWEEN = 61, /* voxels between two samples */
    THIN = 5,     /* thin object: voxels are joined to fewer than 5 / 2 neighbours on average */
    PARTS = 256,  /* an object must prove thin again after each 1 / PARTS of the volume, */
    SAMPLES = 16, /* on at least so many samples */
};

#define NONE UINT32_MAX

struct grow_chunk {
    uint32_t below; /* next chunk of the bucket; NONE at its end */
    uint32_t count;
    uint32_t voxels[WAITING];
};

struct growth {
    struct fuzzy_tables tables;
    uint16_t *map;
    const void *voxels;
    uint32_t size[3];
    uint32_t step[3];
    int32_t padding;   /* smallest stored value that is padding */
    uint32_t paddings; /* number of padding values from there on */
    uint32_t *buckets; /* top chunk of each; NONE: empty */
    struct grow_chunk *chunks;
    uint32_t chunk_count;
    uint32_t taken;        /* chunks ever used */
    uint32_t spare;        /* first unused chunk; NONE: all in use */
    uint32_t until_sample; /* voxels until the next sample */
    uint32_t samples;      /* since the object last proved thin */
    uint32_t joined;       /* neighbours that they are joined to */
    uint32_t window;       /* samples until the next proof */
};

/* At least one chunk must be left. */
INLINE void
enter(struct growth *growth, uint16_t strength, uint32_t i)
{
    uint32_t top = growth->buckets[strength];
    struct grow_chunk *chunk;

    if (top == NONE || growth->chunks[top].count == WAITING) {
        uint32_t fresh = growth->spare;

        if (fresh == NONE)
            fresh = growth->taken++;
        else
            growth->spare = growth->chunks[fresh].below;

        growth->chunks[fresh].count = 0;
        growth->chunks[fresh].below = top;
        growth->buckets[strength] = top = fresh;
    }
    chunk = &growth->chunks[top];
    chunk->voxels[chunk->count++] = i;
}

/* Returns the last voxel put in; NONE if the bucket is empty. */
INLINE uint32_t
leave(struct growth *growth, uint16_t strength)
{
    uint32_t top = growth->buckets[strength], i;
    struct grow_chunk *chunk;

    if (top == NONE)
        return NONE;
    chunk = &growth->chunks[top];
    i = chunk->voxels[--chunk->count];
    if (chunk->count == 0) {
        growth->buckets[strength] = chunk->below;
        chunk->below = growth->spare;
        growth->spare = top;
    }
    return i;
}

INLINE int32_t
stored(const struct growth *growth, enum image_pixel pixel, uint32_t i)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return ((const uint8_t *)growth->voxels)[i];
    case IMAGE_INT16:
        return ((const int16_t *)growth->voxels)[i];
    case IMAGE_UINT16:
        return ((const uint16_t *)growth->voxels)[i];
    }
    return 0;
}

INLINE bool
is_padding(const struct growth *growth, int32_t value)
{
    return (uint32_t)value - (uint32_t)growth->padding < growth->paddings;
}

INLINE uint16_t
affinity_of(const struct growth *growth, int32_t a, int32_t b)
{
    const struct fuzzy_tables *tables = &growth->tables;

    return is_padding(growth, b) ? 0 : fuzzy_affinity(tables, a - tables->low, b - tables->low);
}

/* The existing neighbours of a voxel. */
struct around {
    bool has[FACES]; /* -x +x -y +y -z +z */
};

INLINE struct around
around_of(const struct growth *growth, uint32_t i)
{
    uint32_t row = i / growth->size[0], x = i - row * growth->size[0];
    uint32_t z = row / growth->size[1], y = row - z * growth->size[1];

    return (struct around){
        {x > 0, x + 1 < growth->size[0], y > 0, y + 1 < growth->size[1], z > 0, z + 1 < growth->size[2]}};
}

INLINE uint32_t
beyond(const struct growth *growth, uint32_t i, int face)
{
    return face % 2 ? i + growth->step[face / 2] : i - growth->step[face / 2];
}

/* Extends a path of this strength to j. Of voxels with the same strength, keeps one as the next. */
INLINE void
extend(struct growth *growth, enum image_pixel pixel, uint16_t strength, int32_t value, uint32_t j, uint32_t *next)
{
    uint16_t known = growth->map[j], affinity;

    if (known >= strength)
        return;
    affinity = affinity_of(growth, value, stored(growth, pixel, j));
    if (affinity <= known)
        return;
    if (affinity < strength) {
        growth->map[j] = affinity;
        enter(growth, affinity, j);
        return;
    }
    growth->map[j] = strength;
    if (*next != NONE)
        enter(growth, strength, *next);
    *next = j;
}

/* Samples a voxel. Returns false if the object is found not to be thin. */
static bool
sample(struct growth *growth, enum image_pixel pixel, uint32_t i, int32_t value)
{
    struct around around = around_of(growth, i);
    bool thin;

    growth->until_sample = BETWEEN;
    for (int face = 0; face < FACES; face++)
        growth->joined +=
            around.has[face] && affinity_of(growth, value, stored(growth, pixel, beyond(growth, i, face))) > 0;
    if (++growth->samples < growth->window)
        return true;
    thin = 2 * growth->joined < THIN * growth->window;
    growth->samples = 0;
    growth->joined = 0;
    return thin;
}

/* Returns false if the space is too small, or the object is not thin. */
INLINE bool
empty_bucket(struct growth *growth, enum image_pixel pixel, uint16_t strength)
{
    uint32_t i, next = NONE;

    while ((i = next != NONE ? next : leave(growth, strength)) != NONE) {
        int32_t value = stored(growth, pixel, i);
        struct around around;

        next = NONE;
        if (growth->map[i] != strength || is_padding(growth, value))
            continue;
        if (growth->taken + FACES > growth->chunk_count)
            return false;
        if (--growth->until_sample == 0 && !sample(growth, pixel, i, value))
            return false;
        around = around_of(growth, i);
#pragma GCC unroll 6
        for (int face = FACES - 1; face >= 0; face--)
            if (around.has[face])
                extend(growth, pixel, strength, value, beyond(growth, i, face), &next);
    }
    return true;
}

INLINE bool
grow(struct growth *growth, enum image_pixel pixel)
{
    for (int strength = FUZZY_STRENGTHS - 1; strength > 0; strength--)
        if (growth->buckets[strength] != NONE && !empty_bucket(growth, pixel, (uint16_t)strength))
            return false;
    return true;
}

static bool
grow_pixels(struct growth *growth, enum image_pixel pixel)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return grow(growth, IMAGE_UINT8);
    case IMAGE_INT16:
        return grow(growth, IMAGE_INT16);
    case IMAGE_UINT16:
        return grow(growth, IMAGE_UINT16);
    }
    return false;
}

/* Returns false if the seeds are too many. */
static bool
plant(struct growth *growth, const struct kernels_fuzzy_object *object)
{
    const struct image_extent extent = {growth->size[0], growth->size[1], growth->size[2]};
    struct fuzzy_seeds seeds = fuzzy_seeds_of(object, &extent);
    struct kernels_voxel seed;

    while (fuzzy_seeds_next(&seeds, &seed)) {
        uint32_t i = (uint32_t)seed.x + (uint32_t)seed.y * growth->step[1] + (uint32_t)seed.z * growth->step[2];

        if (growth->map[i] != 0)
            continue;
        if (growth->taken == growth->chunk_count)
            return false;
        growth->map[i] = FUZZY_STRENGTHS - 1;
        enter(growth, FUZZY_STRENGTHS - 1, i);
    }
    return true;
}

bool
fuzzy_grow(const struct fuzzy_growth *given)
{
    int64_t columns = given->extent.columns, rows = given->extent.rows;
    int64_t voxels = columns * rows * given->extent.slices;
    struct image_range padding = given->object->padding;
    size_t chunk_count = given->space_size / sizeof(struct grow_chunk);

    /* Limit padding to the values of any pixel type, so that they can be counted. */
    padding.lo = padding.lo > INT16_MIN ? padding.lo : INT16_MIN;
    padding.hi = padding.hi < UINT16_MAX ? padding.hi : UINT16_MAX;

    struct growth growth = {
        .tables = given->tables,
        .map = given->map,
        .voxels = given->voxels,
        .size = {(uint32_t)columns, (uint32_t)rows, (uint32_t)given->extent.slices},
        .step = {1, (uint32_t)columns, (uint32_t)(columns * rows)},
        .padding = padding.lo,
        .paddings = padding.lo > padding.hi ? 0 : (uint32_t)(padding.hi - padding.lo) + 1,
        .buckets = given->buckets,
        .chunks = given->space,
        .spare = NONE,
        .chunk_count = chunk_count < NONE ? (uint32_t)chunk_count : NONE - 1,
        .until_sample = BETWEEN,
        .window = (uint32_t)(voxels / PARTS / BETWEEN),
    };

    if (growth.window < SAMPLES)
        growth.window = SAMPLES;
    if (voxels >= NONE)
        return false;
    memset(growth.buckets, 0xFF, FUZZY_STRENGTHS * sizeof(*growth.buckets));
    return plant(&growth, given->object) && grow_pixels(&growth, given->pixel);
}
