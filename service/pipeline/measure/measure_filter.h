/*
 * measure_filter.h - the image filter of a texture group: replaces the values of the group's grid by responses
 * (kernels/filter/filter.h). Groups with the same filter and voxels share one response.
 *
 * Image types of pyradiomics use real-world values. Values are integers for other filters: stored values plus a whole intercept if they are rounded and share a rescale, else
 * real-world values in steps of 2^-30 of a power of two. Padding counts as the lowest value of the job's volume. The
 * response of padding is no value, and neither is that of a voxel of a region whose own value is beyond the range of the
 * group. A grid narrowed to its regions gives the responses of the whole grid there.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_FILTER_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_FILTER_H

#include "service/pipeline/grid.h"
#include "service/pipeline/measure/measure.h"

#include "kernels/filter/filter.h"
#include "kernels/filter/image_type.h"

/* The demand of a group's filter: one of the two. */
struct texture_filter_demand {
    struct filter_demand filter;
    struct image_type_demand image_type;
};

/* Adds a group's filter for its grid to the demand of a lane, which borrows `own`. */
void texture_filter_demand_set(const struct texture_options *options, const struct grid *grid,
                               struct texture_filter_demand *own, struct kernels_demand *demand);

/* Returns the margin around regions in mm that the filter reads; a negative number: the whole volume. */
double texture_filter_margin(const struct texture_options *options, const double spacing[3]);

/* Returns an upper limit of the responses to values up to a limit. */
double texture_filter_bound(const struct texture_options *options, const double spacing[3], double limit);

/* The response of a filter: a code per voxel of a grid, x fastest. A value is code * step. */
struct filter_response {
    int32_t *codes; /* NULL: not computed */
    double step;
};

#define FILTER_RESPONSE_NONE INT32_MIN /* the code of padding */

/* The smallest and the largest real-world value of the job's volume, or values beyond them. */
struct filter_range {
    bool known;
    double ends[2];
};

struct texture_filtering {
    const struct texture_options *options;
    struct grid *grid;         /* with values that are not rounded; without values, if the response has codes */
    struct kernels_lane *lane; /* begins a volume of the grid's extent, at most most_bytes */
    int64_t most_bytes;
    struct kernels_lane *whole; /* has the job's volume */
    const struct texture_region *regions;
    size_t region_count;
    struct filter_range *range;       /* of the job; found at the first call */
    struct filter_response *response; /* computed unless it has codes; the caller must free them */
};

/* Returns whether the filter of a group needs the values, besides the response. */
bool texture_filter_reads(const struct texture_options *options, const struct filter_response *response);

/*
 * Fills the grid with the response, in place of the values if it has them. Returns OUT_OF_MEMORY, and errors of filter_run()
 * and kernels_volume_begin().
 */
int texture_filter(const struct texture_filtering *filtering, struct error *error);

#endif
