/*
 * filter.h - image filters of IBSI 2 (arXiv:2006.05470): responses of a whole volume.
 *
 * Values. The filter reads v = clip(stored + offset) of the lane's volume, or clip(value) of `values`, where clip limits
 * to -limit .. limit, and padding counts as `padded`. A real-world value is a multiple of v.
 *
 * Responses. A code of 32 bits per voxel, x fastest, tightly packed. The response is code * step. The step is 2^-30 of
 * the smallest power of two that is at least the largest possible response, (sum of absolute taps) * limit. It is known
 * before any voxel is: filter_step(). Rotations do not change it. All backends agree bit for bit.
 *
 * Separable filters: mean, Laplacian of Gaussian, Laws, wavelets.
 *
 * - A kernel of an axis has taps k[t] at places i + h - t, with h half of the number of taps (h of an even number: the
 *   response to a voxel begins one place later). Turned kernels have them at i - h + t. Places beyond the volume are
 *   mapped by the boundary.
 *
 * - Mean: `size` taps of 1; the sum is divided by size^2 or size^3.
 *
 * - Laplacian of Gaussian: s = sigma_mm / spacing along each axis, radius floor(4 s + 1/2),
 *   g(t) = exp(-t^2 / (2 s^2)) / (sqrt(2 pi) s), f(t) = (t^2 / s^4 - 1 / s^2) (c / spacing)^2 g(t), where c is the
 *   spacing along the columns: f along one axis and g along the others, summed over all axes.
 *
 * - Laws: integers, whose response is divided by the norms of the kernels. With `energy`, the code of a voxel is the
 *   mean absolute code of the cube or square around it, where codes beyond the volume are mapped as values are.
 *
 * - Wavelets: decomposition filters. Level j has 2^(j-1) - 1 zeros behind each tap, and reads the low-pass response
 *   (of the same turn along each axis, mapped by the boundary) of level j - 1. Taps of all levels are multiplied out.
 *
 * Pooling takes all turns of the kernels by rotations of right angles: permutations of the axes with kernels turned
 * around, of determinant 1. The mean is over all of them, a turn that occurs twice counts twice.
 *
 * Filters by Fourier transforms (spectral.h, gabor.h): Simoncelli's wavelets and Riesz transforms, for which the volume
 * (or each slice) repeats itself whatever the boundary, and Gabor filters. Their sums are in the order of fft.h, without
 * fma() except in the transfer function.
 *
 * Arithmetic. Integer filters (mean, Laws) have exact sums. Other separable filters sum in
 * double precision along x, then y, then z:
 * each sum begins at 0 and adds its taps by fma() from the lowest place on. Filters of several separable terms add the
 * responses of terms with the same kernel along z before that axis, and the sums of all these after it. The code is the
 * nearest integer (ties to even) of the response times one factor.
 *
 * Shapes, threads: as in kernels.h. Errors: as in kernels.h; -E2BIG with VOLUME_TOO_LARGE if a kernel has more than
 * FILTER_MAX_REACH places to a side; -EINVAL without a demand for this filter, or for impossible options; -EBUSY if a
 * slice is not announced.
 */
#ifndef NOCTULE_KERNELS_FILTER_FILTER_H
#define NOCTULE_KERNELS_FILTER_FILTER_H

#include "base/filter_options.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FILTER_MAX_REACH 128       /* places of a kernel to each side */
#define FILTER_MAX_LIMIT (1 << 30) /* of values */

/* The demand of the operation of a filter's kind (filter_demand_set). */
struct filter_demand {
    struct filter_options options;
    double spacing[3]; /* mm along columns, rows, slices */
    bool values;       /* requests have `values` */
};

/* Adds a filter to the demand of a lane, which borrows it. One filter of each operation is possible per job. */
void filter_demand_set(struct kernels_demand *demand, const struct filter_demand *filter);

struct filter_request {
    int32_t limit;              /* 1 .. FILTER_MAX_LIMIT */
    int32_t offset;             /* added to stored values */
    struct image_range padding; /* stored values; lo > hi: no padding */
    int32_t padded;             /* the value of padding, within the limit */
    /* As the volume, x fastest: used instead of the lane's voxels, without offset and padding. NULL: not used. */
    const int32_t *values;
};

/* Filters the volume by the demand of this kind. Sets *codes to memory of the lane (pinned on a GPU), which is valid
 * until the next run of an operation, and *step to the response of code 1. */
int filter_run(struct kernels_lane *lane, enum filter_kind kind, const struct filter_request *request,
               const int32_t **codes, double *step, struct error *error);

/* Returns the response of code 1 for values up to a limit; 0: the options are impossible. */
double filter_step(const struct filter_demand *demand, int32_t limit);

/* Finds how many voxels from a voxel the filter reads along each axis; INT32_MAX: any voxel of the volume. */
void filter_reach(const struct filter_demand *demand, int32_t reach[3]);

/* exp(-x) for x >= 0 by a fixed sequence of double operations, since libraries differ in the last bit. */
double filter_exp_minus(double x);

#ifdef __cplusplus
}
#endif
#endif
