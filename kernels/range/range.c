/* range.c - see range.h. */
#include "kernels/range/range.h"
#include "kernels/op.h"

int
kernels_volume_range(struct kernels_lane *lane, struct image_range padding,
                     struct image_range *range, struct error *error)
{
    const struct range_request request = {padding, range};

    return kernels_op_run(lane, KERNELS_RANGE, &request, error);
}
