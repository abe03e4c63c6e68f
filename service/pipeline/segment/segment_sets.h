/*
 * segment_sets.h - makes the mask of a segment from the region of its method: limits, exclusions
 * and steps, as defined by kernels/mask/mask.h and by noctule.conf(5), "Segments, voxel for voxel".
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_SETS_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_SETS_H

#include "service/pipeline/segment/segment.h"

/* Assigns masks to segments that need one, and fills the demand; `demand` is the job's. */
int sets_prepare(struct segmentation *segmentation, struct kernels_demand *demand, struct error *error);

/* Lists the masks that limit the segment. Returns their number. */
size_t sets_within(const struct segmentation *segmentation, size_t segment, const uint64_t **masks);

/*
 * Makes the start of a segment by auto: the largest component of the request, without steps. The
 * bits belong to the lane.
 */
int sets_make_start(const struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
                    const struct kernels_mask_request *request, const uint64_t **bits, struct error *error);

/* Makes a segment's mask from its region and the masks that it uses. */
int sets_make(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane, struct error *error);

/* Returns the bytes that the steps of a segment need outside of the lane. */
int64_t sets_bytes(const struct segmentation *segmentation, size_t segment);

/* Appends the limits and steps to the segment's Algorithm Parameters. */
void sets_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

#endif
