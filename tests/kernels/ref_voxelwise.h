/*
 * ref_voxelwise.h - features of windows by their definitions: cuts out the window, makes its matrices, and calls the functions
 * for whole regions (kernels/features/); and random cases. tests/integ/test_voxelwise.py compares with pyradiomics itself.
 */
#ifndef NOCTULE_REF_VOXELWISE_H
#define NOCTULE_REF_VOXELWISE_H

#include "kernels/voxelwise/voxelwise.h"

struct voxelwise_case {
    struct voxelwise_options options;
    struct voxelwise_request request; /* refers to the options and to the next ones */
    uint16_t *levels;
    double *values;
    int64_t *voxels;
    int features;
};

/* Makes a case with all features, or with random ones for odd seeds. */
void voxelwise_make_case(struct voxelwise_case *each, uint64_t seed);
void voxelwise_free_case(struct voxelwise_case *each);

/* Computes all features of the window around a voxel. */
void ref_voxelwise(const struct voxelwise_request *request, int64_t voxel, double values[VOXELWISE_FEATURES]);

/* Runs a whole job. Returns its first error. Writes [features][voxels] of the case to `maps`. */
int voxelwise_run_case(struct kernels_lane *lane, const struct voxelwise_case *each, double *maps, struct error *error);

#endif
