/* zones.h - counting and features shared by the zone families (GLSZM, GLDZM). Threads: any; for
 * counting as in texture.h. */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_ZONES_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_ZONES_H

#include "kernels/features/matrices/level_matrix.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ZONE_FEATURES = LEVEL_MATRIX_ENERGY };

/* Counts zones by size and, if GLDZM is requested, by distance. */
int zones_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error);

/* Returns the memory for both (family.h). */
size_t zones_bytes(const struct feature_region *largest, size_t set);

/* Computes the features of zones by size or by distance. For distances, the sizes provide the
 * number of voxels. Returns 0 or -ENOMEM. */
int zones_values(const uint64_t *counts, enum texture_zone_kind kind, struct feature_value *values);

#ifdef __cplusplus
}
#endif
#endif
