/*
 * neighbours_cuda.cu - neighbourhoods on the GPU. At distance 1, neighbours_bits.cuh compares 32
 * voxels at once for few levels and alpha 0, and neighbours_near.cuh two otherwise. At other
 * distances, a thread visits all neighbours of a voxel, and counts it in the block's table if that
 * fits in shared memory.
 */
#include "kernels/texture/neighbours_bits.cuh"
#include "kernels/texture/neighbours_near.cuh"

enum { THREADS = 256 };

template <typename Counter>
static __device__ __forceinline__ void
neighbours_count_voxel(const struct neighbours_job &job, const uint16_t *at, Counter *counters)
{
    const uint32_t plane = job.levels * job.width;
    const int32_t own = *at;
    uint32_t count = ~0u, alike = ~0u; /* -1: without the voxel itself */
    int32_t sum = -own, from;

    if (own == 0)
        return;
    for (int32_t z = -job.deep; z <= job.deep; z++)
        for (int32_t y = -job.distance; y <= job.distance; y++)
            for (int32_t x = -job.distance; x <= job.distance; x++) {
                const int32_t level = at[z * job.box.slice + y * job.box.row + x];

                count += level > 0;
                alike += level > 0 && abs(level - own) <= job.alpha;
                sum += level;
            }
    from = (int32_t)(count * (uint32_t)own) - sum;
    counters += ((uint32_t)own - 1) * job.width;
    atomicAdd(&counters[TEXTURE_ALIKE * plane + alike], (Counter)1);
    atomicAdd(&counters[TEXTURE_PRESENT * plane + count], (Counter)1);
    if (from != 0)
        atomicAdd(&counters[TEXTURE_DEVIATION * plane + count], (Counter)abs(from));
}

/* Counts part blockIdx.x of matrix blockIdx.y: all slices of the box, or slice first +
 * blockIdx.y. */
template <bool SHARED>
static __global__ void
__launch_bounds__(THREADS) neighbours_count_part(struct neighbours_job job, int64_t first, unsigned long long *counts)
{
    extern __shared__ uint32_t neighbours_counters[];
    const uint64_t columns = (uint64_t)job.box.size[0], rows = (uint64_t)job.box.size[1];
    const uint64_t voxels = columns * rows * (uint64_t)(job.per_slice ? 1 : job.box.size[2]);
    const uint64_t end = voxels * (blockIdx.x + 1) / gridDim.x;
    const int64_t slice = job.per_slice ? first + blockIdx.y : 0;

    counts += (size_t)blockIdx.y * job.entries;
    if (SHARED)
        texture_clear_counters<THREADS>(neighbours_counters, job.entries);
    for (uint64_t i = voxels * blockIdx.x / gridDim.x + threadIdx.x; i < end; i += THREADS) {
        const uint64_t row = i / columns;
        const uint16_t *at = job.box.levels + (slice + (int64_t)(row / rows)) * job.box.slice +
                             (int64_t)(row % rows) * job.box.row + (int64_t)(i - row * columns);

        if (SHARED)
            neighbours_count_voxel(job, at, neighbours_counters);
        else
            neighbours_count_voxel(job, at, counts);
    }
    if (!SHARED)
        return;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < job.entries; i += THREADS)
        if (neighbours_counters[i] != 0)
            atomicAdd(&counts[i], (unsigned long long)neighbours_counters[i]);
}

/* Adds matrices first .. first + count - 1 of the box to counts. */
static int
neighbours_run_batch(struct cuda_lane *lane, const struct cuda_counted *counted, const struct neighbours_job *job,
                     int64_t first, size_t count, uint64_t *counts, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const size_t shared = job->entries * sizeof(uint32_t);
    const uint64_t voxels = (uint64_t)(job->box.size[0] * job->box.size[1] * (job->per_slice ? 1 : job->box.size[2]));
    const uint64_t most = UINT32_MAX / ((uint64_t)TEXTURE_MAX_LEVELS * job->width);
    const size_t wanted = (size_t)device->multiprocessors * 8 / count;
    /* Enough blocks per matrix for the processors, and for no sum of a block to overflow. */
    const dim3 grid((unsigned)texture_most(texture_most(1, wanted), voxels / most + 1), (unsigned)count);

    CUDA_TRY(device, cudaMemsetAsync(counted->counts, 0, count * job->entries * sizeof(uint64_t), lane->work));
    if (bits_take(job))
        CUDA_TRY(device, bits_launch(job, first, count, (size_t)device->multiprocessors, counted->counts, lane->work));
    else if (job->distance == 1)
        CUDA_TRY(device, near_launch(job, first, count, (size_t)device->multiprocessors, counted->counts, lane->work));
    else if (shared <= device->shared_per_block)
        CUDA_TRY(device, neighbours_launch(neighbours_count_part<true>, grid, THREADS, shared, device->shared_per_block,
                                           lane->work, *job, first, counted->counts));
    else
        neighbours_count_part<false><<<grid, THREADS, 0, lane->work>>>(*job, first, counted->counts);
    CUDA_LAUNCHED(device);
    return cuda_counted_fetch(lane, counted, count * job->entries, counts,
                              !job->per_slice || first + (int64_t)count >= job->box.size[2], error);
}

static void
cuda_neighbours_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_boxed_place(lane, memory, (struct cuda_boxed *)kernels_state(lane, KERNELS_NEIGHBOURS));
}

static int
cuda_neighbours_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_neighbours_request *request = (const struct texture_neighbours_request *)given;
    const struct texture_neighbours *neighbours = request->neighbours;
    const struct cuda_boxed *own = (const struct cuda_boxed *)kernels_state(base, KERNELS_NEIGHBOURS);
    struct cuda_lane *lane = cuda_lane_of(base);
    struct neighbours_job job = {};
    int rc;

    job.distance = neighbours->distance;
    job.deep = neighbours->in_slice ? 0 : neighbours->distance;
    job.alpha = neighbours->alpha;
    job.levels = (uint32_t)neighbours->levels.levels;
    job.width = (uint32_t)texture_neighbours_width(neighbours);
    job.entries = TEXTURE_NEIGHBOUR_KINDS * job.levels * job.width;
    job.per_slice = neighbours->per_slice;
    memset(request->counts, 0, (job.per_slice ? (size_t)base->extent.slices : 1) * job.entries * sizeof(uint64_t));
    if (bits_take(&job))
        rc = cuda_boxed_bytes(lane, own, &neighbours->levels, neighbours->region, &job.box, &job.bytes, error);
    else
        rc = cuda_boxed_fill(lane, own, &neighbours->levels, neighbours->region, job.distance,
                             job.distance == 1 ? BOXED_MARKED : BOXED_LEVELS, &job.box, error);
    if (rc || job.box.size[0] == 0)
        return rc;
    const int64_t matrices = job.per_slice ? job.box.size[2] : 1, batch = TEXTURE_COUNTERS / job.entries;
    const int64_t slice = job.per_slice ? job.box.first_slice : 0; /* of the first matrix */

    for (int64_t first = 0; rc == 0 && first < matrices; first += batch)
        rc = neighbours_run_batch(lane, &own->counted, &job, first,
                                  (size_t)(first + batch < matrices ? batch : matrices - first),
                                  request->counts + (size_t)(slice + first) * job.entries, error);
    return rc;
}

const struct kernels_op cuda_neighbours_op = {
    .name = "texture (neighbourhoods)",
    .state_size = sizeof(struct cuda_boxed),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_neighbours_place,
    .run = cuda_neighbours_run,
};
