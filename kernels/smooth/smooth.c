/* smooth.c - the weights, and checks of arguments, of smooth.h. */
#include "kernels/op.h"
#include "kernels/smooth/smooth_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int
smooth_gaussian(double sigma, double weights[SMOOTH_MAX_RADIUS + 1])
{
    const double reach = floor(3 * sigma + 0.5);
    int radius;
    double sum = 0;

    if (!(reach >= 0 && reach <= SMOOTH_MAX_RADIUS))
        return -1;
    radius = (int)reach;
    for (int i = 0; i <= radius; i++)
        weights[i] = i > 0 ? exp(-(double)i * (double)i / (2 * sigma * sigma)) : 1;
    for (int i = -radius; i <= radius; i++)
        sum += weights[abs(i)];
    for (int i = 0; i <= radius; i++)
        weights[i] /= sum;
    return radius;
}

int
smooth_weights(double sigma, int32_t weights[SMOOTH_MAX_RADIUS + 1])
{
    double gauss[SMOOTH_MAX_RADIUS + 1];
    const int radius = smooth_gaussian(sigma, gauss);
    int others = 0;

    for (int i = 1; i <= radius; i++) {
        weights[i] = (int32_t)floor(SMOOTH_UNIT * gauss[i] + 0.5);
        others += weights[i];
    }
    weights[0] = SMOOTH_UNIT - 2 * others;
    return radius;
}

void
smooth_plan_radii(const struct smooth_demand *demand, struct smooth_plan *plan)
{
    for (int axis = 0; axis < 3; axis++) {
        int32_t weights[SMOOTH_MAX_RADIUS + 1] = {0};

        plan->radius[axis] = smooth_weights(demand->sigma_mm / demand->spacing[axis], weights);
        for (int i = 0; i <= SMOOTH_MAX_RADIUS; i++)
            plan->weights[axis][i] = (int16_t)weights[i];
    }
}

void
smooth_plan_make(const struct kernels_lane *lane, const struct smooth_request *request, struct smooth_plan *plan)
{
    struct smooth_demand demand = *(const struct smooth_demand *)kernels_state(lane, KERNELS_SMOOTH);
    const struct image_range limits = {request->lo, request->hi};

    demand.sigma_mm = request->sigma_mm;
    smooth_plan_radii(&demand, plan);
    plan->request = request;
    plan->narrow = request->hi - request->lo < SMOOTH_NARROW;
    plan->middle = (plan->narrow ? SMOOTH_NARROW : 2 * SMOOTH_NARROW) / 2;
    plan->clip = range_clipping_for(lane->pixel, limits, request->padding, (uint16_t)plan->middle);
}

int
smooth_run(struct kernels_lane *lane, const struct smooth_request *request, struct error *error)
{
    const struct smooth_demand *demand = kernels_state(lane, KERNELS_SMOOTH);
    struct smooth_plan plan;
    int rc = kernels_op_check(lane, KERNELS_SMOOTH, error);

    if (rc)
        return rc;
    if (!(request->sigma_mm >= 0 && request->sigma_mm <= demand->sigma_mm))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "memory was reserved for other filters");
    if (request->lo > request->hi || (int64_t)request->hi - request->lo > UINT16_MAX)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "values cannot be clipped to %d .. %d", request->lo,
                         request->hi);
    if (request->histogram && (request->bins < 1 || request->bins > SMOOTH_MAX_BINS || request->width < 1))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%d bins of %d are no histogram", request->bins,
                         request->width);
    smooth_plan_make(lane, request, &plan);
    for (int axis = 0; axis < 3; axis++)
        if (plan.radius[axis] < 0)
            return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                             "a filter of %g mm has more than %d voxels to each side", request->sigma_mm,
                             SMOOTH_MAX_RADIUS);
    return kernels_op_run(lane, KERNELS_SMOOTH, &plan, error);
}
