/*
 * outline.h - what the convex hull of a region's mesh is of. Pure functions; any thread.
 */
#ifndef NOCTULE_OUTLINE_H
#define NOCTULE_OUTLINE_H

#include "base/image.h"
#include "kernels/features/shape/hull.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Points in half voxels, moved by one so that none is below 0, among which all corners of a side of the hull
 * of the mesh of a region are: the mesh has a vertex half a voxel beside each of its voxels, along each axis on each
 * side, where it ends there. They are hardly more than the corners. Those beside voxels of slices first .. end - 1;
 * all slices, band by band, give the same points in the same order as at once.
 * Bits as of struct image_mask; NULL: every voxel. 0 or -ENOMEM; the caller frees *points.
 */
int outline_points(const uint64_t *bits, const struct image_extent *extent, enum hull_side side,
                   int64_t first, int64_t end, struct hull_point **points, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
