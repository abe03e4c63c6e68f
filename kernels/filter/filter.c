/* filter.c - checks of arguments, steps and the exponential function of filter.h. */
#include "kernels/filter/filter.h"

#include "kernels/filter/filter_private.h"
#include "kernels/filter/separable.h"
#include "kernels/filter/spectral.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Returns the operation of a kind. */
static enum kernels_op_id
filter_op(enum filter_kind kind)
{
    return kind < FILTER_GABOR ? KERNELS_SEPARABLE : KERNELS_SPECTRAL;
}

void
filter_demand_set(struct kernels_demand *demand, const struct filter_demand *filter)
{
    demand->of[filter_op(filter->options.kind)] = filter;
    if (filter->options.kind == FILTER_RIESZ_LOG)
        demand->of[KERNELS_SEPARABLE] = filter;
}

double
filter_step_of(double bound)
{
    int exponent;
    const double part = frexp(bound > 0 ? bound : 1, &exponent);

    return ldexp(1, (part > 0.5 ? exponent : exponent - 1) - 30);
}

double
filter_step(const struct filter_demand *demand, int32_t limit)
{
    const double bound =
        filter_op(demand->options.kind) == KERNELS_SEPARABLE ? separable_bound(demand) : spectral_bound(demand);

    return bound < 0 ? 0 : filter_step_of(bound * limit);
}

void
filter_reach(const struct filter_demand *demand, int32_t reach[3])
{
    if (filter_op(demand->options.kind) == KERNELS_SEPARABLE)
        separable_reach(demand, reach);
    else
        spectral_reach(demand, reach);
}

int
filter_run(struct kernels_lane *lane, enum filter_kind kind, const struct filter_request *request,
           const int32_t **codes, double *step, struct error *error)
{
    const enum kernels_op_id id = filter_op(kind);
    const struct filter_demand *demand = kernels_state(lane, id);
    struct filter_task job = {.request = request, .codes = codes};
    int32_t reach[3];
    int rc = kernels_op_check(lane, id, error);

    if (rc)
        return rc;
    if (demand->options.kind != kind || demand->values != (request->values != NULL))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "memory was reserved for other filters");
    if (request->limit < 1 || request->limit > FILTER_MAX_LIMIT || llabs(request->offset) > FILTER_MAX_LIMIT ||
        request->padded != filter_clip(request, request->padded))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "values cannot be limited to %d", request->limit);
    if (kind == FILTER_RIESZ_LOG)
        separable_reach(demand, reach);
    else
        filter_reach(demand, reach);
    for (int axis = 0; axis < 3; axis++)
        if (reach[axis] > FILTER_MAX_REACH && reach[axis] < INT32_MAX)
            return error_set(
                error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                "a filter has more than %d voxels to each side: use a smaller sigma_mm or level, or larger voxels",
                FILTER_MAX_REACH);
    if (id == KERNELS_SPECTRAL && spectral_check(demand, &lane->extent) == -E2BIG)
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                         "this filter needs more than %d values along a side of the volume", FFT_MAX_SIDE);
    job.step = *step = filter_step(demand, request->limit);
    if (job.step <= 0)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "the options of the filter are impossible");
    return kernels_op_run(lane, id, &job, error);
}

double
filter_exp_minus(double x)
{
    return filter_exp_of(x);
}
