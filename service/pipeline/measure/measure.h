/*
 * measure.h - measures the regions of a job on its announced volume: intensities, shape,
 * co-occurrence and local patterns, as the pipeline's options request.
 *
 * Padding. Padding voxels count as voxels of their region, but in no intensity, matrix or entropy
 * (PS3.3 C.7.5.1.1.2). The same holds for voxels that re-segmentation removes: shape and volume use
 * the morphological mask, all other features the intensity mask (family.h).
 *
 * If slices differ in rescale or padding, each has its own histogram and table of levels: 0.6 MiB
 * per slice of 16 bits while a region is measured. A set of matrices needs 8 bytes per cell.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_H

#include "service/pipeline/pipeline_report.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "service/common/jobs/feature_document.h"

#include "kernels/features/family.h"

struct shared_values;
struct voxelwise_maps;
struct valuing;

/* A segment, or the whole volume (number 0, label "", bits NULL). */
struct texture_region {
    int32_t segment;
    const char *label;
    const uint64_t *bits;         /* rows of (columns + 63) / 64 words */
    enum feature_missing lengths; /* the reason for which lengths in mm are unknown; else FEATURE_PRESENT */
    enum feature_missing all;     /* the reason for which all values are missing; else FEATURE_PRESENT */
};

struct texture_request {
    const struct texture_options *options;
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const struct texture_region *regions;
    size_t region_count;
    bool maps;                 /* maps must be returned */
    struct kernels_lane *lane; /* holds the volume, unless there are reals */
    /*
     * Real-world values of the volume; NAN: padding. NULL: those of the stored values in the lane. Else `begin` begins
     * the lane's volume of IMAGE_UINT16 for each region anew, for levels.
     */
    const double *reals;
    int (*begin)(const void *context, void **voxels, struct error *error);
    const void *begin_context;
    bool flat;               /* a 2-D image: no slices, and no position in the patient */
    bool in_mm;              /* the values themselves depend on the spacing */
    bool rounded;            /* the values before a filter are rounded to stored values */
    const double *filtered;  /* the range of values before a filter; NULL: no filter, or no range */
    struct valuing *valuing; /* reserved for this call */
    int64_t most_bytes;      /* max memory of maps of features; 0: no limit */
    /* the voxel of the stack's grid at which the volume begins */
    int64_t first[3];
    /* shared with the job's other groups; NULL: there is one group */
    struct shared_values *shared;
    const struct pipeline_watch *watch; /* may be NULL */
};

struct texture_result {
    struct feature_set features;
    struct feature_map *maps; /* the lane owns the codes: they are valid until it has another volume */
    size_t map_count;
    struct voxelwise_maps *voxelwise; /* maps of features, per group and region (measure_voxelwise.h) */
    size_t voxelwise_count;
    char note[256]; /* advice if features had to be left out; "" */
};

/*
 * Measures the regions. Returns 0, -ECANCELED, -ENOMEM with OUT_OF_MEMORY, or the error of a
 * backend by pipeline_compute_error(). A feature without a value has a reason; each number is
 * finite. Reports the stage "texture". Adds to the result, which must begin as zeros; the caller
 * must clear it, also after an error.
 */
int texture_measure(const struct texture_request *request, struct texture_result *result, struct error *error);

/*
 * As texture_measure(), but if `leaves` is set, threads may still compute the values of the last region. *left is then not NULL,
 * and texture_end(), which frees it, adds them to the result. Until then the caller must keep all that the request refers to,
 * and must not use its valuing, but may begin other volumes in its lane.
 */
struct step;
int texture_begin(const struct texture_request *request, bool leaves, struct texture_result *result, struct step **left,
                  struct error *error);
int texture_end(struct step *left); /* left may be NULL */

void texture_result_clear(struct texture_result *result);

/*
 * Returns the UCUM unit of the stack's real-world values: "[hnsf'U]", "Bq/ml"; "1" if it is not
 * known.
 */
const char *value_unit_of(struct dicom_instance *const *instances, const struct geometry_stack *stack);

/* Writes the unit to a power: "(Bq/ml)2"; "1" for power 0. */
void value_unit_raise(const char *base, int power, char unit[FEATURE_TERM]);

/* Writes the unit to a power, times a unit: "Bq/ml.ml", "ml" for power 0; only the former for "". */
void value_unit_times(const char *base, int power, const char *own, char unit[FEATURE_TERM]);

/* Returns the unit as people write it: "HU", "" for "1"; others unchanged. */
const char *value_unit_spoken(const char *unit);

/*
 * Finds the intensity mask of a region (IBSI 2.5): the values that count. Thread-safe. Removes
 * values from a region's histograms, [tables][values] without padding: those beyond the range of
 * the volume's options, and those farther from the mean than the given number of standard
 * deviations. Mean and (population) deviation are those of the original region. With both options a
 * value must satisfy both.
 *
 * kept[0] .. kept[1]: the inclusive interval of kept real-world values; -INFINITY .. INFINITY
 * without options. extremes: the smallest and the largest kept value; INFINITY, -INFINITY: no value
 * is left.
 */
void resegment(const struct feature_volume *volume, uint64_t *histograms, double kept[2], double extremes[2]);

/* As resegment() for a region of a volume of real-world values. Returns 0 or -ENOMEM. */
int resegment_reals(struct feature_region *region);

enum { REGION_PARTS = 32 };

/* Returns the number of parts of a region's rows that threads take in turn, at most REGION_PARTS. */
int64_t region_parts(const struct feature_region *region);

#endif
