/*
 * measure_groups.h - all that a job measures: each of the pipeline's groups of texture options, of which some
 * have a grid of their own (texture.resample).
 *
 * A group without one measures on the job's lane and grid. The others share a second lane, into which
 * the job's volume comes once more, and then what it becomes on their grid, of which there is no more
 * than around the regions, unless the volume is one; the job's lane keeps what results are written of. What is told stands region by region, whatever the group.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_GROUPS_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_GROUPS_H

#include "service/pipeline/grid.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/segment/segment.h"

struct texture_groups {
    const struct conf_pipeline *pipeline;
    const struct grid *grid;            /* the job's */
    const struct pipeline_watch *watch; /* may be NULL */
    struct valuing *valuing;            /* as texture_measure wants it */
    struct grid *grids;                 /* of each group; without a source: the job's */
    struct kernels_lane *lane;          /* the second one; NULL: none is needed */
};

/* Adds what the groups ask of the job's lane, and of memory beside it and what has been added before:
 * they measure when segments are found, which have `passing` to themselves until then. */
void texture_groups_demand(const struct conf_pipeline *pipeline, const struct grid *grid,
                           int64_t passing, struct kernels_demand *demand);

/*
 * Makes the grids for the job's, and reserves what measuring on them takes in a lane of the device,
 * `most_bytes` at most (0: what there is), so that what cannot be done is known before anything is: but
 * where that is too much for the whole grid, and segments may take less, texture_groups_measure knows.
 * All are borrowed. Release it also after an error, which is one of grid_make_spaced, or of
 * kernels_lane_open and kernels_volume_begin: -ENOMEM where it does not fit the device.
 */
int texture_groups_prepare(struct texture_groups *groups, struct kernels_device *device,
                           int64_t most_bytes, struct error *error);

/* Measures: the job's lane has the volume, which is `voxels`, too. As texture_measure. */
int texture_groups_measure(const struct texture_groups *groups, struct kernels_lane *lane,
                           const void *voxels, const struct image_mask *masks, int64_t most_bytes,
                           struct texture_result *result, struct error *error);

void texture_groups_release(struct texture_groups *groups);

#endif
