/*
 * ref_spectral.h - filters with a transfer function and Gabor filters, as kernels/filter/ defines them, in the plainest
 * form: recursive transforms, one line at a time.
 */
#ifndef NOCTULE_REF_SPECTRAL_H
#define NOCTULE_REF_SPECTRAL_H

#include "kernels/filter/filter.h"

#include <complex.h>

/* Transforms n values in place, as kernels/filter/fft.h defines it. */
void ref_fft(int64_t n, double complex *values, bool inverse);

/* Sums of the filter before they become codes, for clipped values; the voxels count of the product of the sides. */
void ref_spectral(const struct filter_demand *demand, struct image_extent extent, const int32_t *values,
                  double *response);

/* Pooled moduli of a Gabor filter, whose codes are those of response * scale. */
void ref_gabor(const struct filter_demand *demand, struct image_extent extent, const int32_t *values, double *response,
               double *scale);

#endif
