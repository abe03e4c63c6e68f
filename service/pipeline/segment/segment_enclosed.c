/* segment_enclosed.c - voxels around which another segment lies in most directions (kernels/enclosed/enclosed.h). */
#include "kernels/enclosed/enclosed.h"
#include "service/pipeline/segment/segment.h"

#include <stdio.h>
#include <string.h>

static int
enclosed_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
              uint64_t *bits, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_enclosed *enclosed = &pipeline->segments[number].enclosed;
    struct enclosed_request request = {.mask = segmentation->masks[conf_find_segment(pipeline, enclosed->by)].bits,
                                       .directions =
                                           enclosed->directions == CONF_DIRECTIONS_26 ? ENCLOSED_26 : ENCLOSED_AXIAL_16,
                                       .at_least = enclosed->at_least,
                                       .within_mm = enclosed->within_mm,
                                       .bits = bits};
    (void)voxels;
    memcpy(request.spacing, segmentation->stack->spacing, sizeof request.spacing);
    return enclosed_run(lane, &request, error);
}

static void
enclosed_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_enclosed *enclosed = &segmentation->pipeline->segments[number].enclosed;
    const bool all = enclosed->directions == CONF_DIRECTIONS_26;
    snprintf(text, SEGMENT_DESCRIPTION, "segment %s within %g mm in at least %d of %s", enclosed->by,
             enclosed->within_mm, enclosed->at_least, all ? "26 directions" : "16 directions in the slice");
}

const struct segment_method segment_enclosed = {
    .algorithm = "Noctule enclosed voxels",
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_ENCLOSED,
    .size = sizeof(bool), /* its demand */
    .find = enclosed_find,
    .describe = enclosed_describe,
};
