/*
 * resample_cuda.cu - a volume on another grid, on the GPU.
 *
 * Orders 0 and 1 are a pass: a thread a voxel of the grid. Order 3 goes axis by axis in doubles: the
 * lines of an axis lie beside each other, so that threads that filter one each read together; for
 * the first axis slices are turned on their way in and back. No operation is fused: each is rounded
 * by itself, as on the CPU.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/resample/resample.h"

enum {
    LINE_THREADS = 256,
    LINE_DEPTH = 32,   /* voxels along the normal of a thread, order 0 and 1 */
    TURN = 32,         /* side of a tile that is turned */
    TURN_ROWS = 8,     /* of threads a tile */
    SIDE_MOST = 65535, /* blocks along y and z */
};

struct cuda_resample {
    struct resample_demand demand; /* first: requests are checked against it */
    struct resample_tables host, device;
    void *voxels, *host_voxels;
    double *lines, *mixed; /* order 3 */
};

/* What the kernels are given. */
struct resample_job {
    struct image_extent from, to;
    struct resample_tables tables;
    const void *voxels;
    void *resampled;
    bool bytes;               /* a voxel of the result; else two */
    struct image_range range; /* of its pixel type */
    int32_t outside;
};

static struct cuda_resample *
cuda_resample_state(const struct kernels_lane *lane)
{
    return (struct cuda_resample *)kernels_state(lane, KERNELS_RESAMPLE);
}

/* ---- on the device ---- */

__device__ __forceinline__ double
resample_mixed(double a, double b, double part)
{
    return __dadd_rn(__dmul_rn(__dsub_rn(1, part), a), __dmul_rn(part, b));
}

__device__ __forceinline__ int32_t
resample_stored(const struct resample_job &job, double value)
{
    return min(max(__double2int_rd(__dadd_rn(value, 0.5)), job.range.lo), job.range.hi);
}

__device__ __forceinline__ void
resample_put(const struct resample_job &job, int64_t place, int32_t value)
{
    if (job.bytes)
        ((uint8_t *)job.resampled)[place] = (uint8_t)value;
    else
        ((uint16_t *)job.resampled)[place] = (uint16_t)value;
}

/* Between two rows, in a column. */
template <typename Value>
__device__ __forceinline__ double
resample_between_rows(const Value *column, int64_t next, double part)
{
    return part > 0 ? resample_mixed((double)column[0], (double)column[next], part)
                    : (double)column[0];
}

/* What there is of a plane at (i, j) of the grid. */
struct resample_point {
    double value;
    bool inside;
};

template <typename Value>
__device__ __forceinline__ struct resample_point
resample_on_plane(const struct resample_job &job, int64_t i, int64_t j, int64_t z)
{
    const struct resample_pair x = job.tables.taps[0][z * job.to.columns + i];
    const struct resample_pair y = job.tables.taps[1][z * job.to.rows + j];

    if (x.at < 0 || y.at < 0)
        return {0, false};
    const Value *place =
        (const Value *)job.voxels + (z * job.from.rows + y.at) * job.from.columns + x.at;
    double value = resample_between_rows(place, job.from.columns, y.part);
    if (x.part > 0)
        value = resample_mixed(value, resample_between_rows(place + 1, job.from.columns, y.part),
                               x.part);
    return {value, true};
}

/* The two planes around a voxel, which the next one of its line mostly shares. */
template <typename Value> struct resample_line {
    const struct resample_job &job;
    int64_t i, j;
    int32_t at = -2; /* the lower plane */
    bool has_upper = false;
    struct resample_point lower, upper;

    __device__ __forceinline__ void move(int32_t to)
    {
        if (to == at)
            return;
        lower = to == at + 1 && has_upper ? upper : resample_on_plane<Value>(job, i, j, to);
        at = to;
        has_upper = false;
    }

    __device__ __forceinline__ int32_t voxel(struct resample_pair z)
    {
        if (z.at < 0)
            return job.outside;
        move(z.at);
        if (!lower.inside || !(z.part > 0))
            return lower.inside ? resample_stored(job, lower.value) : job.outside;
        if (!has_upper)
            upper = resample_on_plane<Value>(job, i, j, z.at + 1);
        has_upper = true;
        return upper.inside ? resample_stored(job, resample_mixed(lower.value, upper.value, z.part))
                            : job.outside;
    }
};

/* A thread a line along the normal, of LINE_DEPTH voxels. */
template <typename Value>
__global__ void
__launch_bounds__(LINE_THREADS) resample_voxels(struct resample_job job)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t slice = job.to.rows * job.to.columns;

    if (i >= job.to.columns)
        return;
    for (int64_t first = (int64_t)blockIdx.z * LINE_DEPTH; first < job.to.slices;
         first += (int64_t)gridDim.z * LINE_DEPTH)
        for (int64_t j = blockIdx.y; j < job.to.rows; j += gridDim.y) {
            const int64_t end = min(first + LINE_DEPTH, job.to.slices);

            struct resample_line<Value> line = {
                job, i, j
            };

            for (int64_t k = first; k < end; k++)
                resample_put(job, k * slice + j * job.to.columns + i,
                             line.voxel(job.tables.taps[2][k]));
        }
}

/* Slices as doubles, each turned: lines[(z * columns + x) * rows + y]. */
template <typename Value>
__global__ void
resample_turn_in(struct resample_job job, double *lines)
{
    __shared__ double tile[TURN][TURN + 1];
    const int64_t x0 = (int64_t)blockIdx.x * TURN;

    for (int64_t z = blockIdx.z; z < job.from.slices; z += gridDim.z)
        for (int64_t y0 = (int64_t)blockIdx.y * TURN; y0 < job.from.rows;
             y0 += (int64_t)gridDim.y * TURN) {
            const int64_t x = x0 + threadIdx.x, y = y0 + threadIdx.x;

            for (int row = threadIdx.y; row < TURN; row += TURN_ROWS)
                if (x < job.from.columns && y0 + row < job.from.rows)
                    tile[row][threadIdx.x] =
                        (double)((const Value *)
                                     job.voxels)[(z * job.from.rows + y0 + row) * job.from.columns +
                                                 x];
            __syncthreads();
            for (int column = threadIdx.y; column < TURN; column += TURN_ROWS)
                if (x0 + column < job.from.columns && y < job.from.rows)
                    lines[(z * job.from.columns + x0 + column) * job.from.rows + y] =
                        tile[threadIdx.x][column];
            __syncthreads();
        }
}

/*
 * The coefficients of splines through `count` samples each, in place: sample k of line i of each
 * of `outer` at values[(outer * count + k) * inner + i].
 */
__global__ void
__launch_bounds__(LINE_THREADS) resample_filter(const struct resample_start *start, int64_t outer,
                                                int64_t count, int64_t inner, double *values)
{
    const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (line >= outer * inner)
        return;
    double *value = values + line / inner * count * inner + line % inner;
    double before = __dmul_rn(start->weight[0], __dmul_rn(*value, RESAMPLE_GAIN));
    for (int32_t k = 1; k < start->count; k++)
        before = __dadd_rn(before,
                           __dmul_rn(start->weight[k], __dmul_rn(value[k * inner], RESAMPLE_GAIN)));
    *value = before;
    for (int64_t k = 1; k < count; k++) {
        before =
            __dadd_rn(__dmul_rn(value[k * inner], RESAMPLE_GAIN), __dmul_rn(RESAMPLE_POLE, before));
        value[k * inner] = before;
    }
    value += (count - 1) * inner;
    before = __dmul_rn(start->end, __dadd_rn(__dmul_rn(RESAMPLE_POLE, value[-inner]), *value));
    *value = before;
    for (int64_t k = count - 2; k >= 0; k--) {
        value -= inner;
        before = __dmul_rn(RESAMPLE_POLE, __dsub_rn(before, *value));
        *value = before;
    }
}

/* A place of a line whose samples are `inner` apart. */
__device__ __forceinline__ double
resample_evaluated(const struct resample_weights &weights, const double *line, int64_t inner)
{
    double sum = __dmul_rn(weights.weight[0], line[weights.at[0] * inner]);

#pragma unroll
    for (int i = 1; i < 4; i++)
        sum = __dadd_rn(sum, __dmul_rn(weights.weight[i], line[weights.at[i] * inner]));
    return sum;
}

/* The first axis, and slices turned back: mixed[(z * rows + y) * grid's columns + i]. */
__global__ void
resample_turn_back(struct resample_job job, const double *lines, double *mixed)
{
    __shared__ double tile[TURN][TURN + 1];
    const int64_t i0 = (int64_t)blockIdx.x * TURN;

    for (int64_t z = blockIdx.z; z < job.from.slices; z += gridDim.z)
        for (int64_t y0 = (int64_t)blockIdx.y * TURN; y0 < job.from.rows;
             y0 += (int64_t)gridDim.y * TURN) {
            const int64_t i = i0 + threadIdx.x, y = y0 + threadIdx.x;

            for (int column = threadIdx.y; column < TURN; column += TURN_ROWS)
                if (i0 + column < job.to.columns && y < job.from.rows)
                    tile[column][threadIdx.x] = resample_evaluated(
                        job.tables.weights[0][i0 + column],
                        lines + z * job.from.columns * job.from.rows + y, job.from.rows);
            __syncthreads();
            for (int row = threadIdx.y; row < TURN; row += TURN_ROWS)
                if (i < job.to.columns && y0 + row < job.from.rows)
                    mixed[(z * job.from.rows + y0 + row) * job.to.columns + i] =
                        tile[threadIdx.x][row];
            __syncthreads();
        }
}

/* The second axis: mixed[(z * grid's rows + j) * grid's columns + i]. */
__global__ void
__launch_bounds__(LINE_THREADS)
    resample_second(struct resample_job job, const double *lines, double *mixed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= job.to.columns)
        return;
    for (int64_t z = blockIdx.z; z < job.from.slices; z += gridDim.z)
        for (int64_t j = blockIdx.y; j < job.to.rows; j += gridDim.y)
            mixed[(z * job.to.rows + j) * job.to.columns + i] =
                resample_evaluated(job.tables.weights[1][j],
                                   lines + z * job.from.rows * job.to.columns + i, job.to.columns);
}

/* The third, as stored values. */
__global__ void
__launch_bounds__(LINE_THREADS) resample_third(struct resample_job job, const double *lines)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t slice = job.to.rows * job.to.columns;

    if (i >= job.to.columns)
        return;
    for (int64_t k = blockIdx.z; k < job.to.slices; k += gridDim.z)
        for (int64_t j = blockIdx.y; j < job.to.rows; j += gridDim.y) {
            const int64_t place = j * job.to.columns + i;

            resample_put(job, k * slice + place,
                         resample_stored(job, resample_evaluated(job.tables.weights[2][k],
                                                                 lines + place, slice)));
        }
}

/* ---- on the host ---- */

static bool
cuda_resample_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_resample *own = cuda_resample_state(lane);

    own->demand = *(const struct resample_demand *)demand;
    return resample_fits(lane, &own->demand);
}

static void
cuda_resample_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_resample *own = cuda_resample_state(lane);
    const struct image_extent *from = &lane->extent, *to = &own->demand.extent;
    const size_t voxels = (size_t)image_voxels(to), slices = (size_t)from->slices;
    const size_t turned = (size_t)image_slice_voxels(from), both = (size_t)image_slice_voxels(to);

    resample_place_tables(&memory->host, lane, &own->demand, &own->host);
    resample_place_tables(&memory->device, lane, &own->demand, &own->device);
    own->host_voxels = kernels_take(&memory->host, voxels, image_pixel_size(own->demand.pixel));
    own->voxels = kernels_take(&memory->device, voxels, image_pixel_size(own->demand.pixel));
    if (own->demand.order != RESAMPLE_CUBIC)
        return;
    /* The lines of the first axis, and where they were those of the third. */
    cuda_take(&memory->device, &own->lines, turned > both ? turned : both, slices);
    cuda_take(&memory->device, &own->mixed, (size_t)(from->rows * to->columns), slices);
}

static int
cuda_resample_send_tables(struct cuda_lane *lane, struct error *error)
{
    const struct cuda_resample *own = cuda_resample_state(&lane->base);
    const struct resample_tables *host = &own->host, *device = &own->device;

    for (int axis = 0; axis < 3; axis++) {
        const size_t size = resample_table_size(&lane->base, &own->demand, axis);

        if (own->demand.order == RESAMPLE_CUBIC)
            CUDA_SEND(lane, device->weights[axis], host->weights[axis], size);
        else
            CUDA_SEND(lane, device->taps[axis], host->taps[axis], size);
    }
    if (own->demand.order == RESAMPLE_CUBIC)
        CUDA_SEND(lane, device->starts, host->starts, 3);
    return 0;
}

static unsigned
resample_blocks(int64_t count, int64_t each)
{
    return (unsigned)((count + each - 1) / each);
}

static unsigned
resample_blocks_beside(int64_t count, int64_t each)
{
    const int64_t blocks = (count + each - 1) / each, most = SIDE_MOST;

    return (unsigned)(blocks < most ? blocks : most);
}

/* Rows of threads along x of the grid, over rows and slices. */
static dim3
resample_rows(const struct image_extent *to, int64_t slices)
{
    return dim3(resample_blocks(to->columns, LINE_THREADS), resample_blocks_beside(to->rows, 1),
                resample_blocks_beside(slices, 1));
}

static dim3
resample_tiles(int64_t columns, const struct image_extent *from)
{
    return dim3(resample_blocks(columns, TURN), resample_blocks_beside(from->rows, TURN),
                resample_blocks_beside(from->slices, 1));
}

/* One sample by itself is its own coefficient. */
static int
resample_filter_lines(struct cuda_lane *lane, int axis, int64_t outer, int64_t count, int64_t inner,
                      double *values, struct error *error)
{
    if (count == 1)
        return 0;
    resample_filter<<<resample_blocks(outer * inner, LINE_THREADS), LINE_THREADS, 0, lane->work>>>(
        cuda_resample_state(&lane->base)->device.starts + axis, outer, count, inner, values);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

template <typename Value>
static int
resample_cubic(struct cuda_lane *lane, const struct resample_job *job, struct error *error)
{
    const struct cuda_resample *own = cuda_resample_state(&lane->base);
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct image_extent *from = &job->from, *to = &job->to;
    const dim3 tile(TURN, TURN_ROWS);

    resample_turn_in<Value>
        <<<resample_tiles(from->columns, from), tile, 0, lane->work>>>(*job, own->lines);
    CUDA_LAUNCHED(device);
    int rc =
        resample_filter_lines(lane, 0, from->slices, from->columns, from->rows, own->lines, error);
    if (rc)
        return rc;
    resample_turn_back<<<resample_tiles(to->columns, from), tile, 0, lane->work>>>(*job, own->lines,
                                                                                   own->mixed);
    CUDA_LAUNCHED(device);
    rc = resample_filter_lines(lane, 1, from->slices, from->rows, to->columns, own->mixed, error);
    if (rc)
        return rc;
    resample_second<<<resample_rows(to, from->slices), LINE_THREADS, 0, lane->work>>>(
        *job, own->mixed, own->lines);
    CUDA_LAUNCHED(device);
    rc = resample_filter_lines(lane, 2, 1, from->slices, image_slice_voxels(to), own->lines, error);
    if (rc)
        return rc;
    resample_third<<<resample_rows(to, to->slices), LINE_THREADS, 0, lane->work>>>(*job,
                                                                                   own->lines);
    CUDA_LAUNCHED(device);
    return 0;
}

template <typename Value>
static int
resample_launch(struct cuda_lane *lane, const struct resample_job *job, struct error *error)
{
    if (cuda_resample_state(&lane->base)->demand.order == RESAMPLE_CUBIC)
        return resample_cubic<Value>(lane, job, error);
    resample_voxels<Value><<<resample_rows(&job->to, (job->to.slices - 1) / LINE_DEPTH + 1),
                             LINE_THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

static int
resample_queue(struct cuda_lane *lane, const struct resample_job *job, struct error *error)
{
    switch (lane->base.pixel) {
    case IMAGE_UINT8:
        return resample_launch<uint8_t>(lane, job, error);
    case IMAGE_INT16:
        return resample_launch<int16_t>(lane, job, error);
    case IMAGE_UINT16:
        break;
    }
    return resample_launch<uint16_t>(lane, job, error);
}

static int
cuda_resample_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct resample_run *run = (const struct resample_run *)given;
    const struct cuda_resample *own = cuda_resample_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    struct resample_job job = {};

    job.from = base->extent;
    job.to = own->demand.extent;
    job.tables = own->device;
    job.voxels = lane->device_voxels;
    job.resampled = own->voxels;
    job.bytes = own->demand.pixel == IMAGE_UINT8;
    job.range = image_pixel_range(own->demand.pixel);
    job.outside = run->request->outside;
    resample_fill_tables(run->request, &own->host);
    int rc = cuda_resample_send_tables(lane, error);
    if (!rc)
        rc = resample_queue(lane, &job, error);
    if (rc)
        return rc;
    CUDA_TRY(device,
             cudaMemcpyAsync(own->host_voxels, own->voxels,
                             (size_t)image_voxels(&job.to) * image_pixel_size(own->demand.pixel),
                             cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    *run->voxels = own->host_voxels;
    return 0;
}

const struct kernels_op cuda_resample_op = {
    .name = "resampling",
    .state_size = sizeof(struct cuda_resample),
    .needs = cuda_resample_needs,
    .place = cuda_resample_place,
    .run = cuda_resample_run,
};
