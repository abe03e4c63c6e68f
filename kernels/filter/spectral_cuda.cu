/*
 * spectral_cuda.cu - filters with a transfer function on the GPU. Three kernels transform lines in shared memory: rows in
 * pairs, lines along y or z of FFT_LINES adjacent columns, and rows back to codes. The middle one can transform,
 * multiply with the transfer function and transform back, and is used for y, z, y again, or once for slices.
 */
#include "kernels/filter/spectral_cuda.cuh"

#include "kernels/filter/gabor_cuda.cuh"
#include "kernels/filter/separable_cuda.cuh"

#include <algorithm>

struct spectral_job {
    struct spectral_plan plan; /* tables in device memory */
    struct spectral_input input;
    struct image_extent extent;
    struct fft_tile tiles[3];
    double2 *spectrum; /* rows of `pitch` */
    int64_t pitch;
    int32_t *codes;
    double scale; /* code / sum */
};

/* A pair of rows of a slice. */
struct spectral_pair {
    int64_t row; /* the first, of all slices */
    bool exists, both;
};

__device__ static __forceinline__ struct spectral_pair
spectral_pair_at(const struct spectral_job &job, int line)
{
    const int64_t pairs = (job.extent.rows + 1) / 2;
    const int64_t at = ((int64_t)blockIdx.x << job.tiles[0].shift) + line, y = at % pairs * 2;

    return {at / pairs * job.extent.rows + y, at < pairs * job.extent.slices, y + 1 < job.extent.rows};
}

template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) spectral_rows(const __grid_constant__ struct spectral_job job)
{
    extern __shared__ double2 spectral_lines[];
    const struct fft_tile &tile = job.tiles[0];
    const int columns = tile.plan.side, line = fft_line(tile);

    spectral_along(tile, columns, [&](int l, int x) {
        const struct spectral_pair pair = spectral_pair_at(job, l);
        double2 value = make_double2(0, 0);

        if (pair.exists)
            value.x = spectral_value(job.input, pair.row * columns + x);
        if (pair.exists && pair.both)
            value.y = spectral_value(job.input, (pair.row + 1) * columns + x);
        spectral_lines[x * tile.pitch + l] = value;
    });
    fft_run<FAST>(
        tile, spectral_lines, [&](int i) { return spectral_lines[i * tile.pitch + line]; },
        [&](int i, double2 value) { spectral_lines[i * tile.pitch + line] = value; });
    spectral_along(tile, (int)job.plan.kept, [&](int l, int k) {
        const struct spectral_pair pair = spectral_pair_at(job, l);
        const double2 a = spectral_lines[k * tile.pitch + l];
        const double2 b = spectral_lines[(k > 0 ? columns - k : 0) * tile.pitch + l];

        if (pair.exists)
            job.spectrum[pair.row * job.pitch + k] = make_double2((a.x + b.x) / 2, (a.y - b.y) / 2);
        if (pair.exists && pair.both)
            job.spectrum[(pair.row + 1) * job.pitch + k] = make_double2((a.y + b.y) / 2, (b.x - a.x) / 2);
    });
}

template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) spectral_rows_back(const __grid_constant__ struct spectral_job job)
{
    extern __shared__ double2 spectral_lines[];
    const struct fft_tile &tile = job.tiles[0];
    const int columns = tile.plan.side, line = fft_line(tile);

    spectral_along(tile, columns / 2 + 1, [&](int l, int k) {
        const struct spectral_pair pair = spectral_pair_at(job, l);
        double2 a = make_double2(0, 0), b = make_double2(0, 0);

        if (pair.exists && k < job.plan.kept)
            a = job.spectrum[pair.row * job.pitch + k];
        if (pair.exists && pair.both && k < job.plan.kept)
            b = job.spectrum[(pair.row + 1) * job.pitch + k];
        if (k == 0 || 2 * k == columns)
            a.y = b.y = 0;
        else
            spectral_lines[(columns - k) * tile.pitch + l] = make_double2(a.x + b.y, b.x - a.y);
        spectral_lines[k * tile.pitch + l] = make_double2(a.x - b.y, a.y + b.x);
    });
    fft_run<FAST>(
        tile, spectral_lines, [&](int i) { return fft_swapped(spectral_lines[i * tile.pitch + line]); },
        [&](int i, double2 value) { spectral_lines[i * tile.pitch + line] = fft_swapped(value); });
    spectral_along(tile, columns, [&](int l, int x) {
        const struct spectral_pair pair = spectral_pair_at(job, l);
        const double2 value = spectral_lines[x * tile.pitch + l];

        if (pair.exists)
            job.codes[pair.row * columns + x] = filter_code(value.x * job.scale);
        if (pair.exists && pair.both)
            job.codes[(pair.row + 1) * columns + x] = filter_code(value.y * job.scale);
    });
}

/* Transforms lines along an axis. A block has adjacent columns of row y along z, or of slice z along y. */
template <bool FAST, bool FORWARD, bool INVERSE>
__global__ void
FFT_BOUNDS(FAST) spectral_across(const __grid_constant__ struct spectral_job job, int axis)
{
    extern __shared__ double2 spectral_lines[];
    const struct fft_tile &tile = job.tiles[axis];
    const int line = fft_line(tile);
    const int64_t first = (int64_t)blockIdx.x << tile.shift, kx = first + line;
    const bool exists = kx < job.plan.kept, filters = FORWARD && INVERSE;
    const int64_t other = (int64_t)blockIdx.y + (int64_t)blockIdx.z * gridDim.y;
    const int64_t stride = axis == 1 ? job.pitch : job.extent.rows * job.pitch;
    double2 *const column = job.spectrum + kx + other * (axis == 1 ? job.extent.rows * job.pitch : job.pitch);

    if (other >= (axis == 1 ? job.extent.slices : job.extent.rows))
        return;
    /* Columns outside the transfer function, and their places, are neither written nor read. */
    const auto is_outside = [&](int64_t x, int64_t y) {
        return spectral_is_zero(&job.plan, job.plan.axis[0].plus[x] + job.plan.axis[1].plus[y],
                                job.plan.axis[0].minus[x] + job.plan.axis[1].minus[y]);
    };
    bool empty = filters && axis == 2;
    for (int64_t x = first; x < job.plan.kept && x < first + (1 << tile.shift) && empty; x++)
        empty = is_outside(x, other);
    if (empty)
        return;

    const struct spectral_sums sums = exists ? spectral_sums_at(&job.plan, kx, axis == 2 ? other : 0) : spectral_sums{};
    const auto load = [&](int i) {
        const bool skipped =
            !exists || (!FORWARD && is_outside(kx, i)) || (filters && axis == 2 && is_outside(kx, other));

        return skipped ? make_double2(0, 0) : column[i * stride];
    };
    const auto store = [&](int i, double2 value) {
        const bool skipped =
            !exists || (!INVERSE && is_outside(kx, i)) || (filters && axis == 2 && is_outside(kx, other));

        if (!skipped)
            column[i * stride] = value;
    };
    const auto filter = [&](int i, double2 value) {
        const struct spectral_sums own = axis == 2 || !exists ? sums : spectral_sums_at(&job.plan, kx, i);
        const int kz = axis == 2 ? i : 0;
        const bool is_zero = !exists || spectral_is_zero(&job.plan, own.plus + job.plan.axis[2].plus[kz],
                                                         own.minus + job.plan.axis[2].minus[kz]);
        const double gain = is_zero ? 0 : spectral_gain(&job.plan, &own, kz);

        spectral_lines[i * tile.pitch + line] = job.plan.order % 2 == 1
                                                    ? make_double2(value.y * gain, -(value.x * gain))
                                                    : make_double2(value.x * gain, value.y * gain);
    };

    if constexpr (FORWARD && INVERSE) {
        const auto keep = [&](int i, double2 value) { spectral_lines[i * tile.pitch + line] = value; };

        fft_run<FAST>(tile, spectral_lines, load, keep);
        fft_copy(
            tile, [&](int i) { return spectral_lines[i * tile.pitch + line]; }, filter);
        fft_run<FAST>(
            tile, spectral_lines, [&](int i) { return fft_swapped(spectral_lines[i * tile.pitch + line]); },
            [&](int i, double2 value) { store(i, fft_swapped(value)); });
    } else if constexpr (FORWARD)
        fft_run<FAST>(tile, spectral_lines, load, store);
    else
        fft_run<FAST>(
            tile, spectral_lines, [&](int i) { return fft_swapped(load(i)); },
            [&](int i, double2 value) { store(i, fft_swapped(value)); });
}

struct cuda_spectral {
    struct filter_demand demand; /* first: filter.h */
    struct spectral_plan plan;
    struct cuda_gabor gabor;
    int64_t pitch;
    double *tables[3], *host_tables[3];
    double2 *spectrum;
    int32_t *values, *codes, *host_codes;
};

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
    own->pitch = (own->plan.kept + FFT_LINES - 1) / FFT_LINES * FFT_LINES;
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
    }
    cuda_take(&memory->device, &own->spectrum, (size_t)(own->pitch * extent->rows * extent->slices));
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
    const size_t bytes = fft_bytes(job->tiles[axis]);
    const auto kernel = fft_runs_fast(job->tiles[axis]) ? fast : any;

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, fft_threads(job->tiles[axis]), bytes, lane->work>>>(*job, arguments...);
    CUDA_LAUNCHED(device);
    return 0;
}

static unsigned
spectral_blocks(int64_t lines, const struct fft_tile &tile)
{
    return (unsigned)((lines + (1 << tile.shift) - 1) >> tile.shift);
}

/* Returns a grid with a block per group of columns and place of the other axis. */
static dim3
spectral_grid(const struct spectral_job *job, int axis)
{
    const int64_t others = axis == 1 ? job->extent.slices : job->extent.rows, most = 32768;

    return dim3(spectral_blocks(job->plan.kept, job->tiles[axis]), (unsigned)std::min(others, most),
                (unsigned)((others + most - 1) / most));
}

static int
spectral_queue_kernels(struct cuda_lane *lane, const struct spectral_job *job, bool in_slice, struct error *error)
{
    const dim3 rows(spectral_blocks((job->extent.rows + 1) / 2 * job->extent.slices, job->tiles[0]));
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
    for (int axis = 0; axis < 3; axis++) {
        spectral_fill(&own->demand, &job.plan, axis, own->host_tables[axis]);
        CUDA_SEND(lane, own->tables[axis], own->host_tables[axis],
                  (size_t)job.plan.axis[axis].fft.side * SPECTRAL_TABLE);
        spectral_point(&job.plan.axis[axis], own->tables[axis]);
        job.tiles[axis] = fft_tile_of(&job.plan.axis[axis].fft);
    }
    job.extent = lane->base.extent;
    job.spectrum = own->spectrum;
    job.pitch = own->pitch;
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
