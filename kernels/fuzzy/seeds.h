/* seeds.h - iterates over the seeds of an object: those of its list, then those of `start`. */
#ifndef NOCTULE_KERNELS_FUZZY_SEEDS_H
#define NOCTULE_KERNELS_FUZZY_SEEDS_H

#include "kernels/fuzzy/fuzzy.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fuzzy_seeds {
    const struct kernels_fuzzy_object *object;
    struct image_extent extent;
    size_t listed; /* number of listed seeds returned */
    int64_t word;  /* next word of the start */
    uint64_t rest; /* remaining bits of the previous word */
};

/* Starts before the first seed. The object and its arrays must not change. */
struct fuzzy_seeds fuzzy_seeds_of(const struct kernels_fuzzy_object *object, const struct image_extent *extent);

/* Returns false if no seed is left. */
bool fuzzy_seeds_next(struct fuzzy_seeds *seeds, struct kernels_voxel *seed);

#ifdef __cplusplus
}
#endif
#endif
