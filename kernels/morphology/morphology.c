/* morphology.c - the argument checks of morphology.h, once for all backends. */
#include "kernels/morphology/morphology.h"

#include "kernels/op.h"

#include <errno.h>

int
morphology_run(struct kernels_lane *lane, const struct morphology_region *region, uint64_t *counts, struct error *error)
{
    const struct morphology_request request = {region, counts};
    const int rc = kernels_op_check(lane, KERNELS_MORPHOLOGY, error);

    if (rc)
        return rc;
    if (!region->kept || (region->table_count != 1 && region->table_count != (size_t)lane->extent.slices))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "there are %zu tables of kept values; there must be 1 or one for each of %lld slices",
                         region->kept ? region->table_count : 0, (long long)lane->extent.slices);
    if (!counts)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no room for the counts");
    return kernels_op_run(lane, KERNELS_MORPHOLOGY, &request, error);
}
