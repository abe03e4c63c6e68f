/*
 * separable_walk.cu - the Laplacian of Gaussian on the GPU, in two kernels. The first filters along x and y: a block filters
 * a tile of a slice in shared memory. A thread has several outputs in a row, so that it reads each value once for all of
 * them, and their sums are independent. The second walks along z. A thread keeps the sums of its next outputs, so that it
 * reads each value once. Weights are symmetric: half of them are in registers. Weights in constant memory would be read one
 * by one.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/filter/separable_march.cuh"

enum {
    WALK_MOST = 25, /* max taps */

    TILE_COLUMNS = 32,
    TILE_WARPS = 8,
    TILE_THREADS = TILE_COLUMNS * TILE_WARPS,
    TILE_ACROSS = 8, /* outputs of a thread along x */
    TILE_DOWN = 13,  /* and along y */
    TILE_ROWS = TILE_WARPS * TILE_DOWN,
    TILE_READERS = 64, /* threads of a row that is read */
    TILE_BATCH = 32,   /* values that are read at a time */

    DEEP_THREADS = 64, /* columns */
    DEEP_ROWS = 256,   /* outputs of a block along z */
    DEEP_STAGE = 4,    /* slices that are copied at a time */
    DEEP_STAGES = 4,   /* of them in shared memory */
    DEEP_BLOCKS = 6,   /* of a multiprocessor */
};

/* The weights of two kernels from the first one to the middle, in registers. */
template <int WIDTH> struct walk_weights {
    double of[2][(unsigned)(WIDTH / 2 + 1)];
};

/* Kernel 0 is the Gaussian, and kernel 1 its second derivative. The first plane is the sum of kernel 1 along x and 0 along y,
 * and 0 along x and 1 along y; it is filtered by kernel 0 along z. The second one is kernel 0 along x and y, then 1. */
struct walk_pass {
    struct separable_input input;
    double *planes[2];
    int32_t *codes;
    double factor;
    int32_t sides[3];
    enum filter_boundary boundary;
    const double *weights[2]; /* across and along slices: rows of `width` taps per kernel of the plan */
    int width[2], kernel[2];  /* the rows of kernels 0 and 1 */
};

/* Reads weights. Those beyond the taps are 0, which leaves sums as they are. */
template <int WIDTH>
static __device__ __forceinline__ void
walk_take(const struct walk_pass &pass, int way, struct walk_weights<WIDTH> &weights)
{
    const int width = pass.width[way], beyond = (WIDTH - width) / 2;

#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int p = 0; p <= WIDTH / 2; p++)
            weights.of[k][p] = p < beyond ? 0 : pass.weights[way][pass.kernel[k] * width + p - beyond];
}

static __device__ __forceinline__ constexpr int
walk_mirrored(int p, int width)
{
    return p <= width / 2 ? p : width - 1 - p;
}

/* Adds a value to the sums of the next outputs. Returns the sum that it completes. */
template <int WIDTH>
static __device__ __forceinline__ double
walk_add(const struct walk_weights<WIDTH> &weights, int kernel, double value, double (&sums)[(unsigned)(WIDTH - 1)])
{
    const double(&own)[(unsigned)(WIDTH / 2 + 1)] = weights.of[kernel];
    const double complete = __fma_rn(own[0], value, sums[0]);

#pragma unroll
    for (int p = 0; p < WIDTH - 2; p++)
        sums[p] = __fma_rn(own[walk_mirrored(WIDTH - 2 - p, WIDTH)], value, sums[p + 1]);
    sums[WIDTH - 2] = __fma_rn(own[0], value, 0.0);
    return complete;
}

/* ------------------------------------------------------------------------- along x and y -- */

/* Values, and rows that are filtered along x. Odd pitches keep the elements of a column in different banks. */
template <int WIDTH> struct walk_tile {
    static constexpr int TALL = TILE_ROWS + WIDTH - 1, WIDE = TILE_COLUMNS + WIDTH - 1;
    double filtered[2][(unsigned)TALL][(unsigned)TILE_COLUMNS + 1];
    int32_t values[(unsigned)TALL][(unsigned)WIDE + 1];
    int32_t rows[(unsigned)TALL]; /* places within a slice; negative: 0 */
};

template <int WIDTH>
static __device__ __forceinline__ void
tile_read(const struct walk_pass &pass, int32_t left, const unsigned char *at, struct walk_tile<WIDTH> &tile)
{
    enum { TALL = walk_tile<WIDTH>::TALL, EACH = TILE_THREADS / TILE_READERS };

    const int32_t thread = (int32_t)threadIdx.x, column = thread % TILE_READERS;
    const int32_t x = (int32_t)filter_place(left + column - WIDTH / 2, pass.sides[0], pass.boundary);

    if (column >= walk_tile<WIDTH>::WIDE)
        return;
    for (int32_t first = thread / TILE_READERS; first < TALL; first += EACH * TILE_BATCH) {
        int32_t places[TILE_BATCH], stored[TILE_BATCH];

#pragma unroll
        for (int i = 0; i < TILE_BATCH; i++)
            places[i] = x < 0 || first + i * EACH >= TALL ? -1 : tile.rows[first + i * EACH] + x;
        separable_read(pass.input, at, places, stored);
        separable_values(pass.input, places, stored);
#pragma unroll
        for (int i = 0; i < TILE_BATCH; i++)
            if (first + i * EACH < TALL)
                tile.values[first + i * EACH][column] = stored[i];
    }
}

template <int WIDTH>
static __device__ __forceinline__ void
tile_along_x(const struct walk_weights<WIDTH> &weights, struct walk_tile<WIDTH> &tile)
{
    enum { TALL = walk_tile<WIDTH>::TALL, GROUPS = TILE_COLUMNS / TILE_ACROSS, LANES = 32 };

    for (int task = (int)threadIdx.x / LANES; task < (TALL + LANES - 1) / LANES * GROUPS; task += TILE_WARPS) {
        const int row = task / GROUPS * LANES + (int)threadIdx.x % LANES, column = task % GROUPS * TILE_ACROSS;
        double sums[2][(unsigned)TILE_ACROSS] = {};

        if (row >= TALL)
            continue;
#pragma unroll
        for (int j = 0; j < WIDTH + TILE_ACROSS - 1; j++) {
            const double value = (double)tile.values[row][column + j];

#pragma unroll
            for (int o = 0; o < TILE_ACROSS; o++)
#pragma unroll
                for (int k = 0; k < 2; k++)
                    if (j - o >= 0 && j - o < WIDTH)
                        sums[k][o] = __fma_rn(weights.of[k][walk_mirrored(j - o, WIDTH)], value, sums[k][o]);
        }
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int o = 0; o < TILE_ACROSS; o++)
                tile.filtered[k][row][column + o] = sums[k][o];
    }
}

template <int WIDTH>
static __global__ void
__launch_bounds__(TILE_THREADS, 2) separable_walk_slices(const __grid_constant__ struct walk_pass pass)
{
    extern __shared__ __align__(16) unsigned char walk_memory[];
    struct walk_tile<WIDTH> &tile = *(struct walk_tile<WIDTH> *)walk_memory;
    const int32_t columns = pass.sides[0], across = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int32_t down = (pass.sides[1] + TILE_ROWS - 1) / TILE_ROWS;
    const int32_t thread = (int32_t)threadIdx.x, left = (int32_t)(blockIdx.x % across) * TILE_COLUMNS;
    const int32_t top = (int32_t)(blockIdx.x / across % down) * TILE_ROWS;
    const int64_t slice = (int64_t)(blockIdx.x / across / down) * pass.sides[1] * columns;
    const int32_t lane = thread % TILE_COLUMNS, row = thread / TILE_COLUMNS * TILE_DOWN;
    double sums[3][(unsigned)TILE_DOWN] = {};
    struct walk_weights<WIDTH> weights;

    walk_take<WIDTH>(pass, 0, weights);
    if (thread < walk_tile<WIDTH>::TALL) {
        const int64_t place = filter_place(top + thread - WIDTH / 2, pass.sides[1], pass.boundary);

        tile.rows[thread] = place < 0 ? INT32_MIN : (int32_t)(place * columns);
    }
    __syncthreads();
    tile_read(pass, left, (const unsigned char *)pass.input.from + separable_slice_bytes(pass.input, slice), tile);
    __syncthreads();
    tile_along_x(weights, tile);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < WIDTH + TILE_DOWN - 1; j++) {
        const double first = tile.filtered[0][row + j][lane], second = tile.filtered[1][row + j][lane];

#pragma unroll
        for (int o = 0; o < TILE_DOWN; o++)
            if (j - o >= 0 && j - o < WIDTH) {
                const int p = walk_mirrored(j - o, WIDTH);

                sums[0][o] = __fma_rn(weights.of[0][p], second, sums[0][o]);
                sums[1][o] = __fma_rn(weights.of[1][p], first, sums[1][o]);
                sums[2][o] = __fma_rn(weights.of[0][p], first, sums[2][o]);
            }
    }
#pragma unroll
    for (int o = 0; o < TILE_DOWN; o++) {
        const int64_t to = slice + (int64_t)(top + row + o) * columns + left + lane;

        if (left + lane >= columns || top + row + o >= pass.sides[1])
            continue;
        pass.planes[0][to] = sums[0][o] + sums[1][o];
        pass.planes[1][to] = sums[2][o];
    }
}

/* ------------------------------------------------------------------------------- along z -- */

template <int WIDTH>
static __global__ void
__launch_bounds__(DEEP_THREADS, DEEP_BLOCKS) separable_walk_deep(const __grid_constant__ struct walk_pass pass)
{
    __shared__ double ring[(unsigned)DEEP_STAGES][(unsigned)DEEP_STAGE][2][(unsigned)DEEP_THREADS];
    const int64_t slice = (int64_t)pass.sides[0] * pass.sides[1], across = (slice + DEEP_THREADS - 1) / DEEP_THREADS;
    const int64_t at = blockIdx.x % across * DEEP_THREADS + threadIdx.x, own = min(at, slice - 1);
    const int32_t top = (int32_t)(blockIdx.x / across) * DEEP_ROWS, end = min(top + DEEP_ROWS, pass.sides[2]);
    const int32_t start = top - WIDTH / 2, side = pass.sides[2];
    int32_t *to = pass.codes + (start - WIDTH / 2) * slice + own; /* of the next value */
    const double *next = pass.planes[0] + start * slice + own;    /* of the next slice that is copied */
    const int64_t apart = pass.planes[1] - pass.planes[0];
    double sums[2][(unsigned)(WIDTH - 1)] = {};
    struct walk_weights<WIDTH> weights;

    walk_take<WIDTH>(pass, 1, weights);
    const auto fetch = [&](int32_t z, int stage) {
        double(*const slots)[2][(unsigned)DEEP_THREADS] = ring[stage];
        const bool inside = z >= 0 && z + DEEP_STAGE <= side;

#pragma unroll
        for (int i = 0; i < DEEP_STAGE; i++) {
            const double *from = next;
            bool exists = true;

            if (!inside) {
                const int32_t place = separable_outside(z + i, side, pass.boundary);

                exists = place >= 0;
                from = pass.planes[0] + max(place, 0) * slice + own;
            }
            ptx_copy<8>(&slots[i][0][threadIdx.x], from, exists);
            ptx_copy<8>(&slots[i][1][threadIdx.x], from + apart, exists);
            next += slice;
        }
        ptx_copies_end_group();
    };

#pragma unroll
    for (int s = 0; s < DEEP_STAGES - 1; s++)
        fetch(start + s * DEEP_STAGE, s);
    int stage = 0;
    for (int32_t z = start; z < end + WIDTH / 2; z += DEEP_STAGE) {
        ptx_copies_wait<DEEP_STAGES - 2>();
        fetch(z + (DEEP_STAGES - 1) * DEEP_STAGE, (stage + DEEP_STAGES - 1) % DEEP_STAGES);
#pragma unroll
        for (int i = 0; i < DEEP_STAGE; i++) {
            const int32_t done = z + i - WIDTH / 2;
            double total = walk_add<WIDTH>(weights, 0, ring[stage][i][0][threadIdx.x], sums[0]);

            total += walk_add<WIDTH>(weights, 1, ring[stage][i][1][threadIdx.x], sums[1]);
            if (done >= top && done < end && at < slice)
                __stcs(to, filter_code(__dmul_rn(total, pass.factor)));
            to += slice;
        }
        stage = (stage + 1) % DEEP_STAGES;
    }
    ptx_copies_wait<0>();
}

/* ------------------------------------------------------------------------------- the host -- */

template <int WIDTH>
static int
walk_queue(struct cuda_lane *lane, const struct walk_pass &pass, struct error *error)
{
    const int64_t columns = pass.sides[0], rows = pass.sides[1], slices = pass.sides[2];
    const int64_t tiles = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS * ((rows + TILE_ROWS - 1) / TILE_ROWS) * slices;
    const int64_t ways = (columns * rows + DEEP_THREADS - 1) / DEEP_THREADS * ((slices + DEEP_ROWS - 1) / DEEP_ROWS);
    const size_t bytes = sizeof(struct walk_tile<WIDTH>);
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaFuncSetAttribute(separable_walk_slices<WIDTH>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)bytes));
    separable_walk_slices<WIDTH><<<(unsigned)tiles, TILE_THREADS, bytes, lane->work>>>(pass);
    CUDA_LAUNCHED(device);
    separable_walk_deep<WIDTH><<<(unsigned)ways, DEEP_THREADS, 0, lane->work>>>(pass);
    CUDA_LAUNCHED(device);
    return 0;
}

bool
separable_walk_fits(const struct separable_plan *plan, const struct image_extent *extent)
{
    const struct filter_demand *demand = &plan->demand;
    bool fits = !plan->box && demand->options.kind == FILTER_LOG && plan->plane_count == 2 &&
                demand->spacing[0] == demand->spacing[1] && image_slice_voxels(extent) < INT32_MAX;

    for (int axis = 0; axis < 3; axis++)
        fits = fits && separable_width(&plan->axis[axis]) <= WALK_MOST;
    return fits;
}

int
separable_walk_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                     const struct separable_output *output, double *planes, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    struct walk_pass pass = {};
    int width;

    pass.input = *input;
    pass.planes[0] = planes;
    pass.planes[1] = planes + image_voxels(extent);
    pass.codes = output->codes;
    pass.factor = output->factor;
    pass.sides[0] = (int32_t)extent->columns;
    pass.sides[1] = (int32_t)extent->rows;
    pass.sides[2] = (int32_t)extent->slices;
    pass.boundary = plan->demand.options.boundary;
    for (int way = 0; way < 2; way++) {
        pass.weights[way] = plan->axis[1 + way].weights;
        pass.width[way] = separable_width(&plan->axis[1 + way]);
    }
    for (int k = 0; k < plan->kernel_count; k++)
        pass.kernel[plan->kernels[k].base] = k;
    width = max(pass.width[0], pass.width[1]);
    return (width <= 13 ? walk_queue<13> : width <= 19 ? walk_queue<19> : walk_queue<WALK_MOST>)(lane, pass, error);
}
