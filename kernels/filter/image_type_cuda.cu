/* image_type_cuda.cu - image types on the GPU: a thread per item. The bands of a wavelet are computed by one kernel. */
#include "kernels/filter/image_type_cuda.cuh"

enum {
    IMAGE_TYPE_THREADS = 128,
    BANDS_LANES = 32, /* columns of a tile */
    BANDS_WARPS = 8,
    BANDS_THREADS = BANDS_LANES * BANDS_WARPS,
    BANDS_OUTPUTS = 2, /* adjacent rows of a thread */
    BANDS_ROWS = BANDS_WARPS * BANDS_OUTPUTS,
    BANDS_DEPTH = 64, /* slices that a block writes */
    BANDS_WIDTH = 6,  /* max taps */
    BANDS_PLANES = 4, /* filtered along columns and rows */
};

struct cuda_image_type {
    struct image_type_demand demand; /* first: requests are checked against it */
    struct image_type_plan plan;
    struct image_type_memory memory; /* of the device */
    bool together;                   /* the bands are computed by one kernel */
    struct image_type_table *table, *host_table;
    double *responses, *host_values, *host_responses;
};

static struct cuda_image_type *
cuda_image_type_state(const struct kernels_lane *lane)
{
    return (struct cuda_image_type *)kernels_state(lane, KERNELS_IMAGE_TYPE);
}

/* ------------------------------------------------------------------------------------ items -- */

#define LINE_INLINE static __device__ __forceinline__
#define LINE_REAL   double

LINE_INLINE double
image_type_load(const double *at, int64_t, int)
{
    return *at;
}

LINE_INLINE void
image_type_store(double value, double *at, int64_t, int)
{
    *at = value;
}

LINE_INLINE double
image_type_round(double value)
{
    return image_type_rounded(value);
}

#include "kernels/filter/image_type_lines.inc"

static __global__ void
image_type_items_of(const __grid_constant__ struct image_type_step step,
                    const __grid_constant__ struct image_type_memory memory, int64_t count)
{
    const int64_t item = (int64_t)blockIdx.x * IMAGE_TYPE_THREADS + threadIdx.x;

    if (item >= count)
        return;
    if (step.action == IMAGE_TYPE_RECURSION || step.action == IMAGE_TYPE_SPLINE) {
        const struct image_type_lines line = image_type_lines_of(&step, &memory, item);

        if (step.action == IMAGE_TYPE_SPLINE)
            image_type_spline(&step, &line);
        else
            image_type_recur(&step, &line);
    } else
        image_type_item(&step, &memory, item);
}

static __global__ void
image_type_absent(double *responses, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * IMAGE_TYPE_THREADS + threadIdx.x;

    if (i < count)
        responses[i] = NAN;
}

/* ------------------------------------------------------------------------------------ bands -- */

/* All filters of a transform. `from` has WIDTH - 1 more voxels along each axis than the responses, which are NULL if unwanted. */
template <int WIDTH> struct bands_pass {
    const double *from;
    double *to[IMAGE_TYPE_BANDS];
    double taps[2][(unsigned)WIDTH]; /* of the low-pass and the high-pass filter */
    int64_t size[3], last[3];        /* last: the last voxel of the period */
    bool reversed;                   /* slices are written in reverse */
};

template <int WIDTH> struct bands_tile {
    enum { TALL = BANDS_ROWS + WIDTH - 1, ACROSS = BANDS_LANES + WIDTH - 1 };

    double values[(unsigned)TALL][(unsigned)ACROSS];
    double filtered[2][(unsigned)TALL][BANDS_LANES]; /* along columns */
};

/* Makes COUNT sums of values and their taps at a time: the next product of a sum waits for the last one. Tap t of sum c has
 * tap(c, t) and value(c, WIDTH - 1 - t). ENDS: sums for which last(c) are of the last voxel of the period. Three of its six taps
 * are beyond this voxel, so that the products of taps 0 and 2 change places. */
template <int WIDTH, int COUNT, bool ENDS, typename Value, typename Tap, typename Last>
static __device__ __forceinline__ void
bands_weigh(double (&sums)[(unsigned)COUNT], const Value &value, const Tap &tap, const Last &last)
{
#pragma unroll
    for (int c = 0; c < COUNT; c++)
        sums[c] = __fma_rn(tap(c, 0), value(c, WIDTH - 1), 0.0); /* not -0 */
#pragma unroll
    for (int t = 1; t < WIDTH; t++)
#pragma unroll
        for (int c = 0; c < COUNT; c++)
            if (!ENDS || t > 2 || !last(c))
                sums[c] = sums[c] + tap(c, t) * value(c, WIDTH - 1 - t);
            else if (t == 2)
                sums[c] = tap(c, 2) * value(c, WIDTH - 3) + tap(c, 1) * value(c, WIDTH - 2) + sums[c];
}

template <int WIDTH, bool ENDS>
static __device__ __forceinline__ void
bands_along_x(const struct bands_pass<WIDTH> &pass, bool is_last, struct bands_tile<WIDTH> &tile)
{
    const int lane = (int)threadIdx.x % BANDS_LANES;

    for (int row = (int)threadIdx.x / BANDS_LANES; row < bands_tile<WIDTH>::TALL; row += BANDS_WARPS) {
        double values[WIDTH];

#pragma unroll
        for (int t = 0; t < WIDTH; t++)
            values[t] = tile.values[row][lane + t];
        double sums[2];

        bands_weigh<WIDTH, 2, ENDS>(
            sums, [&](int, int t) { return values[t]; }, [&](int k, int t) { return pass.taps[k][t]; },
            [&](int) { return is_last; });
#pragma unroll
        for (int k = 0; k < 2; k++)
            tile.filtered[k][row][lane] = sums[k];
    }
}

/* Where a thread writes the response of its first row. */
struct bands_place {
    int64_t at;
    bool is_in[BANDS_OUTPUTS], is_last_row[BANDS_OUTPUTS], is_last_slice;
};

/* Filters along rows and slices. `kept`: the last slices of the planes of each output, of which plane k + 2 j is filtered by k
 * along columns and by j along rows. */
template <int WIDTH, bool ENDS>
static __device__ __forceinline__ void
bands_across(const struct bands_pass<WIDTH> &pass, const struct bands_tile<WIDTH> &tile,
             const struct bands_place &place, double (&kept)[BANDS_OUTPUTS][BANDS_PLANES][(unsigned)WIDTH])
{
    const int lane = (int)threadIdx.x % BANDS_LANES, row = (int)threadIdx.x / BANDS_LANES * BANDS_OUTPUTS;

#pragma unroll
    for (int k = 0; k < 2; k++) {
        double column[WIDTH + BANDS_OUTPUTS - 1];

#pragma unroll
        for (int t = 0; t < WIDTH + BANDS_OUTPUTS - 1; t++)
            column[t] = tile.filtered[k][row + t][lane];
        double sums[2 * BANDS_OUTPUTS]; /* sum j * BANDS_OUTPUTS + o */

        bands_weigh<WIDTH, 2 * BANDS_OUTPUTS, ENDS>(
            sums, [&](int c, int t) { return column[t + c % BANDS_OUTPUTS]; },
            [&](int c, int t) { return pass.taps[c / BANDS_OUTPUTS][t]; },
            [&](int c) { return place.is_last_row[c % BANDS_OUTPUTS]; });
#pragma unroll
        for (int j = 0; j < 2; j++) {
            double responses[2 * BANDS_OUTPUTS]; /* response deep * BANDS_OUTPUTS + o */

#pragma unroll
            for (int o = 0; o < BANDS_OUTPUTS; o++) {
                double(&plane)[(unsigned)WIDTH] = kept[o][k + 2 * j];

#pragma unroll
                for (int t = 0; t < WIDTH - 1; t++)
                    plane[t] = plane[t + 1];
                plane[WIDTH - 1] = sums[j * BANDS_OUTPUTS + o];
            }
            bands_weigh<WIDTH, 2 * BANDS_OUTPUTS, ENDS>(
                responses, [&](int c, int t) { return kept[c % BANDS_OUTPUTS][k + 2 * j][t]; },
                [&](int c, int t) { return pass.taps[c / BANDS_OUTPUTS][t]; },
                [&](int) { return place.is_last_slice; });
#pragma unroll
            for (int c = 0; c < 2 * BANDS_OUTPUTS; c++) {
                double *to = pass.to[k + 2 * j + 4 * (c / BANDS_OUTPUTS)];

                if (place.is_in[c % BANDS_OUTPUTS] && to)
                    to[place.at + c % BANDS_OUTPUTS * pass.size[0]] = responses[c];
            }
        }
    }
}

/* Each thread keeps the last slices of BANDS_OUTPUTS adjacent rows of a column, and walks along the slices. */
template <int WIDTH>
static __global__ void
__launch_bounds__(BANDS_THREADS, 2) image_type_bands_of(const __grid_constant__ struct bands_pass<WIDTH> pass)
{
    enum {
        ACROSS = bands_tile<WIDTH>::ACROSS,
        SIZE = bands_tile<WIDTH>::TALL * ACROSS,
        SHARE = (SIZE + BANDS_THREADS - 1) / BANDS_THREADS,
    };

    __shared__ struct bands_tile<WIDTH> tile;
    const int64_t pitch = pass.size[0] + WIDTH - 1, slice = pitch * (pass.size[1] + WIDTH - 1);
    const int64_t across = (pass.size[0] + BANDS_LANES - 1) / BANDS_LANES;
    const int64_t down = (pass.size[1] + BANDS_ROWS - 1) / BANDS_ROWS;
    const int64_t left = blockIdx.x % across * BANDS_LANES, top = blockIdx.x / across % down * BANDS_ROWS;
    const int64_t first = blockIdx.x / across / down * BANDS_DEPTH;
    const int64_t end = min(first + BANDS_DEPTH, pass.size[2]);
    const int64_t x = left + (int)threadIdx.x % BANDS_LANES;
    const int64_t y = top + (int)threadIdx.x / BANDS_LANES * BANDS_OUTPUTS;
    const bool is_last_tile = pass.last[0] < left + BANDS_LANES || pass.last[1] < top + BANDS_ROWS;
    uint32_t from[SHARE]; /* of a thread's values within a slice */
    double next[SHARE];
    double kept[BANDS_OUTPUTS][BANDS_PLANES][(unsigned)WIDTH] = {};

#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        const int at = min((int)threadIdx.x + i * BANDS_THREADS, SIZE - 1);
        const int64_t column = min(left + at % ACROSS, pitch - 1);
        const int64_t row = min(top + at / ACROSS, pass.size[1] + WIDTH - 2);

        from[i] = (uint32_t)(row * pitch + column);
    }
    const auto fetch = [&](int64_t z) {
#pragma unroll
        for (int i = 0; i < SHARE; i++)
            next[i] = pass.from[z * slice + from[i]];
    };

    fetch(first);
    for (int64_t z = first; z < end + WIDTH - 1; z++) {
        const int64_t done = z - (WIDTH - 1), to = pass.reversed ? pass.size[2] - 1 - done : done;
        struct bands_place place = {};

#pragma unroll
        for (int i = 0; i < SHARE; i++)
            if ((int)threadIdx.x + i * BANDS_THREADS < SIZE)
                (&tile.values[0][0])[(int)threadIdx.x + i * BANDS_THREADS] = next[i];
        __syncthreads();
        if (z + 1 < end + WIDTH - 1)
            fetch(z + 1);
        const bool ends = WIDTH > 4 && (done == pass.last[2] || is_last_tile);

        if (ends)
            bands_along_x<WIDTH, true>(pass, x == pass.last[0], tile);
        else
            bands_along_x<WIDTH, false>(pass, false, tile);
        __syncthreads();
        place.at = (to * pass.size[1] + y) * pass.size[0] + x;
#pragma unroll
        for (int o = 0; o < BANDS_OUTPUTS; o++) {
            place.is_in[o] = done >= first && x < pass.size[0] && y + o < pass.size[1];
            place.is_last_row[o] = y + o == pass.last[1];
        }
        place.is_last_slice = done == pass.last[2];
        if (ends)
            bands_across<WIDTH, true>(pass, tile, place, kept);
        else
            bands_across<WIDTH, false>(pass, tile, place, kept);
    }
}

template <int WIDTH>
static void
bands_queue(struct cuda_lane *lane, const struct cuda_image_type *own)
{
    const struct image_type_plan *plan = &own->plan;
    const struct image_type_demand *demand = &plan->demand;

    struct bands_pass<WIDTH> pass = {
    };

    int count = 0;

    for (int k = 0; k < 2; k++)
        filter_wavelet_taps(demand->options.wavelet, k == 1, pass.taps[k]);
    for (int band = 0; band < IMAGE_TYPE_BANDS; band++)
        if (demand->bands >> band & 1)
            pass.to[band] = own->memory.at[IMAGE_TYPE_RESPONSES + count++];
    for (int axis = 0; axis < 3; axis++) {
        pass.size[axis] = demand->size[axis];
        pass.last[axis] = plan->periods[axis] - 1 - (plan->copied[axis] + WIDTH - 1 - WIDTH / 2);
    }
    pass.from = own->memory.at[IMAGE_TYPE_VALUES];
    pass.reversed = plan->reversed;
    const int64_t tiles = (pass.size[0] + BANDS_LANES - 1) / BANDS_LANES *
                          ((pass.size[1] + BANDS_ROWS - 1) / BANDS_ROWS) *
                          ((pass.size[2] + BANDS_DEPTH - 1) / BANDS_DEPTH);

    image_type_bands_of<WIDTH><<<(unsigned)tiles, BANDS_THREADS, 0, lane->work>>>(pass);
}

/* ------------------------------------------------------------------------------------- lane -- */

static bool
cuda_image_type_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_image_type *own = cuda_image_type_state(lane);
    const struct image_type_plan *plan = &own->plan;

    own->demand = *(const struct image_type_demand *)demand;
    if (image_type_plan_make(&own->demand, &lane->extent, &own->plan)) { /* a run refuses it */
        own->plan.count = own->plan.responses = 0;
        own->plan.between = false;
    }
    own->together = plan->count > 0 && own->demand.options.kind == FILTER_PYRADIOMICS_WAVELET &&
                    own->demand.options.start_level + own->demand.options.level == 1 && !own->demand.options.in_slice &&
                    plan->steps[0].count <= BANDS_WIDTH && plan->copies[0] * plan->copies[1] < UINT32_MAX;
    return true;
}

static void
cuda_image_type_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_image_type *own = cuda_image_type_state(lane);
    const size_t count = image_type_elements(own->plan.copies);
    const int64_t *size = own->plan.demand.size;

    cuda_take(&memory->device, &own->memory.at[IMAGE_TYPE_VALUES], count);
    cuda_take(&memory->device, &own->responses, (size_t)(size[0] * size[1] * size[2] * own->plan.responses));
    for (int place = IMAGE_TYPE_FIRST; place <= IMAGE_TYPE_SECOND; place++)
        cuda_take(&memory->device, &own->memory.at[place], own->plan.between && !own->together ? count : 0);
    cuda_take(&memory->device, &own->table, 1);
    cuda_take(&memory->host, &own->host_table, 1);
    cuda_take(&memory->host, &own->host_values, count);
}

static void
cuda_image_type_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_image_type *own = cuda_image_type_state(lane);
    const int64_t *size = own->plan.demand.size;

    cuda_take(&memory->host, &own->host_responses, (size_t)(size[0] * size[1] * size[2] * own->plan.responses));
}

static unsigned
image_type_blocks(int64_t count)
{
    return (unsigned)((count + IMAGE_TYPE_THREADS - 1) / IMAGE_TYPE_THREADS);
}

int
cuda_image_type_queue(struct cuda_lane *lane, struct error *error)
{
    struct cuda_image_type *own = cuda_image_type_state(&lane->base);
    const struct image_type_plan *plan = &own->plan;
    const int64_t *size = plan->demand.size, count = size[0] * size[1] * size[2];

    for (int i = 0; i < plan->responses; i++)
        own->memory.at[IMAGE_TYPE_RESPONSES + i] = own->responses + i * count;
    own->memory.table = own->table;
    if (plan->none)
        image_type_absent<<<image_type_blocks(count), IMAGE_TYPE_THREADS, 0, lane->work>>>(own->responses, count);
    else if (own->together && plan->steps[0].count == 2)
        bands_queue<2>(lane, own);
    else if (own->together && plan->steps[0].count == 4)
        bands_queue<4>(lane, own);
    else if (own->together)
        bands_queue<6>(lane, own);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    for (int i = 0; i < plan->count && !plan->none && !own->together; i++) {
        const int64_t items = image_type_items(&plan->steps[i]);

        image_type_items_of<<<image_type_blocks(items), IMAGE_TYPE_THREADS, 0, lane->work>>>(plan->steps[i],
                                                                                             own->memory, items);
        CUDA_LAUNCHED(cuda_device_of(&lane->base));
    }
    return 0;
}

/* Values to copy to pinned memory. */
struct image_type_copying {
    const struct image_type_plan *plan;
    const struct image_type_request *request;
    double *values;
};

static void
image_type_copy_slice(void *context, int64_t z)
{
    const struct image_type_copying *copying = (const struct image_type_copying *)context;
    const int64_t rows = copying->plan->copies[1];

    for (int64_t row = z * rows; row < (z + 1) * rows; row++)
        image_type_copy(copying->plan, copying->request, row, copying->values);
}

static int
cuda_image_type_run(struct kernels_lane *base, const void *request, struct error *error)
{
    const struct image_type_task *task = (const struct image_type_task *)request;
    struct cuda_image_type *own = cuda_image_type_state(base);
    struct image_type_plan *plan = &own->plan;
    struct cuda_lane *lane = cuda_lane_of(base);
    const int64_t *size = plan->demand.size, count = size[0] * size[1] * size[2];
    struct image_type_copying copying = {plan, task->request, own->host_values};
    int rc;

    image_type_plan_set(plan, task);
    if (!plan->none)
        cpu_pool_for(cuda_device_of(base)->pool, plan->copies[2], image_type_copy_slice, &copying);
    CUDA_SEND(lane, own->memory.at[IMAGE_TYPE_VALUES], own->host_values,
              (size_t)(plan->copies[0] * plan->copies[1] * plan->copies[2]));
    if (own->demand.options.kind == FILTER_PYRADIOMICS_LBP_3D) {
        image_type_table_make(&own->demand, own->host_table);
        CUDA_SEND(lane, own->table, own->host_table, 1);
    }
    rc = cuda_image_type_queue(lane, error);
    if (rc)
        return rc;
    for (int i = 0; i < plan->responses; i++)
        task->responses[i] = own->host_responses + i * count;
    /* The copy is last, since it may give up the turn. */
    return cuda_result_copy(lane, own->host_responses, own->responses,
                            (size_t)(count * plan->responses) * sizeof(*own->responses), error);
}

const struct kernels_op cuda_image_type_op = {
    .name = "the image type",
    .state_size = sizeof(struct cuda_image_type),
    .transient = true,
    .needs = cuda_image_type_needs,
    .place = cuda_image_type_place,
    .run = cuda_image_type_run,
    .keep = cuda_image_type_keep,
};
