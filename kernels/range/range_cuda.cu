/* range_cuda.cu - finds the smallest and largest stored value in one pass over the volume. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/range/range.h"

#include <errno.h>

enum {
    EXTREMES_THREADS = 512,
    EXTREMES_BLOCKS_PER_PROCESSOR = 4,
};

/* Values are relative to the smallest of their type (`bias`) and therefore unsigned. Values skip ..
 * skip + span are skipped. */
struct extremes {
    uint32_t smallest; /* UINT32_MAX if there is none */
    uint32_t largest;
};

struct skipped {
    uint32_t bias;
    uint32_t skip;
    uint32_t span;
};

__device__ __forceinline__ void
take_value(struct extremes *own, uint32_t value, struct skipped skipped)
{
    value ^= skipped.bias;
    bool kept = value - skipped.skip > skipped.span;

    own->smallest = min(own->smallest, kept ? value : UINT32_MAX);
    own->largest = max(own->largest, kept ? value : 0);
}

/* Sets extremes[0] to the smallest value and extremes[1] to the complement of the largest. Both
 * must start as all ones for atomicMin. */
template <typename Value>
__global__ void
__launch_bounds__(EXTREMES_THREADS)
    find_extremes(const Value *values, size_t count, struct skipped skipped, uint32_t *extremes)
{
    const size_t a_piece = sizeof(uint4) / sizeof(Value);
    const uint4 *pieces = (const uint4 *)values;
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t step = (size_t)gridDim.x * blockDim.x;
    struct extremes own = {UINT32_MAX, 0};

#pragma unroll 4
    for (size_t i = thread; i < count / a_piece; i += step) {
        const uint4 piece = pieces[i];
        const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};

#pragma unroll
        for (unsigned word = 0; word < 4; word++)
#pragma unroll
            for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Value))
                take_value(&own, (Value)(words[word] >> shift), skipped);
    }
    for (size_t i = count / a_piece * a_piece + thread; i < count; i += step)
        take_value(&own, values[i], skipped);
    own.smallest = __reduce_min_sync(0xFFFFFFFF, own.smallest);
    own.largest = __reduce_max_sync(0xFFFFFFFF, own.largest);
    if (threadIdx.x % warpSize == 0 && own.smallest != UINT32_MAX) {
        atomicMin(&extremes[0], own.smallest);
        atomicMin(&extremes[1], ~own.largest);
    }
}

/* Two numbers in the form of find_extremes. */
struct cuda_range {
    uint32_t *extremes, *host_extremes;
};

static void
range_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_range *own = (struct cuda_range *)kernels_state(lane, KERNELS_RANGE);

    cuda_take(&memory->device, &own->extremes, 2);
    cuda_take(&memory->host, &own->host_extremes, 2);
}

static int
cuda_range_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct range_request *request = (const struct range_request *)given;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    const struct cuda_range *own = (const struct cuda_range *)kernels_state(base, KERNELS_RANGE);
    const struct image_range limits = image_pixel_range(base->pixel);
    const struct image_range padding = range_clip(request->padding, base->pixel);
    const size_t count = (size_t)image_voxels(&base->extent);
    const size_t wanted = (count * image_pixel_size(base->pixel) / sizeof(uint4)) / EXTREMES_THREADS + 1;
    const size_t most = (size_t)device->multiprocessors * EXTREMES_BLOCKS_PER_PROCESSOR;
    const unsigned blocks = (unsigned)(wanted < most ? wanted : most);
    /* 2^31 lies beyond every value, so that no value is skipped. */
    struct skipped skipped = {limits.lo < 0 ? 0x8000u : 0, 1u << 31, 0};

    if (padding.lo <= padding.hi) {
        skipped.skip = (uint32_t)(padding.lo - limits.lo);
        skipped.span = (uint32_t)(padding.hi - padding.lo);
    }

    CUDA_TRY(device, cudaMemsetAsync(own->extremes, 0xFF, 2 * sizeof(*own->extremes), lane->work));
    if (base->pixel == IMAGE_UINT8)
        find_extremes<uint8_t><<<blocks, EXTREMES_THREADS, 0, lane->work>>>((const uint8_t *)lane->device_voxels, count,
                                                                            skipped, own->extremes);
    else
        find_extremes<uint16_t><<<blocks, EXTREMES_THREADS, 0, lane->work>>>((const uint16_t *)lane->device_voxels,
                                                                             count, skipped, own->extremes);
    CUDA_LAUNCHED(device);
    CUDA_FETCH(lane, own->host_extremes, own->extremes, 2);
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    if (own->host_extremes[0] == UINT32_MAX)
        return -ENODATA;
    request->range->lo = limits.lo + (int32_t)own->host_extremes[0];
    request->range->hi = limits.lo + (int32_t)~own->host_extremes[1];
    return 0;
}

const struct kernels_op cuda_range_op = {
    .name = "the value range",
    .state_size = sizeof(struct cuda_range),
    .transient = true,
    .place = range_place,
    .run = cuda_range_run,
};
