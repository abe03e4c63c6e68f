/*
 * measure.h - measures the regions of a job on its announced volume: intensities, place,
 * co-occurrence and local patterns, as the pipeline asks.
 *
 * What is left out. Pixel padding has a place and no value: it counts as a voxel of its region, and
 * in no intensity, matrix or entropy (PS3.3 C.7.5.1.1.2). What re-segmentation leaves out is the same:
 * place and volume are of the morphological mask, all else is of the intensity mask (family.h).
 *
 * Where slices differ in rescale or padding each has its own histogram and table of levels: 0.6 MiB
 * per slice of 16 bits while a region is measured. A set of matrices takes 8 bytes a cell.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_H

#include "service/pipeline/pipeline_report.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "service/common/jobs/feature_document.h"

#include "kernels/features/family.h"

struct shared_values;
struct valuing;

/* A segment, or the whole volume (number 0, label "", bits NULL). */
struct texture_region {
    int32_t segment;
    const char *label;
    const uint64_t *bits; /* rows of (columns + 63) / 64 words */
};

struct texture_request {
    const struct texture_options *options;
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const struct texture_region *regions;
    size_t region_count;
    bool maps;                          /* are wanted back */
    struct kernels_lane *lane;          /* holds the volume */
    struct valuing *valuing;            /* nobody else's meanwhile */
    int64_t first[3];                   /* which begins at this voxel of the stack's grid */
    struct shared_values *shared;       /* with the job's other groups; NULL: it is the only one */
    const struct pipeline_watch *watch; /* may be NULL */
};

struct texture_result {
    struct feature_set features;
    struct feature_map
        *maps; /* whose codes are the lane's: they are there until it has another volume */
    size_t map_count;
    char note[256]; /* what to change where something had to be left out; "" */
};

/*
 * 0, -ECANCELED, -ENOMEM with OUT_OF_MEMORY, or what pipeline_compute_error makes of a backend's
 * failure. A feature that has no value carries its reason; a number is always finite. The stage
 * "texture" is told of. Adds to the result, which begins as zeros; on an error what it has is to be
 * cleared.
 */
int texture_measure(const struct texture_request *request, struct texture_result *result,
                    struct error *error);

void texture_result_clear(struct texture_result *result);

#endif
