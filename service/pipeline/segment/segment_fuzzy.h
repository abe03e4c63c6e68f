/*
 * segment_fuzzy.h - converts configured segments of fuzzy connectedness (real-world units,
 * millimetres, fractions) to objects of the kernel (stored values, voxels), and measures estimates
 * at the seeds.
 *
 * Units. The Gaussians of Udupa 1996 are configured in real-world units. With the slope and
 * intercept of the values of the series (rescaled_series.h), a mean m becomes (m - intercept) / slope, and a sigma is divided
 * by |slope|. Real values are compared if slices have rescales of their own. A series whose slices differ in padding is
 * refused (PADDING_MIXED): an affinity compares values of two slices.
 *
 * Seeds. A seed is the voxel nearest to its point (halves towards larger coordinates); a point
 * outside the volume is refused (SEED_OUTSIDE). All voxels that auto finds (segment_start.c) are
 * seeds.
 *
 * Estimates. Numbers that are not configured are measured in stored values. The voxels are those of
 * the cubes that extend estimate_voxels from each seed along every axis, cut off at the edge of the
 * volume, without padding, each voxel once. They give the mean, the standard deviation of the
 * population, and for homogeneity_sigma sqrt(mean of ((a - b) / 2)^2) over all pairs of
 * 6-neighbours among these voxels. With this sigma the second Gaussian, of mean 0, makes the half
 * differences most likely.
 *
 * Sums of integers are exact, so the order has no influence; others are in the order of voxels. A deviation of 0 becomes 1
 * stored value, of real values that are no integers that of the smallest slope. Without a
 * seed, or with padding only: SEEDS_IN_PADDING.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_FUZZY_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_FUZZY_H

#include "kernels/fuzzy/fuzzy.h"
#include "service/pipeline/rescaled_series.h"
#include "service/pipeline/segment/segment.h"

/* The Gaussians of a segment, in real-world units. */
struct fuzzy_gaussians {
    struct conf_estimable mean, sigma, homogeneity_sigma; /* measured if not configured */
    int64_t measured_voxels;                              /* 0: all were configured */
};

/*
 * The data that the method prepares: one element per segment, in the pipeline's order; -EINVAL with
 * PADDING_MIXED or SEED_OUTSIDE.
 */
struct fuzzy_objects {
    struct kernels_fuzzy_demand demand;
    struct kernels_fuzzy_object *items;
    struct fuzzy_gaussians *gaussians;
    struct kernels_voxel *seeds; /* storage of the items */
    struct rescaled_series series;
    struct rescaled_fuzzy *real; /* objects of real values; NULL: of stored ones */
};

/*
 * segment_fuzzy_measure.c: measures missing numbers of ready segments in the decoded volume
 * (stack->pixel, x fastest), and fills the items' Gaussians for kernels_fuzzy_run(). Returns 0,
 * -ENOMEM, or -EINVAL with SEEDS_IN_PADDING.
 */
int fuzzy_objects_measure(const struct segmentation *segmentation, const void *voxels, struct error *error);

#endif
