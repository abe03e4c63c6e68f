/* spectral_cases.h - random cases of filters with a transfer function and of Gabor filters, for the CPU and the GPU. */
#ifndef NOCTULE_SPECTRAL_CASES_H
#define NOCTULE_SPECTRAL_CASES_H

#include "kernels/filter/filter_private.h"
#include "tests/kernels/ref_filter.h"
#include "tests/kernels/ref_spectral.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>

/* Makes a small kernel, since the reference transforms it per slice. */
static inline void
spectral_make_gabor(struct filter_case *each, uint64_t *random)
{
    static const double steps[] = {90, 45, 60, 72, 120, 180};
    struct filter_options *options = &each->demand.options;

    options->kind = FILTER_GABOR;
    options->boundary = (enum filter_boundary)ref_random_below(random, FILTER_BOUNDARIES);
    options->pooling = (enum filter_pooling)ref_random_below(random, FILTER_POOLINGS);
    options->sigma_mm = 0.3 + 0.1 * (double)ref_random_below(random, 12);
    options->gamma = 0.5 + 0.25 * (double)ref_random_below(random, 8);
    options->lambda_mm = 1.5 + 0.3 * (double)ref_random_below(random, 9);
    options->theta_degrees = options->pooling == FILTER_ONE ? (double)ref_random_below(random, 720) / 2 - 90
                                                            : steps[ref_random_below(random, 6)];
    for (int axis = 0; axis < 3 && ref_random_below(random, 2); axis++)
        each->demand.spacing[axis] = 0.5 + 0.25 * (double)ref_random_below(random, 5);
}

static inline void
spectral_make_values(struct filter_case *each, uint64_t seed, uint64_t *random)
{
    each->voxels = ref_allocate(ref_voxels(each->extent), image_pixel_size(each->pixel));
    each->values = ref_allocate(ref_voxels(each->extent), sizeof(*each->values));
    for (int64_t i = 0; i < ref_voxels(each->extent); i++) {
        const struct image_range range = image_pixel_range(each->pixel);
        const int64_t kind = ref_random_below(random, 8);
        const int32_t value = kind == 0   ? range.lo
                              : kind == 1 ? range.hi
                                          : range.lo + (int32_t)ref_random_below(random, range.hi - range.lo + 1);

        ref_store(each->pixel, each->voxels, i, seed % 11 == 3 ? range.hi * (int32_t)(i % 2) : value);
    }
    for (int64_t i = 0; i < ref_voxels(each->extent); i++) {
        const int32_t stored = ref_stored(each->pixel, each->voxels, i);
        int64_t value = each->demand.values ? ref_random_below(random, 200000) - 100000 : stored + each->request.offset;

        if (each->demand.values && i % 9 != 0)
            value %= 256;
        if (!each->demand.values && each->request.padding.lo <= stored && stored <= each->request.padding.hi)
            value = each->request.padded;
        each->values[i] = (int32_t)(value < -each->request.limit  ? -each->request.limit
                                    : value > each->request.limit ? each->request.limit
                                                                  : value);
    }
    if (each->demand.values)
        each->request.values = each->values;
}

/* Makes a case with one long side, in turn along each axis: Simoncelli, or Gabor with few places beyond the volume. */
enum { SPECTRAL_LONG_CASES = 84 };

static inline void
spectral_make_long_case(struct filter_case *each, uint64_t seed)
{
    static const int32_t sides[] = {144, 256, 288, 384, 500, 512, 576, 640, 1000, 1024, 197, 298, 347, 719};
    const int32_t side = sides[seed / 6];
    uint64_t random = seed;

    *each = (struct filter_case){.demand.spacing = {1, 1, 1}, .pixel = IMAGE_INT16, .extent = {9, 6, 3}};
    if (seed % 3 == 0)
        each->extent.columns = side;
    else if (seed % 3 == 1)
        each->extent.rows = side;
    else
        each->extent.slices = side;
    each->demand.options = (struct filter_options){.kind = FILTER_SIMONCELLI, .level = 1};
    if (seed % 6 >= 3) {
        spectral_make_gabor(each, &random);
        each->demand.options.in_slice = seed % 3 < 2; /* the reference transforms the kernel per slice */
    }
    each->request = (struct filter_request){.limit = 65535, .padding = {1, 0}};
    spectral_make_values(each, seed, &random);
}

static inline void
spectral_make_case(struct filter_case *each, uint64_t seed)
{
    static const int32_t sides[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 18, 24, 30, 31, 32, 37, 40, 47, 82};
    uint64_t random = seed;
    const int64_t kinds = sizeof(sides) / sizeof(sides[0]);
    struct filter_options *options = &each->demand.options;

    *each = (struct filter_case){.demand.spacing = {1, 1, 1}, .pixel = (enum image_pixel)ref_random_below(&random, 3)};
    each->extent =
        (struct image_extent){sides[ref_random_below(&random, kinds)], sides[ref_random_below(&random, kinds)],
                              sides[ref_random_below(&random, seed % 2 ? kinds : 9)]};
    options->kind = seed % 3 == 0 ? FILTER_RIESZ_SIMONCELLI : seed % 3 == 1 ? FILTER_RIESZ_LOG : FILTER_SIMONCELLI;
    options->sigma_mm = 0.4 + 0.2 * (double)ref_random_below(&random, 8);
    options->in_slice = seed % 4 == 1;
    options->level = 1 + (int)ref_random_below(&random, 3);
    options->boundary = (enum filter_boundary)ref_random_below(&random, FILTER_BOUNDARIES);
    for (int axis = 0; axis < (options->in_slice ? 2 : 3); axis++)
        options->riesz[axis] = (int)ref_random_below(&random, 3);
    if (options->riesz[0] + options->riesz[1] + options->riesz[2] == 0)
        options->riesz[0] = 1;
    if (seed % 8 >= 5)
        spectral_make_gabor(each, &random);
    each->request = (struct filter_request){.limit = seed % 5 == 0 ? 100 : 65535, .padding = {1, 0}};
    each->request.offset = (int32_t)ref_random_below(&random, 200) - 100;
    if (seed % 7 == 0) {
        each->request.padding = (struct image_range){0, 20};
        each->request.padded = -3;
    }
    each->demand.values = seed % 6 == 5;
    spectral_make_values(each, seed, &random);
}

/* Computes the codes by the reference. The Laplacian of Gaussian before a Riesz transform is the lane's, since it has a
 * reference of its own. */
static inline int
spectral_expect(struct kernels_lane *lane, const struct filter_case *each, int32_t *codes, struct error *error)
{
    const bool in_slice = each->demand.options.in_slice;
    double scale = 1 / (double)(each->extent.columns * each->extent.rows * (in_slice ? 1 : each->extent.slices));
    double *response = ref_allocate(ref_voxels(each->extent), sizeof(*response)), step;
    struct filter_case first = *each;
    const int32_t *values = each->values;
    int rc = 0;

    first.demand.options.kind = FILTER_LOG;
    if (each->demand.options.kind == FILTER_RIESZ_LOG) {
        rc = filter_run_codes(lane, &first, &values, &step, error);
        scale *= filter_step(&first.demand, each->request.limit);
    }
    if (each->demand.options.kind == FILTER_GABOR)
        ref_gabor(&each->demand, each->extent, values, response, &scale);
    else if (rc == 0)
        ref_spectral(&each->demand, each->extent, values, response);
    scale /= filter_step(&each->demand, each->request.limit);
    for (int64_t i = 0; i < ref_voxels(each->extent); i++)
        codes[i] = (int32_t)nearbyint(response[i] * scale);
    free(response);
    return rc;
}

#endif
