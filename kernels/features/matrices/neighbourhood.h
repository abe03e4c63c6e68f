/* neighbourhood.h - requests, shared counting and descriptions of the neighbourhood families
 * (NGTDM, NGLDM). Threads: any; for counting as in texture.h. */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_NEIGHBOURHOOD_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_NEIGHBOURHOOD_H

#include "kernels/features/family.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

enum neighbourhood {
    NEIGHBOURHOOD_TONES,       /* NGTDM */
    NEIGHBOURHOOD_DEPENDENCES, /* NGLDM */
    NEIGHBOURHOODS,
};

/* NGTDM (IBSI 3.10): differences of voxels from the mean of their neighbours. Voxels without
 * neighbours do not count. */
enum ngtdm_feature {
    NGTDM_COARSENESS, /* QCDE; 10^6 if all voxels are equal, as in IBSI */
    NGTDM_CONTRAST,   /* 65HE; 0 for one level */
    NGTDM_BUSYNESS,   /* NQ30; 0 for one level */
    NGTDM_COMPLEXITY, /* HDEZ */
    NGTDM_STRENGTH,   /* 1X9X; 0 if all voxels are equal */
    NGTDM_FEATURES,
};

/* Returns the request for the region's levels by its options. */
struct texture_neighbours neighbourhood_request(const struct feature_region *region, enum neighbourhood of);

/* Returns the number of counts of all matrices. */
size_t neighbourhood_size(const struct feature_region *region, const struct texture_neighbours *request);

/* Counts for the requested families, once if both use the same distance. The second function
 * returns the counts of one of them. */
int neighbourhood_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error);
const uint64_t *neighbourhood_counts(const struct feature_region *region, enum neighbourhood of,
                                     const uint64_t *counts);

/* Returns the memory for both (family.h). */
size_t neighbourhood_bytes(const struct feature_region *largest, size_t set);

/* Adds the aggregation of a family without directions (family.h). */
void neighbourhood_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS]);

#ifdef __cplusplus
}
#endif
#endif
