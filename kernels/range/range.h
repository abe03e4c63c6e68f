/* range.h - the smallest and largest stored value of a lane's volume, and ranges of values. */
#ifndef NOCTULE_KERNELS_RANGE_RANGE_H
#define NOCTULE_KERNELS_RANGE_RANGE_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Finds the range of values other than padding. Every slice must be announced (-EBUSY). Returns
 * -ENODATA without filling the error if all values are padding. The operation has no demand. */
int kernels_volume_range(struct kernels_lane *lane, struct image_range padding, struct image_range *range,
                         struct error *error);

/* Private to kernels/: the request of the operation. */
struct range_request {
    struct image_range padding;
    struct image_range *range;
};

/* Returns the range cut to the values that the pixel type can hold. */
static inline struct image_range
range_clip(struct image_range range, enum image_pixel pixel)
{
    struct image_range limits = image_pixel_range(pixel);

    range.lo = range.lo > limits.lo ? range.lo : limits.lo;
    range.hi = range.hi < limits.hi ? range.hi : limits.hi;
    return range;
}

/* Finds the stored values in range other than padding, as ordered intervals. Returns their
 * number. */
int range_intervals(enum image_pixel pixel, struct image_range range, struct image_range padding,
                    struct image_range intervals[2]);

#ifdef __cplusplus
}
#endif
#endif
