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

/* How to clip stored values to lo .. hi and to measure them from lo: 0 .. hi - lo, and 0 for padding, less `less`. All
 * arithmetic is modulo 2^16. */
struct range_clipping {
    uint16_t bias;      /* the sign bit of signed values: makes them unsigned */
    uint16_t low, high; /* limits of biased values */
    uint16_t minus;
    uint16_t skip, span; /* padding: biased values skip .. skip + span */
    uint16_t padded;     /* all ones; 0: no padding */
    uint16_t less;
};

/* hi - lo must be 0 .. 65535. The limits may lie beyond the pixel type. */
struct range_clipping range_clipping_for(enum image_pixel pixel, struct image_range limits, struct image_range padding,
                                         uint16_t less);

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint16_t
    range_clipped(const struct range_clipping *clip, uint16_t value)
{
    const uint16_t biased = value ^ clip->bias;
    const uint16_t above = biased > clip->low ? biased : clip->low, within = above < clip->high ? above : clip->high;
    const uint16_t skipped = (uint16_t)(biased - clip->skip) <= clip->span ? clip->padded : 0;

    return (uint16_t)(((uint16_t)(within - clip->minus) & (uint16_t)~skipped) - clip->less);
}

#ifdef __cplusplus
}
#endif
#endif
