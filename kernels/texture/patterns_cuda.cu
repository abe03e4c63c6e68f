/*
 * patterns_cuda.cu - LBP, TLBAP and LANADP (Masur 2022) on the GPU, in one pass.
 *
 * Arithmetic is the bottleneck, so bytes are processed in pairs. A thread moves down four columns
 * and keeps three rows in registers. Four voxels of a row are two words of two 16-bit numbers, the
 * even ones and the odd ones. As half-precision floats these numbers are subnormal, n * 2^-24.
 * Addition and subtraction of them are exact up to 2047, and only the sign of a difference is
 * needed. LANADP's bit is clear if the two averages differ from the neighbour in opposite
 * directions, so that the product of the differences is negative. It underflows, but to -0. A
 * product of 0 is +0, since +0 is added to it (IEEE 754, 6.3). A byte permutation spreads the signs
 * of four voxels over bytes.
 *
 * Rows with a length that is no multiple of 4, parts of one or two rows, and 16-bit voxels are
 * processed one voxel per thread.
 *
 * Maps on the device have rows as long as the image's, padded to words, with the code of voxel x at
 * x. Requested maps are packed without padding on the device. One copy per part brings them to the
 * lane's pinned memory during the next part.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/texture_cuda.cuh"

#include <cuda_fp16.h>
#include <string.h>

enum {
    NEIGHBOURS = 8,
    WARP = 32,
    COLUMN_THREADS = 128,
    COLUMN_BLOCKS = 6, /* per multiprocessor at once: leaves 80 registers */
    VOXEL_THREADS = 256,
    COUNT_THREADS = 1024,
    COUNT_SPAN = 512, /* codes of a row that a warp counts at a time: pictures have few rows per warp */
    WINDOW = 3,       /* rows that determine a code */
    STRIP_MOST = 33,  /* max rows of codes per thread, a multiple of WINDOW */
    ENOUGH = 8192,    /* warps: about twice the capacity of a large GPU */
    WHOLE = 1000000,
    CODES = 256,
    TIGHT_BLOCKS = 8, /* per multiprocessor */
    GRID_MOST = 65535,
    REGIONS = TEXTURE_COUNTERS / (TEXTURE_PATTERNS * CODES), /* regions at a time */
};

/* Four columns per thread */

/*
 * A row's voxels, two per word: those before the even ones of four, the even, the odd, and those
 * behind the odd ones. The previous word has the left neighbours of a word's voxels, the next word
 * the right ones.
 */
enum { BEFORE, EVEN, ODD, BEHIND, WORDS };

struct row {
    uint32_t voxels[WORDS];
    uint32_t across[WORDS - 1]; /* sums of a word and the next */
    uint32_t upward[WORDS];     /* sums of a word and the one above */
    /* difference of the two voxels on one side from a voxel: on the right for BEFORE and EVEN, on
     * the left for ODD and BEHIND */
    uint32_t aside[WORDS];
    uint32_t largest_of_even, largest_of_odd; /* of three voxels */
};

static __device__ __forceinline__ __half2
as_half2(uint32_t bits)
{
    __half2 value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static __device__ __forceinline__ uint32_t
cuda_patterns_bits_of(__half2 value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static __device__ __forceinline__ uint32_t
subtract(uint32_t a, uint32_t b)
{
    return cuda_patterns_bits_of(__hsub2(as_half2(a), as_half2(b)));
}

static __device__ __forceinline__ uint32_t
multiply_add(uint32_t a, uint32_t b, uint32_t c)
{
    return cuda_patterns_bits_of(__hfma2(as_half2(a), as_half2(b), as_half2(c)));
}

/* Returns 0xFF for each voxel with a negative number, in the order of voxels. */
static __device__ __forceinline__ uint32_t
negative(uint32_t even, uint32_t odd)
{
    return ptx_permute<0xFBD9>(even, odd);
}

/* Sums two voxels. For integer averages, the sum is rounded from slightly less than the half, 0.5 -
 * 2^-12. */
template <bool INTEGER>
static __device__ __forceinline__ uint32_t
sum_of(uint32_t a, uint32_t b)
{
    const __half2 sum = __hadd2(as_half2(a), as_half2(b));

    return cuda_patterns_bits_of(INTEGER ? __hmul2(sum, as_half2(0x37FF37FFu)) : sum);
}

/* Returns a sum less a voxel, which counts twice unless averages are integers. */
template <bool INTEGER>
static __device__ __forceinline__ uint32_t
above(uint32_t sum, uint32_t voxels)
{
    return INTEGER ? subtract(sum, voxels) : multiply_add(voxels, 0xC000C000u, sum); /* -2 */
}

struct loaded_row {
    uint32_t four, before, behind;
};

/* No code depends on words beyond the row's end. There, the previous contents stay. */
static __device__ __forceinline__ void
cuda_patterns_load_row(const struct pattern_job *job, const uint8_t *four, uint32_t x, struct loaded_row *loaded)
{
    loaded->four = __ldg((const uint32_t *)four);
    if (x > 0)
        loaded->before = __ldg(four - 1);
    if (x + 4 < job->columns)
        loaded->behind = __ldg(four + 4);
}

template <bool INTEGER>
static __device__ __forceinline__ struct row
spread_row(const struct loaded_row &loaded, const struct row &up)
{
    struct row row;

    row.voxels[BEFORE] = __byte_perm(loaded.four, loaded.before, 0x5154);
    row.voxels[EVEN] = loaded.four & 0x00FF00FFu;
    row.voxels[ODD] = __byte_perm(loaded.four, loaded.behind, 0x5351);
    row.voxels[BEHIND] = __byte_perm(loaded.four, loaded.behind, 0x5452);
#pragma unroll
    for (int i = BEFORE; i < BEHIND; i++)
        row.across[i] = sum_of<INTEGER>(row.voxels[i], row.voxels[i + 1]);
#pragma unroll
    for (int i = BEFORE; i < WORDS; i++) {
        row.upward[i] = sum_of<INTEGER>(up.voxels[i], row.voxels[i]);
        row.aside[i] = above<INTEGER>(row.across[i < ODD ? i + 1 : i - 2], row.voxels[i]);
    }
    row.largest_of_even = __vimax3_u16x2(row.voxels[BEFORE], row.voxels[EVEN], row.voxels[ODD]);
    row.largest_of_odd = __vimax3_u16x2(row.voxels[EVEN], row.voxels[ODD], row.voxels[BEHIND]);
    return row;
}

/* A row and its neighbours, with the windows of its codes. */
struct window_rows {
    const struct row &up, &own, &down;
};

/* Returns neighbour i of the voxels of word c, EVEN or ODD. */
static __device__ __forceinline__ uint32_t
neighbour(const struct window_rows &rows, int c, int i)
{
    const struct row &row = i == 0 || i == 4 ? rows.own : i < 4 ? rows.up : rows.down;

    return row.voxels[i < 2 || i == 7 ? c + 1 : i > 2 && i < 6 ? c - 1 : c];
}

/* Differences or products for neighbour i, with the code's bits as signs. */
struct signed_words {
    uint32_t even[NEIGHBOURS], odd[NEIGHBOURS];
};

/* Makes four codes, with a bit where words are NEGATIVE or where they are not. The first signs fill
 * all bits, and the others replace their own: ptx_logic<0xCA>(mask, a, b) selects `a` where the mask
 * is set, otherwise `b`, and 0x35 the complement. The compiler would use two instructions. */
template <bool NEGATIVE>
static __device__ __forceinline__ uint32_t
cuda_patterns_codes_of(const struct signed_words &words)
{
    const int last = NEIGHBOURS - 1;
    uint32_t bits = negative(words.even[0], words.odd[0]);

#pragma unroll
    for (int i = 1; i < last; i++)
        bits = ptx_logic<0xCA>(0x01010101u << i, negative(words.even[i], words.odd[i]), bits);
    return ptx_logic<(NEGATIVE ? 0xCA : 0x35)>(0x01010101u << last, negative(words.even[last], words.odd[last]), bits);
}

/* Sets bits where the neighbours are at least (STRICT: above) two words of limits. */
template <bool STRICT>
static __device__ __forceinline__ uint32_t
compare_ring(const struct window_rows &rows, uint32_t limit_of_even, uint32_t limit_of_odd)
{
    struct signed_words words;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++) {
        const uint32_t even = neighbour(rows, EVEN, i), odd = neighbour(rows, ODD, i);

        words.even[i] = STRICT ? subtract(limit_of_even, even) : subtract(even, limit_of_even);
        words.odd[i] = STRICT ? subtract(limit_of_odd, odd) : subtract(odd, limit_of_odd);
    }
    return cuda_patterns_codes_of<STRICT>(words);
}

/* Returns the threshold times the largest value of two windows. */
static __device__ __forceinline__ uint32_t
limits(const struct pattern_job *job, uint32_t largest)
{
    return __byte_perm(__dp2a_lo(job->factor, largest, job->offset), __dp2a_hi(job->factor, largest, job->offset),
                       0x7632);
}

template <bool STRICT>
static __device__ __forceinline__ uint32_t
tlbap(const struct pattern_job *job, const struct window_rows &rows)
{
    const uint32_t of_even =
        __vimax3_u16x2(rows.up.largest_of_even, rows.own.largest_of_even, rows.down.largest_of_even);
    const uint32_t of_odd = __vimax3_u16x2(rows.up.largest_of_odd, rows.own.largest_of_odd, rows.down.largest_of_odd);

    return compare_ring<STRICT>(rows, __vmaxu2(rows.own.voxels[EVEN], limits(job, of_even)),
                                __vmaxu2(rows.own.voxels[ODD], limits(job, of_odd)));
}

/* Returns the product of the differences of both averages from neighbour i of word c. It is
 * negative if the neighbour lies between them. */
template <bool INTEGER>
static __device__ __forceinline__ uint32_t
opposite(const struct window_rows &rows, int c, int i, uint32_t zero)
{
    const struct row &up = rows.up, &own = rows.own, &down = rows.down;
    const int left = c - 1, right = c + 1;
    const uint32_t value = neighbour(rows, c, i);
    uint32_t first, second;

    if (i % 4 == 0) {
        first = above<INTEGER>(up.across[i == 0 ? c : left], value);
        second = above<INTEGER>(down.across[i == 0 ? c : left], value);
    } else if (i % 4 == 2) {
        first = above<INTEGER>((i == 2 ? own : down).upward[left], value);
        second = above<INTEGER>((i == 2 ? own : down).upward[right], value);
    } else {
        const int side = i == 1 || i == 7 ? right : left;

        first = (i < 4 ? up : down).aside[side];
        second = above<INTEGER>((i < 4 ? down : own).upward[side], value);
    }
    return multiply_add(first, second, zero);
}

template <bool INTEGER>
static __device__ __forceinline__ uint32_t
lanadp(const struct window_rows &rows, uint32_t zero)
{
    struct signed_words words;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++) {
        words.even[i] = opposite<INTEGER>(rows, EVEN, i, zero);
        words.odd[i] = opposite<INTEGER>(rows, ODD, i, zero);
    }
    return cuda_patterns_codes_of<false>(words);
}

/* Returns whether a pattern's bit is set. */
static __host__ __device__ constexpr bool
wants(uint32_t wanted, int pattern)
{
    return (wanted >> pattern & 1) != 0;
}

/*
 * Handles strip blockIdx.y of slice blockIdx.z of the part: `length` rows, or the rest rounded up
 * to a multiple of WINDOW. A strip that would pass the end begins earlier, and repeats codes of the
 * previous strip.
 */
template <uint32_t WANTED, bool STRICT, bool INTEGER>
static __global__ void
__launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS)
    columns_of_codes(const __grid_constant__ struct pattern_job job, uint32_t length)
{
    const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, all = job.part.rows;
    const uint32_t rest = (all - blockIdx.y * length + WINDOW - 1) / WINDOW * WINDOW;
    const uint32_t count = min(length, rest), first = min(blockIdx.y * length, all - count);
    const size_t slice = job.part.first_slice + blockIdx.z;
    const uint8_t *next =
        (const uint8_t *)job.voxels + (slice * job.row_count + job.part.first + first) * job.columns + x;
    size_t at = ((size_t)blockIdx.z * all + first) * job.pitch + x;
    struct row rows[WINDOW] = {};
    struct loaded_row begin[2] = {}, coming[WINDOW] = {};

    if (x >= job.columns)
        return;
    cuda_patterns_load_row(&job, next, x, &begin[0]);
    cuda_patterns_load_row(&job, next += job.columns, x, &begin[1]);
#pragma unroll
    for (int k = 0; k < WINDOW; k++)
        cuda_patterns_load_row(&job, next += job.columns, x, &coming[k]);
    rows[0] = spread_row<INTEGER>(begin[0], rows[0]);
    rows[1] = spread_row<INTEGER>(begin[1], rows[0]);
    for (uint32_t left = count; left > 0; left -= WINDOW)
#pragma unroll
        for (int k = 0; k < WINDOW; k++) {
            const struct window_rows window = {rows[k], rows[(k + 1) % WINDOW], rows[(k + 2) % WINDOW]};

            rows[(k + 2) % WINDOW] = spread_row<INTEGER>(coming[k], window.own);
            cuda_patterns_load_row(&job, next += left > WINDOW ? job.columns : 0, x, &coming[k]);
            if (wants(WANTED, TEXTURE_LBP)) /* codes of four voxels of the own row */
                *(uint32_t *)(job.maps[TEXTURE_LBP] + at) =
                    compare_ring<false>(window, window.own.voxels[EVEN], window.own.voxels[ODD]);
            if (wants(WANTED, TEXTURE_TLBAP))
                *(uint32_t *)(job.maps[TEXTURE_TLBAP] + at) = tlbap<STRICT>(&job, window);
            if (wants(WANTED, TEXTURE_LANADP))
                *(uint32_t *)(job.maps[TEXTURE_LANADP] + at) = lanadp<INTEGER>(window, job.zero);
            at += job.pitch;
        }
}

/* One voxel per thread */

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

/* Compares with the least value that sets a bit: the threshold times the largest, rounded up, or the next one above. One
 * division per window then suffices. It is of a number that is not negative. */
static __device__ __forceinline__ uint32_t
tlbap_of(const struct pattern_job *job, const struct window &window)
{
    const int32_t lowest = INT16_MIN, strict = job->strict;
    const int64_t limit = (int64_t)window.largest * job->threshold + (WHOLE - 1 + strict) - (int64_t)lowest * WHOLE;
    const int32_t least = max((int32_t)((uint64_t)limit / WHOLE) + lowest, window.centre + strict);
    uint32_t code = 0;

#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++)
        code |= (uint32_t)(window.value[i] >= least) << i;
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
        code |= (uint32_t)((after >= twice && before >= twice) || (after <= twice && before <= twice)) << i;
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
        const Value *row = (const Value *)job.voxels + (slice * job.row_count + job.part.first + y + 1) * job.columns;
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
 * Adds the codes of a part in a region to counts[pattern][code]. The region's words begin at the
 * part's first voxel row (that of its first codes, in its first slice). Lanes have separate
 * counters.
 */
static __global__ void
__launch_bounds__(COUNT_THREADS) count_codes(const __grid_constant__ struct pattern_job job, const uint64_t *region,
                                             uint32_t words_per_row, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    uint32_t *counters = (uint32_t *)shared_counters;
    const uint32_t all = TEXTURE_PATTERNS * CODES, lane = threadIdx.x % WARP;
    const uint32_t rows = job.part.rows * job.part.slices, across = (job.columns - 2 + COUNT_SPAN - 1) / COUNT_SPAN;

    for (uint32_t i = threadIdx.x; i < all * WARP; i += COUNT_THREADS)
        counters[i] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * (COUNT_THREADS / WARP) + threadIdx.x / WARP; i < rows * across;
         i += gridDim.x * (COUNT_THREADS / WARP)) {
        const uint32_t row = i / across, begin = 1 + i % across * COUNT_SPAN;
        const uint32_t end = min(begin + COUNT_SPAN, job.columns - 1);
        const size_t voxel_row = (size_t)(row / job.part.rows) * job.row_count + row % job.part.rows;

        for (uint32_t x = begin + lane; x < end; x += WARP) {
            if (!texture_in_region(region, voxel_row, words_per_row, x))
                continue;
#pragma unroll
            for (uint32_t p = 0; p < TEXTURE_PATTERNS; p++)
                if (job.maps[p])
                    atomicAdd(&counters[(p * CODES + job.maps[p][(size_t)row * job.pitch + x]) * WARP + lane], 1u);
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

/* Packed codes of a part, four per thread. */
struct tight_part {
    uint32_t *maps[TEXTURE_PATTERNS]; /* NULL: not wanted */
    uint32_t width, rows;             /* of codes */
    uint32_t words;                   /* of a map; the last is padded with 0 */
};

/* Packs pattern blockIdx.y. */
static __global__ void
__launch_bounds__(VOXEL_THREADS)
    tight_codes(const __grid_constant__ struct pattern_job job, const __grid_constant__ struct tight_part tight)
{
    const uint8_t *codes = job.maps[blockIdx.y];
    uint32_t *map = tight.maps[blockIdx.y];

    for (uint32_t i = blockIdx.x * VOXEL_THREADS + threadIdx.x; map != NULL && i < tight.words;
         i += gridDim.x * VOXEL_THREADS) {
        uint32_t row = 4 * i / tight.width, x = 4 * i % tight.width, word = 0;

#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (row < tight.rows)
                word |= (uint32_t)codes[(size_t)row * job.pitch + x + 1] << 8 * k;
            if (++x == tight.width) {
                x = 0;
                row++;
            }
        }
        map[i] = word;
    }
}

/* A lane */

static bool
gives_limits(const struct texture_patterns *request, uint32_t factor, uint32_t offset)
{
    for (uint32_t value = 0; value < 256; value++) {
        const int64_t product = (int64_t)value * request->threshold_millionths;
        const int64_t limit = (product + (request->strict ? 0 : WHOLE - 1)) / WHOLE;

        if ((factor * value + offset) >> 16 != limit)
            return false;
    }
    return true;
}

/*
 * The limits of a line over 0 .. 255 change only where its slope passes a fraction with a
 * denominator up to 255. Such fractions are at least 1 / (255 * 254) apart, which is more than
 * 2^-16.
 */
static bool
find_limits(const struct texture_patterns *request, struct pattern_job *job)
{
    const int64_t near = ((int64_t)request->threshold_millionths << 16) / WHOLE;

    for (int64_t factor = near - 2; factor <= near + 2; factor++)
        for (uint32_t offset = 0; offset <= 0xFFFF; offset += 0xFFFF)
            if (factor >= 0 && factor <= 0xFFFF && gives_limits(request, (uint32_t)factor, offset)) {
                job->factor = (uint32_t)factor;
                job->offset = offset;
                return true;
            }
    return false;
}

typedef void columns_kernel(struct pattern_job job, uint32_t length);

/* Options of patterns that are not requested must not select another kernel. */
template <uint32_t WANTED>
static columns_kernel *
kernel_of(bool strict, bool integer)
{
    constexpr bool may_be_strict = wants(WANTED, TEXTURE_TLBAP);
    constexpr bool may_be_integer = wants(WANTED, TEXTURE_LANADP);

    if (strict)
        return integer ? columns_of_codes<WANTED, may_be_strict, may_be_integer>
                       : columns_of_codes<WANTED, may_be_strict, false>;
    return integer ? columns_of_codes<WANTED, false, may_be_integer> : columns_of_codes<WANTED, false, false>;
}

static void
launch_columns(const struct pattern_job *job, cudaStream_t stream)
{
    columns_kernel *(*const kernels[])(bool, bool) = {kernel_of<1>, kernel_of<2>, kernel_of<3>, kernel_of<4>,
                                                      kernel_of<5>, kernel_of<6>, kernel_of<7>};
    const uint32_t words = job->columns / 4;
    const uint32_t threads = (uint32_t)texture_least(COLUMN_THREADS, (words + WARP - 1) / WARP * WARP);
    const uint32_t across = (words + threads - 1) / threads, rows = job->part.rows;
    const size_t warps = (size_t)((words + WARP - 1) / WARP) * rows * job->part.slices;
    /* Rows of codes per thread, few enough that a small image fills the GPU. */
    const size_t most = texture_most(texture_least(warps / ENOUGH + 1, STRIP_MOST), rows / GRID_MOST + 1);
    const uint32_t length = (uint32_t)(texture_least((most + WINDOW - 1) / WINDOW, rows / WINDOW) * WINDOW);
    const dim3 grid(across, (rows + length - 1) / length, job->part.slices);
    uint32_t wanted = 0;

    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        wanted |= (uint32_t)(job->maps[p] != NULL) << p;
    columns_kernel *kernel = kernels[wanted - 1](job->strict, job->integer_average);
    kernel<<<grid, threads, 0, stream>>>(*job, length);
}

void
cuda_patterns_launch(const struct texture_patterns *request, struct pattern_job *job, enum image_pixel pixel,
                     cudaStream_t stream)
{
    const dim3 grid((job->columns - 2 + VOXEL_THREADS - 1) / VOXEL_THREADS,
                    (unsigned)texture_least(job->part.rows, GRID_MOST), job->part.slices);

    const bool pairs =
        pixel == IMAGE_UINT8 && job->columns % 4 == 0 && job->part.rows >= WINDOW && find_limits(request, job);

    if (pairs)
        launch_columns(job, stream);
    else if (pixel == IMAGE_UINT8)
        codes_of_voxels<uint8_t><<<grid, VOXEL_THREADS, 0, stream>>>(*job);
    else if (pixel == IMAGE_INT16)
        codes_of_voxels<int16_t><<<grid, VOXEL_THREADS, 0, stream>>>(*job);
    else
        codes_of_voxels<uint16_t><<<grid, VOXEL_THREADS, 0, stream>>>(*job);
}

struct cuda_patterns {
    struct texture_patterns_state base;
    struct cuda_counted counted;
    size_t map_pitch;                    /* bytes per row of a map, a multiple of 4 */
    size_t map_rows;                     /* max rows of a map in a batch */
    uint8_t *maps;                       /* of a part, padded */
    uint8_t *tight[TEXTURE_MAP_BATCHES]; /* packed, if requested */
    cudaEvent_t made[TEXTURE_MAP_BATCHES], fetched[TEXTURE_MAP_BATCHES];
    struct texture_patterns ahead; /* of cuda_patterns_begin */
    bool is_ahead;
    size_t ahead_parts;  /* made so far */
    uint8_t *ahead_maps; /* of the whole volume */
};

static struct cuda_patterns *
cuda_patterns_state(const struct kernels_lane *lane)
{
    return (struct cuda_patterns *)kernels_state(lane, KERNELS_PATTERNS);
}

static void
patterns_close(struct kernels_lane *lane)
{
    struct cuda_patterns *own = cuda_patterns_state(lane);

    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        if (own->made[i])
            (void)cudaEventDestroy(own->made[i]);
        if (own->fetched[i])
            (void)cudaEventDestroy(own->fetched[i]);
    }
}

static int
patterns_open(struct kernels_lane *lane, struct error *error)
{
    struct cuda_patterns *own = cuda_patterns_state(lane);
    int rc = 0;

    for (int i = 0; i < 2 * TEXTURE_MAP_BATCHES && rc == 0; i++) {
        cudaEvent_t *event = i % 2 ? &own->fetched[i / 2] : &own->made[i / 2];
        const cudaError_t status = CUDA_OF(cudaEventCreateWithFlags(event, cudaEventDisableTiming));

        if (status != cudaSuccess)
            rc = cuda_failed(cuda_device_of(lane), status, "cudaEventCreateWithFlags", error);
    }
    if (rc)
        patterns_close(lane);
    return rc;
}

static void
cuda_patterns_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_patterns *own = cuda_patterns_state(lane);
    size_t rows = (size_t)(lane->extent.rows * lane->extent.slices);

    own->map_pitch = ((size_t)lane->extent.columns + 3) / 4 * 4;
    own->map_rows = texture_least(rows, texture_most(1, TEXTURE_MAP_BYTES / own->map_pitch));
    cuda_counted_place(lane, memory, &own->counted);
    cuda_take(&memory->device, &own->maps, TEXTURE_PATTERNS * own->map_rows, own->map_pitch);
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++)
        cuda_take(&memory->device, &own->tight[i], (size_t)own->base.demand.maps * own->map_rows, own->map_pitch);
}

static void
cuda_patterns_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_patterns *own = cuda_patterns_state(lane);
    const size_t rows = (size_t)(lane->extent.rows * lane->extent.slices);

    texture_patterns_keep(lane, memory);
    own->is_ahead = false;
    if (own->base.demand.ahead)
        cuda_take(&memory->device, &own->ahead_maps, TEXTURE_PATTERNS * rows,
                  ((size_t)lane->extent.columns + 3) / 4 * 4);
}

/* Parts that fit in a batch of maps: some slices, or some rows of one slice. */
struct pattern_parts {
    uint32_t slices, rows; /* total rows of codes */
    uint32_t slices_each, rows_each;
    size_t across, count;
};

static struct pattern_parts
cut_into_parts(const struct cuda_lane *lane)
{
    const size_t room = cuda_patterns_state(&lane->base)->map_rows;
    struct pattern_parts parts;

    parts.slices = (uint32_t)lane->base.extent.slices;
    parts.rows = (uint32_t)(lane->base.extent.rows - 2);
    /* With the two rows that their codes need besides, parts of a large slice follow the pieces of its upload. */
    parts.rows_each = parts.rows <= room ? parts.rows : (uint32_t)(room > 2 ? room - 2 : room);
    parts.slices_each = (uint32_t)texture_least(texture_least(parts.slices, GRID_MOST), room / parts.rows_each);
    if (parts.rows_each < parts.rows)
        parts.slices_each = 1;
    parts.across = (parts.rows + parts.rows_each - 1) / parts.rows_each;
    parts.count = (parts.slices + parts.slices_each - 1) / parts.slices_each * parts.across;
    return parts;
}

/* Regions of one pass, and whether the pass returns maps. */
struct pattern_turn {
    const struct texture_patterns *request;
    size_t first_region, regions;
    bool maps;
};

static uint8_t *
map_of(const struct cuda_lane *lane, uint8_t *maps, int pattern)
{
    return maps +
           (size_t)pattern * cuda_patterns_state(&lane->base)->map_rows * cuda_patterns_state(&lane->base)->map_pitch;
}

/* Queues the copy of a region's words for a part, and the counting of its codes. */
static int
queue_counts(struct cuda_lane *lane, const struct pattern_turn *turn, const struct pattern_job *job,
             struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_patterns *own = cuda_patterns_state(&lane->base);
    const size_t words_per_row = (job->columns + 63) / 64;
    const size_t first = (size_t)job->part.first_slice * job->row_count + job->part.first + 1;
    const size_t rows = (size_t)(job->part.slices - 1) * job->row_count + job->part.rows;

    for (size_t i = 0; i < turn->regions; i++) {
        const uint64_t *region = turn->request->regions[turn->first_region + i];
        const uint64_t *held = cuda_region_bits(lane, region);
        const uint64_t *on_device = held ? held + first * words_per_row : region ? own->counted.region : NULL;

        if (region && !held)
            CUDA_TRY(device,
                     cudaMemcpyAsync(own->counted.region, region + first * words_per_row,
                                     rows * words_per_row * sizeof(uint64_t), cudaMemcpyHostToDevice, lane->work));
        count_codes<<<(unsigned)device->multiprocessors * 2, COUNT_THREADS,
                      TEXTURE_PATTERNS * CODES * WARP * sizeof(uint32_t), lane->work>>>(
            *job, on_device, (uint32_t)words_per_row, own->counted.counts + i * TEXTURE_PATTERNS * CODES);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

/* Queues the copy of a part's maps to pinned memory, during the next part. */
static int
queue_maps(struct cuda_lane *lane, const struct pattern_job *job, int slot, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_patterns *own = cuda_patterns_state(&lane->base);
    const size_t rows = (size_t)job->part.slices * job->part.rows, width = job->columns - 2;
    const size_t first = (size_t)job->part.first_slice * (job->row_count - 2) + job->part.first;
    const dim3 grid((unsigned)device->multiprocessors * TIGHT_BLOCKS, TEXTURE_PATTERNS);
    struct tight_part tight = {};
    int count = 0;

    tight.width = (uint32_t)width;
    tight.rows = (uint32_t)rows;
    tight.words = (uint32_t)((rows * width + 3) / 4);
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        if (own->base.maps[p])
            tight.maps[p] = (uint32_t *)map_of(lane, own->tight[slot], count++);
    CUDA_TRY(device, cudaStreamWaitEvent(lane->work, own->fetched[slot], 0));
    tight_codes<<<grid, VOXEL_THREADS, 0, lane->work>>>(*job, tight);
    CUDA_LAUNCHED(device);
    CUDA_TRY(device, cudaEventRecord(own->made[slot], lane->work));
    CUDA_TRY(device, cudaStreamWaitEvent(lane->download, own->made[slot], 0));
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        if (own->base.maps[p])
            CUDA_TRY(device, cudaMemcpyAsync(own->base.maps[p] + first * width, tight.maps[p], rows * width,
                                             cudaMemcpyDeviceToHost, lane->download));
    CUDA_TRY(device, cudaEventRecord(own->fetched[slot], lane->download));
    return 0;
}

static struct pattern_job
pattern_job_of(const struct cuda_lane *lane, const struct texture_patterns *request)
{
    struct pattern_job job = {};

    job.voxels = lane->device_voxels;
    job.columns = (uint32_t)lane->base.extent.columns;
    job.row_count = (uint32_t)lane->base.extent.rows;
    job.pitch = (uint32_t)cuda_patterns_state(&lane->base)->map_pitch;
    job.strict = request->strict;
    job.integer_average = request->integer_average;
    job.threshold = request->threshold_millionths;
    return job;
}

static struct pattern_rows
part_of(const struct pattern_parts *parts, size_t i)
{
    struct pattern_rows part = {};

    part.first_slice = (uint32_t)(i / parts->across) * parts->slices_each;
    part.slices = (uint32_t)texture_least(parts->slices_each, parts->slices - part.first_slice);
    part.first = (uint32_t)(i % parts->across) * parts->rows_each;
    part.rows = (uint32_t)texture_least(parts->rows_each, parts->rows - part.first);
    return part;
}

/* The rows of voxels that the codes of a part need. */
struct pattern_needs {
    int64_t first, end;
};

static struct pattern_needs
needs_of(const struct pattern_job *job)
{
    const int64_t first = (int64_t)job->part.first_slice * job->row_count + job->part.first;

    return {first, first + (int64_t)(job->part.slices - 1) * job->row_count + job->part.rows + 2};
}

/* Queues the codes of a part, once its rows of voxels are there. */
static int
queue_part_codes(struct cuda_lane *lane, const struct texture_patterns *request, struct pattern_job *job,
                 struct error *error)
{
    const struct pattern_needs needs = needs_of(job);
    const int rc = cuda_await_rows(lane, needs.first, needs.end, error);

    if (rc)
        return rc;
    cuda_patterns_launch(request, job, lane->base.pixel, lane->work);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

/* Selects the memory for the codes of the job's part: of the whole volume, or of a batch. */
static void
place_codes(const struct cuda_lane *lane, const struct texture_patterns *request, bool ahead, struct pattern_job *job)
{
    const struct cuda_patterns *own = cuda_patterns_state(&lane->base);
    const size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);
    const size_t first = (size_t)job->part.first_slice * (job->row_count - 2) + job->part.first;

    for (int p = 0; p < TEXTURE_PATTERNS; p++) {
        job->maps[p] = NULL;
        if (request->wanted[p] && ahead)
            job->maps[p] = own->ahead_maps + ((size_t)p * rows + first) * own->map_pitch;
        else if (request->wanted[p])
            job->maps[p] = map_of(lane, own->maps, p);
    }
}

/* Queues the codes of the parts whose rows are being uploaded, in order. */
static int
patterns_go_ahead(struct kernels_lane *base, struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_patterns *own = cuda_patterns_state(base);
    const struct pattern_parts parts = cut_into_parts(lane);
    struct pattern_job job = pattern_job_of(lane, &own->ahead);
    int rc = 0;

    while (rc == 0 && own->ahead_parts < parts.count) {
        job.part = part_of(&parts, own->ahead_parts);
        const struct pattern_needs needs = needs_of(&job);

        if (!cuda_rows_are_queued(lane, needs.first, needs.end))
            break;
        place_codes(lane, &own->ahead, true, &job);
        rc = queue_part_codes(lane, &own->ahead, &job, error);
        own->ahead_parts++;
    }
    return rc;
}

static int
cuda_patterns_begin(struct kernels_lane *base, const void *given, struct error *error)
{
    struct cuda_patterns *own = cuda_patterns_state(base);

    (void)error;
    own->ahead = *(const struct texture_patterns *)given;
    own->is_ahead = base->extent.columns >= WINDOW && base->extent.rows >= WINDOW;
    own->ahead_parts = 0;
    return 0;
}

/* All of it is in `queued`. */
static int
cuda_patterns_ready(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error)
{
    (void)lane;
    (void)first;
    (void)count;
    (void)error;
    return 0;
}

static int
cuda_patterns_queued(struct kernels_lane *lane, struct error *error)
{
    return cuda_patterns_state(lane)->is_ahead ? patterns_go_ahead(lane, error) : 0;
}

/* Returns whether the codes of the request were made ahead. */
static bool
patterns_are_made(const struct cuda_patterns *own, const struct texture_patterns *request)
{
    bool same = own->is_ahead && request->threshold_millionths == own->ahead.threshold_millionths &&
                request->strict == own->ahead.strict && request->integer_average == own->ahead.integer_average;

    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        same &= request->wanted[p] == own->ahead.wanted[p] && !request->maps[p];
    return same;
}

/* Runs all parts. All work is in one stream, so that a part's codes are counted and packed before
 * the next part overwrites them. */
static int
run_parts(struct cuda_lane *lane, const struct pattern_turn *turn, struct error *error)
{
    const struct pattern_parts parts = cut_into_parts(lane);
    const struct texture_patterns *request = turn->request;
    const bool made = patterns_are_made(cuda_patterns_state(&lane->base), request);
    struct pattern_job job = pattern_job_of(lane, request);
    bool maps = false;
    int rc = 0;

    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        maps |= turn->maps && request->maps[p];
    for (size_t i = 0; rc == 0 && i < parts.count; i++) {
        job.part = part_of(&parts, i);
        place_codes(lane, request, made, &job);
        if (!made)
            rc = queue_part_codes(lane, request, &job, error);
        if (rc == 0)
            rc = queue_counts(lane, turn, &job, error);
        if (rc == 0 && maps)
            rc = queue_maps(lane, &job, (int)(i % TEXTURE_MAP_BATCHES), error);
    }
    if (rc == 0 && maps)
        CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->download));
    return rc;
}

static int
run_turn(struct cuda_lane *lane, const struct pattern_turn *turn, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_patterns *own = cuda_patterns_state(&lane->base);
    const size_t bytes = turn->regions * TEXTURE_PATTERNS * CODES * sizeof(uint64_t);
    int rc;

    if (bytes > 0)
        CUDA_TRY(device, cudaMemsetAsync(own->counted.counts, 0, bytes, lane->work));
    rc = run_parts(lane, turn, error);
    if (rc || bytes == 0)
        return rc;
    CUDA_TRY(device,
             cudaMemcpyAsync(own->counted.host_counts, own->counted.counts, bytes, cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    memcpy(turn->request->histograms + turn->first_region * TEXTURE_PATTERNS * CODES, own->counted.host_counts, bytes);
    return 0;
}

static int
cuda_patterns_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_patterns *request = (const struct texture_patterns *)given;
    struct cuda_lane *lane = cuda_lane_of(base);
    const struct image_extent *extent = &lane->base.extent;
    struct pattern_turn turn = {request, 0, 0, true};
    int rc;

    if (extent->columns < 3 || extent->rows < 3) {
        if (request->region_count > 0)
            memset(request->histograms, 0, request->region_count * TEXTURE_PATTERNS * CODES * sizeof(uint64_t));
        return 0;
    }
    CUDA_TRY(cuda_device_of(&lane->base),
             cudaFuncSetAttribute(count_codes, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)(TEXTURE_PATTERNS * CODES * WARP * sizeof(uint32_t))));
    do {
        turn.regions = texture_least(REGIONS, request->region_count - turn.first_region);
        rc = run_turn(lane, &turn, error);
        turn.first_region += turn.regions;
        turn.maps = false;
    } while (rc == 0 && turn.first_region < request->region_count);
    return rc;
}

const struct kernels_op cuda_patterns_op = {
    /* .name = */ "texture (local patterns)",
    /* .state_size = */ sizeof(struct cuda_patterns),
    /* .transient = */ true,
    /* .awaits = */ true,
    /* .open = */ patterns_open,
    /* .close = */ patterns_close,
    /* .needs = */ texture_patterns_needs,
    /* .place = */ cuda_patterns_place,
    /* .begin = */ cuda_patterns_begin,
    /* .ready = */ cuda_patterns_ready,
    /* .run = */ cuda_patterns_run,
    /* .keep = */ cuda_patterns_keep,
    /* .queued = */ cuda_patterns_queued,
};
