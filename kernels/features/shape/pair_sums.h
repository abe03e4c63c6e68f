/*
 * pair_sums.h - sums over all pairs of two voxels of a region, weighted by the inverse of their distance in mm, for
 * Moran's I and Geary's C. Uses Fourier transforms in double precision: for regions whose exact integer transforms
 * (kernels/morphology/lags.h) would be too large, and for real-world values. The relative error is near 1e-14.
 *
 * Runs on the host, in a fixed order that does not depend on the number of threads, with roots of unity of its own. All
 * backends therefore agree bit for bit. Threads: any.
 */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_PAIR_SUMS_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_PAIR_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Max voxels of a region, and max points of the transform of a box: 1 GiB. */
#define PAIR_SUMS_VOXELS INT64_C(8000000)
#define PAIR_SUMS_POINTS (INT64_C(1) << 26)

/* A box around a region. Voxel (x, y, z) is values[(z * size[1] + y) * size[0] + x]; NAN: not in the region. */
struct pair_box {
    int64_t size[3];
    double spacing[3]; /* mm */
    const double *values;
};

struct pair_sums {
    double voxels;
    double mean;
    double deviations; /* sum of squared deviations from the mean */
    double weights;    /* of all ordered pairs: 1 / distance */
    double products;   /* of both deviations, weighted */
    double squares;    /* of the difference of both values, weighted */
};

/* Returns the points of the transform of a box of these sizes; 0: too many. */
int64_t pair_sums_points(const int64_t size[3]);

/* Returns 0 or -ENOMEM. The box must have points. */
int pair_sums_make(const struct pair_box *box, int threads, struct pair_sums *sums);

#endif
