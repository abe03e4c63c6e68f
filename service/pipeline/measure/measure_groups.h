/*
 * measure_groups.h - measures all groups of texture options of a pipeline. A group may have a grid
 * of its own (texture.resample).
 *
 * A group without a grid of its own uses the job's lane and grid. The other groups share a second
 * lane. It gets a copy of the job's volume, which is then resampled to the group's grid: around the
 * regions only, unless the whole volume is measured. The job's lane keeps the data for the results.
 * Features are sorted by region, then by group.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_GROUPS_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_GROUPS_H

#include "service/pipeline/grid.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/measure/measure_grids.h"
#include "service/pipeline/segment/segment.h"

enum { GROUPS_WAITING = 4 }; /* threads compute their values while later groups are filtered and counted */

struct texture_groups {
    const struct conf_pipeline *pipeline;
    const struct grid *grid;                                /* of the job */
    const struct pipeline_watch *watch;                     /* may be NULL */
    struct valuing *valuing;                                /* for texture_measure() */
    struct grid *grids;                                     /* per group; the job's grid if there is no source */
    struct kernels_lane *lane;                              /* the second lane; NULL: not needed */
    bool borrows_lane;                                      /* the caller owns it */
    struct group_values *values;                            /* per group */
    struct group_masks masks, masks_before[GROUPS_WAITING]; /* before: those of groups without complete values */
    struct filter_range range;                              /* for filters */
    struct regions_box box;                                 /* of the last regions */
};

/*
 * Adds the demand of the groups to that of the job's lane, and to the memory besides. Groups
 * measure after segmentation, which needs `passing` bytes before that.
 */
void texture_groups_demand(const struct conf_pipeline *pipeline, const struct grid *grid, int64_t passing,
                           struct kernels_demand *demand);

/*
 * Makes the local patterns of a 2-D image while it is uploaded to a GPU. _demand_ahead, after texture_groups_demand(), adds the
 * memory if there is enough; _begin_ahead begins before the first row is announced. Both have no effect otherwise.
 */
void texture_groups_demand_ahead(struct kernels_device *device, const struct kernels_lane *lane,
                                 const struct grid *grid, struct kernels_demand *demand);
int texture_groups_begin_ahead(const struct conf_pipeline *pipeline, const struct grid *grid,
                               const struct kernels_demand *demand, struct kernels_lane *lane, struct error *error);

/*
 * Makes the groups' grids, and reserves their memory in a lane of the device, at most `most_bytes`
 * (0: the free memory), so that errors are found before any work. If that is too much for the whole
 * grid but the segments may need less, texture_groups_measure() decides.
 *
 * All arguments are borrowed, and so is a lane that groups->lane already is. Release it also after an error: one of grid_make_spaced(),
 * kernels_lane_open() or kernels_volume_begin(), with -ENOMEM if it does not fit the device.
 */
int texture_groups_prepare(struct texture_groups *groups, struct kernels_device *device, int64_t most_bytes,
                           struct error *error);

/*
 * Measures all groups. The job's lane must have the volume, which is `voxels`. Errors are those of
 * texture_measure().
 */
int texture_groups_measure(struct texture_groups *groups, struct kernels_lane *lane, const void *voxels,
                           const struct image_mask *masks, int64_t most_bytes, struct texture_result *result,
                           struct error *error);

/* Returns the response of a group that writes it, after texture_groups_measure(), and its grid: the whole volume. */
const struct filter_response *texture_groups_response(const struct texture_groups *groups, size_t group,
                                                      const struct grid **grid);

/* Returns the grid on which a group is measured. */
const struct grid *texture_groups_grid(const struct texture_groups *groups, size_t group);

void texture_groups_release(struct texture_groups *groups);

#endif
