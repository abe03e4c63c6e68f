/* resample_cases.h - planes and grids to resample, upright and rotated, for both backends' tests. */
#ifndef NOCTULE_RESAMPLE_CASES_H
#define NOCTULE_RESAMPLE_CASES_H

#include "tests/kernels/ref_resample.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { RESAMPLE_MOST_PLANES = 80 };

struct resample_case {
    struct image_planes planes;
    struct resample_grid grid;
    int order;
    enum image_pixel pixel, result;
    enum resample_values values;
    int32_t outside;
    double origins[3 * RESAMPLE_MOST_PLANES];
    struct image_rescale rescales[RESAMPLE_MOST_PLANES];
    bool sampled; /* lanes get the rescaled samples of the case */
};

static inline double
resample_random(uint64_t *random, double low, double high)
{
    return low + (high - low) * (double)ref_random_below(random, 1 << 20) / (1 << 20);
}

/* Rotates planes about two axes, or makes them axial. */
static inline void
resample_turn(struct image_planes *planes, uint64_t *random)
{
    const bool turned = ref_random_below(random, 2);
    const double a = turned ? resample_random(random, -1, 1) : 0;
    const double b = turned ? resample_random(random, -1, 1) : 0;
    const double axes[6] = {cos(a), sin(a), 0, -sin(a) * cos(b), cos(a) * cos(b), sin(b)};

    for (int i = 0; i < 6; i++)
        planes->axes[i] = axes[i];
}

/* Places planes `step` apart, sheared and uneven if requested. */
static inline void
resample_stack(struct resample_case *each, bool regular, uint64_t *random)
{
    const double step = resample_random(random, 0.5, 5);
    const double shear = regular ? 0 : resample_random(random, -2, 2);
    const double *a = each->planes.axes, *b = a + 3;
    double normal[3], height = 0;

    resample_turn(&each->planes, random);
    image_planes_normal(&each->planes, normal);
    for (int64_t z = 0; z < each->planes.extent.slices; z++) {
        for (int i = 0; i < 3; i++)
            each->origins[3 * z + i] =
                (double)(i * 100 - 130) + height * normal[i] + shear * height * b[i] + 0.1 * shear * height * a[i];
        /* Regular planes must include some that are only just regular, by steps that differ. */
        height += step * (regular ? resample_random(random, 0.996, 1.004) : resample_random(random, 0.2, 1.5));
    }
}

/* Makes a case; the same number gives the same case. `planes` points into the case, so it must not be copied. */
static inline void
resample_make_case(struct resample_case *each, uint64_t seed, int order)
{
    uint64_t random = 77 + seed;

    *each = (struct resample_case){
        .order = order, .pixel = (enum image_pixel)(seed % 3), .result = (enum image_pixel)(seed / 3 % 3)};
    each->planes = (struct image_planes){
        .extent = {1 + ref_random_below(&random, 90), 1 + ref_random_below(&random, 40),
                   1 + ref_random_below(&random, seed % 7 ? 12 : RESAMPLE_MOST_PLANES)},
        .spacing = {resample_random(&random, 0.3, 2), resample_random(&random, 0.3, 2)},
        .thickness = 2,
        .origins = each->origins,
    };
    resample_stack(each, order == RESAMPLE_CUBIC || seed % 2, &random);
    each->outside = (int32_t)ref_random_below(&random, 200);
    const double mm[3] = {seed % 5 ? resample_random(&random, 0.4, 4) : 0,
                          seed % 3 ? resample_random(&random, 0.4, 4) : 0, resample_random(&random, 0.4, 4)};
    if (order != RESAMPLE_CUBIC && seed % 4 == 0)
        resample_straight(&each->planes, seed % 8 ? mm[2] : 0, &each->grid);
    else
        resample_spaced(&each->planes, mm, &each->grid);
    each->grid.mirrors = order == RESAMPLE_CUBIC && seed % 4 == 3;
    if (order != RESAMPLE_CUBIC && seed % 4 == 1)
        for (int axis = 0; axis < 3; axis++) /* partly outside the planes */
            each->grid.origin[axis] += resample_random(&random, -20, 20);
}

static inline struct resample_request
resample_request_of(const struct resample_case *each)
{
    return (struct resample_request){&each->planes,
                                     &each->grid,
                                     each->order,
                                     each->outside,
                                     each->values == RESAMPLE_RESCALED ? each->rescales : NULL,
                                     NULL};
}

/* Returns the samples of a sampled case, which the caller must free, or NULL. The request then has samples alone. */
static inline double *
resample_give_samples(const struct resample_case *each, const void *voxels, struct resample_request *request)
{
    const int64_t count = image_voxels(&each->planes.extent), slice = image_slice_voxels(&each->planes.extent);
    double *samples = each->sampled ? malloc((size_t)count * sizeof(*samples)) : NULL;

    for (int64_t i = 0; samples && i < count; i++)
        samples[i] =
            each->rescales[i / slice].slope * ref_stored(each->pixel, voxels, i) + each->rescales[i / slice].intercept;
    if (samples)
        request->rescales = NULL;
    request->samples = samples;
    return samples;
}

static inline struct resample_demand
resample_demand_of(const struct resample_case *each)
{
    return (struct resample_demand){each->grid.extent, each->order, each->result, each->values};
}

/* Gives a case real values: those stored, or with rescales that differ by up to 10^12, some of them negative or 0. */
static inline void
resample_make_real(struct resample_case *each, uint64_t seed)
{
    uint64_t random = 5 + seed;

    each->values = seed % 4 ? RESAMPLE_RESCALED : RESAMPLE_REAL;
    each->sampled = seed % 4 == 2;
    for (int64_t z = 0; z < RESAMPLE_MOST_PLANES; z++) {
        const double size = pow(10, (double)ref_random_below(&random, seed % 3 ? 2 : 13) - 6);

        each->rescales[z].slope = resample_random(&random, seed % 5 ? 0.1 : -1, 1) * size;
        each->rescales[z].intercept = seed % 2 ? 0 : resample_random(&random, -1000, 1000);
    }
}

/* Returns whether two results have the same bits. Zeros of both signs are equal. */
static inline bool
resample_equal(const struct resample_case *each, const void *a, const void *b, int64_t i)
{
    if (each->values == RESAMPLE_STORED)
        return ref_stored(each->result, a, i) == ref_stored(each->result, b, i);
    return ((const double *)a)[i] == ((const double *)b)[i];
}

#endif
