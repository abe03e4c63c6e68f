/* spectral_cuda.cuh - the parts of spectral_cuda.cu that other sources and the benchmark use. */
#ifndef NOCTULE_KERNELS_FILTER_SPECTRAL_CUDA_CUH
#define NOCTULE_KERNELS_FILTER_SPECTRAL_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/filter/fft_cuda.cuh"
#include "kernels/filter/spectral.h"

/* The input of a filter. */
struct spectral_input {
    const void *voxels;
    const int32_t *values; /* instead of the voxels; NULL: none */
    enum image_pixel pixel;
    struct filter_request request;
};

/* Returns a clipped value. */
__device__ static __forceinline__ int32_t
spectral_value(const struct spectral_input &input, int64_t voxel)
{
    int32_t stored;

    if (input.values)
        return filter_clip(&input.request, input.values[voxel]);
    if (input.pixel == IMAGE_UINT8)
        stored = ((const uint8_t *)input.voxels)[voxel];
    else
        stored = input.pixel == IMAGE_INT16 ? ((const int16_t *)input.voxels)[voxel]
                                            : ((const uint16_t *)input.voxels)[voxel];
    return filter_value(&input.request, stored);
}

/* Calls body(line, i) for the `count` values of each line of the block, with adjacent threads at adjacent i. Ends with
 * __syncthreads(). */
template <typename Body>
__device__ static __forceinline__ void
spectral_along(const struct fft_tile &tile, int count, const Body &body)
{
    const int lane = (int)threadIdx.x % 32, spans = (count + 31) / 32;

    for (int unit = (int)threadIdx.x / 32; unit < spans << tile.shift; unit += (int)blockDim.x / 32) {
        const int i = (unit >> tile.shift) * 32 + lane;

        if (i < count)
            body(unit & ((1 << tile.shift) - 1), i);
    }
    __syncthreads();
}

/* Queues a filter whose codes stay in device memory. Sets *codes to them. */
int cuda_spectral_queue(struct cuda_lane *lane, const struct filter_task *job, int32_t **codes, struct error *error);

#endif
