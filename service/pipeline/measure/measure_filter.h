/*
 * measure_filter.h - the image filter of a texture group: fills the group's grid with responses (kernels/filter/filter.h).
 * Groups with the same filter and values share one response, and bands of one transform are computed together.
 *
 * Image types of pyradiomics use real-world values. Values are integers for other filters: stored values plus a whole
 * intercept if they are rounded and share a rescale, else real-world values in steps of 2^-30 of a power of two. Padding
 * counts as the lowest value of the job's volume. The response of padding is no value, and neither is that of a voxel of a
 * region whose own value is beyond the range of the group. A grid narrowed to its regions gives the responses of the whole
 * grid there.
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

/* Returns the margin around regions in mm that the filter reads on a whole grid; a negative number: the whole volume. */
double texture_filter_margin(const struct texture_options *options, const struct grid *grid);

/* Returns an upper limit of the responses to values up to a limit. */
double texture_filter_bound(const struct texture_options *options, const double spacing[3], double limit);

/* Returns the bit of a filter among the bands of its transform (kernels/filter/image_type.h); NULL: 0. */
uint8_t texture_filter_band(const struct filter_options *filter);

/* The response of a filter: a code per voxel of the part that the filter reads, x fastest. A value is code * step. Of image
 * types: values per band, in the grid that is measured. NULL: not computed. */
struct filter_response {
    int32_t *codes;
    double step;
    double *reals[IMAGE_TYPE_BANDS];
};

#define FILTER_RESPONSE_NONE INT32_MIN /* the code of padding */

/* The smallest and the largest real-world value of the job's volume, or values beyond them. */
struct filter_range {
    bool known;
    double ends[2];
};

struct texture_filtering {
    const struct texture_options *options;
    struct grid *grid;         /* that is measured: gets the response */
    const struct grid *values; /* has values that are not rounded */
    struct grid_part part;     /* of the whole grid, that the filter reads */
    struct kernels_lane *lane; /* begins a volume of the part's extent, at most most_bytes */
    int64_t most_bytes;
    uint8_t bands;              /* of an image type, to compute together */
    struct kernels_lane *whole; /* has the job's volume */
    const struct texture_region *regions;
    size_t region_count;
    struct filter_range *range;       /* of the job; found at the first call */
    struct filter_response *response; /* the caller must free it */
    bool takes_response;              /* image types: the grid takes its band over */
};

/* Begins a volume for the filter, which reads other values. The lane borrows `own`. */
int texture_filter_begin(const struct texture_filtering *filtering, struct texture_filter_demand *own, void **voxels,
                         struct error *error);

/* Computes the response unless it is there. Returns OUT_OF_MEMORY, and errors of filter_run() and kernels_volume_begin(). */
int texture_filter_respond(const struct texture_filtering *filtering, struct error *error);

/* Fills the grid with the response: in place of its values or, for an image type, in new memory. Returns OUT_OF_MEMORY. */
int texture_filter_fill(const struct texture_filtering *filtering, struct error *error);

#endif
