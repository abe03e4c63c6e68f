/*
 * smooth.h - ranges of a Gaussian-filtered volume.
 *
 * The filter is separable and exact in integers. Along an axis with a standard deviation of s = sigma_mm / spacing
 * voxels, its radius is floor(3 s + 0.5) and its weights are floor(2^14 g(i) + 0.5), where g(i) = exp(-i^2 / (2 s^2)) /
 * sum, computed in double precision, and the sum is over i = -radius .. radius in this order; the middle weight takes
 * the difference of their sum from 2^14. The passes run along x, then y, then z. Each writes floor((sum of weight *
 * value + 2^13) / 2^14). Beyond the volume, the value of the nearest voxel counts. Values outside [lo, hi] are clipped
 * first, and padding counts as lo. All backends and the reference in tests/kernels agree bit for bit. Shapes, errors,
 * threads: as in kernels.h.
 */
#ifndef NOCTULE_KERNELS_SMOOTH_SMOOTH_H
#define NOCTULE_KERNELS_SMOOTH_SMOOTH_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SMOOTH_MAX_RADIUS 64 /* voxels */
#define SMOOTH_MAX_BINS   4096

/* KERNELS_SMOOTH's demand. */
struct smooth_demand {
    double spacing[3];
    double sigma_mm; /* the largest of the job's requests */
};

struct smooth_request {
    double sigma_mm;
    int32_t lo, hi;             /* clip, stored values; hi - lo is at most 65535 */
    struct image_range padding; /* lo > hi: no padding */
    struct image_range range;   /* of the filtered values, inclusive */
    /* The voxels whose values count, as the bits of a mask; others are 0 in `bits`. A small region takes less time.
     * NULL: all. It may be `bits`. */
    const uint64_t *region;
    uint64_t *bits; /* in range; as in struct image_mask, min words per row; of the caller; NULL: not wanted */
    /* Counts filtered values v: bin floor((v - first) / width), others are ignored. NULL: not wanted. */
    uint64_t *histogram;
    int32_t bins, first, width; /* at most SMOOTH_MAX_BINS */
};

/* Filters the volume. Returns -E2BIG with VOLUME_TOO_LARGE above SMOOTH_MAX_RADIUS; -EINVAL, -EBUSY. */
int smooth_run(struct kernels_lane *lane, const struct smooth_request *request, struct error *error);

/* Write the weights 0 .. radius of one side and return the radius, or -1 above SMOOTH_MAX_RADIUS: g(i), and integers. */
int smooth_gaussian(double sigma_voxels, double weights[SMOOTH_MAX_RADIUS + 1]);
int smooth_weights(double sigma_voxels, int32_t weights[SMOOTH_MAX_RADIUS + 1]);

#ifdef __cplusplus
}
#endif
#endif
