/*
 * segment_range.c - segments of all voxels in a range of values (segment_ranges.h). A mask begins
 * with the range (kernels/mask/mask.h), so the method has no region to find.
 */
#include "service/pipeline/rescaled_series.h"
#include "service/pipeline/segment/segment_coarse.h"
#include "service/pipeline/segment/segment_level_set.h"
#include "service/pipeline/segment/segment_ranges.h"
#include "service/pipeline/volume.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Draws the shapes of a segment and its segment of `from`. */
static int
range_draw(const struct segmentation *segmentation, size_t segment, uint64_t *bits, struct error *error)
{
    const struct conf_segment *own = &segmentation->pipeline->segments[segment];
    struct kernels_shape *shapes = calloc(own->shape_count + 1, sizeof *shapes);
    int rc = shapes ? level_set_shapes(own, segmentation->stack, shapes, error)
                    : error_set_system(error, -ENOMEM, "hold the shapes");
    if (rc == 0)
        level_set_draw(segmentation->stack, shapes, own->shape_count,
                       own->from ? segment_from(segmentation, segment) : NULL, bits);
    free(shapes);
    return rc;
}

/* Grows or shrinks the segment of `refine` by its band. */
static int
range_band(const struct segmentation *segmentation, size_t segment, enum kernels_mask_step_kind kind, bool unite,
           uint64_t *bits, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_refine *refine = pipeline->segments[segment].refine;
    const struct kernels_mask_step step = {.kind = kind, .amount = refine->band_mm};
    return coarse_volume_band(segmentation->coarse, segmentation, conf_find_segment(pipeline, refine->label), step,
                              unite, bits, error);
}

/* Finds the voxels that can be in range. */
static int
range_find_bounds(const struct segmentation *segmentation, size_t segment, uint64_t *bounds, struct error *error)
{
    if (segmentation->pipeline->segments[segment].refine)
        return range_band(segmentation, segment, KERNELS_MASK_GROW, false, bounds, error);
    memset(bounds, 0, segment_mask_words(segmentation->stack) * sizeof *bounds);
    return range_draw(segmentation, segment, bounds, error);
}

/* Finds the region of a segment with smooth_mm or shapes, once, in the memory of its mask. The range applies to it, except
 * with smooth_mm. */
static int
range_find_region(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane, struct error *error)
{
    const struct conf_segment *own = &segmentation->pipeline->segments[segment];
    const bool is_bounded = own->refine || own->shape_count > 0 || own->from;
    uint64_t *bits;
    if ((own->smooth_mm <= 0 && own->shape_count == 0) || segmentation->found[segment].bits)
        return 0;
    int rc = kernels_mask_memory(lane, segmentation->places[segment], &bits, error);
    if (rc == 0 && is_bounded)
        rc = range_find_bounds(segmentation, segment, bits, error);
    if (rc == 0 && own->smooth_mm > 0)
        rc = ranges_smooth(segmentation, segment, lane, is_bounded ? bits : NULL, bits, error);
    if (rc == 0 && own->refine) /* deeper voxels are in the segment anyway */
        rc = range_band(segmentation, segment, KERNELS_MASK_SHRINK, true, bits, error);
    if (rc == 0)
        segmentation->found[segment].bits = bits;
    return rc;
}

static int
range_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    int rc = 0;
    (void)voxels;
    for (size_t k = 0; k < segmentation->of[CONF_RANGE].count && rc == 0; k++) {
        const size_t segment = segmentation->of[CONF_RANGE].segments[k];
        if (!segmentation->ready[segment])
            continue;
        if (!segmentation->ranges[segment].known)
            rc = ranges_find(segmentation, segment, lane, NULL, error);
        if (rc == 0)
            rc = range_find_region(segmentation, segment, lane, error);
    }
    return rc ? rc : range_fill(segmentation, segmentation->of[CONF_RANGE].prepared, error);
}

static void
range_begin_mask(const struct segmentation *segmentation, size_t segment, struct kernels_mask_request *request)
{
    const struct range_segments *own = segmentation->of[CONF_RANGE].prepared;
    const struct conf_segment *conf = &segmentation->pipeline->segments[segment];
    const size_t k = segment_place(segmentation, segment);
    if (segmentation->found[segment].bits)
        request->found = segmentation->found[segment].bits;
    else if (conf->from)
        request->found = segment_from(segmentation, segment);
    if (conf->smooth_mm > 0) {
        request->padding = volume_common_padding(segmentation->instances, segmentation->stack);
        return;
    }
    request->range_count = (size_t)segmentation->stack->plane_count;
    request->ranges = own->ranges + k * request->range_count;
    request->padding = own->holes[k];
}

static void
range_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *own = &segmentation->pipeline->segments[segment];
    ranges_describe(segmentation, segment, text);
    level_set_describe_shapes(own, text);
    if (own->from)
        segment_append(text, SEGMENT_DESCRIPTION, "; from segment %s", own->from);
    if (own->refine)
        segment_append(text, SEGMENT_DESCRIPTION, "; refine segment %s within %g mm", own->refine->label,
                       own->refine->band_mm);
}

static struct segment_bytes
range_bytes(const struct segmentation *segmentation, size_t segment)
{
    const struct geometry_stack *stack = segmentation->stack;
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    const bool is_apart = segmentation->pipeline->segments[segment].smooth_mm > 0 &&
                          rescaled_series_is_apart(segmentation->instances, stack);
    return (struct segment_bytes){.passing = ranges_bytes(segmentation, segment) +
                                             (is_apart ? rescaled_smooth_bytes(&extent) : 0)};
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
