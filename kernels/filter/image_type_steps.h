/*
 * image_type_steps.h - image types (image_type.h) as steps, which all backends run. A step has items, which are independent of
 * each other: voxels or lines. Private to kernels/.
 */
#ifndef NOCTULE_KERNELS_FILTER_IMAGE_TYPE_STEPS_H
#define NOCTULE_KERNELS_FILTER_IMAGE_TYPE_STEPS_H

#include "kernels/filter/filter_private.h"
#include "kernels/filter/image_type.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    IMAGE_TYPE_VERTICES = 42,
    IMAGE_TYPE_TABLE = IMAGE_TYPE_VERTICES * (3 + IMAGE_TYPE_VERTICES), /* vertices, then rows of a matrix */
    IMAGE_TYPE_STEPS = 3 * (FILTER_MAX_STEPS + FILTER_MAX_LEVEL),
};

enum image_type_action {
    IMAGE_TYPE_POINT,    /* of a value */
    IMAGE_TYPE_GRADIENT, /* of neighbours */
    IMAGE_TYPE_LBP_2D,
    IMAGE_TYPE_LBP_3D,
    IMAGE_TYPE_TAPS,      /* sum of some values of a line */
    IMAGE_TYPE_RECURSION, /* lines */
    IMAGE_TYPE_SPLINE,    /* lines: coefficients */
};

/* Volumes of a step. */
enum image_type_place {
    IMAGE_TYPE_VALUES,
    IMAGE_TYPE_FIRST,
    IMAGE_TYPE_SECOND,
    IMAGE_TYPE_RESPONSES,
    IMAGE_TYPE_PLACES
};

/* A recursive filter: weights of values (`n` of this and earlier ones, `m` of later ones) and of earlier results, and the part
 * of results before the ends. */
struct image_type_recursion {
    double n[4], d[4], m[4], bn[4], bm[4];
};

struct image_type_step {
    enum image_type_action action;
    enum filter_kind kind;
    enum image_type_place from, to;
    int axis;
    int64_t sides[3], from_sides[3];    /* of the volumes; places beyond from_sides are the first one */
    int64_t first[3], size[3];          /* items that are voxels */
    bool from_reversed, to_reversed;    /* slices */
    bool adds, begins;                  /* recursion: the result times `factor` is added to the volume, or to 0 */
    double factor;                      /* also of a point */
    int count;                          /* taps, or points */
    double taps[2 * FILTER_MAX_POINTS]; /* LBP2D: rows, then columns of the points */
    struct image_type_recursion recursion;
    double per[3]; /* gradient: half of the distance's inverse */
    enum filter_lbp method;
    enum filter_harmonic harmonic;
    bool whole, is_unsigned;
};

/* The plan of an image type. Only LBP3D needs the table. */
struct image_type_plan {
    struct image_type_demand demand;
    bool none; /* the responses must be absent */
    int count;
    struct image_type_step steps[IMAGE_TYPE_STEPS];
    int64_t between; /* elements of the first and second volume; 0: not used */
};

/* The volumes of all steps. */
struct image_type_memory {
    const double *values;
    double *at[IMAGE_TYPE_PLACES]; /* without the values */
    const double *table;
};

/* Request of the operations. Their states begin with struct image_type_demand. */
struct image_type_task {
    const struct image_type_request *request;
    double peak; /* the largest absolute value */
    const double **responses;
};

/* Makes the plan for a volume. Returns -EINVAL for impossible options. */
int image_type_plan_make(const struct image_type_demand *demand, const struct image_extent *extent,
                         struct image_type_plan *plan);

/* Adapts the plan to a request. */
void image_type_plan_set(struct image_type_plan *plan, const struct image_type_task *task);

/* Fills the table of LBP3D. */
void image_type_table(const struct image_type_demand *demand, double table[IMAGE_TYPE_TABLE]);

/* Returns the number of items of a step. */
static inline int64_t
image_type_items(const struct image_type_step *step)
{
    if (step->action >= IMAGE_TYPE_RECURSION)
        return step->sides[0] * step->sides[1] * step->sides[2] / step->sides[step->axis];
    return step->size[0] * step->size[1] * step->size[2];
}

/* ----------------------------------------------------------------------------------- items -- */

FILTER_INLINE double
image_type_rounded(double value)
{
    return (double)(float)value;
}

FILTER_INLINE const double *
image_type_from(const struct image_type_step *step, const struct image_type_memory *memory)
{
    return step->from == IMAGE_TYPE_VALUES ? memory->values : memory->at[step->from];
}

/* Returns log(y) for y >= 1 = 2^n m by the series of artanh((m - 1) / (m + 1)), where sqrt(1/2) <= m < sqrt(2). */
FILTER_INLINE double
image_type_log(double y)
{
    int n;
    double m = frexp(y, &n);

    if (m < 0x1.6a09e667f3bcdp-1) {
        m = 2 * m;
        n = n - 1;
    }
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = 0;
    for (int i = 25; i >= 3; i -= 2)
        sum = square * (1.0 / i + sum);
    return n * 0x1.62e42feep-1 + (n * 0x1.a39ef35793c76p-33 + 2 * s * (1 + sum));
}

FILTER_INLINE double
image_type_point(const struct image_type_step *step, double value)
{
    const double size = value < 0 ? -value : value;
    double result = 0;

    switch (step->kind) {
    case FILTER_PYRADIOMICS_SQUARE:
        result = step->factor * value;
        return result * result;
    case FILTER_PYRADIOMICS_SQUARE_ROOT:
        result = sqrt(size * step->factor);
        break;
    case FILTER_PYRADIOMICS_LOGARITHM:
        result = image_type_log(size + 1) * step->factor;
        break;
    default:
        value = step->factor * value;
        if (isnan(value))
            return value;
        return value <= 0 ? filter_exp_of(-value) : 1 / filter_exp_of(value);
    }
    return value < 0 ? -result : result;
}

FILTER_INLINE double
image_type_gradient(const struct image_type_step *step, const double *from, const int64_t place[3], int64_t index)
{
    const int64_t strides[3] = {1, step->sides[0], step->sides[0] * step->sides[1]};
    double sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        const double before = from[index - (place[axis] > 0 ? strides[axis] : 0)];
        const double after = from[index + (place[axis] < step->sides[axis] - 1 ? strides[axis] : 0)];
        const double slope = step->per[axis] * after - step->per[axis] * before;

        sum = sum + slope * slope;
    }
    return image_type_rounded(sqrt(sum));
}

/* Returns the sum of taps along an axis. */
FILTER_INLINE double
image_type_taps(const struct image_type_step *step, const double *from, const int64_t place[3])
{
    const int64_t side = step->sides[step->axis] + (step->sides[step->axis] % 2);
    int64_t at[3] = {place[0], place[1], place[2]};
    double sum = 0;

    for (int t = 0; t < step->count; t++) {
        int64_t from_at[3];

        at[step->axis] = (place[step->axis] + step->count / 2 - t) % side;
        at[step->axis] = at[step->axis] < 0 ? at[step->axis] + side : at[step->axis];
        for (int axis = 0; axis < 3; axis++)
            from_at[axis] = at[axis] < step->from_sides[axis] ? at[axis] : 0;
        if (step->from_reversed)
            from_at[2] = step->from_sides[2] - 1 - from_at[2];
        sum = sum +
              step->taps[t] * from[(from_at[2] * step->from_sides[1] + from_at[1]) * step->from_sides[0] + from_at[0]];
    }
    return sum;
}

/* Returns a value of a slice; 0 beyond it. */
FILTER_INLINE double
image_type_within(const struct image_type_step *step, const double *slice, int64_t y, int64_t x)
{
    return y < 0 || y >= step->sides[1] || x < 0 || x >= step->sides[0] ? 0 : slice[y * step->sides[0] + x];
}

FILTER_INLINE double
image_type_linear(const struct image_type_step *step, const double *slice, double y, double x)
{
    const int64_t y0 = (int64_t)floor(y), x0 = (int64_t)floor(x), y1 = (int64_t)ceil(y), x1 = (int64_t)ceil(x);
    const double dy = y - (double)y0, dx = x - (double)x0;
    const double top = (1 - dx) * image_type_within(step, slice, y0, x0) + dx * image_type_within(step, slice, y0, x1);
    const double bottom =
        (1 - dx) * image_type_within(step, slice, y1, x0) + dx * image_type_within(step, slice, y1, x1);

    return (1 - dy) * top + dy * bottom;
}

FILTER_INLINE double
image_type_lbp_2d(const struct image_type_step *step, const double *from, const int64_t place[3])
{
    const double *slice = from + place[2] * step->sides[1] * step->sides[0];
    const double centre = slice[place[1] * step->sides[0] + place[0]];
    const int count = step->count;
    uint32_t bits = 0, least;
    int changes = 0, ones = 0;

    for (int i = 0; i < count; i++) {
        const double value = image_type_linear(step, slice, (double)place[1] + step->taps[i],
                                               (double)place[0] + step->taps[FILTER_MAX_POINTS + i]);

        bits |= (value - centre >= 0 ? 1u : 0u) << i;
    }
    least = bits;
    for (int i = 0; i < count; i++) {
        const uint32_t turned = (bits >> i | bits << (count - i)) & ((1u << count) - 1);

        least = turned < least ? turned : least;
        changes += i > 0 && (bits >> i & 1) != (bits >> (i - 1) & 1);
        ones += (int)(bits >> i & 1);
    }
    if (step->method == LBP_UNIFORM)
        return changes <= 2 ? ones : count + 1;
    return step->method == LBP_ROR ? least : bits;
}

/* Sets the places and weights of a cubic spline along an axis, with places beyond the ends mirrored. */
FILTER_INLINE void
image_type_weights(double at, int64_t side, int64_t places[4], double weights[4])
{
    const double low = floor(at), y = at - low, z = 1 - y;
    const int64_t around = side > 1 ? 2 * (side - 1) : 1;

    weights[1] = (y * y * (y - 2) * 3 + 4) / 6;
    weights[2] = (z * z * (z - 2) * 3 + 4) / 6;
    weights[0] = z * z * z / 6;
    weights[3] = 1 - weights[0] - weights[1] - weights[2];
    for (int i = 0; i < 4; i++) {
        int64_t place = ((int64_t)low - 1 + i) % around;

        place = place < 0 ? place + around : place;
        places[i] = place < side ? place : around - place;
    }
}

/* Returns the spline of coefficients at a place. */
FILTER_INLINE double
image_type_spline_at(const struct image_type_step *step, const double *from, const double at[3])
{
    int64_t places[3][4];
    double weights[3][4], sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        if (at[axis] < 0 || at[axis] > (double)(step->sides[axis] - 1))
            return 0;
        image_type_weights(at[axis], step->sides[axis], places[axis], weights[axis]);
    }
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < 4; j++) {
            const double *line = from + (places[2][k] * step->sides[1] + places[1][j]) * step->sides[0];
            double part = 0;

            for (int i = 0; i < 4; i++)
                part = part + line[places[0][i]] * weights[0][i];
            sum = sum + part * (weights[1][j] * weights[2][k]);
        }
    return sum;
}

/* Returns a sample as an image of whole numbers holds it. */
FILTER_INLINE double
image_type_whole(const struct image_type_step *step, double value)
{
    const double nearest = value > 0 ? floor(value + 0.5) : ceil(value - 0.5);

    return step->is_unsigned && nearest < 0 ? 0 : nearest;
}

FILTER_INLINE double
image_type_kurtosis(const double samples[IMAGE_TYPE_VERTICES])
{
    double mean = 0, second = 0, fourth = 0;

    for (int i = 0; i < IMAGE_TYPE_VERTICES; i++)
        mean = mean + samples[i];
    mean = mean / IMAGE_TYPE_VERTICES;
    for (int i = 0; i < IMAGE_TYPE_VERTICES; i++) {
        const double square = (samples[i] - mean) * (samples[i] - mean);

        second = second + square;
        fourth = fourth + square * square;
    }
    second = second / IMAGE_TYPE_VERTICES;
    fourth = fourth / IMAGE_TYPE_VERTICES;
    if (second <= 1e-15 * mean * (1e-15 * mean))
        return NAN; /* all samples are equal */
    return fourth / (second * second) - 3;
}

FILTER_INLINE double
image_type_lbp_3d(const struct image_type_step *step, const struct image_type_memory *memory, const int64_t place[3],
                  int64_t index)
{
    const double *coefficients = memory->at[step->from], *vertices = memory->table;
    const double *matrix = memory->table + IMAGE_TYPE_VERTICES * 3, centre = memory->values[index];
    double samples[IMAGE_TYPE_VERTICES], norm = 0;

    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        const double at[3] = {(double)place[0] + vertices[3 * v + 2], (double)place[1] + vertices[3 * v + 1],
                              (double)place[2] + vertices[3 * v]};

        samples[v] = image_type_spline_at(step, coefficients, at);
        if (step->whole)
            samples[v] = image_type_whole(step, samples[v]);
    }
    if (step->harmonic == LBP_K)
        return image_type_kurtosis(samples);
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        double sum = 0;

        for (int u = 0; u < IMAGE_TYPE_VERTICES; u++)
            if (samples[u] >= centre)
                sum = sum + matrix[v * IMAGE_TYPE_VERTICES + u];
        norm = norm + sum * sum;
    }
    return sqrt(norm);
}

/* Returns the next result of a recursion. `before`: weights of the results beyond the end, whose value is `end`; `known`:
 * results so far. */
FILTER_INLINE double
image_type_next(const double values[4], const double weights[4], const double earlier[4], const double before[4],
                double end, int64_t known, double results[4])
{
    const double ahead =
        values[0] * weights[0] + values[1] * weights[1] + values[2] * weights[2] + values[3] * weights[3];
    double back = 0;

    for (int k = 0; k < 4; k++) {
        const double part = k < known ? results[k] * earlier[k] : end * before[k];

        back = k > 0 ? back + part : part;
    }
    for (int k = 3; k > 0; k--)
        results[k] = results[k - 1];
    results[0] = ahead - back;
    return results[0];
}

FILTER_INLINE void
image_type_push(double values[4], double value)
{
    for (int k = 3; k > 0; k--)
        values[k] = values[k - 1];
    values[0] = value;
}

/* Filters a line by a recursion: results of earlier values first, then those of later values are added. */
FILTER_INLINE void
image_type_recur(const struct image_type_step *step, const double *from, double *to, double *sum, int64_t stride)
{
    const struct image_type_recursion *const own = &step->recursion;
    const int64_t side = step->sides[step->axis];
    const double first = from[0], last = from[(side - 1) * stride];
    double values[4] = {first, first, first, first}, results[4] = {0};

    for (int64_t i = 0; i < side; i++) {
        image_type_push(values, from[i * stride]);
        to[i * stride] = image_type_next(values, own->n, own->d, own->bn, first, i, results);
    }
    for (int k = 0; k < 4; k++)
        values[k] = last;
    for (int64_t i = side - 1; i >= 0; i--) {
        if (i < side - 1)
            image_type_push(values, from[(i + 1) * stride]);
        image_type_next(values, own->m, own->d, own->bm, last, side - 1 - i, results);
        to[i * stride] = image_type_rounded(to[i * stride] + results[0]);
        if (sum)
            sum[i * stride] = image_type_rounded((step->begins ? 0 : sum[i * stride]) + to[i * stride] * step->factor);
    }
}

/* Converts a line to coefficients of a cubic spline whose ends are mirrored at the outermost voxel. */
FILTER_INLINE void
image_type_spline(const struct image_type_step *step, const double *from, double *to, int64_t stride)
{
    const double pole = -0x1.126145e9ecd56p-2; /* sqrt(3) - 2 */
    const int64_t side = step->sides[step->axis];
    double power = pole, sum, farthest = 1;

    if (side == 1) {
        to[0] = from[0];
        return;
    }
    for (int64_t i = 0; i < side - 1 && farthest != 0; i++) /* pole^(side - 1) */
        farthest = farthest * pole;
    sum = from[0] + farthest * from[(side - 1) * stride];
    for (int64_t i = 1; i < side - 1 && power != 0; i++) {
        const double mirrored = farthest * (farthest / power); /* pole^(2 side - 2 - i) */

        sum = sum + (power + mirrored) * from[i * stride];
        power = power * pole;
    }
    to[0] = 6 * (sum / (1 - farthest * farthest));
    for (int64_t i = 1; i < side; i++)
        to[i * stride] = 6 * from[i * stride] + pole * to[(i - 1) * stride];
    to[(side - 1) * stride] = pole / (pole * pole - 1) * (pole * to[(side - 2) * stride] + to[(side - 1) * stride]);
    for (int64_t i = side - 2; i >= 0; i--)
        to[i * stride] = pole * (to[(i + 1) * stride] - to[i * stride]);
}

FILTER_INLINE void
image_type_line(const struct image_type_step *step, const struct image_type_memory *memory, int64_t item)
{
    const int64_t strides[3] = {1, step->sides[0], step->sides[0] * step->sides[1]};
    const int fast = step->axis == 0 ? 1 : 0, slow = step->axis == 2 ? 1 : 2;
    const int64_t at = item % step->sides[fast] * strides[fast] + item / step->sides[fast] * strides[slow];
    const double *from = image_type_from(step, memory) + at;

    if (step->action == IMAGE_TYPE_SPLINE)
        image_type_spline(step, from, memory->at[step->to] + at, strides[step->axis]);
    else
        image_type_recur(step, from, memory->at[step->to] + at,
                         step->adds ? memory->at[IMAGE_TYPE_RESPONSES] + at : NULL, strides[step->axis]);
}

/* Runs an item of a step. */
FILTER_INLINE void
image_type_item(const struct image_type_step *step, const struct image_type_memory *memory, int64_t item)
{
    const double *from = image_type_from(step, memory);
    int64_t place[3], index, slice;
    double result;

    if (step->action >= IMAGE_TYPE_RECURSION) {
        image_type_line(step, memory, item);
        return;
    }
    place[0] = step->first[0] + item % step->size[0];
    place[1] = step->first[1] + item / step->size[0] % step->size[1];
    place[2] = step->first[2] + item / (step->size[0] * step->size[1]);
    index = (place[2] * step->sides[1] + place[1]) * step->sides[0] + place[0];
    switch (step->action) {
    case IMAGE_TYPE_POINT:
        result = image_type_point(step, from[index]);
        break;
    case IMAGE_TYPE_GRADIENT:
        result = image_type_gradient(step, from, place, index);
        break;
    case IMAGE_TYPE_LBP_2D:
        result = image_type_lbp_2d(step, from, place);
        break;
    case IMAGE_TYPE_LBP_3D:
        result = image_type_lbp_3d(step, memory, place, index);
        break;
    default:
        result = image_type_taps(step, from, place);
        break;
    }
    slice = step->to_reversed ? step->sides[2] - 1 - place[2] : place[2];
    memory->at[step->to][(slice * step->sides[1] + place[1]) * step->sides[0] + place[0]] = result;
}

#ifdef __cplusplus
}
#endif
#endif
