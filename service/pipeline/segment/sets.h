/*
 * sets.h - what is done with what a method has found: cut to other segments, less others, and the
 * steps, in the pipeline's words made those of kernels/mask/mask.h.
 */
#ifndef NOCTULE_SEGMENT_SETS_H
#define NOCTULE_SEGMENT_SETS_H

#include "service/pipeline/segment/segment.h"

/* Gives each segment its place where it needs one, and fills the demand; `demand` is the job's. */
int sets_prepare(struct segmentation *segmentation, struct kernels_demand *demand,
                 struct error *error);

/* Makes what auto = "largest" starts a segment from: of what the request begins with, within the
 * segments that it lies in, the largest component. The bits are the lane's. */
int sets_make_start(const struct segmentation *segmentation, size_t segment,
                    struct kernels_lane *lane, const struct kernels_mask_request *request,
                    const uint64_t **bits, struct error *error);

/* Makes a segment's mask of what was found, and of the masks that it uses. */
int sets_make(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
              struct error *error);

/* Adds them to the segment's Algorithm Parameters. */
void sets_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

#endif
