/*
 * coarse_cuda.cu - mean values of blocks on the GPU, one thread per block. The threads of a warp read consecutive
 * voxels of a row. A thread loads several rows of its block before it uses them, so that enough loads are under way.
 */
#include "kernels/coarse/coarse_cuda.cuh"
#include "kernels/coarse/coarse_rule.h"
#include "kernels/range/range.h"

enum {
    COARSE_THREADS = 256,
    COARSE_ACROSS = 64, /* blocks along x per block of threads; its other threads have the next rows */
    COARSE_DOWN = COARSE_THREADS / COARSE_ACROSS,
    COARSE_BATCH = 4,    /* rows */
    COARSE_GRID = 65535, /* max blocks of threads along y and z */
};

struct coarse_blocks {
    const void *voxels;
    int64_t sides[3]; /* of the volume */
    int64_t factor[3];
    int64_t blocks_to[3]; /* number of blocks */
    struct range_clipping clip;
    struct coarse_rule rules[8]; /* bit 0, 1, 2: the last block along x, y, z */
    int16_t *blocks;
};

/* Adds the voxels of a block: ACROSS per row, few in all. */
template <typename Value, int ACROSS>
static __device__ __forceinline__ uint32_t
coarse_sum_few(const struct coarse_blocks &job, const Value *voxels, const int64_t size[3])
{
    const int rows = (int)(size[1] * size[2]);
    const int64_t to_slice = (job.sides[1] - size[1]) * job.sides[0];
    int64_t next = 0; /* index of the next row */
    uint32_t sum = 0;

    for (int k = 0, y = 0; k < rows; k += COARSE_BATCH) {
        Value loaded[COARSE_BATCH][ACROSS];

#pragma unroll
        for (int i = 0; i < COARSE_BATCH; i++) {
#pragma unroll
            for (int x = 0; x < ACROSS; x++)
                loaded[i][x] = k + i < rows ? voxels[next + x] : 0;
            next += job.sides[0];
            y += 1;
            if (y == (int)size[1]) {
                y = 0;
                next += to_slice;
            }
        }
#pragma unroll
        for (int i = 0; i < COARSE_BATCH; i++)
#pragma unroll
            for (int x = 0; x < ACROSS; x++)
                sum += k + i < rows ? range_clipped(&job.clip, loaded[i][x]) : 0;
    }
    return sum;
}

/* ACROSS: voxels of a block along x if all blocks have few voxels, otherwise 0. */
template <typename Value, int ACROSS>
static __device__ __forceinline__ int16_t
coarse_take_mean(const struct coarse_blocks &job, const int64_t at[3])
{
    int64_t first[3], size[3];
    int number = 0;

    for (int axis = 0; axis < 3; axis++) {
        first[axis] = at[axis] * job.factor[axis];
        size[axis] = min(job.factor[axis], job.sides[axis] - first[axis]);
        number |= (at[axis] + 1 == job.blocks_to[axis]) << axis;
    }
    const struct coarse_rule *rule = &job.rules[number];
    const Value *voxels = (const Value *)job.voxels + (first[2] * job.sides[1] + first[1]) * job.sides[0] + first[0];

    if constexpr (ACROSS > 0)
        if (size[0] == ACROSS)
            return coarse_value_of_few(rule, coarse_sum_few<Value, ACROSS>(job, voxels, size));
    uint64_t sum = 0;

    for (int64_t z = 0; z < size[2]; z++)
        for (int64_t y = 0; y < size[1]; y++)
            for (int64_t x = 0; x < size[0]; x++)
                sum += range_clipped(&job.clip, voxels[(z * job.sides[1] + y) * job.sides[0] + x]);

    return rule->multiplier == 0 ? coarse_value_of_many(rule, sum) : coarse_value_of_few(rule, sum);
}

template <typename Value, int ACROSS>
static __global__ void
__launch_bounds__(COARSE_THREADS) coarse_take_means(struct coarse_blocks job)
{
    const int64_t across = job.blocks_to[0], down = job.blocks_to[1];
    const int64_t left = (int64_t)blockIdx.x * COARSE_ACROSS + threadIdx.x % COARSE_ACROSS;
    const int64_t top = (int64_t)blockIdx.y * COARSE_DOWN + threadIdx.x / COARSE_ACROSS;

    for (int64_t z = blockIdx.z; z < job.blocks_to[2]; z += gridDim.z)
        for (int64_t y = top; y < down; y += (int64_t)gridDim.y * COARSE_DOWN)
            for (int64_t x = left; x < across; x += (int64_t)gridDim.x * COARSE_ACROSS) {
                const int64_t at[3] = {x, y, z};

                job.blocks[(z * down + y) * across + x] = coarse_take_mean<Value, ACROSS>(job, at);
            }
}

/* There are at most as many blocks as voxels. */
static void
cuda_coarse_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_take(&memory->device, (int16_t **)kernels_state(lane, KERNELS_COARSE), (size_t)image_voxels(&lane->extent));
}

template <typename Value>
static void
coarse_launch(struct cuda_lane *lane, const struct coarse_blocks *job)
{
    const int64_t across = (job->blocks_to[0] + COARSE_ACROSS - 1) / COARSE_ACROSS;
    const int64_t down = (job->blocks_to[1] + COARSE_DOWN - 1) / COARSE_DOWN;
    const dim3 grid((unsigned)min(across, (int64_t)COARSE_GRID), (unsigned)min(down, (int64_t)COARSE_GRID),
                    (unsigned)min(job->blocks_to[2], (int64_t)COARSE_GRID));
    const bool few = job->rules[0].multiplier != 0;

    if (few && job->factor[0] == 1)
        coarse_take_means<Value, 1><<<grid, COARSE_THREADS, 0, lane->work>>>(*job);
    else if (few && job->factor[0] == 2)
        coarse_take_means<Value, 2><<<grid, COARSE_THREADS, 0, lane->work>>>(*job);
    else if (few && job->factor[0] == 3)
        coarse_take_means<Value, 3><<<grid, COARSE_THREADS, 0, lane->work>>>(*job);
    else
        coarse_take_means<Value, 0><<<grid, COARSE_THREADS, 0, lane->work>>>(*job);
}

int
cuda_coarse_queue(struct cuda_lane *lane, const struct coarse_request *request, int16_t **blocks, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent, *grid = &request->grid.extent;
    struct coarse_blocks job = {lane->device_voxels,
                                {extent->columns, extent->rows, extent->slices},
                                {request->grid.factor[0], request->grid.factor[1], request->grid.factor[2]},
                                {grid->columns, grid->rows, grid->slices}};

    job.clip = range_clipping_for(lane->base.pixel, {request->lo, request->hi}, request->padding, 0);
    job.blocks = *(int16_t **)kernels_state(&lane->base, KERNELS_COARSE);
    for (int rule = 0; rule < 8; rule++) {
        int64_t voxels = 1;

        for (int axis = 0; axis < 3; axis++)
            voxels *= rule >> axis & 1 ? job.sides[axis] - (job.blocks_to[axis] - 1) * job.factor[axis]
                                       : min(job.factor[axis], job.sides[axis]);
        job.rules[rule] = coarse_rule_for(request, voxels);
    }

    if (lane->base.pixel == IMAGE_UINT8)
        coarse_launch<uint8_t>(lane, &job);
    else
        coarse_launch<uint16_t>(lane, &job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    *blocks = job.blocks;
    return 0;
}

static int
cuda_coarse_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct coarse_request *request = (const struct coarse_request *)given;
    int16_t *blocks;
    const int rc = cuda_coarse_queue(cuda_lane_of(base), request, &blocks, error);

    return rc ? rc
              : cuda_result_copy(cuda_lane_of(base), request->blocks, blocks,
                                 (size_t)image_voxels(&request->grid.extent) * sizeof(*blocks), error);
}

const struct kernels_op cuda_coarse_op = {
    .name = "the grid of blocks",
    .state_size = sizeof(int16_t *),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cuda_coarse_place,
    .run = cuda_coarse_run,
};
