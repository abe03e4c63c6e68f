/*
 * mask_runs.cuh - what the kernels of components share: the runs of a word, and their slots.
 *
 * A word has a slot for each run that it may have, of which its runs take the first: what is known of them lies close
 * together. `slots` holds, with a flag, the parent of the first run of a component as far as a tile sees it, which is
 * itself for the first of all; of other runs the slot of that first one. `counts` holds what a component counts, at its
 * first run; a bit of `firsts` for each slot of a word says which are firsts, and of `hung` which of these hang below
 * others.
 */
#ifndef NOCTULE_MASK_RUNS_CUH
#define NOCTULE_MASK_RUNS_CUH

#include "kernels/mask/mask_cuda.cuh"

static constexpr uint32_t SLOT_FIRST = 1U << 31;

/* A word and the slot of its first run; those of the others follow. */
struct mask_word {
    uint64_t bits;
    uint32_t slots;
};

static __device__ __forceinline__ uint64_t
search_word(const struct mask_search &search, uint32_t word, uint32_t x)
{
    const uint64_t bits = search.bits[word] ^ search.flip;

    return x + 1 == search.grid.words_per_row ? bits & search.grid.tail : bits;
}

static __device__ __forceinline__ struct mask_word
search_runs(const struct mask_search &search, uint32_t word, uint32_t x)
{
    return {search_word(search, word, x), word * MASK_SLOTS_PER_WORD};
}

/* Of a word beyond the last one none. */
static __device__ __forceinline__ struct mask_word
search_runs_at(const struct mask_search &search, uint32_t word)
{
    if (word >= search.grid.words)
        return {};
    return search_runs(search, word, word % (uint32_t)search.grid.words_per_row);
}

static __device__ __forceinline__ uint64_t
run_starts(uint64_t bits)
{
    return bits & ~(bits << 1);
}

static __device__ __forceinline__ uint32_t
run_count(uint64_t bits)
{
    return (uint32_t)__popcll((long long)run_starts(bits));
}

/* The first run that has any of the bits that are left: the sum carries through it. */
static __device__ __forceinline__ uint64_t
first_run(uint64_t bits, uint64_t left)
{
    return bits & ~(bits + (left & (0 - left)));
}

/* The slot of the last run that begins in these bits, which are all up to one of the run's. */
static __device__ __forceinline__ uint32_t
slot_within(const struct mask_word &runs, uint64_t up_to)
{
    return runs.slots + (uint32_t)__popcll((long long)(run_starts(runs.bits) & up_to)) - 1;
}

/* Whole warps go round, with an index or beyond the last one: what follows asks all lanes. */
#define SEARCH_EACH(count, index)                                                                  \
    for (uint32_t index = blockIdx.x * blockDim.x + threadIdx.x; ((index) & ~31u) < (count);       \
         (index) += gridDim.x * blockDim.x)

/*
 * Runs are visited in loops, and what is done for each of them loops, too: a warp's lanes take their next runs
 * together, until none has one, instead of going on one by one.
 */

/* visit(place of its slot, run) of the runs of a word. */
template <typename Visit>
static __device__ __forceinline__ void
visit_runs(const struct mask_word &own, const Visit &visit)
{
    uint32_t slot = own.slots;

    for (uint64_t left = own.bits; __any_sync(~0u, left != 0); slot++)
        if (left) {
            const uint64_t run = first_run(own.bits, left);

            left &= ~run;
            visit(slot, run);
        }
}

/* The runs of these bits of a with those `away` bits further in b: none, one before or one behind. */
template <typename Forest>
static __device__ __forceinline__ void
unite_at(const Forest &forest, const struct mask_word &a, const struct mask_word &b, uint64_t at,
         int away)
{
    for (; __any_sync(~0u, at != 0); at &= at - 1)
        if (at) {
            const uint64_t up_to = at ^ (at - 1);

            forest.unite(slot_within(a, up_to), slot_within(b, away < 0   ? up_to >> 1
                                                               : away > 0 ? up_to << 1 | 1
                                                                          : up_to));
        }
}

/* The runs of words of two rows that lie beside each other. Those that touch at a bit of `known` are
 * of one component without this. Of all lanes, as `corners` is. */
template <typename Forest>
static __device__ __forceinline__ void
unite_words(const Forest &forest, const struct mask_word &a, const struct mask_word &b,
            bool corners, uint64_t known)
{
    unite_at(forest, a, b, run_starts(a.bits & b.bits) & ~known, 0);
    if (!corners)
        return;
    /* Corners of runs that have nothing more in common. */
    const uint64_t alone = a.bits & ~b.bits;

    unite_at(forest, a, b, alone & b.bits << 1 & ~(a.bits << 1), -1);
    unite_at(forest, a, b, alone & b.bits >> 1 & ~(a.bits >> 1), 1);
}

/* The last run of `low`, the word before, and the first of `high`, where they meet. */
template <typename Forest>
static __device__ __forceinline__ void
unite_ends(const Forest &forest, const struct mask_word &low, const struct mask_word &high)
{
    if (low.bits >> 63 && high.bits & 1)
        forest.unite(slot_within(low, ~UINT64_C(0)), high.slots);
}

/* visit(slot) of those that are set: of search.firsts after mask_search_begin, or of search.hung. */
template <typename Visit>
static __device__ __forceinline__ void
visit_slots(const struct mask_search &search, const uint32_t *set, const Visit &visit)
{
    SEARCH_EACH((uint32_t)search.grid.words, word)
    for (uint32_t left = word < search.grid.words ? set[word] : 0; __any_sync(~0u, left != 0);
         left &= left - 1)
        if (left)
            visit(word * MASK_SLOTS_PER_WORD + (uint32_t)__ffs((int)left) - 1);
}

/* Likewise visit(slot, slot of the component's first run, what this counts, run) of the runs of a word, several
 * on their way from memory at once. */
template <typename Visit>
static __device__ __forceinline__ void
visit_roots(const struct mask_search &search, const struct mask_word &own, const Visit &visit)
{
    enum { AT_ONCE = 4 };

    uint32_t next = own.slots;

    for (uint64_t left = own.bits; __any_sync(~0u, left != 0);) {
        uint64_t run[AT_ONCE];
        uint32_t slot[AT_ONCE], root[AT_ONCE], count[AT_ONCE];

#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            run[i] = left ? first_run(own.bits, left) : 0;
            slot[i] = next++;
            left &= ~run[i];
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            root[i] = run[i] ? search.slots[slot[i]] : SLOT_FIRST;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            root[i] = (root[i] & SLOT_FIRST ? root[i] : search.slots[root[i]]) & ~SLOT_FIRST;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            count[i] = run[i] ? search.counts[root[i]] : 0;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (run[i])
                visit(slot[i], root[i], count[i], run[i]);
    }
}

/* As one number that rises with the size, and at the same size with how early the component is. */
static __device__ __forceinline__ unsigned long long
rank_of(uint32_t count, uint32_t slot)
{
    return (unsigned long long)count << 32 | (uint32_t)~slot;
}

/* Of all lanes, the highest rank of what each of them saw. Few are above what others have told. */
static __device__ __forceinline__ void
search_tell_highest(const struct mask_search &search, unsigned long long rank)
{
    unsigned long long *const highest = &search.facts->highest;

    for (int away = 16; away > 0; away /= 2)
        rank = max(rank, __shfl_xor_sync(~0u, rank, away));
    if (threadIdx.x % 32 == 0 && !search.border &&
        rank > *(const volatile unsigned long long *)highest)
        atomicMax(highest, rank);
}

/* How a volume is cut into tiles (mask_tiles.cu). */
struct tile_grid {
    uint32_t words, rows, slices; /* of a tile */
    uint32_t wide, high, deep;    /* the volume, in tiles */
};

/* What tiles see for themselves: slots, counts and firsts as above. */
struct tile_grid mask_tiles_queue(const struct mask_search *search, cudaStream_t stream);

#endif
