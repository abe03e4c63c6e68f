/* mask_keep.cu - selects components: the largest, those of a size, those at the border. Also
 * numbers them. */
#include "kernels/mask/mask_runs.cuh"

#include <limits.h>

/* Returns which nodes of a word belong to components with is(number, count), and which are roots.
 * All lanes must call it. */
template <typename Is>
static __device__ __forceinline__ uint32_t
nodes_that(const struct mask_search &search, uint32_t word, const Is &is, uint32_t *roots)
{
    const uint32_t own = word * MASK_RUNS_PER_WORD, count = word < search.grid.words ? search.firsts[word] : 0;
    uint32_t those = 0;

    *roots = 0;
    for (uint32_t first = 0; __any_sync(~0u, first < count); first += NODES_ABREAST) {
        struct mask_node node[NODES_ABREAST] = {};

        if (first < count) {
            const uint4 *const from = (const uint4 *)node_at(search, own + first);
            const uint4 low = from[0], high = from[1];

            node[0] = {low.x, low.y};
            node[1] = {low.z, low.w};
            node[2] = {high.x, high.y};
            node[3] = {high.z, high.w};
        }
#pragma unroll
        for (uint32_t i = 0; i < NODES_ABREAST; i++)
            if (first + i < count) {
                if (node[i].parent == own + first + i)
                    *roots |= 1U << (first + i);
                else
                    node[i].count = node_at(search, node[i].parent)->count;
            }
#pragma unroll
        for (uint32_t i = 0; i < NODES_ABREAST; i++)
            if (first + i < count && is(node[i].parent, node[i].count))
                those |= 1U << (first + i);
    }
    return those;
}

/*
 * Returns the runs of the thread's word with one of these nodes of the block's tile. Each thread
 * provides the nodes of its word. Labels are relative to the tile, so that runs need no further
 * device memory.
 */
static __device__ __forceinline__ uint64_t
runs_of(const struct mask_search &search, uint32_t word, uint32_t nodes)
{
    enum { LABELS = 8 };

    __shared__ uint32_t tile_nodes[MASK_THREADS];
    const uint64_t bits =
        word < search.grid.words ? search_word(search, word, word % (uint32_t)search.grid.words_per_row) : 0;
    uint64_t taken = 0;
    uint32_t next = 0;

    tile_nodes[threadIdx.x] = nodes;
    __syncthreads();
    for (uint64_t left = bits; __any_sync(~0u, left != 0); next += LABELS) {
        const uint4 packed = left ? *(const uint4 *)label_at(search, word, next) : uint4{};
        const uint32_t two[LABELS / 2] = {packed.x, packed.y, packed.z, packed.w};

#pragma unroll
        for (uint32_t i = 0; i < LABELS; i++) {
            const uint64_t run = first_run(bits, left);
            /* undefined if there is no such run */
            const uint32_t label = two[i / 2] >> 16 * (i % 2), in_tile = label / MASK_RUNS_PER_WORD % MASK_THREADS;

            if (tile_nodes[in_tile] >> label % MASK_RUNS_PER_WORD & 1)
                taken |= run;
            left &= ~run;
        }
    }
    return taken;
}

/* The largest */

__device__ static __forceinline__ bool
bound_before(const struct mask_bound &a, const struct mask_bound &b)
{
    return a.size > b.size || (a.size == b.size && a.last < b.last);
}

/* Returns the block's first bound in its first thread. */
__device__ static struct mask_bound
first_of_block(struct mask_bound own, struct mask_bound *shared)
{
    shared[threadIdx.x] = own;
    for (unsigned half = MASK_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half && bound_before(shared[threadIdx.x + half], shared[threadIdx.x]))
            shared[threadIdx.x] = shared[threadIdx.x + half];
    }
    __syncthreads();
    return shared[0];
}

__global__ void
search_largest(struct mask_facts *facts, double share)
{
    if (facts->highest > 0)
        facts->bound = {(long long)(facts->highest >> 32), (uint32_t)~facts->highest};
    if (share >= 0)
        facts->bound = {(long long)ceil(__dmul_rn(share, (double)facts->bound.size)), ULLONG_MAX};
}

__global__ void
__launch_bounds__(MASK_THREADS) search_next(const __grid_constant__ struct mask_search search)
{
    __shared__ struct mask_bound shared[MASK_THREADS];
    __shared__ bool is_last;
    const struct mask_bound bound = search.facts->bound;
    struct mask_bound own = {-1, ULLONG_MAX};

    visit_roots(search, [&](uint32_t root, const struct mask_node &node) {
        const struct mask_bound candidate = {node.count, root};

        if (bound_before(bound, candidate) && bound_before(candidate, own))
            own = candidate;
    });
    own = first_of_block(own, shared);
    if (threadIdx.x == 0) {
        search.partials[blockIdx.x] = own;
        __threadfence();
        is_last = atomicAdd(&search.facts->ticket, 1) + 1 == gridDim.x;
    }
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    own.size = -1;
    own.last = ULLONG_MAX;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += MASK_THREADS) {
        const volatile struct mask_bound *partial = &search.partials[i];
        const struct mask_bound other = {partial->size, partial->last};

        if (bound_before(other, own))
            own = other;
    }
    own = first_of_block(own, shared);
    if (threadIdx.x == 0) {
        search.facts->ticket = 0;
        if (own.size >= 0)
            search.facts->bound = own;
    }
}

void
mask_search_largest(const struct mask_search *search, int64_t places, double share, cudaStream_t stream)
{
    const uint32_t blocks = search->grid.blocks < MASK_PARTIALS ? search->grid.blocks : (uint32_t)MASK_PARTIALS;

    search_largest<<<1, 1, 0, stream>>>(search->facts, share);
    for (int64_t i = 1; i < places; i++)
        search_next<<<blocks, MASK_THREADS, 0, stream>>>(*search);
}

/* What stays */

template <typename Shape>
__global__ void
__launch_bounds__(MASK_THREADS) search_drop(const __grid_constant__ struct mask_search search)
{
    __shared__ uint32_t block_found, block_kept;
    const struct mask_bound bound = search.facts->bound;
    const uint32_t word = word_at(search.grid, tile_place<Shape>());
    uint32_t roots;

    if (threadIdx.x == 0)
        block_found = block_kept = 0;
    const uint32_t goers = nodes_that(
        search, word,
        [&](uint32_t root, uint32_t count) {
            return bound_before(bound, {count, root});
        },
        &roots);
    const uint64_t going = runs_of(search, word, goers);

    if (going)
        search.bits[word] ^= going;
    __syncwarp();
    const uint32_t found = __reduce_add_sync(~0u, (uint32_t)__popc(roots)),
                   kept = __reduce_add_sync(~0u, (uint32_t)__popc(roots & ~goers));

    if (threadIdx.x % 32 == 0 && found > 0) {
        atomicAdd(&block_found, found);
        atomicAdd(&block_kept, kept);
    }
    __syncthreads();
    if (threadIdx.x == 0 && block_found > 0 && !search.border) {
        atomicAdd(&search.facts->found, block_found);
        atomicAdd(&search.facts->kept, block_kept);
    }
}

void
mask_search_drop(const struct mask_search *search, cudaStream_t stream)
{
    tiles_queue(search, [&](auto shape, dim3 tiles) {
        search_drop<decltype(shape)><<<tiles, MASK_THREADS, 0, stream>>>(*search);
    });
}

/* Numbers */

__global__ void
__launch_bounds__(MASK_THREADS) search_number(const __grid_constant__ struct mask_search search)
{
    visit_roots(search, [&](uint32_t root, const struct mask_node &) {
        node_at(search, root)->count = (uint32_t)atomicAdd(&search.facts->found, 1ULL);
        atomicAdd(&search.facts->kept, 1ULL);
    });
}

void
mask_search_number(const struct mask_search *search, cudaStream_t stream)
{
    search_number<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
}

template <typename Shape>
__global__ void
__launch_bounds__(MASK_THREADS) search_part(const __grid_constant__ struct mask_search search, int bit, uint64_t *part)
{
    const uint32_t word = word_at(search.grid, tile_place<Shape>());
    uint32_t roots;
    const uint32_t those = nodes_that(
        search, word, [&](uint32_t, uint32_t number) { return (number >> bit & 1) != 0; }, &roots);
    const uint64_t taken = runs_of(search, word, those);

    if (word < search.grid.words)
        part[word] = taken;
}

void
mask_search_part(const struct mask_search *search, int bit, uint64_t *part, cudaStream_t stream)
{
    tiles_queue(search, [&](auto shape, dim3 tiles) {
        search_part<decltype(shape)><<<tiles, MASK_THREADS, 0, stream>>>(*search, bit, part);
    });
}
