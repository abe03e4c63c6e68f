/*
 * trapani2018.cuh - the method of Trapani 2018 as its authors describe it (section III, "8vx-aligned"), as the
 * baseline of the level set of kernels/.
 *
 * Stages 1 and 3 take one launch each, stage 2 one per pass. A block of 8 x 8 x 8 threads has 16 x 16 x 16 voxels, a
 * thread 2 x 2 x 2. States are one byte. Each pass loads a block's states and a halo of one voxel into shared memory.
 * A block without a voxel of state -1 or 2 is skipped. A flag reports whether a pass changed any state, and the host
 * repeats until no pass does. Where the paper is not specific, the method follows kernels.h, so that the result is
 * the same.
 */
#ifndef NOCTULE_TRAPANI2018_CUH
#define NOCTULE_TRAPANI2018_CUH

#include "kernels/level_set/level_set.h"

#include <cuda_runtime.h>

struct trapani2018 {
    struct image_extent extent;
    enum image_pixel pixel;
    const void *voxels; /* on the device */
    struct image_range range;
    struct kernels_shape sphere;
    int8_t *states;  /* on the device; codes in the end */
    uint8_t *active; /* on the device, one per block of 16 x 16 x 16 voxels */
    int *changed;    /* pinned, with the same address on the device */
};

/* Returns the number of blocks of 16 x 16 x 16 voxels. */
size_t trapani2018_blocks(struct image_extent extent);

/* Runs all three stages and waits for the stream after each pass. Returns the number of passes. */
int trapani2018_run(const struct trapani2018 *run, cudaStream_t stream);

#endif
