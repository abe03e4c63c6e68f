/*
 * runs_cuda.cu - runs of levels on the GPU.
 *
 * A direction leads from a voxel to one that is `step` elements away, by zeros around the box never to one
 * of another run. So all elements that are as far into steps, r, r + step, r + 2 step ..., are a chain: a
 * thread walks it from end to end, its neighbours beside it, and has the runs of it. Runs along rows are
 * told by a warp that reads 32 voxels at once. What is counted goes into the block's table, in which no
 * direction but the first has runs of one voxel: these are what the others leave of a level's voxels.
 */
#include "kernels/texture/boxed_cuda.cuh"

enum {
    THREADS = 512,
    WARP = 32,
    RUNS_BLOCKS = 3,       /* of a multiprocessor */
    RUNS_TURNS = 4,        /* blocks one after the other there */
    RUNS_COUNTERS = 16384, /* of a block */
    RUNS_AHEAD = 8,        /* levels read at once */
};

struct runs_job {
    struct cuda_box box;
    int64_t steps[TEXTURE_MAX_DIRECTIONS]; /* above 0 */
    bool deep[TEXTURE_MAX_DIRECTIONS];     /* to another slice: chains go through all of them */
    uint32_t directions;
    uint32_t levels, longest;
    uint32_t shorter, pitch; /* lengths that have a counter in shared memory; odd: of a level */
    bool per_slice;
};

/* Matrices that are counted at once: of each of `slices` (1 of all, unless per slice) so many directions. */
struct runs_batch {
    int64_t first_slice;
    uint32_t slices, first_direction, directions;
};

static struct cuda_boxed *
cuda_runs_state(const struct kernels_lane *lane)
{
    return (struct cuda_boxed *)kernels_state(lane, KERNELS_RUNS);
}

/* What a block counts into. */
struct runs_table {
    uint32_t *counters;         /* shared memory: [levels][pitch] */
    unsigned long long *voxels; /* the same: of each level, in the runs that were counted */
    unsigned long long *counts; /* of the matrix */
    uint32_t shorter, pitch, longest;
    uint32_t least; /* shorter ones are not counted: 1 or 2 */
};

static __device__ __forceinline__ void
runs_count(const struct runs_table &table, uint32_t level, uint32_t length)
{
    if (level == 0 || length < table.least)
        return;
    if (length <= table.shorter) {
        atomicAdd(&table.counters[(level - 1) * table.pitch + length - 1], 1u);
        return;
    }
    atomicAdd(&table.counts[(size_t)(level - 1) * table.longest + length - 1], 1ull);
    atomicAdd(&table.voxels[level - 1], (unsigned long long)length);
}

/* The chain of `count` elements that begins here. */
template <typename Level>
static __device__ __forceinline__ void
runs_walk_chain(const struct runs_table &table, const Level *at, int64_t step, uint32_t count)
{
    uint32_t level = 0, start = 0, k = 0;

    for (; k + RUNS_AHEAD <= count; k += RUNS_AHEAD) {
        uint32_t next[RUNS_AHEAD];

#pragma unroll
        for (uint32_t i = 0; i < RUNS_AHEAD; i++, at += step)
            next[i] = __ldg(at);
#pragma unroll
        for (uint32_t i = 0; i < RUNS_AHEAD; i++) {
            const uint32_t length = k + i - start;
            const bool ends = next[i] != level;

            if (ends & (length >= table.least))
                runs_count(table, level, length);
            start = ends ? k + i : start;
            level = next[i];
        }
    }
    for (; k < count; k++, at += step) {
        const uint32_t next = __ldg(at);

        if (next == level)
            continue;
        runs_count(table, level, k - start);
        level = next;
        start = k;
    }
    runs_count(table, level, count - start);
}

/* A row that ends with zeros, by a warp. */
template <typename Level>
static __device__ __forceinline__ void
runs_along_row(const struct runs_table &table, const Level *row, uint32_t length)
{
    const uint32_t lane = threadIdx.x % WARP;
    uint32_t last = 0, open = 0; /* the run that goes on: its level, and how long it is already */

    for (uint32_t x = 0; x < length; x += WARP) {
        const uint32_t level = x + lane < length ? __ldg(row + x + lane) : 0;
        const uint32_t beside = __shfl_up_sync(UINT32_MAX, level, 1);
        const uint32_t starts = __ballot_sync(UINT32_MAX, level != (lane == 0 ? last : beside));
        const uint32_t later = lane == WARP - 1 ? 0 : starts >> (lane + 1);

        if (starts == 0) {
            open += WARP;
            continue;
        }
        if (lane == 0)
            runs_count(table, last, open + (uint32_t)__ffs((int)starts) - 1);
        if ((starts >> lane & 1) != 0 && later != 0)
            runs_count(table, level, (uint32_t)__ffs((int)later));
        open = 1 + (uint32_t)__clz((int)starts);
        last = __shfl_sync(UINT32_MAX, level, WARP - 1);
    }
    if (lane == 0)
        runs_count(table, last, open);
}

/* THREADS rows or chains, by number; slices from the first one on. */
template <typename Level>
static __device__ __forceinline__ void
runs_tile(const struct runs_job &job, const struct runs_table &table, int64_t slice, int64_t step,
          bool deep, uint64_t first, uint64_t count)
{
    const Level *levels = cuda_box_slice<Level>(&job.box, slice);

    if (step == 1) {
        const uint64_t end = first + THREADS < count ? first + THREADS : count;

        for (uint64_t i = first + threadIdx.x / WARP; i < end; i += THREADS / WARP)
            runs_along_row(table, levels + i * (uint64_t)job.box.row, (uint32_t)job.box.row);
        return;
    }
    const uint64_t i = first + threadIdx.x;

    if (i >= count)
        return;
    const uint64_t z = deep ? 0 : i / (uint64_t)step, r = i - z * (uint64_t)step;
    const uint64_t all = (uint64_t)job.box.slice * (uint64_t)(deep ? job.box.size[2] : 1);

    runs_walk_chain<Level>(table, levels + z * (uint64_t)job.box.slice + r, step,
                           (uint32_t)((all - r + (uint64_t)step - 1) / (uint64_t)step));
}

/* How many rows or chains a matrix has. */
static __host__ __device__ __forceinline__ uint64_t
runs_lines(const struct runs_job &job, uint32_t direction)
{
    const int64_t step = job.steps[direction], slices = job.per_slice ? 1 : job.box.size[2];

    if (step == 1)
        return (uint64_t)(job.box.slice / job.box.row * slices);
    return (uint64_t)(job.deep[direction] ? step : step * slices);
}

/* The block's table into the matrix, and what remains: voxels that are in no run of two or more, of which
 * the first direction, that has counted all, tells the others. */
static __device__ __forceinline__ void
runs_flush(const struct runs_job &job, const struct runs_batch &batch,
           const struct runs_table &table)
{
    const size_t entries = (size_t)job.levels * job.longest;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < job.levels * table.pitch; i += THREADS) {
        const uint32_t level = i / table.pitch, length = i % table.pitch + 1;

        if (table.counters[i] == 0)
            continue;
        atomicAdd(&table.counts[level * job.longest + length - 1],
                  (unsigned long long)table.counters[i]);
        atomicAdd(&table.voxels[level], (unsigned long long)table.counters[i] * length);
    }
    __syncthreads();
    for (uint32_t level = threadIdx.x; level < job.levels; level += THREADS) {
        const unsigned long long voxels = table.voxels[level];

        if (voxels == 0)
            continue;
        if (table.least > 1)
            atomicAdd(&table.counts[level * job.longest], 0ull - voxels);
        else
            for (uint32_t d = 1; d < batch.directions; d++)
                atomicAdd(&table.counts[d * entries + level * job.longest], voxels);
    }
}

/* Tiles blockIdx.x, blockIdx.x + gridDim.x ... of matrix blockIdx.y of the batch. */
template <typename Level>
static __global__ void
__launch_bounds__(THREADS, RUNS_BLOCKS)
    runs_count_part(struct runs_job job, struct runs_batch batch, unsigned long long *counts)
{
    extern __shared__ __align__(8) unsigned char runs_shared[];
    const uint32_t of_slice = blockIdx.y % batch.directions;
    const uint32_t direction = batch.first_direction + of_slice;
    const uint64_t lines = runs_lines(job, direction);
    const int64_t slice = job.per_slice ? batch.first_slice + blockIdx.y / batch.directions : 0;
    const int64_t step = job.steps[direction];
    const bool deep = job.deep[direction];
    struct runs_table table;

    table.voxels = (unsigned long long *)runs_shared;
    table.counters = (uint32_t *)(table.voxels + job.levels);
    table.counts = counts + (size_t)blockIdx.y * job.levels * job.longest;
    table.shorter = job.shorter;
    table.pitch = job.pitch;
    table.longest = job.longest;
    table.least = of_slice == 0 ? 1 : 2;
    texture_clear_counters<THREADS>((uint32_t *)runs_shared, job.levels * (job.pitch + 2));
    for (uint64_t first = (uint64_t)blockIdx.x * THREADS; first < lines;
         first += (uint64_t)gridDim.x * THREADS)
        runs_tile<Level>(job, table, slice, step, deep, first, lines);
    runs_flush(job, batch, table);
}

/* Blocks of a matrix: some for every processor, and so many that no counter of a block overflows. */
static unsigned
runs_parts(const struct cuda_lane *lane, const struct runs_job *job, const struct runs_batch *batch)
{
    const size_t blocks =
        (size_t)cuda_device_of(&lane->base)->multiprocessors * RUNS_BLOCKS * RUNS_TURNS;
    const size_t matrices = (size_t)batch->slices * batch->directions;
    const size_t elements =
        (size_t)job->box.slice * (size_t)(job->per_slice ? 1 : job->box.size[2]);
    size_t tiles = 1, each;

    for (uint32_t d = 0; d < batch->directions; d++)
        tiles = texture_most(
            tiles, ((size_t)runs_lines(*job, batch->first_direction + d) + THREADS - 1) / THREADS);
    each = texture_most(1, tiles * matrices / blocks);
    return (unsigned)texture_most((tiles + each - 1) / each, (elements >> 30) + 1);
}

static int
runs_run_batch(struct cuda_lane *lane, const struct runs_job *job, const struct runs_batch *batch,
               bool last, uint64_t *counts, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_runs_state(&lane->base)->counted;
    const size_t matrices = (size_t)batch->slices * batch->directions;
    const size_t entries = matrices * job->levels * job->longest;
    const size_t shared = job->levels * (job->pitch + 2) * sizeof(uint32_t);
    const dim3 grid(runs_parts(lane, job, batch), (unsigned)matrices);

    CUDA_TRY(device, cudaMemsetAsync(counted->counts, 0, entries * sizeof(uint64_t), lane->work));
    if (job->levels < TEXTURE_MAX_LEVELS)
        runs_count_part<uint8_t>
            <<<grid, THREADS, shared, lane->work>>>(*job, *batch, counted->counts);
    else
        runs_count_part<uint16_t>
            <<<grid, THREADS, shared, lane->work>>>(*job, *batch, counted->counts);
    CUDA_LAUNCHED(device);
    return (last ? cuda_counted_fetch_last : cuda_counted_fetch)(lane, counted, entries, counts,
                                                                 error);
}

/* Whole slices as long as their matrices fit the counters; else some of the directions of one. */
static int
runs_run_all(struct cuda_lane *lane, const struct runs_job *job, uint64_t *counts,
             struct error *error)
{
    const size_t entries = (size_t)job->levels * job->longest;
    const uint32_t fit = (uint32_t)texture_least(TEXTURE_COUNTERS / entries, TEXTURE_MATRICES);
    const int64_t slices = job->per_slice ? job->box.size[2] : 1;
    const int64_t whole = (int64_t)texture_most(1, fit / job->directions);
    int rc = 0;

    if (job->per_slice)
        counts += (size_t)(job->box.first_slice * job->directions) * entries;
    for (int64_t z = 0; rc == 0 && z < slices; z += whole)
        for (uint32_t d = 0; rc == 0 && d < job->directions; d += fit) {
            const struct runs_batch batch = {z, (uint32_t)(z + whole < slices ? whole : slices - z),
                                             d, (uint32_t)texture_least(fit, job->directions - d)};

            rc =
                runs_run_batch(lane, job, &batch, z + whole >= slices && d + fit >= job->directions,
                               counts + ((size_t)z * job->directions + d) * entries, error);
        }
    return rc;
}

static void
cuda_runs_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_boxed_place(lane, memory, cuda_runs_state(lane));
}

/* A direction and its opposite have the same runs. */
static void
runs_steps(const struct texture_runs *runs, struct runs_job *job)
{
    for (size_t d = 0; d < runs->direction_count; d++) {
        const struct texture_offset way = runs->directions[d];
        const int64_t step = way.z * job->box.slice + way.y * job->box.row + way.x;

        job->steps[d] = step < 0 ? -step : step;
        job->deep[d] = way.z != 0;
    }
}

static int
cuda_runs_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_runs_request *request = (const struct texture_runs_request *)given;
    const struct texture_runs *runs = request->runs;
    struct cuda_lane *lane = cuda_lane_of(base);
    const int shared = (int)(sizeof(uint32_t) * (RUNS_COUNTERS + 2 * TEXTURE_MAX_LEVELS));
    struct runs_job job = {};
    int rc;

    job.directions = (uint32_t)runs->direction_count;
    job.levels = (uint32_t)runs->levels.levels;
    job.longest = (uint32_t)runs->longest;
    job.shorter = (uint32_t)texture_least(job.longest, (RUNS_COUNTERS / job.levels - 1) | 1);
    job.pitch = job.shorter | 1;
    job.per_slice = runs->per_slice;
    CUDA_TRY(cuda_device_of(base),
             cudaFuncSetAttribute(runs_count_part<uint8_t>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    CUDA_TRY(cuda_device_of(base),
             cudaFuncSetAttribute(runs_count_part<uint16_t>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    rc = cuda_boxed_fill(lane, cuda_runs_state(base), &runs->levels, runs->region, 1,
                         job.levels < TEXTURE_MAX_LEVELS ? BOXED_BYTES : BOXED_LEVELS, &job.box,
                         error);
    if (rc == 0 && (runs->per_slice || job.box.size[0] == 0)) /* there are slices beside the box */
        memset(request->counts, 0, texture_runs_size(runs, base->extent.slices) * sizeof(uint64_t));
    if (rc || job.box.size[0] == 0)
        return rc;
    runs_steps(runs, &job);
    return runs_run_all(lane, &job, request->counts, error);
}

const struct kernels_op cuda_runs_op = {
    .name = "texture (runs)",
    .state_size = sizeof(struct cuda_boxed),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_runs_place,
    .run = cuda_runs_run,
};
