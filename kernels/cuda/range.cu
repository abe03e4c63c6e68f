/* range.cu - the smallest and the largest stored value, in one read of the volume. */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>

enum {
    EXTREMES_THREADS = 512,
    EXTREMES_BLOCKS_A_PROCESSOR = 4,
};

/*
 * Values are counted from the smallest of their type (`bias`), so
 * that all are unsigned; those from skip to skip + span are left out.
 */
struct extremes {
    uint32_t smallest; /* UINT32_MAX when there is none */
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

template <typename Value>
__device__ __forceinline__ void
take_piece(struct extremes *own, uint4 piece, struct skipped skipped)
{
    const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Value))
            take_value(own, (Value)(words[i] >> shift), skipped);
}

/* extremes[0] becomes the smallest value and extremes[1] the complement of the largest: atomicMin
 * gets to both from all ones. */
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
    for (size_t i = thread; i < count / a_piece; i += step)
        take_piece<Value>(&own, pieces[i], skipped);
    for (size_t i = count / a_piece * a_piece + thread; i < count; i += step)
        take_value(&own, values[i], skipped);
    own.smallest = __reduce_min_sync(0xFFFFFFFF, own.smallest);
    own.largest = __reduce_max_sync(0xFFFFFFFF, own.largest);
    if (threadIdx.x % warpSize == 0 && own.smallest != UINT32_MAX) {
        atomicMin(&extremes[0], own.smallest);
        atomicMin(&extremes[1], ~own.largest);
    }
}

static struct skipped
skipped_values(int32_t low, int32_t high, struct image_range padding)
{
    /* Nothing is as far from the smallest value as 2^31. */
    struct skipped skipped = {low < 0 ? 0x8000u : 0, 1u << 31, 0};

    padding.lo = padding.lo > low ? padding.lo : low;
    padding.hi = padding.hi < high ? padding.hi : high;
    if (padding.lo <= padding.hi) {
        skipped.skip = (uint32_t)(padding.lo - low);
        skipped.span = (uint32_t)(padding.hi - padding.lo);
    }
    return skipped;
}

static void
launch_extremes(struct cuda_lane *lane, struct skipped skipped)
{
    const struct image_extent *extent = &lane->base.extent;
    size_t count = (size_t)(extent->columns * extent->rows * extent->slices);
    size_t wanted =
        (count * image_pixel_size(lane->base.pixel) / sizeof(uint4)) / EXTREMES_THREADS + 1;
    size_t most =
        (size_t)cuda_device_of(&lane->base)->multiprocessors * EXTREMES_BLOCKS_A_PROCESSOR;
    unsigned blocks = (unsigned)(wanted < most ? wanted : most);

    if (lane->base.pixel == IMAGE_UINT8)
        find_extremes<<<blocks, EXTREMES_THREADS, 0, lane->work>>>(
            (const uint8_t *)lane->device_voxels, count, skipped, lane->device_extremes);
    else
        find_extremes<<<blocks, EXTREMES_THREADS, 0, lane->work>>>(
            (const uint16_t *)lane->device_voxels, count, skipped, lane->device_extremes);
}

int
cuda_volume_range(struct cuda_lane *lane, struct image_range padding, struct image_range *range,
                  char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    int32_t low = lane->base.pixel == IMAGE_INT16 ? INT16_MIN : 0;
    int32_t high = low + (lane->base.pixel == IMAGE_UINT8 ? UINT8_MAX : UINT16_MAX);
    const size_t size = 2 * sizeof(uint32_t);

    CUDA_TRY(device, cudaMemsetAsync(lane->device_extremes, 0xFF, size, lane->work));
    launch_extremes(lane, skipped_values(low, high, padding));
    CUDA_LAUNCHED(device);
    CUDA_TRY(device, cudaMemcpyAsync(lane->host_extremes, lane->device_extremes, size,
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    if (lane->host_extremes[0] == UINT32_MAX)
        return -ENODATA;
    range->lo = low + (int32_t)lane->host_extremes[0];
    range->hi = low + (int32_t)~lane->host_extremes[1];
    return 0;
}
