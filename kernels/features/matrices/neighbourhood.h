/*
 * neighbourhood.h - what the families of neighbourhoods (NGTDM, NGLDM) ask for alike, how they count it
 * together, and how that is told. Any thread, the counting as texture.h has it.
 */
#ifndef NOCTULE_NEIGHBOURHOOD_H
#define NOCTULE_NEIGHBOURHOOD_H

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

/* The region's levels, by its options. */
struct texture_neighbours neighbourhood_request(const struct feature_region *region,
                                                enum neighbourhood of);

/* The counts of all matrices. */
size_t neighbourhood_size(const struct feature_region *region,
                          const struct texture_neighbours *request);

/* Counts for those of the two that are wanted: once where both look as far. And where the counts of
 * one of them stand. */
int neighbourhood_count(const struct feature_region *region, size_t set, uint64_t **counts,
                        struct error *error);
const uint64_t *neighbourhood_counts(const struct feature_region *region, enum neighbourhood of,
                                     const uint64_t *counts);

/* Of both (family.h). */
size_t neighbourhood_bytes(const struct feature_region *largest, size_t set);

/* Puts the aggregation of what has no directions. */
void neighbourhood_describe(const struct texture_options *options, char settings[FEATURE_SETTINGS]);

#ifdef __cplusplus
}
#endif
#endif
