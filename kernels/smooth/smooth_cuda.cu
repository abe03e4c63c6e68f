/*
 * smooth_cuda.cu - ranges of Gaussian-filtered values on the GPU, one kernel per axis. A block of threads brings a tile
 * with its surroundings to shared memory. A thread computes SMOOTH_OUTPUTS values in a row along the axis, so that it
 * reads each value of the tile and each weight once for all of them.
 */
#include "kernels/smooth/smooth_cuda.cuh"

enum {
    SMOOTH_OUTPUTS = 4,
    SMOOTH_WARP = 32,
    SMOOTH_THREADS = 512,
    SMOOTH_LINES = 8,                                             /* rows of a tile of smooth_along_rows */
    SMOOTH_LINE = SMOOTH_THREADS / SMOOTH_LINES * SMOOTH_OUTPUTS, /* values of it along x */
    SMOOTH_LANES = 64,                                            /* columns of a tile of smooth_across, two a thread */
    SMOOTH_DEPTH = SMOOTH_THREADS / SMOOTH_WARP * SMOOTH_OUTPUTS, /* values of it along the axis */
    SMOOTH_WEIGHTS = 2 * SMOOTH_MAX_RADIUS + 2 * SMOOTH_OUTPUTS,
    SMOOTH_TILES = 1 << 20, /* max blocks of a grid */
};

/* An axis of a volume of int16_t: `side` values `stride` apart, in lines that belong to `columns` adjacent voxels and
 * repeat `pages` times, `page` apart. */
struct smooth_pass {
    const void *from;
    int16_t *to;
    int64_t columns, side, stride, pages, page;
    int radius;
    int16_t weights[SMOOTH_MAX_RADIUS + 1];
};

/* Results of the last pass. */
struct smooth_results {
    uint32_t *bits; /* two per word */
    const uint32_t *region;
    unsigned long long *histogram;
    int32_t lo, hi; /* values in range */
    int32_t zero, first, width, bins;
    int64_t rows;
};

/* Fills the weights of the values of a tile for a thread's first output: zeros beyond the radius. */
static __device__ void
smooth_fill_weights(const struct smooth_pass &pass, int32_t *weights)
{
    for (int i = (int)threadIdx.x; i < SMOOTH_WEIGHTS; i += SMOOTH_THREADS) {
        const int from_middle = abs(i - pass.radius);

        weights[i] = from_middle <= pass.radius ? pass.weights[from_middle] : 0;
    }
}

/*
 * Filters SMOOTH_OUTPUTS values of each of VALUES columns. Value j of the tile has weight j - i for output i. load(j,
 * values) reads it. Reads at most SMOOTH_OUTPUTS - 1 values too many, whose weights are 0.
 */
template <uint32_t VALUES, typename Load>
static __device__ __forceinline__ void
smooth_filter(const int32_t *weights, int radius, int32_t filtered[SMOOTH_OUTPUTS][VALUES], const Load &load)
{
    int32_t window[SMOOTH_OUTPUTS] = {}; /* the weight of output i */

#pragma unroll
    for (int i = 0; i < SMOOTH_OUTPUTS; i++)
#pragma unroll
        for (uint32_t v = 0; v < VALUES; v++)
            filtered[i][v] = 1 << (SMOOTH_SHIFT - 1);
    for (int first = 0; first < 2 * radius + SMOOTH_OUTPUTS; first += SMOOTH_OUTPUTS)
#pragma unroll
        for (int j = first; j < first + SMOOTH_OUTPUTS; j++) {
            int32_t values[VALUES];

            load(j, values);
#pragma unroll
            for (int i = SMOOTH_OUTPUTS - 1; i > 0; i--)
                window[i] = window[i - 1];
            window[0] = weights[j];
#pragma unroll
            for (int i = 0; i < SMOOTH_OUTPUTS; i++)
#pragma unroll
                for (uint32_t v = 0; v < VALUES; v++)
                    filtered[i][v] += window[i] * values[v];
        }
#pragma unroll
    for (int i = 0; i < SMOOTH_OUTPUTS; i++)
#pragma unroll
        for (uint32_t v = 0; v < VALUES; v++)
            filtered[i][v] >>= SMOOTH_SHIFT;
}

static __device__ __forceinline__ int64_t
smooth_inside(int64_t i, int64_t side)
{
    return min(max(i, (int64_t)0), side - 1);
}

/* Clips the volume and filters it along x. Pages are rows. */
template <typename Value>
static __global__ void
__launch_bounds__(SMOOTH_THREADS) smooth_along_rows(struct smooth_pass pass, struct range_clipping clip)
{
    __shared__ int16_t tile[SMOOTH_LINES][SMOOTH_LINE + 2 * SMOOTH_MAX_RADIUS + SMOOTH_OUTPUTS];
    __shared__ int32_t weights[SMOOTH_WEIGHTS];
    const int64_t across = (pass.side + SMOOTH_LINE - 1) / SMOOTH_LINE;
    const int64_t tiles = across * ((pass.pages + SMOOTH_LINES - 1) / SMOOTH_LINES);
    const int each = SMOOTH_THREADS / SMOOTH_LINES; /* threads of a row */
    const int line = (int)threadIdx.x / each, at = (int)threadIdx.x % each;

    smooth_fill_weights(pass, weights);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t x = t % across * SMOOTH_LINE, row = t / across * SMOOTH_LINES + line;
        const Value *from = (const Value *)pass.from + smooth_inside(row, pass.pages) * pass.page;
        int32_t filtered[SMOOTH_OUTPUTS][1];

        __syncthreads();
        for (int i = at; i < SMOOTH_LINE + 2 * pass.radius; i += each)
            tile[line][i] = (int16_t)range_clipped(&clip, from[smooth_inside(x + i - pass.radius, pass.side)]);
        __syncthreads();
        smooth_filter<1>(weights, pass.radius, filtered,
                         [&](int j, int32_t *value) { *value = tile[line][SMOOTH_OUTPUTS * at + j]; });
        for (int i = 0; i < SMOOTH_OUTPUTS; i++)
            if (row < pass.pages && x + SMOOTH_OUTPUTS * at + i < pass.side)
                pass.to[row * pass.page + x + SMOOTH_OUTPUTS * at + i] = (int16_t)filtered[i][0];
    }
}

/* Spreads the lower 16 bits to the even places. */
static __device__ __forceinline__ uint32_t
smooth_spread(uint32_t bits)
{
    bits = (bits | bits << 8) & 0x00ff00ff;
    bits = (bits | bits << 4) & 0x0f0f0f0f;
    bits = (bits | bits << 2) & 0x33333333;
    return (bits | bits << 1) & 0x55555555;
}

/* Uses values of columns x and x + 1 in the last pass. The whole warp must call it, with adjacent columns: a word. */
static __device__ __forceinline__ void
smooth_use(const struct smooth_results &results, uint32_t *bins, int64_t row, int64_t x, int64_t columns,
           const int32_t values[2])
{
    const int64_t word = row * ((columns + 63) / 64 * 2) + x / 32;
    const uint32_t in_region = results.region && x < columns ? results.region[word] >> x % 32 : UINT32_MAX;
    bool counts[2];

    for (int v = 0; v < 2; v++)
        counts[v] = x + v < columns && (in_region >> v & 1);
    if (results.bits) {
        uint32_t bits[2];

        for (int v = 0; v < 2; v++)
            bits[v] = __ballot_sync(UINT32_MAX, counts[v] && results.lo <= values[v] && values[v] <= results.hi);
        if (threadIdx.x % (SMOOTH_WARP / 2) == 0) {
            const uint32_t half = threadIdx.x % SMOOTH_WARP; /* the upper half of the lanes has the upper 32 columns */

            results.bits[word] =
                smooth_spread(bits[0] >> half & UINT16_MAX) | smooth_spread(bits[1] >> half & UINT16_MAX) << 1;
        }
    }
    for (int v = 0; results.histogram && v < 2; v++) {
        const uint32_t bin = smooth_bin(values[v], results.zero, results.first, results.width);

        if (counts[v] && bin < (uint32_t)results.bins)
            atomicAdd(&bins[bin], 1);
    }
}

/* Filters along y or, at last, along z. Pages are slices, or rows. */
template <bool LAST>
static __global__ void
__launch_bounds__(SMOOTH_THREADS) smooth_across(struct smooth_pass pass, struct smooth_results results)
{
    __shared__ __align__(4) int16_t tile[(SMOOTH_DEPTH + 2 * SMOOTH_MAX_RADIUS + SMOOTH_OUTPUTS) * SMOOTH_LANES];
    __shared__ int32_t weights[SMOOTH_WEIGHTS];
    __shared__ uint32_t bins[LAST ? SMOOTH_MAX_BINS : 1];
    const int64_t across = (pass.columns + SMOOTH_LANES - 1) / SMOOTH_LANES;
    const int64_t down = (pass.side + SMOOTH_DEPTH - 1) / SMOOTH_DEPTH;
    const int lane = (int)threadIdx.x % SMOOTH_WARP * 2, at = (int)threadIdx.x / SMOOTH_WARP * SMOOTH_OUTPUTS;
    const int column = (int)threadIdx.x % SMOOTH_LANES;

    smooth_fill_weights(pass, weights);
    for (int i = (int)threadIdx.x; LAST && i < results.bins; i += SMOOTH_THREADS)
        bins[i] = 0;
    for (int64_t t = blockIdx.x; t < across * down * pass.pages; t += gridDim.x) {
        const int64_t left = t % across * SMOOTH_LANES, page = t / across / down;
        const int64_t first = t / across % down * SMOOTH_DEPTH, x = left + lane;
        const int16_t *from =
            (const int16_t *)pass.from + page * pass.page + smooth_inside(left + column, pass.columns);
        int32_t filtered[SMOOTH_OUTPUTS][2];

        __syncthreads();
        for (int i = (int)threadIdx.x / SMOOTH_LANES; i < SMOOTH_DEPTH + 2 * pass.radius;
             i += SMOOTH_THREADS / SMOOTH_LANES)
            tile[i * SMOOTH_LANES + column] = from[smooth_inside(first + i - pass.radius, pass.side) * pass.stride];
        __syncthreads();
        smooth_filter<2>(weights, pass.radius, filtered, [&](int j, int32_t *values) {
            const int32_t both = *(const int32_t *)&tile[(at + j) * SMOOTH_LANES + lane];

            values[0] = (int16_t)both;
            values[1] = both >> 16;
        });
        for (int i = 0; i < SMOOTH_OUTPUTS && first + at + i < pass.side; i++) {
            if (LAST)
                smooth_use(results, bins, (first + at + i) * results.rows + page, x, pass.columns, filtered[i]);
            for (int v = 0; !LAST && v < 2; v++)
                if (x + v < pass.columns)
                    pass.to[page * pass.page + (first + at + i) * pass.stride + x + v] = (int16_t)filtered[i][v];
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; LAST && i < results.bins; i += SMOOTH_THREADS)
        if (bins[i] > 0)
            atomicAdd(&results.histogram[i], (unsigned long long)bins[i]);
}

struct cuda_smooth {
    struct smooth_demand demand;
    int16_t *filtered[2]; /* volumes */
    uint64_t *bits, *region;
    unsigned long long *histogram, *host_histogram;
};

static struct cuda_smooth *
cuda_smooth_state(const struct kernels_lane *lane)
{
    return (struct cuda_smooth *)kernels_state(lane, KERNELS_SMOOTH);
}

static bool
cuda_smooth_needs(struct kernels_lane *lane, const void *demand)
{
    cuda_smooth_state(lane)->demand = *(const struct smooth_demand *)demand;
    return true;
}

static size_t
smooth_words(const struct kernels_lane *lane)
{
    return (size_t)((lane->extent.columns + 63) / 64 * lane->extent.rows * lane->extent.slices);
}

static void
cuda_smooth_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_smooth *own = cuda_smooth_state(lane);

    for (int16_t *&filtered : own->filtered)
        cuda_take(&memory->device, &filtered, (size_t)image_voxels(&lane->extent));
    cuda_take(&memory->device, &own->bits, smooth_words(lane));
    cuda_take(&memory->device, &own->region, smooth_words(lane));
    cuda_take(&memory->device, &own->histogram, SMOOTH_MAX_BINS);
    cuda_take(&memory->host, &own->host_histogram, SMOOTH_MAX_BINS);
}

static struct smooth_pass
smooth_pass_for(const struct smooth_plan *plan, int axis, const void *from, int16_t *to)
{
    struct smooth_pass pass = {};

    pass.from = from;
    pass.to = to;
    pass.radius = plan->radius[axis];
    memcpy(pass.weights, plan->weights[axis], sizeof(pass.weights));
    return pass;
}

static int
smooth_queue_rows(struct cuda_lane *lane, const struct smooth_plan *plan, int16_t *to, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    struct smooth_pass pass = smooth_pass_for(plan, 0, lane->device_voxels, to);

    pass.side = pass.page = extent->columns;
    pass.pages = extent->rows * extent->slices;
    const int64_t tiles =
        ((pass.side + SMOOTH_LINE - 1) / SMOOTH_LINE) * ((pass.pages + SMOOTH_LINES - 1) / SMOOTH_LINES);
    const unsigned grid = (unsigned)min(tiles, (int64_t)SMOOTH_TILES);

    if (lane->base.pixel == IMAGE_UINT8)
        smooth_along_rows<uint8_t><<<grid, SMOOTH_THREADS, 0, lane->work>>>(pass, plan->clip);
    else
        smooth_along_rows<uint16_t><<<grid, SMOOTH_THREADS, 0, lane->work>>>(pass, plan->clip);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

/* `results`: NULL for the pass along y. */
static int
smooth_queue_across(struct cuda_lane *lane, const struct smooth_plan *plan, const int16_t *from, int16_t *to,
                    const struct smooth_results *results, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    const int64_t slice = image_slice_voxels(extent);
    struct smooth_pass pass = smooth_pass_for(plan, results ? 2 : 1, from, to);

    pass.columns = extent->columns;
    pass.side = results ? extent->slices : extent->rows;
    pass.stride = results ? slice : extent->columns;
    pass.pages = results ? extent->rows : extent->slices;
    pass.page = results ? extent->columns : slice;
    const int64_t tiles = ((pass.columns + SMOOTH_LANES - 1) / SMOOTH_LANES) *
                          ((pass.side + SMOOTH_DEPTH - 1) / SMOOTH_DEPTH) * pass.pages;
    const unsigned grid = (unsigned)min(tiles, (int64_t)SMOOTH_TILES);

    if (results)
        smooth_across<true><<<grid, SMOOTH_THREADS, 0, lane->work>>>(pass, *results);
    else
        smooth_across<false><<<grid, SMOOTH_THREADS, 0, lane->work>>>(pass, smooth_results{});
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

int
cuda_smooth_queue(struct cuda_lane *lane, const struct smooth_plan *plan, struct error *error)
{
    const struct cuda_smooth *own = cuda_smooth_state(&lane->base);
    const struct smooth_request *request = plan->request;
    struct smooth_results results = {};
    struct image_range range = {1, 0};
    int rc;

    smooth_range(plan, &range);
    results.lo = range.lo;
    results.hi = range.hi;
    results.rows = lane->base.extent.rows;
    results.bits = request->bits ? (uint32_t *)own->bits : NULL;
    results.region = request->region ? (const uint32_t *)own->region : NULL;
    if (request->region)
        CUDA_SEND(lane, own->region, request->region, smooth_words(&lane->base));
    if (request->histogram) {
        results.histogram = own->histogram;
        results.zero = request->lo + plan->middle;
        results.first = request->first;
        results.width = request->width;
        results.bins = request->bins;
        CUDA_TRY(cuda_device_of(&lane->base),
                 cudaMemsetAsync(own->histogram, 0, (size_t)request->bins * sizeof(*own->histogram), lane->work));
    }
    rc = smooth_queue_rows(lane, plan, own->filtered[0], error);
    if (rc == 0)
        rc = smooth_queue_across(lane, plan, own->filtered[0], own->filtered[1], NULL, error);
    return rc ? rc : smooth_queue_across(lane, plan, own->filtered[1], NULL, &results, error);
}

static int
cuda_smooth_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct smooth_plan *plan = (const struct smooth_plan *)given;
    const struct smooth_request *request = plan->request;
    const struct cuda_smooth *own = cuda_smooth_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    const int rc = cuda_smooth_queue(lane, plan, error);

    if (rc)
        return rc;
    if (request->histogram) {
        CUDA_FETCH(lane, own->host_histogram, own->histogram, (size_t)request->bins);
        CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(lane->work));
        for (int i = 0; i < request->bins; i++)
            request->histogram[i] = own->host_histogram[i];
    }
    /* The bits are last, since their copy may give up the turn. */
    return request->bits
               ? cuda_result_copy(lane, request->bits, own->bits, smooth_words(base) * sizeof(*own->bits), error)
               : 0;
}

const struct kernels_op cuda_smooth_op = {
    .name = "the Gaussian filter",
    .state_size = sizeof(struct cuda_smooth),
    .transient = true,
    .needs = cuda_smooth_needs,
    .place = cuda_smooth_place,
    .run = cuda_smooth_run,
};
