/*
 * segment_extreme.h - finds the voxels with the highest, or lowest, mean value around them.
 *
 * The mean of a voxel is over the box that extends floor(mm / 2 / spacing) voxels from it along
 * each axis, at most (size - 1) / 2. A voxel whose box leaves the volume, or contains padding, has
 * no mean. Means are of real-world values and are compared exactly. If all planes have the same
 * rescale, sums of stored values are compared. Otherwise sums over the planes, ascending, of slope
 * * (sum of stored values) + intercept * (voxels), in double precision without FMA.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_EXTREME_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_EXTREME_H

#include "service/pipeline/segment/segment.h"

struct extreme_request {
    double mm;
    bool lowest;
    const uint64_t *const *within; /* masks: only voxels in all of them count */
    size_t within_count;
};

/* Returns the bytes that the search needs. */
int64_t extreme_bytes(const struct geometry_stack *stack, double mm);

/*
 * Sets the bits of the voxels with the highest (lowest) mean; no bit if no voxel has a mean. The
 * bits must be 0, in rows of as few words as possible. `voxels` is the decoded volume. Returns 0 or
 * -ENOMEM.
 */
int extreme_find(const struct segmentation *segmentation, const struct extreme_request *request, const void *voxels,
                 uint64_t *bits, struct error *error);

#endif
