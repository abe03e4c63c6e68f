/*
 * separable_walk.cu - the Laplacian of Gaussian on the GPU, in two kernels. The first filters along x and y: a block walks
 * down a strip of columns, and keeps one row in shared memory. The second walks along z. A thread keeps the sums of its next
 * outputs, so that it reads each value once, and half of the weights, which are symmetric. All are in registers: weights in
 * constant memory would be read one by one.
 */
#include "kernels/filter/separable_march.cuh"

enum {
    WALK_THREADS = 64, /* columns */
    WALK_ROWS = 256,   /* outputs of a block along its way */
    WALK_AHEAD = 4,    /* slices that are read at a time */
    WALK_READ = 2,     /* rows that are read ahead */
    WALK_MOST = 25,    /* max taps */
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

template <int WIDTH>
static __global__ void
__launch_bounds__(WALK_THREADS) separable_walk_slices(const __grid_constant__ struct walk_pass pass)
{
    enum {
        SIZE = WALK_THREADS + WIDTH - 1,
        SHARE = (SIZE + WALK_THREADS - 1) / WALK_THREADS,
        HALF = WIDTH / 2,
    };

    __shared__ double rows[2][(unsigned)SIZE];
    const int32_t columns = pass.sides[0], across = (columns + WALK_THREADS - 1) / WALK_THREADS;
    const int32_t down = (pass.sides[1] + WALK_ROWS - 1) / WALK_ROWS;
    const int32_t thread = (int32_t)threadIdx.x, left = (int32_t)(blockIdx.x % across) * WALK_THREADS;
    const int32_t top = (int32_t)(blockIdx.x / across % down) * WALK_ROWS, z = (int32_t)(blockIdx.x / across / down);
    const int32_t end = min(top + WALK_ROWS, pass.sides[1]), x = left + thread;
    const int64_t slice = (int64_t)z * pass.sides[1] * columns;
    int32_t from[SHARE], next[WALK_READ][SHARE];
    bool within[WALK_READ];      /* the row of `next` is in the volume */
    double filtered[2] = {0, 0}; /* along x: the last row, by each kernel */
    double sums[3][(unsigned)(WIDTH - 1)] = {};
    struct walk_weights<WIDTH> weights;

    walk_take<WIDTH>(pass, 0, weights);
#pragma unroll
    for (int i = 0; i < SHARE; i++)
        from[i] = thread + i * WALK_THREADS < SIZE
                      ? (int32_t)filter_place(left + thread + i * WALK_THREADS - HALF, columns, pass.boundary)
                      : -1;
    const auto fetch = [&](int32_t y, bool &is_in, int32_t(&stored)[SHARE]) {
        const int64_t place = filter_place(y, pass.sides[1], pass.boundary);

        is_in = place >= 0;
        separable_read(pass.input, slice + max(place, (int64_t)0) * columns, from, stored);
    };

#pragma unroll
    for (int i = 0; i < WALK_READ; i++)
        fetch(top - HALF + i, within[i], next[i]);
    /* The row before is filtered along y while a row is filtered along x, so that many sums are independent. */
    for (int32_t begin = top - HALF; begin <= end + HALF; begin += WALK_READ)
#pragma unroll
        for (int step = 0; step < WALK_READ; step++) {
            const int32_t done = begin + step - 1 - HALF;
            double *const row = rows[step];
            double other[2] = {0, 0}, first, second;

#pragma unroll
            for (int i = 0; i < SHARE; i++) {
                const double value = (double)separable_value(pass.input, next[step][i]);

                if (thread + i * WALK_THREADS < SIZE)
                    row[thread + i * WALK_THREADS] = within[step] & (from[i] >= 0) ? value : 0.0;
            }
            __syncthreads(); /* threads of the last step read the other row */
            fetch(begin + step + WALK_READ, within[step], next[step]);
            first = walk_add<WIDTH>(weights, 0, filtered[1], sums[0]);
            first += walk_add<WIDTH>(weights, 1, filtered[0], sums[1]);
            second = walk_add<WIDTH>(weights, 0, filtered[0], sums[2]);
#pragma unroll
            for (int p = 0; p < WIDTH; p++) {
                const double value = row[thread + p];

#pragma unroll
                for (int k = 0; k < 2; k++)
                    other[k] = __fma_rn(weights.of[k][walk_mirrored(p, WIDTH)], value, other[k]);
            }
            filtered[0] = other[0];
            filtered[1] = other[1];
            if (done < top || done >= end || x >= columns)
                continue;
            const int64_t to = slice + (int64_t)done * columns + x;

            pass.planes[0][to] = first;
            pass.planes[1][to] = second;
        }
}

template <int WIDTH>
static __global__ void
__launch_bounds__(WALK_THREADS) separable_walk_deep(const __grid_constant__ struct walk_pass pass)
{
    const int64_t slice = (int64_t)pass.sides[0] * pass.sides[1], across = (slice + WALK_THREADS - 1) / WALK_THREADS;
    const int64_t at = blockIdx.x % across * WALK_THREADS + threadIdx.x, own = min(at, slice - 1);
    const int32_t top = (int32_t)(blockIdx.x / across) * WALK_ROWS, end = min(top + WALK_ROWS, pass.sides[2]);
    double next[2][WALK_AHEAD], sums[2][(unsigned)(WIDTH - 1)] = {};
    struct walk_weights<WIDTH> weights;

    enum { HALF = WIDTH / 2 };

    const auto fetch = [&](int32_t z) {
#pragma unroll
        for (int i = 0; i < WALK_AHEAD; i++) {
            const int64_t place = filter_place(z + i, pass.sides[2], pass.boundary);

#pragma unroll
            for (int p = 0; p < 2; p++)
                next[p][i] = place < 0 ? 0 : pass.planes[p][place * slice + own];
        }
    };

    walk_take<WIDTH>(pass, 1, weights);
    fetch(top - HALF);
    for (int32_t z = top - HALF; z < end + HALF; z += WALK_AHEAD) {
        double values[2][WALK_AHEAD];

#pragma unroll
        for (int i = 0; i < 2 * WALK_AHEAD; i++)
            values[i % 2][i / 2] = next[i % 2][i / 2];
        fetch(z + WALK_AHEAD);
#pragma unroll
        for (int i = 0; i < WALK_AHEAD; i++) {
            const int32_t done = z + i - HALF;
            double total = walk_add<WIDTH>(weights, 0, values[0][i], sums[0]);

            total += walk_add<WIDTH>(weights, 1, values[1][i], sums[1]);
            if (done >= top && done < end && at < slice)
                pass.codes[done * slice + at] = filter_code(__dmul_rn(total, pass.factor));
        }
    }
}

/* ------------------------------------------------------------------------------- the host -- */

template <int WIDTH>
static int
walk_queue(struct cuda_lane *lane, const struct walk_pass &pass, struct error *error)
{
    const int64_t columns = pass.sides[0], rows = pass.sides[1], slices = pass.sides[2];
    const int64_t strips = (columns + WALK_THREADS - 1) / WALK_THREADS * ((rows + WALK_ROWS - 1) / WALK_ROWS) * slices;
    const int64_t ways = (columns * rows + WALK_THREADS - 1) / WALK_THREADS * ((slices + WALK_ROWS - 1) / WALK_ROWS);

    separable_walk_slices<WIDTH><<<(unsigned)strips, WALK_THREADS, 0, lane->work>>>(pass);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    separable_walk_deep<WIDTH><<<(unsigned)ways, WALK_THREADS, 0, lane->work>>>(pass);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
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
