/*
 * ref_morphology.h - counts the shape of a region by the definitions of kernels/morphology/morphology.h, one voxel at
 * a time.
 */
#ifndef NOCTULE_REF_MORPHOLOGY_H
#define NOCTULE_REF_MORPHOLOGY_H

#include "kernels/morphology/lags.h"
#include "kernels/morphology/morphology.h"

#include <stdbool.h>

/* Counts like morphology_run, for a volume of this extent and pixel type. */
void ref_morphology(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                    const struct morphology_region *region, uint64_t *counts);

/* Counts like lags_run, over every pair of voxels. */
void ref_lags(struct image_extent extent, enum image_pixel pixel, const void *voxels, const struct lags *lags,
              uint64_t *counts);

/*
 * Return whether the voxel is in the morphological mask, and whether its value is also kept. Voxels beyond the volume
 * are not.
 */
bool ref_morphology_has(struct image_extent extent, const struct morphology_region *region, int64_t x, int64_t y,
                        int64_t z);
bool ref_morphology_keeps(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                          const struct morphology_region *region, int64_t x, int64_t y, int64_t z);

#endif
