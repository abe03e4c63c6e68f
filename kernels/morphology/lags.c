/* lags.c - the argument checks of lags.h, once for all backends. */
#include "kernels/morphology/lags.h"

#include "kernels/op.h"

#include <errno.h>

/* Returns the least 2^n or 3 * 2^n for which voxels at opposite ends of a side do not meet by
 * wrapping. */
static int64_t
length_of(int64_t size)
{
    int64_t length = 1;

    while (length < 2 * size - 1)
        length *= 2;
    if (length >= 4 && length / 4 * 3 >= 2 * size - 1)
        length = length / 4 * 3;
    return length;
}

bool
lags_lengths(const int64_t size[3], int64_t length[3])
{
    int64_t points = 1;

    for (int axis = 0; axis < 3; axis++) {
        length[axis] = length_of(size[axis]);
        if (length[axis] > LAGS_LONGEST)
            return false;
        points *= length[axis];
    }
    return points <= LAGS_POINTS;
}

int64_t
lags_points(const struct image_extent *extent)
{
    const int64_t points = length_of(extent->columns) * length_of(extent->rows) * length_of(extent->slices);

    return points < LAGS_POINTS ? points : LAGS_POINTS;
}

int
lags_run(struct kernels_lane *lane, const struct lags *lags, uint64_t *counts, struct error *error)
{
    struct lags_request request = {.lags = lags, .counts = counts};
    const size_t tables = lags->region.table_count;
    const int rc = kernels_op_check(lane, KERNELS_LAGS, error);

    if (rc)
        return rc;
    if (!lags->region.kept || (tables != 1 && tables != (size_t)lane->extent.slices))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "there are %zu tables of kept values; there must be 1 or one for each of %lld slices",
                         lags->region.kept ? tables : 0, (long long)lane->extent.slices);
    if (!request.counts)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no room for the counts");
    texture_region_box(lane, lags->region.bits, &request.box);
    if (!lags_lengths(request.box.size, request.length))
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                         "pairs of a region of %lld x %lld x %lld voxels are too many to count",
                         (long long)request.box.size[0], (long long)request.box.size[1],
                         (long long)request.box.size[2]);
    return request.box.size[0] > 0 ? kernels_op_run(lane, KERNELS_LAGS, &request, error) : 0;
}
