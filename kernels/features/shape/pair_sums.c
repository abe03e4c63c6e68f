/*
 * pair_sums.c - see pair_sums.h.
 *
 * The mask and the deviations from the mean are the real and the imaginary part of one complex volume. Its convolution
 * with 1 / distance gives, for each voxel, the weighted sums over all other voxels. The slices of the box are transformed
 * along rows and columns, padded so that no pair wraps. Each column of coefficients is then padded along the slices,
 * transformed, multiplied and transformed back, so that the padded volume never exists as a whole. Weights are even along
 * each axis, so that their transform is real, and a quarter of its rows and columns suffices.
 */
#include "kernels/features/shape/pair_sums.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, MOST_THREADS = 64 }; /* lines that are transformed together */

#define SIXTH 0.86602540378443864676 /* sin(pi / 3) */

/* Points of LANES lines. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(16)));

struct points {
    lanes re, im;
};

/* A transform of `length` points, a product of 2 and 3. */
struct transform {
    int64_t length;
    double *cosines, *sines; /* of 2 pi k / length */
};

/* ---- roots of unity ---- */

/* Computes cosine and sine of 2 pi k / n by their series below pi / 4, independent of the C library. */
static void
unity_root(int64_t k, int64_t n, double *cosine, double *sine)
{
    const int64_t eighth = 8 * k / n; /* 0 .. 7 */
    const int64_t base = (eighth + 1) / 2 * 2;
    const double x = 3.14159265358979323846 * (double)(8 * k - base * n) / (4 * (double)n);
    double c = 0, s = 0, term = 1;

    for (int i = 0; i < 24; i += 2) {
        c += term;
        term *= x / (i + 1);
        s += term;
        term *= -x / (i + 2);
    }
    const double turned[4][2] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};

    *cosine = turned[base / 2 % 4][0];
    *sine = turned[base / 2 % 4][1];
}

/* Returns the smallest product of 2 and 3 of at least n. */
static int64_t
transform_length(int64_t n)
{
    int64_t best = 1;

    while (best < n)
        best *= 2;
    for (int64_t three = 3; three < 2 * n; three *= 3) {
        int64_t length = three;

        while (length < n)
            length *= 2;
        best = length < best ? length : best;
    }
    return best;
}

static int
transform_make(int64_t length, struct transform *transform)
{
    *transform =
        (struct transform){length, calloc((size_t)length, sizeof(double)), calloc((size_t)length, sizeof(double))};
    if (!transform->cosines || !transform->sines)
        return -ENOMEM;
    for (int64_t k = 0; k < length; k++)
        unity_root(k, length, &transform->cosines[k], &transform->sines[k]);
    return 0;
}

/* ---- lines ---- */

/* Returns the product with c - i s. */
static inline struct points
points_turned(lanes re, lanes im, double c, double s)
{
    return (struct points){re * c + im * s, im * c - re * s};
}

/*
 * Transforms LANES lines by Stockham's method, forward: exp(-2 pi i k / n). `other` has the same size. Returns the result,
 * which is in one of the two. The inverse is the transform of points whose parts are exchanged.
 */
static struct points *
transform_run(const struct transform *transform, struct points *points, struct points *other)
{
    const int64_t length = transform->length;
    int64_t stride = 1;

    for (int64_t n = transform->length; n > 1;) {
        const int radix = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 3;
        const int64_t m = n / radix, step = length / n;

        for (int64_t p = 0; p < m; p++) {
            const double c1 = transform->cosines[p * step], s1 = transform->sines[p * step];
            const double c2 = transform->cosines[2 * p * step % length], s2 = transform->sines[2 * p * step % length];
            const double c3 = transform->cosines[3 * p * step % length], s3 = transform->sines[3 * p * step % length];
            const struct points *from = points + stride * p;
            struct points *to = other + stride * radix * p;

            for (int64_t q = 0; q < stride; q++, from++, to++) {
                const struct points a = from[0], b = from[stride * m];

                if (radix == 2) {
                    to[0] = (struct points){a.re + b.re, a.im + b.im};
                    to[stride] = points_turned(a.re - b.re, a.im - b.im, c1, s1);
                    continue;
                }
                const struct points c = from[2 * stride * m];

                if (radix == 3) {
                    const lanes re = a.re - (b.re + c.re) / 2, im = a.im - (b.im + c.im) / 2;
                    const lanes x = (b.im - c.im) * SIXTH, y = (b.re - c.re) * SIXTH;

                    to[0] = (struct points){a.re + (b.re + c.re), a.im + (b.im + c.im)};
                    to[stride] = points_turned(re + x, im - y, c1, s1);
                    to[2 * stride] = points_turned(re - x, im + y, c2, s2);
                    continue;
                }
                const struct points d = from[3 * stride * m];
                const struct points e = {a.re + c.re, a.im + c.im}, f = {a.re - c.re, a.im - c.im};
                const struct points g = {b.re + d.re, b.im + d.im}, h = {b.re - d.re, b.im - d.im};

                to[0] = (struct points){e.re + g.re, e.im + g.im};
                to[stride] = points_turned(f.re + h.im, f.im - h.re, c1, s1);
                to[2 * stride] = points_turned(e.re - g.re, e.im - g.im, c2, s2);
                to[3 * stride] = points_turned(f.re - h.im, f.im + h.re, c3, s3);
            }
        }
        struct points *const result = other;

        other = points;
        points = result;
        stride *= radix;
        n = m;
    }
    return points;
}

/* ---- the volume ---- */

/* A complex number, interleaved. */
struct complex_point {
    double re, im;
};

struct pairing {
    const struct pair_box *box;
    struct transform along[3];
    int64_t half[2];              /* columns and rows of the quarter: length / 2 + 1 */
    struct complex_point *volume; /* slices of the box, of length[0] columns and length[1] rows */
    double *weights;              /* slices of the quarter: by the distance in slices */
    double mean, deviation;       /* of the values; the transformed deviations are in its unit */
    void (*work)(const struct pairing *pairing, struct points *space, int64_t i);
    int64_t count, next;
    bool failed;
};

/*
 * Transforms up to LANES lines in place. Point k of line l is at first[k * step + l * apart]; points from `filled` on
 * are 0, and only the first `wanted` results are stored.
 */
static void
pairing_lines(const struct transform *transform, struct points *space, struct complex_point *first, int64_t step,
              int64_t apart, int64_t lines, int64_t filled, int64_t wanted, bool inverse)
{
    memset(space, 0, (size_t)transform->length * sizeof(*space));
    for (int64_t k = 0; k < filled; k++)
        for (int64_t l = 0; l < lines; l++) {
            const struct complex_point *point = &first[k * step + l * apart];

            space[k].re[l] = inverse ? point->im : point->re;
            space[k].im[l] = inverse ? point->re : point->im;
        }
    const struct points *result = transform_run(transform, space, space + transform->length);

    for (int64_t k = 0; k < wanted; k++)
        for (int64_t l = 0; l < lines; l++)
            first[k * step + l * apart] = inverse ? (struct complex_point){result[k].im[l], result[k].re[l]}
                                                  : (struct complex_point){result[k].re[l], result[k].im[l]};
}

/* Transforms a slice along rows, then along columns, or back. Only the rows and columns of the box are not 0. */
static void
pairing_plane(const struct pairing *pairing, struct points *space, struct complex_point *plane, int64_t rows,
              int64_t columns, bool inverse)
{
    const struct transform *const x = &pairing->along[0], *const y = &pairing->along[1];

    for (int turn = 0; turn < 2; turn++)
        if ((turn == 0) != inverse)
            for (int64_t j = 0; j < rows; j += LANES)
                pairing_lines(x, space, plane + j * x->length, 1, x->length, rows - j < LANES ? rows - j : LANES,
                              inverse ? x->length : columns, inverse ? columns : x->length, inverse);
        else
            for (int64_t i = 0; i < x->length; i += LANES)
                pairing_lines(y, space, plane + i, x->length, 1, x->length - i < LANES ? x->length - i : LANES,
                              inverse ? y->length : rows, inverse ? rows : y->length, inverse);
}

/* Transforms slice z of the mask and the deviations. */
static void
pairing_forth(const struct pairing *pairing, struct points *space, int64_t z)
{
    const struct pair_box *box = pairing->box;
    const int64_t length = pairing->along[0].length;
    struct complex_point *plane = pairing->volume + z * length * pairing->along[1].length;

    for (int64_t y = 0; y < box->size[1]; y++)
        for (int64_t x = 0; x < box->size[0]; x++) {
            const double value = box->values[(z * box->size[1] + y) * box->size[0] + x];

            plane[y * length + x] = isnan(value)
                                        ? (struct complex_point){0, 0}
                                        : (struct complex_point){1, (value - pairing->mean) / pairing->deviation};
        }
    pairing_plane(pairing, space, plane, box->size[1], box->size[0], false);
}

/* Transforms the weights of voxels that are z slices apart. The room for a plane follows that for lines. */
static void
pairing_weigh(const struct pairing *pairing, struct points *space, int64_t z)
{
    const int64_t length[2] = {pairing->along[0].length, pairing->along[1].length};
    const int64_t longest = length[0] > length[1] ? length[0] : length[1];
    struct complex_point *plane =
        (struct complex_point *)(space + 2 * (longest > pairing->along[2].length ? longest : pairing->along[2].length));
    double *to = pairing->weights + z * pairing->half[0] * pairing->half[1];
    const double *mm = pairing->box->spacing;

    for (int64_t y = 0; y < length[1]; y++)
        for (int64_t x = 0; x < length[0]; x++) {
            const double dx = (double)(2 * x > length[0] ? length[0] - x : x) * mm[0];
            const double dy = (double)(2 * y > length[1] ? length[1] - y : y) * mm[1], dz = (double)z * mm[2];
            const double square = dx * dx + dy * dy + dz * dz;

            plane[y * length[0] + x] = (struct complex_point){square > 0 ? 1 / sqrt(square) : 0, 0};
        }
    pairing_plane(pairing, space, plane, length[1], length[0], false);
    for (int64_t y = 0; y < pairing->half[1]; y++)
        for (int64_t x = 0; x < pairing->half[0]; x++)
            to[y * pairing->half[0] + x] = plane[y * length[0] + x].re;
}

/* Convolves row y of the coefficients along the slices. */
static void
pairing_across(const struct pairing *pairing, struct points *space, int64_t y)
{
    const struct transform *const along = &pairing->along[2];
    const int64_t columns = pairing->along[0].length, rows = pairing->along[1].length;
    const int64_t slices = pairing->box->size[2], quarter = pairing->half[0] * pairing->half[1];
    const double *weights = pairing->weights + (2 * y > rows ? rows - y : y) * pairing->half[0];
    const double scale = 1 / ((double)columns * (double)rows * (double)along->length);

    for (int64_t x = 0; x < columns; x += LANES) {
        const int64_t lines = columns - x < LANES ? columns - x : LANES;
        struct complex_point *first = pairing->volume + y * columns + x;
        struct points *even = space, *own = space + 2 * along->length;

        memset(even, 0, (size_t)along->length * sizeof(*even));
        memset(own, 0, (size_t)along->length * sizeof(*own));
        for (int64_t z = 0; z < slices; z++)
            for (int64_t l = 0; l < lines; l++) {
                const int64_t i = x + l;

                even[z].re[l] = weights[z * quarter + (2 * i > columns ? columns - i : i)];
                if (z > 0)
                    even[along->length - z].re[l] = even[z].re[l];
                own[z].re[l] = first[z * rows * columns + l].re;
                own[z].im[l] = first[z * rows * columns + l].im;
            }
        even = transform_run(along, even, even + along->length);
        own = transform_run(along, own, own + along->length);
        for (int64_t z = 0; z < along->length; z++)
            own[z] = (struct points){own[z].im * even[z].re * scale, own[z].re * even[z].re * scale};
        struct points *const room = space + 2 * along->length;

        own = transform_run(along, own, own == room ? room + along->length : room);
        for (int64_t z = 0; z < slices; z++)
            for (int64_t l = 0; l < lines; l++)
                first[z * rows * columns + l] = (struct complex_point){own[z].im[l], own[z].re[l]};
    }
}

static void
pairing_back(const struct pairing *pairing, struct points *space, int64_t z)
{
    const struct pair_box *box = pairing->box;

    pairing_plane(pairing, space, pairing->volume + z * pairing->along[0].length * pairing->along[1].length,
                  box->size[1], box->size[0], true);
}

static void *
pairing_body(void *context)
{
    struct pairing *pairing = context;
    size_t longest = 0, plane = 0;

    for (int axis = 0; axis < 3; axis++)
        longest = (size_t)pairing->along[axis].length > longest ? (size_t)pairing->along[axis].length : longest;
    if (pairing->work == pairing_weigh)
        plane = (size_t)(pairing->along[0].length * pairing->along[1].length);
    struct points *space = malloc(4 * longest * sizeof(*space) + plane * sizeof(struct complex_point));
    int64_t i;

    if (!space)
        __atomic_store_n(&pairing->failed, true, __ATOMIC_RELAXED);
    while (space && (i = __atomic_fetch_add(&pairing->next, 1, __ATOMIC_RELAXED)) < pairing->count)
        pairing->work(pairing, space, i);
    free(space);
    return NULL;
}

static void
pairing_run(struct pairing *pairing, int threads,
            void (*work)(const struct pairing *pairing, struct points *space, int64_t i), int64_t count)
{
    pthread_t others[MOST_THREADS];
    int started = 0;

    pairing->work = work;
    pairing->count = count;
    pairing->next = 0;
    while (started + 1 < threads && started < MOST_THREADS &&
           pthread_create(&others[started], NULL, pairing_body, pairing) == 0)
        started++;
    (void)pairing_body(pairing);
    while (started > 0)
        pthread_join(others[--started], NULL);
}

/* ---- the sums ---- */

int64_t
pair_sums_points(const int64_t size[3])
{
    int64_t points = 1;

    for (int axis = 0; axis < 3; axis++) {
        points *= axis < 2 ? transform_length(2 * size[axis] - 1) : size[axis];
        if (size[axis] < 1 || points > PAIR_SUMS_POINTS)
            return 0;
    }
    return points;
}

/* Sums the convolution over the region, row by row. */
static void
pairing_sum(const struct pairing *pairing, struct pair_sums *sums)
{
    const struct pair_box *box = pairing->box;
    const int64_t columns = pairing->along[0].length, rows = pairing->along[1].length;
    const double variance = pairing->deviation * pairing->deviation;
    double squares = 0;

    for (int64_t row = 0; row < box->size[1] * box->size[2]; row++) {
        const struct complex_point *around =
            pairing->volume + (row / box->size[1] * rows + row % box->size[1]) * columns;
        double weights = 0, products = 0, own = 0;

        for (int64_t x = 0; x < box->size[0]; x++) {
            const double value = (box->values[row * box->size[0] + x] - pairing->mean) / pairing->deviation;

            if (isnan(value))
                continue;
            weights += around[x].re;
            products += value * around[x].im;
            own += value * value * around[x].re;
        }
        sums->weights += weights;
        sums->products += products;
        squares += own;
    }
    sums->squares = 2 * (squares - sums->products) * variance;
    sums->products *= variance;
}

int
pair_sums_make(const struct pair_box *box, int threads, struct pair_sums *sums)
{
    const int64_t voxels = box->size[0] * box->size[1] * box->size[2];
    struct pairing pairing = {.box = box};
    double first = NAN, above = 0;
    int rc = 0;

    *sums = (struct pair_sums){0};
    for (int64_t i = 0; i < voxels; i++)
        if (!isnan(box->values[i])) {
            first = sums->voxels > 0 ? first : box->values[i];
            above += box->values[i] - first;
            sums->voxels++;
        }
    if (sums->voxels == 0)
        return 0;
    sums->mean = pairing.mean = first + above / sums->voxels;
    for (int64_t i = 0; i < voxels; i++)
        if (!isnan(box->values[i]))
            sums->deviations += (box->values[i] - pairing.mean) * (box->values[i] - pairing.mean);
    pairing.deviation = sums->deviations > 0 ? sqrt(sums->deviations / sums->voxels) : 1;
    for (int axis = 0; axis < 3 && rc == 0; axis++)
        rc = transform_make(transform_length(2 * box->size[axis] - 1), &pairing.along[axis]);
    const int64_t columns = pairing.along[0].length, rows = pairing.along[1].length;

    pairing.half[0] = columns / 2 + 1;
    pairing.half[1] = rows / 2 + 1;
    if (rc == 0) {
        pairing.volume = malloc((size_t)(columns * rows * box->size[2]) * sizeof(*pairing.volume));
        pairing.weights = malloc((size_t)(pairing.half[0] * pairing.half[1] * box->size[2]) * sizeof(double));
        rc = pairing.volume && pairing.weights ? 0 : -ENOMEM;
    }
    if (rc == 0) {
        pairing_run(&pairing, threads, pairing_weigh, box->size[2]);
        pairing_run(&pairing, threads, pairing_forth, box->size[2]);
        pairing_run(&pairing, threads, pairing_across, rows);
        pairing_run(&pairing, threads, pairing_back, box->size[2]);
        rc = pairing.failed ? -ENOMEM : 0;
    }
    if (rc == 0)
        pairing_sum(&pairing, sums);
    for (int axis = 0; axis < 3; axis++) {
        free(pairing.along[axis].cosines);
        free(pairing.along[axis].sines);
    }
    free(pairing.volume);
    free(pairing.weights);
    return rc;
}
