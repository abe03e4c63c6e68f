/*
 * neighbourhood.h - what the families of neighbourhoods (NGTDM, NGLDM) ask for alike, and how that is
 * told. Pure functions; any thread.
 */
#ifndef NOCTULE_NEIGHBOURHOOD_H
#define NOCTULE_NEIGHBOURHOOD_H

#include "kernels/features/family.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The region's levels, by the aggregation of its options; distance and alpha are the family's. */
struct texture_neighbours neighbourhood_request(const struct feature_region *region);

/* The counts of all matrices. */
size_t neighbourhood_size(const struct feature_region *region,
                          const struct texture_neighbours *request);

/* Puts the aggregation of what has no directions. */
void neighbourhood_describe(const struct texture_options *options, char settings[FEATURE_SETTINGS]);

#ifdef __cplusplus
}
#endif
#endif
