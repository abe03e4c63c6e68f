/*
 * features.h - features from integer counts, in double precision and a fixed order, so that
 * every backend gives the same numbers.
 *
 * Definitions are IBSI's (reference manual, chapters 3.3 intensity-based statistics, 3.4 local,
 * 3.6 grey level co-occurrence based features) and Haralick's (1973, f14). A feature that is not
 * defined for its region carries the reason instead of a value. Pure functions; any thread.
 */
#ifndef NOCTULE_TEXTURE_FEATURES_H
#define NOCTULE_TEXTURE_FEATURES_H

#include "base/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum features_absence {
    FEATURES_PRESENT,
    FEATURES_NO_VOXEL,  /* the region is empty */
    FEATURES_NO_PAIR,   /* no two voxels of it are neighbours in any direction */
    FEATURES_ONE_LEVEL, /* not defined for a single grey level */
    FEATURES_NO_LEVELS, /* values could not be discretised */
};

/* "EMPTY_REGION", "NO_NEIGHBOURS", "ONE_GREY_LEVEL", "NOT_DISCRETISED"; "" for FEATURES_PRESENT.
 */
const char *features_absence_name(enum features_absence absence);

struct feature_value {
    double value; /* 0 when absent */
    enum features_absence absence;
};

/* What a feature is, whatever its value. `ibsi` is "" where IBSI has no code. */
struct feature_definition {
    const char *name;    /* "joint_entropy": stable, lower case */
    const char *meaning; /* "Joint entropy": as coded meaning */
    const char *ibsi;    /* "TU9B" */
    const char *unit;    /* UCUM: "1", "ml", "mm"; "" where value_power is not 0 */
    int value_power;     /* 1: in the unit of the image's values, 2: in its square */
};

/* ------------------------------------------------------------------------------- GLCM ---- */

enum glcm_feature {
    GLCM_JOINT_MAXIMUM, /* the 25 of IBSI in the order of its manual ... */
    GLCM_JOINT_AVERAGE,
    GLCM_JOINT_VARIANCE,
    GLCM_JOINT_ENTROPY,
    GLCM_DIFFERENCE_AVERAGE,
    GLCM_DIFFERENCE_VARIANCE,
    GLCM_DIFFERENCE_ENTROPY,
    GLCM_SUM_AVERAGE,
    GLCM_SUM_VARIANCE,
    GLCM_SUM_ENTROPY,
    GLCM_ANGULAR_SECOND_MOMENT,
    GLCM_CONTRAST,
    GLCM_DISSIMILARITY,
    GLCM_INVERSE_DIFFERENCE,
    GLCM_NORMALISED_INVERSE_DIFFERENCE,
    GLCM_INVERSE_DIFFERENCE_MOMENT,
    GLCM_NORMALISED_INVERSE_DIFFERENCE_MOMENT,
    GLCM_INVERSE_VARIANCE,
    GLCM_CORRELATION,
    GLCM_AUTOCORRELATION,
    GLCM_CLUSTER_TENDENCY,
    GLCM_CLUSTER_SHADE,
    GLCM_CLUSTER_PROMINENCE,
    GLCM_INFORMATION_CORRELATION_1,
    GLCM_INFORMATION_CORRELATION_2,
    GLCM_MAXIMAL_CORRELATION_COEFFICIENT, /* ... and Haralick's f14 */
    GLCM_FEATURES,
};

extern const struct feature_definition glcm_feature_definitions[GLCM_FEATURES];

/* The aggregations of IBSI 3.6.1, with their codes. */
enum glcm_aggregation {
    GLCM_2D_AVERAGED,           /* BTW3: per slice and direction, features averaged */
    GLCM_2D_SLICE_MERGED,       /* SUJT: directions merged per slice, features averaged */
    GLCM_2_5D_DIRECTION_MERGED, /* JJUI: slices merged per direction, features averaged */
    GLCM_2_5D_MERGED,           /* ZW7Z: all merged */
    GLCM_3D_AVERAGED,           /* ITBB: per direction, features averaged */
    GLCM_3D_MERGED,             /* IAZD: all merged */
    GLCM_AGGREGATIONS,
};

/* "2d-averaged" ...; and the IBSI code. */
extern const char *const glcm_aggregation_names[GLCM_AGGREGATIONS];
extern const char *const glcm_aggregation_codes[GLCM_AGGREGATIONS];

/* Does it use directions within slices only? Does it need a matrix for each slice? Are those of all
 * directions added up before features are taken? */
bool glcm_aggregation_is_2d(enum glcm_aggregation aggregation);
bool glcm_aggregation_per_slice(enum glcm_aggregation aggregation);
bool glcm_aggregation_merges(enum glcm_aggregation aggregation);

struct glcm_settings {
    int levels;
    enum glcm_aggregation aggregation;
    bool symmetric; /* each matrix plus its transpose (IBSI, pyradiomics); else directional */
};

/*
 * Features of counts[slices][directions][levels][levels] (slices is 1 unless the aggregation is per
 * slice; levels are 2 .. 256). Matrices without a count take no part in an average (IBSI 3.6.1,
 * pyradiomics), nor for correlation, its first information measure and f14 those with one grey
 * level, for which they are not defined. Joint average and variance are those of the rows. Counts
 * of all matrices together are below 2^53. Returns 0 or -ENOMEM.
 */
int glcm_features(const struct glcm_settings *settings, const uint64_t *counts, int64_t slices,
                  int64_t directions, struct feature_value values[GLCM_FEATURES]);

/* ----------------------------------------------- intensity-based statistics and basics ---- */

enum basic_feature {
    BASIC_VOXEL_COUNT,
    BASIC_VOLUME_ML,           /* IBSI YEKZ, voxel counting */
    BASIC_MEAN,                /* Q4LE */
    BASIC_STANDARD_DEVIATION,  /* the root of ECT3, population */
    BASIC_VARIANCE,            /* ECT3 */
    BASIC_SKEWNESS,            /* KE2A */
    BASIC_KURTOSIS,            /* IPH6, excess */
    BASIC_MEDIAN,              /* Y12H */
    BASIC_MINIMUM,             /* 1GSF */
    BASIC_PERCENTILE_10,       /* QG58 */
    BASIC_PERCENTILE_90,       /* 8DWT */
    BASIC_MAXIMUM,             /* 84IY */
    BASIC_INTERQUARTILE_RANGE, /* SALO */
    BASIC_RANGE,               /* 2OJQ */
    BASIC_ENERGY,              /* N8CA */
    BASIC_ROOT_MEAN_SQUARE,    /* 5ZWQ */
    BASIC_ENTROPY,             /* TLU2, of the discretised intensities */
    BASIC_CENTROID_X,          /* mm, LPS */
    BASIC_CENTROID_Y,
    BASIC_CENTROID_Z,
    BASIC_BOX_X, /* edges of the bounding box along columns, rows, slices: mm */
    BASIC_BOX_Y,
    BASIC_BOX_Z,
    BASIC_FEATURES,
};

extern const struct feature_definition basic_feature_definitions[BASIC_FEATURES];

/* The region in space: counts of voxels, sums of coordinates, extremes. */
struct basic_region {
    int64_t voxels;
    int64_t sum[3];   /* of x, y, z */
    int64_t first[3]; /* of the bounding box, inclusive; > last when empty */
    int64_t last[3];
};

/* From bits laid out as struct image_mask. */
void basic_region_of(const uint64_t *bits, int64_t columns, int64_t rows, int64_t slices,
                     struct basic_region *region);

struct basic_input {
    const struct basic_region *region;
    const uint64_t *histograms;           /* [histogram_count][values] of texture_histogram_run */
    size_t histogram_count;               /* 1, or one a slice */
    size_t values;                        /* 256 or 65536 */
    int32_t smallest;                     /* stored value of the first entry */
    const struct image_rescale *rescales; /* one per histogram; no slope is 0 */
    const uint16_t *level_of; /* for the entropy: a table a histogram; NULL: it is absent */
    int levels;
    double voxel_to_mm[3][4]; /* affine: LPS mm of voxel (x, y, z) */
    double spacing[3];        /* mm along columns, rows, slices */
};

/*
 * The region's voxels are what is counted, the histograms' what is described: padding, which they
 * may leave out, has a place and no value. Percentiles are interpolated between the two nearest
 * ranks (NumPy's default, pyradiomics). Returns 0 or -ENOMEM.
 */
int basic_features(const struct basic_input *input, struct feature_value values[BASIC_FEATURES]);

/* ----------------------------------------------------------------------- discretisation ---- */

enum discretisation {
    DISCRETISATION_PAPER,                 /* floor(g * levels / 256) + 1 of stored values */
    DISCRETISATION_FIXED_BIN_NUMBER,      /* IBSI K15C */
    DISCRETISATION_FIXED_BIN_SIZE,        /* IBSI Q3RU */
    DISCRETISATION_PYRADIOMICS_BIN_WIDTH, /* floor(X / W) - floor(min / W) + 1 */
};

extern const char *const discretisation_names[4];

struct discretisation_settings {
    enum discretisation kind;
    int levels;       /* of paper and fixed-bin-number */
    double bin_width; /* of the other two, in real-world units */
    bool has_range;   /* re-segmentation range, inclusive, real-world units */
    double range[2];
};

/*
 * Fills level_of (texture.h), a table for each rescale, and returns the number of levels in
 * *levels, at least 2; lo and hi are the smallest and largest real-world value of the region after
 * re-segmentation, lo > hi that of an empty one, all of whose values are left out. Fixed bins start
 * at the lower end of the range, where there is one, else at lo. -ERANGE when more than
 * TEXTURE_MAX_LEVELS would be needed, or settings make none; -EDOM when paper is asked for stored
 * values within lo .. hi that are not 0 .. 255. On an error level_of is undefined.
 */
int discretise(const struct discretisation_settings *settings, const struct image_rescale *rescales,
               size_t table_count, size_t values, int32_t smallest, double lo, double hi,
               uint16_t *level_of, int *levels);

#ifdef __cplusplus
}
#endif
#endif
