/*
 * peaks_cuda.cu - means of balls on the GPU. A warp computes prefix sums of a row. A thread adds
 * the differences for a ball's rows, which all threads read in the same order. Most images use
 * peaks_march.cu instead.
 */
#include "kernels/peaks/peaks_cuda.cuh"

enum { PEAKS_BLOCKS = 4096 };

struct cuda_peaks {
    struct cuda_counted counted;
    uint64_t *sums;
    struct peaks_row *rows;
    struct image_rescale *rescales; /* room for one per slice */
    struct image_range *paddings;
};

static struct cuda_peaks *
cuda_peaks_state(const struct kernels_lane *lane)
{
    return (struct cuda_peaks *)kernels_state(lane, KERNELS_PEAKS);
}

static __device__ __forceinline__ uint64_t *
cuda_peaks_sums(const struct peaks_job &job, int64_t y, int64_t z)
{
    return job.sums + ((z - job.first[2]) * job.size[1] + y - job.first[1]) * (job.size[0] + 1);
}

template <typename Value>
static __global__ void
__launch_bounds__(PEAKS_THREADS) peaks_sum_rows(struct peaks_job job)
{
    const uint32_t in_warp = threadIdx.x % PEAKS_WARP;
    const int64_t warps = (int64_t)gridDim.x * (PEAKS_THREADS / PEAKS_WARP);

    for (int64_t row = (int64_t)blockIdx.x * (PEAKS_THREADS / PEAKS_WARP) + threadIdx.x / PEAKS_WARP;
         row < job.size[1] * job.size[2]; row += warps) {
        const int64_t y = job.first[1] + row % job.size[1], z = job.first[2] + row / job.size[1];
        uint64_t *sums = cuda_peaks_sums(job, y, z), before = 0;

        if (in_warp == 0)
            sums[0] = 0;
        for (int64_t begin = 0; begin < job.size[0]; begin += PEAKS_WARP) {
            const int64_t x = begin + in_warp;
            const uint32_t value = x < job.size[0] ? peaks_value_at<Value>(job, job.first[0] + x, y, z) : 0;
            uint64_t sum = x < job.size[0] && peaks_has_value(job, z, value) ? peaks_item(value) : 0;

            for (uint32_t step = 1; step < PEAKS_WARP; step *= 2) {
                const uint64_t other = __shfl_up_sync(UINT32_MAX, sum, step);

                sum += in_warp >= step ? other : 0;
            }
            sum += before;
            if (x < job.size[0])
                sums[x + 1] = sum;
            before = __shfl_sync(UINT32_MAX, sum, PEAKS_WARP - 1);
        }
    }
}

/* Sum over slices with one rescale, the real-world values of previous slices, and the number of
 * voxels. */
struct peaks_sum {
    uint64_t sum;
    double total;
    uint64_t voxels;
};

/* Uses the CPU's order and operations, without fusing. */
static __device__ __forceinline__ void
cuda_peaks_flush(const struct peaks_job &job, int64_t z, struct peaks_sum *ball)
{
    const struct image_rescale rescale = job.rescales[job.per_slice ? z : 0];
    const uint64_t voxels = peaks_voxels(ball->sum);

    ball->total = __dadd_rn(ball->total, __dadd_rn(__dmul_rn(rescale.slope, peaks_stored(ball->sum, job.smallest)),
                                                   __dmul_rn(rescale.intercept, (double)voxels)));
    ball->voxels += voxels;
    ball->sum = 0;
}

static __device__ double
peaks_mean_around(const struct peaks_job &job, int64_t x, int64_t y, int64_t z)
{
    struct peaks_sum ball = {0, 0, 0};
    int64_t slice = -1;

    x -= job.first[0];
    for (uint32_t r = 0; r < job.row_count; r++) {
        const struct peaks_row row = job.rows[r];
        const int64_t other = y + row.y, deep = z + row.z;

        if (other < job.first[1] || other >= job.first[1] + job.size[1] || deep < job.first[2] ||
            deep >= job.first[2] + job.size[2])
            continue;
        if (job.per_slice && slice >= 0 && deep != slice)
            cuda_peaks_flush(job, slice, &ball);
        slice = deep;
        const uint64_t *sums = cuda_peaks_sums(job, other, deep);
        const int64_t end = x + row.reach + 1 < job.size[0] ? x + row.reach + 1 : job.size[0];

        ball.sum += sums[end] - sums[x > row.reach ? x - row.reach : 0];
    }
    cuda_peaks_flush(job, slice, &ball);
    return __dadd_rn(__ddiv_rn(ball.total, (double)ball.voxels), 0.0); /* not -0 */
}

template <typename Value>
static __global__ void
__launch_bounds__(PEAKS_THREADS) peaks_look_at_voxels(struct peaks_job job)
{
    const int64_t columns = job.box_size[0], rows = job.box_size[1];
    const int64_t voxels = columns * rows * job.box_size[2];
    struct peaks_most most = {0, 0, 0};

    for (int64_t i = (int64_t)blockIdx.x * PEAKS_THREADS + threadIdx.x; i < voxels;
         i += (int64_t)gridDim.x * PEAKS_THREADS) {
        const int64_t x = job.box_first[0] + i % columns;
        const int64_t y = job.box_first[1] + i / columns % rows;
        const int64_t z = job.box_first[2] + i / columns / rows;

        if (texture_in_region(job.volume.region, (size_t)(z * job.volume.rows + y), job.volume.words_per_row,
                              (uint32_t)x))
            peaks_look_around<Value>(
                job, x, y, z, [&] { return peaks_mean_around(job, x, y, z); }, &most);
    }
    peaks_put(job, most);
}

static void
cuda_peaks_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_peaks *own = cuda_peaks_state(lane);
    const struct image_extent *extent = &lane->extent;

    cuda_counted_place(lane, memory, &own->counted);
    cuda_take(&memory->device, &own->sums, (size_t)(extent->columns + 1) * (size_t)(extent->rows * extent->slices));
    cuda_take(&memory->device, &own->rows, PEAKS_MAX_ROWS);
    cuda_take(&memory->device, &own->rescales, (size_t)extent->slices);
    cuda_take(&memory->device, &own->paddings, (size_t)extent->slices);
}

/* Sends the job's inputs. */
static int
peaks_send(struct cuda_lane *lane, const struct peaks_request *request, struct peaks_job *job, struct error *error)
{
    const struct cuda_peaks *own = cuda_peaks_state(&lane->base);
    const struct peaks *peaks = request->peaks;
    const int rc = cuda_await_slices(lane, job->first[2], job->first[2] + job->size[2], error);

    if (rc)
        return rc;
    CUDA_SEND(lane, own->rows, request->ball->rows, request->ball->row_count);
    CUDA_SEND(lane, own->rescales, peaks->rescales, peaks->table_count);
    CUDA_SEND(lane, own->paddings, peaks->paddings, peaks->table_count);
    CUDA_TRY(cuda_device_of(&lane->base),
             cudaMemsetAsync(own->counted.counts, 0, PEAKS_NUMBERS * sizeof(uint64_t), lane->work));
    return cuda_counted_region(lane, &own->counted, peaks->region, &job->volume.region, error);
}

template <typename Value>
static int
peaks_launch(struct cuda_lane *lane, const struct peaks_job *job, struct error *error)
{
    peaks_sum_rows<Value><<<PEAKS_BLOCKS, PEAKS_THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    peaks_look_at_voxels<Value><<<PEAKS_BLOCKS, PEAKS_THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

/* Fetches the results. Converts means back from peaks_ordered. */
static int
peaks_fetch(struct cuda_lane *lane, struct peaks_found *found, struct error *error)
{
    const struct cuda_peaks *own = cuda_peaks_state(&lane->base);
    double *const means[] = {&found->local, &found->global}; /* PEAKS_LOCAL, PEAKS_GLOBAL */
    uint64_t numbers[PEAKS_NUMBERS];
    const int rc = cuda_counted_fetch(lane, &own->counted, PEAKS_NUMBERS, numbers, true, error);

    if (rc)
        return rc;
    found->balls = numbers[PEAKS_BALLS];
    for (int i = PEAKS_LOCAL; i <= PEAKS_GLOBAL; i++) {
        const uint64_t bits = numbers[i] >> 63 ? numbers[i] & ~(UINT64_C(1) << 63) : ~numbers[i];

        if (numbers[i] > 0)
            memcpy(means[i], &bits, sizeof(*means[i]));
    }
    return 0;
}

static int
cuda_peaks_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct peaks_request *request = (const struct peaks_request *)given;
    const struct cuda_peaks *own = cuda_peaks_state(base);
    const int64_t sides[3] = {base->extent.columns, base->extent.rows, base->extent.slices};
    struct cuda_lane *lane = cuda_lane_of(base);
    struct peaks_job job = {};
    struct texture_box box;
    bool done;
    int rc;

    texture_region_box(base, request->peaks->region, &box);
    if (box.size[0] == 0)
        return 0;
    job.volume = cuda_texture_volume(lane);
    for (int axis = 0; axis < 3; axis++) {
        const int64_t first = box.first[axis] - request->ball->reach[axis];
        const int64_t end = box.first[axis] + box.size[axis] + request->ball->reach[axis];

        job.box_first[axis] = box.first[axis];
        job.box_size[axis] = box.size[axis];
        job.first[axis] = first > 0 ? first : 0;
        job.size[axis] = (end < sides[axis] ? end : sides[axis]) - job.first[axis];
    }
    job.sums = own->sums;
    job.rows = own->rows;
    job.row_count = (uint32_t)request->ball->row_count;
    job.rescales = own->rescales;
    job.paddings = own->paddings;
    job.per_slice = request->peaks->table_count > 1;
    job.smallest = image_pixel_range(base->pixel).lo;
    memcpy(job.kept, request->peaks->kept, sizeof(job.kept));
    job.largest = request->peaks->largest;
    job.found = own->counted.counts;
    rc = peaks_send(lane, request, &job, error);
    if (rc == 0)
        rc = cuda_peaks_march(lane, request, &job, &done, error);
    if (rc == 0 && !done)
        rc = base->pixel == IMAGE_UINT8 ? peaks_launch<uint8_t>(lane, &job, error)
                                        : peaks_launch<uint16_t>(lane, &job, error);
    return rc ? rc : peaks_fetch(lane, request->found, error);
}

const struct kernels_op cuda_peaks_op = {
    .name = "local intensity",
    .state_size = sizeof(struct cuda_peaks),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_peaks_place,
    .run = cuda_peaks_run,
};
