/*
 * peaks_march.cu - means of balls of few rows and slices on the GPU. A block has columns of voxels,
 * and moves along them slice by slice. It adds a slice's discs to their balls, which are in
 * registers.
 *
 * A disc consists of pairs of columns at equal distance from the middle, each with the rows up to
 * some distance from the middle: a span. Prefix sums of these columns from the block's first row
 * yield a span from its two ends.
 */
#include "kernels/peaks/peaks_cuda.cuh"

enum {
    MARCH_ROWS = 16,   /* per block; two per thread */
    MARCH_DOWN = 8,    /* distance of the second one from the first */
    MARCH_SLICES = 64, /* max per block */
    MARCH_FEW = 16,    /* min per block */
    /* max reach of a ball along columns and rows: half a span has up to 64 voxels */
    MARCH_REACH = 31,
    MARCH_VALUE_BITS = 22, /* bits of half a span's sum; the number of voxels is above */
    MARCH_SHALLOW = 7,     /* max slices of a ball on one side, limited by registers */
    MARCH_DEEP = 12,
    MARCH_SPANS = (MARCH_REACH + 1) * (MARCH_DEEP + 1),
    MARCH_VOXELS = UINT16_MAX, /* max per ball */
    MARCH_BLOCKS = 8,          /* per multiprocessor */
};

/* A pair of columns: byte offsets from a voxel's row to the two ends of its sums. */
struct march_span {
    uint32_t begin, end;
};

/* Range of stored values, relative to the smallest. */
struct march_codes {
    uint32_t first, count;

    __device__ __forceinline__ bool has(uint32_t code) const
    {
        return code - first < count;
    }
};

/* Returns the range of padding, empty if its end precedes its start. */
static __host__ __device__ __forceinline__ struct march_codes
march_codes_missing(const struct image_range padding, int32_t smallest)
{
    return {(uint32_t)(padding.lo - smallest), padding.lo <= padding.hi ? (uint32_t)(padding.hi - padding.lo) + 1 : 0};
}

struct peaks_march {
    struct peaks_job job;
    int32_t reach[3];
    int32_t first_column;            /* a multiple of 32 */
    int32_t pitch, slices;           /* of values in shared memory; per block */
    int32_t sums;                    /* bytes per pair of columns */
    uint16_t first[MARCH_DEEP + 2];  /* first span of each disc, beginning with the middle column */
    uint16_t same[MARCH_DEEP + 1];   /* first disc with the same spans */
    uint16_t voxels[MARCH_DEEP + 1]; /* of a whole disc */
    uint32_t ball_voxels;            /* of a whole ball */
    struct march_span spans[MARCH_SPANS];
    struct march_codes kept, largest, missing; /* if all slices share one rescale and padding */
    uint32_t flip;                             /* ~0: the rescale is decreasing */
};

/* A thread's two partial balls. Sums are of values with counts above them, which are removed at the
 * end. */
struct march_whole {
    uint32_t sum[2], voxels; /* the second one's above the first one's */
};

struct march_by_slice {
    double total[2];
    uint32_t voxels;
};

/* A thread's results. Of whole balls, the largest sum, if any. */
struct march_found {
    struct peaks_most most;
    uint32_t whole;
    bool any_whole;
};

static __device__ __forceinline__ uint32_t
march_voxels(uint32_t voxels, int i)
{
    return voxels >> 16 * i & UINT16_MAX;
}

static __device__ __forceinline__ double
march_real(const struct peaks_job &job, int64_t z, uint32_t values, uint32_t voxels)
{
    const struct image_rescale rescale = job.rescales[job.per_slice ? z : 0];
    const double stored = (double)((int64_t)values + (int64_t)voxels * job.smallest);

    return __dadd_rn(__dmul_rn(rescale.slope, stored), __dmul_rn(rescale.intercept, (double)voxels));
}

static __device__ __forceinline__ void
march_add(const struct peaks_job &, int64_t, const uint32_t (&sum)[2], uint32_t voxels, struct march_whole *balls)
{
    balls->sum[0] += sum[0];
    balls->sum[1] += sum[1];
    balls->voxels += voxels;
}

static __device__ __forceinline__ void
march_add(const struct peaks_job &job, int64_t z, const uint32_t (&sum)[2], uint32_t voxels,
          struct march_by_slice *balls)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t own = march_voxels(voxels, i), values = sum[i] - (own << MARCH_VALUE_BITS);

        balls->total[i] = __dadd_rn(balls->total[i], march_real(job, z, values, own));
    }
    balls->voxels += voxels;
}

static __device__ __forceinline__ double
march_mean(const struct peaks_job &job, uint32_t values, uint32_t voxels)
{
    const double total = march_real(job, 0, values, voxels);

    return __dadd_rn(__ddiv_rn(__dadd_rn(0.0, total), (double)voxels), 0.0); /* not -0 */
}

/*
 * One rescale for all slices is monotone, and so is rounding of a mean. Of balls with equal numbers
 * of voxels, the one with the largest sum has the largest mean (the smallest sum for a negative
 * slope). Means of the others are not needed.
 */
template <typename Value>
static __device__ __forceinline__ void
march_look(const struct peaks_march &march, const struct march_whole &balls, int i, int64_t x, int64_t y, int64_t z,
           struct march_found *found)
{
    const uint32_t code = peaks_value_at<Value>(march.job, x, y, z);
    const uint32_t voxels = march_voxels(balls.voxels, i);
    const uint32_t values = balls.sum[i] - (voxels << MARCH_VALUE_BITS);
    const bool is_whole = voxels == march.ball_voxels, is_largest = march.largest.has(code);

    if (march.missing.has(code) || !march.kept.has(code))
        return;
    found->most.balls++;
    if (is_whole) {
        found->whole = max(found->whole, values ^ march.flip);
        found->any_whole = true;
    }
    if (is_whole && !is_largest)
        return;
    const unsigned long long mean = peaks_ordered(march_mean(march.job, values, voxels));

    found->most.global = max(found->most.global, mean);
    if (is_largest)
        found->most.local = max(found->most.local, mean);
}

template <typename Value>
static __device__ __forceinline__ void
march_look(const struct peaks_march &march, const struct march_by_slice &balls, int i, int64_t x, int64_t y, int64_t z,
           struct march_found *found)
{
    peaks_look_around<Value>(
        march.job, x, y, z,
        [&] { return __dadd_rn(__ddiv_rn(balls.total[i], (double)march_voxels(balls.voxels, i)), 0.0); }, &found->most);
}

/* Bits of the region in a thread's two rows, 32 columns each. */
struct march_rows {
    const uint64_t *words[2]; /* in the volume's first slice */
    uint32_t columns[2];      /* in the box; 0 if the row is not */
    uint32_t shift;

    __device__ __forceinline__ march_rows(const struct peaks_job &job, int64_t column, int64_t y)
    {
        const int64_t before = job.box_first[0] - column;
        const int64_t end = job.box_first[0] + job.box_size[0] - column;
        const uint32_t inside =
            (before > 0 ? UINT32_MAX << before : UINT32_MAX) & (end < 32 ? (1u << end) - 1 : UINT32_MAX);

        shift = (uint32_t)column % 64;
        for (int i = 0; i < 2; i++, y += MARCH_DOWN) {
            columns[i] = y < job.box_first[1] + job.box_size[1] ? inside : 0;
            words[i] = job.volume.region + y * job.volume.words_per_row + column / 64;
        }
    }

    /* Returns the bits in a slice of the box. */
    __device__ __forceinline__ uint32_t bits(const struct peaks_job &job, int64_t z, int i) const
    {
        const int64_t words_per_slice = (int64_t)job.volume.rows * job.volume.words_per_row;

        return columns[i] && job.volume.region ? (uint32_t)(words[i][z * words_per_slice] >> shift) & columns[i]
                                               : columns[i];
    }
};

/* Loads the slice's values around the block's columns and rows. Returns whether all voxels exist
 * and have a value. */
template <typename Value>
static __device__ __forceinline__ bool
march_fill(const struct peaks_march &march, int64_t column, int64_t y, int64_t z, uint32_t *values)
{
    const struct glcm_volume &volume = march.job.volume;
    const struct march_codes missing =
        march.job.per_slice ? march_codes_missing(march.job.paddings[z], march.job.smallest) : march.missing;
    const int32_t rows = MARCH_ROWS + 2 * march.reach[1];
    const int32_t first = (int32_t)column - march.reach[0], top = (int32_t)y - march.reach[1];
    const Value *slice = (const Value *)volume.voxels + (size_t)z * volume.rows * volume.columns;
    bool whole = true;

    for (int32_t r = threadIdx.x / PEAKS_WARP; r < rows; r += PEAKS_THREADS / PEAKS_WARP) {
        const bool is_there = (uint32_t)(top + r) < volume.rows;
        const Value *row = slice + (int64_t)(top + r) * volume.columns + first;

        for (int32_t c = threadIdx.x % PEAKS_WARP; c < march.pitch; c += PEAKS_WARP) {
            uint32_t item = 0;

            if (is_there && (uint32_t)(first + c) < volume.columns) {
                const uint32_t code = (uint32_t)row[c] ^ volume.bias;

                item = missing.has(code) ? 0 : 1u << MARCH_VALUE_BITS | code;
            }
            whole &= item > 0;
            values[r * march.pitch + c] = item;
        }
    }
    return whole;
}

/* Computes prefix sums of each pair of columns from the first row on. */
static __device__ __forceinline__ void
march_sum(const struct peaks_march &march, const uint32_t *values, uint32_t *sums)
{
    const int32_t lane = threadIdx.x % PEAKS_WARP, rows = MARCH_ROWS + 2 * march.reach[1];

    for (int32_t away = threadIdx.x / PEAKS_WARP; away <= march.reach[0]; away += PEAKS_THREADS / PEAKS_WARP) {
        const uint32_t *before = values + march.reach[0] + lane - away, *after = before + 2 * away;
        uint32_t *to = sums + away * (rows + 1) * PEAKS_WARP + lane, sum = 0;

        *to = 0;
#pragma unroll 6
        for (int32_t r = 0; r < rows; r++) {
            sum += *before + (away > 0 ? *after : 0);
            to += PEAKS_WARP;
            *to = sum;
            before += march.pitch;
            after += march.pitch;
        }
    }
}

static __device__ __forceinline__ uint32_t
march_at(const char *here, uint32_t bytes)
{
    return *(const uint32_t *)(here + bytes);
}

/* Adds a disc around each of the thread's two voxels. If voxels may be missing, counts them per
 * half span: more do not fit above their values. */
template <bool WHOLE>
static __device__ __forceinline__ void
march_disc(const struct peaks_march &march, const char *here, int disc, uint32_t (&sum)[2], uint32_t *voxels)
{
    const char *below = here + MARCH_DOWN * PEAKS_WARP * sizeof(uint32_t);
    uint32_t middle = (march.reach[1] + 1) * PEAKS_WARP * (uint32_t)sizeof(uint32_t);

    sum[0] = sum[1] = 0;
    *voxels = WHOLE ? march.voxels[disc] << 16 | march.voxels[disc] : 0;
#pragma unroll 4
    for (int32_t i = march.first[disc]; i < march.first[disc + 1]; i++) {
        const struct march_span span = march.spans[i];

#pragma unroll
        for (int k = 0; k < 2; k++) {
            const char *at = k ? below : here;
            const uint32_t whole = march_at(at, span.end) - march_at(at, span.begin);

            sum[k] += whole;
            if constexpr (!WHOLE) {
                const uint32_t half = march_at(at, middle) - march_at(at, span.begin);

                *voxels += ((half >> MARCH_VALUE_BITS) + ((whole - half) >> MARCH_VALUE_BITS)) << 16 * k;
            }
        }
        middle += march.sums;
    }
}

/* Finds the slices where a warp's rows have voxels of the region: first > last if there are
 * none. */
static __device__ __forceinline__ void
march_find(const struct peaks_job &job, const struct march_rows &rows, int64_t first, int64_t end, int32_t ends[2])
{
    int32_t least = INT32_MAX, most = -1;

    for (int64_t z = first + threadIdx.x % PEAKS_WARP; z < end; z += PEAKS_WARP)
        if (rows.bits(job, z, 0) | rows.bits(job, z, 1)) {
            least = least < (int32_t)z ? least : (int32_t)z;
            most = (int32_t)z;
        }
    ends[0] = __reduce_min_sync(UINT32_MAX, least);
    ends[1] = __reduce_max_sync(UINT32_MAX, most);
}

/* Adds a slice's discs to the balls of the slices around it. Skips balls that lie outside the
 * warp's `ends`. */
template <bool WHOLE, size_t DEEP, typename Balls>
static __device__ __forceinline__ void
march_add_discs(const struct peaks_march &march, const char *here, int32_t z, const int32_t ends[2],
                Balls (&balls)[2 * DEEP + 1])
{
    uint32_t sum[2] = {}, voxels = 0, has = MARCH_DEEP + 1;

#pragma unroll
    for (size_t k = 0; k <= DEEP; k++) {
        const int32_t away = (int32_t)k;

        if (away > march.reach[2] ||
            !((ends[0] <= z - away && z - away <= ends[1]) || (ends[0] <= z + away && z + away <= ends[1])))
            continue;
        if (has != march.same[away])
            march_disc<WHOLE>(march, here, away, sum, &voxels);
        has = march.same[away];
        march_add(march.job, z, sum, voxels, &balls[DEEP - k]);
        if (k > 0)
            march_add(march.job, z, sum, voxels, &balls[DEEP + k]);
    }
}

/* Finishes the balls around slice z - reach, and advances all by one slice. */
template <typename Value, size_t DEEP, typename Balls>
static __device__ __forceinline__ void
march_on(const struct peaks_march &march, const struct march_rows &rows, int64_t column, int64_t y, int32_t z,
         const int32_t ends[2], Balls (&balls)[2 * DEEP + 1], struct march_found *found)
{
    const int32_t lane = threadIdx.x % PEAKS_WARP, center = z - march.reach[2];
    Balls ready = balls[DEEP];

#pragma unroll
    for (size_t k = 1; k <= DEEP; k++)
        if ((int32_t)k == march.reach[2])
            ready = balls[DEEP - k];
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (ends[0] <= center && center <= ends[1] && rows.bits(march.job, center, i) >> lane & 1)
            march_look<Value>(march, ready, i, column + lane, y + i * MARCH_DOWN, center, found);
#pragma unroll
    for (size_t k = 0; k < 2 * DEEP; k++)
        balls[k] = balls[k + 1];
    balls[2 * DEEP] = {};
}

/* Blocks per multiprocessor at a time, limited by registers. */
template <size_t DEEP, typename Balls> constexpr int march_at_once = 2;
template <> constexpr int march_at_once<MARCH_SHALLOW, march_whole> = 3;
template <> constexpr int march_at_once<MARCH_DEEP, march_by_slice> = 1;

template <typename Value, size_t DEEP, typename Balls>
static __global__ void
__launch_bounds__(PEAKS_THREADS, march_at_once<DEEP, Balls>)
    peaks_march_along(const __grid_constant__ struct peaks_march march)
{
    extern __shared__ uint32_t march_shared[];
    __shared__ int32_t march_ends[2];
    const struct peaks_job &job = march.job;
    const int32_t lane = threadIdx.x % PEAKS_WARP, warp = threadIdx.x / PEAKS_WARP, deep = march.reach[2];
    const int64_t column = march.first_column + (int64_t)blockIdx.x * PEAKS_WARP;
    const int64_t top = job.box_first[1] + (int64_t)blockIdx.y * MARCH_ROWS;
    const int64_t first = job.box_first[2] + (int64_t)blockIdx.z * march.slices;
    const int64_t box_end = job.box_first[2] + job.box_size[2];
    const int64_t end = first + march.slices < box_end ? first + march.slices : box_end;
    uint32_t *const sums = march_shared;
    uint32_t *const values = sums + march.sums / sizeof(*sums) * (march.reach[0] + 1);
    const char *here = (const char *)(sums + warp * PEAKS_WARP + lane);
    const struct march_rows rows(job, column, top + warp);
    Balls balls[2 * DEEP + 1] = {};
    struct march_found found = {};
    int32_t ends[2];

    if (threadIdx.x == 0) {
        march_ends[0] = INT32_MAX;
        march_ends[1] = -1;
    }
    __syncthreads();
    march_find(job, rows, first, end, ends);
    if (lane == 0 && ends[1] >= 0) {
        atomicMin(&march_ends[0], ends[0]);
        atomicMax(&march_ends[1], ends[1]);
    }
    __syncthreads();
    for (int32_t z = march_ends[0] - deep; march_ends[1] >= 0 && z <= march_ends[1] + deep; z++) {
        if (z >= 0 && z < job.volume.slices) {
            const bool whole = __syncthreads_and(march_fill<Value>(march, column, top, z, values));

            march_sum(march, values, sums);
            __syncthreads();
            if (ends[1] >= 0 && whole)
                march_add_discs<true, DEEP>(march, here, z, ends, balls);
            else if (ends[1] >= 0)
                march_add_discs<false, DEEP>(march, here, z, ends, balls);
        }
        march_on<Value, DEEP>(march, rows, column, top + warp, z, ends, balls, &found);
    }
    if (found.any_whole)
        found.most.global =
            max(found.most.global, peaks_ordered(march_mean(job, found.whole ^ march.flip, march.ball_voxels)));
    peaks_put(job, found.most);
}

/* ------------------------------------------------------------------------------ on the host ---- */

/* Returns how many codes precede the first whose value does not satisfy `before`, which must be
 * monotone. */
template <typename Before>
static uint32_t
march_codes_before(const struct peaks_job *job, const struct image_rescale *rescale, uint32_t codes,
                   const Before &before)
{
    uint32_t first = 0;

    while (first < codes) {
        const uint32_t half = first + (codes - first) / 2;
        const double scaled = rescale->slope * (double)((int32_t)half + job->smallest);

        if (before(scaled + rescale->intercept))
            first = half + 1;
        else
            codes = half;
    }
    return first;
}

/* Returns the codes of values between the two bounds. */
static struct march_codes
march_codes_of(const struct peaks_job *job, const struct image_rescale *rescale, uint32_t codes, double low,
               double high)
{
    const bool falls = rescale->slope < 0;
    const uint32_t first =
        march_codes_before(job, rescale, codes, [=](double value) { return falls ? value > high : value < low; });
    const uint32_t end =
        march_codes_before(job, rescale, codes, [=](double value) { return falls ? value >= low : value <= high; });

    return {first, end > first ? end - first : 0};
}

static void
march_add_disc(const struct peaks_ball *ball, int32_t z, struct peaks_march *march)
{
    const uint32_t row = PEAKS_WARP * sizeof(uint32_t), first = march->first[z];
    const uint32_t before = z > 0 ? march->first[z - 1] : 0; /* first span of the disc before */
    uint32_t count = 0;

    for (int32_t away = 0; away <= march->reach[0]; away++) {
        int32_t rows = -1; /* on one side, that are at least this wide */

        for (size_t r = 0; r < ball->row_count; r++)
            if (ball->rows[r].z == z && ball->rows[r].reach >= away)
                rows = max(rows, ball->rows[r].y);
        if (rows < 0)
            break;
        const uint32_t begin = (uint32_t)(away * march->sums) + (uint32_t)(march->reach[1] - rows) * row;

        march->spans[first + count++] = {begin, begin + (uint32_t)(2 * rows + 1) * row};
        march->voxels[z] += (uint16_t)((2 * rows + 1) * (away > 0 ? 2 : 1));
    }
    march->first[z + 1] = (uint16_t)(first + count);
    march->same[z] = (uint16_t)z;
    if (z > 0 && count == first - before &&
        memcmp(march->spans + before, march->spans + first, count * sizeof(*march->spans)) == 0)
        march->same[z] = march->same[z - 1];
    march->ball_voxels += (z > 0 ? 2u : 1u) * march->voxels[z];
}

static size_t
march_shared_bytes(const struct peaks_march *march)
{
    const size_t rows = MARCH_ROWS + 2 * (size_t)march->reach[1];

    return (size_t)march->sums * (size_t)(march->reach[0] + 1) + rows * (size_t)march->pitch * sizeof(uint32_t);
}

/* Blocks get fewer slices while there are too few blocks for the device. */
static dim3
march_blocks(const struct cuda_lane *lane, struct peaks_march *march)
{
    const struct peaks_job *job = &march->job;
    dim3 blocks;

    march->slices = MARCH_SLICES;
    blocks.x = (unsigned)((job->box_first[0] + job->box_size[0] - march->first_column + PEAKS_WARP - 1) / PEAKS_WARP);
    blocks.y = (unsigned)((job->box_size[1] + MARCH_ROWS - 1) / MARCH_ROWS);
    while (march->slices > MARCH_FEW && blocks.x * blocks.y * (job->box_size[2] / march->slices + 1) <
                                            MARCH_BLOCKS * cuda_device_of(&lane->base)->multiprocessors)
        march->slices /= 2;
    blocks.z = (unsigned)((job->box_size[2] + march->slices - 1) / march->slices);
    return blocks;
}

/* Returns whether this file can compute the request: its ball has few rows and slices, and few
 * enough voxels to count. */
static bool
march_make(const struct cuda_lane *lane, const struct peaks_request *request, const struct peaks_job *job,
           struct peaks_march *march)
{
    const struct peaks_ball *ball = request->ball;
    const struct image_rescale *rescale = request->peaks->rescales;
    const uint32_t codes = lane->base.pixel == IMAGE_UINT8 ? 1u << 8 : 1u << 16;
    uint64_t voxels = 0;

    march->job = *job;
    for (int axis = 0; axis < 3; axis++)
        march->reach[axis] = (int32_t)ball->reach[axis];
    march->first_column = (int32_t)(job->box_first[0] / PEAKS_WARP * PEAKS_WARP);
    march->pitch = PEAKS_WARP + 2 * march->reach[0];
    march->sums = (MARCH_ROWS + 2 * march->reach[1] + 1) * PEAKS_WARP * (int32_t)sizeof(uint32_t);
    for (size_t r = 0; r < ball->row_count; r++)
        voxels += 2 * (uint64_t)ball->rows[r].reach + 1;
    if (ball->reach[0] > MARCH_REACH || ball->reach[1] > MARCH_REACH || ball->reach[2] > MARCH_DEEP ||
        voxels > MARCH_VOXELS ||
        march_shared_bytes(march) + sizeof(int32_t[2]) > cuda_device_of(&lane->base)->shared_per_block)
        return false;
    for (int32_t z = 0; z <= march->reach[2]; z++)
        march_add_disc(ball, z, march);
    march->kept = march_codes_of(job, rescale, codes, job->kept[0], job->kept[1]);
    march->largest = march_codes_of(job, rescale, codes, job->largest, job->largest);
    march->missing = march_codes_missing(*request->peaks->paddings, job->smallest);
    march->flip = rescale->slope < 0 ? UINT32_MAX : 0;
    return true;
}

template <typename Value, size_t DEEP, typename Balls>
static int
march_launch_as(const struct cuda_lane *lane, const struct peaks_march *march, dim3 blocks, struct error *error)
{
    const size_t shared = march_shared_bytes(march);

    CUDA_TRY(cuda_device_of(&lane->base),
             cudaFuncSetAttribute(peaks_march_along<Value, DEEP, Balls>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)shared));
    peaks_march_along<Value, DEEP, Balls><<<blocks, PEAKS_THREADS, shared, lane->work>>>(*march);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

template <typename Value>
static int
march_launch(const struct cuda_lane *lane, const struct peaks_march *march, dim3 blocks, struct error *error)
{
    const bool shallow = march->reach[2] <= MARCH_SHALLOW;

    if (march->job.per_slice)
        return shallow ? march_launch_as<Value, MARCH_SHALLOW, march_by_slice>(lane, march, blocks, error)
                       : march_launch_as<Value, MARCH_DEEP, march_by_slice>(lane, march, blocks, error);
    return shallow ? march_launch_as<Value, MARCH_SHALLOW, march_whole>(lane, march, blocks, error)
                   : march_launch_as<Value, MARCH_DEEP, march_whole>(lane, march, blocks, error);
}

int
cuda_peaks_march(const struct cuda_lane *lane, const struct peaks_request *request, const struct peaks_job *job,
                 bool *done, struct error *error)
{
    struct peaks_march march = {};

    *done = march_make(lane, request, job, &march);
    if (!*done)
        return 0;
    const dim3 blocks = march_blocks(lane, &march);

    return lane->base.pixel == IMAGE_UINT8 ? march_launch<uint8_t>(lane, &march, blocks, error)
                                           : march_launch<uint16_t>(lane, &march, blocks, error);
}
