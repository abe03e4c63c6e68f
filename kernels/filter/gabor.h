/*
 * gabor.h - the plan of a Gabor filter (filter.h), for all backends. Private to kernels/.
 *
 * In a plane of the axes a and b, the kernel at (x, y) voxels, u = x mm cos + y mm sin, w = y mm cos - x mm sin, is
 * exp(-(u^2 + (gamma w)^2) / (2 sigma^2)) exp(-2 pi i u / lambda), for |x|, |y| up to ceil(GABOR_CUT sigma max(1, 1 /
 * gamma) / mm). The response is the modulus. Planes are (x, y); in space also (x, z) and (y, z). Pooling is over the
 * angles of half a turn (the other half has the same moduli) and the planes.
 *
 * Each slice of a plane is filtered by transforms (fft.h), line after line along a, then along b, and back along b, then
 * a. Lengths are the sides of the volume if these repeat it and have no prime factor above FFT_SMALL, and the kernel is added up
 * at places modulo the side (y outermost, ascending). Otherwise they are fft_good_side(side + 2 reach), and the values
 * beyond the volume are mapped by the boundary. Lines 2i and 2i + 1 along a of a slice are transformed together, as in
 * spectral.h. Lines above M(a) / 2 are the conjugates of those below at (-k(a), -k(b)).
 *
 * The transfer function is the real part of the kernel's transform, divided by M(a) M(b). It is 0 at places k(a) whose
 * frequency is further than GABOR_CUT standard deviations of the kernel's frequencies along a from their mean. The
 * responses therefore depend, by less than 2^-26 of the largest possible one, on voxels beyond the kernel.
 */
#ifndef NOCTULE_KERNELS_FILTER_GABOR_H
#define NOCTULE_KERNELS_FILTER_GABOR_H

#include "kernels/filter/fft.h"
#include "kernels/filter/filter_private.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GABOR_CUT = 6, GABOR_PLANES = 3 };

/* The kernel of an angle, and the places k(a) of its transfer function: from `first` on, modulo the length. */
struct gabor_kernel {
    double cosine, sine;
    int32_t first[GABOR_PLANES], count[GABOR_PLANES];
};

/* An axis of a plane. */
struct gabor_axis {
    struct fft_plan fft; /* of M places */
    int axis;            /* of the volume */
    int64_t side;
    int64_t before; /* values before the volume's first */
    int64_t reach;  /* voxels of the kernel to each side */
    double mm;
};

struct gabor_plane {
    struct gabor_axis axis[2]; /* a, b */
    int64_t half;              /* transformed values of a line along a, M / 2 + 1 */
    int slices;                /* the axis across */
};

struct gabor_plan {
    double gamma, lambda_mm, sigma_mm;
    enum filter_boundary boundary;
    enum filter_pooling pooling;
    int angles, planes;
    struct gabor_kernel kernel[FILTER_MAX_ANGLES];
    struct gabor_plane plane[GABOR_PLANES];
};

/* Makes the plan for a volume, without tables. Returns 0, -E2BIG or -EINVAL for filters that filter_run() refuses. */
int gabor_plan_make(const struct filter_demand *demand, const struct image_extent *extent, struct gabor_plan *plan);

/* See filter_step(). */
double gabor_bound(const struct filter_demand *demand);

/* Returns the kernel at (x, y) voxels. Must not be contracted. */
FILTER_INLINE struct fft_value
gabor_tap(const struct gabor_plan *plan, const struct gabor_plane *plane, const struct gabor_kernel *kernel, int64_t x,
          int64_t y)
{
    const double right = (double)x * plane->axis[0].mm, down = (double)y * plane->axis[1].mm;
    const double u = right * kernel->cosine + down * kernel->sine;
    const double w = (down * kernel->cosine - right * kernel->sine) * plan->gamma;
    const double size = filter_exp_of((u * u + w * w) / (2 * plan->sigma_mm * plan->sigma_mm));
    const double turns = u / plan->lambda_mm, eighths = 8 * (turns - floor(turns));
    struct fft_value tap = fft_root((int64_t)eighths, eighths - floor(eighths));

    tap.re = tap.re * size;
    tap.im = tap.im * size;
    return tap;
}

/* Returns the sum of the kernel at places (i, j) modulo the lengths. */
FILTER_INLINE struct fft_value
gabor_sum(const struct gabor_plan *plan, const struct gabor_plane *plane, const struct gabor_kernel *kernel, int64_t i,
          int64_t j)
{
    const int64_t across = plane->axis[0].fft.side, down = plane->axis[1].fft.side;
    const int64_t left = plane->axis[0].reach, up = plane->axis[1].reach;
    struct fft_value sum = {0, 0};

    for (int64_t y = j - (up + j) / down * down; y <= up; y += down)
        for (int64_t x = i - (left + i) / across * across; x <= left; x += across) {
            const struct fft_value tap = gabor_tap(plan, plane, kernel, x, y);

            sum.re = sum.re + tap.re;
            sum.im = sum.im + tap.im;
        }
    return sum;
}

/* Pools a modulus. `first`: there is no other yet. */
FILTER_INLINE double
gabor_pool(enum filter_pooling pooling, bool first, double pooled, double modulus)
{
    if (first)
        return modulus;
    if (pooling == FILTER_MAX)
        return modulus > pooled ? modulus : pooled;
    if (pooling == FILTER_MIN)
        return modulus < pooled ? modulus : pooled;
    return pooled + modulus;
}

/* Returns code / pooled modulus. */
static inline double
gabor_scale(const struct gabor_plan *plan, double step)
{
    const bool sums = plan->pooling != FILTER_MAX && plan->pooling != FILTER_MIN;

    return (sums ? 1.0 / (plan->angles * plan->planes) : 1.0) / step;
}

#ifdef __cplusplus
}
#endif
#endif
