/*
 * zones_steps.cu - counts steps along the axes from each voxel to the nearest one outside the
 * region: along rows from the bits, then by sweeps along y and z in both directions. A thread has
 * two adjacent voxels. A slice has few such columns. Along y, each is divided into parts, which are
 * swept independently and then updated from the parts before them.
 */
#include "kernels/texture/zones/zones_cuda.cuh"

namespace
{
enum {
    STEPS_AT_ONCE = 8,
    STEPS_PAIRS = ZONES_WIDTH / 2,
    STEPS_PARTS =
        /* parts of a slice's column: a block has one column of words */
    ZONES_THREADS / STEPS_PAIRS,
    STEPS_FAR = INT16_MAX,
    STEPS_FAR_PAIR = STEPS_FAR << 16 | STEPS_FAR,
    STEPS_ONE_PAIR = 1 << 16 | 1
};

/* Returns the distance to the nearest column on either side outside the region. */
__device__ __forceinline__ uint32_t
steps_in_row(const uint64_t *row, uint32_t columns, uint32_t column)
{
    const uint64_t bit = UINT64_C(1) << column % 64;
    uint32_t word = column / 64, before = column + 1, after = columns;

    if (column >= columns || !(row[word] & bit))
        return 0;
    uint64_t gaps = ~row[word] & (bit - 1);
    while (gaps == 0 && word > 0)
        gaps = ~row[--word];
    if (gaps)
        before = column - (64 * word + 63 - (uint32_t)__clzll((long long)gaps));
    word = column / 64;
    gaps = ~row[word] & ~(bit - 1);
    while (gaps == 0 && 64 * (word + 1) < columns)
        gaps = ~row[++word];
    if (gaps)
        after = min(columns, 64 * word + (uint32_t)__ffsll((long long)gaps) - 1);
    return min(min(before, after - column), (uint32_t)STEPS_FAR);
}

/* Sweeps `count` pairs, `apart` from each other: each is at most one step more than the previous
 * one. `held` is the value before the first. Returns the last value. */
template <typename Read>
__device__ __forceinline__ uint32_t
steps_sweep(uint32_t *at, ptrdiff_t apart, uint32_t count, uint32_t held, const Read &read)
{
    for (uint32_t first = 0; first < count; first += STEPS_AT_ONCE) {
        uint32_t pairs[STEPS_AT_ONCE];

#pragma unroll
        for (uint32_t k = 0; k < STEPS_AT_ONCE; k++)
            pairs[k] = first + k < count ? read(first + k) : STEPS_FAR_PAIR;
#pragma unroll
        for (uint32_t k = 0; k < STEPS_AT_ONCE; k++)
            if (first + k < count) {
                held = __viaddmin_u16x2(held, STEPS_ONE_PAIR, pairs[k]);
                at[(ptrdiff_t)(first + k) * apart] = held;
            }
    }
    return held;
}

/* Sweeps the other way. */
__device__ __forceinline__ uint32_t
steps_back(uint32_t *at, ptrdiff_t apart, uint32_t count, uint32_t held)
{
    uint32_t *last = at + ((ptrdiff_t)count - 1) * apart;

    return steps_sweep(last, -apart, count, held, [&](uint32_t i) { return last[-(ptrdiff_t)i * apart]; });
}

/* Applies the value before a swept part, up to the first pair that it does not change. */
__device__ __forceinline__ void
steps_hand(uint32_t *at, ptrdiff_t apart, uint32_t count, uint32_t held)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t swept = at[(ptrdiff_t)i * apart];

        held = __viaddmin_u16x2(held, STEPS_ONE_PAIR, swept);
        if (held == swept)
            return;
        at[(ptrdiff_t)i * apart] = held;
    }
}

struct steps_parts {
    uint32_t rows, each; /* rows of a column, and of each part except the last ones */

    __device__ __forceinline__ uint32_t first(uint32_t part) const
    {
        return min(part * each, rows);
    }

    __device__ __forceinline__ uint32_t count(uint32_t part) const
    {
        return first(part + 1) - first(part);
    }
};

/* Returns the value that the parts on one side pass to a part. `ends` has the last pair of each.
 * Sweeps begin outside the region. */
__device__ __forceinline__ uint32_t
steps_handed(const struct steps_parts &parts, const uint32_t (*ends)[STEPS_PAIRS], uint32_t pair, uint32_t part,
             bool back)
{
    uint32_t held = 0;

    for (uint32_t p = back ? STEPS_PARTS - 1 : 0; p != part; back ? p-- : p++)
        held = __viaddmin_u16x2(held, parts.count(p) * STEPS_ONE_PAIR, ends[p][pair]);
    return held;
}

__device__ __forceinline__ uint32_t *
steps_at(const struct zones_job &job, uint16_t *steps, uint32_t x, uint32_t y, uint32_t z, uint32_t pair)
{
    return (uint32_t *)steps + zones_word_at(job, x, y, z) * STEPS_PAIRS + pair;
}

__global__ void
__launch_bounds__(ZONES_THREADS) steps_in_slices(const __grid_constant__ struct zones_job job, uint16_t *steps)
{
    __shared__ uint32_t down[STEPS_PARTS][STEPS_PAIRS], up[STEPS_PARTS][STEPS_PAIRS];
    const uint32_t pair = threadIdx.x % STEPS_PAIRS, part = threadIdx.x / STEPS_PAIRS;
    const uint32_t z = blockIdx.x % job.slices, x = blockIdx.x / job.slices;
    const struct steps_parts parts = {job.rows, (job.rows - 1) / STEPS_PARTS + 1};
    const uint32_t first = parts.first(part), count = parts.count(part);
    const uint32_t column = job.first[0] + x * ZONES_WIDTH + 2 * pair;
    uint32_t *const at = steps_at(job, steps, x, first, z, pair);
    uint32_t *const last = at + ((ptrdiff_t)count - 1) * STEPS_PAIRS;
    const uint64_t *rows = job.volume.region + ((size_t)(job.first[2] + z) * job.volume.rows + job.first[1] + first) *
                                                   job.volume.words_per_row;

    down[part][pair] = steps_sweep(at, STEPS_PAIRS, count, STEPS_FAR_PAIR, [&](uint32_t y) {
        const uint64_t *row = rows + (size_t)y * job.volume.words_per_row;

        return steps_in_row(row, job.volume.columns, column) | steps_in_row(row, job.volume.columns, column + 1) << 16;
    });
    __syncthreads();
    steps_hand(at, STEPS_PAIRS, count, steps_handed(parts, down, pair, part, false));
    up[part][pair] = steps_back(at, STEPS_PAIRS, count, STEPS_FAR_PAIR);
    __syncthreads();
    steps_hand(last, -STEPS_PAIRS, count, steps_handed(parts, up, pair, part, true));
}

__global__ void
__launch_bounds__(ZONES_THREADS) steps_across(const __grid_constant__ struct zones_job job, uint16_t *steps)
{
    const uint32_t index = blockIdx.x * ZONES_THREADS + threadIdx.x, pair = index % STEPS_PAIRS,
                   y = index / STEPS_PAIRS % job.rows, x = index / STEPS_PAIRS / job.rows;
    const ptrdiff_t slice = (ptrdiff_t)job.rows * STEPS_PAIRS;

    if (x >= job.words)
        return;
    uint32_t *at = steps_at(job, steps, x, y, 0, pair);

    (void)steps_sweep(at, slice, job.slices, 0, [&](uint32_t z) { return at[(ptrdiff_t)z * slice]; });
    (void)steps_back(at, slice, job.slices, 0);
}
} // namespace

void
zones_steps_queue(const struct zones_job *job, uint16_t *steps, cudaStream_t stream)
{
    steps_in_slices<<<job->words * job->slices, ZONES_THREADS, 0, stream>>>(*job, steps);
    if (!job->flat)
        steps_across<<<(job->words * job->rows * STEPS_PAIRS - 1) / ZONES_THREADS + 1, ZONES_THREADS, 0, stream>>>(
            *job, steps);
}
