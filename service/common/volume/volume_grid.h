/*
 * volume_grid.h - compares boxes of voxels in space, and finds the voxels of one in another. Pure functions.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_GRID_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_GRID_H

#include "service/common/volume/volume_file.h"

#define VOLUME_GRID_MM 0.01 /* max distance of two voxel centres that count as the same place */

/* Returns whether the matrix is finite and not singular. */
bool volume_grid_regular(const struct volume_grid *grid);

/* Where the voxels of a box lie in another one: voxel (x, y, z) of `to` is voxel first + x * stride[0] + y * stride[1] +
 * z * stride[2] of `from`. */
struct volume_walk {
    int64_t first, stride[3];
};

/*
 * Returns whether both boxes have the same voxel centres within VOLUME_GRID_MM, in any order and direction of axes, and
 * fills `walk`. Otherwise `why` names the sizes, or the voxel with the largest distance, for a message.
 */
bool volume_grid_same(const struct volume_grid *from, const struct volume_grid *to, struct volume_walk *walk,
                      char why[160]);

/*
 * Finds for each voxel of row y of slice z of `to` the index of the nearest voxel of `from`, along each axis of `from`; -1
 * if it lies more than half a voxel beyond the centres of the outer voxels. A tie, within 1e-6 voxels, takes the lower
 * index. `indices`: to->size[0] values. `from` must be regular.
 */
void volume_nearest_row(const struct volume_grid *from, const struct volume_grid *to, int64_t y, int64_t z,
                        int64_t *indices);

#endif
