/* level_set.c - see level_set.h. */
#include "service/pipeline/segment/level_set.h"

#include "service/pipeline/volume.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct image_range nothing = {.lo = 1, .hi = 0};

static bool
overlap(struct image_range a, struct image_range b)
{
    return !volume_range_is_empty(a) && !volume_range_is_empty(b) && a.lo <= b.hi && b.lo <= a.hi;
}

/* ------------------------------------------------------------------------------ padding ---- */

/* Takes padding off an interval. Where it splits the interval in two nothing is taken off: true. */
static bool
cut_padding(struct image_range *range, struct image_range padding)
{
    if (!overlap(*range, padding))
        return false;
    if (padding.lo <= range->lo && range->hi <= padding.hi)
        *range = nothing;
    else if (padding.lo <= range->lo)
        range->lo = padding.hi + 1;
    else if (range->hi <= padding.hi)
        range->hi = padding.lo - 1;
    else
        return true;
    return false;
}

/* A plane's range must not lose anything to a hole that is no padding of that plane. */
static int
check_hole(const struct image_range *ranges, struct dicom_instance *const *instances,
           const struct geometry_stack *stack, struct image_range hole, int32_t hole_plane,
           struct error *error)
{
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct dicom_instance *instance = instances[stack->planes[z].instance];
        struct image_range padding = volume_padding(instance);
        bool same = padding.lo == hole.lo && padding.hi == hole.hi;
        if (same || !overlap(ranges[z], hole))
            continue;
        return error_set_files(
            error, -EINVAL, CODE_PADDING_MIXED, instances[stack->planes[hole_plane].instance]->path,
            instance->path,
            "the padding values of the series differ (%d to %d in one file, %d to %d in another) "
            "and lie inside the range of values to segment",
            hole.lo, hole.hi, padding.lo, padding.hi);
    }
    return 0;
}

static int
make_ranges(const struct conf_segment *segment, struct dicom_instance *const *instances,
            const struct geometry_stack *stack, struct image_range *ranges,
            struct image_range *hole, struct error *error)
{
    struct image_range limits = image_pixel_range(stack->pixel);
    int32_t hole_plane = 0;
    *hole = nothing;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        struct image_range padding = volume_padding(instances[plane->instance]);
        struct image_rescale rescale = volume_rescale(instances, plane);
        ranges[z] = volume_stored_range(segment->range, rescale.slope, rescale.intercept, limits);
        if (cut_padding(&ranges[z], padding) && volume_range_is_empty(*hole)) {
            *hole = padding;
            hole_plane = z;
        }
    }
    return volume_range_is_empty(*hole)
               ? 0
               : check_hole(ranges, instances, stack, *hole, hole_plane, error);
}

/* ------------------------------------------------------------------------------- shapes ---- */

int
level_set_shape(const struct conf_shape *shape, const struct geometry_stack *stack,
                struct kernels_shape *voxels)
{
    volume_point(shape->center, shape->center_unit, stack, voxels->center);
    for (int axis = 0; axis < 3; axis++) {
        voxels->radius[axis] = shape->radius[axis];
        if (shape->radius_unit == CONF_MM)
            voxels->radius[axis] /= stack->spacing[axis];
        if (!isfinite(voxels->center[axis]) || !isfinite(voxels->radius[axis]) ||
            voxels->radius[axis] < 0)
            return -EINVAL;
    }
    switch (shape->kind) {
    case CONF_BOX:
        voxels->kind = KERNELS_BOX;
        break;
    case CONF_ELLIPSOID:
        voxels->kind = KERNELS_ELLIPSOID;
        break;
    case CONF_SPHERE: /* where voxels are no cubes, a sphere in mm is an ellipsoid in voxels */
        voxels->kind =
            voxels->radius[0] == voxels->radius[1] && voxels->radius[1] == voxels->radius[2]
                ? KERNELS_SPHERE
                : KERNELS_ELLIPSOID;
        break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- labels ---- */

/* Segments of other methods have no shapes. */
static size_t
count_shapes(const struct conf_pipeline *pipeline)
{
    size_t count = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        count += pipeline->segments[i].shape_count;
    return count;
}

static int
make_label(const struct conf_segment *segment, struct dicom_instance *const *instances,
           const struct geometry_stack *stack, struct image_range *ranges,
           struct kernels_shape *shapes, struct kernels_level_set_label *label, struct error *error)
{
    for (size_t i = 0; i < segment->shape_count; i++) {
        if (level_set_shape(&segment->shapes[i], stack, &shapes[i]) != 0)
            return error_set(error, -EINVAL, CODE_SHAPE_INVALID,
                             "shape %zu of segment \"%s\" has no size in the voxels of this series",
                             i + 1, segment->label);
    }
    *label = (struct kernels_level_set_label){
        .shapes = shapes,
        .shape_count = segment->shape_count,
        .ranges = ranges,
        .range_count = (size_t)stack->plane_count,
    };
    return make_ranges(segment, instances, stack, ranges, &label->padding, error);
}

static int
level_set_reserve(struct level_set_labels *labels, const struct conf_pipeline *pipeline,
                  size_t planes, struct error *error)
{
    size_t count = labels->demand.labels;
    labels->items = calloc(count, sizeof *labels->items);
    labels->ranges = calloc(count * planes, sizeof *labels->ranges);
    labels->shapes = calloc(count_shapes(pipeline) + 1, sizeof *labels->shapes);
    bool complete = labels->items && labels->ranges && labels->shapes;
    return complete ? 0 : error_set_system(error, -ENOMEM, "prepare the segments");
}

static int
level_set_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct level_set_labels *labels = prepared;
    const struct geometry_stack *stack = segmentation->stack;
    const size_t planes = (size_t)stack->plane_count;
    labels->demand.labels = segmentation->of[CONF_LEVEL_SET].count;
    int rc = level_set_reserve(labels, segmentation->pipeline, planes, error);
    struct kernels_shape *shapes = labels->shapes;
    for (size_t k = 0; k < labels->demand.labels && rc == 0; k++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_LEVEL_SET, k);
        rc = make_label(segment, segmentation->instances, stack, labels->ranges + k * planes,
                        shapes, &labels->items[k], error);
        shapes += segment->shape_count;
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
}

/* ------------------------------------------------------------------------- the method ---- */

static const char *const unit_names[] = {
    [CONF_VOXEL] = "voxel", [CONF_MM] = "mm", [CONF_FRACTION] = "fraction"};
static const char *const shape_names[] = {
    [CONF_SPHERE] = "sphere", [CONF_ELLIPSOID] = "ellipsoid", [CONF_BOX] = "box"};

/* Range and shapes as configured. */
static void
level_set_describe(const struct segmentation *segmentation, size_t number,
                   char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    snprintf(text, SEGMENT_DESCRIPTION, "range %g..%g", segment->range[0], segment->range[1]);
    for (size_t i = 0; i < segment->shape_count; i++) {
        const struct conf_shape *shape = &segment->shapes[i];
        const double *c = shape->center, *r = shape->radius;
        segment_append(text, SEGMENT_DESCRIPTION, "; %s center %g,%g,%g %s radius %g,%g,%g %s",
                       shape_names[shape->kind], c[0], c[1], c[2], unit_names[shape->center_unit],
                       r[0], r[1], r[2], unit_names[shape->radius_unit]);
    }
    if (segment->from)
        segment_append(text, SEGMENT_DESCRIPTION, "; from the object of segment %s", segment->from);
}

static int
level_set_begin(const struct segmentation *segmentation, struct kernels_lane *lane,
                struct error *error)
{
    const struct level_set_labels *labels = segmentation->of[CONF_LEVEL_SET].prepared;
    return kernels_level_set_begin(lane, labels->items, labels->demand.labels, error);
}

/* What they start from has been found before. */
static void
level_set_name_masks(const struct segmentation *segmentation, struct level_set_labels *labels)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    for (size_t k = 0; k < labels->demand.labels; k++) {
        const struct conf_segment *from =
            segment_origin(pipeline, segment_at(segmentation, CONF_LEVEL_SET, k));
        if (from)
            labels->items[k].mask = segmentation->masks[from - pipeline->segments].bits;
    }
}

static int
level_set_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
              struct error *error)
{
    struct level_set_labels *labels = segmentation->of[CONF_LEVEL_SET].prepared;
    const size_t count = labels->demand.labels;
    struct image_mask *masks = calloc(count, sizeof *masks);
    (void)voxels;
    if (!masks)
        return error_set_system(error, -ENOMEM, "hold the masks");
    level_set_name_masks(segmentation, labels);
    int rc = kernels_level_set_run(lane, labels->items, count, masks, error);
    for (size_t k = 0; k < count && rc == 0; k++)
        segmentation->masks[segmentation->of[CONF_LEVEL_SET].segments[k]] = masks[k];
    free(masks);
    return rc;
}

const struct segment_method segment_level_set = {
    .algorithm = "Noctule level set",
    .size = sizeof(struct level_set_labels),
    .prepare = level_set_prepare,
    .release = level_set_release,
    .begin = level_set_begin,
    .run = level_set_run,
    .describe = level_set_describe,
};
