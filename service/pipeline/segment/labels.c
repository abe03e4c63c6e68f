/* labels.c - see labels.h. */
#include "service/pipeline/segment/labels.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct image_range nothing = {.lo = 1, .hi = 0};

static bool
is_empty(struct image_range range)
{
    return range.lo > range.hi;
}

static bool
overlap(struct image_range a, struct image_range b)
{
    return !is_empty(a) && !is_empty(b) && a.lo <= b.hi && b.lo <= a.hi;
}

/* ------------------------------------------------------------------------------- ranges ---- */

/* Values from `from` up to the one before the first that fails `bound`, or to the end. */
static int32_t
first_beyond(struct image_range limits, double bound, bool strictly, double slope, double intercept)
{
    int32_t low = limits.lo, high = limits.hi + 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        double value = slope * middle + intercept;
        bool beyond = slope > 0 ? (strictly ? value > bound : value >= bound)
                                : (strictly ? value < bound : value <= bound);
        if (beyond)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct image_range
labels_stored_range(const double range[2], double slope, double intercept,
                    struct image_range limits)
{
    if (slope == 0 || !isfinite(slope) || !isfinite(intercept) || !(range[0] <= range[1]))
        return nothing;
    /* Real-world values rise with v or fall with v; `near` is the bound that is met first. */
    double near = slope > 0 ? range[0] : range[1];
    double far = slope > 0 ? range[1] : range[0];
    struct image_range stored = {
        .lo = first_beyond(limits, near, false, slope, intercept),
        .hi = first_beyond(limits, far, true, slope, intercept) - 1,
    };
    return is_empty(stored) ? nothing : stored;
}

void
labels_rescale(struct dicom_instance *const *instances, const struct geometry_plane *plane,
               double *slope, double *intercept)
{
    const struct dicom_frame *frame = &instances[plane->instance]->frames[plane->frame];
    *slope = frame->has_rescale ? frame->slope : 1;
    *intercept = frame->has_rescale ? frame->intercept : 0;
}

/* ------------------------------------------------------------------------------ padding ---- */

struct image_range
labels_padding(const struct dicom_instance *instance)
{
    struct image_range padding = {instance->padding_lo, instance->padding_hi};
    return instance->has_padding && !is_empty(padding) ? padding : nothing;
}

struct image_range
labels_common_padding(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    struct image_range common = labels_padding(instances[stack->planes[0].instance]);
    for (int32_t z = 1; z < stack->plane_count; z++) {
        struct image_range padding = labels_padding(instances[stack->planes[z].instance]);
        if (padding.lo != common.lo || padding.hi != common.hi)
            return nothing;
    }
    return common;
}

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
        struct image_range padding = labels_padding(instance);
        bool same = padding.lo == hole.lo && padding.hi == hole.hi;
        if (same || !overlap(ranges[z], hole))
            continue;
        error_set(error, -EINVAL, CODE_PADDING_MIXED,
                  "the padding values of the series differ (%d to %d in one file, %d to %d in "
                  "another) and lie inside the range of values to segment",
                  hole.lo, hole.hi, padding.lo, padding.hi);
        snprintf(error->file[0], sizeof error->file[0], "%s",
                 instances[stack->planes[hole_plane].instance]->path);
        snprintf(error->file[1], sizeof error->file[1], "%s", instance->path);
        return -EINVAL;
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
        struct image_range padding = labels_padding(instances[plane->instance]);
        double slope, intercept;
        labels_rescale(instances, plane, &slope, &intercept);
        ranges[z] = labels_stored_range(segment->range, slope, intercept, limits);
        if (cut_padding(&ranges[z], padding) && is_empty(*hole)) {
            *hole = padding;
            hole_plane = z;
        }
    }
    return is_empty(*hole) ? 0 : check_hole(ranges, instances, stack, *hole, hole_plane, error);
}

/* ------------------------------------------------------------------------------- shapes ---- */

void
labels_point(const double point[3], enum conf_unit unit, const struct geometry_stack *stack,
             double voxel[3])
{
    const int32_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    switch (unit) {
    case CONF_VOXEL:
        memcpy(voxel, point, 3 * sizeof *voxel);
        break;
    case CONF_MM:
        geometry_voxel_from_mm(stack, point, voxel);
        break;
    case CONF_FRACTION:
        for (int axis = 0; axis < 3; axis++)
            voxel[axis] = point[axis] * (size[axis] - 1);
        break;
    }
}

int
labels_shape(const struct conf_shape *shape, const struct geometry_stack *stack,
             struct kernels_shape *voxels)
{
    labels_point(shape->center, shape->center_unit, stack, voxels->center);
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

static size_t
count_level_sets(const struct conf_pipeline *pipeline)
{
    size_t count = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        count += pipeline->segments[i].method == CONF_LEVEL_SET;
    return count;
}

static int
make_label(const struct conf_segment *segment, struct dicom_instance *const *instances,
           const struct geometry_stack *stack, struct image_range *ranges,
           struct kernels_shape *shapes, struct kernels_level_set_label *label, struct error *error)
{
    for (size_t i = 0; i < segment->shape_count; i++) {
        if (labels_shape(&segment->shapes[i], stack, &shapes[i]) != 0)
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
reserve(struct labels *labels, const struct conf_pipeline *pipeline, size_t planes,
        struct error *error)
{
    size_t count = count_level_sets(pipeline);
    labels->items = calloc(count + 1, sizeof *labels->items);
    labels->segments = calloc(count + 1, sizeof *labels->segments);
    labels->ranges = calloc(count * planes + 1, sizeof *labels->ranges);
    labels->shapes = calloc(count_shapes(pipeline) + 1, sizeof *labels->shapes);
    bool complete = labels->items && labels->segments && labels->ranges && labels->shapes;
    return complete ? 0 : error_set_system(error, -ENOMEM, "prepare the segments");
}

int
labels_make(const struct conf_pipeline *pipeline, struct dicom_instance *const *instances,
            const struct geometry_stack *stack, struct labels *labels, struct error *error)
{
    size_t planes = (size_t)stack->plane_count;
    memset(labels, 0, sizeof *labels);
    int rc = reserve(labels, pipeline, planes, error);
    struct kernels_shape *shapes = labels->shapes;
    for (size_t i = 0; i < pipeline->segment_count && rc == 0; i++) {
        const struct conf_segment *segment = &pipeline->segments[i];
        if (segment->method != CONF_LEVEL_SET)
            continue;
        rc = make_label(segment, instances, stack, labels->ranges + labels->count * planes, shapes,
                        &labels->items[labels->count], error);
        labels->segments[labels->count++] = i;
        shapes += segment->shape_count;
    }
    if (rc)
        labels_free(labels);
    return rc;
}

void
labels_free(struct labels *labels)
{
    free(labels->items);
    free(labels->segments);
    free(labels->ranges);
    free(labels->shapes);
    memset(labels, 0, sizeof *labels);
}
