/* ranges.c - see ranges.h. */
#include "service/pipeline/segment/ranges.h"

#include "service/pipeline/volume.h"

#include <errno.h>

static const struct image_range nothing = {.lo = 1, .hi = 0};

static bool
overlap(struct image_range a, struct image_range b)
{
    return !volume_range_is_empty(a) && !volume_range_is_empty(b) && a.lo <= b.hi && b.lo <= a.hi;
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

int
ranges_make(const struct segmentation *segmentation, const double range[2],
            struct image_range *ranges, struct image_range *hole, struct error *error)
{
    struct dicom_instance *const *instances = segmentation->instances;
    const struct geometry_stack *stack = segmentation->stack;
    struct image_range limits = image_pixel_range(stack->pixel);
    int32_t hole_plane = 0;
    *hole = nothing;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        struct image_range padding = volume_padding(instances[plane->instance]);
        struct image_rescale rescale = volume_rescale(instances, plane);
        ranges[z] = volume_stored_range(range, rescale.slope, rescale.intercept, limits);
        if (cut_padding(&ranges[z], padding) && volume_range_is_empty(*hole)) {
            *hole = padding;
            hole_plane = z;
        }
    }
    return volume_range_is_empty(*hole)
               ? 0
               : check_hole(ranges, instances, stack, *hole, hole_plane, error);
}
