/* smooth_plan.h - a request of smooth.h with its weights, for all backends. Private to kernels/. */
#ifndef NOCTULE_KERNELS_SMOOTH_SMOOTH_PLAN_H
#define NOCTULE_KERNELS_SMOOTH_SMOOTH_PLAN_H

#include "kernels/range/range.h"
#include "kernels/smooth/smooth.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SMOOTH_SHIFT  14
#define SMOOTH_UNIT   (1 << SMOOTH_SHIFT) /* the sum of weights */
#define SMOOTH_NARROW (1 << 15)           /* values */

/* The passes use int16_t: values from lo, less `middle`. */
struct smooth_plan {
    const struct smooth_request *request;
    struct range_clipping clip;
    int32_t middle;
    bool narrow;   /* sums of two values fit int16_t, too */
    int radius[3]; /* along x, y, z; -1: too large */
    int16_t weights[3][SMOOTH_MAX_RADIUS + 1];
};

/* Sets radii and weights of a filter with the demand's sigma. */
void smooth_plan_radii(const struct smooth_demand *demand, struct smooth_plan *plan);

/* Makes the plan of a request that smooth.c has checked. Of a filter that is too large, a radius is -1. */
void smooth_plan_make(const struct kernels_lane *lane, const struct smooth_request *request, struct smooth_plan *plan);

/* Returns whether a filtered value can be in range. If so, sets the range of values of the passes. */
static inline bool
smooth_range(const struct smooth_plan *plan, struct image_range *range)
{
    const struct smooth_request *request = plan->request;
    const struct image_range wanted = request->range;

    if (wanted.lo > wanted.hi || wanted.lo > request->hi || wanted.hi < request->lo)
        return false;
    range->lo = (wanted.lo > request->lo ? wanted.lo : request->lo) - request->lo - plan->middle;
    range->hi = (wanted.hi < request->hi ? wanted.hi : request->hi) - request->lo - plan->middle;
    return true;
}

/* Returns the bin of a value of the passes, counted from their stored value 0. Returns a bin that does not exist if the
 * value has no bin. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint32_t
    smooth_bin(int32_t value, int32_t zero, int32_t first, int32_t width)
{
    const int64_t from_first = (int64_t)value + zero - first;

    return from_first < 0 || from_first > UINT32_MAX ? UINT32_MAX : (uint32_t)from_first / (uint32_t)width;
}

#ifdef __cplusplus
}
#endif
#endif
