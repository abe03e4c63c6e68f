/* ref_coarse.h - computes blocks by the definition of kernels/coarse/coarse.h, one voxel at a time, and makes cases. */
#ifndef NOCTULE_REF_COARSE_H
#define NOCTULE_REF_COARSE_H

#include "kernels/coarse/coarse.h"

void ref_coarse(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                const struct coarse_request *request, int16_t *blocks);
void ref_coarse_expand(const struct coarse_grid *grid, const uint64_t *mask, struct image_extent extent,
                       uint64_t *bits);

/* A random volume and request. The caller must set request.blocks. */
struct coarse_case {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    struct coarse_request request;
};

void coarse_make_case(struct coarse_case *each, uint64_t seed);
void coarse_free_case(struct coarse_case *each);

/* Runs a whole job. Returns its first error. */
int coarse_run_case(struct kernels_lane *lane, const struct coarse_case *each, int16_t *blocks, struct error *error);

#endif
