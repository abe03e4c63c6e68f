#include "tests/kernels/ref_spectral.h"

#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>

/* ---- transforms ---- */

/* Returns the product, rounded part by part; C's own may be fused or check for infinities. */
static double complex
times(double complex a, double complex b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static double complex
scaled(double complex a, double b)
{
    return CMPLX(creal(a) * b, cimag(a) * b);
}

/* Returns i a. */
static double complex
turned(double complex a)
{
    return CMPLX(-cimag(a), creal(a));
}

static double complex
swapped(double complex a)
{
    return CMPLX(cimag(a), creal(a));
}

/* Returns cos + i sin of an angle of octants and a part of the next one. */
static double complex
octant_direction(int64_t octant, double part)
{
    double sine = 1, cosine = 1;

    if (octant % 2 == 1)
        part = 1 - part;
    const double angle = 0.78539816339744828 * part, square = angle * angle;
    for (int i = 17; i >= 3; i -= 2)
        sine = 1 - sine * square / (i * (i - 1));
    for (int i = 18; i >= 2; i -= 2)
        cosine = 1 - cosine * square / (i * (i - 1));
    sine = angle * sine;
    if (octant % 4 == 1 || octant % 4 == 2) {
        const double other = sine;

        sine = cosine;
        cosine = other;
    }
    return CMPLX(octant % 8 >= 2 && octant % 8 < 6 ? -cosine : cosine, octant % 8 >= 4 ? -sine : sine);
}

/* Returns exp(-2 pi i k / n). */
static double complex
root(int64_t k, int64_t n)
{
    return conj(octant_direction(8 * k / n, (double)(8 * k % n) / (double)n));
}

static void
butterfly_4(const double complex *t, int stride, double complex *x)
{
    const double complex a = t[0] + t[2 * stride], b = t[0] - t[2 * stride];
    const double complex c = t[stride] + t[3 * stride], d = turned(t[stride] - t[3 * stride]);

    x[0] = a + c;
    x[1] = b - d;
    x[2] = a - c;
    x[3] = b + d;
}

static void
butterfly_8(const double complex *t, double complex *x)
{
    const double half = sqrt(0.5);
    double complex even[4], odd[4];

    butterfly_4(t, 2, even);
    butterfly_4(t + 1, 2, odd);
    odd[1] = CMPLX((creal(odd[1]) + cimag(odd[1])) * half, (cimag(odd[1]) - creal(odd[1])) * half);
    odd[2] = -turned(odd[2]);
    odd[3] = CMPLX((cimag(odd[3]) - creal(odd[3])) * half, -((creal(odd[3]) + cimag(odd[3])) * half));
    for (int q = 0; q < 4; q++) {
        x[q] = even[q] + odd[q];
        x[q + 4] = even[q] - odd[q];
    }
}

static void
butterfly_odd(int64_t radix, const double complex *t, double complex *x)
{
    x[0] = t[0];
    for (int64_t j = 1; j <= radix / 2; j++)
        x[0] += t[j] + t[radix - j];
    for (int64_t q = 1; q <= radix / 2; q++) {
        double complex a = t[0], b = 0;

        for (int64_t j = 1; j <= radix / 2; j++) {
            const double complex w = root(q * j % radix, radix);

            a += scaled(t[j] + t[radix - j], creal(w));
            b += scaled(t[j] - t[radix - j], cimag(w));
        }
        x[q] = a + turned(b);
        x[radix - q] = a - turned(b);
    }
}

/* Returns the radix that splits n: an even one if another is left, then odd primes, then the last even one. */
static int64_t
first_radix(int64_t n)
{
    int64_t odd = n;
    int power = 0;

    for (; odd % 2 == 0; odd /= 2)
        power++;
    for (int64_t prime = 3; odd > 1 && power <= 3; prime += 2)
        if (odd % prime == 0)
            return prime;
    return power == 3 || power >= 5 ? 8 : power == 1 ? 2 : 4;
}

/* Returns the values of a transform by the first radix: j, j + radix, ..., for each j. */
static double complex *
split(int64_t n, int64_t radix, const double complex *values)
{
    double complex *parts = ref_allocate(n, sizeof(*parts));

    for (int64_t i = 0; i < n; i++)
        parts[i % radix * (n / radix) + i / radix] = values[i];
    return parts;
}

/* Transforms by sums, as the tables of primes are made. */
static void
forward_by_sums(int64_t n, double complex *values)
{
    if (n == 1)
        return;

    const int64_t radix = first_radix(n), part = n / radix;
    double complex *parts = split(n, radix, values);

    for (int64_t j = 0; j < radix; j++)
        forward_by_sums(part, parts + j * part);
    for (int64_t k = 0; k < n; k++) {
        values[k] = parts[k % part];
        for (int64_t j = 1; j < radix; j++)
            values[k] += times(parts[j * part + k % part], root(j * k % n, n));
    }
    free(parts);
}

static void forward(int64_t n, double complex *values);

/* Rader's algorithm for a large prime. */
static void
butterfly_prime(int64_t prime, const double complex *t, double complex *x)
{
    const int64_t n = prime - 1;
    double complex *a = ref_allocate(n, sizeof(*a)), *c = ref_allocate(n, sizeof(*c));
    int64_t *power = ref_allocate(n, sizeof(*power));

    for (int64_t generator = 2, used = 0; used < n; generator++) {
        power[0] = 1;
        for (used = 1; used < n; used++) {
            power[used] = power[used - 1] * generator % prime;
            if (power[used] == 1)
                break;
        }
    }
    for (int64_t m = 0; m < n; m++) {
        a[m] = t[power[m]];
        c[m] = root(power[(n - m) % n], prime);
    }
    forward(n, a);
    forward_by_sums(n, c);
    x[0] = t[0] + a[0];
    for (int64_t k = 0; k < n; k++)
        a[k] = times(a[k], CMPLX(creal(c[k]) / (double)n, cimag(c[k]) / (double)n));
    a[0] += t[0];
    ref_fft(n, a, true);
    for (int64_t q = 0; q < n; q++)
        x[power[(n - q) % n]] = a[q];
    free(a);
    free(c);
    free(power);
}

static void
forward(int64_t n, double complex *values)
{
    if (n == 1)
        return;

    const int64_t radix = first_radix(n), part = n / radix;
    double complex *parts = split(n, radix, values), *t = ref_allocate(radix, sizeof(*t)),
                   *x = ref_allocate(radix, sizeof(*x));

    for (int64_t j = 0; j < radix; j++)
        forward(part, parts + j * part);
    for (int64_t k = 0; k < part; k++) {
        for (int64_t j = 0; j < radix; j++)
            t[j] = j * k == 0 ? parts[j * part + k] : times(parts[j * part + k], root(j * k, n));
        if (radix == 8)
            butterfly_8(t, x);
        else if (radix == 4)
            butterfly_4(t, 1, x);
        else if (radix == 2) {
            x[0] = t[0] + t[1];
            x[1] = t[0] - t[1];
        } else if (radix <= 31)
            butterfly_odd(radix, t, x);
        else
            butterfly_prime(radix, t, x);
        for (int64_t q = 0; q < radix; q++)
            values[k + q * part] = x[q];
    }
    free(parts);
    free(t);
    free(x);
}

void
ref_fft(int64_t n, double complex *values, bool inverse)
{
    for (int64_t i = 0; inverse && i < n; i++)
        values[i] = swapped(values[i]);
    forward(n, values);
    for (int64_t i = 0; inverse && i < n; i++)
        values[i] = swapped(values[i]);
}

/* Transforms all lines along an axis of `count` values, whose neighbours are `stride` apart. */
static void
transform_axis(int64_t voxels, int64_t stride, int64_t count, double complex *spectrum, bool inverse)
{
    double complex *line = ref_allocate(count, sizeof(*line));

    for (int64_t first = 0; first < voxels; first++) {
        if (first / stride % count != 0)
            continue;
        for (int64_t i = 0; i < count; i++)
            line[i] = spectrum[first + i * stride];
        ref_fft(count, line, inverse);
        for (int64_t i = 0; i < count; i++)
            spectrum[first + i * stride] = line[i];
    }
    free(line);
}

/* Transforms the rows of a slice of real values in pairs. All places are written, so that rows are as long as before. */
static void
transform_rows(int64_t columns, int64_t rows, const double *values, double complex *spectrum)
{
    double complex *line = ref_allocate(columns, sizeof(*line));

    for (int64_t y = 0; y < rows; y += 2) {
        for (int64_t x = 0; x < columns; x++)
            line[x] = CMPLX(values[y * columns + x], y + 1 < rows ? values[(y + 1) * columns + x] : 0);
        ref_fft(columns, line, false);
        for (int64_t k = 0; k < columns; k++) {
            const double complex a = line[k], b = conj(line[(columns - k) % columns]);

            spectrum[y * columns + k] = (a + b) / 2;
            if (y + 1 < rows)
                spectrum[(y + 1) * columns + k] = -turned(a - b) / 2;
        }
    }
    free(line);
}

static void
rows_back(int64_t columns, int64_t rows, const double complex *spectrum, double *values)
{
    double complex *line = ref_allocate(columns, sizeof(*line));

    for (int64_t y = 0; y < rows; y += 2) {
        for (int64_t x = 0; x < columns; x++) {
            const int64_t k = 2 * x <= columns ? x : columns - x;
            double complex a = spectrum[y * columns + k], b = y + 1 < rows ? spectrum[(y + 1) * columns + k] : 0;

            if (k == 0 || 2 * k == columns) {
                a = creal(a);
                b = creal(b);
            }
            line[x] = k == x ? a + turned(b) : conj(a) + turned(conj(b));
        }
        ref_fft(columns, line, true);
        for (int64_t x = 0; x < columns; x++) {
            values[y * columns + x] = creal(line[x]);
            if (y + 1 < rows)
                values[(y + 1) * columns + x] = cimag(line[x]);
        }
    }
    free(line);
}

/* ---- transfer functions ---- */

static double
ring(double u)
{
    double exponent = -2, m = 4 * u, log = 1.0 / 21, cosine = 1, factorial = 1;

    if (!(u >= 0.25 && u <= 4))
        return 0;
    for (; m >= sqrt(2) && exponent < 2; m /= 2)
        exponent++;
    const double s = (m - 1) / (m + 1);
    for (int i = 19; i >= 1; i -= 2)
        log = fma(log, s * s, 1.0 / i);
    const double angle = 0.78539816339744828 * fma(2.8853900817779268 * s, log, exponent);
    for (int i = 2; i <= 20; i++)
        factorial *= i;
    cosine = 1 / factorial;
    for (int i = 20; i > 0; i -= 2) {
        factorial /= i * (i - 1);
        cosine = fma(cosine, angle * angle, (i / 2 % 2 == 1 ? 1 : -1) / factorial);
    }
    return cosine;
}

/* Returns f(k), or 2^j f(k) squared. */
static double
off_centre(int64_t k, int64_t n, int level)
{
    const int64_t place = (k + n / 2) % n;
    const double f = n == 1 ? 0 : (double)(2 * place - n + 1) / (double)(n - 1);

    return f * f * pow(4, level);
}

static double complex
transfer(const struct filter_options *options, const int64_t k[3], const int64_t n[3])
{
    const bool riesz = options->kind != FILTER_SIMONCELLI;
    double plus[3], minus[3], square[3], power[3], gain = 1, norm = 1;
    int order = 0;

    for (int axis = 0; axis < 3; axis++) {
        const double v = (double)(2 * k[axis] < n[axis] ? k[axis] : k[axis] - n[axis]) / (double)n[axis];

        plus[axis] = off_centre(k[axis], n[axis], options->level);
        minus[axis] = off_centre((n[axis] - k[axis]) % n[axis], n[axis], options->level);
        square[axis] = v * v;
        power[axis] = 1;
        for (int i = 1; riesz && i <= options->riesz[axis]; i++) {
            power[axis] *= 2 * k[axis] == n[axis] && options->riesz[axis] % 2 == 1 ? 0 : v;
            norm *= i;
        }
        order += riesz ? options->riesz[axis] : 0;
    }
    if (options->kind != FILTER_RIESZ_LOG)
        gain = (ring(plus[0] + plus[1] + plus[2]) + ring(minus[0] + minus[1] + minus[2])) / 2;
    if (!riesz)
        return gain;

    double length = order % 2 == 1 ? sqrt(square[0] + square[1] + square[2]) : 1, factorial = 1;
    for (int i = 1; i <= order; i++)
        factorial *= i;
    for (int i = 0; i < order / 2; i++)
        length *= square[0] + square[1] + square[2];
    norm = order % 4 >= 2 ? -sqrt(factorial / norm) : sqrt(factorial / norm);
    if (length == 0)
        return 0;
    gain *= power[0] * power[1] * power[2] * norm / length;
    return order % 2 == 1 ? CMPLX(0, -gain) : gain;
}

void
ref_spectral(const struct filter_demand *demand, struct image_extent extent, const int32_t *values, double *response)
{
    const int64_t slice = extent.columns * extent.rows, voxels = slice * extent.slices;
    const int64_t n[3] = {extent.columns, extent.rows, demand->options.in_slice ? 1 : extent.slices};
    double complex *spectrum = ref_allocate(voxels, sizeof(*spectrum));
    double *real = ref_allocate(voxels, sizeof(*real));

    for (int64_t i = 0; i < voxels; i++)
        real[i] = values[i];
    for (int64_t z = 0; z < extent.slices; z++)
        transform_rows(extent.columns, extent.rows, real + z * slice, spectrum + z * slice);
    transform_axis(voxels, n[0], n[1], spectrum, false);
    transform_axis(voxels, slice, n[2], spectrum, false);
    for (int64_t i = 0; i < voxels; i++) {
        const int64_t k[3] = {i % n[0], i / n[0] % n[1], i / slice % n[2]};

        spectrum[i] = times(spectrum[i], transfer(&demand->options, k, n));
    }
    transform_axis(voxels, slice, n[2], spectrum, true);
    transform_axis(voxels, n[0], n[1], spectrum, true);
    for (int64_t z = 0; z < extent.slices; z++)
        rows_back(extent.columns, extent.rows, spectrum + z * slice, response + z * slice);
    free(spectrum);
    free(real);
}

/* ---- Gabor ---- */

/* A plane of the filter. */
struct plane {
    const struct filter_options *options;
    double mm[2];
    int64_t side[2], reach[2], places[2], before[2]; /* along a, b */
};

/* Returns whether no prime factor is above 7. */
static bool
is_smooth(int64_t n)
{
    for (int64_t prime = 2; prime <= 7; prime++)
        while (n % prime == 0)
            n /= prime;
    return n == 1;
}

/* Returns the smallest length >= n of radices 8, 4 and 3, at least two of them, and one even. */
static int64_t
good_length(int64_t n)
{
    for (;; n++) {
        int64_t rest = n;
        int power = 0;

        for (; rest % 2 == 0; rest /= 2)
            power++;
        const bool has_threes = rest > 1;
        while (rest % 3 == 0)
            rest /= 3;
        if (rest == 1 && power >= (has_threes ? 2 : 4))
            return n;
    }
}

static struct plane
plane_of(const struct filter_demand *demand, const int64_t sides[3], int a, int b)
{
    struct plane plane = {.options = &demand->options, .mm = {demand->spacing[a], demand->spacing[b]}};

    plane.side[0] = sides[a];
    plane.side[1] = sides[b];
    for (int i = 0; i < 2; i++) {
        const double widest =
            plane.options->gamma < 1 ? plane.options->sigma_mm * (1 / plane.options->gamma) : plane.options->sigma_mm;

        plane.reach[i] = (int64_t)ceil(6 * widest / plane.mm[i]);
        plane.places[i] = plane.side[i];
        if (plane.options->boundary != FILTER_PERIODIC || !is_smooth(plane.side[i])) {
            plane.before[i] = plane.reach[i];
            plane.places[i] = good_length(plane.side[i] + 2 * plane.reach[i]);
        }
    }
    return plane;
}

/* Returns cos + i sin of an angle in eighths of a turn. */
static double complex
direction(double eighths)
{
    return octant_direction((int64_t)eighths, eighths - floor(eighths));
}

/* Returns the kernel at (x, y). */
static double complex
kernel_at(const struct plane *plane, double complex towards, int64_t x, int64_t y)
{
    const struct filter_options *options = plane->options;
    const double right = (double)x * plane->mm[0], down = (double)y * plane->mm[1];
    const double u = right * creal(towards) + down * cimag(towards);
    const double w = (down * creal(towards) - right * cimag(towards)) * options->gamma;
    const double turns = u / options->lambda_mm;
    const double size = filter_exp_minus((u * u + w * w) / (2 * options->sigma_mm * options->sigma_mm));

    return scaled(conj(direction(8 * (turns - floor(turns)))), size);
}

/* Fills the transfer function of an angle. */
static void
kernel_transfer(const struct plane *plane, double complex towards, double *transfer)
{
    const int64_t across = plane->places[0], down = plane->places[1];
    double complex *spectrum = ref_allocate(across * down, sizeof(*spectrum));

    for (int64_t y = -plane->reach[1]; y <= plane->reach[1]; y++)
        for (int64_t x = -plane->reach[0]; x <= plane->reach[0]; x++) {
            const int64_t i = ((x % across) + across) % across, j = ((y % down) + down) % down;

            spectrum[j * across + i] += kernel_at(plane, towards, x, y);
        }
    transform_axis(across * down, 1, across, spectrum, false);
    transform_axis(across * down, across, down, spectrum, false);

    const struct filter_options *options = plane->options;
    const double u = creal(towards) / options->sigma_mm, w = cimag(towards) * options->gamma / options->sigma_mm;
    const double spread = 6 * (sqrt(u * u + w * w) * plane->mm[0] / 6.2831853071795862);
    const double middle = -creal(towards) * plane->mm[0] / options->lambda_mm;
    const int64_t first = (int64_t)ceil((middle - spread) * (double)across);
    const int64_t last = (int64_t)floor((middle + spread) * (double)across);

    for (int64_t k = first; k <= last && k < first + across; k++)
        for (int64_t j = 0; j < down; j++) {
            const int64_t at = j * across + ((k % across) + across) % across;

            transfer[at] = creal(spectrum[at]) * (1 / ((double)across * (double)down));
        }
    free(spectrum);
}

/* Returns the place of the value that counts at i; -1: it is 0. */
static int64_t
mapped(const struct plane *plane, int axis, int64_t place)
{
    const int64_t n = plane->side[axis];
    int64_t i = place - plane->before[axis];

    if (place >= n + 2 * plane->before[axis])
        return -1;
    switch (plane->options->boundary) {
    case FILTER_NEAREST:
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    case FILTER_PERIODIC:
        while (i < 0)
            i += n;
        return i % n;
    case FILTER_MIRROR:
        while (i < 0 || i >= n)
            i = i < 0 ? -1 - i : 2 * n - 1 - i;
        return i;
    default:
        return i >= 0 && i < n ? i : -1;
    }
}

/* Transforms a slice, which is side[0] x side[1]. */
static void
slice_spectrum(const struct plane *plane, const double *slice, double complex *spectrum)
{
    const int64_t across = plane->places[0], down = plane->places[1], lines = plane->side[1];
    double *wide = ref_allocate(across * lines, sizeof(*wide));
    double complex *rows = ref_allocate(across * lines, sizeof(*rows));

    for (int64_t b = 0; b < lines; b++)
        for (int64_t i = 0; i < across; i++)
            wide[b * across + i] = mapped(plane, 0, i) < 0 ? 0 : slice[b * plane->side[0] + mapped(plane, 0, i)];
    transform_rows(across, lines, wide, rows);
    for (int64_t j = 0; j < down; j++)
        for (int64_t k = 0; k <= across / 2; k++)
            spectrum[j * across + k] = mapped(plane, 1, j) < 0 ? 0 : rows[mapped(plane, 1, j) * across + k];
    transform_axis(across * down, across, down, spectrum, false);
    for (int64_t j = 0; j < down; j++)
        for (int64_t k = across / 2 + 1; k < across; k++)
            spectrum[j * across + k] = conj(spectrum[(down - j) % down * across + across - k]);
    free(wide);
    free(rows);
}

static double
pooled_with(enum filter_pooling pooling, double pooled, double value)
{
    switch (pooling) {
    case FILTER_MAX:
        return value > pooled ? value : pooled;
    case FILTER_MIN:
        return value < pooled ? value : pooled;
    default:
        return pooled + value;
    }
}

/* Pools the moduli of all angles for a slice. */
static void
filter_slice(const struct plane *plane, int angles, const double *slice, double *pooled)
{
    const struct filter_options *options = plane->options;
    const int64_t across = plane->places[0], count = across * plane->places[1];
    double complex *spectrum = ref_allocate(count, sizeof(*spectrum)), *product = ref_allocate(count, sizeof(*product));

    slice_spectrum(plane, slice, spectrum);
    for (int angle = 0; angle < angles; angle++) {
        const double degrees = options->pooling == FILTER_ONE ? options->theta_degrees : angle * options->theta_degrees;
        double *transfer = ref_allocate(count, sizeof(*transfer));

        kernel_transfer(plane, direction(degrees / 45 - 8 * floor(degrees / 360)), transfer);
        for (int64_t i = 0; i < count; i++)
            product[i] = scaled(spectrum[i], transfer[i]);
        transform_axis(count, across, plane->places[1], product, true);
        transform_axis(count, 1, across, product, true);
        for (int64_t b = 0; b < plane->side[1]; b++)
            for (int64_t a = 0; a < plane->side[0]; a++) {
                const double complex value = product[(b + plane->before[1]) * across + a + plane->before[0]];
                const double modulus = sqrt(creal(value) * creal(value) + cimag(value) * cimag(value));
                double *to = &pooled[b * plane->side[0] + a];

                *to = angle == 0 ? modulus : pooled_with(options->pooling, *to, modulus);
            }
        free(transfer);
    }
    free(spectrum);
    free(product);
}

void
ref_gabor(const struct filter_demand *demand, struct image_extent extent, const int32_t *values, double *response,
          double *scale)
{
    static const int planes[3][3] = {{0, 1, 2}, {0, 2, 1}, {1, 2, 0}};
    const struct filter_options *options = &demand->options;
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t strides[3] = {1, extent.columns, extent.columns * extent.rows};
    const int count = options->in_slice ? 1 : 3;
    int angles = 1;

    if (options->pooling != FILTER_ONE) {
        angles = (int)(360 / options->theta_degrees);
        angles = angles % 2 == 0 ? angles / 2 : angles;
    }
    for (int p = 0; p < count; p++) {
        const int a = planes[p][0], b = planes[p][1], across = planes[p][2];
        const struct plane plane = plane_of(demand, sides, a, b);
        double *slice = ref_allocate(sides[a] * sides[b], sizeof(*slice)),
               *pooled = ref_allocate(sides[a] * sides[b], sizeof(*pooled));

        for (int64_t s = 0; s < sides[across]; s++) {
            for (int64_t i = 0; i < sides[a] * sides[b]; i++)
                slice[i] = values[s * strides[across] + i % sides[a] * strides[a] + i / sides[a] * strides[b]];
            filter_slice(&plane, angles, slice, pooled);
            for (int64_t i = 0; i < sides[a] * sides[b]; i++) {
                double *to = &response[s * strides[across] + i % sides[a] * strides[a] + i / sides[a] * strides[b]];

                *to = p == 0 ? pooled[i] : pooled_with(options->pooling, *to, pooled[i]);
            }
        }
        free(slice);
        free(pooled);
    }
    *scale = options->pooling == FILTER_MAX || options->pooling == FILTER_MIN ? 1 : 1.0 / (angles * count);
}
