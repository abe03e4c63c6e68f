/* seeds.c - see seeds.h. */
#include "kernels/fuzzy/seeds.h"

struct fuzzy_seeds
fuzzy_seeds_of(const struct kernels_fuzzy_object *object, const struct image_extent *extent)
{
    return (struct fuzzy_seeds){.object = object, .extent = *extent};
}

static int64_t
seeds_words_per_row(const struct fuzzy_seeds *seeds)
{
    return (seeds->extent.columns - 1) / 64 + 1;
}

/* Advances to the next nonzero word of the start. */
static bool
seeds_go_on(struct fuzzy_seeds *seeds)
{
    const struct image_extent *extent = &seeds->extent;
    const int64_t words = seeds_words_per_row(seeds) * extent->rows * extent->slices;

    while (!seeds->rest && seeds->word < words)
        seeds->rest = seeds->object->start[seeds->word++];
    return seeds->rest != 0;
}

bool
fuzzy_seeds_next(struct fuzzy_seeds *seeds, struct kernels_voxel *seed)
{
    const int64_t words = seeds_words_per_row(seeds), rows = seeds->extent.rows;

    if (seeds->listed < seeds->object->seed_count) {
        *seed = seeds->object->seeds[seeds->listed++];
        return true;
    }
    if (!seeds->object->start || !seeds_go_on(seeds))
        return false;
    const int64_t row = (seeds->word - 1) / words, first = (seeds->word - 1) % words * 64;

    *seed = (struct kernels_voxel){first + __builtin_ctzll(seeds->rest), row % rows, row / rows};
    seeds->rest &= seeds->rest - 1;
    return true;
}

bool
fuzzy_seeds_any(const struct kernels_fuzzy_object *object, const struct image_extent *extent)
{
    struct fuzzy_seeds seeds = fuzzy_seeds_of(object, extent);
    struct kernels_voxel seed;

    return fuzzy_seeds_next(&seeds, &seed);
}
