/*
 * enclosed.h - the number of directions in which rays from a voxel meet a mask.
 *
 * 26: the steps to all neighbours. Axial-16: the 8 neighbours in the slice and the 8 steps of a knight, (+-1, +-2) and
 * (+-2, +-1), whose two voxels between count as met, too: for (2, 1) these are (1, 0) and (1, 1) from the voxel outwards. For a
 * direction with step s of length L mm, the distance d of a voxel p is 1 if p lies in the mask; otherwise not defined if p + s
 * is outside the volume; otherwise 2 if a voxel between p and p + s lies in the mask; otherwise d(p + s) + 1 if that is defined
 * and d(p + s) < min(254, floor(within_mm / L)); otherwise not defined. A voxel counts the directions in which d is defined. All
 * backends and the reference in tests/kernels agree bit for bit. Shapes, errors, threads: as in kernels.h.
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

#ifdef __cplusplus
}
#endif
#endif
