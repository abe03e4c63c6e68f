/*
 * statistics.h - values with how often each occurs, and the statistics that IBSI has of them: of
 * intensities (UHIW) and of grey levels (ZVCW) alike. Pure functions; any thread.
 */
#ifndef NOCTULE_STATISTICS_H
#define NOCTULE_STATISTICS_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

struct value_count {
    double value;
    uint64_t count; /* not 0 */
};

struct value_list {
    struct value_count *items; /* ascending, each value once */
    size_t size;
    double total; /* of the counts */
};

/* What a list of them takes (family.h). */
size_t value_list_bytes(const struct feature_region *largest, size_t set);

/* The real-world values of a region's histograms. 0 or -ENOMEM; the caller frees `items`. */
int value_list_make(const struct feature_region *region, struct value_list *list);

/* How often each level occurs: counts[levels], the first of level 1. */
void level_counts(const struct feature_region *region, uint64_t *counts);

/* In the order of IBSI. */
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

/* Of a list that is not empty. Percentiles are interpolated between the two nearest ranks (NumPy's
 * default, pyradiomics). */
void statistics_of(const struct value_list *list, struct feature_value values[STATISTICS]);

/* In bits, of counts whose sum is not 0. */
double entropy_of_counts(const uint64_t *counts, size_t size);

#ifdef __cplusplus
}
#endif
#endif
