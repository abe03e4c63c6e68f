/*
 * neighbours_lacking.cuh - voxels that lack some of the neighbours of one voxel each way, for
 * neighbours_bits.cuh, which has counted their deviations as if they had all, levels of 0 among them, and says
 * which they are: a bit each, of windows of 32 voxels. A warp looks at 32 windows at a time, and counts the voxels
 * that it finds again, 32 together.
 */
#ifndef NOCTULE_NEIGHBOURS_LACKING_CUH
#define NOCTULE_NEIGHBOURS_LACKING_CUH

#include "kernels/texture/neighbours_cuda.cuh"

enum {
    LACKING_THREADS = 256,
    LACKING_BLOCKS = 8, /* of a multiprocessor */
    LACKING_QUEUE = 64, /* of a warp: a turn's voxels, and fewer than a turn's that wait */
};

/* Words of a slice: of each row a word for each window. */
static __host__ __device__ __forceinline__ size_t
lacking_words(const struct cuda_box &box)
{
    return (size_t)(box.size[1] * boxed_windows(box.size[0]));
}

/* Those of the box's first slice. They stand behind it: a box of bytes takes half of the room. */
static __device__ __forceinline__ uint32_t *
lacking_of(const struct cuda_box &box)
{
    return (uint32_t *)(cuda_box_slice<uint8_t>(&box, box.size[2] + 1) + BOXED_LEAD);
}

/* What a block counts into, in shared memory: [levels][width], all of them with that of those that lack none. */
struct lacking_table {
    uint32_t *present, *deviation;
    int32_t width;
};

/* Of the latter, `deviation` has what was counted and should not be. */
template <bool DEEP>
static __device__ __forceinline__ void
lacking_count(const struct lacking_table &table, const struct cuda_box &box, const uint8_t *at)
{
    const int32_t level = *at, all = table.width - 1;
    int32_t count = -1, sum = -level; /* without the voxel itself */

#pragma unroll
    for (int64_t z = DEEP ? -1 : 0; z <= (DEEP ? 1 : 0); z++)
#pragma unroll
        for (int64_t y = -1; y <= 1; y++)
#pragma unroll
            for (int64_t x = -1; x <= 1; x++) {
                const int32_t other = __ldg(at + z * box.slice + y * box.row + x);

                count += other > 0;
                sum += other;
            }
    const int32_t of_level = (level - 1) * table.width;

    atomicAdd(&table.present[of_level + count], 1u);
    atomicAdd(&table.deviation[of_level + count], (uint32_t)abs(count * level - sum));
    atomicAdd(&table.deviation[of_level + all], (uint32_t)abs(all * level - sum));
}

/* Voxels of a warp that are to be counted. */
struct lacking_queue {
    const uint8_t **waiting; /* shared memory */
    uint32_t count;
};

/* Of the last `count` each lane one. */
template <bool DEEP>
static __device__ __forceinline__ void
lacking_count_last(const struct lacking_table &table, const struct cuda_box &box,
                   struct lacking_queue *queue, uint32_t count)
{
    const uint32_t lane = threadIdx.x % 32;

    __syncwarp();
    queue->count -= count;
    if (lane < count)
        lacking_count<DEEP>(table, box, queue->waiting[queue->count + lane]);
    __syncwarp();
}

/* Those of a window of each lane. */
template <bool DEEP>
static __device__ __forceinline__ void
lacking_enqueue(const struct lacking_table &table, const struct cuda_box &box,
                const uint8_t *window, uint32_t lacking, struct lacking_queue *queue)
{
    const uint32_t before = (1u << threadIdx.x % 32) - 1;
    uint32_t lanes;

    while ((lanes = __ballot_sync(~0u, lacking != 0)) != 0) {
        if (lacking != 0)
            queue->waiting[queue->count + (uint32_t)__popc(lanes & before)] =
                window + __ffs((int)lacking) - 1;
        lacking &= lacking - 1;
        queue->count += (uint32_t)__popc(lanes);
        if (queue->count >= 32)
            lacking_count_last<DEEP>(table, box, queue, 32);
    }
}

/* The block's table into the matrix. */
static __device__ __forceinline__ void
lacking_flush(const struct lacking_table &table, uint32_t levels, unsigned long long *counts)
{
    const uint32_t width = (uint32_t)table.width, plane = levels * width;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < plane; i += LACKING_THREADS) {
        const unsigned long long present = table.present[i], deviation = table.deviation[i];
        const uint32_t all = i - i % width + width - 1;

        if (present != 0) {
            atomicAdd(&counts[TEXTURE_PRESENT * plane + i], present);
            atomicAdd(&counts[TEXTURE_PRESENT * plane + all], 0 - present);
        }
        if (deviation != 0)
            atomicAdd(&counts[TEXTURE_DEVIATION * plane + i], i == all ? 0 - deviation : deviation);
    }
}

/* Part blockIdx.x of matrix blockIdx.y: of all slices of the box, or of slice first + blockIdx.y. */
template <bool DEEP>
static __global__ void
__launch_bounds__(LACKING_THREADS)
    lacking_count_part(struct neighbours_job job, int64_t first, unsigned long long *counts)
{
    extern __shared__ uint32_t lacking_counters[];
    __shared__ const uint8_t *waiting[LACKING_THREADS / 32][LACKING_QUEUE];
    const uint32_t windows = (uint32_t)boxed_windows(job.box.size[0]);
    const uint32_t rows = (uint32_t)job.box.size[1], plane = job.levels * job.width;
    const int64_t slice = job.per_slice ? first + blockIdx.y : 0;
    const uint32_t words =
        (uint32_t)(lacking_words(job.box) * (job.per_slice ? 1 : (size_t)job.box.size[2]));
    const uint32_t *of_windows = lacking_of(job.box) + (size_t)slice * lacking_words(job.box);
    const uint8_t *voxels = (const uint8_t *)job.box.levels + slice * job.box.slice;
    const struct lacking_table table = {lacking_counters, lacking_counters + plane,
                                        (int32_t)job.width};
    struct lacking_queue queue = {waiting[threadIdx.x / 32], 0};

    texture_clear_counters<LACKING_THREADS>(lacking_counters, 2 * plane);
    for (uint32_t i = blockIdx.x * LACKING_THREADS + threadIdx.x; i - threadIdx.x % 32 < words;
         i += gridDim.x * LACKING_THREADS) {
        const uint32_t lacking = i < words ? of_windows[i] : 0, row = i / windows;

        lacking_enqueue<DEEP>(table, job.box,
                              voxels + row / rows * job.box.slice + row % rows * job.box.row +
                                  i % windows * BOXED_WINDOW,
                              lacking, &queue);
    }
    lacking_count_last<DEEP>(table, job.box, &queue, queue.count);
    lacking_flush(table, job.levels, counts + (size_t)blockIdx.y * job.entries);
}

/* Puts matrices first .. first + count - 1 right. Blocks for all processors, and so many that none of their
 * counters overflows. */
static void
lacking_launch(const struct neighbours_job *job, int64_t first, size_t count, size_t processors,
               unsigned long long *counts, cudaStream_t stream)
{
    const size_t words = lacking_words(job->box) * (job->per_slice ? 1 : (size_t)job->box.size[2]);
    const size_t most = UINT32_MAX / ((size_t)job->levels * job->width * 32 * LACKING_THREADS);
    const size_t turns = (words + LACKING_THREADS - 1) / LACKING_THREADS;
    const size_t blocks =
        texture_most((turns + most - 1) / most,
                     texture_least(turns, texture_most(1, processors * LACKING_BLOCKS / count)));
    const size_t shared = 2 * (size_t)job->levels * job->width * sizeof(uint32_t);

    (job->deep != 0
         ? lacking_count_part<true>
         : lacking_count_part<false>)<<<dim3((unsigned)blocks, (unsigned)count), LACKING_THREADS,
                                        shared, stream>>>(*job, first, counts);
}

#endif
