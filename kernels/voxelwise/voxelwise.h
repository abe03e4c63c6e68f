/*
 * voxelwise.h - maps of features: of the window around each voxel of a region, as pyradiomics' voxel-based extraction.
 *
 * The window of radius r has the voxels up to r away along each axis that have a level. Levels are those of the whole region.
 * Features are those of the families of the same name (kernels/features/), in 3-D with distance 1: GLCM, symmetric, and GLRLM are
 * computed per direction and averaged. Where a feature is undefined, its value is that of pyradiomics:
 *
 * - GLCM: a direction without pairs is left out; NAN if no direction has pairs. A direction with one grey level has
 *   correlation 1, and 0 for information correlation and MCC.
 * - GLRLM: a direction is left out if each of its lines has at most one voxel; NAN if all are.
 * - First order: a window of equal values has skewness and (excess) kurtosis 0.
 * - NGTDM: coarseness is at most 1e6; quotients by 0 are 0; voxels without neighbours count.
 *
 * All backends agree bit for bit. Counts, their sums and entropies are integers: c log2(c) in steps of a power of two. Other sums
 * have one order: voxels, runs and zones by their first voxel, levels, directions.
 *
 * Shapes, threads, errors: as in kernels.h; -EINVAL without a demand for it, for other radii or numbers
 * of levels than possible, and for slices larger than those of the lane's volume.
 */
#ifndef NOCTULE_KERNELS_VOXELWISE_VOXELWISE_H
#define NOCTULE_KERNELS_VOXELWISE_VOXELWISE_H

#include "base/voxelwise_options.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct voxelwise_request {
    const struct voxelwise_options *options;
    int64_t size[3];        /* columns, rows, slices of the next two */
    const uint16_t *levels; /* 0: not in the region; x fastest, tightly packed */
    const double *values;   /* likewise, for first-order features */
    int level_count;        /* at most VOXELWISE_MAX_LEVELS */
    double energy_shift;    /* added to values in energy and root mean square */
    const int64_t *voxels;  /* those to compute, ascending; they have levels */
    int64_t count;
    double *maps;   /* [wanted features][stride], in the order of voxelwise_rows */
    int64_t stride; /* at least count */
};

/* Computes the maps. The demand of the operation KERNELS_VOXELWISE is kernels_asked. */
int voxelwise_run(struct kernels_lane *lane, const struct voxelwise_request *request, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
