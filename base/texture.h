/*
 * texture.h - how texture is measured: the words for it (terms.def), and the options of a pipeline,
 * as the configuration reads them and the families of features take them.
 */
#ifndef NOCTULE_BASE_TEXTURE_H
#define NOCTULE_BASE_TEXTURE_H

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

/* By slice and averaged, by slice and merged, in space. */
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

/* How an intensity-volume histogram has its intensities. */
enum volume_histogram_kind {
    VOLUME_HISTOGRAM_VALUES,     /* as they are */
    VOLUME_HISTOGRAM_BIN_NUMBER, /* IBSI K15C */
    VOLUME_HISTOGRAM_BIN_SIZE,   /* IBSI Q3RU */
    VOLUME_HISTOGRAM_KINDS,
};

/* Between voxels: by order 0, 1 and 3. */
enum interpolation {

#define INTERPOLATION(id, ...) INTERPOLATION_##id,
#include "base/terms.def"
    INTERPOLATIONS,
};

enum texture_pattern {

#define PATTERN(id, ...) TEXTURE_##id,
#include "base/terms.def"
    TEXTURE_PATTERNS, /* how many there are */
};

/* Bits of the option families: those of families.def, and one for all of them. */
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

/* What records and the configuration call them: "3d-merged", "fixed-bin-number", "lbp"; and of a
 * missing value "EMPTY_REGION", "" of one that is present. Each array ends with NULL. */
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

/* What an aggregation is where there are no directions. */
enum dimension aggregation_dimension(enum aggregation aggregation);

/* Does it use directions within slices only? Does it need a matrix per slice? Are those of all
 * directions added up before features are taken? */
bool aggregation_is_2d(enum aggregation aggregation);
bool aggregation_per_slice(enum aggregation aggregation);
bool aggregation_merges(enum aggregation aggregation);

/* ------------------------------------------------------------------- options of a pipeline ---- */

struct discretisation_options {
    enum discretisation kind;
    int levels;       /* of stored-256 and fixed-bin-number */
    double bin_width; /* of the other two, in real-world units */
    bool has_range;   /* re-segmentation: values beyond it take no part */
    double range[2];  /* inclusive, real-world units */
};

/* Does it make as many levels as it is told, and not bins of a width? */
bool discretisation_by_number(enum discretisation kind);

struct texture_offset {
    int32_t x, y, z; /* columns, rows, slices */
};

#define GLCM_MAX_SETS    16 /* distances, or offsets, that a pipeline may name */
#define GLCM_MAX_OFFSETS 16

enum glcm_matrices { /* that features are of, as a result of their own */
                     GLCM_NO_MATRICES,
                     GLCM_COUNTS,
                     GLCM_NORMALISED, /* probabilities */
};

/* Grey level co-occurrence: one matrix, or set of them, per distance. */
struct glcm_options {
    enum aggregation aggregation;
    bool symmetric; /* each pair counts in both directions (IBSI); else in one */
    int *distances; /* Chebyshev, in voxels; none where offsets are given */
    size_t distance_count;
    /* 2-D aggregations only, with distances: the directions in a slice, in degrees
     * counter-clockwise from the row direction, of 0, 45, 90, 135; none named: all four. */
    int *angles;
    size_t angle_count;
    struct texture_offset *offsets; /* instead of distances: exactly these neighbours */
    size_t offset_count;
    enum glcm_matrices matrices;
};

struct volume_histogram_options {
    enum volume_histogram_kind kind;
    int levels;       /* of a bin number */
    double bin_width; /* of a bin size, in real-world units */
};

enum texture_spacing { TEXTURE_ISOTROPIC, TEXTURE_IN_PLANE };

/* Voxels of another size: along all axes, or along rows and columns alone. */
struct texture_resample {
    enum texture_spacing spacing;
    double mm;
    enum interpolation interpolation; /* of values; masks are linear at a half */
};

struct texture_options {
    struct texture_resample *resample; /* NULL: voxels as they are */
    unsigned regions;                  /* enum conf_region, or-ed */
    unsigned families;                 /* 1 << enum texture_family, or-ed */
    struct discretisation_options levels;
    bool levels_wanted; /* the discretisation is given, and not only what families need */
    double sigma; /* re-segmentation: values farther from the mean take no part; 0: none does */
    /* Which families: first_order is that of the statistics, and shape. */
#define FAMILY_OPTION(id, ...) bool id;
#include "base/families.def"
    struct glcm_options *glcm;    /* NULL: none of its own */
    enum aggregation aggregation; /* of all families but a glcm of its own */
    struct volume_histogram_options ivh;
    int ngtdm_distance, ngldm_distance; /* Chebyshev, in voxels */
    int ngldm_alpha;                    /* levels that are so far apart are alike */
    unsigned patterns;                  /* 1 << enum texture_pattern, or-ed */
    double tlbap_threshold; /* 0 .. 1, of the largest value of the window; six decimals count */
    bool tlbap_strict;      /* greater instead of greater or equal */
    bool lanadp_integer;    /* averages cut to integers */
};

/* Does `families` ask for it? */
bool texture_wants(const struct texture_options *options, enum texture_family family);

/* The options of co-occurrence: the pipeline's, those by default where `families` alone asks for it;
 * NULL: it is not wanted. */
const struct glcm_options *texture_glcm_options(const struct texture_options *options);

/* Is a family wanted that measures, and does not only keep histograms? */
bool texture_has_features(const struct texture_options *options);

#ifdef __cplusplus
}
#endif
#endif
