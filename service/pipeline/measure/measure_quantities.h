/*
 * measure_quantities.h - measures the named quantities of segments (base/quantities.def), on the volume and the masks that the job
 * computed. They are features of the family "quantity" without settings.
 *
 * Values are real-world values in the unit of the volume, without padding. Counts and sums of voxels are integers, and
 * all else is computed from them in a fixed order, so that all backends give the same bits.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_QUANTITIES_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_QUANTITIES_H

#include "service/pipeline/grid.h"
#include "service/pipeline/measure/measure.h"

/*
 * Checks that the images meet the needs of all quantities. Returns 0, or -EINVAL with QUANTITY_UNIT or QUANTITY_SLICES and
 * the file of a slice.
 */
int quantities_check(const struct conf_pipeline *pipeline, const struct grid *grid, struct error *error);

/* Adds the demand of the quantities to that of the job's lane, and their memory besides. */
void quantities_demand(const struct conf_pipeline *pipeline, const struct grid *grid, struct kernels_demand *demand);

struct quantities_request {
    const struct conf_pipeline *pipeline;
    const struct grid *grid;            /* of the job */
    struct kernels_lane *lane;          /* holds the volume */
    const void *voxels;                 /* of the lane */
    const struct image_mask *masks;     /* one per segment */
    const struct pipeline_watch *watch; /* may be NULL */
};

/*
 * Measures the segments, and adds the values to the features in the order of segments. Returns 0, -ECANCELED, -ENOMEM with
 * OUT_OF_MEMORY, or the error of a backend.
 */
int quantities_measure(const struct quantities_request *request, struct feature_set *features, struct error *error);

/* A diameter in a slice: its length in mm, and its ends in mm from the centre of the first voxel of the slice. */
struct diameter {
    double length;
    double ends[2][2]; /* along rows, and along columns */
};

/* The longest diameter of a component of a slice, and the longest diameter at right angles to it; lengths 0: no voxel. */
struct diameters {
    struct diameter longest, across;
    int64_t slice;
};

/*
 * Finds the longest diameter in any slice of a mask. The outline of a component runs through the middle of the edges
 * between its voxels and others. Of equal longest diameters, takes that with the longest one at right angles. Returns 0
 * or -ENOMEM.
 */
int diameters_find(const struct image_extent *extent, const uint64_t *bits, const double spacing[3],
                   struct diameters *diameters);

#endif
