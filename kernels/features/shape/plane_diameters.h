/* plane_diameters.h - the longest diameters of a region's mesh within planes of voxels. Pure functions. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_PLANE_DIAMETERS_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_PLANE_DIAMETERS_H

#include "base/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Planes of one column, of one row and of one slice. */
enum { PLANE_OF_COLUMN, PLANE_OF_ROW, PLANE_OF_SLICE, PLANES_OF_VOXELS };

/*
 * Finds the distance in mm of the two vertices of the mesh (mesh.h) that are farthest apart, among those with one coordinate
 * in common, for each axis. Vertices are midway between voxels of the region and others, so they lie in planes of voxels
 * and midway between two planes. Bits are as in struct image_mask; NULL: every voxel. 0: the region is empty. Returns 0 or
 * -ENOMEM.
 */
int plane_diameters(const uint64_t *bits, const struct image_extent *extent, const double spacing[3],
                    double diameters[PLANES_OF_VOXELS]);

#ifdef __cplusplus
}
#endif
#endif
