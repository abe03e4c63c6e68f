/*
 * zones.h - what the families of zones (GLSZM, GLDZM) count and make of it alike. Any thread, the
 * counting as texture.h has it.
 */
#ifndef NOCTULE_ZONES_H
#define NOCTULE_ZONES_H

#include "kernels/features/level_matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ZONE_FEATURES = LEVEL_MATRIX_ENERGY };

/* Numbers of a list of zones: how many there are, and their keys. */
size_t zones_list_size(const struct feature_region *region);
int zones_list_count(const struct feature_region *region, bool of_distances, uint64_t *list,
                     struct error *error);

/* Features of zones by size, or by distance: in the latter case the sizes tell of how many voxels
 * they are. 0 or -ENOMEM. */
int zones_list_values(const uint64_t *list, const uint64_t *sizes, struct feature_value *values);

#ifdef __cplusplus
}
#endif
#endif
