/* segment_any_of.c - the union of other segments. A mask begins with it, so the method has no region to find. */
#include "service/pipeline/segment/segment.h"

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
    .describe = any_of_describe,
};
