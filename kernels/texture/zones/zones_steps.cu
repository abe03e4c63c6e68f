/*
 * zones_steps.cu - steps along the axes from each voxel to what is not of the region: along a row by its
 * bits, then swept along y and z, there and back. A thread has two voxels beside each other.
 */
#include "kernels/texture/zones/zones_cuda.cuh"

namespace
{
enum { STEPS_AT_ONCE = 8, STEPS_PAIRS = ZONES_WIDTH / 2, STEPS_FAR = INT16_MAX };

/* To the nearest column before this one, or after, that is not of the region. */
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

/* `count` pairs that are so far apart, each one step farther than the one before at most. */
template <typename Read>
__device__ __forceinline__ void
steps_sweep(uint32_t *at, ptrdiff_t apart, uint32_t count, const Read &read)
{
    uint32_t held = 0;

    for (uint32_t first = 0; first < count; first += STEPS_AT_ONCE) {
        uint32_t pairs[STEPS_AT_ONCE];

#pragma unroll
        for (uint32_t k = 0; k < STEPS_AT_ONCE; k++)
            pairs[k] = first + k < count ? read(first + k) : 0;
#pragma unroll
        for (uint32_t k = 0; k < STEPS_AT_ONCE; k++) {
            held = __viaddmin_u16x2(held, 0x00010001u, pairs[k]);
            if (first + k < count)
                at[(ptrdiff_t)(first + k) * apart] = held;
        }
    }
}

/* The other way through what has been swept. */
__device__ __forceinline__ void
steps_back(uint32_t *at, ptrdiff_t apart, uint32_t count)
{
    uint32_t *last = at + (ptrdiff_t)(count - 1) * apart;

    steps_sweep(last, -apart, count, [&](uint32_t i) { return last[-(ptrdiff_t)i * apart]; });
}

__device__ __forceinline__ uint32_t *
steps_at(const struct zones_job &job, uint16_t *steps, uint32_t x, uint32_t y, uint32_t z,
         uint32_t pair)
{
    return (uint32_t *)steps + zones_word_at(job, x, y, z) * STEPS_PAIRS + pair;
}

__global__ void
__launch_bounds__(ZONES_THREADS)
    steps_in_slices(const __grid_constant__ struct zones_job job, uint16_t *steps)
{
    const uint32_t index = blockIdx.x * ZONES_THREADS + threadIdx.x, pair = index % STEPS_PAIRS,
                   z = index / STEPS_PAIRS % job.slices, x = index / STEPS_PAIRS / job.slices;
    const uint32_t column = job.first[0] + x * ZONES_WIDTH + 2 * pair;

    if (x >= job.words)
        return;
    uint32_t *at = steps_at(job, steps, x, 0, z, pair);
    const uint64_t *rows =
        job.volume.region +
        ((size_t)(job.first[2] + z) * job.volume.rows + job.first[1]) * job.volume.words_per_row;

    steps_sweep(at, STEPS_PAIRS, job.rows, [&](uint32_t y) {
        const uint64_t *row = rows + (size_t)y * job.volume.words_per_row;

        return steps_in_row(row, job.volume.columns, column) |
               steps_in_row(row, job.volume.columns, column + 1) << 16;
    });
    steps_back(at, STEPS_PAIRS, job.rows);
}

__global__ void
__launch_bounds__(ZONES_THREADS)
    steps_across(const __grid_constant__ struct zones_job job, uint16_t *steps)
{
    const uint32_t index = blockIdx.x * ZONES_THREADS + threadIdx.x, pair = index % STEPS_PAIRS,
                   y = index / STEPS_PAIRS % job.rows, x = index / STEPS_PAIRS / job.rows;
    const ptrdiff_t slice = (ptrdiff_t)job.rows * STEPS_PAIRS;

    if (x >= job.words)
        return;
    uint32_t *at = steps_at(job, steps, x, y, 0, pair);

    steps_sweep(at, slice, job.slices, [&](uint32_t z) { return at[(ptrdiff_t)z * slice]; });
    steps_back(at, slice, job.slices);
}
} // namespace

void
zones_steps_queue(const struct zones_job *job, uint16_t *steps, cudaStream_t stream)
{
    const auto blocks = [&](uint32_t lines) {
        return (job->words * lines * STEPS_PAIRS - 1) / ZONES_THREADS + 1;
    };

    steps_in_slices<<<blocks(job->slices), ZONES_THREADS, 0, stream>>>(*job, steps);
    if (!job->flat)
        steps_across<<<blocks(job->rows), ZONES_THREADS, 0, stream>>>(*job, steps);
}
