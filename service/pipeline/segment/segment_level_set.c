#include "service/pipeline/segment/segment_level_set.h"

#include "kernels/level_set/level_set_shape.h"
#include "service/pipeline/segment/segment.h"
#include "service/pipeline/segment/segment_ranges.h"
#include "service/pipeline/segment/segment_sets.h"
#include "service/pipeline/volume.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int
level_set_shape(const struct conf_shape *shape, const struct geometry_stack *stack, struct kernels_shape *voxels)
{
    volume_point(shape->center, shape->center_unit, stack, voxels->center);
    for (int axis = 0; axis < 3; axis++) {
        voxels->radius[axis] = shape->radius[axis];
        if (shape->radius_unit == CONF_MM)
            voxels->radius[axis] /= stack->spacing[axis];
        if (!isfinite(voxels->center[axis]) || !isfinite(voxels->radius[axis]) || voxels->radius[axis] < 0)
            return -EINVAL;
    }
    switch (shape->kind) {
    case CONF_BOX:
        voxels->kind = KERNELS_BOX;
        break;
    case CONF_ELLIPSOID:
        voxels->kind = KERNELS_ELLIPSOID;
        break;
    case CONF_SPHERE: /* a sphere in mm is an ellipsoid in voxels that are not cubes */
        voxels->kind = voxels->radius[0] == voxels->radius[1] && voxels->radius[1] == voxels->radius[2]
                           ? KERNELS_SPHERE
                           : KERNELS_ELLIPSOID;
        break;
    }
    return 0;
}

int
level_set_shapes(const struct conf_segment *segment, const struct geometry_stack *stack, struct kernels_shape *shapes,
                 struct error *error)
{
    for (size_t i = 0; i < segment->shape_count; i++)
        if (level_set_shape(&segment->shapes[i], stack, &shapes[i]) != 0)
            return error_set(error, -EINVAL, CODE_SHAPE_INVALID,
                             "shape %zu of segment \"%s\" has no size in the voxels of this series", i + 1,
                             segment->label);
    return 0;
}

static int
make_label(const struct conf_segment *segment, const struct geometry_stack *stack, struct image_range *ranges,
           struct kernels_shape *shapes, struct kernels_level_set_label *label, struct error *error)
{
    const int rc = level_set_shapes(segment, stack, shapes, error);
    const bool center = segment->automatic == CONF_AUTO_CENTER;
    if (center) /* the voxel at the centre; two per axis with an even number */
        *shapes = (struct kernels_shape){
            .kind = KERNELS_BOX,
            .center = {(stack->columns - 1) / 2.0, (stack->rows - 1) / 2.0, (stack->plane_count - 1) / 2.0},
            .radius = {0.5, 0.5, 0.5}};
    *label = (struct kernels_level_set_label){
        .shapes = shapes,
        .shape_count = center ? 1 : segment->shape_count,
        .ranges = ranges,
        .range_count = (size_t)stack->plane_count,
        .padding = {1, 0},
        .strict = true,
    };
    return rc;
}

/* Fills the ranges that are known. */
static int
level_set_fill_ranges(const struct segmentation *segmentation, const struct level_set_labels *labels, size_t k,
                      struct error *error)
{
    const size_t segment = segmentation->of[CONF_LEVEL_SET].segments[k];
    struct image_range *ranges = labels->ranges + k * (size_t)segmentation->stack->plane_count;
    if (!segmentation->ranges[segment].known)
        return 0;
    return ranges_make(segmentation, segment, ranges, &labels->items[k].padding, error);
}

static int
level_set_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct level_set_labels *labels = prepared;
    const struct geometry_stack *stack = segmentation->stack;
    const size_t planes = (size_t)stack->plane_count, count = segmentation->of[CONF_LEVEL_SET].count;
    size_t shape_count = count, within_count = 1;
    labels->demand.labels = count;
    for (size_t k = 0; k < count; k++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_LEVEL_SET, k);
        shape_count += segment->shape_count;
        within_count += segment->within_count;
    }
    labels->items = calloc(count, sizeof *labels->items);
    labels->ranges = calloc(count * planes, sizeof *labels->ranges);
    labels->shapes = calloc(shape_count, sizeof *labels->shapes);
    labels->shape_counts = calloc(count, sizeof *labels->shape_counts);
    labels->within = calloc(within_count, sizeof *labels->within);
    if (!labels->items || !labels->ranges || !labels->shapes || !labels->shape_counts || !labels->within)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    struct kernels_shape *shapes = labels->shapes;
    int rc = 0;
    for (size_t k = 0; k < count && rc == 0; k++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_LEVEL_SET, k);
        rc = make_label(segment, stack, labels->ranges + k * planes, shapes, &labels->items[k], error);
        if (rc == 0)
            rc = level_set_fill_ranges(segmentation, labels, k, error);
        labels->shape_counts[k] = labels->items[k].shape_count;
        shapes += labels->items[k].shape_count;
    }
    return rc;
}

static void
level_set_release(void *prepared)
{
    struct level_set_labels *labels = prepared;
    free(labels->items);
    free(labels->ranges);
    free(labels->shapes);
    free(labels->shape_counts);
    free(labels->within);
}

static const char *const unit_names[] = {[CONF_VOXEL] = "voxel", [CONF_MM] = "mm", [CONF_FRACTION] = "fraction"};
static const char *const shape_names[] = {[CONF_SPHERE] = "sphere", [CONF_ELLIPSOID] = "ellipsoid", [CONF_BOX] = "box"};

void
level_set_describe_shapes(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION])
{
    for (size_t i = 0; i < segment->shape_count; i++) {
        const struct conf_shape *shape = &segment->shapes[i];
        const double *c = shape->center, *r = shape->radius;
        segment_append(text, SEGMENT_DESCRIPTION, "; %s center %g,%g,%g %s radius %g,%g,%g %s",
                       shape_names[shape->kind], c[0], c[1], c[2], unit_names[shape->center_unit], r[0], r[1], r[2],
                       unit_names[shape->radius_unit]);
    }
}

/* Writes range and shapes as configured. */
static void
level_set_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    ranges_describe(segmentation, number, text);
    level_set_describe_shapes(segment, text);
    if (segment->from)
        segment_append(text, SEGMENT_DESCRIPTION, "; from the object of segment %s", segment->from);
    start_describe(segment, text);
}

static struct segment_bytes
level_set_bytes(const struct segmentation *segmentation, size_t number)
{
    const int64_t looking = start_bytes(segmentation, number);
    int64_t range = ranges_bytes(segmentation, number);
    if (range > 0)
        range += segment_mask_bytes(segmentation->stack); /* for its start */
    return (struct segment_bytes){.passing = looking > range ? looking : range};
}

static int
level_set_begin(const struct segmentation *segmentation, struct kernels_lane *lane, struct error *error)
{
    const struct level_set_labels *labels = segmentation->of[CONF_LEVEL_SET].prepared;
    return kernels_level_set_begin(lane, labels->items, labels->demand.labels, error);
}

/*
 * Gives ready segments their start; the others are empty in this run. The labels keep their
 * address, by which the lane recognises them.
 */
static void
level_set_choose(const struct segmentation *segmentation, const struct level_set_labels *labels)
{
    const size_t *segments = segmentation->of[CONF_LEVEL_SET].segments;
    const uint64_t **within = labels->within;
    for (size_t k = 0; k < labels->demand.labels; k++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_LEVEL_SET, k);
        struct kernels_level_set_label *label = &labels->items[k];
        label->shape_count = 0;
        if (!segmentation->ready[segments[k]])
            continue;
        label->shape_count = labels->shape_counts[k];
        label->within = within;
        label->within_count = sets_within(segmentation, segments[k], within);
        within += label->within_count;
        if (segment->from)
            label->mask = segment_from(segmentation, segments[k]);
    }
}

void
level_set_draw(const struct geometry_stack *stack, const struct kernels_shape *shapes, size_t count,
               const uint64_t *mask, uint64_t *bits)
{
    const int64_t words = (stack->columns - 1) / 64 + 1;
    const int64_t rows = (int64_t)stack->rows * stack->plane_count;
    if (mask)
        memcpy(bits, mask, (size_t)(rows * words) * sizeof *bits);
    for (int64_t row = 0; row < rows; row++)
        for (size_t s = 0; s < count; s++) {
            const struct shape_interval columns =
                shape_row(&shapes[s], row % stack->rows, row / stack->rows, stack->columns);
            for (int64_t x = columns.first; x <= columns.last; x++)
                bits[row * words + x / 64] |= UINT64_C(1) << x % 64;
        }
}

/* Finds the start of a label by auto, once. */
static int
level_set_look(const struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
               struct kernels_level_set_label *label, struct error *error)
{
    const struct kernels_mask_request range = {
        .ranges = label->ranges, .range_count = label->range_count, .padding = label->padding};
    return start_find(segmentation, number, lane, voxels, &range, &label->mask, error);
}

/*
 * Gives each segment that became ready its range, and its start by auto: the largest component
 * follows from the range; a mean is found before the range, which may depend on it.
 */
static int
level_set_complete(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, size_t k,
                   struct error *error)
{
    const struct level_set_labels *labels = segmentation->of[CONF_LEVEL_SET].prepared;
    const struct conf_segment *segment = segment_at(segmentation, CONF_LEVEL_SET, k);
    const size_t number = segmentation->of[CONF_LEVEL_SET].segments[k];
    struct kernels_level_set_label *label = &labels->items[k];
    const bool looks = conf_segment_looks(segment) && !label->mask;
    int rc = 0;
    if (!segmentation->ready[number])
        return 0;
    if (looks && segment->automatic != CONF_AUTO_LARGEST)
        rc = level_set_look(segmentation, number, lane, voxels, label, error);
    if (rc == 0 && !segmentation->ranges[number].known) {
        uint64_t *start = calloc(segment_mask_words(segmentation->stack), sizeof *start);
        if (!start)
            return error_set_system(error, -ENOMEM, "hold the start region");
        level_set_draw(segmentation->stack, label->shapes, label->shape_count, label->mask, start);
        rc = ranges_find(segmentation, number, lane, start, error);
        free(start);
        if (rc == 0)
            rc = level_set_fill_ranges(segmentation, labels, k, error);
    }
    if (rc == 0 && looks && segment->automatic == CONF_AUTO_LARGEST)
        rc = level_set_look(segmentation, number, lane, voxels, label, error);
    return rc;
}

static int
level_set_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    const struct level_set_labels *labels = segmentation->of[CONF_LEVEL_SET].prepared;
    const size_t count = labels->demand.labels;
    struct image_mask *masks = calloc(count, sizeof *masks);
    int rc = 0;
    if (!masks)
        return error_set_system(error, -ENOMEM, "hold the masks");
    level_set_choose(segmentation, labels);
    for (size_t k = 0; k < count && rc == 0; k++)
        rc = level_set_complete(segmentation, lane, voxels, k, error);
    if (rc == 0)
        rc = kernels_level_set_run(lane, labels->items, count, masks, error);
    for (size_t k = 0; k < count && rc == 0; k++)
        segmentation->found[segmentation->of[CONF_LEVEL_SET].segments[k]] = masks[k];
    free(masks);
    return rc;
}

const struct segment_method segment_level_set = {
    .algorithm = "Noctule level set",
    .op = KERNELS_LEVEL_SET,
    .size = sizeof(struct level_set_labels),
    .prepare = level_set_prepare,
    .release = level_set_release,
    .bytes = level_set_bytes,
    .begin = level_set_begin,
    .run = level_set_run,
    .describe = level_set_describe,
    .report = ranges_report,
};
