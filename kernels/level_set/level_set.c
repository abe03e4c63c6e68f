/* level_set.c - the argument checks of level_set.h, once for all backends. */
#include "kernels/level_set/level_set.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>

static bool
level_set_shape_is_sound(const struct kernels_shape *shape)
{
    size_t radii = shape->kind == KERNELS_SPHERE ? 1 : 3;

    if (shape->kind != KERNELS_SPHERE && shape->kind != KERNELS_ELLIPSOID && shape->kind != KERNELS_BOX)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!isfinite(shape->center[i]))
            return false;
    for (size_t i = 0; i < radii; i++)
        if (!isfinite(shape->radius[i]) || shape->radius[i] < 0)
            return false;
    return true;
}

static int
level_set_check(const struct kernels_lane *lane, const struct level_set_request *request, struct error *error)
{
    const struct kernels_level_set_demand *demand =
        (const struct kernels_level_set_demand *)kernels_state(lane, KERNELS_LEVEL_SET);

    if (request->count != demand->labels)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%zu labels are named where memory was reserved for %zu",
                         request->count, demand->labels);
    for (size_t i = 0; i < request->count; i++) {
        const struct kernels_level_set_label *label = &request->labels[i];

        if (!label->ranges || (label->range_count != 1 && label->range_count != (size_t)lane->extent.slices))
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "label %zu has %zu ranges; it needs 1 or one for each of %lld slices", i,
                             label->range_count, (long long)lane->extent.slices);
        if (!label->shapes && label->shape_count > 0)
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "label %zu has no shapes", i);
        for (size_t s = 0; s < label->shape_count; s++)
            if (!level_set_shape_is_sound(&label->shapes[s]))
                return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                                 "shape %zu of label %zu has an unknown kind, or a number that is "
                                 "negative or not finite",
                                 s, i);
    }
    return 0;
}

int
kernels_level_set_begin(struct kernels_lane *lane, const struct kernels_level_set_label *labels, size_t count,
                        struct error *error)
{
    const struct level_set_request request = {.labels = labels, .count = count};
    int rc = level_set_check(lane, &request, error);

    for (size_t i = 0; i < count && rc == 0; i++)
        if (labels[i].within_count > 0)
            rc = error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "label %zu of a hint lies within masks", i);
    return rc ? rc : kernels_op_begin(lane, KERNELS_LEVEL_SET, &request, error);
}

int
kernels_level_set_run(struct kernels_lane *lane, const struct kernels_level_set_label *labels, size_t count,
                      struct image_mask *masks, struct error *error)
{
    const struct level_set_request request = {labels, count, masks};
    int rc = level_set_check(lane, &request, error);

    return rc ? rc : kernels_op_run(lane, KERNELS_LEVEL_SET, &request, error);
}

int
kernels_level_set_codes(struct kernels_lane *lane, size_t label, int8_t *codes, struct error *error)
{
    const struct level_set_codes_request request = {label, codes};

    return kernels_op_run(lane, KERNELS_LEVEL_SET_CODES, &request, error);
}
