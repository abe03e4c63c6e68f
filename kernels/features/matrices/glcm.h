/*
 * glcm.h - features of grey level co-occurrence matrices (IBSI 3.6). Pure functions. Threads: any.
 */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_GLCM_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_GLCM_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum glcm_feature {
    GLCM_JOINT_MAXIMUM, /* the 25 of IBSI in its manual's order ... */
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

/* Correlation, the first information measure and f14 of a matrix with one grey level: absent, or as pyradiomics has them. */
enum glcm_one_level {
    GLCM_ONE_LEVEL_ABSENT,
    GLCM_ONE_LEVEL_OF_SEVERAL, /* the region has other levels: 1, 0 and 0 */
    GLCM_ONE_LEVEL_OF_ONE,     /* the region has that level: 1, 0 and 1 */
};

struct glcm_settings {
    int levels;
    enum aggregation aggregation;
    bool symmetric; /* each matrix plus its transpose (IBSI, pyradiomics); otherwise directional */
    enum glcm_one_level one_level;
};

/*
 * Computes the features of counts[slices][directions][levels][levels] (slices is 1 unless the
 * aggregation is per slice; levels are 2 .. 65536). Averages exclude matrices without counts (IBSI
 * 3.6.1, pyradiomics). For correlation, the first information measure and f14, they also exclude
 * matrices with one grey level, where these are undefined, unless `one_level` gives them values. Joint average and variance are those of
 * the rows. The sum of all counts must be below 2^53. Threads of the lane (NULL: this thread) compute
 * different matrices. Returns 0 or -ENOMEM.
 */
int glcm_features(const struct glcm_settings *settings, const struct kernels_lane *lane, const uint64_t *counts,
                  int64_t slices, int64_t directions, struct feature_value values[GLCM_FEATURES]);

#ifdef __cplusplus
}
#endif
#endif
