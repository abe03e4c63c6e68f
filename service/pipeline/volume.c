#include "service/pipeline/volume.h"

#include <math.h>
#include <string.h>

static const struct image_range nothing = {.lo = 1, .hi = 0};

/* Returns the number of values from `from` on up to the first that fails `bound`. */
static int32_t
volume_first_beyond(struct image_range limits, double bound, bool strictly, double slope, double intercept)
{
    int32_t low = limits.lo, high = limits.hi + 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        double value = slope * middle + intercept;
        bool beyond =
            slope > 0 ? (strictly ? value > bound : value >= bound) : (strictly ? value < bound : value <= bound);
        if (beyond)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct image_range
volume_stored_range(const double range[2], double slope, double intercept, struct image_range limits)
{
    if (slope == 0 || !isfinite(slope) || !isfinite(intercept) || !(range[0] <= range[1]))
        return nothing;
    /* Real-world values rise or fall with v; `near` is the bound that is reached first. */
    double near = slope > 0 ? range[0] : range[1];
    double far = slope > 0 ? range[1] : range[0];
    struct image_range stored = {
        .lo = volume_first_beyond(limits, near, false, slope, intercept),
        .hi = volume_first_beyond(limits, far, true, slope, intercept) - 1,
    };
    return volume_range_is_empty(stored) ? nothing : stored;
}

struct image_rescale
volume_rescale(struct dicom_instance *const *instances, const struct geometry_plane *plane)
{
    const struct dicom_frame *frame = &instances[plane->instance]->frames[plane->frame];
    return frame->has_rescale ? (struct image_rescale){frame->slope, frame->intercept} : (struct image_rescale){1, 0};
}

struct image_range
volume_padding(const struct dicom_instance *instance)
{
    struct image_range padding = {instance->padding_lo, instance->padding_hi};
    return instance->has_padding && !volume_range_is_empty(padding) ? padding : nothing;
}

size_t
volume_tables(struct dicom_instance *const *instances, const struct geometry_stack *stack,
              struct image_rescale *rescales, struct image_range *paddings)
{
    const struct image_rescale rescale = volume_rescale(instances, &stack->planes[0]);
    const struct image_range padding = volume_padding(instances[stack->planes[0].instance]);
    bool alike = true;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        const struct image_rescale own = volume_rescale(instances, plane);
        const struct image_range other = volume_padding(instances[plane->instance]);
        alike &= own.slope == rescale.slope && own.intercept == rescale.intercept && other.lo == padding.lo &&
                 other.hi == padding.hi;
        if (rescales)
            rescales[z] = own;
        if (paddings)
            paddings[z] = other;
    }
    return alike ? 1 : (size_t)stack->plane_count;
}

struct image_range
volume_common_padding(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    struct image_range common = volume_padding(instances[stack->planes[0].instance]);
    for (int32_t z = 1; z < stack->plane_count; z++) {
        struct image_range padding = volume_padding(instances[stack->planes[z].instance]);
        if (padding.lo != common.lo || padding.hi != common.hi)
            return nothing;
    }
    return common;
}

void
volume_point(const double point[3], enum conf_unit unit, const struct geometry_stack *stack, double voxel[3])
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

enum contrast
volume_find_contrast(const void *voxels, enum image_pixel pixel, int64_t count, struct image_range padding,
                     int32_t *value)
{
    enum contrast found = CONTRAST_NO_VALUE;
    for (int64_t i = 0; i < count; i++) {
        int32_t here = image_value(voxels, pixel, i);
        if (padding.lo <= here && here <= padding.hi)
            continue;
        if (found == CONTRAST_NO_VALUE)
            *value = here;
        else if (here != *value)
            return CONTRAST_SOME;
        found = CONTRAST_ONE_VALUE;
    }
    return found;
}
