/*
 * patterns_cuda.cu - LBP, TLBAP and LANADP (paper 004) on the GPU, all three in one pass.
 *
 * Arithmetic limits it, so bytes are worked on in pairs. A thread goes down four columns and keeps
 * three rows in registers; four voxels of a row are two words of two 16-bit numbers, even ones and
 * odd ones. As half-precision floats those numbers are subnormal, n * 2^-24, on which addition and
 * subtraction are exact up to 2047, and what is wanted of a difference is its sign. LANADP's bit is
 * not set where the differences of the two averages from the neighbour have opposite signs: where
 * their product is negative. It underflows to 0, but to -0; and a product of 0 is +0 since +0 is
 * added to it (IEEE 754, 6.3). A byte permutation spreads the signs of four voxels over bytes.
 *
 * Rows whose length is no multiple of 4 and 16-bit voxels are worked on one voxel a thread.
 *
 * Maps on the device have rows as long as the image's, padded to words, with the code of voxel x
 * at x; the padding goes when they are handed over.
 */
#include "texture_cuda.cuh"

#include <cuda_fp16.h>
#include <string.h>

enum {
    NEIGHBOURS = 8,
    WARP = 32,
    COLUMN_THREADS = 128,
    VOXEL_THREADS = 256,
    COUNT_THREADS = 1024,
    STRIP = 32, /* rows of codes of a thread */
    WHOLE = 1000000,
    CODES = 256,
    GRID_MOST = 65535,
    REGIONS = TEXTURE_COUNTERS / (TEXTURE_PATTERNS * CODES), /* at a time */
};

/* Four columns a thread */

/* Even and odd voxels of four, those before the even, those behind the odd: two a word. */
struct row {
    uint32_t even, odd, before, behind;
    uint32_t sum, sum_before, sum_behind;     /* even + odd, before + even, odd + behind */
    uint32_t largest_of_even, largest_of_odd; /* of three */
};

static __device__ __forceinline__ __half2
as_half2(uint32_t bits)
{
    __half2 value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static __device__ __forceinline__ uint32_t
bits_of(__half2 value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static __device__ __forceinline__ uint32_t
add(uint32_t a, uint32_t b)
{
    return bits_of(__hadd2(as_half2(a), as_half2(b)));
}

static __device__ __forceinline__ uint32_t
subtract(uint32_t a, uint32_t b)
{
    return bits_of(__hsub2(as_half2(a), as_half2(b)));
}

static __device__ __forceinline__ uint32_t
multiply_add(uint32_t a, uint32_t b, uint32_t c)
{
    return bits_of(__hfma2(as_half2(a), as_half2(b), as_half2(c)));
}

/* 0xFF for each voxel whose number is negative, in the voxels' order. */
static __device__ __forceinline__ uint32_t
negative(uint32_t even, uint32_t odd)
{
    uint32_t bytes;

    asm("prmt.b32 %0, %1, %2, 0xFBD9;" : "=r"(bytes) : "r"(even), "r"(odd));
    return bytes;
}

/* Sums as averages cut to integers, or left as they are. */
template <bool INTEGER>
static __device__ __forceinline__ uint32_t
average(uint32_t sum)
{
    return INTEGER ? sum >> 1 & 0x00FF00FFu : sum;
}

struct loaded_row {
    uint32_t four, before, behind;
};

/* Beyond the row's ends there is nothing that a code depends on. */
static __device__ __forceinline__ struct loaded_row
load_row(const struct pattern_job *job, const uint8_t *row, uint32_t x)
{
    struct loaded_row loaded;

    loaded.four = __ldg((const uint32_t *)(row + x));
    loaded.before = __ldg(row + (x > 0 ? x - 1 : 0));
    loaded.behind = __ldg(row + (x + 4 < job->columns ? x + 4 : x));
    return loaded;
}

template <bool INTEGER>
static __device__ __forceinline__ struct row
spread_row(const struct loaded_row &loaded)
{
    struct row row;
    uint32_t both;

    row.even = loaded.four & 0x00FF00FFu;
    row.odd = __byte_perm(loaded.four, loaded.behind, 0x5351);
    row.before = __byte_perm(loaded.four, loaded.before, 0x5154);
    row.behind = __byte_perm(loaded.four, loaded.behind, 0x5452);
    row.sum = average<INTEGER>(add(row.even, row.odd));
    row.sum_before = average<INTEGER>(add(row.before, row.even));
    row.sum_behind = average<INTEGER>(add(row.odd, row.behind));
    both = __vmaxu2(row.even, row.odd);
    row.largest_of_even = __vmaxu2(both, row.before);
    row.largest_of_odd = __vmaxu2(both, row.behind);
    return row;
}

/* Neighbours 0 .. 7 of a word's voxels, and the sums of neighbours i and i + 1. */
struct ring {
    uint32_t value[NEIGHBOURS], sum[NEIGHBOURS];
};

template <bool INTEGER>
static __device__ __forceinline__ void
find_rings(const struct row &up, const struct row &own, const struct row &down, struct ring *even,
           struct ring *odd)
{
    const struct ring of_even = {
        {own.odd, up.odd, up.even, up.before, own.before, down.before, down.even, down.odd},
        {average<INTEGER>(add(own.odd, up.odd)), up.sum, up.sum_before,
         average<INTEGER>(add(own.before, up.before)),
         average<INTEGER>(add(own.before, down.before)), down.sum_before, down.sum,
         average<INTEGER>(add(own.odd, down.odd))}};
    const struct ring of_odd = {
        {own.behind, up.behind, up.odd, up.even, own.even, down.even, down.odd, down.behind},
        {average<INTEGER>(add(own.behind, up.behind)), up.sum_behind, up.sum,
         average<INTEGER>(add(own.even, up.even)), average<INTEGER>(add(own.even, down.even)),
         down.sum, down.sum_behind, average<INTEGER>(add(own.behind, down.behind))}};

    *even = of_even;
    *odd = of_odd;
}

/* Bits where the neighbours are at least (STRICT: above) two words of limits. */
template <bool STRICT>
static __device__ __forceinline__ uint32_t
compare_ring(const struct ring &even, const struct ring &odd, uint32_t limit_of_even,
             uint32_t limit_of_odd)
{
    uint32_t bits = 0;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++) {
        uint32_t signs = STRICT ? negative(subtract(limit_of_even, even.value[i]),
                                           subtract(limit_of_odd, odd.value[i]))
                                : negative(subtract(even.value[i], limit_of_even),
                                           subtract(odd.value[i], limit_of_odd));

        bits |= signs & 0x01010101u << i;
    }
    return STRICT ? bits : ~bits;
}

/* The threshold times the largest value of two windows. */
static __device__ __forceinline__ uint32_t
limits(const struct pattern_job *job, uint32_t largest)
{
    return __byte_perm(__dp2a_lo(job->factor, largest, job->offset),
                       __dp2a_hi(job->factor, largest, job->offset), 0x7632);
}

/* The sign of (after - n) * (before - n), where n counts twice unless averages are integers. */
template <bool INTEGER>
static __device__ __forceinline__ uint32_t
opposite(const struct ring &ring, int i, uint32_t zero)
{
    const uint32_t minus = INTEGER ? 0xBC00BC00u : 0xC000C000u; /* -1, -2 */
    uint32_t after = multiply_add(ring.value[i], minus, ring.sum[(i + 1) % NEIGHBOURS]);
    uint32_t before = multiply_add(ring.value[i], minus, ring.sum[(i + 6) % NEIGHBOURS]);

    return multiply_add(after, before, zero);
}

template <bool INTEGER>
static __device__ __forceinline__ uint32_t
lanadp(const struct ring &even, const struct ring &odd, uint32_t zero)
{
    uint32_t bits = 0;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++)
        bits |= negative(opposite<INTEGER>(even, i, zero), opposite<INTEGER>(odd, i, zero)) &
                0x01010101u << i;
    return ~bits;
}

/* Codes of four voxels of row `own`, stored at `at` of the maps. */
template <bool STRICT, bool INTEGER>
static __device__ __forceinline__ void
store_codes(const struct pattern_job *job, const struct row &up, const struct row &own,
            const struct row &down, size_t at)
{
    struct ring even, odd;

    find_rings<INTEGER>(up, own, down, &even, &odd);
    if (job->maps[TEXTURE_LBP])
        *(uint32_t *)(job->maps[TEXTURE_LBP] + at) =
            compare_ring<false>(even, odd, own.even, own.odd);
    if (job->maps[TEXTURE_TLBAP]) {
        uint32_t of_even =
            __vmaxu2(__vmaxu2(up.largest_of_even, own.largest_of_even), down.largest_of_even);
        uint32_t of_odd =
            __vmaxu2(__vmaxu2(up.largest_of_odd, own.largest_of_odd), down.largest_of_odd);

        *(uint32_t *)(job->maps[TEXTURE_TLBAP] + at) =
            compare_ring<STRICT>(even, odd, __vmaxu2(own.even, limits(job, of_even)),
                                 __vmaxu2(own.odd, limits(job, of_odd)));
    }
    if (job->maps[TEXTURE_LANADP])
        *(uint32_t *)(job->maps[TEXTURE_LANADP] + at) = lanadp<INTEGER>(even, odd, job->zero);
}

/* Strip blockIdx.y, of `strip` rows, of slice blockIdx.z of the part. */
template <bool STRICT, bool INTEGER>
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    columns_of_codes(const __grid_constant__ struct pattern_job job, uint32_t strip)
{
    const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    const uint32_t first = blockIdx.y * strip;
    const uint32_t count = min(strip, job.part.rows - first);
    const size_t slice = job.part.first_slice + blockIdx.z;
    const uint8_t *next = (const uint8_t *)job.voxels +
                          (slice * job.row_count + job.part.first + first) * job.columns;
    size_t at = ((size_t)blockIdx.z * job.part.rows + first) * job.pitch + x;
    struct row rows[3];
    struct loaded_row coming;

    if (x >= job.columns)
        return;
    rows[0] = spread_row<INTEGER>(load_row(&job, next, x));
    rows[1] = spread_row<INTEGER>(load_row(&job, next + job.columns, x));
    next += 2 * (size_t)job.columns;
    coming = load_row(&job, next, x);
    for (uint32_t i = 0; i < count; i += 3)
#pragma unroll
        for (uint32_t k = 0; k < 3; k++) {
            if (i + k >= count)
                return;
            rows[(k + 2) % 3] = spread_row<INTEGER>(coming);
            if (i + k + 1 < count) {
                next += job.columns;
                coming = load_row(&job, next, x);
            }
            store_codes<STRICT, INTEGER>(&job, rows[k % 3], rows[(k + 1) % 3], rows[(k + 2) % 3],
                                         at);
            at += job.pitch;
        }
}

/* One voxel a thread */

struct window {
    int32_t centre, largest, value[NEIGHBOURS];
};

template <typename Value>
static __device__ struct window
load_window(const struct pattern_job *job, const Value *centre)
{
    const int32_t beside[NEIGHBOURS] = {1, 1, 0, -1, -1, -1, 0, 1};
    const int32_t below[NEIGHBOURS] = {0, -1, -1, -1, 0, 1, 1, 1};
    struct window window = {*centre, *centre, {0}};

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++) {
        window.value[i] = centre[(int64_t)below[i] * job->columns + beside[i]];
        window.largest = max(window.largest, window.value[i]);
    }
    return window;
}

static __device__ __forceinline__ uint32_t
lbp_of(const struct window &window)
{
    uint32_t code = 0;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++)
        code |= (uint32_t)(window.value[i] >= window.centre) << i;
    return code;
}

static __device__ __forceinline__ uint32_t
tlbap_of(const struct pattern_job *job, const struct window &window)
{
    const int64_t limit = (int64_t)window.largest * job->threshold;
    uint32_t code = 0;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++) {
        int32_t value = window.value[i];
        int64_t scaled = (int64_t)value * WHOLE;
        bool set = job->strict ? value > window.centre && scaled > limit
                               : value >= window.centre && scaled >= limit;

        code |= (uint32_t)set << i;
    }
    return code;
}

static __device__ __forceinline__ uint32_t
lanadp_of(const struct pattern_job *job, const struct window &window)
{
    uint32_t code = 0;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++) {
        int32_t after = window.value[(i + 1) % 8] + window.value[(i + 2) % 8];
        int32_t before = window.value[(i + 7) % 8] + window.value[(i + 6) % 8];
        int32_t twice = 2 * window.value[i];

        if (job->integer_average) {
            after = after / 2 * 2;
            before = before / 2 * 2;
        }
        code |=
            (uint32_t)((after >= twice && before >= twice) || (after <= twice && before <= twice))
            << i;
    }
    return code;
}

template <typename Value>
static __global__ void
__launch_bounds__(VOXEL_THREADS) codes_of_voxels(const __grid_constant__ struct pattern_job job)
{
    const uint32_t x = blockIdx.x * VOXEL_THREADS + threadIdx.x + 1;
    const size_t slice = job.part.first_slice + blockIdx.z;

    if (x + 1 >= job.columns)
        return;
    for (uint32_t y = blockIdx.y; y < job.part.rows; y += gridDim.y) {
        const Value *row = (const Value *)job.voxels +
                           (slice * job.row_count + job.part.first + y + 1) * job.columns;
        struct window window = load_window(&job, row + x);
        size_t at = ((size_t)blockIdx.z * job.part.rows + y) * job.pitch + x;

        if (job.maps[TEXTURE_LBP])
            job.maps[TEXTURE_LBP][at] = (uint8_t)lbp_of(window);
        if (job.maps[TEXTURE_TLBAP])
            job.maps[TEXTURE_TLBAP][at] = (uint8_t)tlbap_of(&job, window);
        if (job.maps[TEXTURE_LANADP])
            job.maps[TEXTURE_LANADP][at] = (uint8_t)lanadp_of(&job, window);
    }
}

/*
 * Adds the codes of a part within a region, whose words begin with the part's first voxel row (that
 * of its first codes, in its first slice), to counts[pattern][code]. A counter for each lane.
 */
static __global__ void
__launch_bounds__(COUNT_THREADS)
    count_codes(const __grid_constant__ struct pattern_job job, const uint64_t *region,
                uint32_t words_per_row, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    uint32_t *counters = (uint32_t *)shared_counters;
    const uint32_t all = TEXTURE_PATTERNS * CODES, lane = threadIdx.x % WARP;
    const uint32_t rows = job.part.rows * job.part.slices;

    for (uint32_t i = threadIdx.x; i < all * WARP; i += COUNT_THREADS)
        counters[i] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * (COUNT_THREADS / WARP) + threadIdx.x / WARP; i < rows;
         i += gridDim.x * (COUNT_THREADS / WARP)) {
        size_t voxel_row = (size_t)(i / job.part.rows) * job.row_count + i % job.part.rows;

        for (uint32_t x = 1 + lane; x + 1 < job.columns; x += WARP) {
            if (!texture_in_region(region, voxel_row, words_per_row, x))
                continue;
#pragma unroll
            for (uint32_t p = 0; p < TEXTURE_PATTERNS; p++)
                if (job.maps[p])
                    atomicAdd(
                        &counters[(p * CODES + job.maps[p][(size_t)i * job.pitch + x]) * WARP +
                                  lane],
                        1u);
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < all; i += COUNT_THREADS) {
        unsigned long long sum = 0;

        for (uint32_t k = 0; k < WARP; k++)
            sum += counters[i * WARP + (k + lane) % WARP];
        if (sum != 0)
            atomicAdd(&counts[i], sum);
    }
}

/* A lane */

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int32_t
byte_limit(const struct texture_patterns *request, int32_t value)
{
    int64_t limit = (int64_t)value * request->threshold_millionths;

    return (int32_t)((limit + (request->strict ? 0 : WHOLE - 1)) / WHOLE);
}

static bool
gives_limits(const struct texture_patterns *request, uint32_t factor, uint32_t offset)
{
    for (uint32_t value = 0; value < 256; value++)
        if ((int32_t)((factor * value + offset) >> 16) != byte_limit(request, (int32_t)value))
            return false;
    return true;
}

/*
 * Steps of a line over 0 .. 255 do not change as long as its slope passes no fraction with a
 * denominator up to 255, and such are at least 1 / (255 * 254) apart: more than 2^-16.
 */
static bool
find_limits(const struct texture_patterns *request, struct pattern_job *job)
{
    const int64_t near = ((int64_t)request->threshold_millionths << 16) / WHOLE;

    for (int64_t factor = near - 2; factor <= near + 2; factor++)
        for (uint32_t offset = 0; offset <= 0xFFFF; offset += 0xFFFF)
            if (factor >= 0 && factor <= 0xFFFF &&
                gives_limits(request, (uint32_t)factor, offset)) {
                job->factor = (uint32_t)factor;
                job->offset = offset;
                return true;
            }
    return false;
}

template <bool STRICT, bool INTEGER>
static void
launch_columns(const struct pattern_job *job, cudaStream_t stream)
{
    const uint32_t fewest = job->part.rows / GRID_MOST + 1;
    const uint32_t strip = fewest > (uint32_t)STRIP ? fewest : (uint32_t)STRIP;
    const uint32_t words = job->columns / 4;
    const uint32_t threads = (uint32_t)least(COLUMN_THREADS, (words + WARP - 1) / WARP * WARP);
    const dim3 grid((words + threads - 1) / threads, (job->part.rows + strip - 1) / strip,
                    job->part.slices);

    columns_of_codes<STRICT, INTEGER><<<grid, threads, 0, stream>>>(*job, strip);
}

void
cuda_patterns_launch(const struct texture_patterns *request, struct pattern_job *job,
                     enum kernels_pixel pixel, cudaStream_t stream)
{
    const dim3 grid((job->columns - 2 + VOXEL_THREADS - 1) / VOXEL_THREADS,
                    (unsigned)least(job->part.rows, GRID_MOST), job->part.slices);

    const bool pairs = pixel == KERNELS_UINT8 && job->columns % 4 == 0 && find_limits(request, job);

    if (pairs && job->strict && job->integer_average)
        launch_columns<true, true>(job, stream);
    else if (pairs && job->strict)
        launch_columns<true, false>(job, stream);
    else if (pairs && job->integer_average)
        launch_columns<false, true>(job, stream);
    else if (pairs)
        launch_columns<false, false>(job, stream);
    else if (pixel == KERNELS_UINT8)
        codes_of_voxels<uint8_t><<<grid, VOXEL_THREADS, 0, stream>>>(*job);
    else if (pixel == KERNELS_INT16)
        codes_of_voxels<int16_t><<<grid, VOXEL_THREADS, 0, stream>>>(*job);
    else
        codes_of_voxels<uint16_t><<<grid, VOXEL_THREADS, 0, stream>>>(*job);
}

/* Parts that a batch of maps has room for: some slices, or some rows of one. */
struct pattern_parts {
    uint32_t slices, rows; /* of codes, in all */
    uint32_t slices_each, rows_each;
    size_t across, count;
};

static struct pattern_parts
cut_into_parts(const struct cuda_lane *lane)
{
    const size_t room = lane->texture->map_rows;
    struct pattern_parts parts;

    parts.slices = (uint32_t)lane->base.extent.slices;
    parts.rows = (uint32_t)(lane->base.extent.rows - 2);
    parts.rows_each = (uint32_t)least(parts.rows, room);
    parts.slices_each = (uint32_t)least(least(parts.slices, GRID_MOST), room / parts.rows_each);
    if (parts.rows_each < parts.rows)
        parts.slices_each = 1;
    parts.across = (parts.rows + parts.rows_each - 1) / parts.rows_each;
    parts.count = (parts.slices + parts.slices_each - 1) / parts.slices_each * parts.across;
    return parts;
}

static struct pattern_rows
part_of(const struct pattern_parts *parts, size_t index)
{
    struct pattern_rows part;

    part.first_slice = (uint32_t)(index / parts->across) * parts->slices_each;
    part.slices = (uint32_t)least(parts->slices_each, parts->slices - part.first_slice);
    part.first = (uint32_t)(index % parts->across) * parts->rows_each;
    part.rows = (uint32_t)least(parts->rows_each, parts->rows - part.first);
    return part;
}

/* Some regions of a request, and whether maps go to the caller beside them. */
struct pattern_turn {
    const struct texture_patterns *request;
    size_t first_region, regions;
    bool maps;
};

static uint8_t *
map_of(const struct cuda_lane *lane, uint8_t *maps, int pattern)
{
    return maps + (size_t)pattern * lane->texture->map_rows * lane->texture->map_pitch;
}

/* The words of a region that a part needs, and its codes counted. */
static int
queue_counts(struct cuda_lane *lane, const struct pattern_turn *turn, const struct pattern_job *job,
             char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;
    const size_t words_per_row = (job->columns + 63) / 64;
    const size_t first = (size_t)job->part.first_slice * job->row_count + job->part.first + 1;
    const size_t rows = (size_t)(job->part.slices - 1) * job->row_count + job->part.rows;

    for (size_t i = 0; i < turn->regions; i++) {
        const uint64_t *region = turn->request->regions[turn->first_region + i];

        if (region)
            CUDA_TRY(device, cudaMemcpyAsync(texture->region, region + first * words_per_row,
                                             rows * words_per_row * sizeof(uint64_t),
                                             cudaMemcpyHostToDevice, lane->work));
        count_codes<<<(unsigned)device->multiprocessors * 2, COUNT_THREADS,
                      TEXTURE_PATTERNS * CODES * WARP * sizeof(uint32_t), lane->work>>>(
            *job, region ? texture->region : NULL, (uint32_t)words_per_row,
            texture->counts + i * TEXTURE_PATTERNS * CODES);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

/* A part's maps to pinned memory, while the next part is worked on. */
static int
queue_maps(struct cuda_lane *lane, const struct pattern_turn *turn, const struct pattern_job *job,
           int slot, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;
    const size_t bytes = (size_t)job->part.slices * job->part.rows * job->pitch;

    CUDA_TRY(device, cudaEventRecord(texture->made[slot], lane->work));
    CUDA_TRY(device, cudaStreamWaitEvent(lane->download, texture->made[slot], 0));
    for (int p = 0; turn->maps && p < TEXTURE_PATTERNS; p++)
        if (turn->request->maps[p])
            CUDA_TRY(device,
                     cudaMemcpyAsync(map_of(lane, texture->host_maps[slot], p), job->maps[p], bytes,
                                     cudaMemcpyDeviceToHost, lane->download));
    CUDA_TRY(device, cudaEventRecord(texture->fetched[slot], lane->download));
    return 0;
}

/* Waits for a part, and gives the caller its maps without the padding. */
static int
hand_over(struct cuda_lane *lane, const struct pattern_turn *turn, const struct pattern_job *job,
          int slot, char *reason, size_t reason_size)
{
    struct cuda_texture *texture = lane->texture;
    const size_t width = job->columns - 2;
    const size_t first = (size_t)job->part.first_slice * (job->row_count - 2) + job->part.first;

    CUDA_TRY(cuda_device_of(&lane->base), cudaEventSynchronize(texture->fetched[slot]));
    for (int p = 0; turn->maps && p < TEXTURE_PATTERNS; p++)
        for (size_t row = 0;
             turn->request->maps[p] && row < (size_t)job->part.slices * job->part.rows; row++)
            memcpy(turn->request->maps[p] + (first + row) * width,
                   map_of(lane, texture->host_maps[slot], p) + row * job->pitch + 1, width);
    return 0;
}

static struct pattern_job
job_of(const struct cuda_lane *lane, const struct texture_patterns *request, int slot)
{
    struct pattern_job job = {};

    job.voxels = lane->device_voxels;
    job.columns = (uint32_t)lane->base.extent.columns;
    job.row_count = (uint32_t)lane->base.extent.rows;
    job.pitch = (uint32_t)lane->texture->map_pitch;
    job.strict = request->strict;
    job.integer_average = request->integer_average;
    job.threshold = request->threshold_millionths;
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        if (request->wanted[p])
            job.maps[p] = map_of(lane, lane->texture->maps[slot], p);
    return job;
}

/* All parts: the host takes over the maps of one while the next is under way. */
static int
run_parts(struct cuda_lane *lane, const struct pattern_turn *turn, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct pattern_parts parts = cut_into_parts(lane);
    struct pattern_job jobs[TEXTURE_MAP_BATCHES];
    int error = 0;

    for (size_t i = 0; error == 0 && i < parts.count; i++) {
        int slot = (int)(i % TEXTURE_MAP_BATCHES);
        struct pattern_job *job = &jobs[slot];

        *job = job_of(lane, turn->request, slot);
        job->part = part_of(&parts, i);
        cuda_patterns_launch(turn->request, job, lane->base.pixel, lane->work);
        CUDA_LAUNCHED(device);
        error = queue_counts(lane, turn, job, reason, reason_size);
        if (error == 0)
            error = queue_maps(lane, turn, job, slot, reason, reason_size);
        if (error == 0 && i > 0)
            error = hand_over(lane, turn, &jobs[1 - slot], 1 - slot, reason, reason_size);
    }
    if (error == 0) {
        int slot = (int)((parts.count - 1) % TEXTURE_MAP_BATCHES);
        error = hand_over(lane, turn, &jobs[slot], slot, reason, reason_size);
    }
    return error;
}

static int
run_turn(struct cuda_lane *lane, const struct pattern_turn *turn, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;
    const size_t bytes = turn->regions * TEXTURE_PATTERNS * CODES * sizeof(uint64_t);
    int error;

    if (bytes > 0)
        CUDA_TRY(device, cudaMemsetAsync(texture->counts, 0, bytes, lane->work));
    error = run_parts(lane, turn, reason, reason_size);
    if (error || bytes == 0)
        return error;
    CUDA_TRY(device, cudaMemcpyAsync(texture->host_counts, texture->counts, bytes,
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    memcpy(turn->request->histograms + turn->first_region * TEXTURE_PATTERNS * CODES,
           texture->host_counts, bytes);
    return 0;
}

int
cuda_patterns_run(struct cuda_lane *lane, const struct texture_patterns *request, char *reason,
                  size_t reason_size)
{
    const struct kernels_extent *extent = &lane->base.extent;
    struct pattern_turn turn = {request, 0, 0, true};
    int error;

    if (extent->columns < 3 || extent->rows < 3) {
        if (request->region_count > 0)
            memset(request->histograms, 0,
                   request->region_count * TEXTURE_PATTERNS * CODES * sizeof(uint64_t));
        return 0;
    }
    CUDA_TRY(cuda_device_of(&lane->base),
             cudaFuncSetAttribute(count_codes, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)(TEXTURE_PATTERNS * CODES * WARP * sizeof(uint32_t))));
    do {
        turn.regions = least(REGIONS, request->region_count - turn.first_region);
        error = run_turn(lane, &turn, reason, reason_size);
        turn.first_region += turn.regions;
        turn.maps = false;
    } while (error == 0 && turn.first_region < request->region_count);
    return error;
}
