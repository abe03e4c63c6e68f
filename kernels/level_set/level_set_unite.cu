/*
 * level_set_unite.cu - stage 2 of Trapani 2018 without a front: unites open voxels to components.
 *
 * A run is a sequence of open voxels of one word on the same initial side. A tile unites its own
 * runs in shared memory. Contacts across faces then connect only the tiles' components, which are
 * far fewer and contiguous in memory. Component 0 represents settled voxels: a run next to a
 * settled voxel of its class belongs to it. The larger number is always linked below the smaller.
 * At the end, components connected with component 0 settle. Each word is processed a few times, for
 * every volume.
 *
 * `parent` has the components from its beginning and, towards its end, the component of each run. A
 * tile with too many runs or components stays apart: each of its runs is a component without an
 * entry of its own. Both parts together therefore fit.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/level_set/level_set_cuda.cuh"

enum {
    THREADS = 256,
    SLICE_PITCH = TILE_ROWS + 1,                /* in shared memory: avoids bank conflicts along z */
    LOCAL_RUNS = 17 * 1024,                     /* a tile with more stays apart */
    TILE_NODES = TILE_WORDS * TILE_COLUMNS / 2, /* max runs; room for runs and components */
};

/* Position of a word of 64 voxels. */
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

/* Returns the number of a word within one label. */
__device__ static __forceinline__ int64_t
word_number(const struct level_set_job &job, struct word_at at)
{
    int64_t tile = (at.z / TILE_SLICES * job.tiles_y + at.y / TILE_ROWS) * job.tiles_x + at.x;

    return tile * TILE_WORDS + at.z % TILE_SLICES * TILE_ROWS + at.y % TILE_ROWS;
}

__device__ static __forceinline__ bool
word_exists(const struct level_set_job &job, struct word_at at)
{
    return at.x >= 0 && at.x < job.words_per_row && at.y >= 0 && at.y < job.rows && at.z >= 0 && at.z < job.slices;
}

__device__ static __forceinline__ struct bits
level_set_unite_bits_of(const struct level_set_job &job, uint32_t label, struct word_at at)
{
    int64_t word;

    if (!word_exists(job, at))
        return {0, 0, 0};
    word = (int64_t)label * job.tiles * TILE_WORDS + word_number(job, at);
    return {job.range[word], job.initial[word], level_set_columns(job, (uint32_t)at.x)};
}

__device__ static __forceinline__ uint64_t
open_bits(const struct bits &bits)
{
    return (bits.in ^ bits.initial) & bits.exist;
}

/* Returns the first voxels of runs. */
__device__ static __forceinline__ uint64_t
starts_among(uint64_t open, uint64_t initial)
{
    uint64_t goes_on = ~(initial ^ initial << 1);

    return open & ~(open << 1 & goes_on);
}

__device__ static __forceinline__ uint64_t
run_starts(const struct bits &bits)
{
    return starts_among(open_bits(bits), bits.initial);
}

/* Returns the run of voxel i. */
__device__ static __forceinline__ uint32_t
level_set_unite_node_of(uint32_t first_node, uint64_t starts, int i)
{
    return first_node + (uint32_t)__popcll(starts & ~UINT64_C(0) >> (63 - i)) - 1;
}

__device__ static __forceinline__ uint32_t
parent_of(const uint32_t *parent, uint32_t node)
{
    return *(const volatile uint32_t *)&parent[node];
}

/* Returns the root of a node. Links nodes on the path one higher, never lower. */
__device__ static uint32_t
find_root(uint32_t *parent, uint32_t node)
{
    uint32_t above = parent_of(parent, node), next;

    while (above > (next = parent_of(parent, above))) {
        atomicMin(&parent[node], next);
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

/* Writes the region by tile after the flood: settled voxels have their final side. */
__global__ void
__launch_bounds__(THREADS) copy_region(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    struct word_at at = word_place(job, word);
    uint64_t region = 0;

    if (word_exists(job, at))
        region = job.inside[label * job.words + (at.z * job.rows + at.y) * job.words_per_row + at.x];
    job.initial[(size_t)label * job.tiles * TILE_WORDS + (size_t)word] = region;
}

/* Returns voxels that are open in two words, and on the same side. */
__device__ static __forceinline__ uint64_t
touching_bits(uint64_t open, uint64_t initial, uint64_t near_open, uint64_t near_initial)
{
    return open & near_open & ~(initial ^ near_initial);
}

/* Returns the bits of `which` in the run that begins first in `starts`. */
__device__ static __forceinline__ uint64_t
first_run_of(uint64_t starts, uint64_t which)
{
    uint64_t start = starts & (0 - starts), next = starts & (starts - 1);

    return which & ((next & (0 - next)) - 1) & ~(start - 1);
}

static const uint32_t ROOT = 1u << 31; /* in a tile: the run has a component number */

/* A tile's runs, numbered from 1. Words are SLICE_PITCH apart between slices. */
struct tile_runs {
    uint64_t open[TILE_SLICES * SLICE_PITCH];
    uint64_t initial[TILE_SLICES * SLICE_PITCH];
    uint64_t hung[TILE_SLICES * SLICE_PITCH]; /* starts of runs below another */
    uint32_t node[TILE_SLICES * SLICE_PITCH]; /* of the first run of a word */
    uint32_t columns[32][TILE_COLUMNS];       /* per warp: lanes that touch the previous one */
    uint32_t before[32], count;
    uint32_t components;
    uint32_t first_component, first_run; /* places in level_set_job's `parent` */
    bool apart;
    uint32_t parent[LOCAL_RUNS + 1];
};

__device__ static __forceinline__ uint64_t
local_starts(const struct tile_runs *runs, uint32_t at)
{
    return starts_among(runs->open[at], runs->initial[at]);
}

/*
 * Links the runs of a line of words along y or z, from `first` on, `step` apart. Handles each run
 * that touches the previous word and is not linked yet. Follows the touching voxels through its
 * first such voxel back to their first word, and links the run below the run there. Called by a
 * warp.
 */
__device__ static __forceinline__ void
hang_line(struct tile_runs *runs, uint32_t first, uint32_t step)
{
    const uint32_t lane = threadIdx.x % 32, at = first + lane * step;
    uint32_t *columns = runs->columns[threadIdx.x / 32], node = runs->node[at];
    uint64_t starts = local_starts(runs, at), hung = runs->hung[at], touching = 0;

    if (lane > 0)
        touching = touching_bits(runs->open[at], runs->initial[at], runs->open[at - step], runs->initial[at - step]);
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
        /* Lane 0 touches no previous word, so that the line has an end. */
        int i = __ffsll((long long)touches) - 1;
        uint32_t end = 31 - (uint32_t)__clz((int)(~columns[i] & ((2u << lane) - 1)));
        uint32_t other = first + end * step;

        runs->parent[node] = level_set_unite_node_of(runs->node[other], local_starts(runs, other), i);
        hung |= start;
    }
    runs->hung[at] = hung;
}

/* Numbers the runs of a block's words, one word per thread. Returns the thread's first number. */
__device__ static __forceinline__ uint32_t
number_words(struct tile_runs *runs, uint32_t own)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t sum = own;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        runs->before[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t total = 0;

        for (uint32_t i = 0; i < TILE_WORDS / 32; i++) {
            uint32_t count = runs->before[i];
            runs->before[i] = total;
            total += count;
        }
        runs->count = total;
        runs->components = 0;
        runs->apart = total > LOCAL_RUNS;
    }
    __syncthreads();
    return 1 + runs->before[warp] + sum - own;
}

/* Returns the places where runs of two words touch, once for each pair of runs. */
__device__ static __forceinline__ uint64_t
joints(uint64_t touching, uint64_t starts, uint64_t near_starts)
{
    return touching & (~(touching << 1) | starts | near_starts);
}

/* Unites a word's runs with those of the word `step` before. Skips the first touching voxel of a
 * run that begins in `hung`, since the run was linked there. */
__device__ static __forceinline__ void
unite_near(struct tile_runs *runs, uint32_t at, uint32_t step, uint64_t hung)
{
    const uint32_t near = at - step;
    const uint64_t starts = local_starts(runs, at), near_starts = local_starts(runs, near);
    uint64_t touching = touching_bits(runs->open[at], runs->initial[at], runs->open[near], runs->initial[near]);
    uint32_t last = UINT32_MAX;

    for (uint64_t left = joints(touching, starts, near_starts); left; left &= left - 1) {
        int i = __ffsll((long long)left) - 1;
        uint32_t node = level_set_unite_node_of(runs->node[at], starts, i);
        bool first = node != last;

        last = node;
        if (first && hung >> (63 - __clzll((long long)(starts & ~UINT64_C(0) >> (63 - i)))) & 1)
            continue;
        unite(runs->parent, node, level_set_unite_node_of(runs->node[near], near_starts, i));
    }
}

/* Unites all runs of the tile. `begun`: starts of runs in the thread's word that settle anyway. */
__device__ static __forceinline__ void
unite_tile(struct tile_runs *runs, uint64_t begun)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t at = warp * SLICE_PITCH + lane;
    uint32_t node = runs->node[at];

    for (uint64_t left = local_starts(runs, at); left; left &= left - 1, node++)
        runs->parent[node] = begun & left & (0 - left) ? 0 : node;
    if (threadIdx.x == 0)
        runs->parent[0] = 0;
    runs->hung[at] = begun;
    __syncthreads();
    hang_line(runs, warp * SLICE_PITCH, 1);
    uint64_t by_y = runs->hung[at];
    __syncthreads();
    hang_line(runs, warp, SLICE_PITCH);
    __syncthreads();
    if (lane > 0)
        unite_near(runs, at, 1, by_y & ~begun);
    if (warp > 0)
        unite_near(runs, at, SLICE_PITCH, runs->hung[at] & ~by_y);
    __syncthreads();
}

/* Returns voxels of `bits` that settle because of the voxel at the same place in `near`. */
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
    const struct word_at near[4] = {
        {at.x, at.y - 1, at.z}, {at.x, at.y + 1, at.z}, {at.x, at.y, at.z - 1}, {at.x, at.y, at.z + 1}};
    struct bits left = level_set_unite_bits_of(job, label, {at.x - 1, at.y, at.z});
    struct bits right = level_set_unite_bits_of(job, label, {at.x + 1, at.y, at.z});
    uint64_t settled = settled_bits(bits), all;

    all = begins_beside(bits, settled << 1 | settled_bits(left) >> 63, bits.initial << 1 | left.initial >> 63);
    all |= begins_beside(bits, settled >> 1 | settled_bits(right) << 63, bits.initial >> 1 | right.initial << 63);
    for (int i = 0; i < 4; i++) {
        struct bits other = level_set_unite_bits_of(job, label, near[i]);
        all |= begins_beside(bits, settled_bits(other), other.initial);
    }
    return all;
}

/* Reserves places for the tile's runs and components, or for its runs as components. */
__device__ static __forceinline__ void
take_places(const struct level_set_job &job, uint32_t label, struct tile_runs *runs)
{
    if (threadIdx.x == 0) {
        runs->apart |= runs->count + runs->components > TILE_NODES;
        if (runs->apart) {
            job.state[label * job.tiles + blockIdx.x] |= STATE_APART;
            runs->components = runs->count;
        } else {
            runs->first_run = job.tiles * TILE_NODES + 1 - runs->count - atomicAdd(&job.counts->runs, runs->count);
        }
        runs->first_component = 1 + atomicAdd(&job.counts->components, runs->components);
    }
    __syncthreads();
}

/* Writes each run's component and each component's parent for a united tile. */
__device__ static __forceinline__ void
level_set_unite_write_components(const struct level_set_job &job, const struct tile_runs *runs)
{
    for (uint32_t i = threadIdx.x; i < runs->count; i += TILE_WORDS) {
        uint32_t above = runs->parent[1 + i];

        if (above != 0 && !(above & ROOT))
            above = runs->parent[above];
        job.parent[runs->first_run + i] = above ? runs->first_component + (above & ~ROOT) : 0;
    }
    for (uint32_t i = threadIdx.x; i < runs->components; i += TILE_WORDS)
        job.parent[runs->first_component + i] = runs->first_component + i;
}

/* Finds the components of a tile, one block each. */
__global__ void
__launch_bounds__(TILE_WORDS) unite_tiles(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    extern __shared__ __align__(16) unsigned char memory[];
    struct tile_runs *runs = (struct tile_runs *)memory;
    const uint32_t at = threadIdx.x / 32 * SLICE_PITCH + threadIdx.x % 32;
    int64_t word = (int64_t)blockIdx.x * TILE_WORDS + threadIdx.x;
    struct word_at place = word_place(job, word);
    struct bits bits = level_set_unite_bits_of(job, label, place);
    uint64_t starts = run_starts(bits), begun = 0;
    uint32_t node = number_words(runs, (uint32_t)__popcll(starts));

    if (word == 0)
        job.parent[0] = 0;
    if (runs->count == 0)
        return;
    if (starts) {
        const uint64_t which = begins(job, label, bits, place);

        for (uint64_t left = starts; left; left &= left - 1) /* the runs with one of these voxels */
            if (first_run_of(left, which))
                begun |= left & (0 - left);
    }
    if (!runs->apart) {
        runs->open[at] = open_bits(bits);
        runs->initial[at] = bits.initial;
        runs->node[at] = node;
        unite_tile(runs, begun);
        /* Number the components from 0. Each root becomes its number, marked as such. */
        for (uint32_t i = 1 + threadIdx.x; i <= runs->count; i += TILE_WORDS)
            atomicMin(&runs->parent[i], find_root(runs->parent, i));
        __syncthreads();
        for (uint32_t i = 1 + threadIdx.x; i <= runs->count; i += TILE_WORDS)
            if (runs->parent[i] == i)
                runs->parent[i] = ROOT | atomicAdd(&runs->components, 1);
        __syncthreads();
    }
    take_places(job, label, runs);
    if (!runs->apart) {
        job.first_node[word] = runs->first_run + node - 1;
        level_set_unite_write_components(job, runs);
        return;
    }
    node += runs->first_component - 1;
    job.first_node[word] = node;
    for (; starts; starts &= starts - 1, node++)
        job.parent[node] = begun & starts & (0 - starts) ? 0 : node;
}

/* A word's runs, to look up their components. */
struct word_runs {
    uint64_t starts;
    uint32_t node;
    bool apart;
};

__device__ static __forceinline__ struct word_runs
runs_of(const struct level_set_job &job, uint32_t label, const struct bits &bits, int64_t word)
{
    return {run_starts(bits), job.first_node[word],
            (job.state[label * job.tiles + word / TILE_WORDS] & STATE_APART) != 0};
}

/* Returns the component of the run of voxel i. */
__device__ static __forceinline__ uint32_t
component_of(const struct level_set_job &job, const struct word_runs &runs, int i)
{
    uint32_t node = level_set_unite_node_of(runs.node, runs.starts, i);

    return runs.apart ? node : job.parent[node];
}

/* Unites two components. Of lanes with the same two, one does it. Both 0: no work. Called by a
 * warp. */
__device__ static __forceinline__ void
unite_once(const struct level_set_job &job, uint32_t a, uint32_t b)
{
    const uint32_t same = __match_any_sync(~0u, (uint64_t)a << 32 | b);

    if (a != b && threadIdx.x % 32 == (uint32_t)__ffs((int)same) - 1)
        unite(job.parent, a, b);
}

/* Unites runs of two words; equal bits touch. Called by a warp. */
__device__ static __forceinline__ void
unite_words(const struct level_set_job &job, uint32_t label, const struct bits &bits, const struct word_runs &runs,
            struct word_at near_at)
{
    const struct bits near = level_set_unite_bits_of(job, label, near_at);
    uint64_t left = touching_bits(open_bits(bits), bits.initial, open_bits(near), near.initial);
    struct word_runs near_runs = {};

    if (left)
        near_runs = runs_of(job, label, near, word_number(job, near_at));
    for (left = joints(left, runs.starts, near_runs.starts); __any_sync(~0u, left != 0); left &= left - 1) {
        int i = __ffsll((long long)left) - 1;
        uint32_t own = left ? component_of(job, runs, i) : 0;
        uint32_t other = left ? component_of(job, near_runs, i) : 0;

        unite_once(job, own, other);
    }
}

/* Unites contacts across faces of tiles, or anywhere in a tile that is apart. */
__global__ void
__launch_bounds__(THREADS) unite_faces(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    struct word_at at = word_place(job, word);
    struct bits bits = level_set_unite_bits_of(job, label, at);

    struct word_runs runs = {};

    if (open_bits(bits))
        runs = runs_of(job, label, bits, word);
    /* The last voxel of the previous word and the first of this. */
    const struct word_at near_at = {at.x - 1, at.y, at.z};
    const struct bits near = level_set_unite_bits_of(job, label, near_at);
    uint32_t own = 0, other = 0;

    if (open_bits(bits) & open_bits(near) >> 63 & ~(bits.initial ^ near.initial >> 63) & 1) {
        own = component_of(job, runs, 0);
        other = component_of(job, runs_of(job, label, near, word_number(job, near_at)), 63);
    }
    unite_once(job, own, other);
    /* -1 skips the previous word if this one is not on the face. */
    const bool y_face = runs.apart || at.y % TILE_ROWS == 0;
    const bool z_face = runs.apart || at.z % TILE_SLICES == 0;
    unite_words(job, label, bits, runs, {at.x, y_face ? at.y - 1 : -1, at.z});
    unite_words(job, label, bits, runs, {at.x, at.y, z_face ? at.z - 1 : -1});
}

/* Links every component directly to its root, since many runs would search for it. */
__global__ void
__launch_bounds__(THREADS) flatten(const __grid_constant__ struct level_set_job job)
{
    const uint32_t count = job.counts->components, step = gridDim.x * THREADS;

    for (uint32_t node = 1 + blockIdx.x * THREADS + threadIdx.x; node <= count; node += step) {
        const uint32_t above = parent_of(job.parent, node);
        uint32_t root = above, next;

        /* Changes only its own parent: nodes below its root stay there. */
        while (root > (next = parent_of(job.parent, root)))
            root = next;
        if (root != above)
            job.parent[node] = root;
    }
}

/* Writes the region: the initial one with the settled voxels flipped. */
__global__ void
__launch_bounds__(THREADS) exchange(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    struct word_at at = word_place(job, word);
    struct bits bits = level_set_unite_bits_of(job, label, at);
    uint64_t open = open_bits(bits), starts = run_starts(bits), settled = 0, region;

    if (starts) {
        const struct word_runs runs = runs_of(job, label, bits, word);
        const uint32_t *run = &job.parent[runs.node];

        for (; starts; starts &= starts - 1, run++)
            if ((runs.apart ? *run : job.parent[*run]) == 0)
                settled |= first_run_of(starts, open);
    }
    region = bits.initial ^ settled;
    if (word_exists(job, at))
        job.inside[label * job.words + (at.z * job.rows + at.y) * job.words_per_row + at.x] = region;
    uint32_t voxels = __reduce_add_sync(~0u, (uint32_t)__popcll(region));
    if (threadIdx.x % 32 == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[label], voxels);
}

cudaError_t
level_set_unite(const struct level_set_job *job, uint32_t label, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((int64_t)job->tiles * TILE_WORDS / THREADS);
    const size_t memory = sizeof(struct tile_runs);
    cudaError_t error =
        CUDA_OF(cudaFuncSetAttribute(unite_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)memory));

    if (error == cudaSuccess)
        error = CUDA_OF(cudaMemsetAsync(&job->counts->runs, 0, 2 * sizeof(uint32_t), stream));
    if (error == cudaSuccess)
        error = CUDA_OF(cudaMemsetAsync(&job->voxels_in[label], 0, sizeof(int64_t), stream));
    if (error != cudaSuccess)
        return error;
    copy_region<<<blocks, THREADS, 0, stream>>>(*job, label);
    unite_tiles<<<job->tiles, TILE_WORDS, memory, stream>>>(*job, label);
    unite_faces<<<blocks, THREADS, 0, stream>>>(*job, label);
    flatten<<<blocks, THREADS, 0, stream>>>(*job);
    exchange<<<blocks, THREADS, 0, stream>>>(*job, label);
    return cudaSuccess;
}
