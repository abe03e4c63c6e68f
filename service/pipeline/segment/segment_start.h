/*
 * segment_start.h - what auto starts a segment from, whatever its method: the largest component of what is
 * in range and in the segments that it lies within, or of the voxels in these with the highest
 * (lowest) mean around them (segment_extreme.h).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_START_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_START_H

#include "service/pipeline/segment/segment.h"

/*
 * For a segment that looks for its start, and is within nothing that is not made. `range` has
 * ranges, range_count and padding of what the largest component is of; all else of it is zeros. The
 * bits are the lane's, none where nothing is found.
 */
int start_find(const struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
               const void *voxels, const struct kernels_mask_request *range, const uint64_t **bits,
               struct error *error);

/* What that takes of memory; 0 where the segment does not look. */
int64_t start_bytes(const struct segmentation *segmentation, size_t segment);

/* Adds "; from the highest mean over 10 mm" where auto says it. */
void start_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

#endif
