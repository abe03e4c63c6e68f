#include "kernels/fuzzy/seeds.h"

struct fuzzy_seeds
fuzzy_seeds_of(const struct kernels_fuzzy_object *object, const struct image_extent *extent)
{
    return (struct fuzzy_seeds){.object = object, .extent = *extent};
}

bool
fuzzy_seeds_next(struct fuzzy_seeds *seeds, struct kernels_voxel *seed)
{
    const int64_t words = (seeds->extent.columns - 1) / 64 + 1, rows = seeds->extent.rows;
    const int64_t all = seeds->object->start ? words * rows * seeds->extent.slices : 0;

    if (seeds->listed < seeds->object->seed_count) {
        *seed = seeds->object->seeds[seeds->listed++];
        return true;
    }
    while (!seeds->rest && seeds->word < all) /* advance to the next nonzero word of the start */
        seeds->rest = seeds->object->start[seeds->word++];
    if (!seeds->rest)
        return false;
    const int64_t row = (seeds->word - 1) / words, first = (seeds->word - 1) % words * 64;

    *seed = (struct kernels_voxel){first + __builtin_ctzll(seeds->rest), row % rows, row / rows};
    seeds->rest &= seeds->rest - 1;
    return true;
}
