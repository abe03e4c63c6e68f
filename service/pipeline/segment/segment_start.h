/*
 * segment_start.h - the start of a segment by auto, for all methods: the largest component of the
 * voxels that are in range and in all segments of `within`; or the one of the voxels there with the
 * highest (lowest) mean around them (segment_extreme.h).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_START_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_START_H

#include "service/pipeline/segment/segment.h"

/*
 * Finds the start of a segment; the segments of its `within` must be made. `range` has ranges,
 * range_count and padding for the largest component; its other members are 0. The bits belong to
 * the lane; no bit is set if no voxel qualifies.
 */
int start_find(const struct segmentation *segmentation, size_t segment, struct kernels_lane *lane, const void *voxels,
               const struct kernels_mask_request *range, const uint64_t **bits, struct error *error);

/* Returns the bytes that it needs; 0 for a segment without auto. */
int64_t start_bytes(const struct segmentation *segmentation, size_t segment);

/* Appends "; from the highest mean over 10 mm" for auto by a mean. */
void start_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

#endif
