/*
 * mask_runs.cuh - what the kernels of components share: the runs of a word, and their slots.
 *
 * A word has a slot for each run that it may have. `slots` holds, with a flag, the parent of the
 * first run of a component as far as a tile sees it, which is itself for the first of all; of other
 * runs the slot of that first one. `counts` holds what a component counts, at its first run; a bit of
 * `firsts` for each slot of a word says which are firsts.
 */
#ifndef NOCTULE_MASK_RUNS_CUH
#define NOCTULE_MASK_RUNS_CUH

#include "kernels/mask/mask_cuda.cuh"

static constexpr uint32_t SLOT_FIRST = 1U << 31;

/* A word and the slot of its first possible run. */
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

static __device__ __forceinline__ struct mask_word
search_runs_at(const struct mask_search &search, uint32_t word)
{
    return search_runs(search, word, word % (uint32_t)search.grid.words_per_row);
}

/* Where the run of this bit, which is set, begins. */
static __device__ __forceinline__ int
run_begin(uint64_t bits, int bit)
{
    const uint64_t gaps = ~bits & ((UINT64_C(1) << bit) - 1);

    return gaps ? 64 - __clzll((long long)gaps) : 0;
}

/* The run that begins at this bit: the sum carries through it. */
static __device__ __forceinline__ uint64_t
run_of(uint64_t bits, int begin)
{
    return bits & ~(bits + (UINT64_C(1) << begin));
}

static __device__ __forceinline__ uint64_t
run_starts(uint64_t bits)
{
    return bits & ~(bits << 1);
}

static __device__ __forceinline__ int
lowest_bit(uint64_t bits)
{
    return __ffsll((long long)bits) - 1;
}

static __device__ __forceinline__ uint32_t
slot_at(const struct mask_word &runs, int begin)
{
    return runs.slots + (uint32_t)begin / 2;
}

static __device__ __forceinline__ uint32_t
slot_with(const struct mask_word &runs, int bit)
{
    return slot_at(runs, run_begin(runs.bits, bit));
}

/* visit(place of its slot, run) of the runs of a word. */
template <typename Visit>
static __device__ __forceinline__ void
visit_runs(const struct mask_word &own, const Visit &visit)
{
    for (uint64_t left = own.bits; left;) {
        const int begin = lowest_bit(left);
        const uint64_t run = run_of(own.bits, begin);

        left &= ~run;
        visit(slot_at(own, begin), run);
    }
}

/* The runs of these bits of a with those `away` bits further in b. */
template <typename Forest>
static __device__ __forceinline__ void
unite_at(const Forest &forest, const struct mask_word &a, const struct mask_word &b, uint64_t at,
         int away)
{
    for (; at; at &= at - 1) {
        const int bit = lowest_bit(at);

        forest.unite(slot_with(a, bit), slot_with(b, bit + away));
    }
}

/* The runs of words of two rows that lie beside each other. Those that touch at a bit of `known` are
 * of one component without this. */
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
        forest.unite(slot_with(low, 63), slot_at(high, 0));
}

/* After mask_search_begin: visit(slot) of the runs of all words that are the first of their component as
 * far as a tile sees it. */
template <typename Visit>
static __device__ __forceinline__ void
visit_firsts(const struct mask_search &search, const Visit &visit)
{
    MASK_EACH_WORD(search.grid, word)
    for (uint32_t left = search.firsts[word]; left; left &= left - 1)
        visit((uint32_t)word * MASK_SLOTS_PER_WORD + (uint32_t)__ffs((int)left) - 1);
}

/* Likewise visit(slot, slot of the component's first run, what this counts, run) of the runs of a word, several
 * on their way from memory at once. */
template <typename Visit>
static __device__ __forceinline__ void
visit_roots(const struct mask_search &search, const struct mask_word &own, const Visit &visit)
{
    enum { AT_ONCE = 4 };

    for (uint64_t left = own.bits; left;) {
        uint64_t run[AT_ONCE];
        uint32_t slot[AT_ONCE], root[AT_ONCE], count[AT_ONCE];

#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int begin = lowest_bit(left); /* of none left -1 */

            run[i] = left ? run_of(own.bits, begin) : 0;
            slot[i] = slot_at(own, begin);
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

/* How a volume is cut into tiles (mask_tiles.cu). */
struct tile_grid {
    uint32_t words, rows, slices; /* of a tile */
    uint32_t wide, high, deep;    /* the volume, in tiles */
};

/* What tiles see for themselves: slots, counts and firsts as above. */
struct tile_grid mask_tiles_queue(const struct mask_search *search, cudaStream_t stream);

#endif
