/*
 * runs_cuda.cu - runs of levels on the GPU: the thread of a run's first voxel walks it. Short runs are
 * counted in the block's table, others at once in the result.
 */
#include "kernels/texture/boxed_cuda.cuh"

enum { THREADS = 256, RUNS_COUNTERS = 8192 };

struct runs_job {
    struct cuda_box box;
    int64_t steps[TEXTURE_MAX_DIRECTIONS]; /* to the next voxel of a run */
    uint32_t directions;
    uint32_t levels, longest, shorter; /* shorter: lengths that have a counter in shared memory */
    bool per_slice;
};

static struct cuda_boxed *
cuda_runs_state(const struct kernels_lane *lane)
{
    return (struct cuda_boxed *)kernels_state(lane, KERNELS_RUNS);
}

/* Part blockIdx.x of matrix first + blockIdx.y: of a slice of the box, or of all, and a direction. */
static __global__ void
__launch_bounds__(THREADS)
    runs_count_part(struct runs_job job, int64_t first, unsigned long long *counts)
{
    __shared__ uint32_t short_runs[RUNS_COUNTERS];
    const int64_t matrix = first + blockIdx.y;
    const int64_t slice = job.per_slice ? matrix / job.directions : 0;
    const int64_t step = job.steps[matrix % job.directions];
    const uint64_t voxels = (uint64_t)(job.box.size[0] * job.box.size[1]) *
                            (uint64_t)(job.per_slice ? 1 : job.box.size[2]);
    const uint64_t end = voxels * (blockIdx.x + 1) / gridDim.x;

    counts += (size_t)blockIdx.y * job.levels * job.longest;
    texture_clear_counters<THREADS>(short_runs, job.levels * job.shorter);
    for (uint64_t i = voxels * blockIdx.x / gridDim.x + threadIdx.x; i < end; i += THREADS) {
        const uint16_t *at = cuda_box_voxel(&job.box, slice, i);
        const uint32_t level = *at;
        uint32_t length = 0;

        if (level == 0 || at[-step] == level)
            continue;
        for (; *at == level; at += step)
            length++;
        if (length <= job.shorter)
            atomicAdd(&short_runs[(level - 1) * job.shorter + length - 1], 1u);
        else
            atomicAdd(&counts[(size_t)(level - 1) * job.longest + length - 1], 1ull);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < job.levels * job.shorter; i += THREADS)
        if (short_runs[i] != 0)
            atomicAdd(&counts[(size_t)(i / job.shorter) * job.longest + i % job.shorter],
                      (unsigned long long)short_runs[i]);
}

/* A batch of matrices fits the counters, and has no more than a grid may. */
static int
runs_run_batch(struct cuda_lane *lane, const struct runs_job *job, int64_t first, size_t count,
               uint64_t *counts, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_runs_state(&lane->base)->counted;
    const size_t entries = (size_t)job->levels * job->longest;
    const size_t voxels =
        (size_t)(job->box.size[0] * job->box.size[1] * (job->per_slice ? 1 : job->box.size[2]));
    const size_t wanted = (size_t)device->multiprocessors * 8 / count;
    const dim3 grid((unsigned)texture_most(texture_most(1, wanted), (voxels >> 30) + 1),
                    (unsigned)count);

    CUDA_TRY(device,
             cudaMemsetAsync(counted->counts, 0, count * entries * sizeof(uint64_t), lane->work));
    runs_count_part<<<grid, THREADS, 0, lane->work>>>(*job, first, counted->counts);
    CUDA_LAUNCHED(device);
    return cuda_counted_fetch(lane, counted, count * entries, counts, error);
}

static int
runs_run_all(struct cuda_lane *lane, const struct runs_job *job, uint64_t *counts,
             struct error *error)
{
    const size_t entries = (size_t)job->levels * job->longest;
    const int64_t matrices = (job->per_slice ? job->box.size[2] : 1) * job->directions;
    const int64_t batch = (int64_t)texture_least(TEXTURE_COUNTERS / entries, TEXTURE_MATRICES);
    int rc = 0;

    if (job->per_slice)
        counts += (size_t)(job->box.first_slice * job->directions) * entries;
    for (int64_t first = 0; rc == 0 && first < matrices; first += batch)
        rc = runs_run_batch(lane, job, first,
                            (size_t)(first + batch < matrices ? batch : matrices - first),
                            counts + (size_t)first * entries, error);
    return rc;
}

static void
cuda_runs_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_boxed_place(lane, memory, cuda_runs_state(lane));
}

static int
cuda_runs_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_runs_request *request = (const struct texture_runs_request *)given;
    const struct texture_runs *runs = request->runs;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct runs_job job = {};
    int rc;

    job.directions = (uint32_t)runs->direction_count;
    job.levels = (uint32_t)runs->levels.levels;
    job.longest = (uint32_t)runs->longest;
    job.shorter = (uint32_t)texture_least(job.longest, RUNS_COUNTERS / job.levels);
    job.per_slice = runs->per_slice;
    memset(request->counts, 0, texture_runs_size(runs, base->extent.slices) * sizeof(uint64_t));
    rc = cuda_boxed_fill(lane, cuda_runs_state(base), &runs->levels, runs->region, 1, &job.box,
                         error);
    if (rc || job.box.size[0] == 0)
        return rc;
    for (size_t d = 0; d < runs->direction_count; d++)
        job.steps[d] = runs->directions[d].z * job.box.slice + runs->directions[d].y * job.box.row +
                       runs->directions[d].x;
    return runs_run_all(lane, &job, request->counts, error);
}

const struct kernels_op cuda_runs_op = {
    .name = "texture (runs)",
    .state_size = sizeof(struct cuda_boxed),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cuda_runs_place,
    .run = cuda_runs_run,
};
