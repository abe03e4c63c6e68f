/*
 * mask_runs.cuh - declarations shared by the component kernels: runs of a word, their unions,
 * tiles, and the results of tiles on the device.
 *
 * A tile (mask_tiles.cu) numbers its components by their first runs: a node each, with 32 numbers
 * per word. `labels` has, for each run of a word in turn, the node of its component, with the
 * number of the word in its tile. Where tiles meet, nodes of one component become a tree whose root
 * is the first node. `parent` is the node's own number or an earlier one. `hung` has a bit for each
 * node below another. Most words have few labels or nodes. Memory therefore first has the first few
 * of all words, then the next few.
 */
#ifndef NOCTULE_KERNELS_MASK_MASK_RUNS_CUH
#define NOCTULE_KERNELS_MASK_MASK_RUNS_CUH

#include "kernels/mask/mask_cuda.cuh"

/* Runs */

static __device__ __forceinline__ uint64_t
search_word(const struct mask_search &search, uint32_t word, uint32_t x)
{
    const uint64_t bits = search.bits[word] ^ search.flip;

    return x + 1 == search.grid.words_per_row ? bits & search.grid.tail : bits;
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

/* Returns the first run with any of the `left` bits: the sum carries through it. */
static __device__ __forceinline__ uint64_t
first_run(uint64_t bits, uint64_t left)
{
    return bits & ~(bits + (left & (0 - left)));
}

/* Returns the last run that begins in these bits, which must be all bits up to one in the run. */
static __device__ __forceinline__ uint32_t
run_within(uint64_t bits, uint64_t up_to)
{
    return (uint32_t)__popcll((long long)(run_starts(bits) & up_to)) - 1;
}

/* Whole warps loop, with indices beyond the last one, since the loop body needs all lanes. */
#define SEARCH_EACH(count, index)                                                                                      \
    for (uint32_t index = blockIdx.x * blockDim.x + threadIdx.x; ((index) & ~31u) < (count);                           \
         (index) += gridDim.x * blockDim.x)

/* Unions */

/* Two nodes of one component; equal if no work is left. */
struct mask_pair {
    uint32_t one, other;
};

/*
 * Links the node with the later parent below the other's parent (Rem's algorithm, Dijkstra 1976).
 * Returns its previous parent, if it had one, as the next pair to unite. This needs no search for
 * roots, and lowers trees on the way. If another thread has linked the node elsewhere, lower()
 * returns that parent, which is then united too.
 */
template <typename Forest>
static __device__ __forceinline__ struct mask_pair
unite_further(const Forest &forest, const struct mask_pair &pair)
{
    const uint32_t above_one = forest.peek(pair.one), above_other = forest.peek(pair.other);

    if (above_one == above_other)
        return {};
    const uint32_t late = above_one < above_other ? pair.other : pair.one,
                   early = above_one < above_other ? pair.one : pair.other,
                   before = forest.lower(late, min(above_one, above_other));

    return {before, before == late ? late : early};
}

/* Unites pair_at(all bits up to it) for each bit. All lanes must call it. A lane that has united a
 * pair takes its next at once, since path lengths differ. */
template <typename Forest, typename PairAt>
static __device__ __forceinline__ void
unite_each(const Forest &forest, uint64_t at, const PairAt &pair_at)
{
    struct mask_pair pair = {};

    while (__any_sync(~0u, at != 0 || pair.one != pair.other)) {
        if (at != 0 && pair.one == pair.other) {
            pair = pair_at(at ^ (at - 1));
            at &= at - 1;
        }
        if (pair.one != pair.other)
            pair = unite_further(forest, pair);
    }
}

/* Unites the runs of these bits in a with those `away` bits further in b: 0, one before or one
 * behind. */
template <typename Forest, typename Word>
static __device__ __forceinline__ void
unite_at(const Forest &forest, const Word &a, const Word &b, uint64_t at, int away)
{
    unite_each(forest, at, [&](uint64_t up_to) {
        return mask_pair{forest.of(a, run_within(a.bits, up_to)),
                         forest.of(b, run_within(b.bits, away < 0   ? up_to >> 1
                                                         : away > 0 ? up_to << 1 | 1
                                                                    : up_to))};
    });
}

/* Unites the runs of neighbouring words of two rows. Contacts at a bit of `known` are already
 * covered. All lanes must call it, with the same `corners`. */
template <typename Forest, typename Word>
static __device__ __forceinline__ void
unite_words(const Forest &forest, const Word &a, const Word &b, bool corners, uint64_t known)
{
    unite_at(forest, a, b, run_starts(a.bits & b.bits) & ~known, 0);
    if (!corners)
        return;
    /* Runs that touch only at corners. */
    const uint64_t alone = a.bits & ~b.bits;

    unite_at(forest, a, b, alone & b.bits << 1 & ~(a.bits << 1), -1);
    unite_at(forest, a, b, alone & b.bits >> 1 & ~(a.bits >> 1), 1);
}

/* Unites the last run of `low`, the previous word, with the first of `high`, if they meet. All
 * lanes must call it. */
template <typename Forest, typename Word>
static __device__ __forceinline__ void
unite_ends(const Forest &forest, const Word &low, const Word &high)
{
    unite_each(forest, low.bits >> 63 & high.bits, [&](uint64_t) {
        return mask_pair{forest.of(low, run_within(low.bits, ~UINT64_C(0))), forest.of(high, 0)};
    });
}

/* Tiles: words of some rows of some slices, one per thread, one block per tile */

template <int Words, int Rows> struct tile_shape {
    static constexpr uint32_t words = Words, rows = Rows, slices = MASK_THREADS / Rows / Words;
};

using tile_deep = tile_shape<1, 16>;
using tile_flat = tile_shape<8, 32>; /* each slice separate */

static_assert(tile_flat::slices == 1, "nothing to unite along z");

/* Calls queue(shape, number of tiles per axis) with the shape of the search's tiles. */
template <typename Queue>
static void
tiles_queue(const struct mask_search *search, const Queue &queue)
{
    const struct mask_grid *grid = &search->grid;
    const auto with = [&](auto shape) {
        const auto tiles = [](int64_t size, uint32_t each) { return (uint32_t)((size - 1) / each + 1); };

        queue(shape, dim3(tiles(grid->words_per_row, shape.words), tiles(grid->rows, shape.rows),
                          tiles(grid->slices, shape.slices)));
    };

    if (search->flat)
        with(tile_flat());
    else
        with(tile_deep());
}

/* Returns the thread's word in its block's tile, x in words. */
template <typename Shape>
static __device__ __forceinline__ struct mask_place
tile_place()
{
    const uint32_t thread = threadIdx.x;

    return {blockIdx.x * Shape::words + thread % Shape::words,
            blockIdx.y * Shape::rows + thread / Shape::words % Shape::rows,
            blockIdx.z * Shape::slices + thread / Shape::words / Shape::rows};
}

/* Returns the number of words if it is beyond the volume. */
static __device__ __forceinline__ uint32_t
word_at(const struct mask_grid &grid, const struct mask_place &at)
{
    if (at.x >= grid.words_per_row || at.y >= grid.rows || at.z >= grid.slices)
        return (uint32_t)grid.words;
    return ((uint32_t)at.z * (uint32_t)grid.rows + (uint32_t)at.y) * (uint32_t)grid.words_per_row + (uint32_t)at.x;
}

/* Queues the labelling within tiles: labels, nodes, and their number. */
void mask_tiles_queue(const struct mask_search *search, cudaStream_t stream);

/* Labels and nodes in memory */

enum { LABELS_ABREAST = 16, NODES_ABREAST = 4 }; /* per word */

/* Returns the place of a word's label or node, with `abreast` of a word stored together. */
static __device__ __forceinline__ uint32_t
place_abreast(const struct mask_search &search, uint32_t word, uint32_t number, uint32_t abreast)
{
    return (number / abreast * (uint32_t)search.grid.words + word) * abreast + number % abreast;
}

/* Returns the label of a word's run. */
static __device__ __forceinline__ uint16_t *
label_at(const struct mask_search &search, uint32_t word, uint32_t run)
{
    return &search.labels[place_abreast(search, word, run, LABELS_ABREAST)];
}

static __device__ __forceinline__ struct mask_node *
node_at(const struct mask_search &search, uint32_t node)
{
    return &search.nodes[place_abreast(search, node / MASK_RUNS_PER_WORD, node % MASK_RUNS_PER_WORD, NODES_ABREAST)];
}

/* The volume */

/* A word of the volume, and the first word of its tile. */
struct volume_word {
    uint64_t bits;
    uint32_t word, tile;
};

/* The nodes of all tiles. Reads bypass the L1 cache, which does not see writes of other blocks. */
template <typename Shape> struct volume_forest {
    const struct mask_search &search;

    /* Words outside the volume are empty. */
    __device__ __forceinline__ struct volume_word word(uint32_t x, uint32_t y, uint32_t z) const
    {
        const struct mask_grid &grid = search.grid;
        const uint32_t row = (uint32_t)grid.words_per_row, rows = (uint32_t)grid.rows, word = (z * rows + y) * row + x,
                       in_tile = (z % Shape::slices * rows + y % Shape::rows) * row + x % Shape::words;

        if (x >= row || y >= rows || z >= grid.slices)
            return {};
        return {search_word(search, word, x), word, word - in_tile};
    }

    __device__ __forceinline__ uint32_t of(const struct volume_word &word, uint32_t run) const
    {
        const uint32_t label = *label_at(search, word.word, run), in_tile = label / MASK_RUNS_PER_WORD,
                       row = in_tile / (Shape::words * Shape::rows) * (uint32_t)search.grid.rows +
                             in_tile / Shape::words % Shape::rows,
                       first = word.tile + row * (uint32_t)search.grid.words_per_row + in_tile % Shape::words;

        return first * MASK_RUNS_PER_WORD + label % MASK_RUNS_PER_WORD;
    }

    __device__ __forceinline__ uint32_t peek(uint32_t node) const
    {
        return *(const volatile uint32_t *)&node_at(search, node)->parent;
    }

    __device__ __forceinline__ uint32_t lower(uint32_t node, uint32_t parent) const
    {
        const uint32_t before = atomicMin(&node_at(search, node)->parent, parent);

        if (before == node)
            atomicOr((unsigned long long *)&search.hung[node / 64], 1ULL << node % 64);
        return before;
    }
};

/* Calls visit(number, node) for each component. */
template <typename Visit>
static __device__ __forceinline__ void
visit_roots(const struct mask_search &search, const Visit &visit)
{
    SEARCH_EACH((uint32_t)search.grid.words, word)
    {
        const uint32_t own = word * MASK_RUNS_PER_WORD, count = word < search.grid.words ? search.firsts[word] : 0;

        for (uint32_t i = 0; __any_sync(~0u, i < count); i++)
            if (i < count) {
                const struct mask_node node = *node_at(search, own + i);

                if (node.parent == own + i)
                    visit(own + i, node);
            }
    }
}

/* The largest */

/* Returns a rank that increases with the size and, for equal sizes, for earlier components. */
static __device__ __forceinline__ unsigned long long
rank_of(uint32_t count, uint32_t node)
{
    return (unsigned long long)count << 32 | (uint32_t)~node;
}

/* Stores the highest rank of all lanes. All lanes must call it. Few ranks exceed the stored one. */
static __device__ __forceinline__ void
search_tell_highest(const struct mask_search &search, unsigned long long rank)
{
    unsigned long long *const highest = &search.facts->highest;

    for (int away = 16; away > 0; away /= 2)
        rank = max(rank, __shfl_xor_sync(~0u, rank, away));
    if (threadIdx.x % 32 == 0 && !search.border && rank > *(const volatile unsigned long long *)highest)
        atomicMax(highest, rank);
}

#endif
