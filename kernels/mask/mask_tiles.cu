/*
 * mask_tiles.cu - components as far as a block sees them: the runs of its tile, united in shared
 * memory.
 */
#include "kernels/mask/mask_runs.cuh"

enum {
    TILE_SLOTS = MASK_THREADS * MASK_SLOTS_PER_WORD, /* a thread a word, as wide as a tile is */
    TILE_COUNT_SHIFT = 16, /* a root's slot has what it counts above its number */
    TILE_RUNS = 4,         /* that a thread writes by itself */
};

static_assert(TILE_SLOTS <= 1 << TILE_COUNT_SHIFT, "a slot's number");
static_assert(64 * MASK_THREADS < 1 << (32 - TILE_COUNT_SHIFT), "a tile's voxels");

static constexpr uint32_t TILE_SLOT = (1U << TILE_COUNT_SHIFT) - 1;

/* Of a tile, in shared memory: the words' first runs lie in all banks. */
struct tile_forest {
    uint32_t *memory; /* TILE_SLOTS + MASK_THREADS */

    __device__ __forceinline__ uint32_t *at(uint32_t slot) const
    {
        return &memory[slot + slot / MASK_SLOTS_PER_WORD];
    }

    __device__ __forceinline__ uint32_t peek(uint32_t slot) const
    {
        return *(const volatile uint32_t *)at(slot);
    }

    /*
     * Before anything is counted. Of the two, that whose parent is later is hung below the other's parent, and what
     * was its parent is what is left to unite, unless it had none (Rem's algorithm, Dijkstra 1976): no root
     * is looked for, and trees become lower on the way. Another thread may have hung it elsewhere: atomicMin
     * tells below what, and that is still united.
     */
    __device__ __forceinline__ void unite(uint32_t a, uint32_t b) const
    {
        for (;;) {
            const uint32_t above_a = peek(a), above_b = peek(b);

            if (above_a == above_b)
                return;
            const uint32_t late = above_a < above_b ? b : a, early = above_a < above_b ? a : b;

            a = atomicMin(at(late), min(above_a, above_b));
            if (a == late)
                return;
            b = early;
        }
    }

    /* Roots may be counted already. */
    __device__ __forceinline__ uint32_t root(uint32_t slot) const
    {
        for (;;) {
            const uint32_t next = peek(slot) & TILE_SLOT;

            if (next == slot)
                return slot;
            slot = next;
        }
    }
};

/* Tiles: some words of some rows of some slices, 256 in all */

template <int Words, int Rows> struct tile_shape {
    static constexpr uint32_t words = Words, rows = Rows, slices = MASK_THREADS / Rows / Words;
};

using tile_deep = tile_shape<1, 16>;
using tile_flat = tile_shape<8, 32>; /* slice by slice */

static_assert(tile_flat::slices == 1, "nothing to unite along z");

template <typename Shape>
static struct tile_grid
tile_grid_of(const struct mask_grid *grid)
{
    const auto tiles = [](int64_t size, uint32_t each) {
        return (uint32_t)((size - 1) / each + 1);
    };

    return {Shape::words,
            Shape::rows,
            Shape::slices,
            tiles(grid->words_per_row, Shape::words),
            tiles(grid->rows, Shape::rows),
            tiles(grid->slices, Shape::slices)};
}

/* What a run counts: its voxels, or whether it lies at the border. */
__device__ static __forceinline__ uint32_t
run_counts(const struct mask_search &search, const struct mask_place &at, uint64_t run)
{
    const struct mask_grid &grid = search.grid;
    const uint64_t last = UINT64_C(1) << (grid.columns - 1) % 64;

    if (!search.border)
        return (uint32_t)__popcll(run);
    return at.y == 0 || at.y + 1 == grid.rows ||
           (!search.flat && (at.z == 0 || at.z + 1 == grid.slices)) || (at.x == 0 && run & 1) ||
           (at.x + 1 == grid.words_per_row && run & last);
}

/* A block's tile: words of a row follow each other in `words`, rows of a slice, and slices. */
template <typename Shape> struct search_tile {
    const struct mask_search &search;
    const uint64_t *words;
    tile_forest forest;

    static constexpr uint32_t row = Shape::words, slice = Shape::words * Shape::rows;

    __device__ __forceinline__ struct mask_word runs(uint32_t word) const
    {
        return {words[word], word * MASK_SLOTS_PER_WORD};
    }

    __device__ __forceinline__ bool meets(uint32_t word) const
    {
        return words[word] & words[word - 1] >> 63 & 1;
    }

    /* Of a word that is not in the tile none. */
    __device__ __forceinline__ struct mask_word runs_if(bool exists, uint32_t word) const
    {
        return exists ? runs(word) : mask_word{};
    }

    /* Where two words or rows touch as they do in the row or slice before, they need not be united: there
     * they are, or are elsewhere, and the rows or slices are. */
    __device__ __forceinline__ void unite_rows() const
    {
        const uint32_t own = threadIdx.x;
        const bool high = own % slice >= row, deep = own >= slice;

        if (own % row > 0 && meets(own) && !(high && meets(own - row)))
            unite_ends(forest, runs(own - 1), runs(own));
        unite_words(forest, runs(own), runs_if(high, own - row), search.corners,
                    high && deep ? words[own - slice] & words[own - slice - row] : 0);
    }

    __device__ __forceinline__ void unite_slices() const
    {
        const uint32_t own = threadIdx.x, in_slice = own % slice;
        const bool deep = own >= slice;

        unite_words(forest, runs(own), runs_if(deep, own - slice), search.corners, 0);
        if (search.corners) {
            unite_words(forest, runs(own), runs_if(deep && in_slice >= row, own - slice - row),
                        true, 0);
            unite_words(forest, runs(own),
                        runs_if(deep && in_slice + row < slice, own - slice + row), true, 0);
        }
    }

    /* Every slot shows its root, and roots count. */
    __device__ __forceinline__ void count(const struct mask_place &at) const
    {
        visit_runs(runs(threadIdx.x), [&](uint32_t slot, uint64_t run) {
            const uint32_t root = forest.root(slot);

            if (root != slot)
                atomicMin(forest.at(slot), root);
            atomicAdd(forest.at(root), run_counts(search, at, run) << TILE_COUNT_SHIFT);
        });
    }

    __device__ __forceinline__ uint32_t word_in_volume(uint32_t first_word, uint32_t word) const
    {
        const uint32_t rows = word / slice * (uint32_t)search.grid.rows + word % slice / row;

        return first_word + rows * (uint32_t)search.grid.words_per_row + word % row;
    }

    __device__ __forceinline__ uint32_t slot_in_volume(uint32_t first_word, uint32_t slot) const
    {
        return word_in_volume(first_word, slot / MASK_SLOTS_PER_WORD) * MASK_SLOTS_PER_WORD +
               slot % MASK_SLOTS_PER_WORD;
    }

    /* Is it a first? */
    __device__ __forceinline__ bool write_slot(uint32_t first_word, uint32_t slot,
                                               unsigned long long *highest) const
    {
        const uint32_t held = *forest.at(slot), root = held & TILE_SLOT,
                       place = slot_in_volume(first_word, slot);

        if (root == slot) {
            const uint32_t count = held >> TILE_COUNT_SHIFT;

            search.slots[place] = place | SLOT_FIRST;
            search.counts[place] = count;
            *highest = max(*highest, rank_of(count, place));
        } else {
            search.slots[place] = slot_in_volume(first_word, root);
        }
        return root == slot;
    }

    /* Each warp writes what is known of its words; where they have many runs, a lane a slot: together they
     * fill the memory's sectors. What becomes of the thread's own word's `firsts`, and the highest rank. */
    __device__ __forceinline__ uint32_t write(uint32_t first_word,
                                              unsigned long long *highest) const
    {
        const struct mask_word own = runs(threadIdx.x);
        const uint32_t lane = threadIdx.x % 32, own_runs = run_count(own.bits);
        uint32_t firsts = 0;

        if (!__any_sync(~0u, own_runs > TILE_RUNS)) {
            for (uint32_t i = 0; i < own_runs; i++)
                if (write_slot(first_word, own.slots + i, highest))
                    firsts |= 1U << i;
            return firsts;
        }
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t word = threadIdx.x - lane + i;
            const bool first = lane < __shfl_sync(~0u, own_runs, i) &&
                               write_slot(first_word, word * MASK_SLOTS_PER_WORD + lane, highest);
            const uint32_t all = __ballot_sync(~0u, first);

            if (i == lane)
                firsts = all;
        }
        return firsts;
    }
};

template <typename Shape>
__global__ void
__launch_bounds__(MASK_THREADS) search_tiles(const __grid_constant__ struct mask_search search,
                                             const __grid_constant__ struct tile_grid tiles)
{
    __shared__ uint32_t slots[TILE_SLOTS + MASK_THREADS];
    __shared__ uint64_t words[MASK_THREADS];
    const struct mask_grid &grid = search.grid;

    const struct search_tile<Shape> tile = {
        search, words,
        {
            slots
        }
    };

    const uint32_t x = blockIdx.x % tiles.wide * Shape::words,
                   y = blockIdx.x / tiles.wide % tiles.high * Shape::rows,
                   z = blockIdx.x / tiles.wide / tiles.high * Shape::slices;
    const struct mask_place at = {x + threadIdx.x % tile.row,
                                  y + threadIdx.x % tile.slice / tile.row,
                                  z + threadIdx.x / tile.slice};
    const uint32_t row = (uint32_t)grid.words_per_row,
                   first_word = (z * (uint32_t)grid.rows + y) * row + x,
                   word = tile.word_in_volume(first_word, threadIdx.x);
    const bool exists = at.x < row && at.y < grid.rows && at.z < grid.slices;
    const struct mask_word own = {exists ? search_word(search, word, (uint32_t)at.x) : 0,
                                  threadIdx.x * MASK_SLOTS_PER_WORD};
    const uint32_t in_order = blockIdx.x * MASK_THREADS + threadIdx.x;
    unsigned long long highest = 0;
    uint32_t firsts = 0;

    if (in_order < grid.words)
        search.hung[in_order] = 0;
    words[threadIdx.x] = own.bits;
    for (uint32_t i = 0; i < run_count(own.bits); i++)
        *tile.forest.at(own.slots + i) = own.slots + i;
    if (__syncthreads_or(own.bits != 0)) {
        tile.unite_rows();
        __syncthreads();
        tile.unite_slices();
        __syncthreads();
        tile.count(at);
        __syncthreads();
        firsts = tile.write(first_word, &highest);
        search_tell_highest(search, highest);
    }
    if (exists)
        search.firsts[word] = firsts;
}

template <typename Shape>
static struct tile_grid
queue_tiles(const struct mask_search *search, cudaStream_t stream)
{
    const struct tile_grid tiles = tile_grid_of<Shape>(&search->grid);

    search_tiles<Shape>
        <<<tiles.wide * tiles.high * tiles.deep, MASK_THREADS, 0, stream>>>(*search, tiles);
    return tiles;
}

struct tile_grid
mask_tiles_queue(const struct mask_search *search, cudaStream_t stream)
{
    return search->flat ? queue_tiles<tile_flat>(search, stream)
                        : queue_tiles<tile_deep>(search, stream);
}
