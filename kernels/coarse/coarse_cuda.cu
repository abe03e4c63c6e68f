/*
 * coarse_cuda.cu - mean values of blocks on the GPU, one thread per block. The threads of a warp read consecutive
 * voxels of a row, so that each line of memory is read once.
 */
#include "kernels/coarse/coarse_cuda.cuh"
#include "kernels/coarse/coarse_rule.h"
#include "kernels/range/range.h"

enum { COARSE_THREADS = 256 };

struct coarse_blocks {
    const void *voxels;
    int64_t columns, rows, slices; /* of the volume */
    int64_t factor[3];
    int64_t across, down, count; /* blocks along x and y, and of the grid */
    struct range_clipping clip;
    struct coarse_rule rules[8]; /* bit 0, 1, 2: the last block along x, y, z */
    int16_t *blocks;
};

/* ACROSS: voxels of a block along x if all blocks have few voxels, otherwise 0. */
template <typename Value, int ACROSS>
static __device__ __forceinline__ uint64_t
coarse_sum(const struct coarse_blocks &job, const int64_t first[3], const int64_t size[3])
{
    const Value *voxels = (const Value *)job.voxels + (first[2] * job.rows + first[1]) * job.columns + first[0];
    uint64_t sum = 0;

    for (int64_t z = 0; z < size[2]; z++)
#pragma unroll 4
        for (int64_t y = 0; y < size[1]; y++) {
            const Value *row = voxels + (z * job.rows + y) * job.columns;
            uint32_t part = 0;

            if (ACROSS > 0 && size[0] == ACROSS) {
#pragma unroll
                for (int x = 0; x < ACROSS; x++)
                    part += range_clipped(&job.clip, row[x]);
                sum += part;
                continue;
            }
            for (int64_t x = 0; x < size[0]; x++)
                sum += range_clipped(&job.clip, row[x]);
        }
    return sum;
}

template <typename Value, int ACROSS>
static __global__ void
__launch_bounds__(COARSE_THREADS) coarse_take_means(struct coarse_blocks job)
{
    const int64_t sides[3] = {job.columns, job.rows, job.slices};

    for (int64_t i = (int64_t)blockIdx.x * COARSE_THREADS + threadIdx.x; i < job.count;
         i += (int64_t)gridDim.x * COARSE_THREADS) {
        const int64_t at[3] = {i % job.across, i / job.across % job.down, i / job.across / job.down};
        int64_t first[3], size[3];
        int rule = 0;

        for (int axis = 0; axis < 3; axis++) {
            first[axis] = at[axis] * job.factor[axis];
            size[axis] = min(job.factor[axis], sides[axis] - first[axis]);
            rule |= (first[axis] + job.factor[axis] >= sides[axis]) << axis;
        }
        const uint64_t sum = coarse_sum<Value, ACROSS>(job, first, size);

        job.blocks[i] = ACROSS > 0                        ? coarse_value_of_few(&job.rules[rule], sum)
                        : job.rules[rule].multiplier == 0 ? coarse_value_of_many(&job.rules[rule], sum)
                                                          : coarse_value_of_few(&job.rules[rule], sum);
    }
}

static int16_t **
cuda_coarse_state(const struct kernels_lane *lane)
{
    return (int16_t **)kernels_state(lane, KERNELS_COARSE);
}

/* There are at most as many blocks as voxels. */
static void
cuda_coarse_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_take(&memory->device, cuda_coarse_state(lane), (size_t)image_voxels(&lane->extent));
}

static struct coarse_blocks
coarse_blocks_for(struct cuda_lane *lane, const struct coarse_request *request)
{
    const struct image_extent *extent = &lane->base.extent, *grid = &request->grid.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    const int64_t blocks[3] = {grid->columns, grid->rows, grid->slices};
    const struct image_range limits = {request->lo, request->hi};
    struct coarse_blocks job = {};

    job.voxels = lane->device_voxels;
    job.columns = extent->columns;
    job.rows = extent->rows;
    job.slices = extent->slices;
    job.across = grid->columns;
    job.down = grid->rows;
    job.count = image_voxels(grid);
    job.clip = range_clipping_for(lane->base.pixel, limits, request->padding, 0);
    job.blocks = *cuda_coarse_state(&lane->base);
    for (int rule = 0; rule < 8; rule++) {
        int64_t voxels = 1;

        for (int axis = 0; axis < 3; axis++) {
            const int64_t factor = job.factor[axis] = request->grid.factor[axis];

            voxels *= rule >> axis & 1 ? sides[axis] - (blocks[axis] - 1) * factor : min(factor, sides[axis]);
        }
        job.rules[rule] = coarse_rule_for(request, voxels);
    }
    return job;
}

template <typename Value>
static void
coarse_launch(struct cuda_lane *lane, const struct coarse_blocks *job)
{
    const int64_t wanted = (job->count + COARSE_THREADS - 1) / COARSE_THREADS;
    const unsigned blocks = (unsigned)min(wanted, (int64_t)1 << 20);
    const bool few = job->rules[0].multiplier != 0;

    if (few && job->factor[0] == 1)
        coarse_take_means<Value, 1><<<blocks, COARSE_THREADS, 0, lane->work>>>(*job);
    else if (few && job->factor[0] == 2)
        coarse_take_means<Value, 2><<<blocks, COARSE_THREADS, 0, lane->work>>>(*job);
    else if (few && job->factor[0] == 3)
        coarse_take_means<Value, 3><<<blocks, COARSE_THREADS, 0, lane->work>>>(*job);
    else
        coarse_take_means<Value, 0><<<blocks, COARSE_THREADS, 0, lane->work>>>(*job);
}

int
cuda_coarse_queue(struct cuda_lane *lane, const struct coarse_request *request, int16_t **blocks, struct error *error)
{
    const struct coarse_blocks job = coarse_blocks_for(lane, request);

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
