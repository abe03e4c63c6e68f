/*
 * gabor_cuda.cu - Gabor filters on the GPU, as gabor.h defines them. Slices of a plane are filtered in chunks: pairs of
 * lines along a, columns along b; then, for some angles together, columns back along b, and lines back along a, whose
 * moduli a block pools in shared memory. Blocks transform FFT_LINES adjacent lines or columns.
 *
 * Memory is in the order in which warps, of some lines and adjacent places, write and read it: rows are at
 * [k / FFT_LINES][line][k % FFT_LINES], columns and transfer functions at [k / lines][place][k % lines], lines of a block,
 * and place t of line b on the way back is at [b / GABOR_GROUP][t][b % GABOR_GROUP]. t counts from kernel->first, rounded down to FFT_LINES.
 */
#include "kernels/filter/gabor_cuda.cuh"

#include "kernels/cuda/ptx.cuh"

#include <algorithm>

enum { GABOR_CHUNK = 64, GABOR_ANGLES = 8, GABOR_GROUP = 2, GABOR_SLICES = 2, GABOR_FINISH_THREADS = 256 };

static const int64_t GABOR_CHUNK_BYTES = INT64_C(1) << 30;

struct gabor_job {
    const struct gabor_plan *plan;
    struct gabor_plane plane;
    struct fft_tile tiles[2]; /* along a, b */
    struct spectral_input input;
    int64_t strides[3]; /* of a, b, slices in the volume */
    int64_t slice;      /* the first of the chunk */
    int64_t slices;
    int at;                    /* index of the plane */
    int angle, angles;         /* filtered together */
    int64_t half_pitch, pitch; /* k(a) of half a line, and of a line */
    int back_pitch;            /* places t of a line */
    int64_t lines;             /* along b, in whole groups of GABOR_GROUP */
    double2 *rows, *columns, *back;
    double *transfer, *pooled, *sums;
    int32_t *codes;
    double scale;
    const int32_t *places[2]; /* along a, b: of the volume; -1: 0 */
    enum filter_pooling pooling;
    bool is_last; /* plane */
};

__device__ static __forceinline__ double2
gabor_value(struct fft_value value)
{
    return make_double2(value.re, value.im);
}

/* The places k(a) of a kernel that this thread's column may have. */
struct gabor_column {
    int t;       /* from the first, rounded down to FFT_LINES */
    int k;       /* that of another column if this one does not exist */
    bool exists; /* otherwise, it reads as the others, since a branch would make reads wait for each other */
};

__device__ static __forceinline__ struct gabor_column
gabor_column_of(const struct gabor_job &job, const struct gabor_kernel &kernel, int t)
{
    const int first = kernel.first[job.at], skew = first % FFT_LINES, across = job.plane.axis[0].fft.side;
    const bool exists = t >= skew && t < skew + kernel.count[job.at];

    return {t, (exists ? first - skew + t : first) % across, exists};
}

/* Returns the place of column k, from which its places are 2^shift apart. */
__device__ static __forceinline__ int64_t
gabor_column_at(const struct fft_tile &tile, int k)
{
    return (int64_t)(k >> tile.shift) * (tile.plan.side << tile.shift) + (k & ((1 << tile.shift) - 1));
}

/* Transforms the kernels of angles along a: rows j of all places k(a), in the memory of the way back. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_taps(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[0];
    struct fft_space space = fft_space_of<FAST>(tile, gabor_memory);
    const struct gabor_kernel &kernel = job.plan->kernel[job.angle + blockIdx.y];
    const int64_t j = ((int64_t)blockIdx.x << tile.shift) + fft_line(tile), down = job.plane.axis[1].fft.side;
    double2 *const row = job.back + (blockIdx.y * down + j) * job.pitch;

    fft_run<FAST>(
        tile, space,
        [&](int i, int, int slot) {
            return j < down ? gabor_value(gabor_sum(job.plan, &job.plane, &kernel, i, j)) : make_double2(0, 0);
        },
        [&](int i, double2 value, int, int slot) {
            if (j < down)
                row[i] = value;
        });
}

/* Transforms them along b to the transfer functions. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_transfers(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[1];
    struct fft_space space = fft_space_of<FAST>(tile, gabor_memory);
    const struct gabor_kernel &kernel = job.plan->kernel[job.angle + blockIdx.y];
    const struct gabor_column column = gabor_column_of(job, kernel, (int)(blockIdx.x << tile.shift) + fft_line(tile));
    const int64_t across = job.plane.axis[0].fft.side, down = job.plane.axis[1].fft.side;
    const double2 *const from = job.back + blockIdx.y * down * job.pitch + column.k;
    double *const to = job.transfer + (job.angle + blockIdx.y) * down * job.pitch + gabor_column_at(tile, column.t);
    const double scale = 1 / ((double)across * (double)down);

    fft_run<FAST>(
        tile, space, [&](int i, int, int slot) { return from[i * job.pitch]; },
        [&](int i, double2 value, int, int slot) {
            if (column.exists)
                to[i << tile.shift] = value.x * scale;
        });
}

/* Transforms pairs of lines of slices along a. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_lines(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[0];
    struct fft_space space = fft_space_of<FAST>(tile, gabor_memory);
    const int lines = (int)job.plane.axis[1].side, b = (int)((blockIdx.x << tile.shift) + fft_line(tile)) * 2;
    const bool has_first = b < lines, has_second = b + 1 < lines;
    const int64_t slice = (job.slice + blockIdx.y) * job.strides[2];
    const int64_t first = slice + (has_first ? b : 0) * job.strides[1],
                  second = has_second ? first + job.strides[1] : slice;
    double2 *const to = job.rows + blockIdx.y * lines * job.half_pitch + b * FFT_LINES;
    double2 values[FFT_MOST];

    spectral_read(job.input, [&](const auto &read) {
        fft_each_read<FAST>(tile, 0, [&](int i, int n) {
            const int a = job.places[0][i];
            const int64_t from = (a > 0 ? a : 0) * job.strides[0];
            const double2 value = make_double2(read(first + from), read(second + from));

            values[n] = make_double2(a >= 0 ? value.x : 0, a >= 0 ? value.y : 0);
        });
    });
    fft_run<FAST>(
        tile, space,
        [&](int, int n, int) { return make_double2(has_first ? values[n].x : 0, has_second ? values[n].y : 0); },
        [&](int, double2 value, int, int slot) { space.now[slot] = value; });
    __syncthreads();
    spectral_along(
        spectral_walk_of(tile), (int)job.plane.half,
        [&](int k) { return spectral_split(tile, space.now, fft_line(tile), k); },
        [&](int k, const struct spectral_two &two) {
            double2 *const row = to + (int64_t)(k / FFT_LINES) * (lines * FFT_LINES) + k % FFT_LINES;

            if (has_first)
                row[0] = two.first;
            if (has_second)
                row[FFT_LINES] = two.second;
        });
}

/* Transforms columns of slices along b. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_columns(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[1];
    struct fft_space space = fft_space_of<FAST>(tile, gabor_memory);
    const struct gabor_axis &along = job.plane.axis[1];
    const int64_t k = ((int64_t)blockIdx.x << tile.shift) + fft_line(tile);
    const bool exists = k < job.plane.half;
    /* Columns that do not exist are read as the first one, since a branch would make reads wait for each other. */
    const int64_t column = exists ? k : 0;
    const double2 *const from = job.rows + blockIdx.y * along.side * job.half_pitch +
                                column / FFT_LINES * along.side * FFT_LINES + column % FFT_LINES;
    double2 *const to = job.columns + blockIdx.y * along.fft.side * job.half_pitch + gabor_column_at(tile, (int)k);

    fft_run<FAST>(
        tile, space,
        [&](int i, int, int slot) {
            const int b = job.places[1][i];
            const double2 value = from[b < 0 ? 0 : b * FFT_LINES];

            return b < 0 ? make_double2(0, 0) : value;
        },
        [&](int i, double2 value, int, int slot) {
            if (exists)
                to[i << tile.shift] = value;
        });
}

/* Returns the memory of a line on the way back, from place t on. */
__device__ static __forceinline__ double2 *
gabor_back(const struct gabor_job &job, int64_t slice, int angle, int64_t b)
{
    const int64_t plane = (slice * job.angles + angle) * job.lines * job.back_pitch;

    return job.back + plane + b / GABOR_GROUP * job.back_pitch * GABOR_GROUP + b % GABOR_GROUP;
}

/* Multiplies columns of some slices with the transfer functions, and transforms them back along b. Gains stay in the
 * multiprocessor's cache from slice to slice. Other values are read and written once, past it. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_columns_back(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[1];
    struct fft_space space = fft_space_of<FAST>(tile, gabor_memory);
    const struct gabor_kernel &kernel = job.plan->kernel[job.angle + blockIdx.x];
    const struct gabor_axis &along = job.plane.axis[1];
    const int across = job.plane.axis[0].fft.side, down = along.fft.side, first = (int)(blockIdx.y << tile.shift);
    const struct gabor_column column = gabor_column_of(job, kernel, first + fft_line(tile));

    if (first >= kernel.first[job.at] % FFT_LINES + kernel.count[job.at])
        return;
    const bool above = column.k >= job.plane.half;
    const double *const transfer = job.transfer + (job.angle + blockIdx.x) * down * job.pitch +
                                   gabor_column_at(tile, column.exists ? column.t : first);
    const int before = (int)along.before, side = (int)along.side;
    const int64_t end = min((int64_t)(blockIdx.z + 1) * GABOR_SLICES, job.slices);

    for (int64_t slice = (int64_t)blockIdx.z * GABOR_SLICES; slice < end; slice++) {
        const double2 *const from =
            job.columns + slice * down * job.half_pitch + gabor_column_at(tile, above ? across - column.k : column.k);
        double2 *const to = gabor_back(job, slice, (int)blockIdx.x, 0) + column.t * GABOR_GROUP;

        fft_run<FAST>(
            tile, space,
            [&](int i, int, int slot) {
                const double2 value = __ldcg(&from[(above && i > 0 ? down - i : i) << tile.shift]);
                const double gain = transfer[i << tile.shift];

                return make_double2((above ? -value.y : value.y) * gain, value.x * gain); /* swapped */
            },
            [&](int i, double2 value, int, int slot) {
                const int b = i - before;

                if (column.exists && b >= 0 && b < side)
                    __stcs(&to[b / GABOR_GROUP * (job.back_pitch * GABOR_GROUP) + b % GABOR_GROUP], fft_swapped(value));
            });
    }
}

/* Returns the square root of x >= 0, rounded to nearest for x >= 2^-900. Smaller ones never make a code. Without a branch
 * for numbers that are not normal, which would make the values of a thread wait for each other. */
__device__ static __forceinline__ double
gabor_root(double x)
{
    const double y = x > 0x1p-900 ? x : 0x1p-900, guess = ptx_rsqrt(y), error = fma(y, -(guess * guess), 1.0);
    const double inverse = fma(fma(error, 0.375, 0.5), guess * error, guess), root = y * inverse;

    return fma(fma(-root, root, y), 0.5 * inverse, root);
}

/* Pools a modulus with those of earlier planes. Writes the code after the last plane. */
__device__ static __forceinline__ void
gabor_finish_voxel(const struct gabor_job &job, int64_t voxel, double sum, double pooled)
{
    const double all = gabor_pool(job.pooling, job.at == 0, sum, pooled);

    if (job.is_last)
        job.codes[voxel] = filter_code(all * job.scale);
    else
        job.sums[voxel] = all;
}

/* Transforms lines back along a, and pools their moduli with those of earlier angles. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_lines_back(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[0];
    struct fft_space space = fft_space_of<FAST>(tile, gabor_memory);
    const struct gabor_axis &along = job.plane.axis[0];
    const int places = tile.plan.side;
    const int64_t lines = job.plane.axis[1].side;
    const int64_t b = ((int64_t)blockIdx.x << tile.shift) + fft_line(tile);
    const bool exists = b < lines, ends = job.angle + job.angles == job.plan->angles;
    double *const kept = job.pooled + (blockIdx.y * lines + b) * along.side;
    const int before = (int)along.before, side = (int)along.side, last = FAST ? tile.stages - 1 : 0;
    const int64_t voxel = (exists ? b : 0) * job.strides[1] + (job.slice + blockIdx.y) * job.strides[2];
    const bool finishes = ends && job.strides[0] == 1;
    const auto place = [&](int i) { return i < before ? 0 : i < before + side ? i - before : side - 1; };
    double pooled[FFT_MOST], sums[FFT_MOST];

    for (int n = 0; n < FFT_MOST; n++) {
        pooled[n] = job.pooling == FILTER_MIN ? INFINITY : 0; /* pooled with the first modulus, that one */
        sums[n] = 0;
    }
    if (job.angle > 0 && exists)
        fft_each_read<FAST>(tile, last, [&](int i, int n) { pooled[n] = kept[place(i)]; });
    for (int angle = 0; angle < job.angles; angle++) {
        const struct gabor_kernel &kernel = job.plan->kernel[job.angle + angle];
        const int first = kernel.first[job.at], count = kernel.count[job.at];
        const double2 *const from =
            gabor_back(job, blockIdx.y, angle, exists ? b : 0) + first % FFT_LINES * GABOR_GROUP;
        fft_run<FAST>(
            tile, space,
            [&](int i, int, int) {
                const int t = i < first ? i - first + places : i - first;
                double2 value = make_double2(0, 0);

                if (t < count)
                    value = fft_swapped(from[t * GABOR_GROUP]);
                return value;
            },
            [&](int, double2 value, int n, int) { /* also of places that do not exist, without branches */
                                                  pooled[n] =
                                                      gabor_pool(job.pooling, false, pooled[n],
                                                                 gabor_root(value.y * value.y + value.x * value.x));
            });
    }
    if (finishes && job.at > 0)
        fft_each_read<FAST>(tile, last, [&](int i, int n) { sums[n] = job.sums[voxel + place(i)]; });
    fft_each<FAST>(tile, last, [&](int i, int n, int) {
        if (!exists || i < before || i >= before + side)
            return;
        if (finishes)
            gabor_finish_voxel(job, voxel + i - before, sums[n], pooled[n]);
        else
            kept[i - before] = pooled[n];
    });
}

/* Finishes slices across the rows, from the pooled moduli. Adjacent threads have adjacent slices. */
__global__ void
__launch_bounds__(GABOR_FINISH_THREADS) gabor_finish(const __grid_constant__ struct gabor_job job)
{
    const int64_t side = job.plane.axis[0].side, lines = job.plane.axis[1].side;
    const int64_t i = (int64_t)blockIdx.x * GABOR_FINISH_THREADS + threadIdx.x;
    const int64_t slice = i % job.slices, rest = i / job.slices, a = rest % side, b = rest / side;

    const int64_t voxel = a * job.strides[0] + b * job.strides[1] + (job.slice + slice) * job.strides[2];

    if (i < side * lines * job.slices)
        gabor_finish_voxel(job, voxel, job.at > 0 ? job.sums[voxel] : 0, job.pooled[(slice * lines + b) * side + a]);
}

static int64_t
gabor_rounded(int64_t count)
{
    return (count + FFT_LINES - 1) / FFT_LINES * FFT_LINES;
}

/* Returns the places of lines on the way back: two adjacent groups of lines use different banks. */
static int64_t
gabor_back_pitch(const struct gabor_plan &plan, int plane)
{
    int most = 0;

    for (int angle = 0; angle < plan.angles; angle++)
        most = std::max(most, plan.kernel[angle].count[plane]);
    return gabor_rounded(most + FFT_LINES) + GABOR_GROUP;
}

void
cuda_gabor_size(struct cuda_gabor *own)
{
    own->angles = std::min(own->plan.angles, (int)GABOR_ANGLES);
    own->rows = own->columns = own->back = own->transfer = own->pooled = 0;
    for (int p = 0; p < own->plan.planes; p++) {
        const struct gabor_plane &plane = own->plan.plane[p];
        const int64_t half = gabor_rounded(plane.half), pitch = gabor_rounded(plane.axis[0].fft.side + FFT_LINES);
        const int64_t lines = plane.axis[1].side, down = plane.axis[1].fft.side;

        own->rows = std::max(own->rows, lines * half);
        own->columns = std::max(own->columns, down * half);
        own->back = std::max(own->back, gabor_rounded(lines) * gabor_back_pitch(own->plan, p));
        own->transfer = std::max(own->transfer, down * pitch);
        own->pooled = std::max(own->pooled, lines * plane.axis[0].side);
    }
    own->chunk = GABOR_CHUNK_BYTES / (int64_t)sizeof(double2) / std::max<int64_t>(own->back * own->angles, 1);
    own->chunk = std::max<int64_t>(std::min<int64_t>(own->chunk, GABOR_CHUNK), 1);
    /* The kernels of the angles use the memory of the way back. */
    own->back = std::max(own->back, (own->transfer + own->chunk - 1) / own->chunk);
}

void
cuda_gabor_place(const struct kernels_lane *lane, struct cuda_gabor *own, struct kernels_memory *memory)
{
    const size_t chunk = (size_t)own->chunk;

    for (int p = 0; p < own->plan.planes; p++)
        for (int i = 0; i < 2; i++) {
            const size_t count = (size_t)own->plan.plane[p].axis[i].fft.side;

            cuda_take(&memory->device, &own->roots[p][i], fft_tables(own->plan.plane[p].axis[i].fft));
            cuda_take(&memory->host, &own->host_roots[p][i], fft_tables(own->plan.plane[p].axis[i].fft));
            cuda_take(&memory->device, &own->places[p][i], count);
            cuda_take(&memory->host, &own->host_places[p][i], count);
        }
    cuda_take(&memory->device, &own->device_plan, GABOR_PLANES);
    cuda_take(&memory->host, &own->host_plan, GABOR_PLANES);
    cuda_take(&memory->device, &own->row_memory, chunk * (size_t)own->rows);
    cuda_take(&memory->device, &own->column_memory, chunk * (size_t)own->columns);
    cuda_take(&memory->device, &own->back_memory, chunk * (size_t)own->back, (size_t)own->angles);
    cuda_take(&memory->device, &own->transfer_memory, (size_t)own->transfer, (size_t)own->plan.angles);
    cuda_take(&memory->device, &own->pooled_memory, chunk * (size_t)own->pooled);
    if (own->plan.planes > 1)
        cuda_take(&memory->device, &own->sums, (size_t)image_voxels(&lane->extent));
}

/* Queues a kernel for lines of an axis of the plane, in `bytes` of shared memory: one of two forms. */
static int
gabor_launch(struct cuda_lane *lane, const struct gabor_job *job, int axis, dim3 blocks, size_t bytes,
             void (*fast)(const struct gabor_job), void (*any)(const struct gabor_job), struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const auto kernel = fft_runs_fast(job->tiles[axis]) ? fast : any;

    if (bytes > device->shared_per_block)
        return kernels_no_memory(&lane->base, error);
    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, fft_threads(job->tiles[axis]), bytes, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    return 0;
}

static unsigned
gabor_blocks(int64_t lines, const struct fft_tile &tile)
{
    return (unsigned)((lines + (1 << tile.shift) - 1) >> tile.shift);
}

/* Queues the transfer functions of a plane. */
static int
gabor_queue_transfers(struct cuda_lane *lane, const struct cuda_gabor *own, struct gabor_job job, struct error *error)
{
    const unsigned rows = gabor_blocks(job.plane.axis[1].fft.side, job.tiles[0]);
    const unsigned columns = gabor_blocks(job.plane.axis[0].fft.side + FFT_LINES, job.tiles[1]);
    int rc = 0;

    for (; rc == 0 && job.angle < own->plan.angles; job.angle += own->angles) {
        const unsigned angles = (unsigned)std::min(own->angles, own->plan.angles - job.angle);

        rc = gabor_launch(lane, &job, 0, dim3(rows, angles), fft_bytes(job.tiles[0]), gabor_taps<true>,
                          gabor_taps<false>, error);
        rc = rc ? rc
                : gabor_launch(lane, &job, 1, dim3(columns, angles), fft_bytes(job.tiles[1]), gabor_transfers<true>,
                               gabor_transfers<false>, error);
    }
    return rc;
}

/* Queues a chunk of slices. */
static int
gabor_queue_chunk(struct cuda_lane *lane, const struct cuda_gabor *own, struct gabor_job job, struct error *error)
{
    const unsigned slices = (unsigned)job.slices;
    const unsigned halves = gabor_blocks(job.plane.half, job.tiles[1]);
    const unsigned columns = gabor_blocks(job.plane.axis[0].fft.side + FFT_LINES, job.tiles[1]);
    const size_t bytes[2] = {fft_bytes(job.tiles[0]), fft_bytes(job.tiles[1])};
    const unsigned pairs = gabor_blocks((job.plane.axis[1].side + 1) / 2, job.tiles[0]);
    const unsigned lines = gabor_blocks(job.plane.axis[1].side, job.tiles[0]);
    const int64_t voxels = job.plane.axis[0].side * job.plane.axis[1].side * job.slices;
    int rc = gabor_launch(lane, &job, 0, dim3(pairs, slices), bytes[0], gabor_lines<true>, gabor_lines<false>, error);

    rc = rc ? rc
            : gabor_launch(lane, &job, 1, dim3(halves, slices), bytes[1], gabor_columns<true>, gabor_columns<false>,
                           error);
    for (; rc == 0 && job.angle < own->plan.angles; job.angle += own->angles) {
        job.angles = std::min(own->angles, own->plan.angles - job.angle);
        rc =
            gabor_launch(lane, &job, 1, dim3((unsigned)job.angles, columns, (slices + GABOR_SLICES - 1) / GABOR_SLICES),
                         bytes[1], gabor_columns_back<true>, gabor_columns_back<false>, error);
        rc = rc ? rc
                : gabor_launch(lane, &job, 0, dim3(lines, slices), bytes[0], gabor_lines_back<true>,
                               gabor_lines_back<false>, error);
    }
    if (rc || job.strides[0] == 1)
        return rc;
    gabor_finish<<<(unsigned)((voxels + GABOR_FINISH_THREADS - 1) / GABOR_FINISH_THREADS), GABOR_FINISH_THREADS, 0,
                   lane->work>>>(job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

/* Fills the places of the volume of an axis' values. */
static void
gabor_fill_places(const struct gabor_plan *plan, const struct gabor_axis *axis, int32_t *places)
{
    for (int64_t i = 0; i < axis->fft.side; i++)
        places[i] = i < axis->side + 2 * axis->before
                        ? (int32_t)filter_place(i - axis->before, axis->side, plan->boundary)
                        : -1;
}

/* Sends a plane's roots, and the plan with their addresses. */
static int
gabor_send(struct cuda_lane *lane, struct cuda_gabor *own, int at, struct gabor_job *job, struct error *error)
{
    struct gabor_plan *plan = &own->host_plan[at];

    *plan = own->plan;
    job->plane = own->plan.plane[at];
    for (int i = 0; i < 2; i++) {
        struct fft_plan *fft = &job->plane.axis[i].fft;

        fft_fill_turns(*fft, own->host_roots[at][i]);
        gabor_fill_places(&own->plan, &job->plane.axis[i], own->host_places[at][i]);
        CUDA_SEND(lane, own->places[at][i], own->host_places[at][i], (size_t)fft->side);
        job->places[i] = own->places[at][i];
        CUDA_SEND(lane, own->roots[at][i], own->host_roots[at][i], fft_tables(*fft));
        fft->roots = own->roots[at][i];
        job->tiles[i] = fft_tile_of(fft);
    }
    CUDA_SEND(lane, &own->device_plan[at], plan, 1);
    job->plan = &own->device_plan[at];
    return 0;
}

int
cuda_gabor_queue(struct cuda_lane *lane, struct cuda_gabor *own, const struct spectral_input *input, double step,
                 int32_t *codes, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    const int64_t strides[3] = {1, extent->columns, image_slice_voxels(extent)};

    for (int at = 0; at < own->plan.planes; at++) {
        struct gabor_job job = {};
        int rc = gabor_send(lane, own, at, &job, error);

        if (rc)
            return rc;
        job.input = *input;
        job.at = at;
        job.pooling = own->plan.pooling;
        job.is_last = at == own->plan.planes - 1;
        job.strides[0] = strides[job.plane.axis[0].axis];
        job.strides[1] = strides[job.plane.axis[1].axis];
        job.strides[2] = strides[job.plane.slices];
        job.half_pitch = gabor_rounded(job.plane.half);
        job.pitch = gabor_rounded(job.plane.axis[0].fft.side + FFT_LINES);
        job.back_pitch = (int)gabor_back_pitch(own->plan, at);
        job.lines = gabor_rounded(job.plane.axis[1].side);
        job.rows = own->row_memory;
        job.columns = own->column_memory;
        job.back = own->back_memory;
        job.transfer = own->transfer_memory;
        job.pooled = own->pooled_memory;
        job.sums = own->sums;
        job.codes = codes;
        job.scale = gabor_scale(&own->plan, step);
        rc = gabor_queue_transfers(lane, own, job, error);
        for (; rc == 0 && job.slice < sides[job.plane.slices]; job.slice += own->chunk) {
            job.slices = std::min(own->chunk, sides[job.plane.slices] - job.slice);
            rc = gabor_queue_chunk(lane, own, job, error);
        }
        if (rc)
            return rc;
    }
    return 0;
}
