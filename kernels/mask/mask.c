/* mask.c - the argument checks of mask.h for all backends, and the size limits of steps. */
#include "kernels/mask/mask.h"
#include "kernels/cpu/isa.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>

enum mask_amount { MASK_COUNT, MASK_SHARE, MASK_ML, MASK_NO, MASK_VALUE, MASK_BALL };

static const enum mask_amount mask_amounts[] = {

#define MASK_STEP(NAME, AMOUNT, components, text) MASK_##AMOUNT,
#include "base/mask_steps.def"
};

bool
mask_step_has_ball(enum kernels_mask_step_kind kind)
{
    return mask_amounts[kind] == MASK_BALL;
}

static bool
mask_step_is_sound(const struct kernels_mask_step *step, const struct kernels_mask_demand *demand)
{
    double amount = step->amount;

    if ((unsigned)step->kind >= KERNELS_MASK_STEPS)
        return false;
    switch (mask_amounts[step->kind]) {
    case MASK_COUNT:
        return amount >= 1 && amount <= KERNELS_MASK_MOST_KEPT && amount == floor(amount);
    case MASK_SHARE:
        return amount >= 0 && amount <= 1;
    case MASK_ML:
        return isfinite(amount) && amount >= 0;
    case MASK_NO:
        return true;
    case MASK_VALUE:
        return isfinite(amount);
    case MASK_BALL:
        break;
    }
    return amount >= 0 && amount <= demand->reach_mm && (step->kind != KERNELS_MASK_CUT_BRIDGES || demand->bridges) &&
           (step->kind != KERNELS_MASK_CLOSE || demand->closings);
}

/* Returns the demand of the lane's volume if it may have a mask at this place, otherwise NULL. */
static const struct kernels_mask_demand *
mask_check_place(struct kernels_lane *lane, size_t place, int *rc, struct error *error)
{
    const struct kernels_mask_demand *demand = NULL;

    *rc = kernels_op_check(lane, KERNELS_MASK, error);
    if (*rc == 0)
        demand = kernels_state(lane, KERNELS_MASK);
    if (demand && place >= demand->masks) {
        *rc = error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no mask %zu where memory was reserved for %zu",
                        place, demand->masks);
        return NULL;
    }
    return demand;
}

int
kernels_mask_memory(struct kernels_lane *lane, size_t place, uint64_t **bits, struct error *error)
{
    const struct mask_request request = {.place = place, .memory = bits};
    int rc;

    return mask_check_place(lane, place, &rc, error) ? kernels_op_run(lane, KERNELS_MASK, &request, error) : rc;
}

int
kernels_mask_run(struct kernels_lane *lane, size_t place, const struct kernels_mask_request *given,
                 struct kernels_mask_result *result, struct error *error)
{
    const struct mask_request request = {.place = place, .given = given, .result = result};
    int rc;
    const struct kernels_mask_demand *demand = mask_check_place(lane, place, &rc, error);

    if (!demand)
        return rc;
    bool sound = isfinite(demand->reach_mm) && demand->reach_mm >= 0;

    for (int axis = 0; axis < 3; axis++)
        sound = sound && isfinite(demand->spacing[axis]) && demand->spacing[axis] > 0;
    if (!sound)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "spacings are positive, a reach is not negative, and all are finite");
    if (given->range_count > 1 && given->range_count != (size_t)lane->extent.slices)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "mask %zu has %zu ranges; it may have 1 or one for each of %lld slices", place,
                         given->range_count, (long long)lane->extent.slices);
    for (size_t i = 0; i < given->step_count; i++)
        if (!mask_step_is_sound(&given->steps[i], demand))
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "step %zu of mask %zu is of no known kind, has an amount that it may "
                             "not have, or was not announced",
                             i, place);
    return kernels_op_run(lane, KERNELS_MASK, &request, error);
}

int64_t
mask_count(const uint64_t *bits, int64_t words)
{
    return isa_find(NULL)->count_bits(bits, words);
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

        if ((double)middle * (spacing[0] * spacing[1] * spacing[2] / 1000.0) >= step->amount)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
