/*
 * fft.h - discrete Fourier transforms of any length, in one fixed order of double operations without contraction, so that
 * all backends and the reference in tests/kernels agree bit for bit.
 *
 * The forward transform of x has X[k] = sum of x[t] w(k t / n), w(a) = exp(-2 pi i a). The inverse exchanges real and
 * imaginary parts before and after it, and is not scaled. A length n is a product of radices r(1) .. r(s): even ones, 8
 * as often as it divides n unless 2 would remain (then 4 and 4), then 4 or 2; odd primes, ascending. The last even radix
 * is behind the odd ones.
 *
 * - With r = r(1): Y(j) is the transform of x[j], x[j + r], ... by the other radices; t(j) = Y(j)[k] w(j k / n) for
 *   j > 0; then X[k + q n / r] is element q of the transform of t(0) .. t(r - 1).
 * - Radix 4: sums and differences of elements 0, 2 and of 1, 3 first. Radix 8: radix 4 of the even and of the odd
 *   elements; odd elements 1 and 3 are turned by (sum or difference of the parts) * sqrt(1/2).
 * - Odd radix: s(j) = t(j) + t(r - j), d(j) = t(j) - t(r - j), j = 1 .. (r - 1) / 2. Element 0 is t(0) + s(1) + ... in
 *   this order. a(q) = t(0) + sum of Re w(q j / r) s(j), b(q) = sum of Im w(q j / r) d(j); element q is a + i b, and
 *   element r - q is a - i b.
 * - Prime radix above FFT_DIRECT (Rader): g is the smallest primitive root of r. A is the transform, of length r - 1 and
 *   as here, of t(g^m), m = 0 .. r - 2. Element 0 is t(0) + A[0]. P[k] = A[k] C[k], and t(0) is then added to P[0].
 *   Element g^-q is element q of the inverse transform of P.
 * - C is the transform of w(g^-m / r), whose parts are then divided by r - 1. It has its own order, since it is a table:
 *   the same radices, but with any radix r of a length n, X[k + q n / r] = Y(0)[k] + sum of Y(j)[k] w(j (k + q n / r) / n),
 *   j = 1 .. r - 1.
 *
 * A program has the steps of a length: one per radix, and for Rader's primes three and twice the program of r - 1.
 *
 * Roots are made by fft_root, since libraries differ in the last bit. All functions may run in any thread.
 */
#ifndef NOCTULE_KERNELS_FILTER_FFT_H
#define NOCTULE_KERNELS_FILTER_FFT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FFT_MAX_SIDE = 4096,
    FFT_MAX_STEPS = 8, /* 3^7 needs 7 */
    FFT_SMALL = 8,     /* larger radices are primes and need work space */
    FFT_DIRECT = 31,   /* larger primes are transformed by Rader's algorithm */
    FFT_LANES = 8,     /* transforms that the CPU computes together */
};

/* A complex value. */
struct fft_value {
    double re, im;
};

/* The values of one place of FFT_LANES transforms. */
struct fft_lanes {
    double part[2][FFT_LANES]; /* re, im */
};

struct fft_plan {
    int32_t side;
    int32_t steps;
    int32_t radix[FFT_MAX_STEPS];
    int32_t ops;                   /* of the program, in the order of the run */
    int32_t values;                /* size of the table */
    const struct fft_value *roots; /* the table, of the caller: w(k / side), k < side; the program; tables of primes */
};

enum fft_kind {
    FFT_STEP,
    FFT_SPREAD, /* of a prime: group g, in order of the powers of the root, to g (r - 1); t(0) to its place behind these */
    FFT_TIMES,  /* A to P, and t(0) to element 0; real and imaginary parts are exchanged */
    FFT_GATHER, /* to the places that a step writes; parts are exchanged */
};

/*
 * A step of the program on `batch` transforms of length r c l, one behind the other. Before a step of radix r, the values
 * are the transforms V(p) of x[p], x[p + c r], ..., of length l, with V(p)[k] at place k c r + p. The step combines V(p),
 * V(p + c), ... in group k c + p, and writes element q of the group to k c + p + q c l.
 */
struct fft_op {
    int32_t kind, radix, count, length; /* enum fft_kind, r, c, l */
    int32_t batch;
    int32_t roots;  /* places in the table: w(k / (r c l)), */
    int32_t powers; /* C, */
    int32_t
        order; /* and int32_t m of j = g^m, per j; of FFT_TIMES: whether steps in two memories left t(0) in the other one */
};

/* Sets all but the table. `side`: 1 .. FFT_MAX_SIDE. */
void fft_plan_make(int64_t side, struct fft_plan *plan);

/* Fills the table, of plan->values, and sets plan->roots. Tables may be copied to other memory. */
void fft_fill(struct fft_plan *plan, struct fft_value *table);

#ifdef __CUDACC__
#define FFT_INLINE __host__ __device__ static inline
#else
#define FFT_INLINE static inline
#endif

/* Returns w((octant + part) / 8), 0 <= part <= 1, by Taylor series up to an eighth of a turn. Must not be contracted. */
FFT_INLINE struct fft_value
fft_root(int64_t octant, double part)
{
    const double angle = 0x1.921fb54442d18p-1 * (octant % 2 == 1 ? 1 - part : part); /* pi / 4 */
    const double square = angle * angle;
    const int eighth = (int)(octant % 8), turned = eighth % 4 == 1 || eighth % 4 == 2;
    double sine = 1, cosine = 1;
    struct fft_value root;

    for (int i = 17; i >= 3; i -= 2)
        sine = 1 - sine * square / ((i - 1) * i);
    for (int i = 18; i >= 2; i -= 2)
        cosine = 1 - cosine * square / ((i - 1) * i);
    sine = angle * sine;
    root.re = turned ? sine : cosine;
    root.im = turned ? cosine : sine;
    root.re = eighth >= 2 && eighth < 6 ? -root.re : root.re;
    root.im = eighth < 4 ? -root.im : root.im;
    return root;
}

FFT_INLINE const struct fft_op *
fft_program(const struct fft_plan *plan)
{
    return (const struct fft_op *)(plan->roots + plan->side);
}

/* Writes w(k / side), k < side: octant and part are the quotient and remainder of 8 k / side. */
void fft_roots(int32_t side, struct fft_value *roots);

/* Returns whether no prime factor is above FFT_SMALL. */
bool fft_is_small(const struct fft_plan *plan);

/* Returns whether all radices are 8, 4 or 3, and the last one even: a GPU has a fast form for these. */
bool fft_is_fast(const struct fft_plan *plan);

/* Returns the smallest length >= side of which fft_is_fast(). */
int64_t fft_good_side(int64_t side);

#ifdef __cplusplus
}
#endif
#endif
