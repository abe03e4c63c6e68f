/* range.h - the smallest and the largest stored value of a lane's volume; ranges of values. */
#ifndef NOCTULE_RANGE_H
#define NOCTULE_RANGE_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of what is not padding; needs every slice announced (-EBUSY otherwise); -ENODATA, and no error
 * filled, when nothing is left. Takes no demand. */
int kernels_volume_range(struct kernels_lane *lane, struct image_range padding,
                         struct image_range *range, struct error *error);

/* Within kernels/: what the operation is given. */
struct range_request {
    struct image_range padding;
    struct image_range *range;
};

/* The values that a volume's own may be, cut to what its pixel type can hold. */
static inline struct image_range
range_clip(struct image_range range, enum image_pixel pixel)
{
    struct image_range limits = image_pixel_range(pixel);

    range.lo = range.lo > limits.lo ? range.lo : limits.lo;
    range.hi = range.hi < limits.hi ? range.hi : limits.hi;
    return range;
}

/* The stored values in range that are no padding, as intervals in their order; returns how many. */
int range_intervals(enum image_pixel pixel, struct image_range range, struct image_range padding,
                    struct image_range intervals[2]);

#ifdef __cplusplus
}
#endif
#endif
