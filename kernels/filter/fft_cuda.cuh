/*
 * fft_cuda.cuh - the transforms of fft.h on the GPU. A block transforms up to FFT_LINES lines in shared memory. A thread
 * has one line and about FFT_EACH values of each step. A step reads all its values before any is written, so that the
 * lines need their memory once. The first step reads its values by the caller's function, and the last one writes by it.
 *
 * Place p of line l is at p * pitch + l: threads with adjacent lines, and threads with adjacent places, then use
 * different banks. The sources that include this file must be compiled without contraction (kernels/CMakeLists.txt).
 */
#ifndef NOCTULE_KERNELS_FILTER_FFT_CUDA_CUH
#define NOCTULE_KERNELS_FILTER_FFT_CUDA_CUH

#include "kernels/filter/fft.h"

enum {
    FFT_LINES = 4,
    FFT_EACH = 8,
    FFT_THREADS = 256,     /* unless one line needs more */
    FFT_MAX_THREADS = 512, /* FFT_MAX_SIDE / FFT_EACH */
    FFT_BLOCKS = 2,        /* that a multiprocessor should have at a time, in the fast form: more spill registers */
};

/* Bounds of a kernel's forms. */
#define FFT_BOUNDS(FAST) __launch_bounds__(FAST ? FFT_THREADS : FFT_MAX_THREADS, FAST ? FFT_BLOCKS : 1)

/* How blocks transform lines of a length. */
struct fft_tile {
    struct fft_plan plan;          /* roots in device memory */
    uint32_t parts[FFT_MAX_STEPS]; /* 2^32 / c of each step, rounded up; c is the count in fft_lines.inc */
    int shift;                     /* 2^shift lines */
    int pitch;
};

static inline struct fft_tile
fft_tile_of(const struct fft_plan *plan)
{
    struct fft_tile tile = {};
    int64_t count = plan->side;

    tile.plan = *plan;
    tile.shift = 2;
    while (tile.shift > 0 && (plan->side << tile.shift) > FFT_EACH * FFT_THREADS)
        tile.shift--;
    tile.pitch = tile.shift == 2 ? FFT_LINES + 1 : 1 << tile.shift;
    for (int step = plan->steps - 1; step >= 0; step--) {
        count /= plan->radix[step];
        tile.parts[step] = (uint32_t)(((UINT64_C(1) << 32) + (uint64_t)count - 1) / (uint64_t)count); /* 0 for 1 */
    }
    return tile;
}

static inline unsigned
fft_threads(const struct fft_tile &tile)
{
    const int64_t threads = ((int64_t)tile.plan.side << tile.shift) / FFT_EACH;

    return (unsigned)(threads < 32 ? 32 : (threads + 31) / 32 * 32);
}

/* Returns whether the fast form of a kernel may run. */
static inline bool
fft_runs_fast(const struct fft_tile &tile)
{
    return fft_is_fast(&tile.plan) && fft_threads(tile) <= FFT_THREADS;
}

static inline size_t
fft_bytes(const struct fft_tile &tile)
{
    return (size_t)tile.plan.side * (size_t)tile.pitch * sizeof(double2);
}

/* The line of this thread, and its first place: of values, and of groups of a radix. */
__device__ static __forceinline__ int
fft_line(const struct fft_tile &tile)
{
    return (int)threadIdx.x & ((1 << tile.shift) - 1);
}

__device__ static __forceinline__ int
fft_first(const struct fft_tile &tile)
{
    return (int)threadIdx.x >> tile.shift;
}

__device__ static __forceinline__ int
fft_next(const struct fft_tile &tile)
{
    return (int)blockDim.x >> tile.shift;
}

__device__ static __forceinline__ double2
fft_swapped(double2 a)
{
    return make_double2(a.y, a.x);
}

__device__ static __forceinline__ double2
fft_plus(double2 a, double2 b)
{
    return make_double2(a.x + b.x, a.y + b.y);
}

__device__ static __forceinline__ double2
fft_minus(double2 a, double2 b)
{
    return make_double2(a.x - b.x, a.y - b.y);
}

/* Return a - i b and a + i b. */
__device__ static __forceinline__ double2
fft_minus_turned(double2 a, double2 b)
{
    return make_double2(a.x + b.y, a.y - b.x);
}

__device__ static __forceinline__ double2
fft_plus_turned(double2 a, double2 b)
{
    return make_double2(a.x - b.y, a.y + b.x);
}

__device__ static __forceinline__ double2
fft_times(double2 a, struct fft_value root)
{
    return make_double2(a.x * root.re - a.y * root.im, a.x * root.im + a.y * root.re);
}

template <int STRIDE>
__device__ static __forceinline__ void
fft_four(const double2 *t, double2 *x)
{
    const double2 a = fft_plus(t[0], t[2 * STRIDE]), b = fft_minus(t[0], t[2 * STRIDE]);
    const double2 c = fft_plus(t[STRIDE], t[3 * STRIDE]), d = fft_minus(t[STRIDE], t[3 * STRIDE]);

    x[0] = fft_plus(a, c);
    x[1] = fft_minus_turned(b, d);
    x[2] = fft_minus(a, c);
    x[3] = fft_plus_turned(b, d);
}

/* Transforms the values of a small radix in place. `turn`: length / radix, the distance of its roots. */
template <int RADIX>
__device__ static __forceinline__ void
fft_radix(double2 *t, const struct fft_value *roots, int turn)
{
    if constexpr (RADIX == 2) {
        const double2 sum = fft_plus(t[0], t[1]);

        t[1] = fft_minus(t[0], t[1]);
        t[0] = sum;
    } else if constexpr (RADIX == 4) {
        double2 x[4];

        fft_four<1>(t, x);
        for (int q = 0; q < 4; q++)
            t[q] = x[q];
    } else if constexpr (RADIX == 8) {
        const double half = 0x1.6a09e667f3bcdp-1; /* sqrt(1/2) */
        double2 even[4], odd[4];

        fft_four<2>(t, even);
        fft_four<2>(t + 1, odd);
        odd[1] = make_double2((odd[1].x + odd[1].y) * half, (odd[1].y - odd[1].x) * half);
        odd[3] = make_double2((odd[3].y - odd[3].x) * half, (odd[3].y + odd[3].x) * -half);
        t[0] = fft_plus(even[0], odd[0]);
        t[1] = fft_plus(even[1], odd[1]);
        t[2] = fft_minus_turned(even[2], odd[2]);
        t[3] = fft_plus(even[3], odd[3]);
        t[4] = fft_minus(even[0], odd[0]);
        t[5] = fft_minus(even[1], odd[1]);
        t[6] = fft_plus_turned(even[2], odd[2]);
        t[7] = fft_minus(even[3], odd[3]);
    } else {
        constexpr int half = RADIX / 2;
        double2 sums[half], differences[half], first = t[0];

#pragma unroll
        for (int j = 1; j <= half; j++) {
            sums[j - 1] = fft_plus(t[j], t[RADIX - j]);
            differences[j - 1] = fft_minus(t[j], t[RADIX - j]);
            t[0] = fft_plus(t[0], sums[j - 1]);
        }
#pragma unroll
        for (int q = 1; q <= half; q++) {
            double2 a = first, b = make_double2(0, 0);

#pragma unroll
            for (int j = 1; j <= half; j++) {
                const struct fft_value root = roots[q * j % RADIX * turn];

                a = make_double2(a.x + sums[j - 1].x * root.re, a.y + sums[j - 1].y * root.re);
                b = make_double2(b.x + differences[j - 1].x * root.im, b.y + differences[j - 1].y * root.im);
            }
            t[q] = fft_plus_turned(a, b);
            t[RADIX - q] = fft_minus_turned(a, b);
        }
    }
}

/* The places of a group of a step: element j is read at from + j * count, and written at to + j * stride. */
struct fft_group {
    int k, from, to;
};

__device__ static __forceinline__ struct fft_group
fft_group_at(int i, uint32_t parts, int count, int radix)
{
    struct fft_group group;

    group.k = count == 1 ? i : (int)((uint64_t)(uint32_t)i * parts >> 32);
    group.from = i + group.k * count * (radix - 1);
    group.to = i;
    return group;
}

/* Reads a group of a step, turned, and transforms it. FIRST: the step of length 1 has no turns. */
template <int RADIX, bool FIRST, typename From>
__device__ static __forceinline__ void
fft_read(double2 *t, const struct fft_value *roots, int side, struct fft_group group, int count, const From &from)
{
#pragma unroll
    for (int j = 0; j < RADIX; j++) {
        t[j] = from(group.from + j * count);
        if (!FIRST && j > 0 && group.k > 0)
            t[j] = fft_times(t[j], roots[j * group.k * count]);
    }
    fft_radix<RADIX>(t, roots, side / RADIX);
}

/* Runs a step of a small radix. */
template <int RADIX, bool FIRST, typename From, typename To>
__device__ static __forceinline__ void
fft_step(const struct fft_value *roots, int side, int shift, uint32_t parts, int count, const From &from, const To &to)
{
    constexpr int GROUPS = (FFT_EACH + RADIX - 1) / RADIX;
    const int groups = side / RADIX, first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    double2 t[GROUPS][RADIX];

#pragma unroll
    for (int g = 0; g < GROUPS; g++)
        if (first + g * next < groups)
            fft_read<RADIX, FIRST>(t[g], roots, side, fft_group_at(first + g * next, parts, count, RADIX), count, from);
    __syncthreads();
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
        if (first + g * next < groups)
#pragma unroll
            for (int q = 0; q < RADIX; q++)
                to(first + g * next + q * groups, t[g][q]);
    __syncthreads();
}

/* Returns element q of a group of sums and differences, and element radix - q in *other. */
__device__ static __forceinline__ double2
fft_prime_pair(const struct fft_value *roots, int turn, const double2 *group, int stride, int radix, int q,
               double2 *other)
{
    double2 a = group[0], b = make_double2(0, 0);

    for (int j = 1, at = q; j <= radix / 2; j++, at = at + q < radix ? at + q : at + q - radix) {
        const double2 sum = group[j * stride], difference = group[(radix - j) * stride];
        const struct fft_value root = roots[at * turn];

        a = q == 0 ? fft_plus(a, sum) : make_double2(a.x + sum.x * root.re, a.y + sum.y * root.re);
        b = make_double2(b.x + difference.x * root.im, b.y + difference.y * root.im);
    }
    *other = fft_minus_turned(a, b);
    return q == 0 ? a : fft_plus_turned(a, b);
}

/* Runs a step of a large prime: sums and differences first. `memory`: of the line. */
__device__ static __noinline__ void
fft_prime_step(const struct fft_value *roots, int side, int shift, int pitch, uint32_t parts, int radix, int count,
               double2 *memory)
{
    enum { PAIRS = FFT_EACH / 2 + 1 };

    const int half = radix / 2, groups = side / radix;
    const int first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    double2 low[PAIRS], high[PAIRS];

    for (int at = first; at < groups * half; at += next) {
        const int j = at % half + 1;
        const struct fft_group group = fft_group_at(at / half, parts, count, radix);
        double2 *const one = &memory[(group.from + j * count) * pitch];
        double2 *const two = &memory[(group.from + (radix - j) * count) * pitch];
        double2 a = *one, b = *two;

        if (group.k > 0) {
            a = fft_times(a, roots[j * group.k * count]);
            b = fft_times(b, roots[(radix - j) * group.k * count]);
        }
        *one = fft_plus(a, b);
        *two = fft_minus(a, b);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < PAIRS; n++) {
        const int at = first + n * next, i = at / (half + 1);

        if (i < groups)
            low[n] = fft_prime_pair(roots, groups, &memory[fft_group_at(i, parts, count, radix).from * pitch],
                                    count * pitch, radix, at % (half + 1), &high[n]);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < PAIRS; n++) {
        const int at = first + n * next, i = at / (half + 1), q = at % (half + 1);

        if (i < groups) {
            memory[(i + q * groups) * pitch] = low[n];
            if (q > 0)
                memory[(i + (radix - q) * groups) * pitch] = high[n];
        }
    }
    __syncthreads();
}

/* Runs a step in shared memory. A function of its own, since each kernel would have it several times. */
__device__ static __noinline__ void
fft_between(const struct fft_value *roots, int side, int shift, int pitch, uint32_t parts, int radix, int count,
            double2 *memory)
{
    const auto from = [&](int i) { return memory[i * pitch]; };
    const auto to = [&](int i, double2 value) { memory[i * pitch] = value; };

    switch (radix) {
    case 2:
        return fft_step<2, false>(roots, side, shift, parts, count, from, to);
    case 3:
        return fft_step<3, false>(roots, side, shift, parts, count, from, to);
    case 4:
        return fft_step<4, false>(roots, side, shift, parts, count, from, to);
    case 5:
        return fft_step<5, false>(roots, side, shift, parts, count, from, to);
    case 7:
        return fft_step<7, false>(roots, side, shift, parts, count, from, to);
    case 8:
        return fft_step<8, false>(roots, side, shift, parts, count, from, to);
    default:
        fft_prime_step(roots, side, shift, pitch, parts, radix, count, memory);
    }
}

/* Copies values by the caller's functions. */
template <typename From, typename To>
__device__ static __forceinline__ void
fft_copy(const struct fft_tile &tile, const From &from, const To &to)
{
    for (int i = fft_first(tile); i < tile.plan.side; i += fft_next(tile))
        to(i, from(i));
    __syncthreads();
}

/* As fft_run. */
template <typename From, typename To>
__device__ static __forceinline__ void
fft_run_fast(const struct fft_tile &tile, double2 *own, const From &from, const To &to)
{
    const struct fft_plan &plan = tile.plan;
    const auto load = [&](int i) { return own[i * tile.pitch]; };
    const auto store = [&](int i, double2 value) { own[i * tile.pitch] = value; };
    int step = plan.steps - 1, count = plan.side / plan.radix[step];

    if (plan.radix[step] == 8)
        fft_step<8, true>(plan.roots, plan.side, tile.shift, tile.parts[step], count, from, store);
    else
        fft_step<4, true>(plan.roots, plan.side, tile.shift, tile.parts[step], count, from, store);
    for (step--; step > 0; step--) {
        count /= plan.radix[step];
        if (plan.radix[step] == 8)
            fft_step<8, false>(plan.roots, plan.side, tile.shift, tile.parts[step], count, load, store);
        else if (plan.radix[step] == 4)
            fft_step<4, false>(plan.roots, plan.side, tile.shift, tile.parts[step], count, load, store);
        else
            fft_step<3, false>(plan.roots, plan.side, tile.shift, tile.parts[step], count, load, store);
    }
    if (plan.radix[0] == 8)
        fft_step<8, false>(plan.roots, plan.side, tile.shift, tile.parts[0], 1, load, to);
    else if (plan.radix[0] == 4)
        fft_step<4, false>(plan.roots, plan.side, tile.shift, tile.parts[0], 1, load, to);
    else
        fft_step<3, false>(plan.roots, plan.side, tile.shift, tile.parts[0], 1, load, to);
}

/*
 * Transforms lines: from(i) returns value i of the thread's line, and to(i, value) takes it. Both may use `memory`, of
 * fft_bytes(): `from` if it was written before a __syncthreads(), `to` for its own place. All threads of the block must
 * call. Ends with __syncthreads(). FAST: fft_is_fast().
 */
template <bool FAST, typename From, typename To>
__device__ static __forceinline__ void
fft_run(const struct fft_tile &tile, double2 *memory, const From &from, const To &to)
{
    const struct fft_plan &plan = tile.plan;
    double2 *const own = memory + fft_line(tile);
    const auto load = [&](int i) { return own[i * tile.pitch]; };
    const auto store = [&](int i, double2 value) { own[i * tile.pitch] = value; };

    if constexpr (FAST)
        fft_run_fast(tile, own, from, to);
    else {
        int count = plan.side;

        fft_copy(tile, from, store);
        for (int step = plan.steps - 1; step >= 0; step--) {
            count /= plan.radix[step];
            fft_between(plan.roots, plan.side, tile.shift, tile.pitch, tile.parts[step], plan.radix[step], count, own);
        }
        fft_copy(tile, load, to);
    }
}

#endif
