/* mask_tiles.cu - components within tiles: a block unites the runs of its tile in shared memory. A
 * word has a slot for each possible run. Its runs take the first ones. */
#include "kernels/mask/mask_runs.cuh"

enum {
    TILE_PITCH = MASK_RUNS_PER_WORD + 1, /* puts the first slots of words into different banks */
    TILE_SLOTS = MASK_THREADS * TILE_PITCH,
    TILE_COUNT_SHIFT = 16, /* a root's count is above its number */
    TILE_LABELS = 8,       /* written at once */
};

static_assert(TILE_SLOTS <= 1 << TILE_COUNT_SHIFT, "a slot's number");
static_assert(64 * MASK_THREADS < 1 << (32 - TILE_COUNT_SHIFT), "a tile's voxels");
static_assert(MASK_THREADS * MASK_RUNS_PER_WORD <= 1 << TILE_COUNT_SHIFT, "a label");

/* A word of the tile and the slot of its first run. The slots of its other runs follow. */
struct tile_word_runs {
    uint64_t bits;
    uint32_t slots;
};

/* A tile's forest in shared memory: per run, the slot of an earlier run of its component, or its
 * own. */
struct tile_forest {
    uint32_t *slots; /* TILE_SLOTS */

    __device__ __forceinline__ uint32_t of(const struct tile_word_runs &word, uint32_t run) const
    {
        return word.slots + run;
    }

    /* Must not be called after counting has begun. */
    __device__ __forceinline__ uint32_t peek(uint32_t slot) const
    {
        return *(const volatile uint32_t *)&slots[slot];
    }

    /* After counting has begun, it must not be called for roots. */
    __device__ __forceinline__ uint32_t lower(uint32_t slot, uint32_t parent) const
    {
        return atomicMin(&slots[slot], parent);
    }

    /* The slot's contents below a count: its parent, at the end its label. */
    __device__ __forceinline__ volatile uint16_t &held(uint32_t slot) const
    {
        return *(volatile uint16_t *)&slots[slot];
    }

    __device__ __forceinline__ uint32_t root(uint32_t slot) const
    {
        for (;;) {
            const uint32_t next = held(slot);

            if (next == slot)
                return slot;
            slot = next;
        }
    }
};

/* Returns, for the runs that begin at `starts`, the first bit that touches another row, if any:
 * sums carry up to it. */
__device__ static __forceinline__ uint64_t
first_touches(uint64_t bits, uint64_t starts, uint64_t touches)
{
    return ((bits & ~touches) + starts) & touches;
}

__device__ static __forceinline__ uint64_t
reversed(uint64_t bits)
{
    return (uint64_t)__brev((uint32_t)bits) << 32 | __brev((uint32_t)(bits >> 32));
}

/* A block's tile: words of a row are consecutive, then rows of a slice, then slices. */
template <typename Shape> struct search_tile {
    const struct mask_search &search;
    const uint64_t *words;
    tile_forest forest;

    static constexpr uint32_t row = Shape::words, slice = Shape::words * Shape::rows;

    __device__ __forceinline__ struct tile_word_runs runs(uint32_t word) const
    {
        return {words[word], word * TILE_PITCH};
    }

    /* Words outside the tile are empty. */
    __device__ __forceinline__ struct tile_word_runs runs_if(bool exists, uint32_t word) const
    {
        return exists ? runs(word) : tile_word_runs{};
    }

    /* Links the thread's runs below the runs that they touch at these bits. */
    __device__ __forceinline__ void hang(const struct tile_word_runs &own, const struct tile_word_runs &below,
                                         uint64_t at) const
    {
        for (; at; at &= at - 1) {
            const uint64_t up_to = at ^ (at - 1);

            forest.slots[forest.of(own, run_within(own.bits, up_to))] = forest.of(below, run_within(below.bits, up_to));
        }
        __syncwarp();
    }

    /*
     * Links each run below one that it touches in the previous row, or otherwise in the previous
     * slice. No other thread uses it yet. Then unites the other contacts. Contacts of words or rows
     * that also exist in the previous row are already covered.
     */
    __device__ __forceinline__ void unite() const
    {
        const uint32_t thread = threadIdx.x;
        const bool high = thread % slice >= row, deep = thread >= slice;
        const struct tile_word_runs own = runs(thread), above = runs_if(high, thread - row),
                                    before = runs_if(deep, thread - slice),
                                    before_above = runs_if(high && deep, thread - slice - row);
        const uint64_t to_row = own.bits & above.bits, to_slice = own.bits & before.bits,
                       at_row = first_touches(own.bits, run_starts(own.bits), to_row);
        /* The starts of runs that do not touch the previous row. Each run has at most one bit of at_row. */
        const uint64_t back = reversed(own.bits),
                       rest = run_starts(own.bits) & ~reversed(back & ~(back + reversed(at_row)));
        const uint64_t at_slice = first_touches(own.bits, rest, to_slice);

        for (uint32_t i = 0; i == 0 || i < run_count(own.bits); i++)
            forest.slots[own.slots + i] = own.slots + i;
        __syncwarp();
        hang(own, above, at_row);
        hang(own, before, at_slice);
        __syncthreads();
        unite_words(forest, own, above, search.corners, at_row);
        unite_words(forest, own, before, search.corners, at_slice | (to_row & before_above.bits));
        if (search.corners) {
            unite_words(forest, own, before_above, true, 0);
            unite_words(forest, own, runs_if(deep && thread % slice + row < slice, thread - slice + row), true, 0);
        }
        if (row > 1) {
            const bool first = thread % row == 0;
            const bool covered = !first && high && (words[thread - row] & words[thread - row - 1] >> 63 & 1);

            unite_ends(forest, runs_if(!first && !covered, thread - 1), own);
        }
    }

    /*
     * Links every slot to its root, and adds up counts in roots. Returns which runs of the thread's
     * word are roots. All lanes loop until the last one has found its root: lanes that leave a loop
     * in a branch do not wait for the others.
     */
    __device__ __forceinline__ uint32_t count(const struct mask_place &at) const
    {
        const struct mask_grid &grid = search.grid;
        const struct tile_word_runs own = runs(threadIdx.x);
        const bool at_border =
            at.y == 0 || at.y + 1 == grid.rows || (!search.flat && (at.z == 0 || at.z + 1 == grid.slices));
        /* The voxels of the word that lie at the border. */
        const uint64_t border =
            at_border
                ? ~UINT64_C(0)
                : (at.x == 0 ? 1 : 0) | (at.x + 1 == grid.words_per_row ? UINT64_C(1) << (grid.columns - 1) % 64 : 0);
        uint32_t roots = 0;
        uint64_t left = own.bits;

        for (uint32_t i = 0; __any_sync(~0u, left != 0); i++) {
            const uint64_t run = first_run(own.bits, left);
            const uint32_t slot = own.slots + (run ? i : 0), root = forest.root(slot);

            __syncwarp();
            roots |= (uint32_t)(run && root == slot) << i;
            if (root != slot)
                forest.lower(slot, root);
            /* A run counts by its voxels, or by whether it lies at the border. */
            const uint32_t counts = search.border ? (run & border) != 0 : (uint32_t)__popcll(run);

            if (run)
                atomicAdd(&forest.slots[root], counts << TILE_COUNT_SHIFT);
            left &= ~run;
        }
        return roots;
    }

    /* Writes the thread's roots, two at a time, and replaces them by their labels. Returns the
     * highest rank. */
    __device__ __forceinline__ unsigned long long write_nodes(uint32_t word, uint32_t roots) const
    {
        const uint32_t slots = runs(threadIdx.x).slots, first = word * MASK_RUNS_PER_WORD;
        uint32_t label = threadIdx.x * MASK_RUNS_PER_WORD;
        unsigned long long highest = 0;
        const auto next_count = [&]() {
            const uint32_t slot = slots + (uint32_t)__ffs((int)roots) - 1;

            if (!roots)
                return 0u;
            roots &= roots - 1;
            forest.held(slot) = (uint16_t)label++;
            return forest.slots[slot] >> TILE_COUNT_SHIFT;
        };

        for (uint32_t node = first; roots; node += 2) {
            const uint32_t one = next_count(), other = next_count();

            *(uint4 *)node_at(search, node) = make_uint4(node, one, node + 1, other);
            highest = max(highest, max(rank_of(one, node), rank_of(other, node + 1)));
        }
        __syncwarp();
        return highest;
    }

    /* Must be called after all roots have labels. */
    __device__ __forceinline__ void write_labels(uint32_t word, uint32_t roots) const
    {
        const struct tile_word_runs own = runs(threadIdx.x);
        const uint32_t count = run_count(own.bits);
        /* Unused slots are undefined and must not be looked up. */
        const uint32_t shown = count < MASK_RUNS_PER_WORD ? roots | ~0u << count : roots;

        for (uint32_t run = 0; run < count; run += TILE_LABELS) {
            uint32_t label[TILE_LABELS];

#pragma unroll
            for (uint32_t i = 0; i < TILE_LABELS; i++) {
                const uint32_t slot = own.slots + run + i, held = forest.held(slot);

                label[i] = forest.held(shown >> (run + i) & 1 ? slot : held);
            }
            *(uint4 *)label_at(search, word, run) = make_uint4(label[0] | label[1] << 16, label[2] | label[3] << 16,
                                                               label[4] | label[5] << 16, label[6] | label[7] << 16);
        }
        __syncwarp();
    }
};

template <typename Shape>
__global__ void
__launch_bounds__(MASK_THREADS) search_tiles(const __grid_constant__ struct mask_search search)
{
    __shared__ uint32_t slots[TILE_SLOTS];
    __shared__ uint64_t words[MASK_THREADS];
    const struct mask_grid &grid = search.grid;

    const struct search_tile<Shape> tile = {
        search, words,
        {
            slots
        }
    };

    const struct mask_place at = tile_place<Shape>();
    const uint32_t word = word_at(grid, at);
    const bool exists = word < grid.words;
    const uint64_t own = exists ? search_word(search, word, (uint32_t)at.x) : 0;
    uint32_t roots = 0;

    words[threadIdx.x] = own;
    if (__syncthreads_or(own != 0)) {
        tile.unite();
        __syncthreads();
        roots = tile.count(at);
        __syncthreads();
        search_tell_highest(search, tile.write_nodes(word, roots));
        __syncthreads();
        tile.write_labels(word, roots);
    }
    if (exists) {
        search.firsts[word] = (uint8_t)__popc(roots);
        if (word % 2 == 0)
            search.hung[word / 2] = 0;
    }
}

void
mask_tiles_queue(const struct mask_search *search, cudaStream_t stream)
{
    tiles_queue(search, [&](auto shape, dim3 tiles) {
        search_tiles<decltype(shape)><<<tiles, MASK_THREADS, 0, stream>>>(*search);
    });
}
