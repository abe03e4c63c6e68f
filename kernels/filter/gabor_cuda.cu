/*
 * gabor_cuda.cu - Gabor filters on the GPU, as gabor.h defines them. Slices of a plane are filtered in chunks: pairs of
 * lines along a, columns along b; then, for some angles together, columns back along b, and lines back along a, whose
 * moduli a block pools in shared memory. Blocks transform FFT_LINES adjacent lines or columns.
 *
 * Between the way back along b and a, place t of line b is at [b / GABOR_GROUP][t][b % GABOR_GROUP], so that both ways use
 * whole sectors of memory.
 */
#include "kernels/filter/gabor_cuda.cuh"

#include <algorithm>

enum { GABOR_CHUNK = 32, GABOR_ANGLES = 8, GABOR_GROUP = 8, GABOR_FINISH_THREADS = 256 };

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
    int64_t lines;             /* along b, in whole groups of GABOR_GROUP */
    double2 *rows, *columns, *back;
    double *transfer, *pooled, *sums;
    int32_t *codes;
    double scale;
};

__device__ static __forceinline__ double2
gabor_value(struct fft_value value)
{
    return make_double2(value.re, value.im);
}

/* Transforms the kernels of angles along a: rows j of all places k(a), in the memory of the way back. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_taps(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[0];
    const struct gabor_kernel &kernel = job.plan->kernel[job.angle + blockIdx.y];
    const int64_t j = ((int64_t)blockIdx.x << tile.shift) + fft_line(tile), down = job.plane.axis[1].fft.side;
    double2 *const row = job.back + (blockIdx.y * down + j) * job.pitch;

    fft_run<FAST>(
        tile, gabor_memory,
        [&](int i) {
            return j < down ? gabor_value(gabor_sum(job.plan, &job.plane, &kernel, i, j)) : make_double2(0, 0);
        },
        [&](int i, double2 value) {
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
    const struct gabor_kernel &kernel = job.plan->kernel[job.angle + blockIdx.y];
    const int64_t t = ((int64_t)blockIdx.x << tile.shift) + fft_line(tile);
    const int64_t across = job.plane.axis[0].fft.side, down = job.plane.axis[1].fft.side;
    const bool exists = t < kernel.count[job.at];
    const double2 *const column = job.back + blockIdx.y * down * job.pitch + (kernel.first[job.at] + t) % across;
    double *const transfer = job.transfer + (job.angle + blockIdx.y) * down * job.pitch + t;
    const double scale = 1 / ((double)across * (double)down);

    fft_run<FAST>(
        tile, gabor_memory, [&](int i) { return exists ? column[i * job.pitch] : make_double2(0, 0); },
        [&](int i, double2 value) {
            if (exists)
                transfer[i * job.pitch] = value.x * scale;
        });
}

__device__ static __forceinline__ double
gabor_input(const struct gabor_job &job, int64_t slice, int64_t a, int64_t b)
{
    return spectral_value(job.input, a * job.strides[0] + b * job.strides[1] + (job.slice + slice) * job.strides[2]);
}

/* Transforms pairs of lines of slices along a. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_lines(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[0];
    const struct gabor_axis &along = job.plane.axis[0];
    const int places = tile.plan.side, line = fft_line(tile);
    const int64_t lines = job.plane.axis[1].side, first = (int64_t)blockIdx.x << (tile.shift + 1);

    spectral_along(tile, places, [&](int l, int i) {
        const int64_t a = filter_place(i - along.before, along.side, job.plan->boundary), b = first + 2 * l;
        const bool exists = a >= 0 && i < along.side + 2 * along.before;

        gabor_memory[i * tile.pitch + l] =
            make_double2(exists && b < lines ? gabor_input(job, blockIdx.y, a, b) : 0,
                         exists && b + 1 < lines ? gabor_input(job, blockIdx.y, a, b + 1) : 0);
    });
    fft_run<FAST>(
        tile, gabor_memory, [&](int i) { return gabor_memory[i * tile.pitch + line]; },
        [&](int i, double2 value) { gabor_memory[i * tile.pitch + line] = value; });
    spectral_along(tile, (int)job.plane.half, [&](int l, int k) {
        const double2 p = gabor_memory[k * tile.pitch + l];
        const double2 q = gabor_memory[(k > 0 ? places - k : 0) * tile.pitch + l];
        const int64_t b = first + 2 * l;
        double2 *const row = job.rows + (blockIdx.y * lines + b) * job.half_pitch + k;

        if (b < lines)
            row[0] = make_double2((p.x + q.x) / 2, (p.y - q.y) / 2);
        if (b + 1 < lines)
            row[job.half_pitch] = make_double2((p.y + q.y) / 2, (q.x - p.x) / 2);
    });
}

/* Transforms columns of slices along b. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_columns(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[1];
    const struct gabor_axis &along = job.plane.axis[1];
    const int64_t k = ((int64_t)blockIdx.x << tile.shift) + fft_line(tile);
    const double2 *const from = job.rows + blockIdx.y * along.side * job.half_pitch + k;
    double2 *const to = job.columns + blockIdx.y * along.fft.side * job.half_pitch + k;

    fft_run<FAST>(
        tile, gabor_memory,
        [&](int i) {
            const int64_t b = filter_place(i - along.before, along.side, job.plan->boundary);

            return k < job.plane.half && b >= 0 && i < along.side + 2 * along.before ? from[b * job.half_pitch]
                                                                                     : make_double2(0, 0);
        },
        [&](int i, double2 value) {
            if (k < job.plane.half)
                to[i * job.half_pitch] = value;
        });
}

/* Returns the memory of a line on the way back, from place t on. */
__device__ static __forceinline__ double2 *
gabor_back(const struct gabor_job &job, int64_t slice, int angle, int64_t b)
{
    const int64_t plane = (slice * job.angles + angle) * job.lines * job.pitch;

    return job.back + plane + b / GABOR_GROUP * job.pitch * GABOR_GROUP + b % GABOR_GROUP;
}

/* Multiplies columns with the transfer functions, and transforms them back along b. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_columns_back(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[1];
    const struct gabor_kernel &kernel = job.plan->kernel[job.angle + blockIdx.z];
    const struct gabor_axis &along = job.plane.axis[1];
    const int64_t across = job.plane.axis[0].fft.side, down = along.fft.side;
    const int64_t first = (int64_t)blockIdx.x << tile.shift, t = first + fft_line(tile);
    const bool exists = t < kernel.count[job.at];

    if (first >= kernel.count[job.at])
        return;
    const int64_t k = (kernel.first[job.at] + t) % across;
    const bool above = k >= job.plane.half;
    const double2 *const from = job.columns + blockIdx.y * down * job.half_pitch + (above ? across - k : k);
    const double *const transfer = job.transfer + (job.angle + blockIdx.z) * down * job.pitch + t;

    fft_run<FAST>(
        tile, gabor_memory,
        [&](int i) {
            if (!exists)
                return make_double2(0, 0);
            const double2 value = from[(above && i > 0 ? down - i : i) * job.half_pitch];
            const double gain = transfer[i * job.pitch];

            return make_double2((above ? -value.y : value.y) * gain, value.x * gain); /* swapped */
        },
        [&](int i, double2 value) {
            const int64_t b = i - along.before;

            if (exists && b >= 0 && b < along.side)
                gabor_back(job, blockIdx.y, (int)blockIdx.z, b)[t * GABOR_GROUP] = fft_swapped(value);
        });
}

/* Transforms lines back along a, and pools their moduli with those of earlier angles. */
template <bool FAST>
__global__ void
FFT_BOUNDS(FAST) gabor_lines_back(const __grid_constant__ struct gabor_job job)
{
    extern __shared__ double2 gabor_memory[];
    const struct fft_tile &tile = job.tiles[0];
    const struct gabor_axis &along = job.plane.axis[0];
    const int line = fft_line(tile), places = tile.plan.side;
    const int64_t lines = job.plane.axis[1].side, first_line = (int64_t)blockIdx.x << tile.shift;
    const int64_t b = first_line + line;
    double *const pooled = (double *)(gabor_memory + places * tile.pitch);
    double *const kept = job.pooled + (blockIdx.y * lines + first_line) * along.side;

    if (job.angle > 0)
        spectral_along(tile, (int)along.side, [&](int l, int a) {
            if (first_line + l < lines)
                pooled[a * tile.pitch + l] = kept[l * along.side + a];
        });
    for (int angle = 0; angle < job.angles; angle++) {
        const struct gabor_kernel &kernel = job.plan->kernel[job.angle + angle];
        const int first = kernel.first[job.at], count = kernel.count[job.at];
        const double2 *const from = gabor_back(job, blockIdx.y, angle, b < lines ? b : 0);

        fft_run<FAST>(
            tile, gabor_memory,
            [&](int i) {
                const int t = i < first ? i - first + places : i - first;

                return b < lines && t < count ? fft_swapped(from[(int64_t)t * GABOR_GROUP]) : make_double2(0, 0);
            },
            [&](int i, double2 value) {
                const int a = i - (int)along.before;

                if (a >= 0 && a < along.side) {
                    double &to = pooled[a * tile.pitch + line];

                    to = gabor_pool(job.plan->pooling, job.angle + angle == 0, to,
                                    sqrt(value.y * value.y + value.x * value.x));
                }
            });
    }
    spectral_along(tile, (int)along.side, [&](int l, int a) {
        if (first_line + l < lines)
            kept[l * along.side + a] = pooled[a * tile.pitch + l];
    });
}

/* Pools the moduli of slices with those of earlier planes. Writes codes after the last plane. */
__global__ void
__launch_bounds__(GABOR_FINISH_THREADS) gabor_finish(const __grid_constant__ struct gabor_job job)
{
    const int64_t side = job.plane.axis[0].side, lines = job.plane.axis[1].side;
    const bool by_slice = job.strides[2] == 1;
    const int64_t i = (int64_t)blockIdx.x * GABOR_FINISH_THREADS + threadIdx.x;

    if (i >= side * lines * job.slices)
        return;
    const int64_t slice = by_slice ? i % job.slices : i / side / lines;
    const int64_t rest = by_slice ? i / job.slices : i % (side * lines), a = rest % side, b = rest / side;
    const int64_t voxel = a * job.strides[0] + b * job.strides[1] + (job.slice + slice) * job.strides[2];
    const double pooled = gabor_pool(job.plan->pooling, job.at == 0, job.at > 0 ? job.sums[voxel] : 0,
                                     job.pooled[(slice * lines + b) * side + a]);

    if (job.at == job.plan->planes - 1)
        job.codes[voxel] = filter_code(pooled * job.scale);
    else
        job.sums[voxel] = pooled;
}

static int64_t
gabor_rounded(int64_t count)
{
    return (count + GABOR_GROUP - 1) / GABOR_GROUP * GABOR_GROUP;
}

void
cuda_gabor_size(struct cuda_gabor *own)
{
    own->angles = std::min(own->plan.angles, (int)GABOR_ANGLES);
    own->rows = own->columns = own->back = own->transfer = own->pooled = 0;
    for (int p = 0; p < own->plan.planes; p++) {
        const struct gabor_plane &plane = own->plan.plane[p];
        const int64_t half = gabor_rounded(plane.half), pitch = gabor_rounded(plane.axis[0].fft.side);
        const int64_t lines = plane.axis[1].side, down = plane.axis[1].fft.side;

        own->rows = std::max(own->rows, lines * half);
        own->columns = std::max(own->columns, down * half);
        own->back = std::max(own->back, gabor_rounded(lines) * pitch);
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

            cuda_take(&memory->device, &own->roots[p][i], count);
            cuda_take(&memory->host, &own->host_roots[p][i], count);
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
    const unsigned columns = gabor_blocks(job.plane.axis[0].fft.side, job.tiles[1]);
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
    const unsigned columns = gabor_blocks(job.plane.axis[0].fft.side, job.tiles[1]);
    const size_t bytes[2] = {fft_bytes(job.tiles[0]), fft_bytes(job.tiles[1])};
    const unsigned pairs = gabor_blocks((job.plane.axis[1].side + 1) / 2, job.tiles[0]);
    const unsigned lines = gabor_blocks(job.plane.axis[1].side, job.tiles[0]);
    const size_t moduli = (size_t)(job.plane.axis[0].side * job.tiles[0].pitch) * sizeof(double);
    const int64_t voxels = job.plane.axis[0].side * job.plane.axis[1].side * job.slices;
    int rc = gabor_launch(lane, &job, 0, dim3(pairs, slices), bytes[0], gabor_lines<true>, gabor_lines<false>, error);

    rc = rc ? rc
            : gabor_launch(lane, &job, 1, dim3(halves, slices), bytes[1], gabor_columns<true>, gabor_columns<false>,
                           error);
    for (; rc == 0 && job.angle < own->plan.angles; job.angle += own->angles) {
        job.angles = std::min(own->angles, own->plan.angles - job.angle);
        rc = gabor_launch(lane, &job, 1, dim3(columns, slices, (unsigned)job.angles), bytes[1],
                          gabor_columns_back<true>, gabor_columns_back<false>, error);
        rc = rc ? rc
                : gabor_launch(lane, &job, 0, dim3(lines, slices), bytes[0] + moduli, gabor_lines_back<true>,
                               gabor_lines_back<false>, error);
    }
    if (rc)
        return rc;
    gabor_finish<<<(unsigned)((voxels + GABOR_FINISH_THREADS - 1) / GABOR_FINISH_THREADS), GABOR_FINISH_THREADS, 0,
                   lane->work>>>(job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
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

        fft_roots(fft->side, own->host_roots[at][i]);
        CUDA_SEND(lane, own->roots[at][i], own->host_roots[at][i], (size_t)fft->side);
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
        job.strides[0] = strides[job.plane.axis[0].axis];
        job.strides[1] = strides[job.plane.axis[1].axis];
        job.strides[2] = strides[job.plane.slices];
        job.half_pitch = gabor_rounded(job.plane.half);
        job.pitch = gabor_rounded(job.plane.axis[0].fft.side);
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
