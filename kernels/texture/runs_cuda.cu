/*
 * runs_cuda.cu - runs of levels on the GPU.
 *
 * A direction leads from a voxel to one `step` elements away. The zeros around the box separate
 * different runs. All elements r, r + step, r + 2 step ... form a chain. A thread walks adjacent
 * chains from end to end, as many as a word has levels. At each step it compares all of them with
 * the previous levels and extends their runs, with one operation for all. For runs along rows, the
 * chains are rows, whose words are transposed.
 *
 * When runs end, their levels and lengths enter the thread's queue, which is counted in the block's
 * table every few steps. A warp therefore does not wait at each step for threads where a run ends.
 * Lengths are bytes. For lengths near the table's end, a part is kept aside, and those runs are
 * counted in the matrix itself.
 *
 * Runs of one voxel are the rest of a level's voxels, which are counted with the first direction.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/boxed_cuda.cuh"
#include "kernels/texture/turn_cuda.cuh"

enum {
    THREADS = 256,
    RUNS_BLOCKS = 4,      /* per multiprocessor */
    RUNS_TURNS = 8,       /* consecutive blocks there */
    RUNS_COUNTERS = 4096, /* approximate number per block */
    RUNS_BANKS = 32,
    RUNS_APART = 8,  /* banks between the counters of adjacent levels */
    RUNS_STEPS = 8,  /* steps between countings, and thus the max length of a queue */
    RUNS_LEAST = 64, /* min reach */
    RUNS_MOST = 128, /* max reach, so that lengths fit a byte until checked */
};

static_assert(RUNS_APART >= RUNS_STEPS, "a level's counters have room for all lengths");
static_assert(TEXTURE_MAX_RUN / UINT8_MAX + RUNS_STEPS + 1 <= RUNS_MOST, "a byte counts the kept parts of any run");

struct runs_job {
    struct cuda_box box;
    int64_t steps[TEXTURE_MAX_DIRECTIONS]; /* above 0 */
    bool deep[TEXTURE_MAX_DIRECTIONS];     /* to another slice: chains go through all slices */
    uint32_t directions;
    uint32_t levels, longest;
    uint32_t reach;  /* lengths below reach + RUNS_STEPS have a counter in shared memory */
    uint32_t pitch;  /* counters per level there */
    uint32_t chains; /* per thread: levels per word */
    bool per_slice;
};

/* Matrices counted at once: some directions of each of `slices` slices (1 for all unless
 * per_slice). */
struct runs_batch {
    int64_t first_slice;
    uint32_t slices, first_direction, directions;
};

static struct cuda_boxed *
cuda_runs_state(const struct kernels_lane *lane)
{
    return (struct cuda_boxed *)kernels_state(lane, KERNELS_RUNS);
}

/* A block's counters. */
struct runs_table {
    uint32_t *counters;         /* shared memory: [1 + levels][pitch], including zeros */
    uint32_t *voxels;           /* shared memory: per level, voxels in runs of two or more */
    uint32_t *all;              /* shared memory: per level and for zeros, if the block counts them */
    unsigned long long *counts; /* of the matrix */
    uint32_t pitch, longest, reach;
    bool counts_all;
};

/* A word of levels, and the lengths less 1 of the runs that end there; 0: no end, or a run of one
 * voxel. */
struct runs_ended {
    uint32_t levels, lengths;
};

/* A thread's chains. */
struct runs_chains {
    uint32_t levels;                /* the last ones */
    uint32_t lengths;               /* of the current runs, less 1 and less the kept part */
    uint32_t kept;                  /* number of kept parts of reach - RUNS_STEPS */
    uint32_t one;                   /* length of a voxel; 0 for unused chains */
    struct runs_ended *queue, *end; /* shared memory; the next entry is THREADS further */
};

template <typename Level> struct runs_word {
    static const uint32_t CHAINS = sizeof(uint32_t) / sizeof(Level), BITS = 8 * sizeof(Level);
    static const uint32_t ONES = sizeof(Level) == 1 ? 0x01010101 : 0x00010001;
    static const uint32_t LEVEL = (1u << BITS) - 1, HIGHEST = ONES << (BITS - 1); /* bits */
    static const uint32_t SIGNS = sizeof(Level) == 1 ? 0xBA98 : 0xBB99;           /* selector of ptx_permute */
};

/* Returns all bits set in levels that differ. */
template <typename Level>
static __device__ __forceinline__ uint32_t
runs_differ(uint32_t a, uint32_t b)
{
    const uint32_t lower = ~runs_word<Level>::HIGHEST;

    return ptx_permute<runs_word<Level>::SIGNS>((((a ^ b) & lower) + lower) | (a ^ b), 0);
}

template <typename Level>
static __device__ __forceinline__ void
runs_step(struct runs_chains *chains, uint32_t levels)
{
    const uint32_t differ = runs_differ<Level>(chains->levels, levels);
    const uint32_t ended = differ & chains->lengths;

    if (ended != 0) {
        *chains->end = {chains->levels, ended};
        chains->end += THREADS;
    }
    chains->lengths = (chains->lengths + chains->one) & ~differ;
    chains->levels = levels;
}

/* Counts a run that has no counter in shared memory. */
static __device__ __forceinline__ void
runs_count_long(const struct runs_table &table, uint32_t level, uint32_t length)
{
    if (level == 0)
        return;
    atomicAdd(&table.counts[(size_t)(level - 1) * table.longest + length - 1], 1ull);
    atomicAdd(&table.voxels[level - 1], length);
}

/* Empties the queue run by run: a thread goes to its next word while others continue theirs. A run
 * with kept parts is the first of its chain there. */
template <typename Level, bool KEPT>
static __device__ __forceinline__ void
runs_count_queue(const struct runs_table &table, struct runs_chains *chains)
{
    const struct runs_ended *next = chains->queue;
    struct runs_ended ended = {0, 0};

    while (ended.lengths != 0 || next != chains->end) {
        if (ended.lengths == 0) {
            ended = *next;
            next += THREADS;
        }
        const uint32_t highest = 31 - (uint32_t)__clz((int)ended.lengths);
        const uint32_t at = highest & (32 - runs_word<Level>::BITS);
        const uint32_t level = ended.levels >> at & runs_word<Level>::LEVEL, length = ended.lengths >> at;
        const uint32_t kept = KEPT ? chains->kept >> at & runs_word<Level>::LEVEL : 0;

        if (kept == 0)
            atomicAdd(&table.counters[level * table.pitch + length], 1u);
        else
            runs_count_long(table, level, kept * (table.reach - RUNS_STEPS) + length + 1);
        chains->kept ^= kept << at;
        ended.lengths ^= length << at;
    }
    chains->end = chains->queue;
}

/* Keeps the part reach - RUNS_STEPS of lengths at or above the reach. */
template <typename Level>
static __device__ __forceinline__ void
runs_keep(const struct runs_table &table, struct runs_chains *chains)
{
    const uint32_t ones = runs_word<Level>::ONES, highest = runs_word<Level>::HIGHEST;
    const uint32_t above = chains->lengths + (highest - table.reach * ones);

    if ((above & highest) == 0)
        return;
    const uint32_t reached = ptx_permute<runs_word<Level>::SIGNS>(above, 0);

    chains->lengths -= reached & (table.reach - RUNS_STEPS) * ones;
    chains->kept += reached & ones;
}

/* Counts all voxels of the used chains; those of unused ones count as zeros. */
template <typename Level>
static __device__ __forceinline__ void
runs_count_all(const struct runs_table &table, const uint32_t words[RUNS_STEPS], uint32_t one)
{
#pragma unroll
    for (uint32_t i = 0; i < RUNS_STEPS; i++)
#pragma unroll
        for (uint32_t c = 0; c < 32; c += runs_word<Level>::BITS)
            atomicAdd(&table.all[(words[i] & one * runs_word<Level>::LEVEL) >> c & runs_word<Level>::LEVEL], 1u);
}

/* Fetches levels at RUNS_STEPS steps, with zeros beyond the `left` ones. The first word is aligned.
 * `AHEAD` is the number of elements from a word's start to the next word of the chains. */
template <typename Level, uint32_t AHEAD>
static __device__ __forceinline__ void
runs_fetch(const Level *at, int64_t step, uint32_t left, uint32_t words[RUNS_STEPS])
{
#pragma unroll
    for (uint32_t i = 0; i < RUNS_STEPS; i++, at += step) {
        const uint32_t beyond = i * AHEAD % runs_word<Level>::CHAINS;
        const uint32_t *from = (const uint32_t *)(at - beyond);

        words[i] = 0;
        if (i < left)
            words[i] = beyond == 0 ? __ldg(from)
                                   : __funnelshift_r(__ldg(from), __ldg(from + 1), beyond * runs_word<Level>::BITS);
    }
}

/* Fetches RUNS_STEPS levels of each row, transposed. */
static __device__ __forceinline__ void
runs_fetch_rows(const uint8_t *at, int64_t row, uint32_t words[RUNS_STEPS])
{
    uint32_t rows[2][4];

#pragma unroll
    for (int r = 0; r < 4; r++) {
        const uint2 loaded = __ldg((const uint2 *)(at + r * row));

        rows[0][r] = loaded.x;
        rows[1][r] = loaded.y;
    }
    turn_bytes(rows[0], words);
    turn_bytes(rows[1], words + 4);
}

static __device__ __forceinline__ void
runs_fetch_rows(const uint16_t *at, int64_t row, uint32_t words[RUNS_STEPS])
{
    const uint4 first = __ldg((const uint4 *)at), second = __ldg((const uint4 *)(at + row));
    const uint32_t rows[2][4] = {{first.x, first.y, first.z, first.w}, {second.x, second.y, second.z, second.w}};

#pragma unroll
    for (int i = 0; i < 4; i++) {
        words[2 * i] = ptx_permute<0x5410>(rows[0][i], rows[1][i]);
        words[2 * i + 1] = ptx_permute<0x7632>(rows[0][i], rows[1][i]);
    }
}

/* Counts a word of `count` chains, up to zeros. fetch(k, words) gets their levels from step k
 * on. */
template <typename Level, typename Fetch>
static __device__ __forceinline__ void
runs_walk_on(const struct runs_table &table, struct runs_ended *queue, uint32_t count, uint32_t steps,
             const Fetch &fetch)
{
    const uint32_t ones = runs_word<Level>::ONES, bits = runs_word<Level>::BITS;
    const uint32_t one = count < runs_word<Level>::CHAINS ? ones & ((1u << count * bits) - 1) : ones;
    struct runs_chains chains = {0, 0, 0, one, queue, queue};

    for (uint32_t k = 0; k < steps; k += RUNS_STEPS) {
        uint32_t words[RUNS_STEPS];

        fetch(k, words);
        if (table.counts_all)
            runs_count_all<Level>(table, words, one);
#pragma unroll
        for (uint32_t i = 0; i < RUNS_STEPS; i++)
            runs_step<Level>(&chains, words[i]);
        if (chains.kept != 0)
            runs_count_queue<Level, true>(table, &chains);
        else
            runs_count_queue<Level, false>(table, &chains);
        runs_keep<Level>(table, &chains);
    }
}

/* Adjacent rows or chains, their words, and the slices with separate chains. */
struct runs_lines {
    uint32_t beside, words, slices;
};

static __host__ __device__ __forceinline__ struct runs_lines
runs_lines_of(const struct runs_job &job, uint32_t direction)
{
    const int64_t step = job.steps[direction], slices = job.per_slice ? 1 : job.box.size[2];
    const uint32_t beside = (uint32_t)(step == 1 ? job.box.slice / job.box.row * slices : step);

    return {beside, (beside + job.chains - 1) / job.chains, step == 1 || job.deep[direction] ? 1 : (uint32_t)slices};
}

/* Counts words of rows, up to the zeros before the next rows. */
template <typename Level>
static __device__ __forceinline__ void
runs_walk_rows(const struct runs_table &table, struct runs_ended *queue, const Level *at, int64_t row, uint32_t count)
{
    at += BOXED_ALIGN;
    runs_walk_on<Level>(table, queue, count, (uint32_t)row, [&](uint32_t, uint32_t words[RUNS_STEPS]) {
        runs_fetch_rows(at, row, words);
        at += RUNS_STEPS;
    });
}

/* Counts words of chains. */
template <typename Level, uint32_t AHEAD>
static __device__ __forceinline__ void
runs_walk_chains(const struct runs_table &table, struct runs_ended *queue, const Level *at, int64_t step,
                 uint32_t steps, uint32_t count)
{
    runs_walk_on<Level>(table, queue, count, steps, [&](uint32_t k, uint32_t words[RUNS_STEPS]) {
        if (steps - k >= RUNS_STEPS)
            runs_fetch<Level, AHEAD>(at, step, RUNS_STEPS, words);
        else
            runs_fetch<Level, AHEAD>(at, step, steps - k, words);
        at += RUNS_STEPS * step;
    });
}

/* Counts a word by its number. */
template <typename Level>
static __device__ __forceinline__ void
runs_walk_word(const struct runs_job &job, const struct runs_table &table, struct runs_ended *queue,
               const struct runs_lines &lines, int64_t slice, uint32_t direction, uint32_t word)
{
    const int64_t step = job.steps[direction];
    const uint32_t z = word / lines.words, first = (word - z * lines.words) * job.chains;
    const uint32_t count = lines.beside - first;
    const Level *levels = cuda_box_slice<Level>(&job.box, slice + z);
    const bool deep = job.deep[direction];
    const int64_t zeros = deep ? job.box.slice : job.box.row; /* beyond all elements, plus one */
    const int64_t all = job.box.slice * (deep ? job.box.size[2] : 1);
    const uint32_t steps = (uint32_t)((all + zeros - first) / step + 1);

    if (step == 1)
        runs_walk_rows(table, queue, levels + first * job.box.row, job.box.row, count);
    else if (step % 4 == 0)
        runs_walk_chains<Level, 0>(table, queue, levels + first, step, steps, count);
    else if (step % 4 == 1)
        runs_walk_chains<Level, 1>(table, queue, levels + first, step, steps, count);
    else
        runs_walk_chains<Level, 3>(table, queue, levels + first, step, steps, count);
}

/* Adds the block's table to the matrix, and the remaining voxels, in no run of two or more. */
static __device__ __forceinline__ void
runs_flush(const struct runs_job &job, const struct runs_batch &batch, const struct runs_table &table)
{
    const size_t entries = (size_t)job.levels * job.longest;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < job.levels * table.pitch; i += THREADS) {
        const uint32_t level = i / table.pitch, length = i % table.pitch + 1;
        const uint32_t runs = table.counters[table.pitch + i];

        if (runs == 0)
            continue;
        atomicAdd(&table.counts[level * job.longest + length - 1], (unsigned long long)runs);
        atomicAdd(&table.voxels[level], runs * length);
    }
    __syncthreads();
    for (uint32_t level = threadIdx.x; level < job.levels; level += THREADS) {
        atomicAdd(&table.counts[level * job.longest], 0ull - table.voxels[level]);
        for (uint32_t d = 0; table.counts_all && d < batch.directions; d++)
            atomicAdd(&table.counts[d * entries + level * job.longest], (unsigned long long)table.all[1 + level]);
    }
}

/* Returns the total number per block. */
static __host__ __device__ __forceinline__ uint32_t
runs_counters(uint32_t levels, uint32_t pitch)
{
    return (1 + levels) * (pitch + 1) + levels;
}

/* Counts tiles blockIdx.y, blockIdx.y + gridDim.y ... of matrix blockIdx.x of the batch. Directions
 * of the same slices are adjacent. */
template <typename Level>
static __global__ void
__launch_bounds__(THREADS, RUNS_BLOCKS)
    runs_count_part(struct runs_job job, struct runs_batch batch, unsigned long long *counts)
{
    extern __shared__ __align__(8) unsigned char runs_shared[];
    const uint32_t of_slice = blockIdx.x % batch.directions;
    const uint32_t direction = batch.first_direction + of_slice;
    const struct runs_lines lines = runs_lines_of(job, direction);
    const int64_t slice = job.per_slice ? batch.first_slice + blockIdx.x / batch.directions : 0;
    struct runs_ended *queues = (struct runs_ended *)runs_shared;
    struct runs_table table;

    table.counters = (uint32_t *)(queues + RUNS_STEPS * THREADS);
    table.voxels = table.counters + (1 + job.levels) * job.pitch;
    table.all = table.voxels + job.levels;
    table.counts = counts + (size_t)blockIdx.x * job.levels * job.longest;
    table.pitch = job.pitch;
    table.longest = job.longest;
    table.reach = job.reach;
    table.counts_all = of_slice == 0;
    texture_clear_counters<THREADS>(table.counters, runs_counters(job.levels, job.pitch));
    for (uint32_t word = blockIdx.y * THREADS + threadIdx.x; word < lines.words * lines.slices;
         word += gridDim.y * THREADS)
        runs_walk_word<Level>(job, table, queues + threadIdx.x, lines, slice, direction, word);
    runs_flush(job, batch, table);
}

/* Returns the blocks per matrix: enough for every processor, and for no counter of a block to
 * overflow. */
static unsigned
runs_parts(const struct cuda_lane *lane, const struct runs_job *job, const struct runs_batch *batch)
{
    const size_t blocks = (size_t)cuda_device_of(&lane->base)->multiprocessors * RUNS_BLOCKS * RUNS_TURNS;
    const size_t matrices = (size_t)batch->slices * batch->directions;
    const size_t elements = (size_t)job->box.slice * (size_t)(job->per_slice ? 1 : job->box.size[2]);
    size_t tiles = 1, each;

    for (uint32_t d = 0; d < batch->directions; d++) {
        const struct runs_lines lines = runs_lines_of(*job, batch->first_direction + d);

        tiles = texture_most(tiles, ((size_t)lines.words * lines.slices + THREADS - 1) / THREADS);
    }
    each = texture_most(1, tiles * matrices / blocks);
    return (unsigned)texture_most((tiles + each - 1) / each, (elements >> 30) + 1);
}

static int
runs_run_batch(struct cuda_lane *lane, const struct runs_job *job, const struct runs_batch *batch, bool last,
               uint64_t *counts, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_runs_state(&lane->base)->counted;
    const size_t matrices = (size_t)batch->slices * batch->directions;
    const size_t entries = matrices * job->levels * job->longest;
    const size_t shared =
        RUNS_STEPS * THREADS * sizeof(struct runs_ended) + runs_counters(job->levels, job->pitch) * sizeof(uint32_t);
    const dim3 grid((unsigned)matrices, runs_parts(lane, job, batch));

    CUDA_TRY(device, cudaMemsetAsync(counted->counts, 0, entries * sizeof(uint64_t), lane->work));
    if (job->levels < TEXTURE_MAX_LEVELS)
        runs_count_part<uint8_t><<<grid, THREADS, shared, lane->work>>>(*job, *batch, counted->counts);
    else
        runs_count_part<uint16_t><<<grid, THREADS, shared, lane->work>>>(*job, *batch, counted->counts);
    CUDA_LAUNCHED(device);
    return cuda_counted_fetch(lane, counted, entries, counts, last, error);
}

/* Runs whole slices at a time while their matrices fit in the counters, otherwise some directions
 * of one slice. */
static int
runs_run_all(struct cuda_lane *lane, const struct runs_job *job, uint64_t *counts, struct error *error)
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
            const struct runs_batch batch = {z, (uint32_t)(z + whole < slices ? whole : slices - z), d,
                                             (uint32_t)texture_least(fit, job->directions - d)};

            rc = runs_run_batch(lane, job, &batch, z + whole >= slices && d + fit >= job->directions,
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
    const int shared = (int)cuda_device_of(base)->shared_per_block;
    struct runs_job job = {};
    int rc;

    job.directions = (uint32_t)runs->direction_count;
    job.levels = (uint32_t)runs->levels.levels;
    job.longest = (uint32_t)runs->longest;
    job.reach = (uint32_t)texture_most(
        RUNS_LEAST, texture_least(RUNS_MOST, RUNS_COUNTERS / (1 + job.levels) / RUNS_BANKS * RUNS_BANKS));
    /* A byte counts the kept parts. */
    job.reach = (uint32_t)texture_most(job.reach, job.longest / UINT8_MAX + RUNS_STEPS + 1);
    job.pitch = job.reach + RUNS_APART; /* near levels and lengths use different banks */
    job.chains = job.levels < TEXTURE_MAX_LEVELS ? runs_word<uint8_t>::CHAINS : runs_word<uint16_t>::CHAINS;
    job.per_slice = runs->per_slice;
    CUDA_TRY(cuda_device_of(base),
             cudaFuncSetAttribute(runs_count_part<uint8_t>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    CUDA_TRY(cuda_device_of(base),
             cudaFuncSetAttribute(runs_count_part<uint16_t>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    rc = cuda_boxed_fill(lane, cuda_runs_state(base), &runs->levels, runs->region, 1,
                         job.levels < TEXTURE_MAX_LEVELS ? BOXED_BYTES : BOXED_LEVELS, &job.box, error);
    if (rc == 0 && (runs->per_slice || job.box.size[0] == 0)) /* slices outside the box */
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
