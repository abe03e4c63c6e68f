/*
 * mask_grow.cu - balls on the GPU: a lane makes a word of the result from the same word of the
 * rows of the ball, group by group, and lanes that stand side by side widen what they have by what
 * the next group's span is shorter (ball.h).
 *
 * Rows of up to 32 words are whole in a warp, as many as there is room for. Of longer ones a warp
 * makes a piece, and sees as many words beyond its ends as the ball reaches.
 */
#include "kernels/mask/mask_cuda.cuh"

enum { WARPS = MASK_THREADS / 32 };

/* How rows are dealt out to warps. */
struct grow_lanes {
    int32_t width; /* lanes side by side in a row */
    int32_t rows;  /* of a warp */
    int32_t halo;  /* words at either end of a piece that are only seen */
    int64_t pieces;
    int64_t warps;
};

static struct grow_lanes
grow_lanes_of(const struct mask_grid *grid, const struct mask_reach *reach)
{
    const int64_t words = grid->words_per_row, rows = grid->rows * grid->slices;
    struct grow_lanes lanes = {32, 1, (int32_t)((reach->size[0] + 63) / 64), 1, 0};

    if (words <= 32) {
        lanes.width = (int32_t)words;
        lanes.rows = (int32_t)(32 / words);
        lanes.halo = 0;
    } else {
        lanes.pieces = (words - 1) / (32 - 2 * lanes.halo) + 1;
    }
    lanes.warps = ((rows - 1) / lanes.rows + 1) * lanes.pieces;
    return lanes;
}

bool
mask_grow_can(const struct mask_grid *grid, const struct mask_reach *most)
{
    return grid->words_per_row <= 32 || most->size[0] <= (int64_t)MASK_HALO * 64;
}

/* The word `away` lanes further within the row; 0 beyond. */
__device__ static __forceinline__ uint64_t
lane_word(uint64_t word, int32_t at, int32_t width, int32_t away)
{
    const int32_t from = (int32_t)(threadIdx.x % 32) + away;
    const uint64_t other = __shfl_sync(~0u, (unsigned long long)word, from & 31);

    return at + away >= 0 && at + away < width ? other : 0;
}

/* The row moved by `by` to both sides, and itself. */
__device__ static __forceinline__ uint64_t
widen_lanes(uint64_t word, int32_t at, int32_t width, int64_t by)
{
    const int32_t far = (int32_t)min(by / 64, (int64_t)32);
    const int shift = (int)(by % 64);
    uint64_t low = lane_word(word, at, width, -far), high = lane_word(word, at, width, far);

    if (shift > 0) {
        low = low << shift | lane_word(word, at, width, -far - 1) >> (64 - shift);
        high = high >> shift | lane_word(word, at, width, far + 1) << (64 - shift);
    }
    return word | low | high;
}

/* Bits first .. last of a row, of those of word x. */
__device__ static __forceinline__ uint64_t
bits_within(int64_t x, int64_t first, int64_t last)
{
    const int64_t low = first - 64 * x, high = last - 64 * x;

    if (low > 63 || high < 0 || low > high)
        return 0;
    return ~UINT64_C(0) << (low > 0 ? low : 0) & ~UINT64_C(0) >> (high < 63 ? 63 - high : 0);
}

__global__ void
__launch_bounds__(MASK_THREADS)
    grow(const __grid_constant__ struct mask_grid grid,
         const __grid_constant__ struct mask_ball ball,
         const __grid_constant__ struct grow_lanes lanes, const struct mask_facts *facts,
         const uint64_t *source, bool shrink, uint64_t *target)
{
    const int64_t size[3] = {grid.columns, grid.rows, grid.slices};
    const uint64_t flip = shrink ? ~UINT64_C(0) : 0;
    const int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int32_t lane = (int32_t)(threadIdx.x % 32), at = lane % lanes.width;
    const int64_t row = warp / lanes.pieces * lanes.rows + lane / lanes.width;
    const int64_t x = warp % lanes.pieces * (32 - 2 * lanes.halo) - lanes.halo + at;
    const int64_t y = row % grid.rows, z = row / grid.rows;
    const bool exists = lane / lanes.width < lanes.rows && z < grid.slices && x >= 0 &&
                        x < grid.words_per_row && warp < lanes.warps;
    const bool makes = exists && at >= lanes.halo && (lanes.halo == 0 || at < 32 - lanes.halo);
    const int64_t word = row * grid.words_per_row + x;
    int64_t first[3], last[3], entry = 0;
    uint64_t found = 0;

    for (int axis = 0; axis < 3; axis++) {
        const int64_t reach = ball.reach.size[axis], end = size[axis] - 1;

        first[axis] = shrink ? max((int64_t)facts->first[axis], reach)
                             : max((int64_t)facts->first[axis] - reach, (int64_t)0);
        last[axis] = shrink ? min((int64_t)facts->last[axis], end - reach)
                            : min((int64_t)facts->last[axis] + reach, end);
    }
    const bool wanted = exists && y >= first[1] && y <= last[1] && z >= first[2] && z <= last[2];

    if (!__any_sync(~0u, wanted)) {
        if (makes)
            target[word] = 0;
        return;
    }
    for (int64_t group = 0; group < ball.groups; group++) {
#pragma unroll 4
        for (; entry < ball.ends[group]; entry++) {
            const struct mask_row away = ball.rows[entry];

            if (wanted && y + away.j >= 0 && y + away.j < grid.rows && z + away.k >= 0 &&
                z + away.k < grid.slices)
                found |= source[word + (away.k * grid.rows + away.j) * grid.words_per_row] ^ flip;
        }
        /* As the CPU's isa.unite: by no more than what has been widened, and one. */
        for (int64_t done = 0, step; done < ball.widen[group]; done += step) {
            step = min(ball.widen[group] - done, done + 1);
            found = widen_lanes(found, at, lanes.width, step);
        }
    }
    if (makes)
        target[word] = wanted ? (found ^ flip) & bits_within(x, first[0], last[0]) : 0;
}

void
mask_grow_queue(const struct mask_grid *grid, const struct mask_ball *ball,
                const struct mask_facts *facts, const uint64_t *source, bool shrink,
                uint64_t *target, cudaStream_t stream)
{
    const struct grow_lanes lanes = grow_lanes_of(grid, &ball->reach);
    const uint32_t blocks = (uint32_t)((lanes.warps - 1) / WARPS + 1);

    grow<<<blocks, MASK_THREADS, 0, stream>>>(*grid, *ball, lanes, facts, source, shrink, target);
}

/* Bridges */

__device__ static __forceinline__ uint64_t
row_word(const struct mask_grid &grid, const uint64_t *bits, int64_t word,
         const struct mask_place &at, int j, int k, bool widen)
{
    const int64_t there = word + (k * grid.rows + j) * grid.words_per_row;

    if (at.y + j < 0 || at.y + j >= grid.rows || at.z + k < 0 || at.z + k >= grid.slices)
        return 0;
    const uint64_t own = bits[there];

    if (!widen)
        return own;
    return own | own << 1 | own >> 1 | (at.x > 0 ? bits[there - 1] >> 63 : 0) |
           (at.x + 1 < grid.words_per_row ? bits[there + 1] << 63 : 0);
}

/* A word of the voxels and of their neighbours. */
__device__ static __forceinline__ uint64_t
reached(const struct mask_grid &grid, const uint64_t *bits, int64_t word,
        const struct mask_place &at, bool corners)
{
    uint64_t all = 0;

    for (int k = -1; k <= 1; k++)
        for (int j = -1; j <= 1; j++)
            if (corners || j == 0 || k == 0)
                all |= row_word(grid, bits, word, at, j, k, corners || (j == 0 && k == 0));
    return all;
}

__global__ void
__launch_bounds__(MASK_THREADS)
    cut_common(const __grid_constant__ struct mask_grid grid, const uint64_t *one,
               const uint64_t *other, bool corners, uint64_t *cut)
{
    MASK_EACH_WORD(grid, word)
    {
        const struct mask_place at = mask_place_of(grid, word);

        cut[word] |=
            reached(grid, one, word, at, corners) & reached(grid, other, word, at, corners);
    }
}

void
mask_cut_queue(const struct mask_grid *grid, const uint64_t *one, const uint64_t *other,
               bool corners, uint64_t *cut, cudaStream_t stream)
{
    cut_common<<<grid->blocks, MASK_THREADS, 0, stream>>>(*grid, one, other, corners, cut);
}
