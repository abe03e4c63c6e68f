/*
 * fuzzy_object.cuh - an object of fuzzy connectedness whose map nobody asked for: the voxels that
 * paths of affinities above the threshold join to the seeds. One read of the volume makes three
 * bits a voxel of it, and one flood over these finds the object (edge_flood_cuda.cuh).
 *
 * The affinity of two neighbours falls with their difference, so that one number for each sum of
 * two values tells: up to which difference is it above the threshold?
 */
#ifndef NOCTULE_FUZZY_OBJECT_CUH
#define NOCTULE_FUZZY_OBJECT_CUH

#include "kernels/fuzzy/affinity.h"
#include "kernels/fuzzy/edge_flood_cuda.cuh"

struct fuzzy_reach {
    const int32_t *reach; /* of fuzzy_fill_reach, on the device */
    int32_t low, span;    /* as in struct fuzzy_tables */
    struct image_range padding;
};

/* Queues what makes the edges, and clears `settled` and the rest: edge_flood_seed can follow. */
cudaError_t fuzzy_object_edges(const void *voxels, enum image_pixel pixel,
                               const struct fuzzy_reach *reach,
                               const struct edge_flood_volume *volume, cudaStream_t stream);

#endif
