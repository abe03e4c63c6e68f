/*
 * neighbours_near.cuh - neighbourhoods at distance 1, for neighbours_cuda.cu.
 *
 * A thread has two adjacent voxels and moves from slice to slice. It compares the surroundings of
 * the two in each slice with the two, with those of the previous slice and with those of the next.
 * It thus reads every slice once. Levels have BOXED_MARK (boxed_cuda.cuh): read as halves, the
 * differences of such words are exactly those of levels, and 0 differs more than alpha from all.
 * The sum of nine also holds their number above the sum of levels.
 *
 * Most voxels have all neighbours. Their number is the rest of a level's voxels. Their deviations
 * have separate counters with several copies, so that a warp with one level does not contend.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_NEIGHBOURS_NEAR_CUH
#define NOCTULE_KERNELS_TEXTURE_NEIGHBOURS_NEAR_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/neighbours_cuda.cuh"

#include <cuda_fp16.h>

enum {
    NEAR_THREADS = 512,
    NEAR_BLOCKS = 2,  /* per multiprocessor */
    NEAR_SLICES = 64, /* max slices per tile */
    NEAR_COPIES = 32, /* max, for few levels */
    NEAR_COPIED = 2048,
    NEAR_LEVELS = 0x0FFF0FFF, /* of two voxels, without BOXED_MARK */
    NEAR_COUNT = 0x6400,      /* 1024 as a half, whose low bits hold a small added integer */
};

struct near_part {
    uint32_t words, columns; /* words of two voxels: per row, and per slice's rows */
    uint32_t slices, tiles;  /* slices per tile; tiles per matrix */
    uint32_t copies;
    __half2 alpha; /* as a difference of marked levels */
};

/* A block's counters in shared memory. */
struct near_table {
    /* [levels][width]; the latter two for voxels that lack neighbours */
    uint32_t *alike, *present, *deviation;
    uint32_t *full; /* [levels][copies]: deviations */
    uint32_t width, copies;
    uint32_t alike_from, full_from; /* addresses for a level 0 */
};

/* Surroundings of two voxels in a slice, row by row: first as loaded words, then with the shifted
 * words. */
struct near_slice {
    uint32_t word[9];
};

/* `at` is the index of the first word, so that the compiler needs only three row addresses. */
static __device__ __forceinline__ void
near_load(const uint32_t *box, uint32_t at, uint32_t words, struct near_slice *slice)
{
#pragma unroll
    for (uint32_t i = 0; i < 9; i++)
        slice->word[i] = __ldg(box + (at + i / 3 * words) + i % 3);
}

static __device__ __forceinline__ void
near_shift(struct near_slice *slice)
{
#pragma unroll
    for (int i = 0; i < 9; i += 3) {
        uint32_t *row = slice->word + i;

        row[0] = __funnelshift_r(row[0], row[1], 16);
        row[2] = __funnelshift_r(row[1], row[2], 16);
    }
}

/* Adds the number of voxels of the slice that are alike to either of the two. Skips the voxels
 * themselves in the middle. */
template <bool EXACT, bool MIDDLE>
static __device__ __forceinline__ __half2
near_compare(__half2 alike, uint32_t own, const struct near_slice &slice, __half2 alpha)
{
#pragma unroll
    for (int i = 0; i < 9; i++)
        if (MIDDLE || i != 4) {
            const __half2 a = *(const __half2 *)&own, b = *(const __half2 *)&slice.word[i];

            alike = __hadd2(alike, EXACT ? __heq2(a, b) : __hle2(__habs2(__hsub2(a, b)), alpha));
        }
    return alike;
}

/* Sums of levels and numbers of voxels for either of the two. */
struct near_sums {
    uint32_t levels, count;
};

static __device__ __forceinline__ struct near_sums
near_sums_of(const struct near_slice &slice)
{
    uint32_t sum = slice.word[0];

#pragma unroll
    for (int i = 1; i < 9; i++)
        sum += slice.word[i];
    return {sum & NEAR_LEVELS, sum >> 12 & 0x000F000F};
}

static __device__ __forceinline__ void
near_count_voxel(const struct near_table &table, uint32_t own, uint32_t alike, uint32_t sum, uint32_t count)
{
    const uint32_t level = own & (BOXED_MARK - 1), at = (level - 1) * table.width;
    uint32_t from;

    if (own == 0)
        return;
    from = (uint32_t)abs((int32_t)(count * level) - (int32_t)sum);
    atomicAdd(&table.alike[at + alike], 1u);
    if (count == table.width) {
        if (from != 0)
            atomicAdd(&table.full[(level - 1) * table.copies + (threadIdx.x & (table.copies - 1))], from);
        return;
    }
    atomicAdd(&table.present[at + count - 1], 1u);
    if (from != 0)
        atomicAdd(&table.deviation[at + count - 1], from);
}

/* The sums include the voxels themselves. `alike` does not, and must begin with NEAR_COUNT. */
static __device__ __forceinline__ void
near_count(const struct near_table &table, uint32_t own, __half2 alike, struct near_sums sums)
{
    const uint32_t found = *(const uint32_t *)&alike;

    if (sums.count == table.width * 0x00010001) { /* both have all neighbours */
        const uint32_t levels = own & NEAR_LEVELS, all = levels * table.width, places = all + found;
        const uint32_t from = __vmaxu2(all, sums.levels) - __vminu2(all, sums.levels);
        const uint32_t apart = table.copies * (uint32_t)sizeof(uint32_t);

        ptx_add_shared<1>(table.alike_from + (places & 0xFFFF) * (uint32_t)sizeof(uint32_t));
        ptx_add_shared<1>(table.alike_from + (places >> 16) * (uint32_t)sizeof(uint32_t));
        ptx_add_shared(table.full_from + (levels & 0xFFFF) * apart, from & 0xFFFF);
        ptx_add_shared(table.full_from + (levels >> 16) * apart, from >> 16);
        return;
    }
    near_count_voxel(table, own & 0xFFFF, (found & 0xFFFF) - NEAR_COUNT, sums.levels & 0xFFFF, sums.count & 0xFFFF);
    near_count_voxel(table, own >> 16, (found >> 16) - NEAR_COUNT, sums.levels >> 16, sums.count >> 16);
}

/* Walks through slices first .. end - 1 of two columns. `at` is the index of their surroundings in
 * the previous slice. */
template <bool EXACT>
static __device__ __forceinline__ void
near_walk(const struct near_table &table, const uint32_t *box, uint32_t at, uint32_t apart, uint32_t words,
          int32_t first, int32_t end, __half2 alpha)
{
    const __half2 none = __half2half2(__ushort_as_half(NEAR_COUNT));
    uint32_t before = 0;
    __half2 alike_before = none, alike = none;
    struct near_sums sums_before = {0, 0}, sums_at = {0, 0};
    struct near_slice next;

    near_load(box, at, words, &next);
#pragma unroll 2
    for (int32_t z = first - 1; z <= end; z++) {
        struct near_slice slice = next;
        const uint32_t own = slice.word[4];

        at += z < end ? apart : 0; /* the last is loaded again, unused */
        near_load(box, at, words, &next);
        near_shift(&slice);
        const struct near_sums sums = near_sums_of(slice);

        if (z > first)
            near_count(
                table, before, near_compare<EXACT, true>(alike_before, before, slice, alpha),
                {sums_before.levels + sums_at.levels + sums.levels, sums_before.count + sums_at.count + sums.count});
        alike_before = near_compare<EXACT, false>(alike, own, slice, alpha);
        alike = near_compare<EXACT, true>(none, next.word[4], slice, alpha);
        before = own;
        sums_before = sums_at;
        sums_at = sums;
    }
}

/* Walks within slices. `at` is the index in the first one. */
template <bool EXACT>
static __device__ __forceinline__ void
near_walk_slices(const struct near_table &table, const uint32_t *box, uint32_t at, uint32_t apart, uint32_t words,
                 int32_t first, int32_t end, __half2 alpha)
{
    const __half2 none = __half2half2(__ushort_as_half(NEAR_COUNT));

    for (int32_t z = first; z < end; z++, at += apart) {
        struct near_slice slice;

        near_load(box, at, words, &slice);
        const uint32_t own = slice.word[4];

        near_shift(&slice);
        near_count(table, own, near_compare<EXACT, false>(none, own, slice, alpha), near_sums_of(slice));
    }
}

/* Adds the block's table to the matrix. */
static __device__ __forceinline__ void
near_flush(const struct neighbours_job &job, const struct near_table &table, unsigned long long *counts)
{
    const uint32_t plane = job.levels * job.width, all = job.width - 1;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < plane; i += NEAR_THREADS) {
        if (table.alike[i] != 0)
            atomicAdd(&counts[TEXTURE_ALIKE * plane + i], (unsigned long long)table.alike[i]);
        if (table.present[i] != 0)
            atomicAdd(&counts[TEXTURE_PRESENT * plane + i], (unsigned long long)table.present[i]);
        if (table.deviation[i] != 0)
            atomicAdd(&counts[TEXTURE_DEVIATION * plane + i], (unsigned long long)table.deviation[i]);
    }
    for (uint32_t level = threadIdx.x; level < job.levels; level += NEAR_THREADS) {
        unsigned long long from = 0;
        uint32_t voxels = 0;

        for (uint32_t i = 0; i < table.copies; i++)
            from += table.full[level * table.copies + ((i + level) & (table.copies - 1))];
        for (uint32_t n = 0; n < job.width; n++)
            voxels += table.alike[level * job.width + n] - table.present[level * job.width + n];
        if (voxels != 0)
            atomicAdd(&counts[TEXTURE_PRESENT * plane + level * job.width + all], (unsigned long long)voxels);
        if (from != 0)
            atomicAdd(&counts[TEXTURE_DEVIATION * plane + level * job.width + all], from);
    }
}

/* Counts tiles blockIdx.x, blockIdx.x + gridDim.x ... of matrix blockIdx.y: all slices of the box,
 * or slice first + blockIdx.y. */
template <bool EXACT, bool DEEP>
static __global__ void
__launch_bounds__(NEAR_THREADS, NEAR_BLOCKS)
    near_count_part(struct neighbours_job job, struct near_part part, int64_t first, unsigned long long *counts)
{
    extern __shared__ uint32_t near_counters[];
    const uint32_t plane = job.levels * job.width;
    const uint32_t in_slice = (part.columns + NEAR_THREADS - 1) / NEAR_THREADS;
    const int32_t slice = job.per_slice ? (int32_t)(first + blockIdx.y) : 0;
    const int32_t slices = job.per_slice ? slice + 1 : (int32_t)job.box.size[2];
    const uint32_t apart = (uint32_t)(job.box.slice / 2), shared = ptx_shared_address(near_counters);
    const uint32_t *box = (const uint32_t *)cuda_box_slice<uint16_t>(&job.box, -1) - 1;
    const uint32_t of_counter = sizeof(uint32_t);
    const struct near_table table = {
        near_counters,
        near_counters + plane,
        near_counters + 2 * plane,
        near_counters + 3 * plane,
        job.width,
        part.copies,
        ptx_keep(shared - (NEAR_COUNT + job.width) * of_counter),
        ptx_keep(shared + (3 * plane - part.copies + (threadIdx.x & (part.copies - 1))) * of_counter)};

    texture_clear_counters<NEAR_THREADS>(near_counters, 3 * plane + job.levels * part.copies);
    for (uint32_t tile = blockIdx.x; tile < part.tiles; tile += gridDim.x) {
        const uint32_t column = tile % in_slice * NEAR_THREADS + threadIdx.x;
        const int32_t from = slice + (int32_t)(tile / in_slice * part.slices);
        const int32_t end = min(from + (int32_t)part.slices, slices);
        const uint32_t at = (uint32_t)from * apart + column; /* in the previous slice */

        if (column >= part.columns)
            continue;
        if (DEEP)
            near_walk<EXACT>(table, box, at, apart, part.words, from, end, part.alpha);
        else
            near_walk_slices<EXACT>(table, box, at + apart, apart, part.words, from, end, part.alpha);
    }
    near_flush(job, table, counts + (size_t)blockIdx.y * job.entries);
}

static size_t
near_shared(size_t levels, size_t width, uint32_t copies)
{
    return levels * (3 * width + copies) * sizeof(uint32_t);
}

/* Distributes tiles to every processor, few enough per block that no counter overflows. */
static struct near_part
near_cut(const struct neighbours_job *job, size_t matrices, size_t processors, size_t *blocks)
{
    const size_t slices = job->per_slice ? 1 : (size_t)job->box.size[2];
    struct near_part part;
    size_t in_slice, most;

    part.words = (uint32_t)(job->box.row / 2);
    part.columns = part.words * (uint32_t)job->box.size[1];
    part.copies = NEAR_COPIES;
    while (part.copies * job->levels > NEAR_COPIED && part.copies > 1)
        part.copies /= 2;
    part.alpha = __float2half2_rn((float)job->alpha / (1 << 21));
    in_slice = (part.columns + NEAR_THREADS - 1) / NEAR_THREADS;
    *blocks = texture_most(1, processors * NEAR_BLOCKS / matrices);
    part.slices = (uint32_t)texture_least(texture_most(4, in_slice * slices / *blocks / 2), (size_t)NEAR_SLICES);
    part.tiles = (uint32_t)(in_slice * ((slices + part.slices - 1) / part.slices));
    most = UINT32_MAX / ((size_t)TEXTURE_MAX_LEVELS * job->width * 2 * NEAR_THREADS * part.slices);
    *blocks = texture_least(part.tiles, texture_most(*blocks, (part.tiles + most - 1) / most));
    return part;
}

/* Adds matrices first .. first + count - 1 to counts. */
static cudaError_t
near_launch(const struct neighbours_job *job, int64_t first, size_t count, size_t processors,
            unsigned long long *counts, cudaStream_t stream)
{
    size_t blocks;
    const struct near_part part = near_cut(job, count, processors, &blocks);
    const size_t shared = near_shared(job->levels, job->width, part.copies);
    const dim3 grid((unsigned)blocks, (unsigned)count);

    const size_t most = near_shared(TEXTURE_MAX_LEVELS, 27, NEAR_COPIED / TEXTURE_MAX_LEVELS);
    const bool exact = job->alpha == 0;
    auto *const deep = exact ? near_count_part<true, true> : near_count_part<false, true>;
    auto *const flat = exact ? near_count_part<true, false> : near_count_part<false, false>;

    return neighbours_launch(job->deep != 0 ? deep : flat, grid, NEAR_THREADS, shared, most, stream, *job, part, first,
                             counts);
}

#endif
