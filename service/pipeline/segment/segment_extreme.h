/*
 * segment_extreme.h - where the mean value around a voxel is the highest, or the lowest.
 *
 * The mean of a voxel is over the box that reaches floor(mm / 2 / spacing) voxels from it along each
 * axis, but at most (size - 1) / 2. A voxel whose box leaves the volume, or holds padding, has none.
 * Means are of real-world values and are compared exactly: where all planes have one rescale, as
 * sums of stored values; else as sums over the planes, ascending, of slope * (sum of stored values)
 * + intercept * (voxels), in double precision without FMA.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_EXTREME_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_EXTREME_H

#include "service/pipeline/segment/segment.h"

struct extreme_request {
    double mm;
    bool lowest;
    const uint64_t *const *within; /* masks: only voxels in each of them count */
    size_t within_count;
};

/* What the search takes of memory. */
int64_t extreme_bytes(const struct geometry_stack *stack, double mm);

/* Sets the bits, zeros before and of as few words a row as will do, of the voxels with the highest
 * (lowest) mean; none where no voxel has one. `voxels` is the decoded volume. 0 or -ENOMEM. */
int extreme_find(const struct segmentation *segmentation, const struct extreme_request *request,
                 const void *voxels, uint64_t *bits, struct error *error);

#endif
