/*
 * zones.h - what the families of zones (GLSZM, GLDZM) count and make of it alike. Any thread, the
 * counting as texture.h has it.
 */
#ifndef NOCTULE_ZONES_H
#define NOCTULE_ZONES_H

#include "kernels/features/matrices/level_matrix.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ZONE_FEATURES = LEVEL_MATRIX_ENERGY };

/* Zones by size, and where GLDZM is wanted, by distance. */
int zones_count(const struct feature_region *region, size_t set, uint64_t **counts,
                struct error *error);

/* Of both (family.h). */
size_t zones_bytes(const struct feature_region *largest, size_t set);

/* Features of zones by size, or by distance: in the latter case the sizes tell of how many voxels
 * they are. 0 or -ENOMEM. */
int zones_values(const uint64_t *counts, enum texture_zone_kind kind, struct feature_value *values);

#ifdef __cplusplus
}
#endif
#endif
