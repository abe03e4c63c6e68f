/*
 * mesh.h - volume and surface of the mesh that marching cubes make of a region (Lorensen 1987), from how
 * often each configuration of 2x2x2 voxels occurs (morphology.h): both are sums over cells, so that no mesh
 * is needed. Vertices lie midway between voxels. Where two voxels of a cell's face are of the region that are
 * not neighbours they are kept apart; such meshes are closed. Pure functions; any thread.
 */
#ifndef NOCTULE_MESH_H
#define NOCTULE_MESH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In mm3 and mm2, of counts[MORPHOLOGY_CONFIGURATIONS]; the volume is exact but for its last rounding. */
double mesh_volume(const uint64_t *counts, const double spacing[3]);
double mesh_area(const uint64_t *counts, const double spacing[3]);

/* The volume of a configuration in 48ths of a voxel. */
int32_t mesh_configuration_volume(int configuration);

/* Three times the number of its triangles, and the edges that their corners lie on: edge e leads along axis
 * e / 4 from the (e % 4)th of the voxels that are first along it. */
#define MESH_CORNERS 15
int mesh_configuration_edges(int configuration, int edges[MESH_CORNERS]);

/* Midway along an edge, in half voxels from the cell's first. */
void mesh_edge_middle(int edge, int32_t middle[3]);

#ifdef __cplusplus
}
#endif
#endif
