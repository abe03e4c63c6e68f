/*
 * segment_range.c - segments of all voxels in a range of values (segment_ranges.h). A mask begins
 * with the range (kernels/mask/mask.h), so the method has no region to find.
 */
#include "service/pipeline/segment/segment_ranges.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

/* One element per segment, in the pipeline's order. */
struct range_segments {
    struct image_range *ranges; /* one per plane */
    struct image_range *holes;
};

/* Fills ranges that are known. */
static int
range_fill(const struct segmentation *segmentation, const struct range_segments *own, struct error *error)
{
    const size_t planes = (size_t)segmentation->stack->plane_count;
    int rc = 0;
    for (size_t k = 0; k < segmentation->of[CONF_RANGE].count && rc == 0; k++) {
        const size_t segment = segmentation->of[CONF_RANGE].segments[k];
        if (segmentation->ranges[segment].known)
            rc = ranges_make(segmentation, segment, own->ranges + k * planes, &own->holes[k], error);
    }
    return rc;
}

static int
range_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct range_segments *own = prepared;
    const size_t count = segmentation->of[CONF_RANGE].count;
    const size_t planes = (size_t)segmentation->stack->plane_count;
    own->ranges = calloc(count * planes, sizeof *own->ranges);
    own->holes = calloc(count, sizeof *own->holes);
    if (!own->ranges || !own->holes)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    return range_fill(segmentation, own, error);
}

static void
range_release(void *prepared)
{
    struct range_segments *own = prepared;
    free(own->ranges);
    free(own->holes);
}

static int
range_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    int rc = 0;
    (void)voxels;
    for (size_t k = 0; k < segmentation->of[CONF_RANGE].count && rc == 0; k++) {
        const size_t segment = segmentation->of[CONF_RANGE].segments[k];
        if (segmentation->ready[segment] && !segmentation->ranges[segment].known)
            rc = ranges_find(segmentation, segment, lane, NULL, error);
    }
    return rc ? rc : range_fill(segmentation, segmentation->of[CONF_RANGE].prepared, error);
}

static void
range_begin_mask(const struct segmentation *segmentation, size_t segment, struct kernels_mask_request *request)
{
    const struct range_segments *own = segmentation->of[CONF_RANGE].prepared;
    const size_t k = segment_place(segmentation, segment);
    request->range_count = (size_t)segmentation->stack->plane_count;
    request->ranges = own->ranges + k * request->range_count;
    request->padding = own->holes[k];
    if (segmentation->pipeline->segments[segment].from)
        request->found = segment_from(segmentation, segment);
}

static void
range_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    const char *from = segmentation->pipeline->segments[segment].from;
    ranges_describe(segmentation, segment, text);
    if (from)
        segment_append(text, SEGMENT_DESCRIPTION, "; from segment %s", from);
}

static struct segment_bytes
range_bytes(const struct segmentation *segmentation, size_t segment)
{
    return (struct segment_bytes){.passing = ranges_bytes(segmentation, segment)};
}

const struct segment_method segment_range = {
    .algorithm = "Noctule range of values",
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123105", "DCM", "Histogram Analysis"},
    .op = KERNELS_OPS,
    .size = sizeof(struct range_segments),
    .prepare = range_prepare,
    .release = range_release,
    .bytes = range_bytes,
    .run = range_run,
    .begin_mask = range_begin_mask,
    .describe = range_describe,
    .report = ranges_report,
};
