/*
 * mesh.h - volume and surface of the marching cubes mesh of a region (Lorensen 1987), from the
 * frequency of each configuration of 2x2x2 voxels (shape_morphology.h). Both are sums over cells, so that
 * no mesh is needed. Vertices are midway between voxels. Two diagonal voxels of the region in a
 * cell's face are not connected. Such meshes are closed. Pure functions. Threads: any.
 */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_MESH_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_MESH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return mm3 and mm2 from counts[MORPHOLOGY_CONFIGURATIONS]. The volume is exact except for its
 * last rounding. */
double mesh_volume(const uint64_t *counts, const double spacing[3]);
double mesh_area(const uint64_t *counts, const double spacing[3]);

/* Returns the volume of a configuration in 48ths of a voxel. */
int32_t mesh_configuration_volume(int configuration);

/* Returns three times the number of its triangles, and the edges of their corners. Edge e runs
 * along axis e / 4 from the (e % 4)th of the voxels that are first along that axis. */
#define MESH_CORNERS 15
int mesh_configuration_edges(int configuration, int edges[MESH_CORNERS]);

/* Sets the midpoint of an edge, in half voxels from the cell's first voxel. */
void mesh_edge_middle(int edge, int32_t middle[3]);

#ifdef __cplusplus
}
#endif
#endif
