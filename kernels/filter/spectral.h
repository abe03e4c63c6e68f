/*
 * spectral.h - the plan of a filter with a transfer function (filter.h), for all backends. Private to kernels/.
 *
 * The volume, or each slice, is transformed (fft.h), multiplied with the transfer function and transformed back. Rows
 * 2i and 2i + 1 of a slice are the real and imaginary part of one transform Z (a last odd row with zeros). Their
 * transforms are A[k] = (Z[k] + conj Z[n - k]) / 2 and B[k] = (Z[k] - conj Z[n - k]) / 2i, for k up to n / 2. Then
 * columns are transformed, then lines along z; and back in the reverse order, with A[k] + i B[k] for k up to n / 2, and
 * conj(A[n - k]) + i conj(B[n - k]) above. Imaginary parts of A and B at k = 0 and n / 2 count as 0.
 *
 * Transfer functions, which are zero where the denominators are:
 *
 * - Simoncelli at level j: (g(f) + g(f')) / 2, where f has f(k) = (p - (n - 1) / 2) / ((n - 1) / 2) along each axis,
 *   p = (k + floor(n / 2)) mod n, f' is f of (n - k) mod n, and f = 0 if n = 1. The mean makes the response real on this
 *   grid, which is not centred for even n. g = cos(pi / 2 log2(2 r)) for 1/4 <= r <= 1, r = 2^(j-1) |f|.
 * - Riesz transform (of a Simoncelli wavelet, or of the codes of a Laplacian of Gaussian) of orders l, of sum L: (-i)^L sqrt(L! / (l_x! l_y! l_z!)) v_x^l_x v_y^l_y v_z^l_z / |v|^L, where v is
 *   k / n, between -1/2 and 1/2. At k = n / 2, a component with an odd order is 0, so that the response is real.
 */
#ifndef NOCTULE_KERNELS_FILTER_SPECTRAL_H
#define NOCTULE_KERNELS_FILTER_SPECTRAL_H

#include "kernels/filter/fft.h"
#include "kernels/filter/filter_private.h"

#include <math.h>

#ifdef __CUDACC__
#include "kernels/cuda/ptx.cuh"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define SPECTRAL_INLINE __device__ static __forceinline__
#else
#define SPECTRAL_INLINE static inline __attribute__((always_inline))
#endif

/* Per place k along an axis; at zero, k is the only place of slices that are filtered alone. */
struct spectral_axis {
    struct fft_plan fft;
    const double *plus, *minus; /* (2^j f)^2 and (2^j f')^2 */
    const double *power;        /* v^l */
    const double *square;       /* v^2 */
};

struct spectral_plan {
    struct spectral_axis axis[3];
    bool radial;   /* Simoncelli */
    int order;     /* of the Riesz transform, L; 0: none */
    double factor; /* of the Riesz transform, without -i of an odd order */
    double scale;  /* code / sum */
    int64_t kept;  /* values of a transformed row before the transfer function is 0, 1 to n / 2 + 1 */
};

/* Makes the plan for a volume, without tables. Returns 0, -E2BIG or -EINVAL for filters that filter_run() refuses. */
int spectral_plan_make(const struct filter_demand *demand, const struct image_extent *extent,
                       struct spectral_plan *plan);

/* Fills the tables of an axis, SPECTRAL_TABLE elements per place, and points the plan to them. Not that of fft_fill(). */
enum { SPECTRAL_TABLE = 4 };

void spectral_fill(const struct filter_demand *demand, struct spectral_plan *plan, int axis, double *table);

/* Sets the addresses of an axis with its tables in `table`. */
void spectral_point(struct spectral_axis *axis, double *table);

/* Returns 0 if filter_run() accepts the filter for a volume, otherwise -E2BIG or -EINVAL; of Gabor filters, too. */
int spectral_check(const struct filter_demand *demand, const struct image_extent *extent);

/* See filter_step() and filter_reach(). The bound is for values up to 1; -1: impossible options. */
double spectral_bound(const struct filter_demand *demand);
void spectral_reach(const struct filter_demand *demand, int32_t reach[3]);

/* Returns a / b, rounded to nearest. On a GPU by the steps of its division, without the branch for b beyond 2^-1000 to 2^1000,
 * which would make the divisions of a thread wait for each other. */
SPECTRAL_INLINE double
spectral_quotient(double a, double b)
{
#ifdef __CUDACC__
    const double guess = ptx_rcp(b), e = fma(-b, guess, 1.0), better = fma(guess, fma(e, e, e), guess);
    const double inverse = fma(better, fma(-b, better, 1.0), better), quotient = a * inverse;

    return fma(inverse, fma(-b, quotient, a), quotient);
#else
    return a / b;
#endif
}

/* Splits u = m 2^e, sqrt(1/2) <= m < sqrt(2), for 1/4 <= u <= 4. Returns m. A GPU does it with
 * integers, since doubles limit its kernels. */
SPECTRAL_INLINE double
spectral_split_octave(double u, double *e)
{
#ifdef __CUDACC__
    const int64_t bits = __double_as_longlong(u), octave = (bits - INT64_C(0x3FE6A09E667F3BCD)) >> 52;

    *e = (double)(int32_t)octave;
    return __longlong_as_double(bits - octave * (INT64_C(1) << 52));
#else
    const double above[4] = {u >= 0x1.6a09e667f3bcdp-2 ? 1.0 : 0.0, u >= 0x1.6a09e667f3bcdp-1 ? 1.0 : 0.0,
                             u >= 0x1.6a09e667f3bcdp+0 ? 1.0 : 0.0, u >= 0x1.6a09e667f3bcdp+1 ? 1.0 : 0.0};

    *e = above[0] + above[1] + above[2] + above[3] - 2;
    return u * 4 * (1 - above[0] / 2) * (1 - above[1] / 2) * (1 - above[2] / 2) * (1 - above[3] / 2);
#endif
}

/* Returns cos(pi / 4 log2(u)) for 1/4 <= u <= 4, otherwise 0. */
SPECTRAL_INLINE double
spectral_ring(double u)
{
    double e;
    const double m = spectral_split_octave(u, &e);
    const double s = spectral_quotient(m - 1, m + 1), z = s * s;
    double log = 1.0 / 21, angle, y, cosine = 1.0 / 2432902008176640000.0; /* 20! */

    log = fma(log, z, 1.0 / 19);
    log = fma(log, z, 1.0 / 17);
    log = fma(log, z, 1.0 / 15);
    log = fma(log, z, 1.0 / 13);
    log = fma(log, z, 1.0 / 11);
    log = fma(log, z, 1.0 / 9);
    log = fma(log, z, 1.0 / 7);
    log = fma(log, z, 1.0 / 5);
    log = fma(log, z, 1.0 / 3);
    log = fma(log, z, 1.0);
    angle = 0x1.921fb54442d18p-1 * fma(0x1.71547652b82fep+1 * s, log, e); /* pi / 4, 2 / ln(2) */
    y = angle * angle;
    cosine = fma(cosine, y, -1.0 / 6402373705728000.0);
    cosine = fma(cosine, y, 1.0 / 20922789888000.0);
    cosine = fma(cosine, y, -1.0 / 87178291200.0);
    cosine = fma(cosine, y, 1.0 / 479001600.0);
    cosine = fma(cosine, y, -1.0 / 3628800.0);
    cosine = fma(cosine, y, 1.0 / 40320.0);
    cosine = fma(cosine, y, -1.0 / 720.0);
    cosine = fma(cosine, y, 1.0 / 24.0);
    cosine = fma(cosine, y, -1.0 / 2.0);
    cosine = fma(cosine, y, 1.0);
    return (u >= 0.25 ? 1.0 : 0.0) * (u <= 4 ? 1.0 : 0.0) * cosine;
}

/* Sums over the axes x and y at one place. */
struct spectral_sums {
    double plus, minus, power, square;
};

SPECTRAL_INLINE struct spectral_sums
spectral_sums_at(const struct spectral_plan *plan, int64_t kx, int64_t ky)
{
    const struct spectral_axis *x = &plan->axis[0], *y = &plan->axis[1];
    const struct spectral_sums sums = {x->plus[kx] + y->plus[ky], x->minus[kx] + y->minus[ky],
                                       x->power[kx] * y->power[ky], x->square[kx] + y->square[ky]};

    return sums;
}

/* Returns whether the transfer function is 0 at all places along z. */
SPECTRAL_INLINE bool
spectral_is_zero(const struct spectral_plan *plan, double plus, double minus)
{
    return plan->radial && plus > 4 && minus > 4;
}

/*
 * Half a turn has all squares of f along an axis, since those at k and side - k, or side - 1 - k of an even side, are
 * equal. The square of f' at k is that of f at side - k.
 */
SPECTRAL_INLINE int64_t
spectral_half(const struct spectral_axis *axis)
{
    return (axis->fft.side + 1) / 2;
}

/* Returns the place within half a turn that has the square of f at k. */
SPECTRAL_INLINE int64_t
spectral_place_of(const struct spectral_axis *axis, int64_t k)
{
    return k < spectral_half(axis) ? k : axis->fft.side - 1 + axis->fft.side % 2 - k;
}

/* Rings of FFT_LANES lines along z, of f or of f', for half a turn. */
struct spectral_ring_lanes {
    double gain[FFT_LANES];
    bool is_zero; /* all of them */
};

struct spectral_rings {
    bool known;
    double sums[FFT_LANES]; /* over x and y */
    struct spectral_ring_lanes *value;
};

/* Returns the transfer function without -i, of a ring's gain. */
SPECTRAL_INLINE double
spectral_riesz(const struct spectral_plan *plan, const struct spectral_sums *sums, int64_t kz, double gain)
{
    double square, power;

    if (plan->order == 0)
        return gain;
    square = sums->square + plan->axis[2].square[kz];
    power = plan->order % 2 == 1 ? sqrt(square) : 1;
    for (int i = 0; i < plan->order / 2; i++)
        power = power * square;
    return square > 0 ? gain * (sums->power * plan->axis[2].power[kz] * plan->factor / power) : 0;
}

/* Returns the transfer function without -i. */
SPECTRAL_INLINE double
spectral_gain(const struct spectral_plan *plan, const struct spectral_sums *sums, int64_t kz)
{
    const struct spectral_axis *z = &plan->axis[2];
    const double gain =
        plan->radial ? (spectral_ring(sums->plus + z->plus[kz]) + spectral_ring(sums->minus + z->minus[kz])) / 2 : 1;

    return spectral_riesz(plan, sums, kz, gain);
}

#ifdef __cplusplus
}
#endif
#endif
