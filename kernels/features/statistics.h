/* statistics.h - values with counts, and the IBSI statistics of them, for intensities (UHIW) and
 * grey levels (ZVCW). Pure functions. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_STATISTICS_H
#define NOCTULE_KERNELS_FEATURES_STATISTICS_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

struct value_count {
    double value;
    uint64_t count; /* not 0 */
};

struct value_list {
    struct value_count *items; /* ascending and unique */
    size_t size;
    double total; /* sum of the counts */
};

/* Returns the memory of such a list (family.h). */
size_t value_list_bytes(const struct feature_region *largest, size_t set);

/* Makes the list of real-world values of a region. Returns 0 or -ENOMEM. The caller must free
 * `items`. */
int value_list_make(const struct feature_region *region, struct value_list *list);

/* Makes the list of the values from kept[0] to kept[1] in a region (NULL: the volume) of a volume of real-world values. NAN is
 * no value. Threads of the lane share the work. As above. */
int value_list_of_reals(struct kernels_lane *lane, const double *reals, const struct image_extent *extent,
                        const uint64_t *bits, const double kept[2], struct value_list *list);

/* Counts each level: counts[levels], beginning with level 1. */
void level_counts(const struct feature_region *region, uint64_t *counts);

/* In IBSI's order. */
enum statistic {
    STATISTIC_MEAN,
    STATISTIC_VARIANCE,
    STATISTIC_SKEWNESS,
    STATISTIC_KURTOSIS, /* excess */
    STATISTIC_MEDIAN,
    STATISTIC_MINIMUM,
    STATISTIC_PERCENTILE_10,
    STATISTIC_PERCENTILE_90,
    STATISTIC_MAXIMUM,
    STATISTIC_INTERQUARTILE_RANGE,
    STATISTIC_RANGE,
    STATISTIC_MEAN_ABSOLUTE_DEVIATION,
    STATISTIC_ROBUST_MEAN_ABSOLUTE_DEVIATION,
    STATISTIC_MEDIAN_ABSOLUTE_DEVIATION,
    STATISTIC_COEFFICIENT_OF_VARIATION,
    STATISTIC_QUARTILE_COEFFICIENT_OF_DISPERSION,
    STATISTIC_ENERGY,
    STATISTIC_ROOT_MEAN_SQUARE,
    STATISTICS,
};

/* Returns the value below which a fraction, 0 to 1, of the voxels lie, interpolated between the two nearest ranks (NumPy's
 * default, pyradiomics). The list must not be empty. */
double value_list_percentile(const struct value_list *list, double fraction);

/* Computes the statistics; energy and root mean square are those of the values plus a shift. The list must not be empty. */
void statistics_of(const struct value_list *list, double shift, struct feature_value values[STATISTICS]);

/*
 * As value_list_of_reals() and statistics_of() together, without a list. Blocks of 4096 values in the order of the region, x
 * fastest, have sums of their own, which are added in the order of blocks: any number of threads gives the same bits. Returns 0,
 * -ENODATA if no value is kept, or -ENOMEM.
 */
int statistics_of_reals(struct kernels_lane *lane, const double *reals, const struct image_extent *extent,
                        const uint64_t *bits, const double kept[2], double shift,
                        struct feature_value values[STATISTICS]);

/* Returns the entropy in bits of counts whose sum is not 0. */
double entropy_of_counts(const uint64_t *counts, size_t size);

#ifdef __cplusplus
}
#endif
#endif
