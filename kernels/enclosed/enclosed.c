/* enclosed.c - the argument checks of enclosed.h, and the plan of a request, for all backends. */
#include "kernels/enclosed/enclosed.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>

static const int enclosed_counts[] = {[ENCLOSED_26] = 26, [ENCLOSED_AXIAL_16] = 16};

static void
enclosed_add_ray(struct enclosed_plan *plan, struct enclosed_family *family, int32_t x, int32_t row)
{
    const double *spacing = plan->request->spacing;
    const double step[3] = {x * spacing[0], row * family->y * spacing[1], row * family->z * spacing[2]};
    const double voxels =
        floor(plan->request->within_mm / sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]));
    const struct image_extent *extent = &plan->extent;
    int64_t most = extent->columns > extent->rows ? extent->columns : extent->rows;

    most = extent->slices > most ? extent->slices : most;
    most = voxels < (double)most ? (int64_t)voxels : most;
    family->rays[family->count++] =
        (struct enclosed_ray){x, row, (int32_t)(most > 2 ? most : 2), x * x + row * row == 5};
}

/* Adds the rays of the sheets whose rows follow each other by this step. */
static void
enclosed_add_family(struct enclosed_plan *plan, int32_t y, int32_t z, bool along, bool knights)
{
    struct enclosed_family *family = &plan->families[plan->count];

    *family = (struct enclosed_family){.y = y, .z = z};
    if (plan->count > 0)
        family->before = family[-1].before + family[-1].count;
    plan->count++;
    for (int32_t row = -2; row <= 2; row++)
        for (int32_t x = -2; x <= 2; x++) {
            const int32_t length = x * x + row * row;

            if ((length == 5 && knights) || ((length == 1 || length == 2) && (row != 0 || along)))
                enclosed_add_ray(plan, family, x, row);
        }
}

void
enclosed_plan_make(const struct enclosed_request *request, const struct image_extent *extent,
                   struct enclosed_plan *plan)
{
    *plan = (struct enclosed_plan){.request = request, .extent = *extent};
    if (request->directions == ENCLOSED_26) {
        enclosed_add_family(plan, 0, 1, false, false);
        enclosed_add_family(plan, 1, 1, false, false);
        enclosed_add_family(plan, -1, 1, false, false);
    }
    enclosed_add_family(plan, 1, 0, true, request->directions == ENCLOSED_AXIAL_16);
}

int
enclosed_run(struct kernels_lane *lane, const struct enclosed_request *request, struct error *error)
{
    struct enclosed_plan plan;
    bool sound = request->mask && request->bits && (unsigned)request->directions <= ENCLOSED_AXIAL_16 &&
                 request->at_least >= 1 && request->at_least <= enclosed_counts[request->directions] &&
                 isfinite(request->within_mm) && request->within_mm > 0;
    const int rc = kernels_op_check(lane, KERNELS_ENCLOSED, error);

    if (rc)
        return rc;
    for (int axis = 0; axis < 3; axis++)
        sound &= isfinite(request->spacing[axis]) && request->spacing[axis] > 0;
    if (!sound)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "rays need a mask, positive lengths, and at most as many directions as there are");
    enclosed_plan_make(request, &lane->extent, &plan);
    return kernels_op_run(lane, KERNELS_ENCLOSED, &plan, error);
}
