/*
 * mask_runs.cu - components on the GPU: the runs of a word, united with those that they touch in
 * the word before and in the rows before.
 *
 * Union-find in two stages (Jaiganesh 2018): in the shared memory of a block those of its tile
 * (mask_tiles.cu), then in the memory of the device where tiles meet. Parents come earlier than their
 * children, so the root of a component is its first run, whatever the order.
 */
#include "kernels/mask/mask_runs.cuh"

#include <algorithm>

size_t
mask_slots(const struct mask_grid *grid)
{
    return (size_t)grid->words * MASK_SLOTS_PER_WORD;
}

bool
mask_runs_can(const struct mask_grid *grid)
{
    return grid->words < (int64_t)(SLOT_FIRST / MASK_SLOTS_PER_WORD);
}

/* Of the volume: of the roots of tiles. Past the first cache, which knows nothing of what others
 * write. */
struct volume_forest {
    uint32_t *slots, *hung;

    __device__ __forceinline__ uint32_t peek(uint32_t slot) const
    {
        return *(const volatile uint32_t *)&slots[slot];
    }

    __device__ __forceinline__ uint32_t find(uint32_t slot) const
    {
        uint32_t next = peek(slot);

        if (!(next & SLOT_FIRST)) {
            slot = next;
            next = peek(slot);
        }
        for (;;) {
            next &= ~SLOT_FIRST;
            if (next == slot)
                return slot;
            const uint32_t after = peek(next);

            if (after == (next | SLOT_FIRST))
                return next;
            atomicMin(&slots[slot], after);
            slot = after & ~SLOT_FIRST;
            next = peek(slot);
        }
    }

    /* Unless it is hung already. */
    __device__ __forceinline__ bool hang(uint32_t root, uint32_t below) const
    {
        if (atomicCAS(&slots[root], root | SLOT_FIRST, below | SLOT_FIRST) != (root | SLOT_FIRST))
            return false;
        atomicOr(&hung[root / MASK_SLOTS_PER_WORD], 1U << root % MASK_SLOTS_PER_WORD);
        return true;
    }

    /* The later of two roots is hung below the earlier one. */
    __device__ __forceinline__ void unite(uint32_t a, uint32_t b) const
    {
        for (;;) {
            a = find(a);
            b = find(b);
            if (a == b || hang(max(a, b), min(a, b)))
                return;
        }
    }
};

/* Where tiles meet */

__global__ void
__launch_bounds__(MASK_THREADS) search_slices(const __grid_constant__ struct mask_search search,
                                              uint32_t tile_slices, uint32_t count)
{
    const struct mask_grid &grid = search.grid;
    const uint32_t row = (uint32_t)grid.words_per_row, slice = row * (uint32_t)grid.rows;
    const volume_forest forest = {search.slots, search.hung};

    SEARCH_EACH(count, index)
    {
        const uint32_t in_slice = index % slice, x = in_slice % row,
                       word = (index / slice + 1) * tile_slices * slice + in_slice;
        const struct mask_word own = index < count ? search_runs(search, word, x) : mask_word{};
        const auto before = [&](uint32_t there, bool exists) {
            return own.bits && exists ? search_runs(search, there, x) : mask_word{};
        };

        unite_words(forest, own, before(word - slice, true), search.corners, 0);
        if (search.corners) {
            unite_words(forest, own, before(word - slice - row, in_slice >= row), true, 0);
            unite_words(forest, own, before(word - slice + row, in_slice + row < slice), true, 0);
        }
    }
}

__global__ void
__launch_bounds__(MASK_THREADS)
    search_rows(const __grid_constant__ struct mask_search search,
                const __grid_constant__ struct tile_grid tiles, uint32_t count)
{
    const struct mask_grid &grid = search.grid;
    const uint32_t row = (uint32_t)grid.words_per_row, slice = row * (uint32_t)grid.rows;
    const volume_forest forest = {search.slots, search.hung};

    SEARCH_EACH(count, index)
    {
        const uint32_t x = index % row, seams = tiles.high - 1,
                       y = (index / row % seams + 1) * tiles.rows, z = index / row / seams,
                       word = z * slice + y * row + x;
        const auto runs = [&](uint32_t there, bool exists) {
            return index < count && exists ? search_runs(search, there, x) : mask_word{};
        };
        const bool deeper = z > 0 && !search.flat;
        const struct mask_word own = runs(word, true), before = runs(word - row, true),
                               deep = runs(word - slice, deeper),
                               deep_before = runs(word - slice - row, deeper);

        unite_words(forest, own, before, search.corners, deep.bits & deep_before.bits);
        if (search.corners) {
            unite_words(forest, own, deep_before, true, 0);
            unite_words(forest, before, deep, true, 0);
        }
    }
}

/* Do this word and the one before it in its row meet? */
__device__ static __forceinline__ bool
words_meet(const struct mask_search &search, uint32_t word, uint32_t x)
{
    return search_word(search, word, x) & search_word(search, word - 1, x - 1) >> 63 & 1;
}

/* The ends of a word and of those of another row that touch it at a corner. */
__device__ static __forceinline__ void
unite_corners(const struct mask_search &search, const volume_forest &forest,
              const struct mask_word &own, uint32_t x, uint32_t other)
{
    if (x > 0)
        unite_ends(forest, search_runs(search, other - 1, x - 1), own);
    if (x + 1 < search.grid.words_per_row)
        unite_ends(forest, own, search_runs(search, other + 1, x + 1));
}

__global__ void
__launch_bounds__(MASK_THREADS)
    search_columns(const __grid_constant__ struct mask_search search, uint32_t tile_words)
{
    const struct mask_grid &grid = search.grid;
    const uint32_t row = (uint32_t)grid.words_per_row, slice = row * (uint32_t)grid.rows;
    const volume_forest forest = {search.slots, search.hung};

    SEARCH_EACH((uint32_t)grid.words, word)
    {
        const uint32_t x = word % row, in_slice = word % slice;
        const bool high = in_slice >= row, deep = !search.flat && word >= slice;
        const struct mask_word own = search_runs_at(search, word);

        if (!own.bits)
            continue;
        if (x > 0 && x % tile_words == 0 && words_meet(search, word, x) &&
            !(high && words_meet(search, word - row, x)) &&
            !(deep && words_meet(search, word - slice, x)))
            unite_ends(forest, search_runs(search, word - 1, x - 1), own);
        if (!search.corners)
            continue;
        if (high)
            unite_corners(search, forest, own, x, word - row);
        if (deep)
            unite_corners(search, forest, own, x, word - slice);
        if (deep && high)
            unite_corners(search, forest, own, x, word - slice - row);
        if (deep && in_slice + row < slice)
            unite_corners(search, forest, own, x, word - slice + row);
    }
}

/* What components count */

/* What a thread adds to a root, and the highest rank that it saw: components only grow, so that of the
 * largest is seen when the last part of it is added, or by its tile (mask_tiles.cu). */
struct root_sum {
    const struct mask_search &search;
    uint32_t root, counted; /* the earliest so far: the largest tend to begin early */
    unsigned long long highest;

    __device__ __forceinline__ void give(uint32_t slot, uint32_t count)
    {
        if (count > 0)
            highest = max(highest, rank_of(atomicAdd(&search.counts[slot], count) + count, slot));
    }

    __device__ __forceinline__ void add(uint32_t slot, uint32_t count)
    {
        if (slot > root) {
            give(slot, count);
            return;
        }
        if (slot < root) {
            give(root, counted);
            root = slot;
            counted = 0;
        }
        counted += count;
    }
};

/* The roots of tiles that hang below others show the root of their component, which counts what they did. */
__global__ void
__launch_bounds__(MASK_THREADS) search_counts(const __grid_constant__ struct mask_search search)
{
    struct root_sum sum = {search, ~0u, 0, 0};

    visit_slots(search, search.hung, [&](uint32_t slot) {
        uint32_t root = search.slots[slot] & ~SLOT_FIRST, next;

        while ((next = search.slots[root] & ~SLOT_FIRST) != root)
            root = next;
        search.slots[slot] = root | SLOT_FIRST;
        sum.add(root, search.counts[slot]);
    });
    /* The lanes of one component together: its root would be a bottleneck. */
    __syncwarp();
    const unsigned same = __match_any_sync(~0u, sum.root);
    const uint32_t together = __reduce_add_sync(same, sum.counted);

    if (threadIdx.x % 32 == (unsigned)__ffs((int)same) - 1)
        sum.give(sum.root, together);
    __syncwarp();
    search_tell_highest(search, sum.highest);
}

__global__ void
search_bound(struct mask_facts *facts, struct mask_bound bound, bool counted)
{
    facts->bound = bound;
    facts->highest = 0;
    if (counted)
        facts->found = facts->kept = 0;
}

void
mask_search_begin(const struct mask_search *search, struct mask_bound bound, cudaStream_t stream)
{
    const struct mask_grid *grid = &search->grid;

    search_bound<<<1, 1, 0, stream>>>(search->facts, bound, !search->border);
    const struct tile_grid tiles = mask_tiles_queue(search, stream);
    const uint32_t row = (uint32_t)grid->words_per_row;
    const uint32_t at_slices = row * (uint32_t)grid->rows * (tiles.deep - 1);
    const uint32_t at_rows = row * (tiles.high - 1) * (uint32_t)grid->slices;
    const auto blocks = [&](uint32_t count) {
        return std::min((count - 1) / MASK_THREADS + 1, grid->blocks);
    };

    if (at_slices > 0 && !search->flat)
        search_slices<<<blocks(at_slices), MASK_THREADS, 0, stream>>>(*search, tiles.slices,
                                                                      at_slices);
    if (at_rows > 0)
        search_rows<<<blocks(at_rows), MASK_THREADS, 0, stream>>>(*search, tiles, at_rows);
    if (tiles.wide > 1 || (row > 1 && search->corners))
        search_columns<<<grid->blocks, MASK_THREADS, 0, stream>>>(*search, tiles.words);
    search_counts<<<grid->blocks, MASK_THREADS, 0, stream>>>(*search);
}
