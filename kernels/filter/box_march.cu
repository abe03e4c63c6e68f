/*
 * box_march.cu - means of small boxes on the GPU, in one kernel. A block sums a tile of each slice along x and y in shared
 * memory, and walks along z. It keeps the sums of as many slices as a box has, and adds the newest and subtracts the oldest.
 */
#include "kernels/filter/separable_march.cuh"

enum {
    BOX_LANES = 32,
    BOX_WARPS = 8,
    BOX_THREADS = BOX_LANES * BOX_WARPS,
    BOX_SEGMENT = 8, /* sums along x of a thread */
    BOX_DEPTH = 128, /* slices of a block */
    BOX_ACROSS = BOX_LANES + 2 * SEPARABLE_BOX_HALF,
};

struct box_pass {
    struct separable_input input;
    struct separable_output output;
    int64_t sides[3];
    enum filter_boundary boundary;
    int half[3];
};

/* Rows of values and of sums begin in different banks. */
template <typename Value, int ROWS> struct box_tile {
    int32_t values[(unsigned)(ROWS + 2 * SEPARABLE_BOX_HALF)][BOX_ACROSS + 1];
    Value sums[(unsigned)(ROWS + 2 * SEPARABLE_BOX_HALF)][BOX_LANES + 1];
    Value slices[1][(unsigned)ROWS][BOX_LANES]; /* as many as a box has */
};

/* Sums the rows of a tile along x. */
template <typename Value, int ROWS>
static __device__ __forceinline__ void
box_along_x(const struct box_pass &pass, struct box_tile<Value, ROWS> &tile)
{
    const int each = BOX_LANES / BOX_SEGMENT, around = 2 * pass.half[0];

    for (int i = (int)threadIdx.x; i < (ROWS + 2 * pass.half[1]) * each; i += BOX_THREADS) {
        const int row = i / each, first = i % each * BOX_SEGMENT;
        Value sum = 0;

        for (int x = first; x < first + around; x++)
            sum += tile.values[row][x];
#pragma unroll
        for (int x = first; x < first + BOX_SEGMENT; x++) {
            sum += tile.values[row][x + around];
            tile.sums[row][x] = sum;
            sum -= tile.values[row][x];
        }
    }
}

/* Each thread has OUTPUTS adjacent rows of a column. */
template <typename Value, int OUTPUTS>
static __global__ void
__launch_bounds__(BOX_THREADS) separable_box_march(struct box_pass pass)
{
    enum {
        ROWS = BOX_WARPS * OUTPUTS,
        SHARE = ((ROWS + 2 * SEPARABLE_BOX_HALF) * BOX_ACROSS + BOX_THREADS - 1) / BOX_THREADS,
    };

    extern __shared__ __align__(16) unsigned char box_memory[];
    struct box_tile<Value, ROWS> &tile = *(struct box_tile<Value, ROWS> *)box_memory;
    const int64_t across = (pass.sides[0] + BOX_LANES - 1) / BOX_LANES, down = (pass.sides[1] + ROWS - 1) / ROWS;
    const int64_t left = blockIdx.x % across * BOX_LANES, top = blockIdx.x / across % down * ROWS;
    const int64_t first = blockIdx.x / across / down * BOX_DEPTH, slice = pass.sides[0] * pass.sides[1];
    const int64_t end = min(first + BOX_DEPTH, pass.sides[2]);
    const int lane = (int)threadIdx.x % BOX_LANES, row = (int)threadIdx.x / BOX_LANES * OUTPUTS;
    const int wide = BOX_LANES + 2 * pass.half[0], size = (ROWS + 2 * pass.half[1]) * wide, deep = 2 * pass.half[2] + 1;
    int32_t from[SHARE], next[SHARE]; /* places of a thread's values within a slice; negative: 0 */
    int32_t *to[SHARE];               /* in the tile; NULL: none */
    Value totals[OUTPUTS] = {};
    bool within = false; /* the slice of `next` is in the volume */
    int oldest = 0;

#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        const int at = (int)threadIdx.x + i * BOX_THREADS;
        const int64_t x = filter_place(left + at % wide - pass.half[0], pass.sides[0], pass.boundary);
        const int64_t y = filter_place(top + at / wide - pass.half[1], pass.sides[1], pass.boundary);

        from[i] = at >= size || x < 0 || y < 0 ? -1 : (int32_t)(y * pass.sides[0] + x);
        to[i] = at < size ? &tile.values[at / wide][at % wide] : NULL;
    }
    for (int s = 0; s < deep; s++)
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++)
            tile.slices[s][row + o][lane] = 0;
    const auto fetch = [&](int64_t z) {
        const int64_t place = filter_place(z, pass.sides[2], pass.boundary);

        within = place >= 0;
        separable_read(pass.input, max(place, (int64_t)0) * slice, from, next);
    };

    fetch(first - pass.half[2]);
    for (int64_t z = first - pass.half[2]; z < end + pass.half[2]; z++) {
        /* The values of the last slice have been read: their sums were complete for all threads. */
#pragma unroll
        for (int i = 0; i < SHARE; i++)
            if (to[i])
                *to[i] = within && from[i] >= 0 ? separable_value(pass.input, next[i]) : 0;
        __syncthreads();
        fetch(z + 1);
        box_along_x(pass, tile);
        __syncthreads();
        Value sum = 0;

        for (int y = row; y < row + 2 * pass.half[1]; y++)
            sum += tile.sums[y][lane];
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) {
            sum += tile.sums[row + o + 2 * pass.half[1]][lane];
            totals[o] += sum - tile.slices[oldest][row + o][lane];
            tile.slices[oldest][row + o][lane] = sum;
            sum -= tile.sums[row + o][lane];
            const int64_t x = left + lane, y = top + row + o;

            if (z - pass.half[2] >= first && x < pass.sides[0] && y < pass.sides[1])
                pass.output.codes[(z - pass.half[2]) * slice + y * pass.sides[0] + x] =
                    filter_code(__dmul_rn((double)totals[o], pass.output.factor));
        }
        oldest = oldest + 1 < deep ? oldest + 1 : 0;
    }
}

/* ------------------------------------------------------------------------------- the host -- */

bool
separable_box_fits(const struct separable_plan *plan, const struct image_extent *extent)
{
    return plan->half[0] <= SEPARABLE_BOX_HALF && image_slice_voxels(extent) < INT32_MAX;
}

template <typename Value, int OUTPUTS>
static int
box_start(struct cuda_lane *lane, const struct box_pass *pass, struct error *error)
{
    const int64_t rows = BOX_WARPS * OUTPUTS, deep = 2 * pass->half[2] + 1;
    const int64_t tiles = ((pass->sides[0] + BOX_LANES - 1) / BOX_LANES) * ((pass->sides[1] + rows - 1) / rows) *
                          ((pass->sides[2] + BOX_DEPTH - 1) / BOX_DEPTH);
    const size_t bytes =
        sizeof(struct box_tile<Value, BOX_WARPS * OUTPUTS>) + (size_t)((deep - 1) * rows * BOX_LANES) * sizeof(Value);
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaFuncSetAttribute(separable_box_march<Value, OUTPUTS>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    separable_box_march<Value, OUTPUTS><<<(unsigned)tiles, BOX_THREADS, bytes, lane->work>>>(*pass);
    CUDA_LAUNCHED(device);
    return 0;
}

int
separable_box_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                    const struct separable_output *output, bool narrow, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    struct box_pass pass = {};

    pass.input = *input;
    pass.output = *output;
    pass.sides[0] = extent->columns;
    pass.sides[1] = extent->rows;
    pass.sides[2] = extent->slices;
    pass.boundary = plan->demand.options.boundary;
    memcpy(pass.half, plan->half, sizeof(pass.half));
    return narrow ? box_start<int32_t, 4>(lane, &pass, error) : box_start<int64_t, 2>(lane, &pass, error);
}
