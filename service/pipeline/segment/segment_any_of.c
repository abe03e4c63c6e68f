/* segment_any_of.c - the union of other segments. */
#include "service/pipeline/segment/segment.h"

static int
any_of_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
            uint64_t *bits, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_segment *segment = &pipeline->segments[number];
    const size_t words = segment_mask_words(segmentation->stack);
    (void)lane;
    (void)voxels;
    (void)error;
    for (size_t i = 0; i < segment->any_of_count; i++) {
        const uint64_t *other = segmentation->masks[conf_find_segment(pipeline, segment->any_of[i])].bits;
        for (size_t w = 0; w < words; w++)
            bits[w] |= other[w];
    }
    return 0;
}

static void
any_of_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    text[0] = '\0';
    for (size_t i = 0; i < segment->any_of_count; i++)
        segment_append(text, SEGMENT_DESCRIPTION, "%s%s", i > 0 ? ", " : "any of ", segment->any_of[i]);
}

const struct segment_method segment_any_of = {
    .algorithm = "Noctule union of segments",
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_OPS,
    .size = 1,
    .find = any_of_find,
    .describe = any_of_describe,
};
