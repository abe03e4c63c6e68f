/*
 * mask_grow.cu - balls on the GPU beyond the reach of mask_walk.cu. A lane makes a word of the
 * result from the same word of the ball's rows, group by group. Adjacent lanes then widen their
 * words by the difference to the next span (ball.h).
 *
 * A warp has as many whole rows of up to 32 words as fit. Of longer rows it makes a piece, and
 * reads additional words at both ends to cover the ball's reach.
 */
#include "kernels/mask/mask_cuda.cuh"

enum { WARPS = MASK_THREADS / 32 };

/* Distribution of rows to warps. */
struct grow_lanes {
    int32_t width; /* adjacent lanes per row */
    int32_t rows;  /* per warp */
    int32_t halo;  /* words at either end of a piece that are only read */
    uint32_t pieces;
    uint32_t warps;
};

bool
mask_grow_can(const struct mask_grid *grid, const struct mask_reach *most)
{
    return grid->words_per_row <= 32 || most->size[0] <= (int64_t)MASK_HALO * 64;
}

size_t
mask_grow_rows(const struct mask_reach *most)
{
    return mask_ball_rows(most) + 3 * mask_ball_groups(most);
}

void
mask_grow_ball_make(const struct mask_grid *grid, const struct mask_ball *ball, struct mask_grow_ball *made)
{
    int64_t entry = 0, count = 0;

    made->reach = ball->reach;
    made->groups = (int32_t)ball->groups;
    for (int64_t group = 0; group < ball->groups; group++) {
        for (; entry < ball->ends[group]; entry++)
            made->rows[count++] = ball->rows[entry];
        for (; count % 4 != 0; count++)
            made->rows[count] = ball->rows[entry - 1];
        made->group[group] = {(int32_t)(count / 4), (int32_t)ball->widen[group]};
    }
    for (int64_t i = 0; i < count; i++)
        made->offsets[i] = (int32_t)((made->rows[i].k * grid->rows + made->rows[i].j) * grid->words_per_row);
}

/* Returns the word `away` lanes further in the row, 0 beyond. */
__device__ static __forceinline__ uint64_t
lane_word(uint64_t word, int32_t at, int32_t width, int32_t away)
{
    const int32_t from = (int32_t)(threadIdx.x % 32) + away;
    const uint64_t other = __shfl_sync(~0u, (unsigned long long)word, from & 31);

    return at + away >= 0 && at + away < width ? other : 0;
}

/* Widens the row by `by` to both sides. */
__device__ static __forceinline__ uint64_t
widen_lanes(uint64_t word, int32_t at, int32_t width, int32_t by)
{
    const int32_t far = min(by / 64, 32);
    const int shift = (int)(by % 64);
    uint64_t low = lane_word(word, at, width, -far), high = lane_word(word, at, width, far);

    if (shift > 0) {
        low = low << shift | lane_word(word, at, width, -far - 1) >> (64 - shift);
        high = high >> shift | lane_word(word, at, width, far + 1) << (64 - shift);
    }
    return word | low | high;
}

/* Returns bits first .. last of a row, as far as they are in word x. */
__device__ static __forceinline__ uint64_t
bits_within(int64_t x, int64_t first, int64_t last)
{
    const int64_t low = first - 64 * x, high = last - 64 * x;

    if (low > 63 || high < 0 || low > high)
        return 0;
    return ~UINT64_C(0) << (low > 0 ? low : 0) & ~UINT64_C(0) >> (high < 63 ? 63 - high : 0);
}

/* Unites a word with four rows at the given offsets. */
template <bool Shrink>
__device__ static __forceinline__ uint64_t
four_words(const uint64_t *word, int4 away)
{
    const uint64_t a = word[away.x], b = word[away.y], c = word[away.z], d = word[away.w];

    return Shrink ? ~(a & b & c & d) : a | b | c | d;
}

/* As four_words, for rows that may lie outside the volume, which are empty there. */
template <bool Shrink>
__device__ static __forceinline__ uint64_t
four_words_within(const struct mask_grid &grid, const struct mask_grow_ball &ball, int32_t quad, const uint64_t *word,
                  int32_t y, int32_t z)
{
    uint64_t found = 0;

    for (int32_t entry = 4 * quad; entry < 4 * quad + 4; entry++) {
        const struct mask_row away = ball.rows[entry];

        if (y + away.j >= 0 && y + away.j < grid.rows && z + away.k >= 0 && z + away.k < grid.slices)
            found |= Shrink ? ~word[ball.offsets[entry]] : word[ball.offsets[entry]];
    }
    return found;
}

/* The launch bound limits blocks per multiprocessor: with more, the compiler keeps too little in
 * registers. */
template <bool Shrink>
__global__ void
__launch_bounds__(MASK_THREADS, 5)
    grow(const __grid_constant__ struct mask_grid grid, const __grid_constant__ struct mask_grow_ball ball,
         const __grid_constant__ struct grow_lanes lanes, const struct mask_facts *facts, const uint64_t *source,
         uint64_t *target)
{
    const int32_t size[3] = {(int32_t)grid.columns, (int32_t)grid.rows, (int32_t)grid.slices};
    const uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32;
    const int32_t lane = (int32_t)(threadIdx.x % 32), at = lane % lanes.width;
    const uint32_t row = warp / lanes.pieces * lanes.rows + lane / lanes.width;
    const int32_t x = (int32_t)(warp % lanes.pieces) * (32 - 2 * lanes.halo) - lanes.halo + at;
    const int32_t y = (int32_t)(row % (uint32_t)size[1]), z = (int32_t)(row / (uint32_t)size[1]);
    const bool exists =
        lane / lanes.width < lanes.rows && z < size[2] && x >= 0 && x < grid.words_per_row && warp < lanes.warps;
    const bool makes = exists && at >= lanes.halo && (lanes.halo == 0 || at < 32 - lanes.halo);
    const int64_t word = (int64_t)row * grid.words_per_row + x;
    int32_t first[3], last[3];
    bool inner = true;

    for (int axis = 0; axis < 3; axis++) {
        const int32_t reach = (int32_t)ball.reach.size[axis], end = size[axis] - 1;
        const int32_t low = (int32_t)min(facts->first[axis], (long long)size[axis]), high = (int32_t)facts->last[axis];

        first[axis] = Shrink ? (low > 0 ? low + reach : 0) : max(low - reach, 0);
        last[axis] = Shrink ? (high < end ? high - reach : end) : min(high + reach, end);
        if (axis > 0)
            inner &= axis == 1 ? y >= reach && y <= end - reach : z >= reach && z <= end - reach;
    }
    const bool wanted = exists && y >= first[1] && y <= last[1] && z >= first[2] && z <= last[2];

    if (!__any_sync(~0u, wanted)) {
        if (makes)
            target[word] = 0;
        return;
    }
    inner = __all_sync(~0u, inner || !wanted);
    uint64_t found = 0;

    for (int32_t group = 0, quad = 0; group < ball.groups; group++) {
        const struct mask_grow_group own = ball.group[group];

        if (!wanted)
            quad = own.end;
        else if (inner)
#pragma unroll 2
            for (; quad < own.end; quad++)
                found |= four_words<Shrink>(source + word, ((const int4 *)ball.offsets)[quad]);
        else
            for (; quad < own.end; quad++)
                found |= four_words_within<Shrink>(grid, ball, quad, source + word, y, z);
        if (Shrink && x + 1 == grid.words_per_row)
            found &= grid.tail;
        __syncwarp();
        /* As in the CPU's isa.unite, a step is at most the width so far plus 1. */
        for (int32_t done = 0, step; done < own.widen; done += step) {
            step = min(own.widen - done, done + 1);
            found = widen_lanes(found, at, lanes.width, step);
        }
    }
    if (makes)
        target[word] = wanted ? (Shrink ? ~found : found) & bits_within(x, first[0], last[0]) : 0;
}

void
mask_grow_queue(const struct mask_grid *grid, const struct mask_grow_ball *ball, const struct mask_facts *facts,
                const uint64_t *source, bool shrink, uint64_t *target, cudaStream_t stream)
{
    const int64_t words = grid->words_per_row, rows = grid->rows * grid->slices;
    struct grow_lanes lanes = {32, 1, (int32_t)((ball->reach.size[0] + 63) / 64), 1, 0};

    if (words <= 32) {
        lanes.width = (int32_t)words;
        lanes.rows = (int32_t)(32 / words);
        lanes.halo = 0;
    } else {
        lanes.pieces = (uint32_t)((words - 1) / (32 - 2 * lanes.halo) + 1);
    }
    lanes.warps = (uint32_t)((rows - 1) / lanes.rows + 1) * lanes.pieces;
    const uint32_t blocks = (lanes.warps - 1) / WARPS + 1;

    if (shrink)
        grow<true><<<blocks, MASK_THREADS, 0, stream>>>(*grid, *ball, lanes, facts, source, target);
    else
        grow<false><<<blocks, MASK_THREADS, 0, stream>>>(*grid, *ball, lanes, facts, source, target);
}

/* Bridges */

/* Returns a word of the voxels and their neighbours. */
__device__ static __forceinline__ uint64_t
reached(const struct mask_grid &grid, const uint64_t *bits, int64_t word, const struct mask_place &at, bool corners)
{
    uint64_t all = 0;

    for (int k = -1; k <= 1; k++)
        for (int j = -1; j <= 1; j++) {
            const bool exists = at.y + j >= 0 && at.y + j < grid.rows && at.z + k >= 0 && at.z + k < grid.slices;
            const int64_t there = word + (k * grid.rows + j) * grid.words_per_row;

            if (!exists || !(corners || j == 0 || k == 0))
                continue;
            const uint64_t own = bits[there];

            all |= own;
            if (corners || (j == 0 && k == 0))
                all |= own << 1 | own >> 1 | (at.x > 0 ? bits[there - 1] >> 63 : 0) |
                       (at.x + 1 < grid.words_per_row ? bits[there + 1] << 63 : 0);
        }
    return all;
}

__global__ void
__launch_bounds__(MASK_THREADS) cut_common(const __grid_constant__ struct mask_grid grid, const uint64_t *one,
                                           const uint64_t *other, bool corners, uint64_t *cut)
{
    MASK_EACH_WORD(grid, word)
    {
        const struct mask_place at = mask_place_of(grid, word);

        cut[word] |= reached(grid, one, word, at, corners) & reached(grid, other, word, at, corners);
    }
}

void
mask_cut_queue(const struct mask_grid *grid, const uint64_t *one, const uint64_t *other, bool corners, uint64_t *cut,
               cudaStream_t stream)
{
    cut_common<<<grid->blocks, MASK_THREADS, 0, stream>>>(*grid, one, other, corners, cut);
}
