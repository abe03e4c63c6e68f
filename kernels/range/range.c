#include "kernels/range/range.h"
#include "kernels/op.h"

int
kernels_volume_range(struct kernels_lane *lane, struct image_range padding, struct image_range *range,
                     struct error *error)
{
    const struct range_request request = {padding, range};

    return kernels_op_run(lane, KERNELS_RANGE, &request, error);
}

int
range_intervals(enum image_pixel pixel, struct image_range range, struct image_range padding,
                struct image_range intervals[2])
{
    struct image_range below = range_clip(range, pixel), above = below;
    int count = 0;

    padding = range_clip(padding, pixel);
    above.lo = above.hi + 1;
    if (padding.lo <= padding.hi) {
        above.lo = padding.hi + 1 > below.lo ? padding.hi + 1 : below.lo;
        below.hi = padding.lo - 1 < below.hi ? padding.lo - 1 : below.hi;
    }
    if (below.lo <= below.hi)
        intervals[count++] = below;
    if (above.lo <= above.hi)
        intervals[count++] = above;
    return count;
}

static int32_t
clamp_to(int32_t value, struct image_range limits)
{
    const int32_t above = value > limits.lo ? value : limits.lo;

    return above < limits.hi ? above : limits.hi;
}

struct range_clipping
range_clipping_for(enum image_pixel pixel, struct image_range limits, struct image_range padding, uint16_t less)
{
    const struct image_range type = image_pixel_range(pixel);
    const int32_t low = clamp_to(limits.lo, type), high = clamp_to(limits.hi, type);
    struct range_clipping clip = {.less = less, .bias = (uint16_t)type.lo};

    clip.low = (uint16_t)(low - type.lo);
    clip.high = (uint16_t)(high - type.lo);
    /* A limit beyond the type: the nearest value of the type counts as the nearest limit. */
    clip.minus = (uint16_t)(clip.low - (clamp_to(low, limits) - limits.lo));
    padding = range_clip(padding, pixel);
    if (padding.lo <= padding.hi) {
        clip.padded = UINT16_MAX;
        clip.skip = (uint16_t)(padding.lo - type.lo);
        clip.span = (uint16_t)(padding.hi - padding.lo);
    }
    return clip;
}
