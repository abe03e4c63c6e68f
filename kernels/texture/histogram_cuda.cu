/* histogram_cuda.cu - how often each stored value occurs, on the GPU. */
#include "kernels/texture/texture_cuda.cuh"

enum {
    THREADS = 1024,
    WARP = 32,
    VALUES_HALF = 1 << 15, /* counters of 16-bit values that fit shared memory */
};

static struct cuda_counted *
cuda_histogram_state(const struct kernels_lane *lane)
{
    return (struct cuda_counted *)kernels_state(lane, KERNELS_HISTOGRAM);
}

/* All copies of a counter; each thread begins with another bank. */
static __device__ unsigned long long
sum_copies(const uint32_t *counters, uint32_t counter, uint32_t copies)
{
    unsigned long long sum = 0;

    for (uint32_t i = 0; i < copies; i++)
        sum += counters[counter * copies + ((i + threadIdx.x) & (copies - 1))];
    return sum;
}

/*
 * Part blockIdx.x of slices first .. first + slice_count - 1 of histogram blockIdx.y, of its values
 * those of half blockIdx.z (there is one half of bytes). Bytes have a counter for each lane.
 */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS, 2)
    cuda_histogram_count_values(struct glcm_volume volume, uint32_t first, uint32_t slice_count,
                                unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const uint32_t values = sizeof(Value) == 1 ? 256 : VALUES_HALF;
    const uint32_t copies = sizeof(Value) == 1 ? WARP : 1;
    const uint32_t of_piece = texture_piece<Value>::VALUES;
    const uint32_t across = (volume.columns + of_piece - 1) / of_piece;
    const uint32_t lowest = blockIdx.z * values;
    const uint64_t pieces = (uint64_t)slice_count * volume.rows * across;
    const size_t first_row = (size_t)(first + blockIdx.y) * volume.rows;
    uint32_t *counters = (uint32_t *)shared_counters + threadIdx.x % copies;

    texture_clear_counters<THREADS>((uint32_t *)shared_counters, values * copies);
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < pieces;
         i += (uint64_t)gridDim.x * THREADS) {
        const uint64_t row = i / across;
        const size_t at = first_row + row;
        const uint32_t x = (uint32_t)(i - row * across) * of_piece;
        struct texture_piece<Value> piece;

        texture_load_piece((const Value *)volume.voxels + at * volume.columns + x,
                           volume.region ? volume.region + at * volume.words_per_row : NULL,
                           volume.columns, x, &piece);
        if (piece.in == 0)
            continue;
#pragma unroll
        for (uint32_t k = 0; k < of_piece; k++) {
            const uint32_t value = (piece.value(k) ^ volume.bias) - lowest;

            if ((piece.in >> k & 1) != 0 && value < values)
                atomicAdd(&counters[value * copies], 1u);
        }
    }
    __syncthreads();
    counts += (size_t)blockIdx.y * values * gridDim.z + lowest;
    for (uint32_t i = threadIdx.x; i < values; i += THREADS) {
        unsigned long long sum = sum_copies((const uint32_t *)shared_counters, i, copies);

        if (sum != 0)
            atomicAdd(&counts[i], sum);
    }
}

static void
cuda_histogram_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_counted_place(lane, memory, cuda_histogram_state(lane));
}

/* Histograms first .. first + count - 1, each of slice_count slices. */
static int
run_histograms(struct cuda_lane *lane, const struct glcm_volume *volume, size_t first, size_t count,
               uint32_t slice_count, uint64_t *counts, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = cuda_histogram_state(&lane->base);
    const size_t values = texture_values(lane);
    const unsigned parts = cuda_texture_parts(lane, count), halves = values == 256 ? 1 : 2;
    const dim3 grid(parts * 2 / halves, (unsigned)count,
                    halves); /* two blocks of bytes at a time */

    CUDA_TRY(device,
             cudaMemsetAsync(counted->counts, 0, count * values * sizeof(uint64_t), lane->work));
    if (lane->base.pixel == IMAGE_UINT8)
        cuda_histogram_count_values<uint8_t>
            <<<grid, THREADS, 256 * WARP * sizeof(uint32_t), lane->work>>>(
                *volume, (uint32_t)first, slice_count, counted->counts);
    else
        cuda_histogram_count_values<uint16_t>
            <<<grid, THREADS, VALUES_HALF * sizeof(uint32_t), lane->work>>>(
                *volume, (uint32_t)first, slice_count, counted->counts);
    CUDA_LAUNCHED(device);
    return cuda_counted_fetch(lane, counted, count * values, counts + first * values, error);
}

/* The slices of the region's box alone. */
static void
histogram_leave_slices(const struct cuda_lane *lane, const uint64_t *region,
                       struct glcm_volume *volume)
{
    const struct image_extent *extent = &lane->base.extent;
    struct texture_box box;

    texture_region_box(&lane->base, region, &box);
    volume->voxels =
        (const char *)volume->voxels +
        (size_t)(box.first[2] * image_slice_voxels(extent)) * image_pixel_size(lane->base.pixel);
    if (volume->region)
        volume->region += (size_t)(box.first[2] * extent->rows) * volume->words_per_row;
    volume->slices = (uint32_t)box.size[2];
}

static int
cuda_histogram_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_histogram_request *request =
        (const struct texture_histogram_request *)given;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    const size_t histograms = request->per_slice ? (size_t)base->extent.slices : 1;
    const size_t batch = TEXTURE_COUNTERS / texture_values(lane);
    struct glcm_volume volume = cuda_texture_volume(lane);
    int rc;

    CUDA_TRY(device, cudaFuncSetAttribute(cuda_histogram_count_values<uint16_t>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)device->shared_per_block));
    rc = cuda_counted_region(lane, cuda_histogram_state(base), request->region, &volume.region,
                             error);
    if (!request->per_slice)
        histogram_leave_slices(lane, request->region, &volume);
    for (size_t first = 0; rc == 0 && first < histograms; first += batch)
        rc = run_histograms(lane, &volume, first, texture_least(batch, histograms - first),
                            request->per_slice ? 1 : volume.slices, request->counts, error);
    return rc;
}

const struct kernels_op cuda_histogram_op = {
    .name = "texture (histogram)",
    .state_size = sizeof(struct cuda_counted),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_histogram_place,
    .run = cuda_histogram_run,
};
