/* filter_private.h - parts of filter.h that its operations share. Private to kernels/. */
#ifndef NOCTULE_KERNELS_FILTER_FILTER_PRIVATE_H
#define NOCTULE_KERNELS_FILTER_FILTER_PRIVATE_H

#include "kernels/filter/filter.h"
#include "kernels/op.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define FILTER_INLINE __host__ __device__ static inline
#else
#define FILTER_INLINE static inline
#endif

/* The request of the operations. Their states begin with struct filter_demand. */
struct filter_task {
    const struct filter_request *request;
    double step;
    const int32_t **codes;
};

/* Returns the step for responses up to a bound. */
double filter_step_of(double bound);

/* Writes the low-pass or high-pass filter of a decomposition. Returns its number of taps. */
#define FILTER_MAX_WAVELET 40
int filter_wavelet_taps(enum filter_wavelet wavelet, bool high, double *taps);

/* Returns the place within the volume whose value counts at place i; -1: there the value is 0. */
FILTER_INLINE int64_t
filter_place(int64_t i, int64_t side, enum filter_boundary boundary)
{
    int64_t within;

    if (i >= 0 && i < side)
        return i;
    switch (boundary) {
    case FILTER_NEAREST:
        return i < 0 ? 0 : side - 1;
    case FILTER_PERIODIC:
        within = i % side;
        return within < 0 ? within + side : within;
    case FILTER_MIRROR:
        within = i % (2 * side);
        within = within < 0 ? within + 2 * side : within;
        return within < side ? within : 2 * side - 1 - within;
    case FILTER_ZERO:
    case FILTER_BOUNDARIES:
        break;
    }
    return -1;
}

FILTER_INLINE int32_t
filter_clip(const struct filter_request *request, int32_t value)
{
    value = value < -request->limit ? -request->limit : value;
    return value > request->limit ? request->limit : value;
}

/* Returns the value of a stored value, without branches, so that threads need not wait for it where they read it. */
FILTER_INLINE int32_t
filter_value(const struct filter_request *request, int32_t stored)
{
    const bool pads = (request->padding.lo <= stored) & (stored <= request->padding.hi);
    const int32_t value = filter_clip(request, stored + request->offset);

    return pads ? request->padded : value;
}

/* Returns the nearest integer, ties to even, of a number of less than 2^31. */
FILTER_INLINE int32_t
filter_code(double number)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */

#ifdef __CUDA_ARCH__
    return __double2loint(number + shift); /* the same without conversion, which takes longer than the sum */
#else
    return (int32_t)((number + shift) - shift);
#endif
}

/*
 * Returns exp(-x) for x >= 0 = 2^-n exp(-r), where x = n log(2) + r with |r| <= log(2) / 2. The upper part of log(2) has
 * 32 bits, so that its product with n is exact. The error is about one unit in the last place.
 */
FILTER_INLINE double
filter_exp_of(double x)
{
    const double upper = 0x1.62e42feep-1, lower = 0x1.a39ef35793c76p-33;
    const double n = floor(x / 0x1.62e42fefa39efp-1 + 0.5);
    const double r = (n * upper - x) + n * lower;
    double sum = 1;

    if (!(x < 700))
        return 0;
    for (int i = 17; i >= 1; i--)
        sum = 1 + r * sum / i;
    return ldexp(sum, -(int)n);
}

#ifdef __cplusplus
}
#endif
#endif
