/*
 * separable_march.cu - separable filters of few taps on the GPU, in one kernel. A block filters a tile of each slice along
 * x and y in shared memory, and walks along z. A thread keeps the sums of the next outputs of its columns, to which each
 * slice adds its share.
 */
#include "kernels/filter/separable_march.cuh"

enum {
    MARCH_WIDTH = 7,  /* taps */
    MARCH_NARROW = 5, /* of integers */
    MARCH_UNITS = 6,
    MARCH_LANES = 32,
    MARCH_WARPS = 8,
    MARCH_THREADS = MARCH_LANES * MARCH_WARPS,
    MARCH_DEPTH = 64, /* slices of a block */
};

/* A kernel along x and one along y, and the sign of their response. */
struct march_part {
    int x, y, sign;
};

/* Parts whose sum is filtered along z by one kernel. */
struct march_unit {
    int first, count, z, sign;
    bool again; /* the parts are those of the unit before */
};

/* Value: doubles, or 32-bit integers that hold all sums. */
template <typename Value> struct march_pass {
    struct separable_input input;
    struct separable_output output;
    int64_t sides[3];
    enum filter_boundary boundary;
    enum filter_pooling pooling;
    int before[3], after;                             /* windows; `after` is of z */
    Value weights[3][SEPARABLE_KERNELS][MARCH_WIDTH]; /* of z: from the last place on */
    bool used[SEPARABLE_KERNELS];                     /* along x */
    struct march_part parts[SEPARABLE_TERMS];
    struct march_unit units[MARCH_UNITS];
    int unit_count;
    bool first, last; /* of the kernels that pool */
};

static __device__ __forceinline__ double
march_fma(double weight, double value, double sum)
{
    return __fma_rn(weight, value, sum);
}

static __device__ __forceinline__ int32_t
march_fma(int32_t weight, int32_t value, int32_t sum)
{
    return weight * value + sum;
}

/* A tile of values of a slice, and its rows filtered along x by each kernel. */
template <typename Value, int WIDTH, int ROWS> struct march_tile {
    Value values[(unsigned)(ROWS + WIDTH - 1)][(unsigned)(MARCH_LANES + WIDTH - 1)];
    Value filtered[SEPARABLE_KERNELS][(unsigned)(ROWS + WIDTH - 1)][MARCH_LANES];
};

template <typename Value, int WIDTH, int ROWS>
static __device__ __forceinline__ void
march_along_x(const struct march_pass<Value> &pass, struct march_tile<Value, WIDTH, ROWS> &tile)
{
    const int lane = (int)threadIdx.x % MARCH_LANES;

    for (int row = (int)threadIdx.x / MARCH_LANES; row < ROWS + WIDTH - 1; row += MARCH_WARPS) {
        Value values[WIDTH];

#pragma unroll
        for (int p = 0; p < WIDTH; p++)
            values[p] = tile.values[row][lane + p];
#pragma unroll
        for (int k = 0; k < SEPARABLE_KERNELS; k++) {
            Value sum = 0;

            if (!pass.used[k])
                continue;
#pragma unroll
            for (int p = 0; p < WIDTH; p++)
                sum = march_fma(pass.weights[0][k][p], values[p], sum);
            tile.filtered[k][row][lane] = sum;
        }
    }
}

/* Returns the sum of a unit's parts at a row of the tile. */
template <typename Value, int WIDTH, int ROWS>
static __device__ __forceinline__ Value
march_along_y(const struct march_pass<Value> &pass, const struct march_unit &unit,
              const struct march_tile<Value, WIDTH, ROWS> &tile, int row)
{
    const int lane = (int)threadIdx.x % MARCH_LANES;
    Value total = 0;

    for (int i = unit.first; i < unit.first + unit.count; i++) {
        const struct march_part &part = pass.parts[i];
        Value sum = 0;

#pragma unroll
        for (int p = 0; p < WIDTH; p++)
            sum = march_fma(pass.weights[1][part.y][p], tile.filtered[part.x][row + p][lane], sum);
        total += part.sign < 0 ? -sum : sum;
    }
    return total;
}

template <typename Value, unsigned WIDTH, unsigned UNITS>
static __device__ __forceinline__ void
march_write(const struct march_pass<Value> &pass, const Value (&sums)[UNITS][WIDTH], int64_t at)
{
    double total = 0;

    if (pass.output.pooled && !pass.first)
        total = pass.output.pooled[at];
#pragma unroll
    for (int u = 0; u < (int)UNITS; u++)
        if (u < pass.unit_count)
            total = separable_pool(pass.pooling, pass.units[u].sign, pass.first && u == 0, total, (double)sums[u][0]);
    if (pass.last)
        pass.output.codes[at] = filter_code(__dmul_rn(total, pass.output.factor));
    else
        pass.output.pooled[at] = total;
}

/* Each thread has OUTPUTS columns of a tile, MARCH_WARPS rows apart. */
template <typename Value, int WIDTH, int UNITS, int OUTPUTS>
static __global__ void
__launch_bounds__(MARCH_THREADS, UNITS == 1 ? 3 : 2) separable_march(struct march_pass<Value> pass)
{
    enum {
        ROWS = MARCH_WARPS * OUTPUTS,
        ACROSS = MARCH_LANES + WIDTH - 1,
        SIZE = (ROWS + WIDTH - 1) * ACROSS,
        SHARE = (SIZE + MARCH_THREADS - 1) / MARCH_THREADS,
    };
    __shared__ struct march_tile<Value, WIDTH, ROWS> tile;
    const int64_t across = (pass.sides[0] + MARCH_LANES - 1) / MARCH_LANES, down = (pass.sides[1] + ROWS - 1) / ROWS;
    const int64_t left = blockIdx.x % across * MARCH_LANES, top = blockIdx.x / across % down * ROWS;
    const int64_t first = blockIdx.x / across / down * MARCH_DEPTH, slice = pass.sides[0] * pass.sides[1];
    const int64_t end = min(first + MARCH_DEPTH, pass.sides[2]);
    const int lane = (int)threadIdx.x % MARCH_LANES, row = (int)threadIdx.x / MARCH_LANES;
    int64_t from[SHARE]; /* of a thread's values within a slice; negative: 0 */
    Value next[SHARE], sums[OUTPUTS][UNITS][WIDTH] = {};

    for (int i = 0; i < SHARE; i++) {
        const int at = (int)threadIdx.x + i * MARCH_THREADS;
        const int64_t x = filter_place(left + at % ACROSS - pass.before[0], pass.sides[0], pass.boundary);
        const int64_t y = filter_place(top + at / ACROSS - pass.before[1], pass.sides[1], pass.boundary);

        from[i] = at >= SIZE || x < 0 || y < 0 ? -1 : y * pass.sides[0] + x;
    }
    const auto fetch = [&](int64_t z) {
        const int64_t place = filter_place(z, pass.sides[2], pass.boundary);

#pragma unroll
        for (int i = 0; i < SHARE; i++)
            next[i] = place < 0 || from[i] < 0 ? 0 : (Value)separable_value(pass.input, place * slice + from[i]);
    };

    fetch(first - pass.before[2]);
    for (int64_t z = first - pass.before[2]; z < end + pass.after; z++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SHARE; i++)
            if ((int)threadIdx.x + i * MARCH_THREADS < SIZE)
                (&tile.values[0][0])[(int)threadIdx.x + i * MARCH_THREADS] = next[i];
        __syncthreads();
        fetch(z + 1);
        march_along_x(pass, tile);
        __syncthreads();
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) {
            Value value = 0;

#pragma unroll
            for (int u = 0; u < UNITS; u++) {
                if (u >= pass.unit_count)
                    continue;
                if (!pass.units[u].again)
                    value = march_along_y(pass, pass.units[u], tile, row + o * MARCH_WARPS);

#pragma unroll
                for (int p = 0; p < WIDTH; p++)
                    sums[o][u][p] = march_fma(pass.weights[2][pass.units[u].z][p], value,
                                              p + 1 < WIDTH ? sums[o][u][p + 1] : (Value)0);
            }
            const int64_t x = left + lane, y = top + row + o * MARCH_WARPS;

            if (z - pass.after >= first && x < pass.sides[0] && y < pass.sides[1])
                march_write(pass, sums[o], (z - pass.after) * slice + y * pass.sides[0] + x);
        }
    }
}

/* ------------------------------------------------------------------------------- the host -- */

bool
separable_march_fits(const struct separable_plan *plan)
{
    bool fits = !plan->box && (plan->extreme || plan->plane_count <= MARCH_UNITS);

    for (int axis = 0; axis < 3; axis++)
        fits = fits && plan->axis[axis].edge == 0 && separable_width(&plan->axis[axis]) <= MARCH_WIDTH;
    return fits;
}

bool
separable_march_pools(const struct separable_plan *plan)
{
    return plan->extreme && plan->term_count > MARCH_UNITS;
}

template <typename Value, int WIDTH, int UNITS, int OUTPUTS>
static int
march_start(struct cuda_lane *lane, const struct march_pass<Value> *pass, struct error *error)
{
    const int64_t rows = MARCH_WARPS * OUTPUTS;
    const int64_t tiles = ((pass->sides[0] + MARCH_LANES - 1) / MARCH_LANES) * ((pass->sides[1] + rows - 1) / rows) *
                          ((pass->sides[2] + MARCH_DEPTH - 1) / MARCH_DEPTH);

    separable_march<Value, WIDTH, UNITS, OUTPUTS><<<(unsigned)tiles, MARCH_THREADS, 0, lane->work>>>(*pass);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

static int
march_start_units(struct cuda_lane *lane, const struct march_pass<int32_t> *pass, struct error *error)
{
    return pass->unit_count == 1   ? march_start<int32_t, MARCH_NARROW, 1, 2>(lane, pass, error)
           : pass->unit_count <= 3 ? march_start<int32_t, MARCH_NARROW, 3, 2>(lane, pass, error)
                                   : march_start<int32_t, MARCH_NARROW, 6, 2>(lane, pass, error);
}

static int
march_start_units(struct cuda_lane *lane, const struct march_pass<double> *pass, struct error *error)
{
    return pass->unit_count == 1   ? march_start<double, MARCH_WIDTH, 1, 2>(lane, pass, error)
           : pass->unit_count <= 2 ? march_start<double, MARCH_WIDTH, 2, 2>(lane, pass, error)
                                   : march_start<double, MARCH_WIDTH, 6, 1>(lane, pass, error);
}

/* Returns whether all sums of Laws' kernels fit 32 bits. */
static bool
march_is_of_integers(const struct separable_plan *plan, const struct separable_input *input)
{
    const int terms = plan->extreme ? 1 : plan->term_count;

    return plan->demand.options.kind == FILTER_LAWS && plan->largest * terms * input->request.limit < INT32_MAX;
}

template <typename Value>
static void
march_fill_weights(const struct separable_plan *plan, struct march_pass<Value> *pass)
{
    for (int number = 0; number < 3; number++) {
        const struct separable_axis *axis = &plan->axis[number];
        const int width = separable_width(axis);

        pass->before[number] = axis->before;
        for (int k = 0; k < plan->kernel_count; k++)
            for (int p = 0; p < width; p++)
                pass->weights[number][k][number == 2 ? width - 1 - p : p] = (Value)separable_row(axis, k, 0)[p];
    }
    pass->after = plan->axis[2].after;
}

template <typename Value>
static int
march_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
            const struct separable_output *output, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    const int units = plan->extreme ? plan->term_count : plan->plane_count;

    struct march_pass<Value> pass = {
    };

    int done = 0, rc;

    pass.input = *input;
    pass.output = *output;
    pass.sides[0] = extent->columns;
    pass.sides[1] = extent->rows;
    pass.sides[2] = extent->slices;
    pass.boundary = plan->demand.options.boundary;
    pass.pooling = plan->extreme ? plan->demand.options.pooling : FILTER_MEAN_OF;
    march_fill_weights(plan, &pass);
    for (int i = 0; i < plan->term_count; i++)
        pass.parts[i] = {plan->terms[i].kernel[0], plan->terms[i].kernel[1], plan->extreme ? 1 : plan->terms[i].sign};
    do {
        memset(pass.used, 0, sizeof(pass.used));
        pass.first = done == 0;
        pass.unit_count = min(units - done, (int)MARCH_UNITS);
        pass.last = done + pass.unit_count == units;
        for (int u = 0; u < pass.unit_count; u++) {
            const struct separable_plane plane = plan->extreme ? separable_plane{done + u, 1} : plan->planes[done + u];
            const struct separable_term *term = &plan->terms[plane.first];

            pass.units[u] = {plane.first, plane.count, term->kernel[2], plan->extreme ? term->sign : 1,
                             plan->extreme && u > 0 && memcmp(term[0].kernel, term[-1].kernel, 2) == 0};
            for (int i = 0; i < plane.count; i++)
                pass.used[term[i].kernel[0]] = true;
        }
        rc = march_start_units(lane, &pass, error);
        done += pass.unit_count;
    } while (rc == 0 && done < units);
    return rc;
}

int
separable_march_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                      const struct separable_output *output, struct error *error)
{
    return march_is_of_integers(plan, input) ? march_queue<int32_t>(lane, plan, input, output, error)
                                             : march_queue<double>(lane, plan, input, output, error);
}
