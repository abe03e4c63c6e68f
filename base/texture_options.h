/*
 * texture_options.h - terms of texture (terms.def), and the texture options of a pipeline. The configuration fills
 * them, and the feature families use them. All threads may use all of it; strings are constant.
 */
#ifndef NOCTULE_BASE_TEXTURE_OPTIONS_H
#define NOCTULE_BASE_TEXTURE_OPTIONS_H

#include "base/filter_options.h"
#include "base/voxelwise_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum aggregation {

#define AGGREGATION(id, ...) AGGREGATION_##id,
#include "base/terms.def"
    AGGREGATIONS,
};

/* Per slice and averaged, per slice and merged, in 3-D. */
enum dimension {

#define DIMENSION(id, ...) DIMENSION_##id,
#include "base/terms.def"
    DIMENSIONS,
};

enum discretisation {

#define DISCRETISATION(id, ...) DISCRETISATION_##id,
#include "base/terms.def"
    DISCRETISATIONS,
};

/* Discretisation of an intensity-volume histogram. */
enum volume_histogram_kind {
    VOLUME_HISTOGRAM_VALUES,     /* not discretised */
    VOLUME_HISTOGRAM_BIN_NUMBER, /* IBSI K15C */
    VOLUME_HISTOGRAM_BIN_SIZE,   /* IBSI Q3RU */
    VOLUME_HISTOGRAM_KINDS,
};

/* Interpolation between voxels, of order 0, 1 and 3. */
enum interpolation {

#define INTERPOLATION(id, ...) INTERPOLATION_##id,
#include "base/terms.def"
    INTERPOLATIONS,
};

enum texture_pattern {

#define PATTERN(id, ...) TEXTURE_##id,
#include "base/terms.def"
    TEXTURE_PATTERNS, /* their number */
};

/* Bits of the option `families`: those of families.def, and one for all. */
enum texture_family {

#define FAMILY_WORD(id, ...) TEXTURE_FAMILY_##id,
#include "base/families.def"
    TEXTURE_FAMILY_all,
    TEXTURE_FAMILIES,
};

enum feature_missing {
    FEATURE_PRESENT,

#define MISSING(id, ...) FEATURE_##id,
#include "base/terms.def"
    FEATURE_MISSINGS,
};

/*
 * Names in records and in the configuration: "3d-merged", "fixed-bin-number", "lbp". A missing value has a name such as
 * "EMPTY_REGION"; a present one has "". Each array ends with NULL.
 */
extern const char *const texture_family_names[TEXTURE_FAMILIES + 1];
extern const char *const volume_histogram_names[VOLUME_HISTOGRAM_KINDS + 1];
extern const char *const aggregation_names[AGGREGATIONS + 1];
extern const char *const discretisation_names[DISCRETISATIONS + 1];
extern const char *const interpolation_names[INTERPOLATIONS + 1];
extern const char *const texture_pattern_names[TEXTURE_PATTERNS + 1];
extern const char *const feature_missing_names[FEATURE_MISSINGS + 1];

/* "IAZD"; "3d" and "KOBO" */
extern const char *const aggregation_codes[AGGREGATIONS];
extern const char *const dimension_names[DIMENSIONS];
extern const char *const dimension_codes[DIMENSIONS];

/* Returns the dimension of an aggregation, for families without directions. */
enum dimension aggregation_dimension(enum aggregation aggregation);

/* Return whether an aggregation uses directions within slices only, needs a matrix per slice, and adds the matrices of
 * all directions before it computes features. */
bool aggregation_is_2d(enum aggregation aggregation);
bool aggregation_per_slice(enum aggregation aggregation);
bool aggregation_merges(enum aggregation aggregation);

/* ------------------------------------------------------------------- options of a pipeline ---- */

struct discretisation_options {
    enum discretisation kind;
    int levels;       /* of stored-256 and fixed-bin-number */
    double bin_width; /* of the other two, in real-world units */
    bool has_range;   /* re-segmentation: exclude values outside */
    double range[2];  /* inclusive, real-world units */
};

/* Returns true for a fixed number of levels, false for a fixed bin width. */
bool discretisation_by_number(enum discretisation kind);

struct texture_offset {
    int32_t x, y, z; /* columns, rows, slices */
};

#define GLCM_MAX_OFFSETS 16

enum glcm_matrices { /* matrices that are results of their own */
                     GLCM_NO_MATRICES,
                     GLCM_COUNTS,
                     GLCM_NORMALISED, /* probabilities */
};

/* Grey level co-occurrence: one matrix, or set of them, per distance. */
struct glcm_options {
    enum aggregation aggregation;
    bool symmetric; /* count each pair in both directions (IBSI), or in one */
    int *distances; /* Chebyshev, in voxels; empty if offsets are set */
    size_t distance_count;
    /* For 2-D aggregations with distances: directions in a slice, in degrees counter-clockwise from
     * the row direction: 0, 45, 90, 135. Empty: all four. */
    int *angles;
    size_t angle_count;
    struct texture_offset *offsets; /* exactly these neighbours, instead of distances */
    size_t offset_count;
    enum glcm_matrices matrices;
};

struct volume_histogram_options {
    enum volume_histogram_kind kind;
    int levels;       /* for a bin number */
    double bin_width; /* for a bin size, in real-world units */
};

enum texture_spacing { TEXTURE_ISOTROPIC, TEXTURE_IN_PLANE };

/* Rounding of interpolated values to stored values. */
enum texture_rounding {
    TEXTURE_ROUNDING_AUTO, /* stored for CT in HU (IBSI 68QD), and where levels are of stored values; else none */
    TEXTURE_ROUNDING_STORED,
    TEXTURE_ROUNDING_NONE,
};

/* Resampling to another voxel size: along all axes, or along rows and columns only. */
struct texture_resample {
    enum texture_spacing spacing;
    double mm;
    enum interpolation interpolation; /* of values */
    enum texture_rounding rounding;
};

/* Files of the response of a filter, and of maps of features, as results. */
enum texture_response { TEXTURE_RESPONSE_PMAP, TEXTURE_RESPONSE_NIFTI };

/* Normalisation of the volume's values: their distance from their mean in standard deviations (pyradiomics' normalize). */
struct texture_normalise {
    double scale;    /* the result is multiplied by it */
    double outliers; /* before, values are limited to as many standard deviations; 0: not limited */
};

/* Names of columns of the cohort table. */
enum texture_names { TEXTURE_NAMES_NOCTULE, TEXTURE_NAMES_PYRADIOMICS };

struct texture_options {
    struct texture_normalise *normalise; /* before resampling; NULL: no normalisation */
    struct texture_resample *resample;   /* NULL: no resampling */
    struct filter_options *filter;       /* NULL: the values themselves */
    enum texture_names names;
    unsigned
        response; /* 1 << enum texture_response, or-ed; must be 0 for image types of pyradiomics and with normalise */
    unsigned regions;  /* enum conf_region, or-ed */
    unsigned families; /* 1 << enum texture_family, or-ed */
    struct discretisation_options levels;
    bool levels_wanted;        /* the configuration sets the discretisation */
    double sigma;              /* re-segmentation: max distance from the mean, in SD; 0: off */
    bool first_order;          /* statistics of the values, and shape */
    double energy_shift;       /* added to values in energy and root mean square (voxelArrayShift of pyradiomics) */
    struct glcm_options *glcm; /* NULL: no options of its own */
    struct voxelwise_options *voxelwise; /* maps of features; NULL: none */
    enum aggregation aggregation;        /* of all families, except a glcm with its own options */
    struct volume_histogram_options ivh;
    int ngtdm_distance, ngldm_distance; /* Chebyshev, in voxels */
    int ngldm_alpha;                    /* max difference of similar levels */
    unsigned patterns;                  /* 1 << enum texture_pattern, or-ed */
    double tlbap_threshold;             /* 0 to 1, relative to the largest value of the window; six decimals */
    bool tlbap_strict;                  /* greater instead of greater or equal */
    bool lanadp_integer;                /* truncate averages to integers */
};

/* Returns whether `families` includes it. */
bool texture_wants(const struct texture_options *options, enum texture_family family);

/* Returns the options of the GLCM: the pipeline's, or the defaults if only `families` includes it. NULL: no GLCM. */
const struct glcm_options *texture_glcm_options(const struct texture_options *options);

/* Returns whether two groups have the same voxels; NULL: those of the series. */
bool texture_resample_same(const struct texture_resample *a, const struct texture_resample *b);

/* Returns whether a family computes features, other than histograms. */
bool texture_has_features(const struct texture_options *options);

#ifdef __cplusplus
}
#endif
#endif
