/*
 * ref_texture.h - counts texture by the definitions of kernels/texture/texture.h, one voxel at a time, and finds the
 * neighbours of IBSI.
 */
#ifndef NOCTULE_REF_TEXTURE_H
#define NOCTULE_REF_TEXTURE_H

#include "kernels/texture/texture.h"

/* Members of a struct kernels_demand. */
#define REF_TEXTURE_DEMAND                                                                                             \
    .of[KERNELS_REGION] = &kernels_asked, .of[KERNELS_GLCM] = &kernels_asked, .of[KERNELS_HISTOGRAM] = &kernels_asked, \
    .of[KERNELS_PATTERNS] = &texture_patterns_demands[TEXTURE_PATTERNS], .of[KERNELS_NEIGHBOURS] = &kernels_asked,     \
    .of[KERNELS_RUNS] = &kernels_asked, .of[KERNELS_ZONES] = &kernels_asked, .of[KERNELS_MORPHOLOGY] = &kernels_asked, \
    .of[KERNELS_LAGS] = &kernels_asked

/* Count like texture_glcm_run and texture_histogram_run, for a volume of this extent and pixel type. */
void ref_texture_glcm(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                      const struct texture_glcm *request, uint64_t *counts);
void ref_texture_histogram(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                           const uint64_t *region, bool per_slice, uint64_t *counts);

/* Count like texture_neighbours_run and texture_runs_run. */
void ref_texture_neighbours(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                            const struct texture_neighbours *request, uint64_t *counts);
void ref_texture_runs(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                      const struct texture_runs *request, uint64_t *counts);

/*
 * Write the keys of the zones of texture_zones_run, or of a list, in ascending order, and return their number. `keys`
 * must have room for one per voxel.
 */
uint64_t ref_texture_zones(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                           const struct texture_zones *request, enum texture_zone_kind kind, uint64_t *keys);
uint64_t ref_texture_listed(const struct texture_zone_list *list, uint64_t *keys);

/* Return the number of stored values of a pixel type, and the smallest of them. */
size_t ref_texture_values(enum image_pixel pixel);
int32_t ref_texture_smallest(enum image_pixel pixel);

/* Returns whether the voxel is in the region, whose rows are padded to whole words. NULL: every voxel is. */
bool ref_in_region(const uint64_t *region, struct image_extent extent, int64_t x, int64_t y, int64_t z);

/*
 * Finds one of each pair of opposite directions at a Chebyshev distance, within a slice or in space: 4 and 13 at
 * distance 1. `offsets` must have room for all of them (a volume's: ((2 d + 1)^3 - (2 d - 1)^3) / 2). Returns their
 * number.
 */
size_t ref_directions(bool in_slice, int32_t distance, struct texture_offset *offsets);

#endif
