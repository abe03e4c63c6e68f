/* fuzzy.c - the argument checks of fuzzy.h, once for all backends. */
#include "kernels/fuzzy/fuzzy.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>

/* Returns whether a Gaussian of this standard deviation can be computed: 2 sigma^2 is a divisor. */
static bool
fuzzy_sigma_is_sound(double sigma)
{
    double doubled = 2 * (sigma * sigma);

    return sigma > 0 && isnormal(doubled);
}

static int
fuzzy_check_object(const struct kernels_fuzzy_object *object, size_t index, const struct image_extent *extent,
                   struct error *error)
{
    bool inside = object->seeds || object->seed_count == 0;

    for (size_t i = 0; i < object->seed_count && inside; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];

        inside = seed->x >= 0 && seed->x < extent->columns && seed->y >= 0 && seed->y < extent->rows && seed->z >= 0 &&
                 seed->z < extent->slices;
    }
    if (!inside)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "object %zu has a seed outside of the volume", index);
    if (!isfinite(object->mean) || !fuzzy_sigma_is_sound(object->sigma) ||
        !fuzzy_sigma_is_sound(object->homogeneity_sigma) || !(object->weight >= 0 && object->weight <= 1))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "object %zu needs a finite mean, sigmas above 0, and a weight of 0 to 1", index);
    return 0;
}

int
fuzzy_check_objects(const struct kernels_fuzzy_object *objects, size_t count, const struct image_extent *extent,
                    struct error *error)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = fuzzy_check_object(&objects[i], i, extent, error);
    return rc;
}

int
kernels_fuzzy_run(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects, size_t count, bool relative,
                  struct kernels_fuzzy_result *results, struct error *error)
{
    const struct fuzzy_request request = {objects, count, relative, results};
    const struct kernels_fuzzy_demand *demand = (const struct kernels_fuzzy_demand *)kernels_state(lane, KERNELS_FUZZY);
    const int rc = fuzzy_check_objects(objects, count, &lane->extent, error);
    size_t maps = 0;

    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        maps += objects[i].map;
    if (count != demand->objects || maps != demand->maps || relative != demand->relative)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "memory was reserved for other objects than these %zu",
                         count);
    return kernels_op_run(lane, KERNELS_FUZZY, &request, error);
}
