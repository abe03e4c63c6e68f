/* rescaled_private.h - helpers of the files of this folder. */
#ifndef NOCTULE_KERNELS_RESCALED_RESCALED_PRIVATE_H
#define NOCTULE_KERNELS_RESCALED_RESCALED_PRIVATE_H

#include "kernels/cpu/cpu_pool.h"
#include "kernels/rescaled/rescaled.h"

enum { RESCALED_THREADS = 16 }; /* more wait for memory */

/* Runs the body on up to `threads`, at most RESCALED_THREADS, threads; on this thread alone if there are no others. */
void rescaled_run(int threads, void (*body)(void *context), void *context);

/* Returns the value of a voxel, without limits and padding. */
static inline double
rescaled_value(const struct rescaled_values *values, int64_t voxel)
{
    const struct image_rescale *rescale = &values->rescales[voxel / image_slice_voxels(&values->extent)];

    return rescale->slope * image_value(values->voxels, values->pixel, voxel) + rescale->intercept;
}

#endif
