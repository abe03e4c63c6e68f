/*
 * measure_voxelwise.h - maps of features of a region (kernels/voxelwise/), as pyradiomics' voxel-based extraction makes them.
 *
 * Levels are those of the region: of its intensity mask. With `masked = false`, the region is instead its box, and as many
 * voxels around it as the radius, without re-segmentation; the maps still have the voxels of the intensity mask only.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_VOXELWISE_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_VOXELWISE_H

#include "service/pipeline/measure/measure.h"

/* The maps of a region. */
struct voxelwise_maps {
    size_t group; /* of texture */
    int32_t segment;
    const char *label;
    int64_t first[3], size[3]; /* the box of the region, in the grid of the group */
    int64_t count;             /* voxels with values */
    int64_t *voxels;           /* their indices in the box, ascending */
    int64_t *slices;           /* size[2] + 1: the first of these in each slice */
    double *values;            /* [wanted features][count], NAN: no value */
};

/*
 * Computes the maps of a region whose values are known, and adds them to the result; none for an empty region. Codes:
 * VOXELWISE_LEVELS, JOB_TOO_LARGE above the request's most_bytes, OUT_OF_MEMORY, and those of voxelwise_run().
 */
int voxelwise_measure(const struct texture_request *request, const struct feature_region *region,
                      const struct texture_region *named, struct texture_result *result, struct error *error);

void voxelwise_maps_free(struct voxelwise_maps *maps);

/* Fills the doubles of a slice of the box, columns fastest: the map of the feature of this number among those wanted. */
void voxelwise_maps_fill(const struct voxelwise_maps *maps, int feature, int64_t slice, double *values);

#endif
