/*
 * enclosed.h - the number of directions in which rays from a voxel meet a mask.
 *
 * 26: the steps to all neighbours. Axial-16: the 8 neighbours in the slice and the 8 steps of a knight, (+-1, +-2) and
 * (+-2, +-1). The ray of a voxel p in the direction of step s has those voxels p + k s, 0 <= k < n, that lie in the volume, where
 * n = max(2, floor(within_mm / L)) and L = sqrt((x sx)^2 + (y sy)^2 + (z sz)^2) for a step of x, y, z voxels. L is computed in
 * double precision in this order without FMA. The ray meets the mask if one of its voxels lies in it. With a knight's step, it
 * also meets the mask if one of the two voxels between two successive voxels of the ray does: for (2, 1) these are (1, 0) and
 * (1, 1) from the first of the two, for (1, 2) they are (0, 1) and (1, 1). All backends and the reference in tests/kernels agree
 * bit for bit. Shapes, errors, threads: as in kernels.h.
 */
#ifndef NOCTULE_KERNELS_ENCLOSED_ENCLOSED_H
#define NOCTULE_KERNELS_ENCLOSED_ENCLOSED_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum enclosed_directions { ENCLOSED_26, ENCLOSED_AXIAL_16 };

struct enclosed_request {
    const uint64_t *mask; /* bits as in struct image_mask, min words per row; padding bits are ignored */
    enum enclosed_directions directions;
    int at_least; /* the result has the voxels with at least this many directions */
    double within_mm;
    double spacing[3];
    uint64_t *bits; /* of the caller */
};

/* Runs without regard to the voxels of the lane's volume. The demand is kernels_asked. Returns -ENOMEM, -EINVAL. */
int enclosed_run(struct kernels_lane *lane, const struct enclosed_request *request, struct error *error);

/*
 * Private to kernels/: directions in sheets. The rows (y, z) of a sheet follow each other by the step of its family. The rays of a
 * family stay in their sheet. Each row of the volume lies in one sheet per family.
 */
enum { ENCLOSED_DIGITS = 5, ENCLOSED_FAMILIES = 4, ENCLOSED_RAYS = 16 };

struct enclosed_ray {
    int32_t x, row; /* the step */
    int32_t voxels; /* n, at most the longest side of the volume and at least 2 */
    bool knight;
};

struct enclosed_family {
    int32_t y, z;   /* the step to the next row */
    int32_t before; /* rays of earlier families */
    int32_t count;
    struct enclosed_ray rays[ENCLOSED_RAYS];
};

struct enclosed_plan {
    const struct enclosed_request *request;
    struct image_extent extent;
    int32_t count;
    struct enclosed_family families[ENCLOSED_FAMILIES];
};

/* Finds the rays of a sound request. */
void enclosed_plan_make(const struct enclosed_request *request, const struct image_extent *extent,
                        struct enclosed_plan *plan);

/* Rows y, z, then y + family.y, z + family.z, ... */
struct enclosed_sheet {
    int64_t y, z, rows;
};

static inline int64_t
enclosed_sheets(const struct image_extent *extent, int32_t y, int32_t z)
{
    return y == 0 ? extent->rows : z == 0 ? extent->slices : extent->rows + extent->slices - 1;
}

/* Returns a sheet of the family with this step. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline struct enclosed_sheet
    enclosed_sheet_of(int64_t rows, int64_t slices, int32_t y, int32_t z, int64_t number)
{
    struct enclosed_sheet sheet = {0, 0, 0};
    int64_t room; /* rows until y leaves the volume */

    if (z == 0) {
        sheet.z = number;
        sheet.rows = rows;
        return sheet;
    }
    if (y == 0) {
        sheet.y = number;
        sheet.rows = slices;
        return sheet;
    }
    /* Sheets begin in slice 0, then at the row that others enter last. */
    sheet.y = y > 0 ? number - (slices - 1) : number;
    if (y > 0 && sheet.y < 0) {
        sheet.z = -sheet.y;
        sheet.y = 0;
    }
    if (y < 0 && sheet.y > rows - 1) {
        sheet.z = sheet.y - (rows - 1);
        sheet.y = rows - 1;
    }
    room = y > 0 ? rows - sheet.y : sheet.y + 1;
    sheet.rows = room < slices - sheet.z ? room : slices - sheet.z;
    return sheet;
}

/* Returns the counter's digits that count to `most`. */
static inline int
enclosed_digits(int most)
{
    int digits = 1;

    while (most >> digits)
        digits++;
    return digits;
}

#ifdef __cplusplus
}
#endif
#endif
