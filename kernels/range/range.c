/* range.c - see range.h. */
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
