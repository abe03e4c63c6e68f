/*
 * ref_filter.h - separable filters by the definition of kernels/filter/filter.h, and cases.
 *
 * Orientations are computed one by one, stage after stage, in extended precision. Codes of the kernels are therefore
 * those of the response to within their rounding: half a step, and a little more.
 */
#ifndef NOCTULE_REF_FILTER_H
#define NOCTULE_REF_FILTER_H

#include "kernels/filter/filter.h"

/* Max difference of a code from the exact response, in steps. The energy of Laws is a mean of rounded codes. */
#define REF_FILTER_OFF    0.5001L
#define REF_FILTER_ENERGY 1.01L

/* A kernel: tap t is at place `centre` - t times `apart`, or turned around. */
struct ref_kernel {
    int count, centre, apart;
    bool turned;
    long double taps[640];
};

/* Returns one of the wavelets that the reference has. */
enum filter_wavelet ref_random_wavelet(uint64_t *random);

/* Sets the taps of PyWavelets' decomposition filter, and its centre. */
void ref_kernel_of_wavelet(struct ref_kernel *kernel, enum filter_wavelet which, bool high);

/* Filters values along an axis. */
void ref_filter_along(struct image_extent extent, int axis, const struct ref_kernel *kernel,
                      enum filter_boundary boundary, long double *values);

/* A random volume and filter. */
struct filter_case {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    int32_t *values;
    struct filter_demand demand;
    struct filter_request request;
};

/* Writes the values that a request reads. */
void ref_filter_values(const struct filter_case *each, int32_t *values);

/* Writes the responses to values. */
void ref_filter(struct image_extent extent, const int32_t *values, const struct filter_demand *demand,
                long double *responses);

/* Returns the step of a filter. */
double ref_filter_step(const struct filter_demand *demand, int32_t limit);

void filter_make_case(struct filter_case *each, uint64_t seed);
void filter_free_case(struct filter_case *each);

/* Run a whole job. Return its first error. The first sets *codes to memory of the lane, the second copies them. */
int filter_run_codes(struct kernels_lane *lane, const struct filter_case *each, const int32_t **codes, double *step,
                     struct error *error);
int filter_run_case(struct kernels_lane *lane, const struct filter_case *each, int32_t *codes, double *step,
                    struct error *error);

#endif
