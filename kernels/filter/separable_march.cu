/*
 * separable_march.cu - separable filters of few taps on the GPU, in one kernel. A block filters a tile of each slice along
 * x and y in shared memory, and walks along z. A thread keeps, of each of its columns, either the last values or the sums
 * of the next outputs.
 *
 * Few threads fit a multiprocessor, so that a thread must have many independent sums. Therefore the units of a form are
 * filtered without branches: sums have units with weights of 0, and extremes have units twice.
 */
#include "kernels/filter/separable_march.cuh"

enum {
    MARCH_WIDTH = 7,  /* taps */
    MARCH_NARROW = 5, /* of floats */
    MARCH_UNITS = 12,
    MARCH_LANES = 32,
};

/* A form of the kernel for Value: double, or floats that hold all sums exactly. A unit is a sum of kernels along x and y,
 * its parts, filtered along z. BLOCKS: of a multiprocessor. */
template <typename Value_, int WIDTH_, int OUTPUTS_, int BLOCKS_, int WARPS_ = 8> struct march_form {
    typedef Value_ Value;
    static constexpr int WIDTH = WIDTH_, OUTPUTS = OUTPUTS_, BLOCKS = BLOCKS_, WARPS = WARPS_,
                         THREADS = MARCH_LANES * WARPS;
    static constexpr int ROWS = WARPS * OUTPUTS, TALL = ROWS + WIDTH - 1, ACROSS = MARCH_LANES + WIDTH - 1;
};

/* A sum of units. */
template <typename Value, int WIDTH, int UNITS_, int OUTPUTS, int BLOCKS>
struct march_total : march_form<Value, WIDTH, OUTPUTS, BLOCKS> {
    static constexpr bool EXTREME = false;
    static constexpr int UNITS = UNITS_, PARTS = UNITS == 1 ? 1 : 2, TURNS = 1, KERNELS = UNITS, TOGETHER = 1;

    static __host__ __device__ constexpr bool reads(int)
    {
        return true;
    }
};

/* An extreme of units of one part. Units follow each other that have one kernel along x: FIRST each for some kernels, then
 * two each. */
template <typename Value, int WIDTH, int TURNS_, int FIRST, int BLOCKS, int OUTPUTS = TURNS_ == 1 ? 2 : 1,
          int WARPS = 8>
struct march_extreme : march_form<Value, WIDTH, OUTPUTS, BLOCKS, WARPS> {
    static constexpr bool EXTREME = true;
    static constexpr int KERNELS = FIRST == 2 ? 3 : 4, UNITS = FIRST == 2 ? 6 : 12, PARTS = 1, TURNS = TURNS_,
                         TOGETHER = TURNS_ == 1 ? 2 : 4; /* units that are filtered at a time */

    static constexpr int slots(int k)
    {
        return k < 2 ? FIRST : 2;
    }

    /* Whether unit u is the first of its kernel along x. */
    static __host__ __device__ constexpr bool reads(int u)
    {
        return u % (u < 2 * FIRST ? FIRST : 2) == 0;
    }
};

/* The maximum of a wavelet's 24 rotations: kernel A along two axes and B along the third, each of them turned or not. Kernels
 * are A, A turned, B, B turned. Weights are few, so that they stay in registers: others are read one by one. */
template <int WIDTH> struct march_rotations : march_extreme<double, WIDTH, 2, 4, 1> {
    /* Returns the kernels of a unit, and whether its kernel along z is B. */
    static __host__ __device__ constexpr int x_of(int u)
    {
        return u < 8 ? u / 4 : 2 + (u - 8) / 2;
    }

    static __host__ __device__ constexpr int y_of(int u)
    {
        return u < 8 ? u % 4 : u % 2;
    }

    static __host__ __device__ constexpr int z_of(int u)
    {
        return x_of(u) < 2 && y_of(u) < 2 ? 1 : 0;
    }
};

template <typename Form> struct march_pass_of {
    struct separable_input input;
    int32_t *codes;
    double factor;
    int64_t sides[3];
    enum filter_boundary boundary;
    int before[3], after; /* windows; `after` is of z */
    int32_t depth;        /* slices of a block */
};

template <typename Form> struct march_pass : march_pass_of<Form> {
    typedef typename Form::Value Value;
    bool sizes; /* an extreme of sizes */
    int x[Form::UNITS][Form::PARTS];
    Value along_x[Form::KERNELS][Form::WIDTH];
    Value along_y[Form::UNITS][Form::PARTS][Form::WIDTH];
    Value along_z[Form::UNITS][Form::TURNS][Form::WIDTH]; /* with zeros before them */

    __device__ __forceinline__ Value x_weight(int k, int p) const
    {
        return along_x[k][p];
    }

    __device__ __forceinline__ Value y_weight(int u, int i, int p) const
    {
        return along_y[u][i][p];
    }

    __device__ __forceinline__ Value z_weight(int u, int t, int p) const
    {
        return along_z[u][t][p];
    }

    __device__ __forceinline__ int x_of(int u, int i) const
    {
        return x[u][i];
    }

    __device__ __forceinline__ bool compares_sizes() const
    {
        return sizes;
    }
};

template <int WIDTH> struct march_pass<march_rotations<WIDTH>> : march_pass_of<march_rotations<WIDTH>> {
    typedef march_rotations<WIDTH> Form;
    double weights[2][(unsigned)WIDTH]; /* of A and B */

    __device__ __forceinline__ double x_weight(int k, int p) const
    {
        return weights[k / 2][k % 2 ? WIDTH - 1 - p : p];
    }

    __device__ __forceinline__ double y_weight(int u, int, int p) const
    {
        return x_weight(Form::y_of(u), p);
    }

    __device__ __forceinline__ double z_weight(int u, int t, int p) const
    {
        return x_weight(2 * Form::z_of(u) + t, p);
    }

    __device__ __forceinline__ int x_of(int u, int) const
    {
        return Form::x_of(u);
    }

    __device__ __forceinline__ bool compares_sizes() const
    {
        return false;
    }
};

static __device__ __forceinline__ double
march_fma(double weight, double value, double sum)
{
    return __fma_rn(weight, value, sum);
}

static __device__ __forceinline__ float
march_fma(float weight, float value, float sum)
{
    return __fmaf_rn(weight, value, sum);
}

/* Makes COUNT sums of values and their weights at a time: the next product of a sum waits for the last one. Place p of sum c has
 * value(c, p) and weight(c, p). */
template <int WIDTH, int COUNT, typename Value, typename Of, typename Weight>
static __device__ __forceinline__ void
march_weigh(Value (&sums)[(unsigned)COUNT], const Of &value, const Weight &weight)
{
#pragma unroll
    for (int c = 0; c < COUNT; c++)
        sums[c] = 0;
#pragma unroll
    for (int p = 0; p < WIDTH; p++)
#pragma unroll
        for (int c = 0; c < COUNT; c++)
            sums[c] = march_fma(weight(c, p), value(c, p), sums[c]);
}

/* A tile of values of a slice, and its rows filtered along x by each kernel. */
template <typename Form> struct march_tile {
    typename Form::Value values[(unsigned)Form::TALL][(unsigned)Form::ACROSS];
    typename Form::Value filtered[(unsigned)Form::KERNELS][(unsigned)Form::TALL][MARCH_LANES];
};

template <typename Form>
static __device__ __forceinline__ void
march_along_x(const struct march_pass<Form> &pass, struct march_tile<Form> &tile)
{
    const int lane = (int)threadIdx.x % MARCH_LANES;

#pragma unroll
    for (int first = 0; first < Form::TALL; first += Form::WARPS) {
        const int row = first + (int)threadIdx.x / MARCH_LANES;
        typename Form::Value values[Form::WIDTH], sums[Form::KERNELS];

        if (row >= Form::TALL)
            break;
#pragma unroll
        for (int p = 0; p < Form::WIDTH; p++)
            values[p] = tile.values[row][lane + p];
        march_weigh<Form::WIDTH, Form::KERNELS>(
            sums, [&](int, int p) { return values[p]; }, [&](int k, int p) { return pass.x_weight(k, p); });
#pragma unroll
        for (int k = 0; k < Form::KERNELS; k++)
            tile.filtered[k][row][lane] = sums[k];
    }
}

/* Filters a slice along y: the sum of each unit. */
template <typename Form>
static __device__ __forceinline__ void
march_along_y(const struct march_pass<Form> &pass, const struct march_tile<Form> &tile,
              typename Form::Value (&sums)[(unsigned)Form::UNITS][(unsigned)Form::OUTPUTS])
{
    constexpr int TOGETHER = Form::TOGETHER, COUNT = TOGETHER * Form::OUTPUTS;
    const int lane = (int)threadIdx.x % MARCH_LANES, row = (int)threadIdx.x / MARCH_LANES * Form::OUTPUTS;

#pragma unroll
    for (int u = 0; u < Form::UNITS; u += TOGETHER)
#pragma unroll
        for (int i = 0; i < Form::PARTS; i++) {
            typename Form::Value columns[TOGETHER][Form::WIDTH + Form::OUTPUTS - 1], own[COUNT];

#pragma unroll
            for (int c = 0; c < TOGETHER; c++)
#pragma unroll
                for (int p = 0; p < Form::WIDTH + Form::OUTPUTS - 1; p++)
                    columns[c][p] = c > 0 && !Form::reads(u + c) ? columns[c - 1][p]
                                                                 : tile.filtered[pass.x_of(u + c, i)][row + p][lane];
            march_weigh<Form::WIDTH, COUNT>(
                own, [&](int c, int p) { return columns[c / Form::OUTPUTS][p + c % Form::OUTPUTS]; },
                [&](int c, int p) { return pass.y_weight(u + c / Form::OUTPUTS, i, p); });
#pragma unroll
            for (int c = 0; c < COUNT; c++) {
                typename Form::Value &sum = sums[u + c / Form::OUTPUTS][c % Form::OUTPUTS];

                sum = i == 0 ? own[c] : sum + own[c];
            }
        }
}

static __device__ __forceinline__ double
march_size(double response)
{
    return fabs(response);
}

static __device__ __forceinline__ float
march_size(float response)
{
    return fabsf(response);
}

static __device__ __forceinline__ double
march_larger(double a, double b)
{
    return a > b ? a : b;
}

static __device__ __forceinline__ float
march_larger(float a, float b)
{
    return fmaxf(a, b);
}

/* Filters along z. `kept`: the last values of each unit, or the sums of its next outputs. */
template <typename Form>
static __device__ __forceinline__ typename Form::Value
march_along_z(const struct march_pass<Form> &pass, int output,
              const typename Form::Value (&sums)[(unsigned)Form::UNITS][(unsigned)Form::OUTPUTS],
              typename Form::Value (&kept)[(unsigned)Form::UNITS][(unsigned)Form::WIDTH])
{
    typedef typename Form::Value Value;
    const int end = Form::WIDTH - 1;
    Value responses[Form::UNITS][Form::TURNS], total;

#pragma unroll
    for (int u = 0; u < Form::UNITS; u++)
        if constexpr (Form::TURNS == 1) {
            responses[u][0] = march_fma(pass.z_weight(u, 0, end), sums[u][output], kept[u][0]);
#pragma unroll
            for (int p = 0; p < end; p++)
                kept[u][p] = march_fma(pass.z_weight(u, 0, end - 1 - p), sums[u][output],
                                       p + 1 < end ? kept[u][p + 1] : (Value)0);
        } else {
#pragma unroll
            for (int p = 0; p < end; p++)
                kept[u][p] = kept[u][p + 1];
            kept[u][end] = sums[u][output];
        }
    if constexpr (Form::TURNS > 1)
#pragma unroll
        for (int u = 0; u < Form::UNITS; u += 2) {
            Value own[2 * Form::TURNS];

            march_weigh<Form::WIDTH, 2 * Form::TURNS>(
                own, [&](int c, int p) { return kept[u + c / Form::TURNS][p]; },
                [&](int c, int p) { return pass.z_weight(u + c / Form::TURNS, c % Form::TURNS, p); });
#pragma unroll
            for (int c = 0; c < 2 * Form::TURNS; c++)
                responses[u + c / Form::TURNS][c % Form::TURNS] = own[c];
        }
    total = responses[0][0];
    if constexpr (Form::EXTREME) {
        if (pass.compares_sizes()) {
            total = march_size(total);
#pragma unroll
            for (int i = 1; i < Form::UNITS * Form::TURNS; i++)
                total = march_larger(march_size(responses[i / Form::TURNS][i % Form::TURNS]), total);
        } else {
#pragma unroll
            for (int i = 1; i < Form::UNITS * Form::TURNS; i++)
                total = march_larger(responses[i / Form::TURNS][i % Form::TURNS], total);
        }
    } else {
#pragma unroll
        for (int i = 1; i < Form::UNITS; i++)
            total += responses[i][0];
    }
    return total;
}

/* Each thread has OUTPUTS adjacent rows of a column. */
template <typename Form>
static __global__ void
__launch_bounds__(Form::THREADS, Form::BLOCKS) separable_march(const __grid_constant__ struct march_pass<Form> pass)
{
    enum {
        SIZE = Form::TALL * Form::ACROSS,
        SHARE = (SIZE + Form::THREADS - 1) / Form::THREADS,
    };

    typedef typename Form::Value Value;
    __shared__ struct march_tile<Form> tile;
    const int64_t across = (pass.sides[0] + MARCH_LANES - 1) / MARCH_LANES;
    const int64_t down = (pass.sides[1] + Form::ROWS - 1) / Form::ROWS;
    const int64_t left = blockIdx.x % across * MARCH_LANES, top = blockIdx.x / across % down * Form::ROWS;
    const int64_t first = (int64_t)(blockIdx.x / across / down) * pass.depth, slice = pass.sides[0] * pass.sides[1];
    const int64_t end = min(first + pass.depth, pass.sides[2]);
    const int64_t x = left + (int)threadIdx.x % MARCH_LANES;
    const int64_t y = top + (int)threadIdx.x / MARCH_LANES * Form::OUTPUTS;
    int32_t from[SHARE]; /* of a thread's values within a slice; negative: 0 */
    int32_t next[SHARE];
    struct separable_slice read = {};    /* of `next` */
    bool is_in[(unsigned)Form::OUTPUTS]; /* the row of an output is in the volume */
    int32_t *to = pass.codes + (first * pass.sides[1] + y) * pass.sides[0] + x; /* of the next slice of outputs */
    const int64_t bytes = separable_slice_bytes(pass.input, slice);
    Value *const own = &tile.values[0][0] + threadIdx.x;
    Value kept[(unsigned)Form::OUTPUTS][(unsigned)Form::UNITS][(unsigned)Form::WIDTH] = {};

#pragma unroll
    for (int o = 0; o < Form::OUTPUTS; o++)
        is_in[o] = x < pass.sides[0] && y + o < pass.sides[1];
    for (int i = 0; i < SHARE; i++) {
        const int at = (int)threadIdx.x + i * Form::THREADS;
        const int64_t column = filter_place(left + at % Form::ACROSS - pass.before[0], pass.sides[0], pass.boundary);
        const int64_t row = filter_place(top + at / Form::ACROSS - pass.before[1], pass.sides[1], pass.boundary);

        from[i] = at >= SIZE || column < 0 || row < 0 ? -1 : (int32_t)(row * pass.sides[0] + column);
    }
    const auto fetch = [&](int32_t z, bool follows) {
        separable_go(pass.input, bytes, z, (int32_t)pass.sides[2], pass.boundary, follows, read);
        separable_read(pass.input, read.at, from, next);
    };

    fetch((int32_t)first - pass.before[2], false);
    for (int32_t z = (int32_t)first - pass.before[2]; z < (int32_t)end + pass.after; z++) {
        Value sums[(unsigned)Form::UNITS][(unsigned)Form::OUTPUTS];

        separable_values(pass.input, from, next);
#pragma unroll
        for (int i = 0; i < SHARE; i++)
            if ((int)threadIdx.x + i * Form::THREADS < SIZE)
                own[i * Form::THREADS] = read.within ? (Value)next[i] : (Value)0;
        __syncthreads();
        fetch(z + 1, true);
        march_along_x(pass, tile);
        __syncthreads();
        march_along_y(pass, tile, sums);
#pragma unroll
        for (int o = 0; o < Form::OUTPUTS; o++) {
            const Value total = march_along_z(pass, o, sums, kept[o]);

            if (is_in[o] & (z - pass.after >= (int32_t)first))
                to[o * pass.sides[0]] = filter_code(__dmul_rn((double)total, pass.factor));
        }
        if (z - pass.after >= (int32_t)first)
            to += slice;
    }
}

/* ------------------------------------------------------------------------------- the host -- */

int32_t
separable_depth(const struct cuda_device *device, int blocks, int64_t tiles, int64_t slices, int64_t around)
{
    const int64_t at_a_time = (int64_t)device->multiprocessors * blocks;
    int64_t best = slices, least = INT64_MAX;

    for (int64_t depth = slices; depth >= 1; depth--) {
        const int64_t all = tiles * ((slices + depth - 1) / depth);
        const int64_t time = (all + at_a_time - 1) / at_a_time * (depth + around);

        if (time < least) {
            least = time;
            best = depth;
        }
    }
    return (int32_t)best;
}

/* A plan in units of a form. */
struct march_units {
    int planes[MARCH_UNITS];        /* of units; -1 if empty */
    int kernels[SEPARABLE_KERNELS]; /* along x */
};

/* Lists the kernels along x, those of most terms first. Returns their number: 0 if all terms of a mean cancel out. */
static int
march_kernels(const struct separable_plan *plan, int kernels[SEPARABLE_KERNELS])
{
    int terms[SEPARABLE_KERNELS], count = 0;

    for (int k = 0; k < plan->kernel_count; k++) {
        int own = 0, at;

        for (int i = 0; i < plan->term_count; i++)
            own += plan->terms[i].kernel[0] == k;
        if (own == 0)
            continue;
        for (at = count++; at > 0 && own > terms[at - 1]; at--) {
            terms[at] = terms[at - 1];
            kernels[at] = kernels[at - 1];
        }
        terms[at] = own;
        kernels[at] = k;
    }
    return count;
}

/* Fills the units. Returns whether the plan fits the form. */
template <typename Form>
static bool
march_arrange(const struct separable_plan *plan, struct march_units *units)
{
    const int kernels = march_kernels(plan, units->kernels);
    bool fits = plan->extreme == Form::EXTREME && kernels <= Form::KERNELS;
    int u = 0;

    for (int k = kernels; k < Form::KERNELS; k++)
        units->kernels[k] = units->kernels[0];
    for (int p = 0; p < plan->plane_count; p++)
        fits = fits && plan->planes[p].count <= (Form::EXTREME ? Form::TURNS : Form::PARTS);
    if constexpr (!Form::EXTREME) {
        for (int p = 0; p < Form::UNITS; p++)
            units->planes[p] = p < plan->plane_count ? p : -1;
        return fits && plan->plane_count <= Form::UNITS;
    } else {
        for (int k = 0; k < Form::KERNELS && fits; k++) {
            const int first = u, end = first + Form::slots(k);

            for (int p = 0; p < plan->plane_count; p++)
                if (plan->terms[plan->planes[p].first].kernel[0] == units->kernels[k]) {
                    fits = fits && (u < end || k >= kernels);
                    if (u < end)
                        units->planes[u++] = p;
                }
            for (; u < end; u++)
                units->planes[u] = units->planes[first];
        }
        return fits;
    }
}

template <typename Value>
static void
march_copy(const struct separable_axis *axis, int kernel, int sign, Value *weights)
{
    for (int p = 0; p < separable_width(axis); p++)
        weights[p] = (Value)(sign * separable_row(axis, kernel, 0)[p]);
}

/* Fills a unit. Signs are those of weights: sums of negated products are negated exactly. */
template <typename Form>
static void
march_fill_unit(const struct separable_plan *plan, const struct march_units *units, int u,
                struct march_pass<Form> *pass)
{
    const struct separable_plane *plane = &plan->planes[units->planes[u]];
    const struct separable_term *terms = &plan->terms[plane->first];
    const int parts = Form::EXTREME ? 1 : plane->count;

    for (int i = 0; i < parts && i < Form::PARTS; i++) {
        while (units->kernels[pass->x[u][i]] != terms[i].kernel[0])
            pass->x[u][i]++;
        march_copy(&plan->axis[1], terms[i].kernel[1], Form::EXTREME ? 1 : terms[i].sign, pass->along_y[u][i]);
    }
    /* A minimum is a maximum of negated responses; the factor negates it again. */
    for (int t = 0; t < Form::TURNS; t++) {
        const struct separable_term *term = &terms[t < plane->count ? t : 0];
        const int sign = (Form::EXTREME && term->sign < 0 ? -1 : 1) * (pass->factor < 0 ? -1 : 1);

        march_copy(&plan->axis[2], term->kernel[2], sign,
                   pass->along_z[u][t] + Form::WIDTH - separable_width(&plan->axis[2]));
    }
}

/* Fills what is common to all forms, and starts the kernel. */
template <typename Form>
static int
march_start(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
            const struct separable_output *output, struct march_pass<Form> *pass, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;

    pass->input = *input;
    pass->codes = output->codes;
    pass->sides[0] = extent->columns;
    pass->sides[1] = extent->rows;
    pass->sides[2] = extent->slices;
    pass->boundary = plan->demand.options.boundary;
    for (int axis = 0; axis < 3; axis++)
        pass->before[axis] = plan->axis[axis].before;
    pass->after = plan->axis[2].after;
    const int64_t tiles =
        ((pass->sides[0] + MARCH_LANES - 1) / MARCH_LANES) * ((pass->sides[1] + Form::ROWS - 1) / Form::ROWS);

    pass->depth = separable_depth(cuda_device_of(&lane->base), Form::BLOCKS, tiles, pass->sides[2], Form::WIDTH - 1);
    const int64_t blocks = tiles * ((pass->sides[2] + pass->depth - 1) / pass->depth);

    separable_march<Form><<<(unsigned)blocks, Form::THREADS, 0, lane->work>>>(*pass);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

template <typename Form>
static int
march_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
            const struct separable_output *output, struct error *error)
{
    struct march_pass<Form> pass = {
    };
    struct march_units units = {};

    march_arrange<Form>(plan, &units);
    pass.factor = Form::EXTREME && plan->demand.options.pooling == FILTER_MIN ? -output->factor : output->factor;
    pass.sizes = plan->terms[0].sign == 0;
    for (int k = 0; k < Form::KERNELS; k++)
        march_copy(&plan->axis[0], units.kernels[k], 1, pass.along_x[k]);
    for (int u = 0; u < Form::UNITS; u++)
        if (units.planes[u] >= 0)
            march_fill_unit(plan, &units, u, &pass);
    return march_start<Form>(lane, plan, input, output, &pass, error);
}

/* Returns the base of the kernel that a wavelet has along one axis only. */
static int
march_odd_base(const struct separable_plan *plan)
{
    const struct separable_term *term = &plan->terms[0];
    int high = 0;

    for (int axis = 0; axis < 3; axis++)
        high += plan->kernels[term->kernel[axis]].base != 0;
    return high == 1;
}

/* Returns whether the plan is the maximum of 24 rotations, and its kernels are the same along all axes. */
static bool
march_is_of_rotations(const struct separable_plan *plan)
{
    const struct filter_options *options = &plan->demand.options;
    const int width = separable_width(&plan->axis[0]);
    bool is = options->kind == FILTER_WAVELET && options->pooling == FILTER_MAX && plan->term_count == 24 &&
              plan->kernel_count == 4;

    for (int axis = 0; axis < 3; axis++)
        is = is && separable_width(&plan->axis[axis]) == width;
    for (int i = 0; i < 4 * 4 * 3 * width && is; i++) {
        const int k = i % 4, other = i / 4 % 4, axis = i / 16 % 3, p = i / 48;
        const struct separable_kernel *a = &plan->kernels[k], *b = &plan->kernels[other];
        const bool turned = a->turning != b->turning;

        if (a->base == b->base)
            is = separable_row(&plan->axis[0], k, 0)[p] ==
                 separable_row(&plan->axis[axis], other, 0)[turned ? width - 1 - p : p];
    }
    return is;
}

template <int WIDTH>
static int
march_queue_rotations(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                      const struct separable_output *output, struct error *error)
{
    const int odd = march_odd_base(plan);

    struct march_pass<march_rotations<WIDTH>> pass = {
    };

    pass.factor = output->factor;
    for (int k = 0; k < plan->kernel_count; k++)
        if (plan->kernels[k].turning == SEPARABLE_PLAIN)
            march_copy(&plan->axis[0], k, 1, pass.weights[plan->kernels[k].base == odd]);
    return march_start<march_rotations<WIDTH>>(lane, plan, input, output, &pass, error);
}

/* Returns whether floats hold all sums of Laws' kernels, which are integers. */
static bool
march_is_of_floats(const struct separable_plan *plan, const struct separable_input *input)
{
    const int terms = plan->extreme ? 1 : plan->term_count;

    return plan->demand.options.kind == FILTER_LAWS && plan->largest * terms * input->request.limit <= 1 << 24;
}

typedef int march_queue_of(struct cuda_lane *lane, const struct separable_plan *plan,
                           const struct separable_input *input, const struct separable_output *output,
                           struct error *error);

/* Returns the first form that a plan fits, or NULL. */
template <typename Form, typename... Others>
static march_queue_of *
march_choose(const struct separable_plan *plan)
{
    struct march_units units = {};

    if (march_arrange<Form>(plan, &units))
        return march_queue<Form>;
    if constexpr (sizeof...(Others) > 0)
        return march_choose<Others...>(plan);
    return NULL;
}

static march_queue_of *
march_of_floats(const struct separable_plan *plan)
{
    return march_choose<march_total<float, MARCH_NARROW, 1, 4, 2>, march_total<float, MARCH_NARROW, 3, 2, 2>,
                        march_extreme<float, MARCH_NARROW, 1, 2, 3, 4, 4>>(plan);
}

static march_queue_of *
march_of_doubles(const struct separable_plan *plan)
{
    return march_choose<march_total<double, MARCH_WIDTH, 1, 2, 2>, march_total<double, MARCH_WIDTH, 2, 2, 2>,
                        march_total<double, MARCH_WIDTH, 3, 1, 2>, march_extreme<double, MARCH_WIDTH, 2, 4, 1>>(plan);
}

bool
separable_march_fits(const struct separable_plan *plan, const struct image_extent *extent)
{
    bool fits = !plan->box && image_slice_voxels(extent) < INT32_MAX && march_of_doubles(plan);

    for (int axis = 0; axis < 3; axis++)
        fits = fits && plan->axis[axis].edge == 0 && separable_width(&plan->axis[axis]) <= MARCH_WIDTH;
    for (int i = 0; i < plan->term_count; i++)
        fits = fits && (plan->terms[i].sign == 0) == (plan->terms[0].sign == 0);
    return fits;
}

int
separable_march_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                      const struct separable_output *output, struct error *error)
{
    march_queue_of *floats = march_is_of_floats(plan, input) ? march_of_floats(plan) : NULL;
    const int width = separable_width(&plan->axis[0]);

    if ((width == MARCH_WIDTH || width == MARCH_NARROW) && march_is_of_rotations(plan))
        return (width == MARCH_WIDTH ? march_queue_rotations<MARCH_WIDTH>
                                     : march_queue_rotations<MARCH_NARROW>)(lane, plan, input, output, error);
    return (floats ? floats : march_of_doubles(plan))(lane, plan, input, output, error);
}
