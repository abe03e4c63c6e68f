/*
 * mask_runs.cu - components on the GPU: the runs of a word, united with those that they touch in
 * the word before and in the rows before.
 *
 * A word has a slot for each run that it may have: a root's holds its size, another's a slot of its
 * component that comes earlier (Jaiganesh 2018). The root of a component is its first run, whatever
 * the order.
 */
#include "kernels/mask/mask_cuda.cuh"

#include <limits.h>

enum { SLOTS_PER_WORD = 32 };

static const unsigned long long root_bit = 1ULL << 63;

size_t
mask_slots(const struct mask_grid *grid)
{
    return (size_t)grid->words * SLOTS_PER_WORD;
}

__device__ static __forceinline__ uint64_t
search_word(const struct mask_search &search, int64_t word, int64_t x)
{
    const uint64_t bits = search.bits[word] ^ search.flip;

    return x + 1 == search.grid.words_per_row ? bits & search.grid.tail : bits;
}

/* Where the run of this bit, which is set, begins. */
__device__ static __forceinline__ int
run_begin(uint64_t bits, int bit)
{
    const uint64_t gaps = ~bits & ((UINT64_C(1) << bit) - 1);

    return gaps ? 64 - __clzll((long long)gaps) : 0;
}

/* The run that begins at this bit: the sum carries through it. */
__device__ static __forceinline__ uint64_t
run_of(uint64_t bits, int begin)
{
    return bits & ~(bits + (UINT64_C(1) << begin));
}

__device__ static __forceinline__ unsigned long long
slot_of(int64_t word, int begin)
{
    return (unsigned long long)word * SLOTS_PER_WORD + (unsigned)begin / 2;
}

/* Past the first cache, which knows nothing of what others write. */
__device__ static __forceinline__ unsigned long long
peek_slot(const unsigned long long *slot)
{
    return *(const volatile unsigned long long *)slot;
}

/* The root of a slot. What is passed on the way is hung higher, never lower again: another thread
 * of search_sizes may have hung it to its root since it was read, and there it has to stay. */
__device__ static __forceinline__ unsigned long long
find_root(unsigned long long *slots, unsigned long long slot)
{
    for (;;) {
        const unsigned long long next = peek_slot(&slots[slot]);

        if (next & root_bit)
            return slot;
        const unsigned long long after = peek_slot(&slots[next]);

        if (after & root_bit)
            return next;
        atomicMin(&slots[slot], after);
        slot = after;
    }
}

__device__ static __forceinline__ void
unite_slots(unsigned long long *slots, unsigned long long a, unsigned long long b)
{
    for (;;) {
        a = find_root(slots, a);
        b = find_root(slots, b);
        if (a == b)
            return;
        const unsigned long long early = min(a, b), late = max(a, b);

        if (atomicCAS(&slots[late], root_bit, early) == root_bit)
            return;
    }
}

__global__ void
__launch_bounds__(MASK_THREADS) search_begin(const __grid_constant__ struct mask_search search)
{
    MASK_EACH_WORD(search.grid, word)
    {
        const uint64_t bits = search_word(search, word, word % search.grid.words_per_row);

        for (uint64_t starts = bits & ~(bits << 1); starts; starts &= starts - 1)
            search.slots[slot_of(word, __ffsll((long long)starts) - 1)] = root_bit;
    }
}

/* Unites the runs of a word with those of the word opposite in another row. */
__device__ static __forceinline__ void
unite_opposite(const struct mask_search &search, int64_t word, uint64_t bits, int64_t other,
               uint64_t others)
{
    for (uint64_t left = bits; left && others;) {
        const int begin = __ffsll((long long)left) - 1;
        const uint64_t run = run_of(bits, begin);
        uint64_t near = search.corners ? run | run << 1 | run >> 1 : run;

        left &= ~run;
        for (near &= others; near;) {
            const int there = run_begin(others, __ffsll((long long)near) - 1);

            unite_slots(search.slots, slot_of(word, begin), slot_of(other, there));
            near &= ~run_of(others, there);
        }
    }
}

/* The last run of `low`, the word before, and the first of `high`, where they meet. */
__device__ static __forceinline__ void
unite_ends(const struct mask_search &search, int64_t low_word, uint64_t low, int64_t high_word,
           uint64_t high)
{
    if (low >> 63 && high & 1)
        unite_slots(search.slots, slot_of(low_word, run_begin(low, 63)), slot_of(high_word, 0));
}

__device__ static __forceinline__ void
unite_with_row(const struct mask_search &search, int64_t word, uint64_t bits, int64_t x,
               int64_t other)
{
    unite_opposite(search, word, bits, other, search_word(search, other, x));
    if (!search.corners)
        return;
    if (x > 0)
        unite_ends(search, other - 1, search_word(search, other - 1, x - 1), word, bits);
    if (x + 1 < search.grid.words_per_row)
        unite_ends(search, word, bits, other + 1, search_word(search, other + 1, x + 1));
}

__global__ void
__launch_bounds__(MASK_THREADS) search_unite(const __grid_constant__ struct mask_search search)
{
    const struct mask_grid &grid = search.grid;
    const int64_t row = grid.words_per_row, slice = row * grid.rows;

    MASK_EACH_WORD(grid, word)
    {
        const struct mask_place at = mask_place_of(grid, word);
        const uint64_t bits = search_word(search, word, at.x);
        const bool deep = !search.flat && at.z > 0;

        if (!bits)
            continue;
        if (at.x > 0)
            unite_ends(search, word - 1, search_word(search, word - 1, at.x - 1), word, bits);
        if (at.y > 0)
            unite_with_row(search, word, bits, at.x, word - row);
        if (deep)
            unite_with_row(search, word, bits, at.x, word - slice);
        if (deep && search.corners && at.y > 0)
            unite_with_row(search, word, bits, at.x, word - slice - row);
        if (deep && search.corners && at.y + 1 < grid.rows)
            unite_with_row(search, word, bits, at.x, word - slice + row);
    }
}

/* What a run counts: its voxels, or whether it lies at the border, if its component is not known to
 * do so. */
__device__ static __forceinline__ uint32_t
run_counts(const struct mask_search &search, const struct mask_place &at, uint64_t run,
           unsigned long long root)
{
    const struct mask_grid &grid = search.grid;
    const uint64_t last = UINT64_C(1) << (grid.columns - 1) % 64;

    if (!search.border)
        return (uint32_t)__popcll(run);
    if (peek_slot(&search.slots[root]) & ~root_bit)
        return 0;
    return at.y == 0 || at.y + 1 == grid.rows ||
           (!search.flat && (at.z == 0 || at.z + 1 == grid.slices)) || (at.x == 0 && run & 1) ||
           (at.x + 1 == grid.words_per_row && run & last);
}

__global__ void
__launch_bounds__(MASK_THREADS) search_sizes(const __grid_constant__ struct mask_search search)
{
    unsigned long long *slots = search.slots, root_now = 0;
    uint32_t counted = 0;

    MASK_EACH_WORD(search.grid, word)
    {
        const struct mask_place at = mask_place_of(search.grid, word);
        const uint64_t bits = search_word(search, word, at.x);

        for (uint64_t left = bits; left;) {
            const int begin = __ffsll((long long)left) - 1;
            const uint64_t run = run_of(bits, begin);
            const unsigned long long slot = slot_of(word, begin), root = find_root(slots, slot);

            left &= ~run;
            if (root != slot)
                *(volatile unsigned long long *)&slots[slot] = root;
            if (root != root_now && counted > 0) {
                atomicAdd(&slots[root_now], counted);
                counted = 0;
            }
            root_now = root;
            counted += run_counts(search, at, run, root);
        }
    }
    /* The lanes of one component together: its root would be a bottleneck. */
    __syncwarp();
    const unsigned same = __match_any_sync(~0u, root_now);
    const uint32_t sum = __reduce_add_sync(same, counted);

    if (sum > 0 && threadIdx.x % 32 == (unsigned)__ffs((int)same) - 1)
        atomicAdd(&slots[root_now], sum);
}

void
mask_search_begin(const struct mask_search *search, cudaStream_t stream)
{
    search_begin<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
    search_unite<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
    search_sizes<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
}

/* The largest */

__device__ static __forceinline__ bool
bound_before(const struct mask_bound &a, const struct mask_bound &b)
{
    return a.size > b.size || (a.size == b.size && a.last < b.last);
}

/* The first of all the block's, for its first thread. */
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

/* The bound becomes the first component behind it; none leaves it. */
__global__ void
__launch_bounds__(MASK_THREADS) search_largest(const __grid_constant__ struct mask_search search)
{
    __shared__ struct mask_bound shared[MASK_THREADS];
    __shared__ bool is_last;
    const struct mask_bound bound = search.facts->bound;
    struct mask_bound own = {-1, ULLONG_MAX};

    MASK_EACH_WORD(search.grid, word)
    {
        const uint64_t bits = search_word(search, word, word % search.grid.words_per_row);

        for (uint64_t starts = bits & ~(bits << 1); starts; starts &= starts - 1) {
            const unsigned long long slot = slot_of(word, __ffsll((long long)starts) - 1);
            const unsigned long long held = search.slots[slot];
            const struct mask_bound candidate = {(long long)(held & ~root_bit), slot};

            if (held & root_bit && bound_before(bound, candidate) && bound_before(candidate, own))
                own = candidate;
        }
    }
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
mask_search_largest(const struct mask_search *search, cudaStream_t stream)
{
    const uint32_t blocks =
        search->grid.blocks < MASK_PARTIALS ? search->grid.blocks : (uint32_t)MASK_PARTIALS;

    search_largest<<<blocks, MASK_THREADS, 0, stream>>>(*search);
}

__global__ void
search_share(struct mask_facts *facts, double share)
{
    facts->bound.size = (long long)ceil(__dmul_rn(share, (double)facts->bound.size));
    facts->bound.last = ULLONG_MAX;
}

void
mask_search_share(const struct mask_search *search, double share, cudaStream_t stream)
{
    search_share<<<1, 1, 0, stream>>>(search->facts, share);
}

__global__ void
search_bound(struct mask_facts *facts, struct mask_bound bound, bool counted)
{
    facts->bound = bound;
    if (counted)
        facts->found = facts->kept = 0;
}

void
mask_search_bound(const struct mask_search *search, struct mask_bound bound, cudaStream_t stream)
{
    search_bound<<<1, 1, 0, stream>>>(search->facts, bound, !search->border);
}

/* What stays */

__global__ void
__launch_bounds__(MASK_THREADS) search_drop(const __grid_constant__ struct mask_search search)
{
    const struct mask_bound bound = search.facts->bound;
    uint32_t found = 0, kept = 0;

    MASK_EACH_WORD(search.grid, word)
    {
        const uint64_t bits = search_word(search, word, word % search.grid.words_per_row);
        uint64_t turned = 0;

        for (uint64_t left = bits; left;) {
            const int begin = __ffsll((long long)left) - 1;
            const uint64_t run = run_of(bits, begin);
            const unsigned long long slot = slot_of(word, begin), held = search.slots[slot];
            const unsigned long long root = held & root_bit ? slot : held;
            const struct mask_bound own = {(long long)(search.slots[root] & ~root_bit), root};
            const bool stays = !bound_before(bound, own);

            left &= ~run;
            found += root == slot;
            kept += root == slot && stays;
            turned |= stays ? 0 : run;
        }
        if (turned)
            search.bits[word] ^= turned;
    }
    __syncwarp();
    found = __reduce_add_sync(~0u, found);
    kept = __reduce_add_sync(~0u, kept);
    if (threadIdx.x % 32 == 0 && found > 0 && !search.border) {
        atomicAdd(&search.facts->found, found);
        atomicAdd(&search.facts->kept, kept);
    }
}

void
mask_search_drop(const struct mask_search *search, cudaStream_t stream)
{
    search_drop<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
}

/* Numbers */

__global__ void
__launch_bounds__(MASK_THREADS) search_number(const __grid_constant__ struct mask_search search)
{
    MASK_EACH_WORD(search.grid, word)
    {
        const uint64_t bits = search_word(search, word, word % search.grid.words_per_row);

        for (uint64_t starts = bits & ~(bits << 1); starts; starts &= starts - 1) {
            const unsigned long long slot = slot_of(word, __ffsll((long long)starts) - 1);

            if (search.slots[slot] & root_bit) {
                search.slots[slot] = root_bit | atomicAdd(&search.facts->found, 1ULL);
                atomicAdd(&search.facts->kept, 1ULL);
            }
        }
    }
}

void
mask_search_number(const struct mask_search *search, cudaStream_t stream)
{
    search_number<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
}

__global__ void
__launch_bounds__(MASK_THREADS)
    search_part(const __grid_constant__ struct mask_search search, int bit, uint64_t *part)
{
    MASK_EACH_WORD(search.grid, word)
    {
        const uint64_t bits = search_word(search, word, word % search.grid.words_per_row);
        uint64_t taken = 0;

        for (uint64_t left = bits; left;) {
            const int begin = __ffsll((long long)left) - 1;
            const uint64_t run = run_of(bits, begin);
            const unsigned long long held = search.slots[slot_of(word, begin)];
            const unsigned long long number = held & root_bit ? held : search.slots[held];

            left &= ~run;
            taken |= number >> bit & 1 ? run : 0;
        }
        part[word] = taken;
    }
}

void
mask_search_part(const struct mask_search *search, int bit, uint64_t *part, cudaStream_t stream)
{
    search_part<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search, bit, part);
}
