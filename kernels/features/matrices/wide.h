/*
 * wide.h - counts of matrices for more levels than the lane's operations take (TEXTURE_MAX_LEVELS), from the levels of a
 * region on the host. Counts are those of texture.h: the requests' levels are not used. All backends share them. Threads:
 * any; idle threads of the lane's device help.
 */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_WIDE_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_WIDE_H

#include "kernels/features/family.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts must be zeros. */
void wide_glcm(const struct feature_region *region, const struct texture_glcm *request, uint64_t *counts);
void wide_runs(const struct feature_region *region, const struct texture_runs *request, uint64_t *counts);
void wide_neighbours(const struct feature_region *region, const struct texture_neighbours *request, uint64_t *counts);

/* A zone's key, as texture_zone_key() with room for more levels. */
#define WIDE_ZONE_VALUE_BITS 31
#define WIDE_ZONE_LEVEL_BITS 17

/* Lists zones by size and by distance, in ascending order of keys. The caller must free them, also after an error. Returns
 * 0 or -ENOMEM, or -E2BIG if the volume has 2^31 voxels or more. */
int wide_zones(const struct feature_region *region, const struct texture_zones *request,
               struct texture_zone_list lists[TEXTURE_ZONE_KINDS], struct error *error);

#ifdef __cplusplus
}
#endif
#endif
