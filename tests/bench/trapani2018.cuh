/*
 * trapani2018.cuh - the method of Trapani 2018 as its authors describe it (section III, "8vx-aligned"):
 * what the level set of kernels/ is compared with.
 *
 * One launch a stage 1 and 3, one a pass of stage 2. A block of 8 x 8 x 8 threads has 16 x 16 x 16
 * voxels, a thread 2 x 2 x 2; states are one byte; each pass loads a block's states and those one
 * further into shared memory; a block without a voxel of state -1 or 2 is passed over; a flag says
 * whether a pass changed anything, and the host repeats until none did. The resolutions of what the
 * paper leaves open are those of kernels.h, so that the result is the same.
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
    uint8_t *active; /* on the device, one a block of 16 x 16 x 16 voxels */
    int *changed;    /* pinned, and on the device by the same address */
};

/* Blocks of 16 x 16 x 16 voxels. */
size_t trapani2018_blocks(struct image_extent extent);

/* All three stages; waits for the stream after each pass. Returns the number of passes. */
int trapani2018_run(const struct trapani2018 *run, cudaStream_t stream);

#endif
