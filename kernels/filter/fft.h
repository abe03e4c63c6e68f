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
    const struct fft_value *roots; /* w(k / side), k < side; of the caller */
};

/* Sets side and radices. `side`: 1 .. FFT_MAX_SIDE. */
void fft_plan_make(int64_t side, struct fft_plan *plan);

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
