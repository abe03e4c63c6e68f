/*
 * measure_grids.h - the values of texture groups with a grid of their own: resampled values, or responses of filters.
 *
 * Groups share what several of them need: the resampled values, the response of a filter, and the bands of one transform,
 * which are computed together. The first group that needs it keeps it until the last one has been measured. A group reads
 * the part of the grid that its filter needs, and measures the part around its regions.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_GRIDS_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_GRIDS_H

#include "service/pipeline/measure/measure_filter.h"

#include "service/pipeline/grid.h"
#include "service/pipeline/segment/segment.h"

/* The values of a group. */
struct group_values {
    size_t keeper, last;        /* of the resampled values: the first and the last group that share them */
    struct grid grid;           /* of the keeper: its voxels are the values, once they are computed */
    size_t responder, listener; /* likewise, of the response */
    struct filter_response response;
    struct grid_part filtered; /* the part that the filter reads */
};

/* The regions of a group. */
struct group_regions {
    struct texture_region *at;
    size_t count;
};

/* The masks of the regions of the last group on its grid. The next one often has the same. */
struct group_masks {
    size_t keeper; /* of the values on this grid */
    struct grid_part part;
    unsigned wanted; /* enum conf_region, or-ed */
    uint64_t **bits; /* NULL: none; per region, NULL for the whole volume */
    size_t count;
};

/* The box of regions on the planes, which all groups of these regions have. */
struct regions_box {
    bool known, bounded; /* bounded: the whole volume is none of them */
    unsigned wanted;     /* as above */
    int64_t first[3], size[3];
};

struct texture_groups;

/* Lists the segments to measure with their numbers, and the whole volume. The caller must free the list. */
int group_regions_list(const struct conf_pipeline *pipeline, unsigned wanted, const struct image_mask *masks,
                       struct group_regions *regions, struct error *error);
void group_regions_free(struct group_regions *regions);

/* Makes the grids of all groups that need one, and finds what they share. Errors as grid_make_spaced(). */
int group_grids_make(struct texture_groups *groups, struct error *error);
void group_grids_release(struct texture_groups *groups);

/* Begins volumes in the second lane: the job's volume, for resampling; or a volume that a filter does not read. Errors as
 * kernels_volume_begin(). */
int group_grids_begin_source(const struct texture_groups *groups, size_t group, int64_t most_bytes, void **voxels,
                             struct error *error);
int group_grids_begin_filter(struct texture_groups *groups, size_t group, int64_t most_bytes, struct error *error);

/* Returns how much of `most_bytes` is left for the lane while a group is measured; 0: no limit. */
int64_t group_grids_most(const struct texture_groups *groups, size_t group, int64_t most_bytes);

/*
 * Narrows the grid of a group to its regions, resamples these and the values, and fills the grid with the values or the
 * response of the filter. `lane` has the job's volume.
 */
int group_grids_take(struct texture_groups *groups, size_t group, struct group_regions *regions,
                     struct kernels_lane *lane, const void *voxels, const struct image_mask *masks, int64_t most_bytes,
                     struct error *error);

/* Frees the values that no later group needs. */
void group_grids_end(struct texture_groups *groups, size_t group);

/* Adds advice to an error of too little memory. Returns rc. */
int group_grids_tell(const struct grid *grid, int rc, struct error *error);

#endif
