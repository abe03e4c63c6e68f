#include "tests/kernels/ref_filter.h"

#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------ kernels ---- */

static void
of_integers(struct ref_kernel *kernel, const char *taps)
{
    for (kernel->count = 0; *taps; kernel->count++)
        kernel->taps[kernel->count] = strtol(taps, (char **)(void *)&taps, 10);
    kernel->centre = kernel->count / 2;
}

static void
of_laws(struct ref_kernel *kernel, enum filter_laws which)
{
    static const char *const taps[] = {"1 4 6 4 1",   "-1 -2 0 2 1", "-1 0 2 0 -1", "-1 2 0 -2 1",
                                       "1 -4 6 -4 1", "1 2 1",       "-1 0 1",      "-1 2 -1"};

    of_integers(kernel, taps[which]);
}

/* With the digits of PyWavelets. */
static const struct {
    enum filter_wavelet wavelet;
    int count;
    double low[18], high[18];
} ref_wavelets[] = {
    {WAVELET_HAAR, 2, {0.7071067811865476, 0.7071067811865476}, {-0.7071067811865476, 0.7071067811865476}},
    {WAVELET_DB2,
     4,
     {-0.12940952255126037, 0.2241438680420134, 0.8365163037378079, 0.48296291314453416},
     {-0.48296291314453416, 0.8365163037378079, -0.2241438680420134, -0.12940952255126037}},
    {WAVELET_DB3,
     6,
     {0.03522629188570953, -0.08544127388202666, -0.13501102001025458, 0.45987750211849154, 0.8068915093110925,
      0.33267055295008263},
     {-0.33267055295008263, 0.8068915093110925, -0.45987750211849154, -0.13501102001025458, 0.08544127388202666,
      0.03522629188570953}},
    {WAVELET_COIF1,
     6,
     {-0.015655728135791993, -0.07273261951252645, 0.3848648468648578, 0.8525720202116004, 0.3378976624574818,
      -0.07273261951252645},
     {0.07273261951252645, 0.3378976624574818, -0.8525720202116004, 0.3848648468648578, 0.07273261951252645,
      -0.015655728135791993}},
    {WAVELET_COIF3,
     18,
     {-3.459977319727278e-05, -7.0983302506379e-05, 0.0004662169598204029, 0.0011175187708306303,
      -0.0025745176881367972, -0.009007976136730624, 0.015880544863669452, 0.03455502757329774, -0.08230192710629983,
      -0.07179982161915484, 0.42848347637737, 0.7937772226260872, 0.40517690240911824, -0.06112339000297255,
      -0.06577191128146936, 0.023452696142077168, 0.007782596425672746, -0.003793512864380802},
     {0.003793512864380802, 0.007782596425672746, -0.023452696142077168, -0.06577191128146936, 0.06112339000297255,
      0.40517690240911824, -0.7937772226260872, 0.42848347637737, 0.07179982161915484, -0.08230192710629983,
      -0.03455502757329774, 0.015880544863669452, 0.009007976136730624, -0.0025745176881367972, -0.0011175187708306303,
      0.0004662169598204029, 7.0983302506379e-05, -3.459977319727278e-05}},
    {WAVELET_BIOR2_2,
     6,
     {0, -0.1767766952966369, 0.3535533905932738, 1.0606601717798212, 0.3535533905932738, -0.1767766952966369},
     {0, 0.3535533905932738, -0.7071067811865476, 0.3535533905932738, 0, 0}},
    {WAVELET_RBIO3_1,
     4,
     {0.1767766952966369, 0.5303300858899106, 0.5303300858899106, 0.1767766952966369},
     {0.3535533905932738, 1.0606601717798212, -1.0606601717798212, -0.3535533905932738}},
};

enum { REF_WAVELETS = sizeof(ref_wavelets) / sizeof(*ref_wavelets) };

enum filter_wavelet
ref_random_wavelet(uint64_t *random)
{
    return ref_wavelets[ref_random_below(random, REF_WAVELETS)].wavelet;
}

void
ref_kernel_of_wavelet(struct ref_kernel *kernel, enum filter_wavelet which, bool high)
{
    int w = 0;

    while (ref_wavelets[w].wavelet != which)
        w++;
    kernel->count = ref_wavelets[w].count;
    kernel->centre = kernel->count / 2;
    for (int i = 0; i < kernel->count; i++)
        kernel->taps[i] = high ? ref_wavelets[w].high[i] : ref_wavelets[w].low[i];
}

static void
of_log(struct ref_kernel *kernel, const struct filter_demand *demand, int axis, bool second)
{
    const long double s = (long double)demand->options.sigma_mm / demand->spacing[axis];
    const long double ratio = (long double)demand->spacing[0] / demand->spacing[axis];

    kernel->centre = (int)floor(4 * (demand->options.sigma_mm / demand->spacing[axis]) + 0.5);
    kernel->count = 2 * kernel->centre + 1;
    for (int i = 0; i < kernel->count; i++) {
        const long double t = i - kernel->centre;

        kernel->taps[i] = expl(-t * t / (2 * s * s)) / (sqrtl(2 * 3.14159265358979323846264338L) * s);
        if (second)
            kernel->taps[i] *= (t * t / (s * s * s * s) - 1 / (s * s)) * ratio * ratio;
    }
}

static long double
size_of(const struct ref_kernel *kernel)
{
    long double size = 0;

    for (int i = 0; i < kernel->count; i++)
        size += fabsl(kernel->taps[i]);
    return size;
}

static long double
norm_of(const struct ref_kernel *kernel)
{
    long double squares = 0;

    for (int i = 0; i < kernel->count; i++)
        squares += kernel->taps[i] * kernel->taps[i];
    return sqrtl(squares);
}

/* ---------------------------------------------------------------------------- responses ---- */

/* The place of the value that counts at i, by walking; -1: none. */
static int64_t
place_of(int64_t i, int64_t side, enum filter_boundary boundary)
{
    while (i < 0 || i >= side)
        switch (boundary) {
        case FILTER_NEAREST:
            i = i < 0 ? 0 : side - 1;
            break;
        case FILTER_PERIODIC:
            i += i < 0 ? side : -side;
            break;
        case FILTER_MIRROR:
            i = i < 0 ? -1 - i : 2 * side - 1 - i;
            break;
        default:
            return -1;
        }
    return i;
}

void
ref_filter_along(struct image_extent extent, int axis, const struct ref_kernel *kernel, enum filter_boundary boundary,
                 long double *values)
{
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t strides[3] = {1, extent.columns, extent.columns * extent.rows};
    long double *filtered = ref_allocate(ref_voxels(extent), sizeof(*filtered));

    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t at = i / strides[axis] % sides[axis];

        for (int t = 0; t < kernel->count; t++) {
            const int64_t to = kernel->apart * (kernel->turned ? t - kernel->centre : kernel->centre - t);
            const int64_t place = place_of(at + to, sides[axis], boundary);

            if (place >= 0)
                filtered[i] += kernel->taps[t] * values[i + (place - at) * strides[axis]];
        }
    }
    memcpy(values, filtered, (size_t)ref_voxels(extent) * sizeof(*values));
    free(filtered);
}

static int
axes_of(const struct filter_options *options)
{
    return options->in_slice ? 2 : 3;
}

/* Writes the response of one orientation: the kernel of each axis, and whether it is turned around. */
static void
respond(struct image_extent extent, const int32_t *values, const struct filter_options *options, const int from[3],
        const bool turned[3], long double *response)
{
    for (int64_t i = 0; i < ref_voxels(extent); i++)
        response[i] = values[i];
    for (int level = 1; level <= (options->kind == FILTER_WAVELET ? options->level : 1); level++)
        for (int axis = 0; axis < axes_of(options); axis++) {
            struct ref_kernel kernel = {.turned = turned[axis], .apart = 1 << (level - 1)};

            if (options->kind == FILTER_WAVELET)
                ref_kernel_of_wavelet(&kernel, options->wavelet, level == options->level && options->high[from[axis]]);
            else
                of_laws(&kernel, options->laws[from[axis]]);
            ref_filter_along(extent, axis, &kernel, options->boundary, response);
        }
}

/* Pools all rotations: signed permutations of the axes whose determinant is 1. */
static void
respond_invariant(struct image_extent extent, const int32_t *values, const struct filter_options *options,
                  long double *pooled)
{
    const int axes = axes_of(options);
    const int64_t count = ref_voxels(extent);
    long double *one = ref_allocate(count, sizeof(*one));
    int turns = 0;

    for (int code = 0; code < 27 * 8; code++) {
        const int from[3] = {code / 8 % 3, code / 24 % 3, code / 72};
        const bool turned[3] = {code & 1, code & 2, code & 4};
        int matrix[3][3] = {{0}};

        for (int axis = 0; axis < 3; axis++)
            matrix[axis][from[axis]] = turned[axis] ? -1 : 1;
        const int determinant = matrix[0][0] * (matrix[1][1] * matrix[2][2] - matrix[1][2] * matrix[2][1]) -
                                matrix[0][1] * (matrix[1][0] * matrix[2][2] - matrix[1][2] * matrix[2][0]) +
                                matrix[0][2] * (matrix[1][0] * matrix[2][1] - matrix[1][1] * matrix[2][0]);
        if (determinant != 1 || (axes == 2 && matrix[2][2] != 1))
            continue;
        respond(extent, values, options, from, turned, one);
        for (int64_t i = 0; i < count; i++)
            if (options->pooling == FILTER_MEAN_OF)
                pooled[i] += one[i];
            else if (turns == 0 || (options->pooling == FILTER_MAX ? one[i] > pooled[i] : one[i] < pooled[i]))
                pooled[i] = one[i];
        turns++;
    }
    for (int64_t i = 0; i < count && options->pooling == FILTER_MEAN_OF; i++)
        pooled[i] /= turns;
    free(one);
}

static void
average(struct image_extent extent, const struct filter_options *options, int size, long double *values)
{
    struct ref_kernel kernel = {.count = size, .centre = size / 2, .apart = 1};

    for (int i = 0; i < size; i++)
        kernel.taps[i] = 1;
    for (int axis = 0; axis < axes_of(options); axis++)
        ref_filter_along(extent, axis, &kernel, options->boundary, values);
    for (int64_t i = 0; i < ref_voxels(extent); i++)
        values[i] /= axes_of(options) == 2 ? (long double)size * size : (long double)size * size * size;
}

static void
respond_to_log(struct image_extent extent, const int32_t *values, const struct filter_demand *demand,
               long double *responses)
{
    long double *one = ref_allocate(ref_voxels(extent), sizeof(*one));

    for (int second = 0; second < axes_of(&demand->options); second++) {
        for (int64_t i = 0; i < ref_voxels(extent); i++)
            one[i] = values[i];
        for (int axis = 0; axis < axes_of(&demand->options); axis++) {
            struct ref_kernel kernel = {.apart = 1};

            of_log(&kernel, demand, axis, axis == second);
            ref_filter_along(extent, axis, &kernel, demand->options.boundary, one);
        }
        for (int64_t i = 0; i < ref_voxels(extent); i++)
            responses[i] += one[i];
    }
    free(one);
}

void
ref_filter(struct image_extent extent, const int32_t *values, const struct filter_demand *demand,
           long double *responses)
{
    static const int in_order[3] = {0, 1, 2};
    static const bool straight[3] = {false, false, false};
    const struct filter_options *options = &demand->options;
    long double norm = 1;

    for (int64_t i = 0; i < ref_voxels(extent); i++)
        responses[i] = options->kind == FILTER_MEAN ? values[i] : 0;
    if (options->kind == FILTER_MEAN)
        average(extent, options, options->size, responses);
    else if (options->kind == FILTER_LOG)
        respond_to_log(extent, values, demand, responses);
    else if (options->pooling == FILTER_ONE)
        respond(extent, values, options, in_order, straight, responses);
    else
        respond_invariant(extent, values, options, responses);
    if (options->kind != FILTER_LAWS)
        return;
    for (int axis = 0; axis < axes_of(options); axis++) {
        struct ref_kernel kernel = {.apart = 1};

        of_laws(&kernel, options->laws[axis]);
        norm *= norm_of(&kernel);
    }
    for (int64_t i = 0; i < ref_voxels(extent); i++)
        responses[i] = options->energy > 0 ? fabsl(responses[i] / norm) : responses[i] / norm;
    if (options->energy > 0)
        average(extent, options, options->energy, responses);
}

double
ref_filter_step(const struct filter_demand *demand, int32_t limit)
{
    const struct filter_options *options = &demand->options;
    long double bound = 0, step = 1;

    for (int second = 0; second < (options->kind == FILTER_LOG ? axes_of(options) : 1); second++) {
        long double size = 1;

        for (int axis = 0; axis < axes_of(options) && options->kind != FILTER_MEAN; axis++) {
            struct ref_kernel kernel = {.apart = 1};

            if (options->kind == FILTER_LOG)
                of_log(&kernel, demand, axis, axis == second);
            else if (options->kind == FILTER_LAWS)
                of_laws(&kernel, options->laws[axis]);
            else
                ref_kernel_of_wavelet(&kernel, options->wavelet, options->high[axis]);
            size *= size_of(&kernel) / (options->kind == FILTER_LAWS ? norm_of(&kernel) : 1);
            for (int level = 1; level < options->level && options->kind == FILTER_WAVELET; level++) {
                ref_kernel_of_wavelet(&kernel, options->wavelet, false);
                size *= size_of(&kernel);
            }
        }
        bound += size;
    }
    while (step < bound * limit)
        step *= 2;
    while (step / 2 >= bound * limit)
        step /= 2;
    return (double)(step / 1073741824);
}

/* ------------------------------------------------------------------------------ cases ---- */

void
ref_filter_values(const struct filter_case *each, int32_t *values)
{
    for (int64_t i = 0; i < ref_voxels(each->extent); i++) {
        const int32_t stored = ref_stored(each->pixel, each->voxels, i);
        int32_t value = each->request.values ? each->values[i] : stored + each->request.offset;

        value = value > each->request.limit ? each->request.limit : value;
        value = value < -each->request.limit ? -each->request.limit : value;
        if (!each->request.values && each->request.padding.lo <= stored && stored <= each->request.padding.hi)
            value = each->request.padded;
        values[i] = value;
    }
}

static void
make_options(struct filter_demand *demand, uint64_t *random)
{
    static const double spacings[] = {0.7, 0.98, 1, 1, 2, 2.5};
    struct filter_options *options = &demand->options;

    options->kind = (enum filter_kind)ref_random_below(random, FILTER_WAVELET + 1);
    options->in_slice = ref_random_below(random, 3) == 0;
    options->boundary = (enum filter_boundary)ref_random_below(random, FILTER_BOUNDARIES);
    options->pooling = (enum filter_pooling)ref_random_below(random, FILTER_POOLINGS);
    options->size = 1 + 2 * (int)ref_random_below(random, 9);
    options->sigma_mm = 0.1 + (double)ref_random_below(random, 30) / 10;
    for (int axis = 0; axis < 3; axis++) {
        demand->spacing[axis] = spacings[ref_random_below(random, 6)];
        options->laws[axis] = (enum filter_laws)ref_random_below(random, LAWS_KERNELS);
        options->high[axis] = ref_random_below(random, 2);
    }
    options->energy = ref_random_below(random, 2) ? 1 + 2 * (int)ref_random_below(random, 8) : 0;
    options->wavelet = ref_random_wavelet(random);
    options->level = 1 + (int)ref_random_below(random, ref_random_below(random, 2) ? 3 : 1);
}

static void
make_values(struct filter_case *each, uint64_t *random)
{
    const struct image_range range = image_pixel_range(each->pixel);
    const int64_t span = (int64_t)range.hi - range.lo + 1, kind = ref_random_below(random, 3);
    struct filter_request *request = &each->request;

    each->voxels = ref_allocate(ref_voxels(each->extent), image_pixel_size(each->pixel));
    each->values = ref_allocate(ref_voxels(each->extent), sizeof(*each->values));
    for (int64_t i = 0; i < ref_voxels(each->extent); i++) {
        const int64_t value = ref_random_below(random, span);

        ref_store(each->pixel, each->voxels, i,
                  kind == 0   ? range.lo + (int32_t)value
                  : kind == 1 ? (value % 2 ? range.lo : range.hi)
                              : (i / 7 % 3 ? range.hi : range.lo + (int32_t)(value % 100)));
        each->values[i] = (int32_t)(ref_random_below(random, INT64_C(2) * INT32_MAX) - INT32_MAX);
    }
    request->limit = ref_random_below(random, 3) ? 65536 : 1 + (int32_t)ref_random_below(random, 60000);
    request->offset = (int32_t)ref_random_below(random, 3000) - 1500;
    request->padding = (struct image_range){1, 0};
    if (ref_random_below(random, 2)) {
        request->padding.lo = range.lo + (int32_t)ref_random_below(random, span);
        request->padding.hi = request->padding.lo + (int32_t)ref_random_below(random, span / 4);
        request->padded = (int32_t)ref_random_below(random, 2 * (int64_t)request->limit + 1) - request->limit;
    }
    if (each->demand.values) {
        request->limit = ref_random_below(random, 2) ? FILTER_MAX_LIMIT : 5;
        request->padded = 0;
        request->values = each->values;
    }
}

void
filter_make_case(struct filter_case *each, uint64_t seed)
{
    uint64_t random = seed + 1;

    *each = (struct filter_case){
        .extent = {1 + ref_random_below(&random, seed % 5 ? 24 : 90), 1 + ref_random_below(&random, 12),
                   1 + ref_random_below(&random, 9)},
        .pixel = (enum image_pixel)(seed % 3),
    };
    if (seed % 7 == 0) /* kernels are larger than the volume */
        each->extent = (struct image_extent){1 + ref_random_below(&random, 3), 1 + ref_random_below(&random, 3),
                                             1 + ref_random_below(&random, 3)};
    make_options(&each->demand, &random);
    each->demand.values = seed % 4 == 3;
    if (seed % 50 == 49) { /* the largest kernels */
        each->demand.options.kind = seed % 100 == 99 ? FILTER_LOG : FILTER_MEAN;
        each->demand.options.sigma_mm = 32;
        each->demand.options.size = FILTER_MAX_SIZE;
        each->demand.spacing[0] = each->demand.spacing[1] = each->demand.spacing[2] = 1;
    }
    make_values(each, &random);
}

void
filter_free_case(struct filter_case *each)
{
    free(each->voxels);
    free(each->values);
}

int
filter_run_codes(struct kernels_lane *lane, const struct filter_case *each, const int32_t **codes, double *step,
                 struct error *error)
{
    struct kernels_demand demand = {.of = {NULL}};
    void *voxels;
    int rc;

    filter_demand_set(&demand, &each->demand);
    rc = kernels_volume_begin(lane, each->extent, each->pixel, &demand, &voxels, error);
    if (rc)
        return rc;
    memcpy(voxels, each->voxels, (size_t)ref_voxels(each->extent) * image_pixel_size(each->pixel));
    rc = kernels_volume_ready(lane, 0, each->extent.slices, error);
    return rc ? rc : filter_run(lane, each->demand.options.kind, &each->request, codes, step, error);
}

int
filter_run_case(struct kernels_lane *lane, const struct filter_case *each, int32_t *codes, double *step,
                struct error *error)
{
    const int32_t *found;
    const int rc = filter_run_codes(lane, each, &found, step, error);

    if (rc == 0)
        memcpy(codes, found, (size_t)ref_voxels(each->extent) * sizeof(*codes));
    return rc;
}
