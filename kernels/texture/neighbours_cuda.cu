/*
 * neighbours_cuda.cu - neighbourhoods on the GPU. At distance 1, neighbours_bits.cuh compares 32
 * voxels at once for few levels and alpha 0, and neighbours_near.cuh two otherwise. At other
 * distances, a thread visits all neighbours of a voxel, and counts it in the block's table if that
 * fits in shared memory.
 */
#include "kernels/texture/neighbours_bits.cuh"
#include "kernels/texture/neighbours_near.cuh"

enum { THREADS = 256 };

static struct cuda_boxed *
cuda_neighbours_state(const struct kernels_lane *lane)
{
    return (struct cuda_boxed *)kernels_state(lane, KERNELS_NEIGHBOURS);
}

struct neighbour_found {
    uint32_t count, alike;
    int32_t sum;
};

static __device__ __forceinline__ struct neighbour_found
neighbours_look(const struct neighbours_job &job, const uint16_t *at)
{
    const int32_t own = *at;
    struct neighbour_found found = {0, 0, 0};

    for (int32_t z = -job.deep; z <= job.deep; z++)
        for (int32_t y = -job.distance; y <= job.distance; y++)
            for (int32_t x = -job.distance; x <= job.distance; x++) {
                const int32_t level = at[z * job.box.slice + y * job.box.row + x];

                found.count += level > 0;
                found.alike += level > 0 && abs(level - own) <= job.alpha;
                found.sum += level;
            }
    found.count--; /* the voxel itself */
    found.alike--;
    found.sum -= own;
    return found;
}

template <typename Counter>
static __device__ __forceinline__ void
neighbours_count_voxel(const struct neighbours_job &job, const uint16_t *at, Counter *counters)
{
    const uint32_t level = *at, plane = job.levels * job.width;
    struct neighbour_found found;
    int32_t from;

    if (level == 0)
        return;
    found = neighbours_look(job, at);
    from = (int32_t)(found.count * level) - found.sum;
    counters += (level - 1) * job.width;
    atomicAdd(&counters[TEXTURE_ALIKE * plane + found.alike], (Counter)1);
    atomicAdd(&counters[TEXTURE_PRESENT * plane + found.count], (Counter)1);
    if (from != 0)
        atomicAdd(&counters[TEXTURE_DEVIATION * plane + found.count], (Counter)abs(from));
}

/* Counts part blockIdx.x of matrix blockIdx.y: all slices of the box, or slice first +
 * blockIdx.y. */
template <bool SHARED>
static __global__ void
__launch_bounds__(THREADS) neighbours_count_part(struct neighbours_job job, int64_t first, unsigned long long *counts)
{
    extern __shared__ uint32_t neighbours_counters[];
    const uint64_t voxels =
        (uint64_t)(job.box.size[0] * job.box.size[1]) * (uint64_t)(job.per_slice ? 1 : job.box.size[2]);
    const uint64_t end = voxels * (blockIdx.x + 1) / gridDim.x;
    const int64_t slice = job.per_slice ? first + blockIdx.y : 0;

    counts += (size_t)blockIdx.y * job.entries;
    if (SHARED)
        texture_clear_counters<THREADS>(neighbours_counters, job.entries);
    for (uint64_t i = voxels * blockIdx.x / gridDim.x + threadIdx.x; i < end; i += THREADS) {
        const uint16_t *at = cuda_box_voxel(&job.box, slice, i);

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

/* Returns the blocks per matrix: enough for the processors, and for no sum of a block to
 * overflow. */
static unsigned
neighbours_parts(const struct cuda_lane *lane, const struct neighbours_job *job, size_t matrices)
{
    const uint64_t voxels = (uint64_t)(job->box.size[0] * job->box.size[1] * (job->per_slice ? 1 : job->box.size[2]));
    const uint64_t most = UINT32_MAX / ((uint64_t)TEXTURE_MAX_LEVELS * job->width);
    const size_t wanted = (size_t)cuda_device_of(&lane->base)->multiprocessors * 8 / matrices;

    return (unsigned)texture_most(texture_most(1, wanted), voxels / most + 1);
}

/* Adds matrices first .. first + count - 1 of the box to counts. */
static int
neighbours_run_batch(struct cuda_lane *lane, const struct neighbours_job *job, int64_t first, size_t count,
                     uint64_t *counts, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_neighbours_state(&lane->base)->counted;
    const size_t shared = job->entries * sizeof(uint32_t);
    const dim3 grid(neighbours_parts(lane, job, count), (unsigned)count);

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
    return (job->per_slice && first + (int64_t)count < job->box.size[2] ? cuda_counted_fetch : cuda_counted_fetch_last)(
        lane, counted, count * job->entries, counts, error);
}

static void
cuda_neighbours_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_boxed_place(lane, memory, cuda_neighbours_state(lane));
}

static int
neighbours_run_all(struct cuda_lane *lane, const struct neighbours_job *job, uint64_t *counts, struct error *error)
{
    const int64_t matrices = job->per_slice ? job->box.size[2] : 1;
    const int64_t batch = TEXTURE_COUNTERS / job->entries;
    int rc = 0;

    if (job->per_slice)
        counts += (size_t)job->box.first_slice * job->entries;
    for (int64_t first = 0; rc == 0 && first < matrices; first += batch)
        rc = neighbours_run_batch(lane, job, first, (size_t)(first + batch < matrices ? batch : matrices - first),
                                  counts + (size_t)first * job->entries, error);
    return rc;
}

static int
cuda_neighbours_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_neighbours_request *request = (const struct texture_neighbours_request *)given;
    const struct texture_neighbours *neighbours = request->neighbours;
    const struct cuda_boxed *own = cuda_neighbours_state(base);
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
    return neighbours_run_all(lane, &job, request->counts, error);
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
