/*
 * glcm_cuda.cu - grey level co-occurrence matrices and value histograms (paper 002) on the GPU.
 *
 * The paper's scheme 2 keeps copies of a matrix in shared memory, so that threads rarely meet at
 * one counter. Here every lane of a warp has a copy of its own, and copies are interleaved: counter
 * b of lane l is word 32 b + l, which is bank l whatever b is. An atomic addition of a warp then
 * never has a conflict, on smooth images as on rough ones.
 *
 * Levels are codes of one byte, 0 .. L - 1, and L for what does not count: beyond the image, left
 * out, outside of the region. So pairs need no tests at edges, their counters are dropped in the
 * end. Where the table is a plain shift of bytes (floor(g L / 256)) and there is no region, the
 * stored values are shifted as they are read; else a pass writes the codes first.
 *
 * For few levels one counter stands for three voxels v, v + o, v + 2o, which is two pairs an
 * addition; the pairs are summed from them in the end.
 *
 * A thread takes 16 codes of a row, which lie in one aligned load; a warp takes 512 codes, a
 * "span"; a block takes part of one matrix, and adds its counters to the results in the end.
 */
#include "texture_cuda.cuh"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 1024,
    WARP = 32,
    A_THREAD = 16, /* codes of a load */
    A_SPAN = WARP * A_THREAD,
    VALUES_HALF = 1 << 15,  /* counters of 16-bit values that fit shared memory */
    STRIP_BYTES = 16 << 10, /* of rows that are taken through all slices before the next ones */
};

static struct divider
divider_of(uint32_t by)
{
    struct divider divider = {by, 0, 31};
    uint32_t log = 0;

    while ((UINT64_C(1) << log) < by)
        log++;
    divider.factor = (uint32_t)(((UINT64_C(1) << (31 + log)) + by - 1) / by);
    divider.shift = 31 + log;
    return divider;
}

static __device__ __forceinline__ uint32_t
divide(uint32_t number, struct divider divider)
{
    return (uint32_t)((uint64_t)number * divider.factor >> divider.shift);
}

struct codes {
    uint32_t word[4];
};

/* 16 bytes on their way from memory, if there are any. */
struct loaded {
    uint4 bytes;
    bool there;
};

static __device__ __forceinline__ struct loaded
load(const struct glcm_image &image, const uint8_t *row, int32_t x, bool inside)
{
    struct loaded loaded = {{0, 0, 0, 0}, inside && (uint32_t)x < image.pitch};

    if (loaded.there)
        loaded.bytes = __ldg((const uint4 *)(row + x));
    return loaded;
}

template <bool SHIFTED>
static __device__ __forceinline__ struct codes
codes_of(const struct glcm_image &image, const struct loaded &loaded)
{
    struct codes codes = {{loaded.bytes.x, loaded.bytes.y, loaded.bytes.z, loaded.bytes.w}};

#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (SHIFTED)
            codes.word[i] = codes.word[i] >> image.shift & image.mask;
        codes.word[i] = loaded.there ? codes.word[i] : image.none;
    }
    return codes;
}

/* 16 of 32 codes, from the one at 4 * STEP + bits / 8 on. */
template <int STEP>
static __device__ __forceinline__ struct codes
join(const struct codes &left, const struct codes &right, uint32_t bits)
{
    struct codes moved;
    uint32_t all[8];

#pragma unroll
    for (int i = 0; i < 4; i++) {
        all[i] = left.word[i];
        all[i + 4] = right.word[i];
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        moved.word[i] = __funnelshift_r(all[STEP + i], all[STEP + i + 1], bits);
    return moved;
}

static __device__ __forceinline__ void
count(unsigned char *counters, uint32_t at)
{
    atomicAdd((unsigned *)(counters + at), 1u);
}

/* Four pairs of codes; `scale`: bytes from one first code to the next, and from one second. */
static __device__ __forceinline__ void
count_pairs(unsigned char *counters, uint32_t scale, uint32_t own, uint32_t a, uint32_t b)
{
    uint32_t low = __byte_perm(a, b, 0x5140), high = __byte_perm(a, b, 0x7362);

    count(counters, __dp2a_lo(scale, low, own));
    count(counters, __dp2a_hi(scale, low, own));
    count(counters, __dp2a_lo(scale, high, own));
    count(counters, __dp2a_hi(scale, high, own));
}

/*
 * All spans of the block's part, each by fetch(span, in it) and then tally(what was fetched): a
 * warp has the loads of DEPTH spans under way while it counts as many others. in_it: it is one.
 */
template <int DEPTH, typename Fetched, typename Fetch, typename Tally>
static __device__ __forceinline__ void
each_span(uint32_t total, const Fetch &fetch, const Tally &tally)
{
    const uint32_t step = THREADS / WARP;
    const uint32_t end = (uint32_t)((uint64_t)total * (blockIdx.x + 1) / gridDim.x);
    uint32_t span = (uint32_t)((uint64_t)total * blockIdx.x / gridDim.x) + threadIdx.x / WARP;
    Fetched now[DEPTH], next[DEPTH];

#pragma unroll
    for (int i = 0; i < DEPTH; i++)
        now[i] = fetch(span + i * step, span + i * step < end);
    for (; span < end; span += DEPTH * step) {
#pragma unroll
        for (int i = 0; i < DEPTH; i++)
            next[i] = fetch(span + (DEPTH + i) * step, span + (DEPTH + i) * step < end);
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            tally(now[i]);
            now[i] = next[i];
        }
    }
}

/* Where row `index` of the matrix is: strip by strip, in each through all slices. */
static __device__ __forceinline__ void
locate_row(const struct glcm_image &image, uint32_t index, int32_t *y, int32_t *z)
{
    uint32_t strip = divide(index, image.strips);
    uint32_t within = index - strip * image.strips.by;
    bool last = strip == image.last_strip;
    uint32_t slice = divide(within, last ? image.last : image.strip);

    *z = (int32_t)slice;
    *y = (int32_t)(strip * image.strip.by + within -
                   slice * (last ? image.last.by : image.strip.by));
}

struct fetched_pairs {
    struct loaded a, left, right;
};

template <bool SHIFTED, int STEP>
static __device__ void
count_matrix(const struct glcm_image &image, const struct glcm_matrix &matrix,
             unsigned char *counters)
{
    const uint32_t size = image.copies * (uint32_t)sizeof(uint32_t);
    const uint32_t scale = (image.levels + 1) * size | size << 16;
    const uint32_t own = (threadIdx.x & (image.copies - 1)) * (uint32_t)sizeof(uint32_t);
    const uint32_t bits = (uint32_t)(matrix.x & 3) * 8;
    const int32_t aligned = matrix.x & ~15;
    const auto fetch = [&](uint32_t span, bool in_it) {
        uint32_t row = divide(span, matrix.across);
        int32_t x =
            (int32_t)((span - row * matrix.across.by) * A_SPAN + threadIdx.x % WARP * A_THREAD);
        int32_t y, z;
        struct fetched_pairs fetched;

        locate_row(image, row, &y, &z);
        z += matrix.first_slice;
        in_it = in_it && (uint32_t)(y + matrix.y) < image.row_count &&
                (uint32_t)(z + matrix.z) < image.slices;
        const uint8_t *here = image.rows + ((size_t)z * image.row_count + (size_t)y) * image.pitch;
        const uint8_t *there =
            here + ((int64_t)matrix.z * image.row_count + matrix.y) * (int64_t)image.pitch;

        fetched.a = load(image, here, x, in_it);
        fetched.left = load(image, there, x + aligned, fetched.a.there);
        fetched.right = load(image, there, x + aligned + A_THREAD, fetched.a.there);
        return fetched;
    };

    each_span<1, fetched_pairs>(matrix.spans, fetch, [&](const fetched_pairs &fetched) {
        struct codes a = codes_of<SHIFTED>(image, fetched.a);
        struct codes b = join<STEP>(codes_of<SHIFTED>(image, fetched.left),
                                    codes_of<SHIFTED>(image, fetched.right), bits);

#pragma unroll
        for (int i = 0; i < 4; i++)
            if (SHIFTED || a.word[i] != image.none)
                count_pairs(counters, scale, own, a.word[i], b.word[i]);
    });
}

struct fetched_row {
    struct loaded codes;
    uint32_t next;
    bool has_next;
};

/* Three voxels a counter: v at an even x, v + 1, v + 2. */
template <bool SHIFTED>
static __device__ void
count_rows(const struct glcm_image &image, const struct glcm_matrix &matrix,
           unsigned char *counters)
{
    const uint32_t k = image.levels + 1, size = WARP * (uint32_t)sizeof(uint32_t);
    const uint32_t scale = k * k | k << 8 | 1 << 16;
    const uint32_t own = threadIdx.x % WARP * (uint32_t)sizeof(uint32_t);
    const uint8_t *first = image.rows + (size_t)matrix.first_slice * image.row_count * image.pitch;
    const auto fetch = [&](uint32_t span, bool in_it) {
        uint32_t row = divide(span, matrix.across);
        int32_t x =
            (int32_t)((span - row * matrix.across.by) * A_SPAN + threadIdx.x % WARP * A_THREAD);
        const uint8_t *codes = first + (size_t)row * image.pitch;
        struct fetched_row fetched = {load(image, codes, x, in_it), 0, false};

        fetched.has_next = fetched.codes.there && (uint32_t)x + A_THREAD < image.pitch;
        if (fetched.has_next)
            fetched.next = __ldg(codes + x + A_THREAD);
        return fetched;
    };

    each_span<2, fetched_row>(matrix.spans, fetch, [&](const fetched_row &fetched) {
        struct codes codes = codes_of<SHIFTED>(image, fetched.codes);
        uint32_t next = SHIFTED ? fetched.next >> image.shift & image.mask : fetched.next;
        const uint32_t words[5] = {codes.word[0], codes.word[1], codes.word[2], codes.word[3],
                                   fetched.has_next ? next : image.none};

#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t second = __funnelshift_r(words[i], words[i + 1], 16);

            if (!SHIFTED && words[i] == image.none)
                continue;
            count(counters, __dp4a(words[i], scale, 0u) * size + own);
            count(counters, __dp4a(second, scale, 0u) * size + own);
        }
    });
}

struct fetched_column {
    struct loaded a, b, beside_b, c, beside_c;
};

/* The codes a few steps of x from a thread's own; `beside` are those before or behind it. */
template <bool SHIFTED, int MOVE>
static __device__ __forceinline__ struct codes
moved_codes(const struct glcm_image &image, const struct loaded &own, const struct loaded &beside)
{
    if (MOVE == 0)
        return codes_of<SHIFTED>(image, own);
    if (MOVE > 0)
        return join<0>(codes_of<SHIFTED>(image, own), codes_of<SHIFTED>(image, beside),
                       8 * (MOVE & 3));
    return join<3>(codes_of<SHIFTED>(image, beside), codes_of<SHIFTED>(image, own), 8 * (4 + MOVE));
}

/*
 * Three voxels a counter: v, v + o, v + 2o, o = (DX, y, 0). Of 2 * y rows the first y are those of
 * first voxels. First voxels may be one step beside the image, where the second ones have nothing
 * to their other side.
 */
template <bool SHIFTED, int DX>
static __device__ void
count_down(const struct glcm_image &image, const struct glcm_matrix &matrix,
           unsigned char *counters)
{
    const uint32_t k = image.levels + 1, size = WARP * (uint32_t)sizeof(uint32_t);
    const uint32_t scale = k * size | size << 16;
    const uint32_t own = threadIdx.x % WARP * (uint32_t)sizeof(uint32_t);
    const uint32_t step = matrix.step.by, rows = image.row_count;
    const size_t down = (size_t)step * image.pitch;
    const auto fetch = [&](uint32_t span, bool in_it) {
        uint32_t row = divide(span, matrix.across), slice = divide(row, matrix.rows);
        uint32_t turn = row - slice * matrix.rows.by;
        uint32_t y = turn + divide(turn, matrix.step) * step;
        int32_t x = (DX > 0 ? -A_THREAD : 0) + (int32_t)((span - row * matrix.across.by) * A_SPAN +
                                                         threadIdx.x % WARP * A_THREAD);
        const uint8_t *first =
            image.rows + ((size_t)((uint32_t)matrix.first_slice + slice) * rows + y) * image.pitch;
        const int32_t beside = x + (DX > 0 ? A_THREAD : -A_THREAD);
        const bool second = in_it && y + step < rows, third = in_it && y + 2 * step < rows;
        struct fetched_column fetched;

        fetched.a = load(image, first, x, in_it);
        fetched.b = load(image, first + down, x, second);
        fetched.c = load(image, first + 2 * down, x, third);
        if (DX != 0) {
            fetched.beside_b = load(image, first + down, beside, second);
            fetched.beside_c = load(image, first + 2 * down, beside, third);
        }
        return fetched;
    };

    each_span<1, fetched_column>(matrix.spans, fetch, [&](const fetched_column &fetched) {
        struct codes a = codes_of<SHIFTED>(image, fetched.a);
        struct codes b = moved_codes<SHIFTED, DX>(image, fetched.b, fetched.beside_b);
        struct codes c = moved_codes<SHIFTED, 2 * DX>(image, fetched.c, fetched.beside_c);

#pragma unroll
        for (int i = 0; i < 4; i++)
            /* Four numbers below 12 * 12 are the first two codes together. */
            if (SHIFTED || b.word[i] != image.none)
                count_pairs(counters, scale, own, a.word[i] * k + b.word[i], c.word[i]);
    });
}

static __device__ void
clear_counters(uint32_t *counters, uint32_t count)
{
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        counters[i] = 0;
    __syncthreads();
}

/* All copies of a counter; each thread begins with another bank. */
static __device__ unsigned long long
sum_copies(const uint32_t *counters, uint32_t counter, uint32_t copies)
{
    unsigned long long sum = 0;

    for (uint32_t i = 0; i < copies; i++)
        sum += counters[counter * copies + ((i + threadIdx.x) & (copies - 1))];
    return sum;
}

static __device__ void
add_pair(unsigned long long *counts, uint32_t levels, bool reversed, uint32_t a, uint32_t b,
         unsigned long long number)
{
    if (number != 0 && a < levels && b < levels)
        atomicAdd(&counts[reversed ? b * levels + a : a * levels + b], number);
}

static __device__ void
hand_over_pairs(const struct glcm_image &image, const struct glcm_matrix &matrix,
                const uint32_t *counters, unsigned long long *counts)
{
    const uint32_t k = image.levels + 1;

    for (uint32_t i = threadIdx.x; i < k * k; i += THREADS)
        add_pair(counts, image.levels, matrix.reversed != 0, i / k, i % k,
                 sum_copies(counters, i, image.copies));
}

/* `pairs`: k * k counters behind the others, 0 before. */
static __device__ void
hand_over_triples(const struct glcm_image &image, const struct glcm_matrix &matrix,
                  const uint32_t *counters, uint32_t *pairs, unsigned long long *counts)
{
    const uint32_t k = image.levels + 1;

    for (uint32_t i = threadIdx.x; i < k * k * k; i += THREADS) {
        uint32_t sum = (uint32_t)sum_copies(counters, i, WARP);

        if (sum == 0)
            continue;
        atomicAdd(&pairs[i / k], sum);
        atomicAdd(&pairs[i % (k * k)], sum);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < k * k; i += THREADS)
        add_pair(counts, image.levels, matrix.reversed != 0, i / k, i % k, pairs[i]);
}

template <bool SHIFTED>
static __device__ __forceinline__ void
count_any(const struct glcm_image &image, const struct glcm_matrix &matrix, unsigned char *counters)
{
    switch (matrix.way) {
    case GLCM_ROW:
        count_rows<SHIFTED>(image, matrix, counters);
        return;
    case GLCM_DOWN_LEFT:
        count_down<SHIFTED, -1>(image, matrix, counters);
        return;
    case GLCM_DOWN:
        count_down<SHIFTED, 0>(image, matrix, counters);
        return;
    case GLCM_DOWN_RIGHT:
        count_down<SHIFTED, 1>(image, matrix, counters);
        return;
    }
    switch (matrix.x >> 2 & 3) {
    case 0:
        count_matrix<SHIFTED, 0>(image, matrix, counters);
        return;
    case 1:
        count_matrix<SHIFTED, 1>(image, matrix, counters);
        return;
    case 2:
        count_matrix<SHIFTED, 2>(image, matrix, counters);
        return;
    case 3:
        count_matrix<SHIFTED, 3>(image, matrix, counters);
        return;
    }
}

/* Part blockIdx.x of matrix blockIdx.y, whose counts are 0 before. */
template <bool SHIFTED>
static __global__ void
__launch_bounds__(THREADS) glcm_count(struct glcm_image image, const struct glcm_matrix *matrices,
                                      unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const struct glcm_matrix matrix = matrices[blockIdx.y];
    const uint32_t k = image.levels + 1;
    const uint32_t used =
        matrix.way == GLCM_PAIRS ? k * k * image.copies : k * k * k * WARP + k * k;
    uint32_t *counters = (uint32_t *)shared_counters;

    counts += (size_t)blockIdx.y * image.levels * image.levels;
    clear_counters(counters, used);
    count_any<SHIFTED>(image, matrix, shared_counters);
    __syncthreads();
    if (matrix.way == GLCM_PAIRS)
        hand_over_pairs(image, matrix, counters, counts);
    else
        hand_over_triples(image, matrix, counters, counters + k * k * k * WARP, counts);
}

/* Codes */

/* 16 stored values, 0 where the row has no more of them. */
template <typename Value>
static __device__ __forceinline__ void
load_values(const Value *row, uint32_t x, uint32_t columns, Value values[A_THREAD])
{
    const uint32_t words_of = A_THREAD * sizeof(Value) / sizeof(uint4);

    if (columns % A_THREAD == 0) {
        const uint4 *from = (const uint4 *)(row + x);
        uint4 loaded[words_of];

#pragma unroll
        for (uint32_t i = 0; i < words_of; i++)
            loaded[i] = __ldg(from + i);
        memcpy(values, loaded, sizeof(loaded));
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < A_THREAD; i++)
        values[i] = x + i < columns ? row[x + i] : 0;
}

/* Codes of slices first .. first + gridDim.y - 1, table 0 being that of the first. */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS) make_codes(struct glcm_volume volume, uint32_t first)
{
    __shared__ uint16_t shared_table[256];
    const uint32_t z = first + blockIdx.y;
    const uint16_t *table =
        volume.tables + (volume.table_a_slice ? (size_t)blockIdx.y << 8 * sizeof(Value) : 0);

    if (sizeof(Value) == 1) {
        if (threadIdx.x < 256)
            shared_table[threadIdx.x] = table[threadIdx.x];
        __syncthreads();
    }
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < volume.rows * volume.pieces.by;
         i += gridDim.x * THREADS) {
        uint32_t y = divide(i, volume.pieces), x = (i - y * volume.pieces.by) * A_THREAD;
        size_t row = (size_t)z * volume.rows + y;
        size_t piece = row * volume.words_per_row * 4 + x / A_THREAD;
        uint32_t in = volume.region ? ((const uint16_t *)volume.region)[piece] : 0xFFFF;
        uint32_t counted = 0;
        Value values[A_THREAD];
        struct codes codes = {{0, 0, 0, 0}};

        load_values((const Value *)volume.voxels + row * volume.columns, x, volume.columns, values);
#pragma unroll
        for (uint32_t k = 0; k < A_THREAD; k++) {
            uint32_t value = (uint32_t)values[k] ^ volume.bias;
            uint32_t level = sizeof(Value) == 1 ? shared_table[value] : __ldg(table + value);
            bool counts = level != 0 && (in >> k & 1) != 0 && x + k < volume.columns;

            codes.word[k / 4] |= (counts ? level - 1 : volume.none) << 8 * (k % 4);
            counted |= (uint32_t)counts << k;
        }
        *(uint4 *)(volume.codes + row * volume.pitch + x) =
            make_uint4(codes.word[0], codes.word[1], codes.word[2], codes.word[3]);
        if (volume.counted)
            volume.counted[piece] = (uint16_t)counted;
    }
}

/*
 * Many levels: part blockIdx.x of matrix blockIdx.y, those of its rows (of levels) that are in turn
 * blockIdx.z. A code does not say any more that a voxel does not count; the bits do.
 */
static __global__ void
__launch_bounds__(THREADS)
    glcm_count_many(struct glcm_volume volume, uint32_t levels, uint32_t in_turn,
                    const struct glcm_matrix *matrices, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const struct glcm_matrix matrix = matrices[blockIdx.y];
    const uint64_t *counted = (const uint64_t *)volume.counted;
    const uint32_t lowest = blockIdx.z * in_turn;
    const uint64_t rows = (uint64_t)matrix.slice_count * volume.rows;
    uint32_t *counters = (uint32_t *)shared_counters;

    counts += (size_t)blockIdx.y * levels * levels;
    clear_counters(counters, in_turn * levels);
    for (uint64_t i = rows * blockIdx.x / gridDim.x + threadIdx.x / WARP;
         i < rows * (blockIdx.x + 1) / gridDim.x; i += THREADS / WARP) {
        int32_t y = (int32_t)(i % volume.rows);
        int32_t z = matrix.first_slice + (int32_t)(i / volume.rows);
        size_t a_row = (size_t)z * volume.rows + (size_t)y;
        size_t b_row = (size_t)((int64_t)a_row + (int64_t)matrix.z * volume.rows + matrix.y);

        if ((uint32_t)(y + matrix.y) >= volume.rows || (uint32_t)(z + matrix.z) >= volume.slices)
            continue;
        for (uint32_t x = threadIdx.x % WARP; x < volume.columns; x += WARP) {
            uint32_t other = x + (uint32_t)matrix.x;
            uint32_t a = volume.codes[a_row * volume.pitch + x] - lowest;

            if (a >= in_turn || other >= volume.columns ||
                !texture_in_region(counted, a_row, volume.words_per_row, x) ||
                !texture_in_region(counted, b_row, volume.words_per_row, other))
                continue;
            atomicAdd(&counters[a * levels + volume.codes[b_row * volume.pitch + other]], 1u);
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < in_turn * levels; i += THREADS)
        if (counters[i] != 0 && lowest * levels + i < levels * levels)
            atomicAdd(&counts[lowest * levels + i], (unsigned long long)counters[i]);
}

/* Value histograms */

/*
 * Part blockIdx.x of slices first .. first + slice_count - 1 of histogram blockIdx.y, of its values
 * those of half blockIdx.z (there is one half of bytes). Bytes have a counter for each lane.
 */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS) count_values(struct glcm_volume volume, uint32_t first,
                                        uint32_t slice_count, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const uint32_t values = sizeof(Value) == 1 ? 256 : VALUES_HALF;
    const uint32_t copies = sizeof(Value) == 1 ? WARP : 1;
    const uint32_t lowest = blockIdx.z * values;
    const uint64_t rows = (uint64_t)slice_count * volume.rows;
    const size_t first_row = (size_t)(first + blockIdx.y) * volume.rows;
    uint32_t *counters = (uint32_t *)shared_counters + threadIdx.x % copies;

    clear_counters((uint32_t *)shared_counters, values * copies);
    for (uint64_t i = rows * blockIdx.x / gridDim.x + threadIdx.x / WARP;
         i < rows * (blockIdx.x + 1) / gridDim.x; i += THREADS / WARP) {
        const Value *row = (const Value *)volume.voxels + (first_row + i) * volume.columns;

#pragma unroll 4
        for (uint32_t x = threadIdx.x % WARP; x < volume.columns; x += WARP) {
            uint32_t value = (__ldg(row + x) ^ volume.bias) - lowest;

            if (value < values &&
                texture_in_region(volume.region, first_row + i, volume.words_per_row, x))
                atomicAdd(&counters[value * copies], 1u);
        }
    }
    __syncthreads();
    counts += (size_t)blockIdx.y * values * gridDim.z + lowest;
    for (uint32_t i = threadIdx.x; i < values; i += THREADS) {
        unsigned long long sum = sum_copies((const uint32_t *)shared_counters, i, copies);

        if (sum != 0)
            atomicAdd(&counts[i], sum);
    }
}

/* A lane */

static size_t
values_of(const struct cuda_lane *lane)
{
    return lane->base.pixel == KERNELS_UINT8 ? 256 : 65536;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
most(size_t a, size_t b)
{
    return a > b ? a : b;
}

int
cuda_texture_open(struct cuda_lane *lane)
{
    lane->texture = (struct cuda_texture *)calloc(1, sizeof(*lane->texture));
    if (!lane->texture)
        return -ENOMEM;
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        cudaEvent_t *events[2] = {&lane->texture->made[i], &lane->texture->fetched[i]};

        for (cudaEvent_t *event : events) {
            cudaError_t error = CUDA_OF(cudaEventCreateWithFlags(event, cudaEventDisableTiming));

            if (error != cudaSuccess) {
                cuda_texture_close(lane);
                return cuda_failed(cuda_device_of(&lane->base), error, "cudaEventCreateWithFlags",
                                   NULL, 0);
            }
        }
    }
    return 0;
}

void
cuda_texture_close(struct cuda_lane *lane)
{
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        if (lane->texture->made[i])
            (void)cudaEventDestroy(lane->texture->made[i]);
        if (lane->texture->fetched[i])
            (void)cudaEventDestroy(lane->texture->fetched[i]);
    }
    free(lane->texture);
    lane->texture = NULL;
}

/* Sizes of the lane's pieces for its volume. */
static void
size_pieces(const struct cuda_lane *lane, struct cuda_texture *texture)
{
    size_t columns = (size_t)lane->base.extent.columns;
    size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);

    texture->code_pitch = (columns + A_THREAD - 1) / A_THREAD * A_THREAD;
    texture->map_pitch = (columns + 3) / 4 * 4;
    texture->map_rows = least(rows, most(1, TEXTURE_MAP_BYTES / texture->map_pitch));
    texture->words = (columns + 63) / 64 * rows;
}

bool
cuda_texture_needs(const struct cuda_lane *lane, struct cuda_needs *needs)
{
    size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);
    struct cuda_texture sizes = {};
    size_t maps;

    if (!lane->base.demand.texture)
        return true;
    size_pieces(lane, &sizes);
    maps = TEXTURE_PATTERNS * TEXTURE_MAP_BATCHES * sizes.map_rows;
    return cuda_needs_add(&needs->device, rows, sizes.code_pitch) &&
           cuda_needs_add(&needs->device, sizes.words, sizeof(uint64_t)) &&
           cuda_needs_add(&needs->device, TEXTURE_TABLES * values_of(lane), sizeof(uint16_t)) &&
           cuda_needs_add(&needs->device, TEXTURE_MATRICES, sizeof(struct glcm_matrix)) &&
           cuda_needs_add(&needs->pinned, TEXTURE_MATRICES, sizeof(struct glcm_matrix)) &&
           cuda_needs_add(&needs->device, TEXTURE_COUNTERS, sizeof(uint64_t)) &&
           cuda_needs_add(&needs->pinned, TEXTURE_COUNTERS, sizeof(uint64_t)) &&
           cuda_needs_add(&needs->device, maps, sizes.map_pitch) &&
           cuda_needs_add(&needs->device, TEXTURE_MAP_BATCHES, 256) &&
           cuda_needs_add(&needs->pinned, maps, sizes.map_pitch) &&
           cuda_needs_add(&needs->pinned, TEXTURE_MAP_BATCHES, 256);
}

void
cuda_texture_place(struct cuda_lane *lane)
{
    struct cuda_texture *texture = lane->texture;
    size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);
    size_t maps;

    if (!lane->base.demand.texture)
        return;
    size_pieces(lane, texture);
    maps = TEXTURE_PATTERNS * texture->map_rows * texture->map_pitch;
    texture->codes = (uint8_t *)cuda_arena_take(&lane->device, rows * texture->code_pitch);
    texture->region = (uint64_t *)cuda_arena_take(&lane->device, texture->words * sizeof(uint64_t));
    texture->tables = (uint16_t *)cuda_arena_take(&lane->device, TEXTURE_TABLES * values_of(lane) *
                                                                     sizeof(uint16_t));
    texture->matrices = (struct glcm_matrix *)cuda_arena_take(
        &lane->device, TEXTURE_MATRICES * sizeof(struct glcm_matrix));
    texture->host_matrices = (struct glcm_matrix *)cuda_arena_take(
        &lane->pinned, TEXTURE_MATRICES * sizeof(struct glcm_matrix));
    texture->counts =
        (unsigned long long *)cuda_arena_take(&lane->device, TEXTURE_COUNTERS * sizeof(uint64_t));
    texture->host_counts =
        (unsigned long long *)cuda_arena_take(&lane->pinned, TEXTURE_COUNTERS * sizeof(uint64_t));
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        texture->maps[i] = (uint8_t *)cuda_arena_take(&lane->device, maps);
        texture->host_maps[i] = (uint8_t *)cuda_arena_take(&lane->pinned, maps);
    }
}

int
cuda_texture_region(struct cuda_lane *lane, const uint64_t *region, const uint64_t **on_device,
                    char *reason, size_t reason_size)
{
    struct cuda_texture *texture = lane->texture;

    *on_device = region ? texture->region : NULL;
    if (region)
        CUDA_TRY(cuda_device_of(&lane->base),
                 cudaMemcpyAsync(texture->region, region, texture->words * sizeof(uint64_t),
                                 cudaMemcpyHostToDevice, lane->work));
    return 0;
}

static struct glcm_volume
volume_of(const struct cuda_lane *lane)
{
    const struct kernels_extent *extent = &lane->base.extent;
    struct glcm_volume volume = {};

    volume.voxels = lane->device_voxels;
    volume.bias = lane->base.pixel == KERNELS_INT16 ? 0x8000 : 0;
    volume.columns = (uint32_t)extent->columns;
    volume.rows = (uint32_t)extent->rows;
    volume.slices = (uint32_t)extent->slices;
    volume.words_per_row = (volume.columns + 63) / 64;
    volume.pitch = (uint32_t)lane->texture->code_pitch;
    volume.pieces = divider_of(volume.pitch / A_THREAD);
    volume.codes = lane->texture->codes;
    return volume;
}

/* Waits for `work`, and hands over counters that stand in pinned memory. */
static int
fetch_counts(struct cuda_lane *lane, size_t counters, uint64_t *counts, char *reason,
             size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;

    CUDA_TRY(device,
             cudaMemcpyAsync(texture->host_counts, texture->counts, counters * sizeof(uint64_t),
                             cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    memcpy(counts, texture->host_counts, counters * sizeof(uint64_t));
    return 0;
}

/* A request's plan */

/* How many bits floor(g L / 256) shifts by, if the table is that; else 0. */
static uint32_t
shift_of(const struct texture_levels *levels)
{
    uint32_t shift = 1;

    while (shift < 8 && 256 >> shift != levels->levels)
        shift++;
    for (uint32_t value = 0; shift < 8 && value < 256; value++)
        if (levels->level_of[value] != (value >> shift) + 1)
            return 0;
    return shift < 8 ? shift : 0;
}

static uint32_t
copies_that_fit(size_t counters, size_t shared)
{
    uint32_t copies = WARP;

    while (copies > 1 && counters * copies * sizeof(uint32_t) > shared)
        copies /= 2;
    return copies;
}

static void
plan_counters(const struct texture_glcm *request, size_t shared, struct glcm_plan *plan)
{
    size_t levels = (size_t)request->levels.levels, k = levels + 1;
    size_t triples = (k * k * k * WARP + k * k) * sizeof(uint32_t);

    plan->many = k * k * sizeof(uint32_t) > shared;
    if (plan->many) {
        plan->in_turn = (uint32_t)(shared / (levels * sizeof(uint32_t)));
        plan->shared = plan->in_turn * levels * sizeof(uint32_t);
        return;
    }
    plan->image.copies = copies_that_fit(k * k, shared);
    plan->triples = k <= 12 && triples <= shared; /* 12 * 12 is still a byte */
    plan->shared = k * k * plan->image.copies * sizeof(uint32_t);
    if (plan->triples)
        plan->shared = triples;
}

static void
plan_strips(const struct texture_glcm *request, struct glcm_image *image)
{
    uint32_t slices = request->per_slice ? 1 : image->slices;
    uint32_t strip = (uint32_t)most(1, least(image->row_count, STRIP_BYTES / image->pitch));

    image->strip = divider_of(strip);
    image->strips = divider_of(strip * slices);
    image->last = divider_of(image->row_count % strip ? image->row_count % strip : 1);
    image->last_strip = image->row_count % strip ? image->row_count / strip : UINT32_MAX;
}

static void
make_plan(const struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan)
{
    const struct kernels_extent *extent = &lane->base.extent;
    struct glcm_image *image = &plan->image;

    plan_counters(request, cuda_device_of(&lane->base)->shared_per_block, plan);
    plan->volume = volume_of(lane);
    if (!request->region && lane->base.pixel == KERNELS_UINT8 && request->levels.table_count == 1 &&
        extent->columns % A_THREAD == 0 && !plan->many)
        image->shift = shift_of(&request->levels);
    plan->shifted = image->shift != 0;
    image->rows = plan->shifted ? (const uint8_t *)lane->device_voxels : lane->texture->codes;
    image->pitch = plan->shifted ? (uint32_t)extent->columns : plan->volume.pitch;
    image->row_count = (uint32_t)extent->rows;
    image->slices = (uint32_t)extent->slices;
    image->mask = (0xFFu >> image->shift) * 0x01010101u;
    image->levels = (uint32_t)request->levels.levels;
    image->none = image->levels * 0x01010101u;
    plan->volume.none = plan->many ? 0 : (uint8_t)image->levels;
    plan->volume.counted = plan->many ? (uint16_t *)lane->texture->region : NULL;
    plan_strips(request, image);
}

/* (1, 0, 0), or (-1 .. 1, y, 0), or the opposite: three voxels a counter. */
static void
choose_way(const struct glcm_plan *plan, struct texture_offset offset, struct glcm_matrix *matrix)
{
    bool back = offset.y < 0 || (offset.y == 0 && offset.x < 0);

    matrix->x = offset.x;
    matrix->y = offset.y;
    matrix->z = offset.z;
    matrix->way = GLCM_PAIRS;
    if (!plan->triples || offset.z != 0 || offset.x < -1 || offset.x > 1)
        return;
    matrix->reversed = back;
    matrix->x = back ? -offset.x : offset.x;
    matrix->y = back ? -offset.y : offset.y;
    matrix->way = matrix->y == 0 ? GLCM_ROW : GLCM_DOWN + matrix->x;
}

static void
cut_into_spans(const struct glcm_image *image, struct glcm_matrix *matrix)
{
    bool down = matrix->way != GLCM_PAIRS && matrix->way != GLCM_ROW;
    uint32_t beside = down && matrix->x != 0 ? A_THREAD : 0, rows = image->row_count;
    uint32_t step = (uint32_t)matrix->y;

    if (down)
        rows = rows / (2 * step) * step + (uint32_t)least(rows % (2 * step), step);
    matrix->across = divider_of((image->pitch + beside + A_SPAN - 1) / A_SPAN);
    matrix->rows = divider_of(rows);
    matrix->step = divider_of(down ? step : 1);
    matrix->spans = matrix->across.by * rows * (uint32_t)matrix->slice_count;
}

/* Matrix `index` of the request: its slice is the slower one. */
static struct glcm_matrix
matrix_of(const struct glcm_plan *plan, const struct texture_glcm *request, size_t index)
{
    struct glcm_matrix matrix = {};

    matrix.first_slice = request->per_slice ? (int32_t)(index / request->offset_count) : 0;
    matrix.slice_count = request->per_slice ? 1 : (int32_t)plan->image.slices;
    choose_way(plan, request->offsets[index % request->offset_count], &matrix);
    cut_into_spans(&plan->image, &matrix);
    return matrix;
}

/* Spans are numbered in 31 bits; what has more has rows of a few voxels, and 2^31 of them. */
static bool
is_too_long(const struct cuda_lane *lane)
{
    const struct kernels_extent *extent = &lane->base.extent;
    size_t spans = (lane->texture->code_pitch + A_THREAD + A_SPAN - 1) / A_SPAN;

    return spans * (size_t)extent->rows * (size_t)extent->slices > INT32_MAX;
}

/* Tables may be many: so many slices at a time as there is room for. */
static int
queue_codes(struct cuda_lane *lane, const struct texture_glcm *request,
            const struct glcm_volume *volume, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const bool each = volume->table_a_slice;
    const size_t slices = volume->slices, values = values_of(lane);
    const size_t batch = each ? (size_t)TEXTURE_TABLES : (size_t)TEXTURE_MATRICES;

    for (size_t first = 0; first < slices; first += batch) {
        size_t count = least(batch, slices - first);
        size_t pieces = (size_t)volume->rows * volume->pieces.by;
        size_t parts = most(1, least((pieces + THREADS - 1) / THREADS,
                                     (size_t)device->multiprocessors * 2 / count));
        dim3 grid((unsigned)parts, (unsigned)count);

        if (each || first == 0)
            CUDA_TRY(device, cudaMemcpyAsync(lane->texture->tables,
                                             request->levels.level_of + (each ? first * values : 0),
                                             (each ? count : 1) * values * sizeof(uint16_t),
                                             cudaMemcpyHostToDevice, lane->work));
        if (lane->base.pixel == KERNELS_UINT8)
            make_codes<uint8_t><<<grid, THREADS, 0, lane->work>>>(*volume, (uint32_t)first);
        else
            make_codes<uint16_t><<<grid, THREADS, 0, lane->work>>>(*volume, (uint32_t)first);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

/* Blocks of a matrix, such that no counter of a block overflows. */
static unsigned
parts_of(const struct cuda_lane *lane, size_t matrices)
{
    const struct kernels_extent *extent = &lane->base.extent;
    size_t voxels = (size_t)(extent->columns * extent->rows * extent->slices);
    size_t processors = (size_t)cuda_device_of(&lane->base)->multiprocessors;

    return (unsigned)most(most(1, processors / matrices), (voxels >> 30) + 1);
}

static void
launch_matrices(struct cuda_lane *lane, const struct glcm_plan *plan, size_t matrices)
{
    const struct cuda_texture *texture = lane->texture;
    dim3 grid(parts_of(lane, matrices), (unsigned)matrices);

    if (plan->many) {
        grid.z = (plan->image.levels + plan->in_turn - 1) / plan->in_turn;
        glcm_count_many<<<grid, THREADS, plan->shared, lane->work>>>(
            plan->volume, plan->image.levels, plan->in_turn, texture->matrices, texture->counts);
    } else if (plan->shifted) {
        glcm_count<true><<<grid, THREADS, plan->shared, lane->work>>>(
            plan->image, texture->matrices, texture->counts);
    } else {
        glcm_count<false><<<grid, THREADS, plan->shared, lane->work>>>(
            plan->image, texture->matrices, texture->counts);
    }
}

static int
allow_shared(struct cuda_device *device, char *reason, size_t reason_size)
{
    const int bytes = (int)device->shared_per_block;
    const cudaFuncAttribute most_of = cudaFuncAttributeMaxDynamicSharedMemorySize;

    CUDA_TRY(device, cudaFuncSetAttribute(glcm_count<true>, most_of, bytes));
    CUDA_TRY(device, cudaFuncSetAttribute(glcm_count<false>, most_of, bytes));
    CUDA_TRY(device, cudaFuncSetAttribute(glcm_count_many, most_of, bytes));
    CUDA_TRY(device, cudaFuncSetAttribute(count_values<uint16_t>, most_of, bytes));
    return 0;
}

int
cuda_glcm_begin(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan,
                char *reason, size_t reason_size)
{
    int error;

    if (is_too_long(lane))
        return kernels_fail(-E2BIG, reason, reason_size, "there are too many rows for the GPU");
    make_plan(lane, request, plan);
    plan->volume.tables = lane->texture->tables;
    plan->volume.table_a_slice = request->levels.table_count > 1;
    error = allow_shared(cuda_device_of(&lane->base), reason, reason_size);
    if (error || plan->shifted)
        return error;
    error = cuda_texture_region(lane, request->region, &plan->volume.region, reason, reason_size);
    return error ? error : queue_codes(lane, request, &plan->volume, reason, reason_size);
}

int
cuda_glcm_send(struct cuda_lane *lane, const struct texture_glcm *request,
               const struct glcm_plan *plan, size_t first, size_t count, char *reason,
               size_t reason_size)
{
    struct cuda_texture *texture = lane->texture;

    for (size_t i = 0; i < count; i++)
        texture->host_matrices[i] = matrix_of(plan, request, first + i);
    CUDA_TRY(cuda_device_of(&lane->base), cudaMemcpyAsync(texture->matrices, texture->host_matrices,
                                                          count * sizeof(struct glcm_matrix),
                                                          cudaMemcpyHostToDevice, lane->work));
    return 0;
}

int
cuda_glcm_count(struct cuda_lane *lane, const struct glcm_plan *plan, size_t count, char *reason,
                size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const size_t counters = count * plan->image.levels * plan->image.levels;

    CUDA_TRY(device,
             cudaMemsetAsync(lane->texture->counts, 0, counters * sizeof(uint64_t), lane->work));
    launch_matrices(lane, plan, count);
    CUDA_LAUNCHED(device);
    return 0;
}

int
cuda_glcm_run(struct cuda_lane *lane, const struct texture_glcm *request, uint64_t *counts,
              char *reason, size_t reason_size)
{
    const size_t size = (size_t)request->levels.levels * (size_t)request->levels.levels;
    const size_t matrices =
        request->offset_count * (request->per_slice ? (size_t)lane->base.extent.slices : 1);
    const size_t batch = least(TEXTURE_MATRICES, TEXTURE_COUNTERS / size);
    struct glcm_plan plan = {};
    int error = cuda_glcm_begin(lane, request, &plan, reason, reason_size);

    for (size_t first = 0; error == 0 && first < matrices; first += batch) {
        size_t count = least(batch, matrices - first);

        error = cuda_glcm_send(lane, request, &plan, first, count, reason, reason_size);
        if (error == 0)
            error = cuda_glcm_count(lane, &plan, count, reason, reason_size);
        if (error == 0)
            error = fetch_counts(lane, count * size, counts + first * size, reason, reason_size);
    }
    return error;
}

/* Histograms first .. first + count - 1, each of slice_count slices. */
static int
run_histograms(struct cuda_lane *lane, const struct glcm_volume *volume, size_t first, size_t count,
               uint32_t slice_count, uint64_t *counts, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;
    const size_t values = values_of(lane);
    dim3 grid(parts_of(lane, count), (unsigned)count, values == 256 ? 1 : 2);

    CUDA_TRY(device,
             cudaMemsetAsync(texture->counts, 0, count * values * sizeof(uint64_t), lane->work));
    if (lane->base.pixel == KERNELS_UINT8)
        count_values<uint8_t><<<grid, THREADS, 256 * WARP * sizeof(uint32_t), lane->work>>>(
            *volume, (uint32_t)first, slice_count, texture->counts);
    else
        count_values<uint16_t><<<grid, THREADS, VALUES_HALF * sizeof(uint32_t), lane->work>>>(
            *volume, (uint32_t)first, slice_count, texture->counts);
    CUDA_LAUNCHED(device);
    return fetch_counts(lane, count * values, counts + first * values, reason, reason_size);
}

int
cuda_histogram_run(struct cuda_lane *lane, const uint64_t *region, bool per_slice, uint64_t *counts,
                   char *reason, size_t reason_size)
{
    const size_t histograms = per_slice ? (size_t)lane->base.extent.slices : 1;
    const size_t batch = TEXTURE_COUNTERS / values_of(lane);
    struct glcm_volume volume = volume_of(lane);
    const uint32_t slice_count = per_slice ? 1 : volume.slices;
    int error = allow_shared(cuda_device_of(&lane->base), reason, reason_size);

    if (!error)
        error = cuda_texture_region(lane, region, &volume.region, reason, reason_size);
    for (size_t first = 0; error == 0 && first < histograms; first += batch)
        error = run_histograms(lane, &volume, first, least(batch, histograms - first), slice_count,
                               counts, reason, reason_size);
    return error;
}
