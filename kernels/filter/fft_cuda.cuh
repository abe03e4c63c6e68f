/*
 * fft_cuda.cuh - the transforms of fft.h on the GPU. A block transforms up to FFT_LINES lines in shared memory. A thread
 * has one line and about FFT_EACH values of each step. The first step reads its values by the caller's function, and the
 * last one writes by it.
 *
 * Place p of line l is at fft_slot(p) + l: threads with adjacent lines and with adjacent groups use different banks.
 *
 * The fast form has two memories in turn, so that a step waits once, for the values of the step before. Its roots are in
 * the order of the reads, and two steps of radix 3 are one of radix 9. The other form has one memory, and a step reads
 * all its values before any is written.
 *
 * The sources that include this file must be compiled without contraction (kernels/CMakeLists.txt).
 */
#ifndef NOCTULE_KERNELS_FILTER_FFT_CUDA_CUH
#define NOCTULE_KERNELS_FILTER_FFT_CUDA_CUH

#include "kernels/filter/fft.h"

enum {
    FFT_LINES = 4,
    FFT_EACH = 8,
    FFT_MOST = 9,          /* values of a thread in a step */
    FFT_THREADS = 256,     /* unless one line needs more */
    FFT_MAX_THREADS = 512, /* FFT_MAX_SIDE / FFT_EACH */
    FFT_BLOCKS = 3,        /* that a multiprocessor should have at a time, in the fast form */
    FFT_NO_PAD = 30,
    FFT_TURNS = 2, /* roots of all steps of the fast form, at most, per place */
};

/* Bounds of a kernel's forms. */
#define FFT_BOUNDS(FAST) __launch_bounds__(FAST ? FFT_THREADS : FFT_MAX_THREADS, FAST ? FFT_BLOCKS : 1)

/* A step of the fast form, of radix 8, 4, 3 or 9. */
struct fft_stage {
    int radix, count, groups;      /* count as in fft_lines.inc */
    int read, written;             /* slots between the values of a group */
    int length;                    /* of the transforms before it */
    uint32_t parts;                /* 2^32 / count, rounded up */
    const struct fft_value *turns; /* per root of the step, per k */
};

/* How blocks transform lines of a length. */
struct fft_tile {
    struct fft_plan plan;          /* roots in device memory */
    uint32_t parts[FFT_MAX_STEPS]; /* 2^32 / c of each step, rounded up; c is the count in fft_lines.inc */
    int shift;                     /* 2^shift lines */
    int pad;                       /* a slot is free after 2^pad places */
    int stages;
    struct fft_stage stage[FFT_MAX_STEPS]; /* in the order of the run */
    struct fft_value third;                /* w(1/3) */
};

static inline uint32_t
fft_parts(int64_t count)
{
    return (uint32_t)(((UINT64_C(1) << 32) + (uint64_t)count - 1) / (uint64_t)count); /* 0 for 1 */
}

static inline unsigned
fft_threads(const struct fft_tile &tile)
{
    const int64_t threads = (((int64_t)tile.plan.side << tile.shift) + FFT_EACH - 1) / FFT_EACH;

    return (unsigned)(threads < 32 ? 32 : (threads + 31) / 32 * 32);
}

/* Returns whether the fast form of a kernel may run. */
static inline bool
fft_runs_fast(const struct fft_tile &tile)
{
    return fft_is_fast(&tile.plan) && fft_threads(tile) <= FFT_THREADS;
}

__host__ __device__ static __forceinline__ int
fft_slot(const struct fft_tile &tile, int place)
{
    return (place + (place >> tile.pad)) << tile.shift;
}

/* Makes the stages of a fast plan. `turns`: device memory for FFT_TURNS values per place, after the roots. */
static inline void
fft_make_stages(struct fft_tile *tile, const struct fft_value *turns)
{
    const struct fft_plan *plan = &tile->plan;
    int length = 1;

    for (int step = plan->steps - 1; step >= 0; step--) {
        struct fft_stage *stage = &tile->stage[tile->stages++];

        stage->radix = plan->radix[step];
        if (stage->radix == 3 && step > 0 && plan->radix[step - 1] == 3) {
            stage->radix = 9;
            step--;
        }
        stage->length = length;
        stage->groups = plan->side / stage->radix;
        length *= stage->radix;
        stage->count = plan->side / length;
        stage->parts = fft_parts(stage->count);
        stage->turns = turns;
        turns += (stage->radix - 1) * stage->length;
        /* Values of a group must be at equal distances. */
        if (stage->groups % 8 != 0 || (stage->count % 8 != 0 && (stage->count > 1 || stage->radix != 8)))
            tile->pad = FFT_NO_PAD;
    }
    for (int s = 0; s < tile->stages; s++) {
        tile->stage[s].read = fft_slot(*tile, tile->stage[s].count);
        tile->stage[s].written = fft_slot(*tile, tile->stage[s].groups);
    }
}

static inline struct fft_tile
fft_tile_of(const struct fft_plan *plan)
{
    struct fft_tile tile = {};
    int64_t count = plan->side;

    tile.plan = *plan;
    tile.shift = 2;
    while (tile.shift > 0 && (plan->side << tile.shift) > FFT_EACH * FFT_THREADS)
        tile.shift--;
    for (int step = plan->steps - 1; step >= 0; step--) {
        count /= plan->radix[step];
        tile.parts[step] = fft_parts(count);
    }
    tile.third = fft_root(2, (double)(plan->side / 3 * 2) / plan->side);
    tile.pad = fft_runs_fast(tile) ? 3 : FFT_NO_PAD;
    if (fft_is_fast(plan))
        fft_make_stages(&tile, plan->roots + plan->side);
    return tile;
}

/* Fills the roots of a length and, behind them, those of the fast form: (1 + FFT_TURNS) per place. */
static inline void
fft_fill_turns(int32_t side, struct fft_value *roots)
{
    struct fft_plan plan;
    struct fft_value *turns = roots + side;

    fft_roots(side, roots);
    fft_plan_make(side, &plan);
    plan.roots = roots;

    const struct fft_tile tile = fft_tile_of(&plan);
    for (int s = 0; s < tile.stages; s++) {
        const struct fft_stage &stage = tile.stage[s];

        for (int j = 1; j < stage.radix; j++)
            for (int k = 0; k < stage.length; k++) {
                int at = j * k * stage.count;

                if (stage.radix == 9) /* two of the first step, two of each transform of the second */
                    at = j < 3 ? j * k * stage.count * 3
                               : (1 + (j - 3) % 2) * (k + (j - 3) / 2 * stage.length) * stage.count;
                *turns++ = roots[at];
            }
    }
}

/* Returns the memory of a block. */
static inline size_t
fft_bytes(const struct fft_tile &tile)
{
    const size_t one = (size_t)fft_slot(tile, tile.plan.side) * sizeof(double2);

    return fft_runs_fast(tile) ? 2 * one : one;
}

/* The memories of a block: `now` may be written. One, in the form that is not fast. */
struct fft_space {
    double2 *now, *other;
};

template <bool FAST>
__device__ static __forceinline__ struct fft_space
fft_space_of(const struct fft_tile &tile, double2 *memory)
{
    return {memory, FAST ? memory + fft_slot(tile, tile.plan.side) : memory};
}

__device__ static __forceinline__ void
fft_swap(struct fft_space &space)
{
    double2 *const now = space.now;

    space.now = space.other;
    space.other = now;
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

/* Transforms three values in place. `third`: w(1/3). */
__device__ static __forceinline__ void
fft_three(double2 *t, struct fft_value third)
{
    const double2 sum = fft_plus(t[1], t[2]), difference = fft_minus(t[1], t[2]);
    const double2 a = make_double2(t[0].x + sum.x * third.re, t[0].y + sum.y * third.re);
    const double2 b = make_double2(difference.x * third.im, difference.y * third.im);

    t[0] = fft_plus(t[0], sum);
    t[1] = fft_plus_turned(a, b);
    t[2] = fft_minus_turned(a, b);
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

/* The slot of a place in the form that is not fast, without padding. */
__device__ static __forceinline__ int
fft_spot(int shift, int place)
{
    return place << shift;
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

/* Reads a group of a step, turned, and transforms it. */
template <int RADIX, typename From>
__device__ static __forceinline__ void
fft_read(double2 *t, const struct fft_value *roots, int side, struct fft_group group, int count, const From &from)
{
#pragma unroll
    for (int j = 0; j < RADIX; j++) {
        t[j] = from(group.from + j * count);
        if (j > 0 && group.k > 0)
            t[j] = fft_times(t[j], roots[j * group.k * count]);
    }
    fft_radix<RADIX>(t, roots, side / RADIX);
}

/* Runs a step of a small radix. */
template <int RADIX, typename From, typename To>
__device__ static __forceinline__ void
fft_step(const struct fft_value *roots, int side, int shift, uint32_t parts, int count, const From &from, const To &to)
{
    constexpr int GROUPS = (FFT_EACH + RADIX - 1) / RADIX;
    const int groups = side / RADIX, first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    double2 t[GROUPS][RADIX];

#pragma unroll
    for (int g = 0; g < GROUPS; g++)
        if (first + g * next < groups)
            fft_read<RADIX>(t[g], roots, side, fft_group_at(first + g * next, parts, count, RADIX), count, from);
    __syncthreads();
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
        if (first + g * next < groups)
#pragma unroll
            for (int q = 0; q < RADIX; q++)
                to(first + g * next + q * groups, t[g][q]);
    __syncthreads();
}

/* Returns element q of a group of sums and differences, and element radix - q in *other. `first`: its first place. */
__device__ static __forceinline__ double2
fft_prime_pair(const struct fft_value *roots, int turn, const double2 *memory, int shift, int first, int count,
               int radix, int q, double2 *other)
{
    double2 a = memory[fft_spot(shift, first)], b = make_double2(0, 0);

    for (int j = 1, at = q; j <= radix / 2; j++, at = at + q < radix ? at + q : at + q - radix) {
        const double2 sum = memory[fft_spot(shift, first + j * count)];
        const double2 difference = memory[fft_spot(shift, first + (radix - j) * count)];
        const struct fft_value root = roots[at * turn];

        a = q == 0 ? fft_plus(a, sum) : make_double2(a.x + sum.x * root.re, a.y + sum.y * root.re);
        b = make_double2(b.x + difference.x * root.im, b.y + difference.y * root.im);
    }
    *other = fft_minus_turned(a, b);
    return q == 0 ? a : fft_plus_turned(a, b);
}

/* Runs a step of a large prime: sums and differences first. `memory`: of the line. */
__device__ static __noinline__ void
fft_prime_step(const struct fft_value *roots, int side, int shift, uint32_t parts, int radix, int count,
               double2 *memory)
{
    enum { PAIRS = FFT_EACH / 2 + 1 };

    const int half = radix / 2, groups = side / radix;
    const int first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    double2 low[PAIRS], high[PAIRS];

    for (int at = first; at < groups * half; at += next) {
        const int j = at % half + 1;
        const struct fft_group group = fft_group_at(at / half, parts, count, radix);
        double2 *const one = &memory[fft_spot(shift, group.from + j * count)];
        double2 *const two = &memory[fft_spot(shift, group.from + (radix - j) * count)];
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
            low[n] = fft_prime_pair(roots, groups, memory, shift, fft_group_at(i, parts, count, radix).from, count,
                                    radix, at % (half + 1), &high[n]);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < PAIRS; n++) {
        const int at = first + n * next, i = at / (half + 1), q = at % (half + 1);

        if (i < groups) {
            memory[fft_spot(shift, i + q * groups)] = low[n];
            if (q > 0)
                memory[fft_spot(shift, i + (radix - q) * groups)] = high[n];
        }
    }
    __syncthreads();
}

/* Runs a step in shared memory. A function of its own, since each kernel would have it several times. */
__device__ static __noinline__ void
fft_between(const struct fft_value *roots, int side, int shift, uint32_t parts, int radix, int count, double2 *memory)
{
    const auto from = [&](int i) { return memory[fft_spot(shift, i)]; };
    const auto to = [&](int i, double2 value) { memory[fft_spot(shift, i)] = value; };

    switch (radix) {
    case 2:
        return fft_step<2>(roots, side, shift, parts, count, from, to);
    case 3:
        return fft_step<3>(roots, side, shift, parts, count, from, to);
    case 4:
        return fft_step<4>(roots, side, shift, parts, count, from, to);
    case 5:
        return fft_step<5>(roots, side, shift, parts, count, from, to);
    case 7:
        return fft_step<7>(roots, side, shift, parts, count, from, to);
    case 8:
        return fft_step<8>(roots, side, shift, parts, count, from, to);
    default:
        fft_prime_step(roots, side, shift, parts, radix, count, memory);
    }
}

/* Calls body(i, n, slot) for the values that this thread reads by `from` in fft_run(), or writes by `to`. */
template <bool FAST, typename Body>
__device__ static __forceinline__ void
fft_each(const struct fft_tile &tile, int stage, const Body &body)
{
    const int line = fft_line(tile), radix = FAST ? tile.stage[stage].radix : 1;
    const int groups = FAST ? tile.stage[stage].groups : tile.plan.side;

    if (radix == 8) { /* without division */
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const int i = fft_first(tile) + n * groups;

            if (fft_first(tile) < groups)
                body(i, n, fft_slot(tile, i) + line);
        }
        return;
    }
#pragma unroll
    for (int n = 0; n < FFT_MOST; n++) {
        const int group = fft_first(tile) + n / radix * fft_next(tile), i = group + n % radix * groups;

        if (group < groups)
            body(i, n, fft_slot(tile, i) + line);
    }
}

/* Copies values by the caller's functions. */
template <typename From, typename To>
__device__ static __forceinline__ void
fft_copy(const struct fft_tile &tile, const From &from, const To &to)
{
#pragma unroll
    for (int n = 0; n < FFT_EACH; n++) {
        const int i = fft_first(tile) + n * fft_next(tile);

        if (i < tile.plan.side)
            to(i, from(i, n, fft_slot(tile, i) + fft_line(tile)), n, fft_slot(tile, i) + fft_line(tile));
    }
    __syncthreads();
}

/* Reads a group of a stage, turned, and transforms it. FIRST: length 1. */
template <int RADIX, bool FIRST, typename From>
__device__ static __forceinline__ void
fft_stage_read(const struct fft_tile &tile, const struct fft_stage &stage, int i, int n, double2 *t, const From &from)
{
    const int k = FIRST ? 0 : stage.count == 1 ? i : (int)((uint64_t)(uint32_t)i * stage.parts >> 32);
    const int place = FIRST ? i : i + k * stage.count * (RADIX - 1);
    const int slot = fft_slot(tile, place) + fft_line(tile);
    const struct fft_value *const turns = stage.turns + k;

#pragma unroll
    for (int j = 0; j < RADIX; j++)
        t[j] = from(place + j * stage.count, n + j, slot + j * stage.read);
    if constexpr (RADIX == 9) {
#pragma unroll
        for (int j = 0; j < 3; j++) {
            double2 x[3] = {t[j], t[j + 3], t[j + 6]};

            x[1] = fft_times(x[1], turns[0]);
            x[2] = fft_times(x[2], turns[stage.length]);
            fft_three(x, tile.third);
            t[j] = x[0];
            t[j + 3] = x[1];
            t[j + 6] = x[2];
        }
#pragma unroll
        for (int q = 0; q < 3; q++) {
            double2 x[3] = {t[3 * q], fft_times(t[3 * q + 1], turns[(2 + 2 * q) * stage.length]),
                            fft_times(t[3 * q + 2], turns[(3 + 2 * q) * stage.length])};

            fft_three(x, tile.third);
            t[3 * q] = x[0];
            t[3 * q + 1] = x[1];
            t[3 * q + 2] = x[2];
        }
    } else {
        if (!FIRST)
#pragma unroll
            for (int j = 1; j < RADIX; j++)
                t[j] = fft_times(t[j], turns[(j - 1) * stage.length]);
        if constexpr (RADIX == 3)
            fft_three(t, tile.third);
        else
            fft_radix<RADIX>(t, NULL, 0);
    }
}

/* Runs a stage. */
template <int RADIX, bool FIRST, typename From, typename To>
__device__ static __forceinline__ void
fft_stage_run(const struct fft_tile &tile, const struct fft_stage &stage, const From &from, const To &to)
{
    constexpr int GROUPS = (FFT_EACH + RADIX - 1) / RADIX;

#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const int i = fft_first(tile) + g * fft_next(tile);
        const int slot = fft_slot(tile, i) + fft_line(tile);
        double2 t[RADIX];

        if (i >= stage.groups)
            continue;
        fft_stage_read<RADIX, FIRST>(tile, stage, i, g * RADIX, t, from);
#pragma unroll
        for (int q = 0; q < RADIX; q++) /* of radix 9, t has element q at the place of its two digits exchanged */
            to(i + q * stage.groups, t[RADIX == 9 ? q % 3 * 3 + q / 3 : q], g * RADIX + q, slot + q * stage.written);
    }
}

/* As fft_run. */
template <typename From, typename To>
__device__ static __forceinline__ void
fft_run_fast(const struct fft_tile &tile, struct fft_space &space, const From &from, const To &to)
{
    const auto load = [&](int, int, int slot) { return space.now[slot]; };
    const auto store = [&](int, double2 value, int, int slot) { space.now[slot] = value; };
    const auto pass = [&](int, double2 value, int, int slot) { space.other[slot] = value; };
    const auto last = [&](int, int, int slot) { return space.other[slot]; };

    if (tile.stage[0].radix == 8)
        fft_stage_run<8, true>(tile, tile.stage[0], from, store);
    else
        fft_stage_run<4, true>(tile, tile.stage[0], from, store);
    __syncthreads();
    for (int s = 1; s < tile.stages - 1; s++) {
        const struct fft_stage &stage = tile.stage[s];

        if (stage.radix == 8)
            fft_stage_run<8, false>(tile, stage, load, pass);
        else if (stage.radix == 9)
            fft_stage_run<9, false>(tile, stage, load, pass);
        else if (stage.radix == 4)
            fft_stage_run<4, false>(tile, stage, load, pass);
        else
            fft_stage_run<3, false>(tile, stage, load, pass);
        fft_swap(space);
        __syncthreads();
    }
    fft_swap(space);

    const struct fft_stage &stage = tile.stage[tile.stages - 1];
    if (stage.radix == 8)
        fft_stage_run<8, false>(tile, stage, last, to);
    else if (stage.radix == 9)
        fft_stage_run<9, false>(tile, stage, last, to);
    else if (stage.radix == 4)
        fft_stage_run<4, false>(tile, stage, last, to);
    else
        fft_stage_run<3, false>(tile, stage, last, to);
}

/*
 * Transforms lines: from(i, n, slot) returns value i of the thread's line, and to(i, value, n, slot) takes it. n, a
 * constant after unrolling, counts the thread's values, to FFT_MOST. Place i is the same for each n and transform. `to`
 * may write its slot of space.now, and `from` may read that of space.other, if it was written before a __syncthreads() and
 * fft_swap(). All threads of the block must call. FAST: fft_is_fast().
 */
template <bool FAST, typename From, typename To>
__device__ static __forceinline__ void
fft_run(const struct fft_tile &tile, struct fft_space &space, const From &from, const To &to)
{
    if constexpr (FAST)
        fft_run_fast(tile, space, from, to);
    else {
        const struct fft_plan &plan = tile.plan;
        double2 *const own = space.now + fft_line(tile);
        int count = plan.side;

        fft_copy(tile, from, [&](int, double2 value, int, int slot) { space.now[slot] = value; });
        for (int step = plan.steps - 1; step >= 0; step--) {
            count /= plan.radix[step];
            fft_between(plan.roots, plan.side, tile.shift, tile.parts[step], plan.radix[step], count, own);
        }
        fft_copy(
            tile, [&](int, int, int slot) { return space.now[slot]; }, to);
    }
}

#endif
