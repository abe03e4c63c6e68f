/* intensity_histogram.h - the histogram of a region's grey levels (IBSI 3.4): statistics of the
 * levels, and gradients of the histogram including empty levels. */
#ifndef NOCTULE_KERNELS_FEATURES_INTENSITY_HISTOGRAM_H
#define NOCTULE_KERNELS_FEATURES_INTENSITY_HISTOGRAM_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum intensity_histogram_feature {
    INTENSITY_HISTOGRAM_MEAN,                               /* X6K6 */
    INTENSITY_HISTOGRAM_VARIANCE,                           /* CH89 */
    INTENSITY_HISTOGRAM_SKEWNESS,                           /* 88K1 */
    INTENSITY_HISTOGRAM_KURTOSIS,                           /* C3I7, excess */
    INTENSITY_HISTOGRAM_MEDIAN,                             /* WIFQ */
    INTENSITY_HISTOGRAM_MINIMUM,                            /* 1PR8 */
    INTENSITY_HISTOGRAM_PERCENTILE_10,                      /* GPMT */
    INTENSITY_HISTOGRAM_PERCENTILE_90,                      /* OZ0C */
    INTENSITY_HISTOGRAM_MAXIMUM,                            /* 3NCY */
    INTENSITY_HISTOGRAM_MODE,                               /* AMMC */
    INTENSITY_HISTOGRAM_INTERQUARTILE_RANGE,                /* WR0O */
    INTENSITY_HISTOGRAM_RANGE,                              /* 5Z3W */
    INTENSITY_HISTOGRAM_MEAN_ABSOLUTE_DEVIATION,            /* D2ZX */
    INTENSITY_HISTOGRAM_ROBUST_MEAN_ABSOLUTE_DEVIATION,     /* WRZB */
    INTENSITY_HISTOGRAM_MEDIAN_ABSOLUTE_DEVIATION,          /* 4RNL */
    INTENSITY_HISTOGRAM_COEFFICIENT_OF_VARIATION,           /* CWYJ */
    INTENSITY_HISTOGRAM_QUARTILE_COEFFICIENT_OF_DISPERSION, /* SLWD */
    INTENSITY_HISTOGRAM_ENTROPY,                            /* TLU2 */
    INTENSITY_HISTOGRAM_UNIFORMITY,                         /* BJ5W */
    INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT,                   /* 12CE */
    INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT_LEVEL,             /* 8E6O */
    INTENSITY_HISTOGRAM_MINIMUM_GRADIENT,                   /* VQB3 */
    INTENSITY_HISTOGRAM_MINIMUM_GRADIENT_LEVEL,             /* RHQZ */
    INTENSITY_HISTOGRAM_FEATURES,
};

#ifdef __cplusplus
}
#endif
#endif
