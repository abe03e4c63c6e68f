/*
 * ref_morphology.h - counts of a region's shape by their definitions (kernels/morphology/morphology.h), one
 * voxel at a time.
 */
#ifndef NOCTULE_REF_MORPHOLOGY_H
#define NOCTULE_REF_MORPHOLOGY_H

#include "kernels/morphology/lags.h"
#include "kernels/morphology/morphology.h"

#include <stdbool.h>

/* As morphology_run, of a volume of this extent and pixel type. */
void ref_morphology(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                    const struct morphology_region *region, uint64_t *counts);

/* As lags_run: every pair of voxels. */
void ref_lags(struct image_extent extent, enum image_pixel pixel, const void *voxels,
              const struct lags *lags, uint64_t *counts);

/* Is the voxel of the morphological mask; and is its value among those that are kept, too? Beyond the volume
 * none is. */
bool ref_morphology_has(struct image_extent extent, const struct morphology_region *region,
                        int64_t x, int64_t y, int64_t z);
bool ref_morphology_keeps(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                          const struct morphology_region *region, int64_t x, int64_t y, int64_t z);

#endif
