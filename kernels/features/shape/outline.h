/* outline.h - candidate points for the convex hull of a region's mesh. Pure functions. Threads:
 * any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_OUTLINE_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_OUTLINE_H

#include "base/image.h"
#include "kernels/features/shape/hull.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Finds points in half voxels, shifted by one to be nonnegative, that include all corners of a side
 * of the hull of a region's mesh. The mesh has a vertex half a voxel next to each of its voxels,
 * along each axis on each side, if the region ends there. There are hardly more points than
 * corners. Uses the voxels of slices first .. end - 1. Processing all slices in bands gives the
 * same points in the same order as at once. Bits are as in struct image_mask; NULL: every voxel.
 * Returns 0 or -ENOMEM. The caller must free *points.
 */
int outline_points(const uint64_t *bits, const struct image_extent *extent, enum hull_side side, int64_t first,
                   int64_t end, struct hull_point **points, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
