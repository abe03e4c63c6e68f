/* mask.c - the argument checks of mask.h for all backends, and the size limits of steps. */
#include "kernels/mask/mask.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>

bool
mask_step_has_ball(enum kernels_mask_step_kind kind)
{
    return kind >= KERNELS_MASK_GROW && kind <= KERNELS_MASK_CUT_BRIDGES;
}

static bool
mask_step_is_sound(const struct kernels_mask_step *step, const struct kernels_mask_demand *demand)
{
    double amount = step->amount;

    switch (step->kind) {
    case KERNELS_MASK_KEEP:
        return amount >= 1 && amount <= KERNELS_MASK_MOST_KEPT && amount == floor(amount);
    case KERNELS_MASK_KEEP_AT_LEAST:
        return amount >= 0 && amount <= 1;
    case KERNELS_MASK_DROP_BELOW:
        return isfinite(amount) && amount >= 0;
    case KERNELS_MASK_FILL_SLICES:
    case KERNELS_MASK_FILL_VOLUME:
        return true;
    case KERNELS_MASK_CUT_BRIDGES:
        if (!demand->bridges)
            return false;
        /* fall through */
    case KERNELS_MASK_GROW:
    case KERNELS_MASK_SHRINK:
    case KERNELS_MASK_OPEN:
    case KERNELS_MASK_CLOSE:
        return amount >= 0 && amount <= demand->reach_mm;
    case KERNELS_MASK_STEPS:
        break;
    }
    return false;
}

/* Checks that spacings are positive, the reach is not negative, and all are finite. */
static bool
mask_demand_is_sound(const struct kernels_mask_demand *demand)
{
    for (int axis = 0; axis < 3; axis++)
        if (!isfinite(demand->spacing[axis]) || demand->spacing[axis] <= 0)
            return false;
    return isfinite(demand->reach_mm) && demand->reach_mm >= 0;
}

static int
mask_check(const struct kernels_lane *lane, const struct mask_request *request, struct error *error)
{
    const struct kernels_mask_demand *demand = kernels_state(lane, KERNELS_MASK);
    const struct kernels_mask_request *given = request->given;

    if (request->place >= demand->masks)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "there is no mask %zu where memory was reserved for %zu", request->place,
                         demand->masks);
    if (!mask_demand_is_sound(demand))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "spacings are positive, a reach is not negative, and all are finite");
    if (given->range_count > 1 && given->range_count != (size_t)lane->extent.slices)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "mask %zu has %zu ranges; it may have 1 or one for each of %lld slices",
                         request->place, given->range_count, (long long)lane->extent.slices);
    for (size_t i = 0; i < given->step_count; i++)
        if (!mask_step_is_sound(&given->steps[i], demand))
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "step %zu of mask %zu is of no known kind, has an amount that it may "
                             "not have, or was not announced",
                             i, request->place);
    return 0;
}

int
kernels_mask_run(struct kernels_lane *lane, size_t place, const struct kernels_mask_request *given,
                 struct kernels_mask_result *result, struct error *error)
{
    const struct mask_request request = {place, given, result};
    int rc = kernels_op_check(lane, KERNELS_MASK, error);

    if (rc == 0)
        rc = mask_check(lane, &request, error);
    return rc ? rc : kernels_op_run(lane, KERNELS_MASK, &request, error);
}

/* Returns whether a volume of `voxels` voxels is at least `ml`. */
static bool
mask_volume_suffices(double voxels, const double spacing[3], double ml)
{
    return voxels * (spacing[0] * spacing[1] * spacing[2] / 1000.0) >= ml;
}

int64_t
mask_least_size(const struct kernels_mask_step *step, const double spacing[3], int64_t largest)
{
    double size = step->amount * (double)largest;

    if (step->kind == KERNELS_MASK_KEEP_AT_LEAST)
        return (int64_t)ceil(size);
    /* The product increases with the size. */
    int64_t low = 0, high = largest + 1;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (mask_volume_suffices((double)middle, spacing, step->amount))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
