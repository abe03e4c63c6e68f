/*
 * segment_fuzzy.h - from fuzzy connectedness segments as configured (real-world units,
 * millimetres, fractions) to objects as computed (stored values, voxels), and what is measured at
 * the seeds.
 *
 * Units. The Gaussians of Udupa 1996 are given in real-world units; with the one slope and intercept
 * of the series a mean m becomes (m - intercept) / slope, and a sigma is divided by |slope|. A
 * series whose slices differ in slope or intercept is refused (RESCALE_VARIES), and one whose
 * slices differ in padding too (PADDING_MIXED): an affinity compares values of two slices.
 *
 * Seeds. A seed is the voxel nearest to its point (halves towards larger coordinates); one that is
 * not in the volume is refused (SEED_OUTSIDE). Of what auto finds (segment_start.h), all voxels are seeds.
 *
 * Estimates. What a segment does not give is measured in stored values among the voxels of the
 * cubes that reach estimate_voxels from each seed along every axis, cut off at the edge of the
 * volume, without padding, each voxel once: the mean, the standard deviation of the population, and
 * for homogeneity_sigma sqrt(mean of ((a - b) / 2)^2) over all pairs of 6-neighbours that are both
 * among these voxels - the sigma under which the second Gaussian, whose mean is 0, makes the
 * half differences most likely. Sums are exact, so that the order does not matter. A deviation that
 * comes out as 0 becomes 1 stored value. All of it padding, or no seed: SEEDS_IN_PADDING.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_FUZZY_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_FUZZY_H

#include "kernels/fuzzy/fuzzy.h"
#include "service/pipeline/segment/segment.h"

/* What a segment's Gaussians came to be, in real-world units. */
struct fuzzy_gaussians {
    struct conf_estimable mean, sigma, homogeneity_sigma; /* not given: measured */
    int64_t measured_voxels;                              /* 0: nothing had to be measured */
};

/* What the method prepares: one element per segment, in the pipeline's order; -EINVAL with
 * RESCALE_VARIES, PADDING_MIXED or SEED_OUTSIDE. */
struct fuzzy_objects {
    struct kernels_fuzzy_demand demand;
    struct kernels_fuzzy_object *items;
    struct fuzzy_gaussians *gaussians;
    struct kernels_voxel *seeds;  /* storage of the items' */
    struct image_rescale rescale; /* of the series */
};

/* segment_fuzzy_measure.c: measures what is missing of the segments that are ready in the decoded volume
 * (stack->pixel, x fastest) and fills in the items' Gaussians: kernels_fuzzy_run may have them then.
 * 0, -ENOMEM, or -EINVAL with SEEDS_IN_PADDING. */
int fuzzy_objects_measure(const struct segmentation *segmentation, const void *voxels,
                          struct error *error);

#endif
