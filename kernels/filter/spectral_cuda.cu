/*
 * spectral_cuda.cu - filters with a transfer function on the GPU. Three kernels transform lines in shared memory: rows in
 * pairs, lines along y or z of FFT_LINES adjacent columns, and rows back to codes. The middle one can transform,
 * multiply with the transfer function and transform back, and is used for y, z, y again, or once for slices.
 *
 * A block loads the spectrum of a later block into the L2 cache, since few blocks fit a multiprocessor and wait for memory.
 */
#include "kernels/filter/spectral_cuda.cuh"

#include "kernels/cuda/ptx.cuh"
#include "kernels/filter/gabor_cuda.cuh"
#include "kernels/filter/separable_cuda.cuh"

#include <algorithm>

enum { SPECTRAL_AHEAD = 64 }; /* blocks; 48 to 132 take the same time */

/* Places along y. */
struct spectral_band {
    int32_t first, end;
};

struct spectral_job {
    struct spectral_plan plan; /* tables in device memory */
    struct spectral_input input;
    struct image_extent extent;
    struct fft_row_tile row;
    struct fft_tile tiles[3]; /* along y and z */
    const struct spectral_band
        *outside;      /* per k(x) that is kept: where the transfer function is 0; it grows with k(x) */
    double2 *spectrum; /* at [k(x) / FFT_LINES][z][y][k(x) % FFT_LINES] */
    int32_t *codes;
    double scale; /* code / sum */
};

/* Returns the place of a value; along y, the next one is FFT_LINES apart. */
__device__ static __forceinline__ int64_t
spectral_place(const struct spectral_job &job, int kx, int64_t y, int64_t z)
{
    return ((kx / FFT_LINES * job.extent.slices + z) * job.extent.rows + y) * FFT_LINES + kx % FFT_LINES;
}

__device__ static __forceinline__ bool
spectral_is_outside_of(struct spectral_band band, int64_t y)
{
    return y >= band.first && y < band.end;
}

/* Transforms pairs of rows. A block has adjacent pairs of slice blockIdx.x. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) spectral_rows(const __grid_constant__ struct spectral_job job)
{
    extern __shared__ double2 spectral_lines[];
    const struct fft_row_tile &tile = job.row;
    struct fft_space space = fft_space_of<FAST>(tile, spectral_lines);
    const int columns = tile.plan.side, rows = (int)job.extent.rows;
    const int first = (int)(blockIdx.y << tile.shift), y = (first + fft_line(tile)) * 2;
    const bool has_first = y < rows, has_second = y + 1 < rows;
    const struct spectral_walk walk = spectral_walk_of(tile);
    const int row = (first + walk.line) * 2;
    const int64_t slice = (int64_t)blockIdx.x * rows * columns;
    double2 values[FFT_MOST];

    spectral_read(job.input, [&](const auto &read) {
        fft_each_read<FAST>(tile, 0, [&](int x, int n) {
            values[n] = make_double2(read(slice + (has_first ? y : 0) * columns + x),
                                     read(slice + (has_second ? y + 1 : 0) * columns + x));
        });
    });
    fft_run<FAST>(
        tile, space,
        [&](int, int n, int) { return make_double2(has_first ? values[n].x : 0, has_second ? values[n].y : 0); },
        [&](int, double2 value, int, int slot) { space.now[slot] = value; });
    __syncthreads();
    spectral_along(
        walk, (int)job.plan.kept, [&](int k) { return spectral_split(tile, space.now, walk.line, k); },
        [&](int k, const struct spectral_two &two) {
            double2 *const to = job.spectrum + spectral_place(job, k, row, blockIdx.x);

            if (row < rows)
                to[0] = two.first;
            if (row + 1 < rows)
                to[FFT_LINES] = two.second;
        });
}

/* The places of a block in the grid. */
struct spectral_block {
    int x, y;
};

/* Returns the block SPECTRAL_AHEAD blocks later. It may be behind the grid along y. */
__device__ static __forceinline__ struct spectral_block
spectral_block_ahead(void)
{
    const int x = (int)blockIdx.x + SPECTRAL_AHEAD, across = (int)gridDim.x;

    return {x % across, (int)blockIdx.y + x / across};
}

/* Loads the rows of a later block of spectral_rows_back into the L2 cache. */
__device__ static __forceinline__ void
spectral_load_rows_ahead(const struct spectral_job &job)
{
    const struct spectral_block block = spectral_block_ahead();
    const int shift = job.row.shift + 1, groups = ((int)job.plan.kept + FFT_LINES - 1) / FFT_LINES;

    for (int i = (int)threadIdx.x; i < groups << shift; i += (int)blockDim.x) {
        const int y = (block.y << shift) + (i & ((1 << shift) - 1));

        if (y < job.extent.rows)
            ptx_prefetch(job.spectrum + spectral_place(job, (i >> shift) * FFT_LINES, y, block.x));
    }
}

template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) spectral_rows_back(const __grid_constant__ struct spectral_job job)
{
    extern __shared__ double2 spectral_lines[];
    const struct fft_row_tile &tile = job.row;
    struct fft_space space = fft_space_of<FAST>(tile, spectral_lines);
    const int columns = tile.plan.side, rows = (int)job.extent.rows, kept = (int)job.plan.kept;
    const int y = (int)((blockIdx.y << tile.shift) + fft_line(tile)) * 2;
    const bool has_first = y < rows, has_second = y + 1 < rows;
    const struct spectral_walk walk = spectral_walk_of(tile);
    const int row = (int)((blockIdx.y << tile.shift) + walk.line) * 2, slot = fft_line_slot(tile, walk.line);
    const double2 *const first = job.spectrum + spectral_place(job, 0, row < rows ? row : 0, blockIdx.x);
    const double2 *const second = job.spectrum + spectral_place(job, 0, row + 1 < rows ? row + 1 : 0, blockIdx.x);
    int32_t *const to = job.codes + ((int64_t)blockIdx.x * rows + y) * columns;

    spectral_load_rows_ahead(job);
    for (int k = kept + walk.first; k <= columns - kept; k += walk.next)
        space.now[fft_slot(tile, k) + slot] = make_double2(0, 0);
    spectral_along(
        walk, kept,
        [&](int k) {
            const int64_t from = spectral_place(job, k, 0, 0);

            return spectral_two{first[from], second[from]};
        },
        [&](int k, const struct spectral_two &two) {
            const bool is_real = k == 0 || 2 * k == columns;
            const double2 a = make_double2(two.first.x, is_real ? 0 : two.first.y);
            const double2 b = make_double2(two.second.x, is_real ? 0 : two.second.y);

            space.now[fft_slot(tile, k) + slot] = make_double2(a.x - b.y, a.y + b.x);
            if (k > 0 && 2 * k < columns)
                space.now[fft_slot(tile, columns - k) + slot] = make_double2(a.x + b.y, b.x - a.y);
        });
    fft_swap(space);
    fft_run<FAST>(
        tile, space, [&](int, int, int slot) { return fft_swapped(space.other[slot]); },
        [&](int x, double2 value, int, int) { /* swapped */
                                              if (has_first)
                                                  to[x] = filter_code(value.y * job.scale);
                                              if (has_second)
                                                  to[columns + x] = filter_code(value.x * job.scale);
        });
}

/* The rings of a line along z, per place of half a turn: those of f, then those of f'. The others are equal, since f has
 * equal squares at k and side - k, or side - 1 - k of an even side, and f' has that of f at side - k. */
struct spectral_line_rings {
    double *values;
    int shift, side, half; /* half: (side + 1) / 2 */
};

__device__ static __forceinline__ bool
spectral_has_ring(double u)
{
    return u >= 0.25 && u <= 4;
}

/* Ends with __syncthreads(). */
__device__ static __forceinline__ void
spectral_fill_rings(const struct spectral_line_rings &rings, const struct spectral_plan *plan,
                    const struct spectral_sums *sums, int first, int next)
{
    double ahead = plan->axis[2].plus[min(first, rings.half - 1)]; /* read before the next place needs it */

    for (int k = first; k < rings.half; k += next) {
        const double square = ahead, plus = sums->plus + square, minus = sums->minus + square;
        double2 ring = make_double2(0, 0);

        if (spectral_has_ring(plus) || spectral_has_ring(minus)) /* both at once */
            ring = make_double2(spectral_ring(plus), spectral_ring(minus));
        ahead = plan->axis[2].plus[min(k + next, rings.half - 1)];
        rings.values[k << rings.shift] = ring.x;
        rings.values[(rings.half + k) << rings.shift] = ring.y;
    }
    __syncthreads();
}

__device__ static __forceinline__ double
spectral_rings_gain(const struct spectral_line_rings &rings, int k)
{
    const int odd = rings.side % 2, opposite = k > 0 ? rings.side - k : 0;
    const int plus = k < rings.half ? k : rings.side - 1 + odd - k;
    const int minus = opposite < rings.half ? opposite : rings.side - 1 + odd - opposite;

    return (rings.values[plus << rings.shift] + rings.values[(rings.half + minus) << rings.shift]) / 2;
}

/* Loads the lines of a later block of spectral_across into the L2 cache. FORWARD: outside the transfer function, too. */
template <bool FORWARD>
__device__ static __forceinline__ void
spectral_load_lines_ahead(const struct spectral_job &job, int axis)
{
    const struct spectral_block block = spectral_block_ahead();
    const int kx = block.y << job.tiles[axis].shift;

    if (kx >= job.plan.kept || (axis == 2 && spectral_is_outside_of(job.outside[kx], block.x)))
        return;
    for (int i = (int)threadIdx.x; i < job.tiles[axis].plan.side; i += (int)blockDim.x)
        if (FORWARD || !spectral_is_outside_of(job.outside[kx], i))
            ptx_prefetch(job.spectrum + spectral_place(job, kx, axis == 1 ? i : block.x, axis == 1 ? block.x : i));
}

/* Transforms lines along an axis. A block has adjacent columns of row y along z, or of slice z along y. Columns outside
 * the transfer function, and their places, are neither written nor read. */
template <bool FAST, bool FORWARD, bool INVERSE>
__global__ void
FFT_BOUNDS(FAST) spectral_across(const __grid_constant__ struct spectral_job job, int axis)
{
    extern __shared__ double2 spectral_lines[];
    const struct fft_tile &tile = job.tiles[axis];
    struct fft_space space = fft_space_of<FAST>(tile, spectral_lines);
    const int first = (int)(blockIdx.y << tile.shift), kx = first + fft_line(tile);
    const bool exists = kx < job.plan.kept;
    const int other = (int)blockIdx.x, stride = axis == 1 ? FFT_LINES : (int)job.extent.rows * FFT_LINES;
    double2 *const column = job.spectrum + spectral_place(job, kx, axis == 1 ? 0 : other, axis == 1 ? other : 0);

    if (first >= job.plan.kept || (axis == 2 && spectral_is_outside_of(job.outside[first], other)))
        return;
    spectral_load_lines_ahead<FORWARD>(job, axis);

    const struct spectral_band outside = job.outside[exists ? kx : first];
    const struct spectral_sums sums = spectral_sums_at(&job.plan, exists ? kx : first, axis == 2 ? other : 0);
    const bool skips = !exists || (axis == 2 && spectral_is_outside_of(outside, other));
    const auto load = [&](int i, int, int slot) {
        double2 value = make_double2(0, 0);

        if (!skips && (FORWARD || !spectral_is_outside_of(outside, i)))
            value = __ldcg(&column[i * stride]);
        return value;
    };
    const auto store = [&](int i, double2 value, int, int slot) {
        if (!skips && (INVERSE || !spectral_is_outside_of(outside, i)))
            column[i * stride] = value;
    };
    if constexpr (FORWARD && INVERSE) {
        const bool shares = FAST && axis == 2 && job.plan.radial;
        /* The last step of a transform and the first one of the next have the same places if they have one radix. */
        const bool keeps = !FAST || tile.stage[0].radix == tile.stage[tile.stages - 1].radix;
        double2 values[FFT_MOST];

        fft_run<FAST>(tile, space, load, [&](int, double2 value, int n, int) { values[n] = value; });
        __syncthreads();
        const struct spectral_line_rings rings = {(double *)space.other + fft_line(tile), tile.shift, tile.plan.side,
                                                  (tile.plan.side + 1) / 2};
        if (shares)
            spectral_fill_rings(rings, &job.plan, &sums, fft_first(tile), fft_next(tile));
        const int last = FAST ? tile.stages - 1 : 0;
        if (shares && job.plan.order == 0)
            fft_each_read<FAST>(tile, last, [&](int kz, int n) {
                const double gain = spectral_rings_gain(rings, kz);

                values[n] = make_double2(values[n].x * gain, values[n].y * gain);
            });
        else
            fft_each<FAST>(tile, last, [&](int i, int n, int) {
                const struct spectral_sums own = axis == 1 ? spectral_sums_at(&job.plan, exists ? kx : first, i) : sums;
                const int kz = axis == 2 ? i : 0;
                const double gain = shares ? spectral_riesz(&job.plan, &own, kz, spectral_rings_gain(rings, kz))
                                           : spectral_gain(&job.plan, &own, kz);

                values[n] = job.plan.order % 2 == 1 ? make_double2(values[n].y * gain, -(values[n].x * gain))
                                                    : make_double2(values[n].x * gain, values[n].y * gain);
            });
        if (!keeps) {
            fft_each<FAST>(tile, last, [&](int, int n, int slot) { space.now[slot] = values[n]; });
            __syncthreads();
            fft_swap(space);
        }
        fft_run<FAST>(
            tile, space, [&](int, int n, int slot) { return fft_swapped(keeps ? values[n] : space.other[slot]); },
            [&](int i, double2 value, int n, int slot) { store(i, fft_swapped(value), n, slot); });
    } else if constexpr (FORWARD)
        fft_run<FAST>(tile, space, load, store);
    else
        fft_run<FAST>(
            tile, space, [&](int i, int n, int slot) { return fft_swapped(load(i, n, slot)); },
            [&](int i, double2 value, int n, int slot) { store(i, fft_swapped(value), n, slot); });
}

struct cuda_spectral {
    struct filter_demand demand; /* first: filter.h */
    struct spectral_plan plan;
    struct cuda_gabor gabor;
    double *tables[3], *host_tables[3];
    struct fft_value *roots[3], *host_roots[3]; /* tables with turns */
    struct spectral_band *outside, *host_outside;
    double2 *spectrum;
    int32_t *values, *codes, *host_codes;
};

static int64_t
spectral_groups(const struct spectral_plan *plan)
{
    return (plan->kept + FFT_LINES - 1) / FFT_LINES;
}

static struct cuda_spectral *
cuda_spectral_state(const struct kernels_lane *lane)
{
    return (struct cuda_spectral *)kernels_state(lane, KERNELS_SPECTRAL);
}

static bool
cuda_spectral_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_spectral *own = cuda_spectral_state(lane);

    own->demand = *(const struct filter_demand *)demand;
    own->plan = {}; /* a run refuses impossible filters */
    own->gabor.plan = {};
    if (own->demand.options.kind == FILTER_GABOR) {
        if (gabor_plan_make(&own->demand, &lane->extent, &own->gabor.plan) != 0)
            own->gabor.plan = {};
        cuda_gabor_size(&own->gabor);
        return true;
    }
    if (spectral_plan_make(&own->demand, &lane->extent, &own->plan) != 0)
        own->plan = {};
    return true;
}

static void
cuda_spectral_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_spectral *own = cuda_spectral_state(lane);
    const struct image_extent *extent = &lane->extent;

    if (own->demand.options.kind == FILTER_RIESZ_LOG) /* its memory is at the begin, as that of all operations */
        cuda_separable_op.place(lane, memory);
    cuda_take(&memory->device, &own->codes, (size_t)image_voxels(extent));
    if (own->demand.values && own->demand.options.kind != FILTER_RIESZ_LOG)
        cuda_take(&memory->device, &own->values, (size_t)image_voxels(extent));
    if (own->demand.options.kind == FILTER_GABOR) {
        cuda_gabor_place(lane, &own->gabor, memory);
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        const size_t count = (size_t)own->plan.axis[axis].fft.side * SPECTRAL_TABLE;

        cuda_take(&memory->device, &own->tables[axis], count);
        cuda_take(&memory->host, &own->host_tables[axis], count);
        cuda_take(&memory->device, &own->roots[axis], fft_tables(own->plan.axis[axis].fft));
        cuda_take(&memory->host, &own->host_roots[axis], fft_tables(own->plan.axis[axis].fft));
    }
    cuda_take(&memory->device, &own->outside, (size_t)own->plan.kept);
    cuda_take(&memory->host, &own->host_outside, (size_t)own->plan.kept);
    cuda_take(&memory->device, &own->spectrum,
              (size_t)(spectral_groups(&own->plan) * FFT_LINES * extent->rows * extent->slices));
}

static void
cuda_spectral_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_take(&memory->host, &cuda_spectral_state(lane)->host_codes, (size_t)image_voxels(&lane->extent));
}

/* Queues a kernel with a block per `blocks`, in shared memory for lines along an axis: one of two forms. */
template <typename... Arguments>
static int
spectral_launch(struct cuda_lane *lane, const struct spectral_job *job, int axis, dim3 blocks, struct error *error,
                void (*fast)(const struct spectral_job, Arguments...),
                void (*any)(const struct spectral_job, Arguments...), Arguments... arguments)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct fft_tile &tile = axis == 0 ? job->row : job->tiles[axis];
    const size_t bytes = fft_bytes(tile);
    const auto kernel = fft_runs_fast(tile) ? fast : any;

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, fft_threads(tile), bytes, lane->work>>>(*job, arguments...);
    CUDA_LAUNCHED(device);
    return 0;
}

static unsigned
spectral_blocks(int64_t lines, const struct fft_tile &tile)
{
    return (unsigned)((lines + (1 << tile.shift) - 1) >> tile.shift);
}

/* Returns a grid with a block per place of the other axis and group of columns. */
static dim3
spectral_grid(const struct spectral_job *job, int axis)
{
    return dim3((unsigned)(axis == 1 ? job->extent.slices : job->extent.rows),
                spectral_blocks(job->plan.kept, job->tiles[axis]));
}

static int
spectral_queue_kernels(struct cuda_lane *lane, const struct spectral_job *job, bool in_slice, struct error *error)
{
    const dim3 rows((unsigned)job->extent.slices, spectral_blocks((job->extent.rows + 1) / 2, job->row));
    const dim3 along_y = spectral_grid(job, 1), along_z = spectral_grid(job, 2);
    int rc = spectral_launch(lane, job, 0, rows, error, spectral_rows<true>, spectral_rows<false>);

    if (in_slice) {
        rc = rc ? rc
                : spectral_launch(lane, job, 1, along_y, error, spectral_across<true, true, true>,
                                  spectral_across<false, true, true>, 1);
    } else {
        rc = rc ? rc
                : spectral_launch(lane, job, 1, along_y, error, spectral_across<true, true, false>,
                                  spectral_across<false, true, false>, 1);
        rc = rc ? rc
                : spectral_launch(lane, job, 2, along_z, error, spectral_across<true, true, true>,
                                  spectral_across<false, true, true>, 2);
        rc = rc ? rc
                : spectral_launch(lane, job, 1, along_y, error, spectral_across<true, false, true>,
                                  spectral_across<false, false, true>, 1);
    }
    return rc ? rc : spectral_launch(lane, job, 0, rows, error, spectral_rows_back<true>, spectral_rows_back<false>);
}

/* Fills the places where the transfer function is 0. Both distances from its centre grow with k(x), and along y up to the
 * middle, at which all of these places begin. */
static void
spectral_fill_outside(const struct spectral_plan *plan, struct spectral_band *outside)
{
    const struct spectral_axis *x = &plan->axis[0], *y = &plan->axis[1];
    struct spectral_band band = {y->fft.side / 2, y->fft.side / 2};
    const auto is_zero = [&](int64_t kx, int32_t ky) {
        return plan->radial && x->plus[kx] + y->plus[ky] > 4 && x->minus[kx] + y->minus[ky] > 4;
    };

    for (int64_t kx = 0; kx < plan->kept; kx++) {
        while (band.first > 0 && is_zero(kx, band.first - 1))
            band.first--;
        while (band.end < y->fft.side && is_zero(kx, band.end))
            band.end++;
        outside[kx] = band;
    }
}

int
cuda_spectral_queue(struct cuda_lane *lane, const struct filter_task *filter, int32_t **codes, struct error *error)
{
    struct cuda_spectral *own = cuda_spectral_state(&lane->base);
    struct spectral_job job = {};

    job.input = {lane->device_voxels, NULL, lane->base.pixel, *filter->request};
    job.scale = own->plan.scale / filter->step;
    if (own->demand.options.kind == FILTER_RIESZ_LOG) {
        const double step = filter_step_of(separable_bound(&own->demand) * filter->request->limit);
        const struct filter_task first = {filter->request, step, NULL};
        int32_t *between;
        const int rc = cuda_separable_queue(lane, &first, &between, error);

        if (rc)
            return rc;
        job.input.values = between;
        job.input.request.limit = INT32_MAX;
        job.scale = own->plan.scale * step / filter->step;
    } else if (filter->request->values) {
        CUDA_SEND(lane, own->values, filter->request->values, (size_t)image_voxels(&lane->base.extent));
        job.input.values = own->values;
    }
    *codes = own->codes;
    if (own->demand.options.kind == FILTER_GABOR)
        return cuda_gabor_queue(lane, &own->gabor, &job.input, filter->step, own->codes, error);
    job.plan = own->plan;
    for (int axis = 0; axis < 3; axis++)
        spectral_fill(&own->demand, &job.plan, axis, own->host_tables[axis]);
    spectral_fill_outside(&job.plan, own->host_outside);
    CUDA_SEND(lane, own->outside, own->host_outside, (size_t)job.plan.kept);
    job.outside = own->outside;
    for (int axis = 0; axis < 3; axis++) {
        CUDA_SEND(lane, own->tables[axis], own->host_tables[axis],
                  (size_t)job.plan.axis[axis].fft.side * SPECTRAL_TABLE);
        spectral_point(&job.plan.axis[axis], own->tables[axis]);
        fft_fill_turns(job.plan.axis[axis].fft, own->host_roots[axis]);
        CUDA_SEND(lane, own->roots[axis], own->host_roots[axis], fft_tables(job.plan.axis[axis].fft));
        job.plan.axis[axis].fft.roots = own->roots[axis];
        job.tiles[axis] = fft_tile_of(&job.plan.axis[axis].fft);
    }
    job.row = fft_tile_of<struct fft_row_tile>(&job.plan.axis[0].fft);
    job.extent = lane->base.extent;
    job.spectrum = own->spectrum;
    job.codes = own->codes;
    return spectral_queue_kernels(lane, &job, own->demand.options.in_slice, error);
}

static int
cuda_spectral_run(struct kernels_lane *base, const void *request, struct error *error)
{
    const struct filter_task *filter = (const struct filter_task *)request;
    struct cuda_spectral *own = cuda_spectral_state(base);
    int32_t *codes;
    const int rc = cuda_spectral_queue(cuda_lane_of(base), filter, &codes, error);

    if (rc)
        return rc;
    *filter->codes = own->host_codes;
    /* The copy is last, since it may give up the turn. */
    return cuda_result_copy(cuda_lane_of(base), own->host_codes, codes,
                            (size_t)image_voxels(&base->extent) * sizeof(*codes), error);
}

const struct kernels_op cuda_spectral_op = {
    .name = "the spectral filter",
    .state_size = sizeof(struct cuda_spectral),
    .transient = true,
    .needs = cuda_spectral_needs,
    .place = cuda_spectral_place,
    .run = cuda_spectral_run,
    .keep = cuda_spectral_keep,
};
