/*
 * fuzzy.h - fuzzy connectedness (Udupa 1996, Wang 2016) on a lane's volume, absolute and relative
 * (Saha 2001).
 */
#ifndef NOCTULE_FUZZY_H
#define NOCTULE_FUZZY_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* KERNELS_FUZZY's demand. */
struct kernels_fuzzy_demand {
    size_t objects;
    size_t maps; /* of them whose connectedness map is wanted */
    bool relative;
};

struct kernels_voxel {
    int64_t x, y, z;
};

/*
 * One object, 6-connected. With
 *   first[s]  = weight * exp(-(s / 2 - mean)^2 / (2 sigma^2))                 s = a + b
 *   second[d] = (1 - weight) * exp(-(d / 2)^2 / (2 homogeneity_sigma^2))      d = |a - b|
 * the affinity of two neighbours of stored values a and b is floor(65535 * (first + second)) in
 * double precision without fused multiply-add, at most 65535; it is 0 when either value is padding.
 * The connectedness map of a voxel is the largest, over all paths from a seed, of the smallest
 * affinity on the path; 65535 at a seed, and 0 everywhere without one. The object is where map >
 * threshold. Seeds lie in the volume (-EINVAL otherwise); a seed that is padding counts as any other, and reaches nothing. Sigmas are
 * > 0, the weight is in 0..1, everything is finite, and so are the sigmas' squares, which are not 0
 * either, in double precision.
 */
struct kernels_fuzzy_object {
    const struct kernels_voxel *seeds;
    size_t seed_count;
    const uint64_t *start; /* more seeds, as struct image_mask has bits; NULL: none */
    double mean, sigma;
    double homogeneity_sigma;
    double weight;
    uint16_t threshold;
    struct image_range padding; /* lo > hi: none */
    bool map;                   /* is the connectedness map wanted back? */
};

/* The lane owns both. */
struct kernels_fuzzy_result {
    struct image_mask object;
    const uint16_t *map; /* one per voxel, x fastest, tightly packed; NULL when not wanted */
};

/*
 * To convergence, for every object; needs every slice announced (-EBUSY otherwise). With `relative`
 * a voxel that is above the thresholds of several objects belongs to that of them whose map is
 * strictly the largest there, and to none when the strongest two are equally strong. objects and
 * results have one element for each of the demand's objects, and `map` is set in as many as it
 * said. May be called again, which takes the results of the run before away.
 */
int kernels_fuzzy_run(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects,
                      size_t count, bool relative, struct kernels_fuzzy_result *results,
                      struct error *error);

/* Within kernels/: what the operation is given. */
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
