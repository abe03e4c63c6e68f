/*
 * fft_cuda.cuh - the transforms of fft.h on the GPU. A block transforms up to FFT_LINES lines in shared memory. A thread
 * has one line and about FFT_EACH values of each step. The first step reads its values by the caller's function, and the
 * last one writes by it.
 *
 * Place p of line l is at fft_slot(p) + fft_line_slot(l): threads that access memory together use different banks. Lines
 * are interleaved and adjacent threads have adjacent lines; in a tile of rows, lines are apart and adjacent threads have
 * adjacent places, for kernels that access rows of the volume.
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
    struct fft_plan plan; /* table in device memory */
    int shift;            /* 2^shift lines */
    int pad;              /* a slot is free after 2^pad places */
    int stages;
    struct fft_stage stage[FFT_MAX_STEPS]; /* in the order of the run */
    struct fft_value third;                /* w(1/3) */
    int each;                              /* 2^each threads have a line of a tile of rows; 0: lines are interleaved */

    static constexpr bool ROWS = false;
};

struct fft_row_tile : fft_tile {
    static constexpr bool ROWS = true;
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

template <typename Tile>
__host__ __device__ static __forceinline__ int
fft_slot(const Tile &tile, int place)
{
    const int apart = place + (place >> tile.pad);

    return Tile::ROWS && tile.each > 0 ? apart : apart << tile.shift;
}

/* Returns the slots of a line in a tile of rows: pairs of lines use different banks for 4 places of each. */
__host__ __device__ static __forceinline__ int
fft_row_slots(const struct fft_tile &tile)
{
    return (tile.plan.side + (tile.plan.side >> tile.pad) + 3) / 8 * 8 + 4;
}

template <typename Tile>
__host__ __device__ static __forceinline__ int
fft_line_slot(const Tile &tile, int line)
{
    return Tile::ROWS && tile.each > 0 ? line * fft_row_slots(tile) : line;
}

/* Returns the slots of a block in one memory. */
__host__ __device__ static __forceinline__ int
fft_slots(const struct fft_tile &tile)
{
    return tile.each > 0 ? fft_row_slots(tile) << tile.shift : fft_slot(tile, tile.plan.side);
}

/* Makes the stages of a fast plan. `turns`: device memory for FFT_TURNS values per place, after the roots. */
template <typename Tile>
static inline void
fft_make_stages(Tile *tile, const struct fft_value *turns)
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
    tile->each = 0;
    if (Tile::ROWS && tile->pad != FFT_NO_PAD && (plan->side & (plan->side - 1)) == 0)
        while (FFT_EACH << tile->each < plan->side)
            tile->each++;
    for (int s = 0; s < tile->stages; s++) {
        tile->stage[s].read = fft_slot(*tile, tile->stage[s].count);
        tile->stage[s].written = fft_slot(*tile, tile->stage[s].groups);
    }
}

template <typename Tile = struct fft_tile>
static inline Tile
fft_tile_of(const struct fft_plan *plan)
{
    Tile tile = {};

    tile.plan = *plan;
    tile.shift = 2;
    while (tile.shift > 0 && (plan->side << tile.shift) > FFT_EACH * FFT_THREADS)
        tile.shift--;
    tile.third = fft_root(2, (double)(plan->side / 3 * 2) / plan->side);
    tile.pad = fft_runs_fast(tile) ? 3 : FFT_NO_PAD;
    if (fft_is_fast(plan))
        fft_make_stages(&tile, plan->roots + plan->values);
    return tile;
}

/* Returns the values of the table of a length on the GPU. */
static inline size_t
fft_tables(const struct fft_plan &plan)
{
    return (size_t)plan.values + (fft_is_fast(&plan) ? (size_t)plan.side * FFT_TURNS : 0);
}

/* Fills the table of a length and, behind it, the roots of the fast form. */
static inline void
fft_fill_turns(struct fft_plan plan, struct fft_value *roots)
{
    struct fft_value *turns = roots + plan.values;

    fft_fill(&plan, roots);

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
    const size_t one = (size_t)fft_slots(tile) * sizeof(double2);

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
    return {memory, FAST ? memory + fft_slots(tile) : memory};
}

__device__ static __forceinline__ void
fft_swap(struct fft_space &space)
{
    double2 *const now = space.now;

    space.now = space.other;
    space.other = now;
}

/* The line of this thread, and its first place: of values, and of groups of a radix. */
template <typename Tile>
__device__ static __forceinline__ int
fft_line(const Tile &tile)
{
    return Tile::ROWS && tile.each > 0 ? (int)threadIdx.x >> tile.each : (int)threadIdx.x & ((1 << tile.shift) - 1);
}

template <typename Tile>
__device__ static __forceinline__ int
fft_first(const Tile &tile)
{
    return Tile::ROWS && tile.each > 0 ? (int)threadIdx.x & ((1 << tile.each) - 1) : (int)threadIdx.x >> tile.shift;
}

template <typename Tile>
__device__ static __forceinline__ int
fft_next(const Tile &tile)
{
    return Tile::ROWS && tile.each > 0 ? 1 << tile.each : (int)blockDim.x >> tile.shift;
}

/* The slot of the thread's line. */
template <typename Tile>
__device__ static __forceinline__ int
fft_own_slot(const Tile &tile)
{
    return fft_line_slot(tile, fft_line(tile));
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

/* As fft_times, by a root in device memory, which one instruction reads. */
__device__ static __forceinline__ double2
fft_turned(double2 a, const struct fft_value *root)
{
    const double2 value = *(const double2 *)(const void *)root;

    return fft_times(a, {value.x, value.y});
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

/* The places of a group of a step: element j is read at from + j * count, and element q written at to + q * stride. */
struct fft_group {
    int k, from, to;
};

/* Divides places of a step. */
struct fft_parts {
    uint32_t count, stride; /* 2^32 / these, rounded up; 0 for 1 */
};

__device__ static __forceinline__ struct fft_parts
fft_parts_of(const struct fft_op &op)
{
    const uint32_t count = (uint32_t)op.count, stride = count * (uint32_t)op.length;

    return {count > 1 ? UINT32_MAX / count + 1 : 0, stride > 1 ? UINT32_MAX / stride + 1 : 0};
}

__device__ static __forceinline__ int
fft_quotient(int i, uint32_t parts)
{
    return parts == 0 ? i : (int)((uint64_t)(uint32_t)i * parts >> 32);
}

__device__ static __forceinline__ struct fft_group
fft_group_at(const struct fft_op &op, struct fft_parts parts, int i)
{
    const int stride = op.count * op.length, before = op.batch > 1 ? fft_quotient(i, parts.stride) * stride : 0;
    const int rest = before * (op.radix - 1), k = fft_quotient(i - before, parts.count);

    return {k, i + rest + k * op.count * (op.radix - 1), i + rest};
}

/* Runs a step of a small radix. `roots`: of the step. */
template <int RADIX>
__device__ static __forceinline__ void
fft_step(const struct fft_op &op, const struct fft_value *roots, int shift, double2 *memory)
{
    constexpr int GROUPS = (FFT_EACH + RADIX - 1) / RADIX;
    const int stride = op.count * op.length, groups = op.batch * stride;
    const int first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    const struct fft_parts parts = fft_parts_of(op);
    double2 t[GROUPS][RADIX];

#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const struct fft_group group = fft_group_at(op, parts, first + g * next);

        if (first + g * next >= groups)
            continue;
#pragma unroll
        for (int j = 0; j < RADIX; j++) {
            t[g][j] = memory[fft_spot(shift, group.from + j * op.count)];
            if (j > 0 && group.k > 0)
                t[g][j] = fft_times(t[g][j], roots[j * group.k * op.count]);
        }
        fft_radix<RADIX>(t[g], roots, stride);
    }
    __syncthreads();
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const struct fft_group group = fft_group_at(op, parts, first + g * next);

        if (first + g * next < groups)
#pragma unroll
            for (int q = 0; q < RADIX; q++)
                memory[fft_spot(shift, group.to + q * stride)] = t[g][q];
    }
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

/* Runs a step of a prime up to FFT_DIRECT: sums and differences first. */
__device__ static __noinline__ void
fft_prime_step(const struct fft_op &op, const struct fft_value *roots, int shift, double2 *memory)
{
    enum { PAIRS = FFT_EACH / 2 + 1 };

    const int radix = op.radix, half = radix / 2, stride = op.count * op.length, groups = op.batch * stride;
    const int first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    const struct fft_parts parts = fft_parts_of(op);
    double2 low[PAIRS], high[PAIRS];

    for (int at = first; at < groups * half; at += next) {
        const int j = at % half + 1;
        const struct fft_group group = fft_group_at(op, parts, at / half);
        double2 *const one = &memory[fft_spot(shift, group.from + j * op.count)];
        double2 *const two = &memory[fft_spot(shift, group.from + (radix - j) * op.count)];
        double2 a = *one, b = *two;

        if (group.k > 0) {
            a = fft_times(a, roots[j * group.k * op.count]);
            b = fft_times(b, roots[(radix - j) * group.k * op.count]);
        }
        *one = fft_plus(a, b);
        *two = fft_minus(a, b);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < PAIRS; n++) {
        const int at = first + n * next, i = at / (half + 1);

        if (i < groups)
            low[n] = fft_prime_pair(roots, stride, memory, shift, fft_group_at(op, parts, i).from, op.count, radix,
                                    at % (half + 1), &high[n]);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < PAIRS; n++) {
        const int at = first + n * next, i = at / (half + 1), q = at % (half + 1);
        const int to = fft_group_at(op, parts, i).to;

        if (i < groups) {
            memory[fft_spot(shift, to + q * stride)] = low[n];
            if (q > 0)
                memory[fft_spot(shift, to + (radix - q) * stride)] = high[n];
        }
    }
    __syncthreads();
}

/* Moves the values of groups of a large prime to transforms of length radix - 1, or back. */
__device__ static __noinline__ void
fft_prime_move(const struct fft_op &op, const struct fft_value *roots, const int32_t *order, int shift, double2 *memory)
{
    const int radix = op.radix, less = radix - 1, stride = op.count * op.length, groups = op.batch * stride;
    const int first = (int)threadIdx.x >> shift, next = (int)blockDim.x >> shift;
    const struct fft_parts parts = fft_parts_of(op);
    const bool spreads = op.kind == FFT_SPREAD;
    double2 values[FFT_EACH];
    int places[FFT_EACH];

#pragma unroll
    for (int n = 0; n < FFT_EACH; n++) {
        const int at = first + n * next, i = at / radix, j = at % radix;

        places[n] = -1;
        if (i >= groups)
            continue;
        const struct fft_group group = fft_group_at(op, parts, i);
        const int power = j == 0 ? 0 : order[j], place = power == 0 || spreads ? power : less - power;
        const int apart = j == 0 ? groups * less + i : i * less + place;

        values[n] = memory[fft_spot(shift, spreads ? group.from + j * op.count : apart)];
        places[n] = spreads ? apart : group.to + j * stride;
        if (spreads && j > 0 && group.k > 0)
            values[n] = fft_times(values[n], roots[j * group.k * op.count]);
        if (!spreads && j > 0)
            values[n] = fft_swapped(values[n]);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < FFT_EACH; n++)
        if (places[n] >= 0)
            memory[fft_spot(shift, places[n])] = values[n];
    __syncthreads();
}

/* Multiplies the transforms of groups of a large prime, and exchanges their parts. */
__device__ static __noinline__ void
fft_prime_times(const struct fft_op &op, const struct fft_value *powers, int shift, double2 *memory)
{
    const int less = op.radix - 1, groups = op.batch * op.count * op.length;
    const int next = (int)blockDim.x >> shift;

    for (int at = (int)threadIdx.x >> shift; at < groups * less; at += next) {
        const int i = at / less, k = at % less;
        const double2 value = memory[fft_spot(shift, at)];
        double2 product = fft_times(value, powers[k]);

        if (k == 0) {
            double2 *const own = &memory[fft_spot(shift, groups * less + i)];

            product = fft_plus(product, *own);
            *own = fft_plus(*own, value);
        }
        memory[fft_spot(shift, at)] = fft_swapped(product);
    }
    __syncthreads();
}

/* Runs a step of the program on the thread's line in shared memory. A function of its own, since each kernel would have it
 * several times. */
__device__ static __noinline__ void
fft_between(const struct fft_op &op, const struct fft_value *table, int shift, double2 *memory)
{
    const struct fft_value *const roots = table + op.roots;

    if (op.kind == FFT_TIMES)
        return fft_prime_times(op, table + op.powers, shift, memory);
    if (op.kind != FFT_STEP)
        return fft_prime_move(op, roots, (const int32_t *)(table + op.order), shift, memory);
    switch (op.radix) {
    case 2:
        return fft_step<2>(op, roots, shift, memory);
    case 3:
        return fft_step<3>(op, roots, shift, memory);
    case 4:
        return fft_step<4>(op, roots, shift, memory);
    case 5:
        return fft_step<5>(op, roots, shift, memory);
    case 7:
        return fft_step<7>(op, roots, shift, memory);
    case 8:
        return fft_step<8>(op, roots, shift, memory);
    default:
        fft_prime_step(op, roots, shift, memory);
    }
}

/* Calls body(i, n, slot) for the values that this thread reads by `from` in fft_run(), or writes by `to`. */
template <bool FAST, typename Tile, typename Body>
__device__ static __forceinline__ void
fft_each(const Tile &tile, int stage, const Body &body)
{
    const int line = fft_own_slot(tile), radix = FAST ? tile.stage[stage].radix : 1;
    const int groups = FAST ? tile.stage[stage].groups : tile.plan.side;

    if (radix == 8) { /* without division */
        if (fft_first(tile) < groups)
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const int i = fft_first(tile) + n * groups;

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

/* Calls body(i, n) as fft_each(), also for n that have no place, with another one: reads without branches do not wait for
 * each other. */
template <bool FAST, typename Tile, typename Body>
__device__ static __forceinline__ void
fft_each_read(const Tile &tile, int stage, const Body &body)
{
    const int radix = FAST ? tile.stage[stage].radix : 1, groups = FAST ? tile.stage[stage].groups : tile.plan.side;

    if (radix == 8) {
        const int first = fft_first(tile) < groups ? fft_first(tile) : 0;

#pragma unroll
        for (int n = 0; n < 8; n++)
            body(first + n * groups, n);
        return;
    }
#pragma unroll
    for (int n = 0; n < FFT_MOST; n++) {
        const int group = fft_first(tile) + n / radix * fft_next(tile);

        body((group < groups ? group : 0) + n % radix * groups, n);
    }
}

/* Copies values by the caller's functions. */
template <typename Tile, typename From, typename To>
__device__ static __forceinline__ void
fft_copy(const Tile &tile, const From &from, const To &to)
{
    double2 values[FFT_EACH];

#pragma unroll
    for (int n = 0; n < FFT_EACH; n++) {
        const int place = fft_first(tile) + n * fft_next(tile), i = place < tile.plan.side ? place : 0;

        values[n] = from(i, n, fft_slot(tile, i) + fft_own_slot(tile));
    }
    __syncthreads(); /* threads with fewer places have read place 0 again, which its own thread writes */
#pragma unroll
    for (int n = 0; n < FFT_EACH; n++) {
        const int i = fft_first(tile) + n * fft_next(tile);

        if (i < tile.plan.side)
            to(i, values[n], n, fft_slot(tile, i) + fft_own_slot(tile));
    }
    __syncthreads();
}

/* Reads a group of a stage, turned, and transforms it. FIRST: length 1. */
template <int RADIX, bool FIRST, typename Tile, typename From>
__device__ static __forceinline__ void
fft_stage_read(const Tile &tile, const struct fft_stage &stage, int i, int n, double2 *t, const From &from)
{
    const int k = FIRST ? 0 : stage.count == 1 ? i : (int)((uint64_t)(uint32_t)i * stage.parts >> 32);
    const int place = FIRST ? i : i + k * stage.count * (RADIX - 1);
    const int slot = fft_slot(tile, place) + fft_own_slot(tile);
    const struct fft_value *const turns = stage.turns + k;

#pragma unroll
    for (int j = 0; j < RADIX; j++)
        t[j] = from(place + j * stage.count, n + j, slot + j * stage.read);
    if constexpr (RADIX == 9) {
#pragma unroll
        for (int j = 0; j < 3; j++) {
            double2 x[3] = {t[j], t[j + 3], t[j + 6]};

            x[1] = fft_turned(x[1], turns);
            x[2] = fft_turned(x[2], turns + stage.length);
            fft_three(x, tile.third);
            t[j] = x[0];
            t[j + 3] = x[1];
            t[j + 6] = x[2];
        }
#pragma unroll
        for (int q = 0; q < 3; q++) {
            double2 x[3] = {t[3 * q], fft_turned(t[3 * q + 1], turns + (2 + 2 * q) * stage.length),
                            fft_turned(t[3 * q + 2], turns + (3 + 2 * q) * stage.length)};

            fft_three(x, tile.third);
            t[3 * q] = x[0];
            t[3 * q + 1] = x[1];
            t[3 * q + 2] = x[2];
        }
    } else {
        if (!FIRST)
#pragma unroll
            for (int j = 1; j < RADIX; j++)
                t[j] = fft_turned(t[j], turns + (j - 1) * stage.length);
        if constexpr (RADIX == 3)
            fft_three(t, tile.third);
        else
            fft_radix<RADIX>(t, NULL, 0);
    }
}

/* Runs a stage. */
template <int RADIX, bool FIRST, typename Tile, typename From, typename To>
__device__ static __forceinline__ void
fft_stage_run(const Tile &tile, const struct fft_stage &stage, const From &from, const To &to)
{
    constexpr int GROUPS = (FFT_EACH + RADIX - 1) / RADIX;

#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const int i = fft_first(tile) + g * fft_next(tile);
        const int slot = fft_slot(tile, i) + fft_own_slot(tile);
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
template <typename Tile, typename From, typename To>
__device__ static __forceinline__ void
fft_run_fast(const Tile &tile, struct fft_space &space, const From &from, const To &to)
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
template <bool FAST, typename Tile, typename From, typename To>
__device__ static __forceinline__ void
fft_run(const Tile &tile, struct fft_space &space, const From &from, const To &to)
{
    if constexpr (FAST)
        fft_run_fast(tile, space, from, to);
    else {
        const struct fft_plan &plan = tile.plan;
        double2 *const own = space.now + fft_own_slot(tile);

        fft_copy(tile, from, [&](int, double2 value, int, int slot) { space.now[slot] = value; });
        for (int op = 0; op < plan.ops; op++)
            fft_between(fft_program(&plan)[op], plan.roots, tile.shift, own);
        fft_copy(
            tile, [&](int, int, int slot) { return space.now[slot]; }, to);
    }
}

#endif
