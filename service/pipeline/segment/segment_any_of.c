/* segment_any_of.c - the union of other segments. */
#include "service/pipeline/segment/segment.h"

#include <errno.h>

static int
any_of_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const size_t words = segment_mask_words(segmentation->stack);
    (void)lane;
    (void)voxels;
    for (size_t k = 0; k < segmentation->of[CONF_ANY_OF].count; k++) {
        const size_t number = segmentation->of[CONF_ANY_OF].segments[k];
        const struct conf_segment *segment = &pipeline->segments[number];
        if (!segmentation->ready[number] || segmentation->own[number])
            continue;
        uint64_t *bits = segment_reserve(segmentation, number, error);
        if (!bits)
            return -ENOMEM;
        for (size_t i = 0; i < segment->any_of_count; i++) {
            const uint64_t *other = segmentation->masks[conf_find_segment(pipeline, segment->any_of[i])].bits;
            for (size_t w = 0; w < words; w++)
                bits[w] |= other[w];
        }
        segment_found(segmentation, number);
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
    .op = KERNELS_OPS,
    .makes_bits = true,
    .size = 1,
    .run = any_of_run,
    .describe = any_of_describe,
};
