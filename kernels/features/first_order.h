/* first_order.h - the intensity-based statistics of a region (IBSI 3.3) from its histograms,
 * without padding. Also the entropy of its levels, unless intensity_histogram.h reports it. */
#ifndef NOCTULE_KERNELS_FEATURES_FIRST_ORDER_H
#define NOCTULE_KERNELS_FEATURES_FIRST_ORDER_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum first_order_feature {
    FIRST_ORDER_MEAN,                               /* Q4LE */
    FIRST_ORDER_STANDARD_DEVIATION,                 /* the root of ECT3, population */
    FIRST_ORDER_VARIANCE,                           /* ECT3 */
    FIRST_ORDER_SKEWNESS,                           /* KE2A */
    FIRST_ORDER_KURTOSIS,                           /* IPH6, excess */
    FIRST_ORDER_MEDIAN,                             /* Y12H */
    FIRST_ORDER_MINIMUM,                            /* 1GSF */
    FIRST_ORDER_PERCENTILE_10,                      /* QG58 */
    FIRST_ORDER_PERCENTILE_90,                      /* 8DWT */
    FIRST_ORDER_MAXIMUM,                            /* 84IY */
    FIRST_ORDER_INTERQUARTILE_RANGE,                /* SALO */
    FIRST_ORDER_RANGE,                              /* 2OJQ */
    FIRST_ORDER_MEAN_ABSOLUTE_DEVIATION,            /* 4FUA */
    FIRST_ORDER_ROBUST_MEAN_ABSOLUTE_DEVIATION,     /* 1128 */
    FIRST_ORDER_MEDIAN_ABSOLUTE_DEVIATION,          /* N72L */
    FIRST_ORDER_COEFFICIENT_OF_VARIATION,           /* 7TET */
    FIRST_ORDER_QUARTILE_COEFFICIENT_OF_DISPERSION, /* 9S40 */
    FIRST_ORDER_ENERGY,                             /* N8CA */
    FIRST_ORDER_ROOT_MEAN_SQUARE,                   /* 5ZWQ */
    FIRST_ORDER_ENTROPY,                            /* TLU2, of the discretised intensities */
    FIRST_ORDER_FEATURES,
};

#ifdef __cplusplus
}
#endif
#endif
