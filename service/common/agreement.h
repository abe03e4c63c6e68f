/*
 * agreement.h - measures the agreement of two masks of one volume.
 *
 * The surface is that of the package surface-distance (Nikolov et al., 2018): the corners of voxels of which some, but not
 * all, of the eight voxels around them belong to the mask. Each such corner has the area of its marching cubes. Voxels
 * outside the volume belong to no mask. The distance of a corner is that to the nearest corner of the other surface, with
 * the spacing of the voxels.
 *
 * Uses several threads and only its arguments; thread-safe. The result does not depend on the number of threads.
 */
#ifndef NOCTULE_SERVICE_COMMON_AGREEMENT_H
#define NOCTULE_SERVICE_COMMON_AGREEMENT_H

#include "base/error.h"
#include "base/image.h"

enum agreement_mask { AGREEMENT_FOUND, AGREEMENT_REFERENCE, AGREEMENT_MASKS };

struct agreement_request {
    struct image_extent extent;
    double spacing[3]; /* between voxel centres along x, y, z, mm */
    struct image_mask masks[AGREEMENT_MASKS];
    double tolerance_mm; /* of surface_dice */
    int threads;
};

/* NAN: not defined, because both masks are empty. */
struct agreement {
    int64_t voxels[AGREEMENT_MASKS], common;
    int64_t wrong; /* voxels of exactly one of the masks */
    double ml[AGREEMENT_MASKS];
    double wrong_share;  /* wrong divided by the voxels of the volume */
    double dice;         /* 2 * common / sum of voxels */
    double ratio;        /* volume found divided by that of the reference; INFINITY for an empty reference */
    double bias_ml;      /* volume found minus that of the reference */
    double distance_95;  /* mm: 95 % of each surface's area lie within; INFINITY if one mask is empty */
    double surface_dice; /* share of the area of both surfaces within tolerance_mm of the other surface, inclusive */
};

/* Returns 0, or -ENOMEM: OUT_OF_MEMORY. */
int agreement_measure(const struct agreement_request *request, struct agreement *agreement, struct error *error);

#endif
