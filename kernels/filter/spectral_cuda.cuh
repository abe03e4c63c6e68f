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

/* Calls use(read) with a function that returns the clipped value of a voxel, without branches. */
template <typename Use>
__device__ static __forceinline__ void
spectral_read(const struct spectral_input &input, const Use &use)
{
    const struct filter_request &request = input.request;
    const bool is_signed = input.pixel == IMAGE_INT16;

    if (input.values)
        use([&](int64_t voxel) { return filter_clip(&request, input.values[voxel]); });
    else if (input.pixel == IMAGE_UINT8)
        use([&](int64_t voxel) { return filter_value(&request, ((const uint8_t *)input.voxels)[voxel]); });
    else
        use([&](int64_t voxel) {
            const int32_t stored = ((const uint16_t *)input.voxels)[voxel];

            return filter_value(&request, is_signed ? (int16_t)stored : stored);
        });
}

/* The line of this thread between a tile and a spectrum of FFT_LINES adjacent places, and its first place. */
struct spectral_walk {
    int line, first, next;
};

/* In a tile of rows, adjacent threads have FFT_LINES adjacent places, then lines. */
template <typename Tile>
__device__ static __forceinline__ struct spectral_walk
spectral_walk_of(const Tile &tile)
{
    const int thread = (int)threadIdx.x, group = thread / FFT_LINES, next = (int)blockDim.x >> tile.shift;

    if (!Tile::ROWS || tile.each == 0)
        return {fft_line(tile), fft_first(tile), fft_next(tile)};
    return {group & ((1 << tile.shift) - 1), (group >> tile.shift) * FFT_LINES + thread % FFT_LINES, next};
}

/* Calls store(i, load(i)) for the first `count` values of the thread's line. Some values are loaded before they are
 * stored, so that reads do not wait for each other. Calls load(count - 1) for values that do not exist. Ends with
 * __syncthreads(). */
template <typename Load, typename Store>
__device__ static __forceinline__ void
spectral_along(const struct spectral_walk &walk, int count, const Load &load, const Store &store)
{
    enum { TOGETHER = 4 };

    const int next = walk.next;

    for (int first = walk.first; first < count; first += TOGETHER * next) {
        decltype(load(0)) values[TOGETHER];

#pragma unroll
        for (int n = 0; n < TOGETHER; n++)
            values[n] = load(first + n * next < count ? first + n * next : count - 1);
#pragma unroll
        for (int n = 0; n < TOGETHER; n++)
            if (first + n * next < count)
                store(first + n * next, values[n]);
    }
    __syncthreads();
}

/* Values of a pair of lines. */
struct spectral_two {
    double2 first, second;
};

/* Returns the transforms of two real lines from place k of the transform of first + i second, a line in shared memory. */
template <typename Tile>
__device__ static __forceinline__ struct spectral_two
spectral_split(const Tile &tile, const double2 *memory, int line, int k)
{
    const double2 a = memory[fft_slot(tile, k) + fft_line_slot(tile, line)];
    const double2 b = memory[fft_slot(tile, k > 0 ? tile.plan.side - k : 0) + fft_line_slot(tile, line)];

    return {make_double2((a.x + b.x) / 2, (a.y - b.y) / 2), make_double2((a.y + b.y) / 2, (b.x - a.x) / 2)};
}

/* Queues a filter whose codes stay in device memory. Sets *codes to them. */
int cuda_spectral_queue(struct cuda_lane *lane, const struct filter_task *job, int32_t **codes, struct error *error);

#endif
