/*
 * level_set_unite.cu - stage 2 of paper 001 without a front: open voxels are united to components.
 *
 * A node is a run of open voxels of one word whose initial side is the same. Runs that touch are
 * united, runs beside a settled voxel of their class with node 0, always the larger number below
 * the smaller; what is then connected with node 0 settles. Each word is worked on a few times,
 * whatever the volume looks like. Most runs that touch along y or z need no search: while its runs
 * are numbered a tile hangs each below the first of a straight line of voxels that it is on.
 */
#include "cuda.cuh"
#include "level_set_cuda.cuh"

enum {
    THREADS = 256,
    SLICE_PITCH = TILE_ROWS + 1, /* in shared memory: no bank conflicts along z */
};

/* A word of 64 voxels, by its place; the initial region stands where `grown` did. */
struct word_at {
    int64_t x, y, z;
};

struct bits {
    uint64_t in, initial, exist;
};

__device__ static __forceinline__ struct word_at
word_place(const struct level_set_job &job, int64_t word)
{
    struct level_set_place place = level_set_place_of(job, (uint32_t)(word / TILE_WORDS));

    return {place.x, (int64_t)place.y * TILE_ROWS + word % TILE_ROWS,
            (int64_t)place.z * TILE_SLICES + word % TILE_WORDS / TILE_ROWS};
}

/* Of one label. */
__device__ static __forceinline__ int64_t
word_number(const struct level_set_job &job, struct word_at at)
{
    int64_t tile = (at.z / TILE_SLICES * job.tiles_y + at.y / TILE_ROWS) * job.tiles_x + at.x;

    return tile * TILE_WORDS + at.z % TILE_SLICES * TILE_ROWS + at.y % TILE_ROWS;
}

__device__ static __forceinline__ bool
word_exists(const struct level_set_job &job, struct word_at at)
{
    return at.x >= 0 && at.x < job.words_per_row && at.y >= 0 && at.y < job.rows && at.z >= 0 &&
           at.z < job.slices;
}

__device__ static __forceinline__ struct bits
bits_of(const struct level_set_job &job, uint32_t label, struct word_at at)
{
    int64_t word;

    if (!word_exists(job, at))
        return {0, 0, 0};
    word = (int64_t)label * job.tiles * TILE_WORDS + word_number(job, at);
    return {job.range[word], job.grown[word], level_set_columns(job, (uint32_t)at.x)};
}

__device__ static __forceinline__ uint64_t
open_bits(const struct bits &bits)
{
    return (bits.in ^ bits.initial) & bits.exist;
}

/* The first voxels of runs. */
__device__ static __forceinline__ uint64_t
run_starts(const struct bits &bits)
{
    uint64_t open = open_bits(bits), goes_on = ~(bits.initial ^ bits.initial << 1);

    return open & ~(open << 1 & goes_on);
}

/* The run of voxel i. */
__device__ static __forceinline__ uint32_t
node_of(uint32_t first_node, uint64_t starts, int i)
{
    return first_node + (uint32_t)__popcll(starts & ~UINT64_C(0) >> (63 - i)) - 1;
}

__device__ static __forceinline__ uint32_t
parent_of(const uint32_t *parent, uint32_t node)
{
    return *(const volatile uint32_t *)&parent[node];
}

/* The root of a node; what is passed on the way is hung one higher. */
__device__ static uint32_t
find_root(uint32_t *parent, uint32_t node)
{
    uint32_t above = parent_of(parent, node), next;

    while (above > (next = parent_of(parent, above))) {
        parent[node] = next;
        node = above;
        above = next;
    }
    return above;
}

__device__ static void
unite(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = find_root(parent, a);
    b = find_root(parent, b);
    while (a != b) {
        uint32_t low = min(a, b), high = max(a, b);

        a = atomicCAS(&parent[high], high, low);
        if (a == high)
            return;
        b = low;
    }
}

/* The initial region once more, by tile: the flood may have begun. */
__global__ void
__launch_bounds__(THREADS) restore(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    size_t tile = (size_t)label * job.tiles + (size_t)(word / TILE_WORDS);
    uint64_t *grown = &job.grown[(size_t)label * job.tiles * TILE_WORDS + (size_t)word];
    struct word_at at = word_place(job, word);
    const bool visited = job.state[tile] & STATE_VISITED;
    uint64_t initial = 0;

    if (word_exists(job, at) && visited && job.kind[tile] != TILE_MIXED) {
        initial = job.kind[tile] ? level_set_columns(job, (uint32_t)at.x) : 0;
    } else if (word_exists(job, at)) {
        initial =
            job.inside[label * job.words + (at.z * job.rows + at.y) * job.words_per_row + at.x];
        if (visited)
            initial ^= *grown;
    }
    *grown = initial;
}

/* Voxels that are open in two words, and on the same side. */
__device__ static __forceinline__ uint64_t
touching_bits(uint64_t open, uint64_t initial, uint64_t near_open, uint64_t near_initial)
{
    return open & near_open & ~(initial ^ near_initial);
}

/* Of the bits of `which`, those in the run that begins first in `starts`. */
__device__ static __forceinline__ uint64_t
first_run_of(uint64_t starts, uint64_t which)
{
    uint64_t start = starts & (0 - starts), next = starts & (starts - 1);

    return which & ((next & (0 - next)) - 1) & ~(start - 1);
}

/* A tile's runs; words are SLICE_PITCH from slice to slice. */
struct tile_runs {
    uint64_t open[TILE_SLICES * SLICE_PITCH];
    uint64_t initial[TILE_SLICES * SLICE_PITCH];
    uint64_t starts[TILE_SLICES * SLICE_PITCH];
    uint64_t hung[TILE_SLICES * SLICE_PITCH]; /* the starts of those that are below another */
    uint32_t node[TILE_SLICES * SLICE_PITCH]; /* of the first run of a word */
    uint32_t columns[32][TILE_COLUMNS];       /* of a warp: who touches the one before */
};

/*
 * A warp takes a line of words along y or z, from `first` on, `step` apart. Every run that touches
 * the word before and is not below another yet is hung below the first run of the line of voxels
 * that its first such voxel is on.
 */
__device__ static __forceinline__ void
hang_line(const struct level_set_job &job, struct tile_runs *runs, uint32_t first, uint32_t step)
{
    const uint32_t lane = threadIdx.x % 32, at = first + lane * step;
    uint32_t *columns = runs->columns[threadIdx.x / 32], node = runs->node[at];
    uint64_t starts = runs->starts[at], hung = runs->hung[at], touching = 0;

    if (lane > 0)
        touching = touching_bits(runs->open[at], runs->initial[at], runs->open[at - step],
                                 runs->initial[at - step]);
    if (!__any_sync(~0u, touching != 0))
        return;
#pragma unroll 8
    for (uint32_t i = 0; i < TILE_COLUMNS; i++) {
        uint32_t column = __ballot_sync(~0u, (touching >> i & 1) != 0);

        if (lane == i % 32)
            columns[i] = column;
    }
    __syncwarp();
    for (; starts; starts &= starts - 1, node++) {
        uint64_t touches = first_run_of(starts, touching), start = starts & (0 - starts);

        if (!touches || hung & start)
            continue;
        /* Lane 0 touches nothing before it: there is an end to the line. */
        int i = __ffsll((long long)touches) - 1;
        uint32_t end = 31 - (uint32_t)__clz((int)(~columns[i] & ((2u << lane) - 1)));
        uint32_t other = first + end * step;

        job.parent[node] = node_of(runs->node[other], runs->starts[other], i);
        hung |= start;
    }
    runs->hung[at] = hung;
}

/* The number of the first run of each thread's word; a block's are side by side, and in order. */
__device__ static __forceinline__ uint32_t
number_words(const struct level_set_job &job, uint32_t own)
{
    __shared__ uint32_t before[TILE_WORDS / 32], first;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t sum = own;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        before[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t total = 0;

        for (uint32_t i = 0; i < TILE_WORDS / 32; i++) {
            uint32_t count = before[i];
            before[i] = total;
            total += count;
        }
        first = total ? 1 + atomicAdd(&job.counts->nodes, total) : 0;
    }
    __syncthreads();
    return first + before[warp] + sum - own;
}

/* Numbers the runs, a block a tile; each is its own root or hangs below one of a lower number. */
__global__ void
__launch_bounds__(TILE_WORDS)
    number_runs(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    __shared__ struct tile_runs runs;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t at = warp * SLICE_PITCH + lane;
    int64_t word = (int64_t)blockIdx.x * TILE_WORDS + threadIdx.x;
    struct bits bits = bits_of(job, label, word_place(job, word));
    uint64_t starts = run_starts(bits);
    uint32_t node = number_words(job, (uint32_t)__popcll(starts));

    if (word == 0)
        job.parent[0] = 0;
    job.first_node[word] = node;
    runs.open[at] = open_bits(bits);
    runs.initial[at] = bits.initial;
    runs.starts[at] = starts;
    runs.hung[at] = 0;
    runs.node[at] = node;
    if (!__syncthreads_or(starts != 0))
        return;
    hang_line(job, &runs, warp * SLICE_PITCH, 1);
    __syncthreads();
    hang_line(job, &runs, warp, SLICE_PITCH);
    __syncthreads();
    for (uint64_t hung = runs.hung[at]; starts; starts &= starts - 1, node++)
        if (!(hung & starts & (0 - starts)))
            job.parent[node] = node;
}

/*
 * Runs of two words; equal bits touch. Of a run that begins in `hung` the first voxel that touches
 * is passed over: number_runs has seen to it.
 */
__device__ static __forceinline__ void
unite_words(const struct level_set_job &job, const struct bits &bits, uint32_t first_node,
            uint64_t both, uint64_t hung, const struct bits &near, struct word_at near_at)
{
    uint64_t starts, near_starts;
    uint32_t near_node, last = UINT32_MAX;

    if (!both)
        return;
    starts = run_starts(bits);
    near_starts = run_starts(near);
    near_node = job.first_node[word_number(job, near_at)];
    /* The same two runs touch many times. */
    both &= ~(both << 1) | starts | near_starts;
    for (; both; both &= both - 1) {
        int i = __ffsll((long long)both) - 1;
        uint32_t node = node_of(first_node, starts, i);
        bool first = node != last;

        last = node;
        if (first && hung >> (63 - __clzll((long long)(starts & ~UINT64_C(0) >> (63 - i)))) & 1)
            continue;
        unite(job.parent, node, node_of(near_node, near_starts, i));
    }
}

/* Along y and z. */
__device__ static __forceinline__ void
unite_lines(const struct level_set_job &job, uint32_t label, const struct bits &bits, uint32_t node,
            struct word_at at)
{
    const struct word_at y_at = {at.x, at.y - 1, at.z}, z_at = {at.x, at.y, at.z - 1};
    struct bits y_near = bits_of(job, label, y_at), z_near = bits_of(job, label, z_at);
    uint64_t open = open_bits(bits), starts = run_starts(bits), z_hung = 0;
    uint64_t y_both = touching_bits(open, bits.initial, open_bits(y_near), y_near.initial);
    uint64_t z_both = touching_bits(open, bits.initial, open_bits(z_near), z_near.initial);
    const bool y_inner = at.y % TILE_ROWS != 0, z_inner = at.z % TILE_SLICES != 0;

    unite_words(job, bits, node, y_both, y_inner ? starts : 0, y_near, y_at);
    if (z_inner && z_both)
        for (uint64_t left = starts; left; left &= left - 1)
            if (!y_inner || !first_run_of(left, y_both))
                z_hung |= left & (0 - left);
    unite_words(job, bits, node, z_both, z_hung, z_near, z_at);
}

/* The last voxel of the word before and the first of this. */
__device__ static __forceinline__ void
unite_row(const struct level_set_job &job, uint32_t label, const struct bits &bits,
          uint32_t first_node, struct word_at near_at)
{
    struct bits near = bits_of(job, label, near_at);

    if (open_bits(bits) & open_bits(near) >> 63 & ~(bits.initial ^ near.initial >> 63) & 1)
        unite(job.parent, first_node,
              node_of(job.first_node[word_number(job, near_at)], run_starts(near), 63));
}

/* Voxels of `bits` that settle because of the voxel of equal place in `near`. */
__device__ static __forceinline__ uint64_t
begins_beside(const struct bits &bits, uint64_t settled, uint64_t initial)
{
    return open_bits(bits) & settled & (bits.initial ^ initial);
}

__device__ static __forceinline__ uint64_t
settled_bits(const struct bits &bits)
{
    return ~(bits.in ^ bits.initial) & bits.exist;
}

__device__ static uint64_t
begins(const struct level_set_job &job, uint32_t label, const struct bits &bits, struct word_at at)
{
    const struct word_at near[4] = {{at.x, at.y - 1, at.z},
                                    {at.x, at.y + 1, at.z},
                                    {at.x, at.y, at.z - 1},
                                    {at.x, at.y, at.z + 1}};
    struct bits left = bits_of(job, label, {at.x - 1, at.y, at.z});
    struct bits right = bits_of(job, label, {at.x + 1, at.y, at.z});
    uint64_t settled = settled_bits(bits), all;

    all = begins_beside(bits, settled << 1 | settled_bits(left) >> 63,
                        bits.initial << 1 | left.initial >> 63);
    all |= begins_beside(bits, settled >> 1 | settled_bits(right) << 63,
                         bits.initial >> 1 | right.initial << 63);
    for (int i = 0; i < 4; i++) {
        struct bits other = bits_of(job, label, near[i]);
        all |= begins_beside(bits, settled_bits(other), other.initial);
    }
    return all;
}

__global__ void
__launch_bounds__(THREADS)
    unite_runs(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    struct word_at at = word_place(job, word);
    struct bits bits = bits_of(job, label, at);
    uint64_t starts = run_starts(bits), first;
    uint32_t node = job.first_node[word];

    if (!starts)
        return;
    first = begins(job, label, bits, at);
    for (; first; first &= first - 1)
        unite(job.parent, node_of(node, starts, __ffsll((long long)first) - 1), 0);
    unite_row(job, label, bits, node, {at.x - 1, at.y, at.z});
    unite_lines(job, label, bits, node, at);
}

/* The region: the initial one with the voxels exchanged that have settled. */
__global__ void
__launch_bounds__(THREADS)
    exchange(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    struct word_at at = word_place(job, word);
    struct bits bits = bits_of(job, label, at);
    uint64_t open = open_bits(bits), starts = run_starts(bits), settled = 0, region;
    uint32_t node = job.first_node[word], last = 0, root = 0;

    for (; starts; starts &= starts - 1) {
        /* Through the first cache: what it holds may be old, but is above the node for ever. */
        uint32_t above = __ldca(&job.parent[node++]);

        if (above != last) {
            last = above;
            root = find_root(job.parent, above);
        }
        if (root == 0)
            settled |= first_run_of(starts, open);
    }
    region = bits.initial ^ settled;
    if (word_exists(job, at))
        job.inside[label * job.words + (at.z * job.rows + at.y) * job.words_per_row + at.x] =
            region;
    uint32_t voxels = __reduce_add_sync(~0u, (uint32_t)__popcll(region));
    if (threadIdx.x % 32 == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[label], voxels);
}

cudaError_t
level_set_unite(const struct level_set_job *job, uint32_t label, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((int64_t)job->tiles * TILE_WORDS / THREADS);
    cudaError_t error = CUDA_OF(cudaMemsetAsync(&job->counts->nodes, 0, sizeof(uint32_t), stream));

    if (error == cudaSuccess)
        error = CUDA_OF(cudaMemsetAsync(&job->voxels_in[label], 0, sizeof(int64_t), stream));
    if (error != cudaSuccess)
        return error;
    restore<<<blocks, THREADS, 0, stream>>>(*job, label);
    number_runs<<<job->tiles, TILE_WORDS, 0, stream>>>(*job, label);
    unite_runs<<<blocks, THREADS, 0, stream>>>(*job, label);
    exchange<<<blocks, THREADS, 0, stream>>>(*job, label);
    return cudaSuccess;
}
