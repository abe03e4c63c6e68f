/*
 * fuzzy.h - fuzzy connectedness (Udupa 1996, Wang 2016) on a lane's volume, absolute and relative
 * (Saha 2001).
 */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_H
#define NOCTULE_KERNELS_FUZZY_FUZZY_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* KERNELS_FUZZY's demand. */
struct kernels_fuzzy_demand {
    size_t objects;
    size_t maps; /* number of objects with a connectedness map in the result */
    bool relative;
};

struct kernels_voxel {
    int64_t x, y, z;
};

/*
 * One object, 6-connected. With
 *   first[s]  = weight * exp(-(s / 2 - mean)^2 / (2 sigma^2))                 s = a + b
 *   second[d] = (1 - weight) * exp(-(d / 2)^2 / (2 homogeneity_sigma^2))      d = |a - b|
 * the affinity of two neighbours with stored values a and b is floor(65535 * (first + second)), at
 * most 65535, in double precision without fused multiply-add. It is 0 if either value is padding.
 * The connectedness of a voxel is the largest, over all paths from a seed, of the smallest affinity
 * on the path. It is 65535 at a seed, and 0 everywhere if there are no seeds. The object is where
 * map > threshold.
 * Seeds must lie in the volume (-EINVAL). A seed in padding counts, but reaches no other voxel.
 * Sigmas must be > 0, the weight must be in 0..1, and all must be finite. The sigmas' squares must
 * be finite and nonzero in double precision.
 */
struct kernels_fuzzy_object {
    const struct kernels_voxel *seeds;
    size_t seed_count;
    const uint64_t *start; /* more seeds, as bits in struct image_mask; NULL: no more */
    double mean, sigma;
    double homogeneity_sigma;
    double weight;
    uint16_t threshold;
    struct image_range padding; /* lo > hi: no padding */
    bool map;                   /* return the connectedness map */
};

/* The lane owns both. */
struct kernels_fuzzy_result {
    struct image_mask object;
    const uint16_t *map; /* one per voxel, x fastest, tightly packed; NULL if not requested */
};

/*
 * Computes every object to convergence. Every slice must be announced (-EBUSY). objects and results
 * must have one element per object of the demand, and `map` must be set in as many as demanded.
 * With `relative`, a voxel above the thresholds of several objects belongs to the one with the
 * strictly largest map value there. If the two strongest are equal, it belongs to no object. May be
 * called again, which invalidates the previous results.
 */
int kernels_fuzzy_run(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects, size_t count,
                      bool relative, struct kernels_fuzzy_result *results, struct error *error);

/* Private to kernels/: returns 0 or -EINVAL. */
int fuzzy_check_objects(const struct kernels_fuzzy_object *objects, size_t count, const struct image_extent *extent,
                        struct error *error);

/* Private to kernels/: the request of the operation. */
struct fuzzy_request {
    const struct kernels_fuzzy_object *objects;
    size_t count;
    bool relative;
    struct kernels_fuzzy_result *results;
};

#ifdef __cplusplus
}
#endif
#endif
