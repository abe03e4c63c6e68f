/* ref_image_type.c - see ref_image_type.h. */
#include "tests/kernels/ref_image_type.h"

#include "kernels/filter/filter_private.h"
#include "tests/kernels/ref_filter.h"
#include "tests/kernels/ref_volumes.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI acosl(-1)

/* ------------------------------------------------------------------------------------ cases -- */

void
image_type_make_case(struct image_type_case *each, uint64_t seed)
{
    uint64_t random = seed;
    struct filter_options *options = &each->demand.options;
    const bool is_whole = seed / 9 % 3 == 1;
    int64_t count;

    *each = (struct image_type_case){.demand.spacing = {0.5 + 0.125 * (double)ref_random_below(&random, 8),
                                                        0.5 + 0.125 * (double)ref_random_below(&random, 8),
                                                        0.5 + 0.25 * (double)ref_random_below(&random, 12)}};
    each->extent = (struct image_extent){1 + ref_random_below(&random, 20), 1 + ref_random_below(&random, 20),
                                         1 + ref_random_below(&random, 14)};
    options->kind = (enum filter_kind)(FILTER_PYRADIOMICS_SQUARE + seed % 9);
    options->sigma_mm = 0.25 * (double)(1 + ref_random_below(&random, 16));
    options->wavelet = ref_random_wavelet(&random);
    options->in_slice = ref_random_below(&random, 4) == 0;
    options->level = 1 + (int)ref_random_below(&random, 2);
    options->start_level = (int)ref_random_below(&random, 2);
    for (int axis = 0; axis < 3; axis++)
        options->high[axis] = ref_random_below(&random, 2) != 0;
    options->use_spacing = ref_random_below(&random, 2) != 0;
    options->radius = options->kind == FILTER_PYRADIOMICS_LBP_2D ? 0.5 * (double)(1 + ref_random_below(&random, 6)) : 1;
    options->points = 2 + (int)ref_random_below(&random, 23);
    options->method = (enum filter_lbp)ref_random_below(&random, LBP_METHODS);
    options->harmonic = (enum filter_harmonic)ref_random_below(&random, LBP_HARMONICS);
    each->demand.reversed = ref_random_below(&random, 2) != 0;
    each->demand.whole = is_whole;
    each->demand.is_unsigned = is_whole && ref_random_below(&random, 2) != 0;
    count = ref_voxels(each->extent);
    each->values = ref_allocate(count, sizeof(*each->values));
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)ref_random_below(&random, 2000001) - 1000000;

        each->values[i] = is_whole ? floor(value / 5000) : value * 0.001234567;
        if (each->demand.is_unsigned)
            each->values[i] = fabs(each->values[i]);
    }
}

struct image_type_case
image_type_boxed(const struct image_type_case *each, uint64_t seed)
{
    const int64_t sides[3] = {each->extent.columns, each->extent.rows, each->extent.slices};
    struct image_type_case box = *each;
    uint64_t random = seed + 1000003;

    box.demand.bands = each->demand.options.in_slice ? 0x0F : (uint8_t)(1 + ref_random_below(&random, 0xFF));
    if (ref_random_below(&random, 2) == 0)
        box.demand.bands = each->demand.options.in_slice ? 0x0F : 0xFF;
    for (int axis = 0; axis < 3; axis++) {
        box.demand.first[axis] = ref_random_below(&random, sides[axis]);
        box.demand.size[axis] = 1 + ref_random_below(&random, sides[axis] - box.demand.first[axis]);
    }
    return box;
}

int64_t
image_type_box_voxels(const struct image_type_case *box)
{
    return box->demand.size[0] * box->demand.size[1] * box->demand.size[2];
}

int64_t
image_type_box_voxel(const struct image_type_case *box, int64_t i)
{
    const int64_t *first = box->demand.first, *size = box->demand.size;
    const int64_t y = first[1] + i / size[0] % size[1], z = first[2] + i / size[0] / size[1];

    return (z * box->extent.rows + y) * box->extent.columns + first[0] + i % size[0];
}

void
image_type_free_case(struct image_type_case *each)
{
    free(each->values);
}

int
image_type_run_case(struct kernels_lane *lane, const struct image_type_case *each,
                    const double *responses[IMAGE_TYPE_BANDS], struct error *error)
{
    struct kernels_demand demand = {.of = {[KERNELS_IMAGE_TYPE] = &each->demand}};
    const struct image_type_request request = {.values = each->values,
                                               .sides = {each->extent.columns, each->extent.rows, each->extent.slices}};
    void *voxels;
    int rc = kernels_volume_begin(lane, each->extent, IMAGE_UINT8, &demand, &voxels, error);

    if (rc)
        return rc;
    memset(voxels, 0, (size_t)ref_voxels(each->extent));
    rc = kernels_volume_ready(lane, 0, each->extent.slices, error);
    return rc ? rc : image_type_run(lane, &request, responses, error);
}

/* ------------------------------------------------------------------------------------ peaks -- */

static long double
ref_peak(const struct image_type_case *each)
{
    long double peak = 0;

    for (int64_t i = 0; i < ref_voxels(each->extent); i++)
        peak = fmaxl(peak, fabsl(each->values[i]));
    return peak;
}

long double
ref_image_type_off(const struct image_type_case *each)
{
    const long double peak = ref_peak(each);

    switch (each->demand.options.kind) {
    case FILTER_PYRADIOMICS_LOG: { /* 32 bits of each pass; one pass enlarges values by (sigma / spacing)^2 */
        long double most = 1;

        for (int axis = 0; axis < 3; axis++)
            most = fmaxl(most, each->demand.options.sigma_mm / each->demand.spacing[axis]);
        return 4e-6L * peak * most * most;
    }
    case FILTER_PYRADIOMICS_GRADIENT:
        return 1e-6L * peak;
    case FILTER_PYRADIOMICS_WAVELET:
    case FILTER_PYRADIOMICS_LBP_2D:
        return 0;
    case FILTER_PYRADIOMICS_LBP_3D:
        return 1e-10L;
    default:
        return 1e-12L * fmaxl(peak, 1);
    }
}

static long double
ref_point(enum filter_kind kind, long double peak, long double value)
{
    const long double sign = value < 0 ? -1 : 1, size = fabsl(value);

    switch (kind) {
    case FILTER_PYRADIOMICS_SQUARE:
        return value * value / peak;
    case FILTER_PYRADIOMICS_SQUARE_ROOT:
        return sign * sqrtl(size * peak);
    case FILTER_PYRADIOMICS_LOGARITHM:
        return sign * logl(size + 1) * peak / logl(peak + 1);
    default:
        return expl(value * logl(peak) / peak);
    }
}

/* -------------------------------------------------------------------------------- neighbours -- */

static int64_t
ref_at(struct image_extent extent, int64_t x, int64_t y, int64_t z)
{
    return (z * extent.rows + y) * extent.columns + x;
}

static long double
ref_gradient(const struct image_type_case *each, int64_t x, int64_t y, int64_t z)
{
    const struct image_extent extent = each->extent;
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices}, place[3] = {x, y, z};
    long double sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t before[3] = {x, y, z}, after[3] = {x, y, z};
        long double slope;

        before[axis] -= place[axis] > 0;
        after[axis] += place[axis] < sides[axis] - 1;
        slope = (long double)each->values[ref_at(extent, after[0], after[1], after[2])] -
                each->values[ref_at(extent, before[0], before[1], before[2])];
        slope /= 2 * (each->demand.options.use_spacing ? (long double)each->demand.spacing[axis] : 1);
        sum += slope * slope;
    }
    return sqrtl(sum);
}

static double
ref_slice_value(const struct image_type_case *each, int64_t x, int64_t y, int64_t z)
{
    const bool is_in = x >= 0 && y >= 0 && x < each->extent.columns && y < each->extent.rows;

    return is_in ? each->values[ref_at(each->extent, x, y, z)] : 0;
}

/* In double, as equal values must stay equal. */
static long double
ref_lbp_2d(const struct image_type_case *each, int64_t x, int64_t y, int64_t z)
{
    const struct filter_options *options = &each->demand.options;
    const int count = options->points;
    int bits[FILTER_MAX_POINTS], changes = 0, ones = 0;
    long double number = 0, least = INFINITY;

    for (int i = 0; i < count; i++) {
        const double down = round(-options->radius * (double)sinl(2 * PI * i / count) * 1e5) / 1e5;
        const double right = round(options->radius * (double)cosl(2 * PI * i / count) * 1e5) / 1e5;
        const double yy = (double)y + down, xx = (double)x + right;
        const double dy = yy - floor(yy), dx = xx - floor(xx);
        const int64_t y0 = (int64_t)floor(yy), x0 = (int64_t)floor(xx), y1 = (int64_t)ceil(yy), x1 = (int64_t)ceil(xx);
        const double top = (1 - dx) * ref_slice_value(each, x0, y0, z) + dx * ref_slice_value(each, x1, y0, z);
        const double bottom = (1 - dx) * ref_slice_value(each, x0, y1, z) + dx * ref_slice_value(each, x1, y1, z);

        bits[i] = (1 - dy) * top + dy * bottom >= ref_slice_value(each, x, y, z);
        ones += bits[i];
        changes += i > 0 && bits[i] != bits[i - 1];
    }
    for (int turn = 0; turn < count; turn++) {
        long double turned = 0;

        for (int i = 0; i < count; i++)
            turned += bits[(i + turn) % count] ? ldexpl(1, i) : 0;
        number = turn == 0 ? turned : number;
        least = fminl(least, turned);
    }
    if (options->method == LBP_UNIFORM)
        return changes <= 2 ? ones : count + 1;
    return options->method == LBP_ROR ? least : number;
}

/* -------------------------------------------------------------------------------------- LoG -- */

/* Filters a line by Deriche's recursion as a sum over all values, whose ends are repeated: the impulse response of the two
 * damped waves, which order 0 and 2 scale to their moments. */
static long double
ref_wave(int order, long double sigma, long double distance)
{
    static const long double w[2] = {0.6681L, 2.0787L}, l[2] = {-1.3932L, -1.3732L};
    static const long double a[2][2] = {{1.3530L, -0.3531L}, {-1.3563L, 0.3446L}};
    static const long double b[2][2] = {{1.8151L, 0.0902L}, {5.2318L, -2.2355L}};
    const long double x = distance / sigma;
    long double sum = 0;

    for (int i = 0; i < 2; i++)
        sum += (a[order / 2][i] * cosl(w[i] * x) + b[order / 2][i] * sinl(w[i] * x)) * expl(l[i] * x);
    return sum;
}

enum { REF_REACH = 320 };

static void
ref_log_kernel(long double sigma_mm, long double spacing, bool second, struct ref_kernel *kernel)
{
    const long double sigma = sigma_mm / spacing;
    long double *taps = kernel->taps + REF_REACH - 1, zero = 0, sum = 0, moment = 0; /* of distances from 0 on */

    for (int i = 0; i < REF_REACH; i++) {
        const long double twice = i > 0 ? 2 : 1;

        taps[i] = ref_wave(second ? 2 : 0, sigma, i);
        sum += twice * taps[i];
        zero += twice * ref_wave(0, sigma, i);
    }
    for (int i = 0; i < REF_REACH && second; i++) {
        taps[i] -= sum / zero * ref_wave(0, sigma, i); /* so that a constant gives 0 */
        moment += (long double)i * i * taps[i];        /* a parabola of curvature 1 gives 1 */
    }
    for (int i = 0; i < REF_REACH; i++)
        taps[i] *= second ? sigma_mm * sigma_mm / moment : 1 / sum;
    for (int i = 1; i < REF_REACH; i++)
        taps[-i] = taps[i];
    kernel->count = 2 * REF_REACH - 1;
    kernel->centre = REF_REACH - 1;
    kernel->apart = 1;
    kernel->turned = false;
}

static void
ref_log(const struct image_type_case *each, long double *responses)
{
    const int64_t sides[3] = {each->extent.columns, each->extent.rows, each->extent.slices};
    const int64_t count = ref_voxels(each->extent);
    long double *volume = ref_allocate(count, sizeof(*volume));
    struct ref_kernel kernel;

    for (int64_t i = 0; i < count; i++)
        responses[i] = 0;
    for (int second = 0; second < 3; second++) {
        for (int64_t i = 0; i < count; i++)
            volume[i] = each->values[i];
        for (int axis = 0; axis < 3; axis++) {
            ref_log_kernel(each->demand.options.sigma_mm, each->demand.spacing[axis], axis == second, &kernel);
            ref_filter_along(each->extent, axis, &kernel, FILTER_NEAREST, volume);
        }
        for (int64_t i = 0; i < count; i++)
            responses[i] += volume[i] / ((long double)each->demand.spacing[second] * each->demand.spacing[second]);
    }
    for (int axis = 0; axis < 3; axis++)
        if (sides[axis] < 4 ||
            (double)sides[axis] < ceil(each->demand.options.sigma_mm / each->demand.spacing[axis]) + 1)
            for (int64_t i = 0; i < count; i++)
                responses[i] = NAN;
    free(volume);
}

/* --------------------------------------------------------------------------------- wavelets -- */

/* Filters the lines along an axis of a volume that repeats itself, as PyWavelets' periodic convolution does in double
 * precision: taps beyond the last voxel first, from the last such tap down, then the others from the first one up. */
static void
ref_wavelet_along(const int64_t sides[3], int axis, const struct ref_kernel *kernel, double *values)
{
    const int64_t strides[3] = {1, sides[0], sides[0] * sides[1]}, count = sides[0] * sides[1] * sides[2];
    double *filtered = ref_allocate(count, sizeof(*filtered));

    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i / strides[axis] % sides[axis], ahead = at + kernel->centre;
        const double *line = values + i - at * strides[axis];
        const int64_t beyond = ahead - sides[axis];

        for (int64_t t = beyond; t >= 0; t--)
            filtered[i] += (double)kernel->taps[t] * line[(ahead - t) % sides[axis] * strides[axis]];
        for (int64_t t = beyond < 0 ? 0 : beyond + 1; t < kernel->count; t++)
            filtered[i] +=
                (double)kernel->taps[t] * line[(ahead - t + kernel->count * sides[axis]) % sides[axis] * strides[axis]];
    }
    memcpy(values, filtered, (size_t)count * sizeof(*values));
    free(filtered);
}

static void
ref_wavelet(const struct image_type_case *each, long double *responses)
{
    const struct filter_options *options = &each->demand.options;
    const int64_t own[3] = {each->extent.columns, each->extent.rows, each->extent.slices};
    const int64_t sides[3] = {own[0] + own[0] % 2, own[1] + own[1] % 2, own[2] + own[2] % 2};
    double *volume = ref_allocate(sides[0] * sides[1] * sides[2], sizeof(*volume));
    const int turns = options->start_level + options->level;
    struct ref_kernel kernel = {.apart = 1};

    for (int64_t z = 0; z < sides[2]; z++)
        for (int64_t y = 0; y < sides[1]; y++)
            for (int64_t x = 0; x < sides[0]; x++) {
                const int64_t slice = z % own[2];

                volume[(z * sides[1] + y) * sides[0] + x] = each->values[ref_at(
                    each->extent, x % own[0], y % own[1], each->demand.reversed ? own[2] - 1 - slice : slice)];
            }
    for (int turn = 1; turn <= turns; turn++)
        for (int axis = 0; axis < (options->in_slice ? 2 : 3); axis++) {
            ref_kernel_of_wavelet(&kernel, options->wavelet, turn == turns && options->high[axis]);
            ref_wavelet_along(sides, axis, &kernel, volume);
        }
    for (int64_t z = 0; z < own[2]; z++)
        for (int64_t y = 0; y < own[1]; y++)
            for (int64_t x = 0; x < own[0]; x++)
                responses[ref_at(each->extent, x, y, each->demand.reversed ? own[2] - 1 - z : z)] =
                    volume[(z * sides[1] + y) * sides[0] + x];
    free(volume);
}

/* ------------------------------------------------------------------------------------ LBP3D -- */

/* Solves (c[i - 1] + 4 c[i] + c[i + 1]) / 6 = line[i], where the ends are mirrored at the outermost voxels. */
static void
ref_spline_line(int64_t side, int64_t stride, long double *line)
{
    long double share[32], part[32];

    for (int64_t i = 0; i < side && side > 1; i++) {
        const long double before = i == 0 ? 0 : i == side - 1 ? 2 : 1, after = i == 0 ? 2 : i == side - 1 ? 0 : 1;
        const long double rest = 4 - (i > 0 ? before * share[i - 1] : 0);

        share[i] = after / rest;
        part[i] = (6 * line[i * stride] - (i > 0 ? before * part[i - 1] : 0)) / rest;
    }
    for (int64_t i = side - 1; i >= 0 && side > 1; i--)
        line[i * stride] = part[i] - (i < side - 1 ? share[i] * line[(i + 1) * stride] : 0);
}

static long double
ref_bspline(long double x)
{
    x = fabsl(x);
    return x < 1 ? (4 - 6 * x * x + 3 * x * x * x) / 6 : x < 2 ? (2 - x) * (2 - x) * (2 - x) / 6 : 0;
}

static long double
ref_sample(const struct image_type_case *each, const long double *coefficients, const long double at[3])
{
    const int64_t sides[3] = {each->extent.columns, each->extent.rows, each->extent.slices};
    long double sum = 0;

    for (int axis = 0; axis < 3; axis++)
        if (at[axis] < 0 || at[axis] > (long double)(sides[axis] - 1))
            return 0;
    for (int64_t n = 0; n < 64; n++) {
        const int64_t offsets[3] = {n % 4 - 1, n / 4 % 4 - 1, n / 16 - 1};
        int64_t place[3];
        long double weight = 1;

        for (int axis = 0; axis < 3; axis++) {
            const int64_t own = (int64_t)floorl(at[axis]) + offsets[axis];

            weight *= ref_bspline(at[axis] - (long double)own);
            place[axis] = own < 0 ? -own : own >= sides[axis] ? 2 * (sides[axis] - 1) - own : own;
            place[axis] = sides[axis] == 1 ? 0 : llabs(place[axis]);
        }
        sum += weight * coefficients[ref_at(each->extent, place[0], place[1], place[2])];
    }
    return sum;
}

/* Returns the spherical harmonic of degree n <= 3 and order m. */
static long double complex
ref_harmonic(int n, int m, long double azimuth, long double polar)
{
    const long double x = cosl(polar), s = fabsl(sinl(polar));
    const long double legendre[4][4] = {
        {1},
        {x, -s},
        {(3 * x * x - 1) / 2, -3 * x * s, 3 * s * s},
        {(5 * x * x * x - 3 * x) / 2, -1.5L * (5 * x * x - 1) * s, 15 * x * s * s, -15 * s * s * s}};
    const int order = m < 0 ? -m : m;
    long double ratio = 1;
    long double complex value;

    for (int i = n - order + 1; i <= n + order; i++)
        ratio *= i;
    value = sqrtl((2 * n + 1) / (4 * PI) / ratio) * legendre[n][order] *
            (cosl(order * azimuth) + I * sinl(order * azimuth));
    return m < 0 ? (order % 2 ? -1 : 1) * conjl(value) : value;
}

static int
ref_vertices(long double vertices[42][3])
{
    const long double golden = (1 + sqrtl(5)) / 2;
    int count = 0;

    for (int zero = 0; zero < 3; zero++)
        for (int signs = 0; signs < 4; signs++, count++) {
            vertices[count][zero] = 0;
            vertices[count][(zero + 1) % 3] = signs % 2 ? -1 : 1;
            vertices[count][(zero + 2) % 3] = signs / 2 ? -golden : golden;
        }
    for (int i = 0; i < 12; i++)
        for (int j = i + 1; j < 12; j++) {
            long double square = 0;

            for (int k = 0; k < 3; k++)
                square += (vertices[i][k] - vertices[j][k]) * (vertices[i][k] - vertices[j][k]);
            for (int k = 0; k < 3 && square < 4.1L; k++)
                vertices[count][k] = (vertices[i][k] + vertices[j][k]) / 2;
            count += square < 4.1L;
        }
    for (int i = 0; i < count; i++) {
        const long double length =
            sqrtl(vertices[i][0] * vertices[i][0] + vertices[i][1] * vertices[i][1] + vertices[i][2] * vertices[i][2]);

        for (int k = 0; k < 3; k++)
            vertices[i][k] /= length;
    }
    return count;
}

static long double
ref_kurtosis(const long double *samples, int count)
{
    long double mean = 0, second = 0, fourth = 0;

    for (int i = 0; i < count; i++)
        mean += samples[i] / count;
    for (int i = 0; i < count; i++) {
        const long double square = (samples[i] - mean) * (samples[i] - mean);

        second += square / count;
        fourth += square * square / count;
    }
    return second <= 1e-15L * mean * (1e-15L * mean) ? NAN : fourth / (second * second) - 3;
}

/* Returns the norm as pyradiomics writes it: sums over orders of coefficients times harmonics. */
static long double
ref_norm(const bool bits[42], const long double vertices[42][3], int count, int degree)
{
    long double complex sums[7] = {0}, norm = 0;

    for (int v = 0; v < count; v++)
        for (int m = -degree; m <= degree && bits[v]; m++)
            sums[m + degree] += ref_harmonic(degree, m, acosl(vertices[v][2]), atan2l(vertices[v][1], vertices[v][0]));
    for (int v = 0; v < count; v++) {
        long double complex value = 0;

        for (int m = -degree; m <= degree; m++)
            value += sums[m + degree] *
                     ref_harmonic(degree, m, acosl(vertices[v][2]), atan2l(vertices[v][1], vertices[v][0]));
        norm += value * value;
    }
    return creall(csqrtl(norm));
}

static void
ref_lbp_3d(const struct image_type_case *each, long double *responses)
{
    const struct image_extent extent = each->extent;
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t strides[3] = {1, sides[0], sides[0] * sides[1]}, count = ref_voxels(extent);
    const struct filter_options *options = &each->demand.options;
    long double *coefficients = ref_allocate(count, sizeof(*coefficients));
    long double vertices[42][3], samples[42];
    const int points = ref_vertices(vertices);
    bool bits[42];

    for (int64_t i = 0; i < count; i++)
        coefficients[i] = each->values[i];
    for (int axis = 0; axis < 3; axis++)
        for (int64_t i = 0; i < count; i++)
            if (i / strides[axis] % sides[axis] == 0)
                ref_spline_line(sides[axis], strides[axis], coefficients + i);
    for (int64_t i = 0; i < count; i++) {
        for (int v = 0; v < points; v++) { /* the first component is that of slices; as places, these are doubles */
            const long double at[3] = {(double)(i % sides[0]) + (double)vertices[v][2],
                                       (double)(i / sides[0] % sides[1]) + (double)vertices[v][1],
                                       (double)(i / (sides[0] * sides[1])) +
                                           (double)(each->demand.reversed ? -vertices[v][0] : vertices[v][0])};

            samples[v] = ref_sample(each, coefficients, at);
            if (each->demand.whole)
                samples[v] = roundl(samples[v]);
            if (each->demand.whole && each->demand.is_unsigned)
                samples[v] = fmaxl(samples[v], 0);
            bits[v] = samples[v] >= each->values[i];
        }
        responses[i] = options->harmonic == LBP_K ? ref_kurtosis(samples, points)
                                                  : ref_norm(bits, vertices, points, (int)options->harmonic);
    }
    free(coefficients);
}

void
ref_image_type(const struct image_type_case *each, long double *responses)
{
    const struct image_extent extent = each->extent;
    const long double peak = ref_peak(each);

    switch (each->demand.options.kind) {
    case FILTER_PYRADIOMICS_LOG:
        ref_log(each, responses);
        return;
    case FILTER_PYRADIOMICS_WAVELET:
        ref_wavelet(each, responses);
        return;
    case FILTER_PYRADIOMICS_LBP_3D:
        ref_lbp_3d(each, responses);
        return;
    default:
        break;
    }
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t x = i % extent.columns, y = i / extent.columns % extent.rows,
                      z = i / (extent.columns * extent.rows);

        responses[i] = each->demand.options.kind == FILTER_PYRADIOMICS_GRADIENT ? ref_gradient(each, x, y, z)
                       : each->demand.options.kind == FILTER_PYRADIOMICS_LBP_2D
                           ? ref_lbp_2d(each, x, y, z)
                           : ref_point(each->demand.options.kind, peak, each->values[i]);
    }
}
