/*
 * peaks_march.cu - means of balls of few rows and slices on the GPU. A block has columns of voxels, and goes along
 * them slice by slice. A slice's rows are summed up in shared memory, and its discs are added to the balls that they
 * are of, which are on their way in registers.
 */
#include "kernels/peaks/peaks_cuda.cuh"

enum {
    MARCH_ROWS = 16,       /* of a block; a thread has two of them */
    MARCH_DOWN = 8,        /* the second one so far behind the first */
    MARCH_SLICES = 64,     /* of a block at most */
    MARCH_FEW = 16,        /* and at least */
    MARCH_WIDTH = 64,      /* sums of a row, of up to 63 voxels */
    MARCH_VALUE_BITS = 22, /* of such a sum; above is how many they are */
    MARCH_DISCS = 512,     /* rows of discs that there is room for */
    MARCH_SHARED = 48 << 10,
    MARCH_SHALLOW = 7, /* slices of a ball on one side: what registers are there for */
    MARCH_DEEP = 12,
    MARCH_BLOCKS = 8, /* a multiprocessor */
};

struct peaks_march {
    struct peaks_job job;
    int32_t reach[3];
    int32_t first_column;            /* a multiple of 32 */
    int32_t pitch, slices;           /* of the sums in shared memory; of a block */
    uint16_t first[MARCH_DEEP + 2];  /* of a disc's rows */
    uint16_t voxels[MARCH_DEEP + 1]; /* of a whole disc */
    uint32_t rows
        [MARCH_DISCS]; /* bytes from a voxel's row and column without reach to the end of a row of
                                   its disc, over those to the beginning */
};

/* A ball on its way. */
struct march_whole {
    uint32_t sum, voxels;
};

struct march_by_slice {
    double total;
    uint32_t voxels;
};

static __device__ __forceinline__ double
march_real(const struct peaks_job &job, int64_t z, uint32_t sum, uint32_t voxels)
{
    const struct image_rescale rescale = job.rescales[job.per_slice ? z : 0];
    const double stored = (double)((int64_t)sum + (int64_t)voxels * job.smallest);

    return __dadd_rn(__dmul_rn(rescale.slope, stored),
                     __dmul_rn(rescale.intercept, (double)voxels));
}

static __device__ __forceinline__ void
march_add(const struct peaks_job &, int64_t, uint32_t sum, uint32_t voxels,
          struct march_whole *ball)
{
    ball->sum += sum;
    ball->voxels += voxels;
}

static __device__ __forceinline__ void
march_add(const struct peaks_job &job, int64_t z, uint32_t sum, uint32_t voxels,
          struct march_by_slice *ball)
{
    ball->total = __dadd_rn(ball->total, march_real(job, z, sum, voxels));
    ball->voxels += voxels;
}

static __device__ __forceinline__ double
march_mean(const struct peaks_job &job, const struct march_whole &ball)
{
    const double total = march_real(job, 0, ball.sum, ball.voxels);

    return __dadd_rn(__ddiv_rn(__dadd_rn(0.0, total), (double)ball.voxels), 0.0); /* not -0 */
}

static __device__ __forceinline__ double
march_mean(const struct peaks_job &, const struct march_by_slice &ball)
{
    return __dadd_rn(__ddiv_rn(ball.total, (double)ball.voxels), 0.0);
}

/* Of the region, 32 columns of a row in the box: a bit each. */
static __device__ __forceinline__ uint32_t
march_region(const struct peaks_job &job, int64_t column, int64_t y, int64_t z)
{
    const int64_t before = job.box_first[0] - column;
    const int64_t end = job.box_first[0] + job.box_size[0] - column;
    uint32_t bits = UINT32_MAX;

    if (y >= job.box_first[1] + job.box_size[1] || z >= job.box_first[2] + job.box_size[2] ||
        end <= 0)
        return 0;
    if (job.volume.region)
        bits = (uint32_t)(job.volume.region[(z * job.volume.rows + y) * job.volume.words_per_row +
                                            column / 64] >>
                          column % 64);
    bits &= before > 0 ? UINT32_MAX << before : UINT32_MAX;
    return end < 32 ? bits & ((1u << end) - 1) : bits;
}

/* Sums of the slice's rows from their beginning on; whether all voxels are there and have a value. */
template <typename Value>
static __device__ __forceinline__ bool
march_fill(const struct peaks_march &march, int64_t column, int64_t y, int64_t z, uint32_t *sums)
{
    const struct peaks_job &job = march.job;
    const int32_t lane = threadIdx.x % PEAKS_WARP, rows = MARCH_ROWS + 2 * march.reach[1];
    bool whole = true;

    for (int32_t r = threadIdx.x / PEAKS_WARP; r < rows; r += PEAKS_THREADS / PEAKS_WARP) {
        const int64_t row = y - march.reach[1] + r;
        uint32_t before = 0;

        for (int32_t begin = 0; begin < march.pitch; begin += PEAKS_WARP) {
            const int64_t x = column - march.reach[0] + begin + lane;
            uint32_t sum = 0;

            if (row >= 0 && row < job.volume.rows && x >= 0 && x < job.volume.columns) {
                const uint32_t value = peaks_value_at<Value>(job, x, row, z);

                sum = peaks_has_value(job, z, value) ? 1u << MARCH_VALUE_BITS | value : 0;
            }
            whole &= sum > 0 || begin + lane >= march.pitch - 1;
            const uint32_t own = sum;

            for (int32_t step = 1; step < PEAKS_WARP; step *= 2) {
                const uint32_t other = __shfl_up_sync(UINT32_MAX, sum, step);

                sum += lane >= step ? other : 0;
            }
            if (begin + lane < march.pitch)
                sums[r * march.pitch + begin + lane] = before + sum - own;
            before += __shfl_sync(UINT32_MAX, sum, PEAKS_WARP - 1);
        }
    }
    return whole;
}

/* Adds up a disc around each of the thread's two voxels. Sums run over into the number of voxels, which is
 * then taken away. */
template <bool WHOLE>
static __device__ __forceinline__ void
march_disc(const struct peaks_march &march, const uint32_t *sums, int disc, uint32_t sum[2],
           uint32_t voxels[2])
{
    const char *here = (const char *)sums, *below = here + 4 * MARCH_DOWN * march.pitch;

    sum[0] = sum[1] = 0;
    voxels[0] = voxels[1] = WHOLE ? march.voxels[disc] : 0;
#pragma unroll 4
    for (int32_t i = march.first[disc]; i < march.first[disc + 1]; i++) {
        const uint32_t end = march.rows[i] >> 16, begin = march.rows[i] & 0xFFFF;
        const uint32_t one = *(const uint32_t *)(here + end) - *(const uint32_t *)(here + begin);
        const uint32_t two = *(const uint32_t *)(below + end) - *(const uint32_t *)(below + begin);

        sum[0] += one;
        sum[1] += two;
        if (!WHOLE) {
            voxels[0] += one >> MARCH_VALUE_BITS;
            voxels[1] += two >> MARCH_VALUE_BITS;
        }
    }
    for (int i = 0; i < 2; i++)
        sum[i] -= voxels[i] << MARCH_VALUE_BITS;
}

/* The slices where a warp's rows have voxels of the region: first > last where none has. */
static __device__ __forceinline__ void
march_find(const struct peaks_job &job, int64_t column, int64_t y, int64_t first, int64_t end,
           int32_t ends[2])
{
    int32_t least = INT32_MAX, most = -1;

    for (int64_t z = first + threadIdx.x % PEAKS_WARP; z < end; z += PEAKS_WARP)
        if (march_region(job, column, y, z) | march_region(job, column, y + MARCH_DOWN, z)) {
            least = least < (int32_t)z ? least : (int32_t)z;
            most = (int32_t)z;
        }
    ends[0] = __reduce_min_sync(UINT32_MAX, least);
    ends[1] = __reduce_max_sync(UINT32_MAX, most);
}

/* A slice's discs for the balls of the slices around it; those of a warp's ends are asked for. */
template <bool WHOLE, size_t DEEP, typename Ball>
static __device__ __forceinline__ void
march_add_discs(const struct peaks_march &march, const uint32_t *sums, int32_t z,
                const int32_t ends[2], Ball (&balls)[2][2 * DEEP + 1])
{
#pragma unroll
    for (size_t k = 0; k <= DEEP; k++) {
        const int32_t away = (int32_t)k;
        uint32_t sum[2], voxels[2];

        if (away > march.reach[2] || !((ends[0] <= z - away && z - away <= ends[1]) ||
                                       (ends[0] <= z + away && z + away <= ends[1])))
            continue;
        march_disc<WHOLE>(march, sums, away, sum, voxels);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            march_add(march.job, z, sum[i], voxels[i], &balls[i][DEEP - k]);
            if (k > 0)
                march_add(march.job, z, sum[i], voxels[i], &balls[i][DEEP + k]);
        }
    }
}

/* The balls around slice z - reach are whole; all move on by one slice. */
template <typename Value, size_t DEEP, typename Ball>
static __device__ __forceinline__ void
march_on(const struct peaks_march &march, int64_t column, int64_t y, int32_t z,
         const int32_t ends[2], Ball (&balls)[2][2 * DEEP + 1], struct peaks_most *found)
{
    const int32_t lane = threadIdx.x % PEAKS_WARP, whole = z - march.reach[2];

#pragma unroll
    for (int i = 0; i < 2; i++) {
        Ball ball = balls[i][DEEP];

#pragma unroll
        for (size_t k = 1; k <= DEEP; k++)
            if ((int32_t)k == march.reach[2])
                ball = balls[i][DEEP - k];
        if (ends[0] <= whole && whole <= ends[1] &&
            march_region(march.job, column, y + i * MARCH_DOWN, whole) >> lane & 1)
            peaks_look_around<Value>(
                march.job, column + lane, y + i * MARCH_DOWN, whole,
                [&] { return march_mean(march.job, ball); }, found);
#pragma unroll
        for (size_t k = 0; k < 2 * DEEP; k++)
            balls[i][k] = balls[i][k + 1];
        balls[i][2 * DEEP] = {};
    }
}

template <typename Value, size_t DEEP, typename Ball>
static __global__ void
__launch_bounds__(PEAKS_THREADS) peaks_march_along(const __grid_constant__ struct peaks_march march)
{
    extern __shared__ uint32_t march_sums[];
    __shared__ int32_t march_ends[2];
    const struct peaks_job &job = march.job;
    const int32_t lane = threadIdx.x % PEAKS_WARP, warp = threadIdx.x / PEAKS_WARP,
                  deep = march.reach[2];
    const int64_t column = march.first_column + (int64_t)blockIdx.x * PEAKS_WARP;
    const int64_t top = job.box_first[1] + (int64_t)blockIdx.y * MARCH_ROWS;
    const int64_t first = job.box_first[2] + (int64_t)blockIdx.z * march.slices;
    const int64_t box_end = job.box_first[2] + job.box_size[2];
    const int64_t end = first + march.slices < box_end ? first + march.slices : box_end;
    const uint32_t *sums = march_sums + warp * march.pitch + lane;
    Ball balls[2][2 * DEEP + 1] = {};
    struct peaks_most found = {0, 0, 0};
    int32_t ends[2];

    if (threadIdx.x == 0) {
        march_ends[0] = INT32_MAX;
        march_ends[1] = -1;
    }
    __syncthreads();
    march_find(job, column, top + warp, first, end, ends);
    if (lane == 0 && ends[1] >= 0) {
        atomicMin(&march_ends[0], ends[0]);
        atomicMax(&march_ends[1], ends[1]);
    }
    __syncthreads();
    for (int32_t z = march_ends[0] - deep; march_ends[1] >= 0 && z <= march_ends[1] + deep; z++) {
        if (z >= 0 && z < job.volume.slices) {
            const bool whole =
                __syncthreads_and(march_fill<Value>(march, column, top, z, march_sums));

            if (ends[1] >= 0 && whole)
                march_add_discs<true, DEEP>(march, sums, z, ends, balls);
            else if (ends[1] >= 0)
                march_add_discs<false, DEEP>(march, sums, z, ends, balls);
            __syncthreads();
        }
        march_on<Value, DEEP>(march, column, top + warp, z, ends, balls, &found);
    }
    peaks_put(job, found);
}

/* Whether the balls are of so few rows and slices; blocks are for all slices, if these are not too few. */
static bool
march_make(const struct cuda_lane *lane, const struct peaks_ball *ball, const struct peaks_job *job,
           struct peaks_march *march, dim3 *blocks)
{
    const size_t center = 4 * (size_t)ball->reach[0],
                 width = 4 * (PEAKS_WARP + 2 * (size_t)ball->reach[0] + 1);
    uint32_t count = 0;

    if (ball->reach[2] > MARCH_DEEP || width > 4 * MARCH_WIDTH ||
        width * (MARCH_ROWS + 2 * (size_t)ball->reach[1]) > MARCH_SHARED)
        return false;
    for (size_t r = 0; r < ball->row_count; r++) {
        const struct peaks_row row = ball->rows[r];
        const size_t middle = (size_t)(row.y + ball->reach[1]) * width + center;

        if (row.z < 0)
            continue;
        if (count == MARCH_DISCS)
            return false;
        march->rows[count++] = (uint32_t)(middle + 4 * (size_t)(row.reach + 1)) << 16 |
                               (uint32_t)(middle - 4 * (size_t)row.reach);
        march->first[row.z + 1] = (uint16_t)count;
        march->voxels[row.z] += (uint16_t)(2 * row.reach + 1);
    }
    march->job = *job;
    for (int axis = 0; axis < 3; axis++)
        march->reach[axis] = (int32_t)ball->reach[axis];
    march->first_column = (int32_t)(job->box_first[0] / PEAKS_WARP * PEAKS_WARP);
    march->pitch = (int32_t)width / 4;
    march->slices = MARCH_SLICES;
    blocks->x =
        (unsigned)((job->box_first[0] + job->box_size[0] - march->first_column + PEAKS_WARP - 1) /
                   PEAKS_WARP);
    blocks->y = (unsigned)((job->box_size[1] + MARCH_ROWS - 1) / MARCH_ROWS);
    while (march->slices > MARCH_FEW &&
           blocks->x * blocks->y * (job->box_size[2] / march->slices + 1) <
               MARCH_BLOCKS * cuda_device_of(&lane->base)->multiprocessors)
        march->slices /= 2;
    blocks->z = (unsigned)((job->box_size[2] + march->slices - 1) / march->slices);
    return true;
}

template <typename Value, typename Ball>
static void
march_launch(const struct cuda_lane *lane, const struct peaks_march *march, dim3 blocks)
{
    const size_t shared =
        sizeof(uint32_t) * (size_t)(march->pitch * (MARCH_ROWS + 2 * march->reach[1]));

    if (march->reach[2] <= MARCH_SHALLOW)
        peaks_march_along<Value, MARCH_SHALLOW, Ball>
            <<<blocks, PEAKS_THREADS, shared, lane->work>>>(*march);
    else
        peaks_march_along<Value, MARCH_DEEP, Ball>
            <<<blocks, PEAKS_THREADS, shared, lane->work>>>(*march);
}

template <typename Value>
static void
march_launch_of(const struct cuda_lane *lane, const struct peaks_march *march, dim3 blocks)
{
    if (march->job.per_slice)
        march_launch<Value, march_by_slice>(lane, march, blocks);
    else
        march_launch<Value, march_whole>(lane, march, blocks);
}

bool
cuda_peaks_march(const struct cuda_lane *lane, const struct peaks_ball *ball,
                 const struct peaks_job *job)
{
    struct peaks_march march = {};
    dim3 blocks;

    if (!march_make(lane, ball, job, &march, &blocks))
        return false;
    if (lane->base.pixel == IMAGE_UINT8)
        march_launch_of<uint8_t>(lane, &march, blocks);
    else
        march_launch_of<uint16_t>(lane, &march, blocks);
    return true;
}
