/*
 * separable_cuda.cu - separable filters on the GPU: one kernel along x, and one along y and z. Groups of slices pass
 * through x and y at a time, so that values between the passes stay in the cache.
 *
 * A thread computes SEPARABLE_OUTPUTS values in a row along the axis, from a tile in shared memory. It reads each value
 * of the tile once for all of them.
 */
#include "kernels/filter/separable_cuda.cuh"

#include "kernels/filter/separable_march.cuh"

enum {
    SEPARABLE_OUTPUTS = 8,
    SEPARABLE_WARP = 32,
    SEPARABLE_WARPS = 8,
    SEPARABLE_THREADS = SEPARABLE_WARP * SEPARABLE_WARPS,
    SEPARABLE_LINE = SEPARABLE_WARP * SEPARABLE_OUTPUTS,   /* values along x of a tile of separable_rows */
    SEPARABLE_DEPTH = SEPARABLE_WARPS * SEPARABLE_OUTPUTS, /* values along the axis of a tile of separable_across */
    SEPARABLE_ROOM = SEPARABLE_WIDTH,                      /* values around them */
    SEPARABLE_SHARE =
        (SEPARABLE_LINE + SEPARABLE_ROOM + SEPARABLE_WARP - 1) / SEPARABLE_WARP, /* of a thread of separable_rows */
    SEPARABLE_BATCH = 8,          /* values that a thread of separable_across reads at a time */
    SEPARABLE_TILES = 1 << 20,    /* max blocks of a grid */
    SEPARABLE_BETWEEN = 32 << 20, /* bytes of a group of slices between x and y */
    SEPARABLE_PIECES = 4,         /* of a mean, each copied to the host while the next one is computed */
};

/* An axis to filter along: `side` values `stride` apart, in lines that belong to `columns` adjacent voxels and repeat
 * `pages` times, `page` apart. */
struct separable_lines {
    int64_t columns, side, stride, pages, page;
    enum filter_boundary boundary;
    int half; /* of a box */
    struct separable_axis axis;
};

/* Where values come from, and how their response is pooled. */
struct separable_part {
    const void *from;
    int kernel, sign;
};

struct separable_across_pass {
    struct separable_lines lines;
    struct separable_part parts[SEPARABLE_TERMS];
    int count;
    enum filter_pooling pooling;
    void *to;       /* a plane; NULL: codes */
    double *pooled; /* of an extreme: read unless `first`, and written */
    bool first, last;
    int32_t *codes;
    double factor;
};

struct separable_rows_pass {
    struct separable_lines lines;
    struct separable_input input;
    int64_t first; /* voxel of the input */
    int kernels[SEPARABLE_KERNELS];
    void *to[SEPARABLE_KERNELS];
    int count;
};

static __device__ __noinline__ int32_t
separable_place_outside(int32_t i, int32_t side, enum filter_boundary boundary)
{
    return (int32_t)filter_place(i, side, boundary);
}

/* As filter_place(). Few places are outside. */
static __device__ __forceinline__ int32_t
separable_place(int32_t i, int32_t side, enum filter_boundary boundary)
{
    return (uint32_t)i < (uint32_t)side ? i : separable_place_outside(i, side, boundary);
}

static __device__ void
separable_fill_weights(const struct separable_axis &axis, int kernel, double *weights)
{
    const double *row = separable_row(&axis, kernel, min((int64_t)axis.edge, axis.side - 1));

    for (int i = (int)threadIdx.x; i < separable_width(&axis); i += SEPARABLE_THREADS)
        weights[i] = row[i];
}

/* Adds a tap to all outputs: value t + i of the window for output i. */
static __device__ __forceinline__ void
separable_add_tap(double weight, const double *values, double sums[SEPARABLE_OUTPUTS])
{
#pragma unroll
    for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
        sums[i] = __fma_rn(weight, values[i], sums[i]);
}

/* Sums SEPARABLE_OUTPUTS values: value j of the tile has weight j - i for output i. load(j) reads it, once. */
template <typename Load>
static __device__ __forceinline__ void
separable_sum(const double *weights, int width, double sums[SEPARABLE_OUTPUTS], const Load &load)
{
    double window[2 * SEPARABLE_OUTPUTS - 1]; /* values from the first tap of a group on */
    int first = 0;

#pragma unroll
    for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
        sums[i] = 0;
#pragma unroll
    for (int i = 0; i < SEPARABLE_OUTPUTS - 1; i++)
        window[i] = load(i);
    for (; first + SEPARABLE_OUTPUTS <= width; first += SEPARABLE_OUTPUTS) {
#pragma unroll
        for (int t = 0; t < SEPARABLE_OUTPUTS; t++) {
            window[SEPARABLE_OUTPUTS - 1 + t] = load(first + SEPARABLE_OUTPUTS - 1 + t);
            separable_add_tap(weights[first + t], window + t, sums);
        }
#pragma unroll
        for (int i = 0; i < SEPARABLE_OUTPUTS - 1; i++)
            window[i] = window[i + SEPARABLE_OUTPUTS];
    }
#pragma unroll
    for (int t = 0; t < SEPARABLE_OUTPUTS - 1; t++)
        if (first + t < width) {
            window[SEPARABLE_OUTPUTS - 1 + t] = load(first + SEPARABLE_OUTPUTS - 1 + t);
            separable_add_tap(weights[first + t], window + t, sums);
        }
}

/* Sums values near the ends of the volume again, whose weights differ. `at` is the place of the first output. */
template <typename Load>
static __device__ __forceinline__ void
separable_sum_ends(const struct separable_axis &axis, int kernel, int64_t at, double sums[SEPARABLE_OUTPUTS],
                   const Load &load)
{
    if (axis.edge == 0)
        return;
    for (int i = 0; i < SEPARABLE_OUTPUTS; i++) {
        const int64_t place = at + i;

        if (place >= axis.side || (place >= axis.edge && place < axis.side - axis.edge))
            continue;
        const double *weights = separable_row(&axis, kernel, place);
        double sum = 0;

        for (int p = 0; p < separable_width(&axis); p++)
            sum = __fma_rn(weights[p], load(i + p), sum);
        sums[i] = sum;
    }
}

template <typename Value, typename Load>
static __device__ __forceinline__ void
separable_sum_box(int half, Value sums[SEPARABLE_OUTPUTS], const Load &load)
{
    Value sum = 0;

    for (int j = 0; j < 2 * half; j++)
        sum += load(j);
#pragma unroll
    for (int i = 0; i < SEPARABLE_OUTPUTS; i++) {
        sum += load(2 * half + i);
        sums[i] = sum;
        sum -= load(i);
    }
}

/* Returns how many values are around those of a tile, and how many of them are before. */
template <bool BOX>
static __device__ __forceinline__ int
separable_around(const struct separable_lines &lines, int *before)
{
    *before = BOX ? lines.half : lines.axis.before;
    return BOX ? 2 * lines.half : separable_width(&lines.axis) - 1;
}

/* Threads read values SEPARABLE_OUTPUTS apart: a gap after as many keeps them in different banks. */
static __device__ __forceinline__ int
separable_spread(int i)
{
    return i + i / SEPARABLE_OUTPUTS;
}

/* Values of a row per warp, and those filtered by one kernel, which threads write in the order of the row. */
template <typename Value> struct separable_rows_tile {
    Value values[SEPARABLE_WARPS][(SEPARABLE_LINE + SEPARABLE_ROOM) * 9 / 8 + 1];
    Value filtered[SEPARABLE_WARPS][SEPARABLE_LINE * 9 / 8];
};

/* Reads values and filters them along x by all kernels. Pages are rows, one per warp. */
template <typename Value, bool BOX>
static __global__ void
__launch_bounds__(SEPARABLE_THREADS, 2) separable_rows(struct separable_rows_pass pass)
{
    extern __shared__ __align__(16) unsigned char separable_memory[];
    struct separable_rows_tile<Value> &tile = *(struct separable_rows_tile<Value> *)separable_memory;
    __shared__ double weights[SEPARABLE_WIDTH];
    const struct separable_lines &lines = pass.lines;
    const uint32_t across = (uint32_t)((lines.side + SEPARABLE_LINE - 1) / SEPARABLE_LINE);
    const uint32_t tiles = across * (uint32_t)((lines.pages + SEPARABLE_WARPS - 1) / SEPARABLE_WARPS);
    const int line = (int)threadIdx.x / SEPARABLE_WARP, lane = (int)threadIdx.x % SEPARABLE_WARP;
    int before;
    const int around = separable_around<BOX>(lines, &before);

    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t left = (int64_t)(t % across) * SEPARABLE_LINE;
        const int64_t row = (int64_t)(t / across) * SEPARABLE_WARPS + line;
        const int64_t from = pass.first + min(row, lines.pages - 1) * lines.page, x = left + SEPARABLE_OUTPUTS * lane;
        int32_t places[SEPARABLE_SHARE], stored[SEPARABLE_SHARE];

        __syncthreads();
#pragma unroll
        for (int i = 0; i < SEPARABLE_SHARE; i++) {
            const int at = lane + i * SEPARABLE_WARP;

            places[i] = at < SEPARABLE_LINE + around
                            ? separable_place((int)left + at - before, (int)lines.side, lines.boundary)
                            : -1;
        }
        separable_read(pass.input, (const unsigned char *)pass.input.from + separable_slice_bytes(pass.input, from),
                       places, stored);
        separable_values(pass.input, places, stored);
#pragma unroll
        for (int i = 0; i < SEPARABLE_SHARE; i++)
            if (lane + i * SEPARABLE_WARP < SEPARABLE_LINE + around)
                tile.values[line][separable_spread(lane + i * SEPARABLE_WARP)] = (Value)stored[i];
        for (int k = 0; k < pass.count; k++) {
            const Value *own = &tile.values[line][separable_spread(SEPARABLE_OUTPUTS * lane)];
            const auto load = [&](int j) { return own[separable_spread(j)]; };
            Value *to = (Value *)pass.to[k] + row * lines.page + left;
            Value sums[SEPARABLE_OUTPUTS];

            __syncthreads();
            if constexpr (BOX) {
                separable_sum_box(lines.half, sums, load);
            } else {
                separable_fill_weights(lines.axis, pass.kernels[k], weights);
                __syncthreads();
                separable_sum(weights, around + 1, sums, load);
                separable_sum_ends(lines.axis, pass.kernels[k], x, sums, load);
            }
#pragma unroll
            for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
                tile.filtered[line][separable_spread(SEPARABLE_OUTPUTS * lane) + i] = sums[i];
            __syncwarp();
#pragma unroll
            for (int i = 0; i < SEPARABLE_OUTPUTS; i++) {
                const int at = lane + i * SEPARABLE_WARP;

                if (row < lines.pages && left + at < lines.side)
                    to[at] = tile.filtered[line][separable_spread(at)];
            }
        }
    }
}

/* Pools the response with those of other planes, or writes the code or the value of a plane. */
template <typename Value, bool BOX>
static __device__ __forceinline__ void
separable_write(const struct separable_across_pass &pass, int64_t at, Value total)
{
    if (pass.to) {
        ((Value *)pass.to)[at] = total;
        return;
    }
    if constexpr (!BOX)
        if (pass.pooled) {
            if (!pass.first)
                total = separable_pool(pass.pooling, 1, false, pass.pooled[at], total);
            if (!pass.last) {
                pass.pooled[at] = total;
                return;
            }
        }
    pass.codes[at] = filter_code(__dmul_rn((double)total, pass.factor));
}

/* Fills a tile of `count` values per column. read(i) reads value i. A thread must have read a batch before it uses a value. */
template <typename Value, typename Read>
static __device__ __forceinline__ void
separable_fill_tile(int count, Value *tile, const Read &read)
{
    const int lane = (int)threadIdx.x % SEPARABLE_WARP, warp = (int)threadIdx.x / SEPARABLE_WARP;

    for (int i = warp; i < count; i += SEPARABLE_WARPS * SEPARABLE_BATCH) {
        Value values[SEPARABLE_BATCH];

#pragma unroll
        for (int b = 0; b < SEPARABLE_BATCH; b++)
            if (i + b * SEPARABLE_WARPS < count)
                values[b] = read(i + b * SEPARABLE_WARPS);
#pragma unroll
        for (int b = 0; b < SEPARABLE_BATCH; b++)
            if (i + b * SEPARABLE_WARPS < count)
                tile[(i + b * SEPARABLE_WARPS) * SEPARABLE_WARP + lane] = values[b];
    }
}

/* Filters along y or z. Pages are slices, or rows. */
template <typename Value, bool BOX>
static __global__ void
__launch_bounds__(SEPARABLE_THREADS, 3) separable_across(struct separable_across_pass pass)
{
    extern __shared__ __align__(16) unsigned char separable_memory[];
    __shared__ double weights[SEPARABLE_WIDTH];
    Value *tile = (Value *)separable_memory;
    const struct separable_lines &lines = pass.lines;
    const uint32_t across = (uint32_t)((lines.columns + SEPARABLE_WARP - 1) / SEPARABLE_WARP);
    const uint32_t down = (uint32_t)((lines.side + SEPARABLE_DEPTH - 1) / SEPARABLE_DEPTH);
    const uint32_t tiles = across * down * (uint32_t)lines.pages;
    const int lane = (int)threadIdx.x % SEPARABLE_WARP, warp = (int)threadIdx.x / SEPARABLE_WARP;
    const int at = warp * SEPARABLE_OUTPUTS;
    int before;
    const int around = separable_around<BOX>(lines, &before);

    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t x = (int64_t)(t % across) * SEPARABLE_WARP + lane, page = t / across / down;
        const int64_t top = (int64_t)(t / across % down) * SEPARABLE_DEPTH;
        const int first = (int)top - before;
        const bool inside = first >= 0 && first + SEPARABLE_DEPTH + around <= lines.side;
        const uint64_t stride = (uint64_t)lines.stride;
        const auto load = [&](int j) { return tile[(at + j) * SEPARABLE_WARP + lane]; };
        Value totals[SEPARABLE_OUTPUTS] = {};

        for (int k = 0; k < pass.count; k++) {
            const struct separable_part &part = pass.parts[k];
            const Value *from = (const Value *)part.from + page * lines.page + min(x, lines.columns - 1);
            Value sums[SEPARABLE_OUTPUTS];

            __syncthreads();
            if (k == 0 || part.from != pass.parts[k - 1].from)
                if (inside)
                    separable_fill_tile(SEPARABLE_DEPTH + around, tile,
                                        [&](int i) { return from[(uint32_t)(first + i) * stride]; });
                else
                    separable_fill_tile(SEPARABLE_DEPTH + around, tile, [&](int i) {
                        const int32_t place = separable_place(first + i, (int)lines.side, lines.boundary);

                        return place < 0 ? 0 : from[(uint32_t)place * stride];
                    });
            if constexpr (BOX) {
                __syncthreads();
                separable_sum_box(lines.half, sums, load);
                for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
                    totals[i] = sums[i];
            } else {
                separable_fill_weights(lines.axis, part.kernel, weights);
                __syncthreads();
                separable_sum(weights, around + 1, sums, load);
                separable_sum_ends(lines.axis, part.kernel, top + at, sums, load);
                if (pass.pooling == FILTER_MAX || pass.pooling == FILTER_MIN)
                    for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
                        totals[i] = separable_pool(pass.pooling, part.sign, k == 0, totals[i], sums[i]);
                else
#pragma unroll
                    for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
                        totals[i] += part.sign < 0 ? -sums[i] : sums[i];
            }
        }
        const int64_t to = page * lines.page + (top + at) * lines.stride + x;
        const int outputs = x < lines.columns ? (int)min(lines.side - top - at, (int64_t)SEPARABLE_OUTPUTS) : 0;

#pragma unroll
        for (int i = 0; i < SEPARABLE_OUTPUTS; i++)
            if (i < outputs)
                separable_write<Value, BOX>(pass, to + i * lines.stride, totals[i]);
        __syncthreads();
    }
}

/* ------------------------------------------------------------------------------- the lane -- */

struct cuda_separable {
    struct filter_demand demand; /* first: requests are checked against it */
    struct separable_plan plan;
    bool march, box_march; /* one kernel computes the filter; the mean or energy */
    bool walk;             /* two kernels compute the filter */
    int64_t group;         /* slices that pass through x and y at a time */
    double *between;       /* for each kernel along x: a group of slices */
    double *planes, *pooled;
    int32_t *responses; /* codes before their energy */
    int32_t *values, *codes, *host_codes;
    double *weights[3], *host_weights[3];
    cudaEvent_t made; /* the last piece of a mean */
};

static struct cuda_separable *
cuda_separable_state(const struct kernels_lane *lane)
{
    return (struct cuda_separable *)kernels_state(lane, KERNELS_SEPARABLE);
}

static bool
cuda_separable_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_separable *own = cuda_separable_state(lane);
    const int64_t slice = image_slice_voxels(&lane->extent) * (int64_t)sizeof(double);

    own->demand = *(const struct filter_demand *)demand;
    /* A run refuses what has no plan. */
    if (separable_plan_make(&own->demand, &lane->extent, &own->plan))
        own->plan.box = true;
    own->march = separable_march_fits(&own->plan, &lane->extent);
    own->walk = !own->march && separable_walk_fits(&own->plan, &lane->extent);
    own->box_march = separable_box_fits(&own->plan, &lane->extent);
    own->group = SEPARABLE_BETWEEN / (slice * max(own->plan.kernel_count, 1));
    own->group = min(max(own->group, (int64_t)1), lane->extent.slices);
    return true;
}

static void
cuda_separable_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_separable *own = cuda_separable_state(lane);
    const struct separable_plan *plan = &own->plan;
    const size_t voxels = (size_t)image_voxels(&lane->extent), slice = (size_t)image_slice_voxels(&lane->extent);

    if (plan->box ? !own->box_march : !own->march || (plan->energy && !own->box_march)) {
        cuda_take(&memory->device, &own->between, own->walk ? 0 : slice * (size_t)own->group,
                  (size_t)max(plan->kernel_count, 1));
        cuda_take(&memory->device, &own->planes, voxels,
                  (size_t)(plan->extreme || own->march ? 1 : max(plan->plane_count, 1)));
    }
    if (!own->march && plan->extreme && plan->plane_count > 1)
        cuda_take(&memory->device, &own->pooled, voxels);
    if (plan->energy && own->box_march)
        cuda_take(&memory->device, &own->responses, voxels);
    if (own->demand.values)
        cuda_take(&memory->device, &own->values, voxels);
    cuda_take(&memory->device, &own->codes, voxels);
    cuda_take(&memory->host, &own->host_codes, voxels);
    for (int axis = 0; axis < 3 && !plan->box; axis++) {
        cuda_take(&memory->device, &own->weights[axis], separable_weights(plan, axis));
        cuda_take(&memory->host, &own->host_weights[axis], separable_weights(plan, axis));
    }
}

/* A filter in progress. */
struct separable_queueing {
    struct cuda_lane *lane;
    const struct cuda_separable *own;
    struct separable_input input;
    struct separable_lines lines[3]; /* along x, y, z */
    int32_t *codes;
    double factor;
    int32_t *host; /* where a mean's codes are copied to, in pieces; NULL: nowhere */
};

static struct separable_lines
separable_lines_of(const struct cuda_separable *own, const struct image_extent *extent, int axis)
{
    const int64_t slice = image_slice_voxels(extent);
    struct separable_lines lines = {};

    lines.boundary = own->demand.options.boundary;
    lines.half = own->plan.half[axis];
    lines.axis = own->plan.axis[axis];
    lines.axis.weights = own->weights[axis];
    lines.columns = extent->columns;
    lines.side = axis == 0 ? extent->columns : axis == 1 ? extent->rows : extent->slices;
    lines.stride = axis == 2 ? slice : extent->columns;
    lines.pages = axis == 2 ? extent->rows : 0; /* of x and y: a group's */
    lines.page = axis == 1 ? slice : extent->columns;
    return lines;
}

/* Launches a kernel that needs more shared memory than a launch may have by default. */
template <typename Value, bool BOX>
static int
separable_launch_across(const struct separable_queueing *run, const struct separable_across_pass *pass,
                        struct error *error)
{
    const struct separable_lines *lines = &pass->lines;
    const int around = BOX ? 2 * lines->half : separable_width(&lines->axis) - 1;
    const size_t bytes = (size_t)(SEPARABLE_DEPTH + around) * SEPARABLE_WARP * sizeof(Value);
    const int64_t tiles = ((lines->columns + SEPARABLE_WARP - 1) / SEPARABLE_WARP) *
                          ((lines->side + SEPARABLE_DEPTH - 1) / SEPARABLE_DEPTH) * lines->pages;
    const unsigned grid = (unsigned)min(tiles, (int64_t)SEPARABLE_TILES);
    struct cuda_device *device = cuda_device_of(&run->lane->base);

    CUDA_TRY(device, cudaFuncSetAttribute(separable_across<Value, BOX>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)bytes));
    separable_across<Value, BOX><<<grid, SEPARABLE_THREADS, bytes, run->lane->work>>>(*pass);
    CUDA_LAUNCHED(device);
    return 0;
}

template <typename Value, bool BOX>
static int
separable_launch_rows(const struct separable_queueing *run, const struct separable_rows_pass *pass, struct error *error)
{
    const int64_t tiles = ((pass->lines.side + SEPARABLE_LINE - 1) / SEPARABLE_LINE) *
                          ((pass->lines.pages + SEPARABLE_WARPS - 1) / SEPARABLE_WARPS);
    struct cuda_device *device = cuda_device_of(&run->lane->base);
    const unsigned grid = (unsigned)min(tiles, (int64_t)SEPARABLE_TILES);

    CUDA_TRY(device, cudaFuncSetAttribute(separable_rows<Value, BOX>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)sizeof(struct separable_rows_tile<Value>)));
    separable_rows<Value, BOX>
        <<<grid, SEPARABLE_THREADS, sizeof(struct separable_rows_tile<Value>), run->lane->work>>>(*pass);
    CUDA_LAUNCHED(device);
    return 0;
}

/* ---------------------------------------------------------------------------------- terms -- */

/* Fills planes `plane` .. end - 1 of a group of slices: through x, then y. */
static int
separable_queue_group(const struct separable_queueing *run, int plane, int end, int64_t first, int64_t count,
                      struct error *error)
{
    const struct cuda_separable *own = run->own;
    const struct separable_plan *plan = &own->plan;
    const struct image_extent *extent = &run->lane->base.extent;
    const int64_t slice = image_slice_voxels(extent);
    struct separable_rows_pass rows = {};
    int rc;

    rows.lines = run->lines[0];
    rows.lines.pages = count * extent->rows;
    rows.input = run->input;
    rows.first = first * slice;
    for (int k = 0; k < plan->kernel_count; k++)
        if (plan->extreme ? plan->terms[plan->planes[plane].first].kernel[0] == k : separable_uses(plan, 0, k)) {
            rows.kernels[rows.count] = k;
            rows.to[rows.count++] = own->between + k * own->group * slice;
        }
    rc = separable_launch_rows<double, false>(run, &rows, error);
    for (int p = plane; p < end && rc == 0; p++) {
        struct separable_across_pass across = {};

        across.lines = run->lines[1];
        across.lines.pages = count;
        across.pooling = FILTER_MEAN_OF;
        across.to = own->planes + (plan->extreme ? 0 : p * image_voxels(extent)) + first * slice;
        across.count = plan->extreme ? 1 : plan->planes[p].count;
        for (int i = 0; i < across.count; i++) {
            const struct separable_term *term = &plan->terms[plan->planes[p].first + i];

            across.parts[i].from = own->between + term->kernel[0] * own->group * slice;
            across.parts[i].kernel = term->kernel[1];
            across.parts[i].sign = plan->extreme ? 1 : term->sign;
        }
        rc = separable_launch_across<double, false>(run, &across, error);
    }
    return rc;
}

/* Queues planes `plane` .. end - 1: all of a sum, or one of an extreme. */
static int
separable_queue_planes(const struct separable_queueing *run, int plane, int end, struct error *error)
{
    const struct cuda_separable *own = run->own;
    const struct separable_plan *plan = &own->plan;
    const int64_t slices = run->lane->base.extent.slices, voxels = image_voxels(&run->lane->base.extent);
    struct separable_across_pass across = {};
    int rc = 0;

    for (int64_t z = 0; z < slices && rc == 0; z += own->group)
        rc = separable_queue_group(run, plane, end, z, min(own->group, slices - z), error);
    if (rc)
        return rc;
    across.lines = run->lines[2];
    across.pooling = plan->extreme ? own->demand.options.pooling : FILTER_MEAN_OF;
    across.pooled = plan->plane_count > 1 && plan->extreme ? own->pooled : NULL;
    across.first = plane == 0;
    across.last = end == plan->plane_count;
    across.codes = run->codes;
    across.factor = run->factor;
    across.count = plan->extreme ? plan->planes[plane].count : plan->plane_count;
    for (int i = 0; i < across.count; i++) {
        const int first = plan->extreme ? plan->planes[plane].first + i : plan->planes[i].first;

        across.parts[i].from = own->planes + (plan->extreme ? 0 : i * voxels);
        across.parts[i].kernel = plan->terms[first].kernel[2];
        across.parts[i].sign = plan->extreme ? plan->terms[first].sign : 1;
    }
    return separable_launch_across<double, false>(run, &across, error);
}

static int
separable_queue_terms(struct separable_queueing *run, struct error *error)
{
    const struct cuda_separable *own = run->own;
    const struct separable_plan *plan = &own->plan;
    const struct separable_output output = {run->codes, run->factor};
    int rc = 0;

    for (int axis = 0; axis < 3; axis++)
        separable_fill(plan, axis, own->host_weights[axis]);
    if (own->march) {
        struct separable_plan of_host = *plan;

        for (int axis = 0; axis < 3; axis++)
            of_host.axis[axis].weights = own->host_weights[axis];
        return separable_march_queue(run->lane, &of_host, &run->input, &output, error);
    }
    for (int axis = 0; axis < 3; axis++)
        CUDA_SEND(run->lane, own->weights[axis], own->host_weights[axis], separable_weights(plan, axis));
    if (own->walk) {
        struct separable_plan of_device = *plan;

        for (int axis = 0; axis < 3; axis++)
            of_device.axis[axis].weights = own->weights[axis];
        return separable_walk_queue(run->lane, &of_device, &run->input, &output, own->planes, error);
    }
    if (!plan->extreme)
        return separable_queue_planes(run, 0, plan->plane_count, error);
    for (int p = 0; p < plan->plane_count && rc == 0; p++)
        rc = separable_queue_planes(run, p, p + 1, error);
    return rc;
}

/* ---------------------------------------------------------------------------------- boxes -- */

template <typename Value>
static int
separable_queue_box(const struct separable_queueing *run, struct error *error)
{
    const struct cuda_separable *own = run->own;
    const struct image_extent *extent = &run->lane->base.extent;
    const int64_t slice = image_slice_voxels(extent);
    struct separable_rows_pass rows = {};
    struct separable_across_pass across = {};
    int rc = 0;

    rows.lines = run->lines[0];
    rows.input = run->input;
    rows.to[0] = own->between;
    rows.count = across.count = 1;
    across.parts[0].from = own->between;
    across.lines = run->lines[1];
    for (int64_t z = 0; z < extent->slices && rc == 0; z += own->group) {
        const int64_t count = min(own->group, extent->slices - z);

        rows.lines.pages = count * extent->rows;
        rows.first = z * slice;
        rc = separable_launch_rows<Value, true>(run, &rows, error);
        across.lines.pages = count;
        across.to = (Value *)own->planes + z * slice;
        if (rc == 0)
            rc = separable_launch_across<Value, true>(run, &across, error);
    }
    if (rc)
        return rc;
    across.lines = run->lines[2];
    across.parts[0].from = own->planes;
    across.to = NULL;
    across.codes = run->codes;
    across.factor = run->factor;
    return separable_launch_across<Value, true>(run, &across, error);
}

/* Queues pieces of slices, and copies each to the host. */
static int
separable_queue_pieces(const struct separable_queueing *run, bool narrow, struct error *error)
{
    struct cuda_lane *lane = run->lane;
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct separable_output output = {run->codes, run->factor};
    const int64_t slices = lane->base.extent.slices, slice = image_slice_voxels(&lane->base.extent);
    const int64_t each = run->host ? (slices + SEPARABLE_PIECES - 1) / SEPARABLE_PIECES : slices;

    for (int64_t first = 0; first < slices; first += each) {
        const int64_t end = min(first + each, slices);
        const int rc = separable_box_queue(lane, &run->own->plan, &run->input, &output, narrow, first, end, error);

        if (rc)
            return rc;
        if (!run->host)
            continue;
        CUDA_TRY(device, cudaEventRecord(run->own->made, lane->work));
        CUDA_TRY(device, cudaStreamWaitEvent(lane->download, run->own->made, 0));
        CUDA_TRY(device, cudaMemcpyAsync(run->host + first * slice, run->codes + first * slice,
                                         (size_t)((end - first) * slice) * sizeof(*run->codes), cudaMemcpyDeviceToHost,
                                         lane->download));
    }
    return 0;
}

/* Chooses integers that hold the sums. */
static int
separable_queue_mean(const struct separable_queueing *run, double largest, struct error *error)
{
    const struct separable_plan *plan = &run->own->plan;
    const bool narrow = largest / plan->box_scale < INT32_MAX;

    if (run->own->box_march)
        return separable_queue_pieces(run, narrow, error);
    return narrow ? separable_queue_box<int32_t>(run, error) : separable_queue_box<int64_t>(run, error);
}

/* ------------------------------------------------------------------------------------ run -- */

/* As cuda_separable_queue(). Copies the codes to `host` if the plan ends with a mean of one kernel. */
static int
separable_queue(struct cuda_lane *lane, const struct filter_task *job, int32_t *host, int32_t **codes,
                struct error *error)
{
    static const enum separable_input_kind kinds[] = {
        [IMAGE_UINT8] = SEPARABLE_UINT8, [IMAGE_INT16] = SEPARABLE_INT16, [IMAGE_UINT16] = SEPARABLE_UINT16};
    const struct cuda_separable *own = cuda_separable_state(&lane->base);
    const struct separable_plan *plan = &own->plan;
    struct separable_queueing run = {};
    int rc;

    run.lane = lane;
    run.own = own;
    run.host = host;
    run.input.request = *job->request;
    run.input.from = lane->device_voxels;
    run.input.kind = kinds[lane->base.pixel];
    *codes = own->codes;
    run.codes = plan->energy && own->box_march ? own->responses : own->codes;
    for (int axis = 0; axis < 3; axis++)
        run.lines[axis] = separable_lines_of(own, &lane->base.extent, axis);
    if (job->request->values) {
        CUDA_SEND(lane, own->values, job->request->values, (size_t)image_voxels(&lane->base.extent));
        run.input.from = own->values;
        run.input.kind = SEPARABLE_VALUES;
        run.input.request.padding = {1, 0};
        run.input.request.offset = 0;
    }
    run.factor = (plan->box ? plan->box_scale : plan->scale) / job->step;
    if (plan->box)
        return separable_queue_mean(&run, job->request->limit, error);
    rc = separable_queue_terms(&run, error);
    if (rc || !plan->energy)
        return rc;
    run.input.from = run.codes;
    run.input.kind = SEPARABLE_CODES;
    run.input.request = {INT32_MAX, 0, {1, 0}, 0, NULL};
    run.codes = own->codes;
    run.factor = plan->box_scale;
    return separable_queue_mean(&run, 1 << 30, error);
}

int
cuda_separable_queue(struct cuda_lane *lane, const struct filter_task *job, int32_t **codes, struct error *error)
{
    return separable_queue(lane, job, NULL, codes, error);
}

static int
cuda_separable_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct filter_task *job = (const struct filter_task *)given;
    const struct cuda_separable *own = cuda_separable_state(base);
    const bool in_pieces = own->box_march && (own->plan.box || own->plan.energy);
    struct cuda_lane *lane = cuda_lane_of(base);
    int32_t *codes;
    const int rc = separable_queue(lane, job, in_pieces ? own->host_codes : NULL, &codes, error);

    if (rc)
        return rc;
    if (!in_pieces)
        CUDA_FETCH(lane, own->host_codes, codes, (size_t)image_voxels(&base->extent));
    CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(in_pieces ? lane->download : lane->work));
    *job->codes = own->host_codes;
    return 0;
}

static int
cuda_separable_open(struct kernels_lane *lane, struct error *error)
{
    CUDA_TRY(cuda_device_of(lane), cudaEventCreateWithFlags(&cuda_separable_state(lane)->made, cudaEventDisableTiming));
    return 0;
}

static void
cuda_separable_close(struct kernels_lane *lane)
{
    (void)cudaEventDestroy(cuda_separable_state(lane)->made);
}

const struct kernels_op cuda_separable_op = {
    .name = "a separable filter",
    .state_size = sizeof(struct cuda_separable),
    .transient = true,
    .open = cuda_separable_open,
    .close = cuda_separable_close,
    .needs = cuda_separable_needs,
    .place = cuda_separable_place,
    .run = cuda_separable_run,
};
