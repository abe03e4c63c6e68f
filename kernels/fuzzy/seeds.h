/* seeds.h - the seeds of an object one after the other: those of its list, then its start's. */
#ifndef NOCTULE_FUZZY_SEEDS_H
#define NOCTULE_FUZZY_SEEDS_H

#include "kernels/fuzzy/fuzzy.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fuzzy_seeds {
    const struct kernels_fuzzy_object *object;
    struct image_extent extent;
    size_t listed; /* have been had */
    int64_t word;  /* of the start that is next */
    uint64_t rest; /* what is still to come of the one before it */
};

/* Before the first one. The object and what it is made of stay as they are. */
struct fuzzy_seeds fuzzy_seeds_of(const struct kernels_fuzzy_object *object,
                                  const struct image_extent *extent);

/* False: there is none left. */
bool fuzzy_seeds_next(struct fuzzy_seeds *seeds, struct kernels_voxel *seed);

/* Whether there is one. */
bool fuzzy_seeds_any(const struct kernels_fuzzy_object *object, const struct image_extent *extent);

#ifdef __cplusplus
}
#endif
#endif
