/*
 * mask_runs.cu - components on the GPU: those of tiles, united where tiles meet, and their counts.
 *
 * Union-find in two stages (Jaiganesh 2018): the runs of a tile in shared memory (mask_tiles.cu),
 * then the resulting nodes in device memory. Parents precede their children, so that the root of a
 * component is its first run, in any order of execution.
 */
#include "kernels/mask/mask_runs.cuh"

#include <algorithm>

size_t
mask_runs(const struct mask_grid *grid)
{
    return (size_t)grid->words * MASK_RUNS_PER_WORD;
}

bool
mask_runs_can(const struct mask_grid *grid)
{
    /* Counts have 32 bits, and the grid's axis limits the blocks. */
    return grid->words < (INT64_C(1) << 32) / 64 && grid->slices <= UINT16_MAX;
}

/*
 * Seams of tiles
 *
 * Contacts that are already covered need no union. Within a tile all are covered. At a seam along
 * z, contacts are covered that also exist in the previous row, in the same two tiles. At a seam
 * along y, those that also exist in the previous slice. At a seam along x, those that also exist in
 * the previous row.
 */

enum seam { SEAM_SLICES, SEAM_ROWS, SEAM_COLUMNS, SEAMS };

enum { SEAM_COLUMN_ROWS = 16 }; /* rows per thread at seams along x */

/* Sizes of the seams, and the number of threads with work. */
struct seam_counts {
    uint32_t wide, high;
    uint32_t of[SEAMS];
};

template <typename Shape>
__device__ static __forceinline__ void
unite_slices(const volume_forest<Shape> &forest, uint32_t index)
{
    const uint32_t row = (uint32_t)forest.search.grid.words_per_row, rows = (uint32_t)forest.search.grid.rows,
                   x = index % row, y = index / row % rows, z = (index / row / rows + 1) * Shape::slices;
    const bool corners = forest.search.corners;
    const struct volume_word own = forest.word(x, y, z), before = forest.word(x, y, z - 1),
                             above = forest.word(x, y - 1, z), before_above = forest.word(x, y - 1, z - 1);

    unite_words(forest, own, before, corners, y % Shape::rows > 0 ? above.bits & before_above.bits : 0);
    if (corners) {
        unite_words(forest, own, before_above, true, 0);
        unite_words(forest, own, forest.word(x, y + 1, z - 1), true, 0);
    }
}

template <typename Shape>
__device__ static __forceinline__ void
unite_rows(const volume_forest<Shape> &forest, uint32_t seams, uint32_t index)
{
    const uint32_t row = (uint32_t)forest.search.grid.words_per_row, x = index % row,
                   y = (index / row % seams + 1) * Shape::rows, z = index / row / seams,
                   deep = forest.search.flat ? ~0u : z - 1;
    const bool corners = forest.search.corners;
    const struct volume_word own = forest.word(x, y, z), above = forest.word(x, y - 1, z),
                             before = forest.word(x, y, deep), before_above = forest.word(x, y - 1, deep);

    unite_words(forest, own, above, corners, before.bits & before_above.bits);
    if (corners) {
        unite_words(forest, own, before_above, true, 0);
        unite_words(forest, above, before, true, 0);
    }
}

template <typename Shape>
__device__ static __forceinline__ void
unite_columns(const volume_forest<Shape> &forest, uint32_t seams, uint32_t groups, uint32_t index)
{
    const uint32_t x = (index % seams + 1) * Shape::words, y = index / seams % groups * SEAM_COLUMN_ROWS,
                   z = index / seams / groups;
    const auto meet = [&](uint32_t row) { return forest.word(x - 1, row, z).bits >> 63 & forest.word(x, row, z).bits; };
    uint64_t touch = 0;

#pragma unroll 4
    for (uint32_t i = 0; i < SEAM_COLUMN_ROWS; i++)
        touch |= meet(y + i) << i;
    unite_each(forest, touch & ~(touch << 1 | meet(y - 1)), [&](uint64_t up_to) {
        const uint32_t row = y + (uint32_t)__popcll((long long)up_to) - 1;
        const struct volume_word low = forest.word(x - 1, row, z);

        return mask_pair{forest.of(low, run_within(low.bits, ~UINT64_C(0))), forest.of(forest.word(x, row, z), 0)};
    });
}

template <typename Shape>
__global__ void
__launch_bounds__(MASK_THREADS)
    search_seams(const __grid_constant__ struct mask_search search, const __grid_constant__ struct seam_counts seams)
{
    const volume_forest<Shape> forest = {search};
    const uint32_t groups = ((uint32_t)search.grid.rows - 1) / SEAM_COLUMN_ROWS + 1;
    const enum seam seam = (enum seam)blockIdx.y;

    SEARCH_EACH(seams.of[seam], index)
    {
        if (seam == SEAM_SLICES)
            unite_slices(forest, index);
        else if (seam == SEAM_ROWS)
            unite_rows(forest, seams.high, index);
        else
            unite_columns(forest, seams.wide, groups, index);
    }
}

/* Unites the ends of words that touch those of other rows at corners. */
template <typename Shape>
__global__ void
__launch_bounds__(MASK_THREADS) search_corners(const __grid_constant__ struct mask_search search)
{
    const volume_forest<Shape> forest = {search};
    const uint32_t row = (uint32_t)search.grid.words_per_row, rows = (uint32_t)search.grid.rows;

    SEARCH_EACH((uint32_t)search.grid.words, word)
    {
        const uint32_t x = word % row, y = word / row % rows, z = word / row / rows;
        const struct volume_word own = forest.word(x, y, z);
        const auto unite = [&](uint32_t other_y, uint32_t other_z) {
            unite_ends(forest, forest.word(x - 1, other_y, other_z), own);
            unite_ends(forest, own, forest.word(x + 1, other_y, other_z));
        };

        unite(y - 1, z);
        if (search.flat)
            continue;
        for (uint32_t i = 0; i < 3; i++)
            unite(y + i - 1, z - 1);
    }
}

/* Counts of components */

/* A thread's sum for a root, and the highest rank it has seen. Components only grow, so that the
 * largest one's rank is seen when its last part is added, or in its tile (mask_tiles.cu). */
struct root_sum {
    const struct mask_search &search;
    /* the earliest root so far: the largest components tend to begin early */
    uint32_t root, counted;
    unsigned long long highest;

    __device__ __forceinline__ void give(uint32_t node, uint32_t count)
    {
        if (count > 0)
            highest = max(highest, rank_of(atomicAdd(&node_at(search, node)->count, count) + count, node));
    }

    __device__ __forceinline__ void add(uint32_t node, uint32_t count)
    {
        if (node > root) {
            give(node, count);
            return;
        }
        if (node < root) {
            give(root, counted);
            root = node;
            counted = 0;
        }
        counted += count;
    }
};

/* Links all nodes directly to the root of their component, and adds their counts to it. A lane that
 * has reached a root takes its next node at once. */
__global__ void
__launch_bounds__(MASK_THREADS) search_counts(const __grid_constant__ struct mask_search search)
{
    struct root_sum sum = {search, ~0u, 0, 0};
    const uint32_t count = ((uint32_t)search.grid.words + 1) / 2;

    SEARCH_EACH(count, index)
    {
        uint64_t left = index < count ? search.hung[index] : 0;
        struct mask_node node = {};
        uint32_t own = 0;
        bool climbs = false;

        while (__any_sync(~0u, climbs || left != 0)) {
            if (climbs) {
                const uint32_t next = node_at(search, node.parent)->parent;

                climbs = next != node.parent;
                node.parent = next;
                if (!climbs) {
                    node_at(search, own)->parent = next;
                    sum.add(next, node.count);
                }
            } else if (left) {
                own = index * 64 + (uint32_t)__ffsll((long long)left) - 1;
                node = *node_at(search, own);
                left &= left - 1;
                climbs = true;
            }
        }
    }
    __syncwarp();
    /* Lanes of one component add together: its root would be a bottleneck. */
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
    const uint32_t row = (uint32_t)grid->words_per_row, rows = (uint32_t)grid->rows, slices = (uint32_t)grid->slices;

    search_bound<<<1, 1, 0, stream>>>(search->facts, bound, !search->border);
    mask_tiles_queue(search, stream);
    tiles_queue(search, [&](auto shape, dim3 tiles) {
        const uint32_t wide = tiles.x - 1, high = tiles.y - 1, groups = (rows - 1) / SEAM_COLUMN_ROWS + 1;
        const struct seam_counts seams = {
            wide, high, {search->flat ? 0 : row * rows * (tiles.z - 1), row * high * slices, wide * groups * slices}};
        const uint32_t most = *std::max_element(seams.of, seams.of + SEAMS);
        const dim3 blocks(std::min((most + MASK_THREADS - 1) / MASK_THREADS, grid->blocks), SEAMS);

        if (most > 0)
            search_seams<decltype(shape)><<<blocks, MASK_THREADS, 0, stream>>>(*search, seams);
        if (row > 1 && search->corners)
            search_corners<decltype(shape)><<<grid->blocks, MASK_THREADS, 0, stream>>>(*search);
    });
    search_counts<<<grid->blocks, MASK_THREADS, 0, stream>>>(*search);
}
