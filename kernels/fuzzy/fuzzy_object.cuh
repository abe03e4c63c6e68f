/*
 * fuzzy_object.cuh - an object of fuzzy connectedness without its map: the voxels joined to the
 * seeds by paths of affinities above the threshold. One pass over the volume makes three bits per
 * voxel, and one flood over these finds the object (edge_flood_cuda.cuh).
 *
 * The affinity of two neighbours decreases with their difference. For each sum of two values, one
 * number therefore suffices: the max difference with an affinity above the threshold.
 */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_OBJECT_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_OBJECT_CUH

#include "kernels/fuzzy/affinity.h"
#include "kernels/fuzzy/edge_flood_cuda.cuh"

struct fuzzy_reach {
    const int32_t *reach; /* from fuzzy_fill_reach, on the device */
    int32_t low, span;    /* as in struct fuzzy_tables */
    struct image_range padding;
};

/* Queues the making of edges, and clears `settled` and the other state. edge_flood_seed may
 * follow. */
cudaError_t fuzzy_object_edges(const void *voxels, enum image_pixel pixel, const struct fuzzy_reach *reach,
                               const struct edge_flood_volume *volume, cudaStream_t stream);

#endif
