/*
 * box_march.cu - means of small boxes on the GPU, in one kernel. A block walks along z. A thread keeps the sums along z of
 * some values of a slice, adds the newest value and subtracts the oldest one, which is read again from the cache. The
 * block sums these along x, then y, in shared memory.
 */
#include "kernels/filter/separable_march.cuh"

enum {
    BOX_SIDE = 64, /* outputs of a block along x and y */
    BOX_AROUND = BOX_SIDE + 2 * SEPARABLE_BOX_HALF,
    BOX_COLUMNS = 80, /* threads along x that read; at most BOX_AROUND of them do */
    BOX_BATCH = 10,   /* values that are read at a time */
    BOX_ROWS = 80,    /* rows that they read, or fewer */
};

struct box_pass {
    struct separable_input input;
    struct separable_output output;
    int32_t sides[3];
    enum filter_boundary boundary;
    int half[3];
    int depth; /* slices of a block */
};

/* Sums along z, and those along x too. Odd pitches keep the elements of a column in different banks. */
template <typename Value> struct box_tile {
    Value values[(unsigned)BOX_AROUND][(unsigned)BOX_AROUND + 1];
    Value sums[(unsigned)BOX_AROUND][(unsigned)BOX_SIDE + 1];
    int32_t rows[(unsigned)BOX_ROWS]; /* places of the rows of a slice; negative: 0 */
};

/* Sums SEGMENT boxes along a line, whose element i is at from[i * pitch]. */
template <int SEGMENT, typename Value, typename Use>
static __device__ __forceinline__ void
box_along(const Value *from, int pitch, int half, const Use &use)
{
    Value sum = 0;

    for (int i = 0; i < 2 * half; i++)
        sum += from[i * pitch];
#pragma unroll
    for (int i = 0; i < SEGMENT; i++) {
        sum += from[(i + 2 * half) * pitch];
        use(i, sum);
        sum -= from[i * pitch];
    }
}

/* Adds the values of a slice to the sums along z, and subtracts those of another one. place(i) is that of value i. */
template <bool INSIDE, int SHARE, typename Value, typename Place>
static __device__ __forceinline__ void
box_along_z(const struct box_pass &pass, const struct separable_slice &newest, const struct separable_slice &oldest,
            Value (&totals)[(unsigned)SHARE], const Place &place)
{
#pragma unroll
    for (int first = 0; first < SHARE; first += BOX_BATCH) {
        int32_t places[BOX_BATCH], in[BOX_BATCH] = {}, out[BOX_BATCH] = {};

#pragma unroll
        for (int i = 0; i < BOX_BATCH; i++)
            places[i] = place(first + i);
        if (newest.within)
            separable_read<INSIDE>(pass.input, newest.at, places, in);
        if (oldest.within)
            separable_read<INSIDE>(pass.input, oldest.at, places, out);
        if (newest.within)
            separable_values<INSIDE>(pass.input, places, in);
        if (oldest.within)
            separable_values<INSIDE>(pass.input, places, out);
#pragma unroll
        for (int i = 0; i < BOX_BATCH; i++)
            totals[first + i] += (Value)in[i] - out[i];
    }
}

template <typename Value, int GROUPS, int BLOCKS>
static __global__ void
__launch_bounds__(BOX_COLUMNS *GROUPS, BLOCKS) separable_box_march(const __grid_constant__ struct box_pass pass)
{
    enum { SHARE = BOX_ROWS / GROUPS, SEGMENT = BOX_SIDE / GROUPS };

    extern __shared__ __align__(16) unsigned char box_memory[];
    struct box_tile<Value> &tile = *(struct box_tile<Value> *)box_memory;
    const int32_t across = (pass.sides[0] + BOX_SIDE - 1) / BOX_SIDE, down = (pass.sides[1] + BOX_SIDE - 1) / BOX_SIDE;
    const int32_t left = (int32_t)(blockIdx.x % across) * BOX_SIDE;
    const int32_t top = (int32_t)(blockIdx.x / across % down) * BOX_SIDE;
    const int32_t first = (int32_t)(blockIdx.x / across / down) * pass.depth,
                  end = min(first + pass.depth, pass.sides[2]);
    const int32_t wide = BOX_SIDE + 2 * pass.half[0], tall = BOX_SIDE + 2 * pass.half[1], deep = 2 * pass.half[2] + 1;
    const int32_t thread = (int32_t)threadIdx.x, column = thread % BOX_COLUMNS, group = thread / BOX_COLUMNS;
    const int32_t row = thread % tall, segment = thread / tall * SEGMENT; /* of sums along x */
    const int32_t x = thread % BOX_SIDE, y = thread / BOX_SIDE * SEGMENT; /* of outputs */
    int32_t *to = pass.output.codes + ((int64_t)first * pass.sides[1] + top + y) * pass.sides[0] + left + x;
    const int32_t outputs = left + x < pass.sides[0] ? pass.sides[1] - top - y : 0;
    const int64_t own = filter_place(left + column - pass.half[0], pass.sides[0], pass.boundary);
    const bool reads = column < wide && own >= 0;
    const int32_t start = first - pass.half[2];
    const int64_t bytes = separable_slice_bytes(pass.input, (int64_t)pass.sides[0] * pass.sides[1]);
    struct separable_slice newest = {}, oldest = {};
    Value totals[(unsigned)SHARE] = {};

    const bool regular = top >= pass.half[1] && top - pass.half[1] + BOX_ROWS <= pass.sides[1]; /* rows */
    const int32_t place = (top - pass.half[1] + group) * pass.sides[0] + (int32_t)own, step = GROUPS * pass.sides[0];

    if (thread < BOX_ROWS) {
        const int64_t place = filter_place(top + thread - pass.half[1], pass.sides[1], pass.boundary);

        tile.rows[thread] = thread >= tall || place < 0 ? INT32_MIN : (int32_t)(place * pass.sides[0]);
    }
    __syncthreads();
    for (int32_t z = start; z < end + pass.half[2]; z++) {
        const int32_t last = z - deep;

        separable_go(pass.input, bytes, z, pass.sides[2], pass.boundary, z > start, newest);
        if (last >= start)
            separable_go(pass.input, bytes, last, pass.sides[2], pass.boundary, last > start, oldest);
        if (reads & regular)
            box_along_z<true, SHARE>(pass, newest, oldest, totals, [&](int i) { return place + i * step; });
        else if (reads)
            box_along_z<false, SHARE>(pass, newest, oldest, totals,
                                      [&](int i) { return tile.rows[group + i * GROUPS] + (int32_t)own; });
        if (z < first + pass.half[2])
            continue;
#pragma unroll
        for (int i = 0; i < SHARE; i++)
            if (column < wide && group + i * GROUPS < tall)
                tile.values[group + i * GROUPS][column] = totals[i];
        __syncthreads();
        if (segment < BOX_SIDE)
            box_along<SEGMENT>(&tile.values[row][segment], 1, pass.half[0],
                               [&](int i, Value sum) { tile.sums[row][segment + i] = sum; });
        __syncthreads(); /* the sums of the last slice have been read, too */
        if (y < BOX_SIDE)
            box_along<SEGMENT>(&tile.sums[y][x], BOX_SIDE + 1, pass.half[1], [&](int i, Value sum) {
                if (i < outputs)
                    to[(int64_t)i * pass.sides[0]] = filter_code(__dmul_rn((double)sum, pass.output.factor));
            });
        to += (int64_t)pass.sides[0] * pass.sides[1];
    }
}

/* ------------------------------------------------------------------------------- the host -- */

bool
separable_box_fits(const struct separable_plan *plan, const struct image_extent *extent)
{
    return plan->half[0] <= SEPARABLE_BOX_HALF && image_slice_voxels(extent) < INT32_MAX;
}

template <typename Value, int GROUPS, int BLOCKS>
static int
box_start(struct cuda_lane *lane, struct box_pass *pass, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int64_t tiles =
        (int64_t)((pass->sides[0] + BOX_SIDE - 1) / BOX_SIDE) * ((pass->sides[1] + BOX_SIDE - 1) / BOX_SIDE);
    const size_t bytes = sizeof(struct box_tile<Value>);

    pass->depth = separable_depth(device, BLOCKS, tiles, pass->sides[2], 2 * pass->half[2]);
    const int64_t blocks = tiles * ((pass->sides[2] + pass->depth - 1) / pass->depth);

    CUDA_TRY(device, cudaFuncSetAttribute(separable_box_march<Value, GROUPS, BLOCKS>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    separable_box_march<Value, GROUPS, BLOCKS><<<(unsigned)blocks, BOX_COLUMNS * GROUPS, bytes, lane->work>>>(*pass);
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
    pass.sides[0] = (int32_t)extent->columns;
    pass.sides[1] = (int32_t)extent->rows;
    pass.sides[2] = (int32_t)extent->slices;
    pass.boundary = plan->demand.options.boundary;
    memcpy(pass.half, plan->half, sizeof(pass.half));
    return narrow ? box_start<int32_t, 4, 2>(lane, &pass, error) : box_start<int64_t, 4, 2>(lane, &pass, error);
}
