/*
 * segment_sets.h - the mask of a segment from the region of its method: cut to other segments, less others,
 * and the steps, in the terms of kernels/mask/mask.h. noctule.conf(5), "Segments, voxel for voxel",
 * defines them.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_SETS_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_SETS_H

#include "service/pipeline/segment/segment.h"

/* Gives each segment its place where it needs one, and fills the demand; `demand` is the job's. */
int sets_prepare(struct segmentation *segmentation, struct kernels_demand *demand,
                 struct error *error);

/* The masks that the segment lies within, as many as it names; returns how many. */
size_t sets_within(const struct segmentation *segmentation, size_t segment, const uint64_t **masks);

/* Makes what auto starts a segment from: the largest component of the request, which has no steps.
 * The bits are the lane's. */
int sets_make_start(const struct segmentation *segmentation, size_t segment,
                    struct kernels_lane *lane, const struct kernels_mask_request *request,
                    const uint64_t **bits, struct error *error);

/* Makes a segment's mask of what was found, and of the masks that it uses. */
int sets_make(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
              struct error *error);

/* Adds them to the segment's Algorithm Parameters. */
void sets_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

#endif
