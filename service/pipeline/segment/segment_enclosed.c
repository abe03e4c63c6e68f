/* segment_enclosed.c - voxels around which another segment lies in most directions (kernels/enclosed/enclosed.h). */
#include "kernels/enclosed/enclosed.h"
#include "service/pipeline/segment/segment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
enclosed_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    (void)segmentation;
    (void)prepared;
    (void)error;
    return 0;
}

static void
enclosed_release(void *prepared)
{
    (void)prepared;
}

static int
enclosed_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_enclosed *enclosed = &pipeline->segments[number].enclosed;
    struct enclosed_request request = {.mask = segmentation->masks[conf_find_segment(pipeline, enclosed->by)].bits,
                                       .directions =
                                           enclosed->directions == CONF_DIRECTIONS_26 ? ENCLOSED_26 : ENCLOSED_AXIAL_16,
                                       .at_least = enclosed->at_least,
                                       .within_mm = enclosed->within_mm,
                                       .bits = segment_reserve(segmentation, number, error)};
    if (!request.bits)
        return -ENOMEM;
    memcpy(request.spacing, segmentation->stack->spacing, sizeof request.spacing);
    const int rc = enclosed_run(lane, &request, error);
    if (rc == 0)
        segment_found(segmentation, number);
    return rc;
}

static int
enclosed_find_all(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    int rc = 0;
    (void)voxels;
    for (size_t k = 0; k < segmentation->of[CONF_ENCLOSED].count && rc == 0; k++) {
        const size_t number = segmentation->of[CONF_ENCLOSED].segments[k];
        if (segmentation->ready[number] && !segmentation->found[number].bits)
            rc = enclosed_find(segmentation, number, lane, error);
    }
    return rc;
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
    .makes_bits = true,
    .size = sizeof(bool), /* its demand */
    .prepare = enclosed_prepare,
    .release = enclosed_release,
    .run = enclosed_find_all,
    .describe = enclosed_describe,
};
