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
    IMAGE_TYPE_ORDERS = 7,   /* max orders of a spherical harmonic */
    IMAGE_TYPE_TOGETHER = 7, /* bits whose sums the table has */
    IMAGE_TYPE_PARTS = IMAGE_TYPE_VERTICES / IMAGE_TYPE_TOGETHER,
    IMAGE_TYPE_ROW = 64,    /* adjacent voxels whose samples are compared together */
    IMAGE_TYPE_WEIGHTS = 4, /* of a cubic spline, per axis */
    IMAGE_TYPE_STEPS = 3 * (FILTER_MAX_STEPS + FILTER_MAX_LEVEL - 1) + 2 + 4 + IMAGE_TYPE_BANDS,
    IMAGE_TYPE_SLACK = 32, /* elements behind each volume that may be read */
    IMAGE_TYPE_LINES = 8,  /* lines that are filtered together */
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

/* Volumes of a step: the copied values, two volumes between, and the responses, one per band. */
enum image_type_place {
    IMAGE_TYPE_VALUES,
    IMAGE_TYPE_FIRST,
    IMAGE_TYPE_SECOND,
    IMAGE_TYPE_RESPONSES,
    IMAGE_TYPE_PLACES = IMAGE_TYPE_RESPONSES + IMAGE_TYPE_BANDS
};

/* The table of LBP3D. A vertex has components along slices, rows and columns. */
struct image_type_table {
    double vertices[IMAGE_TYPE_VERTICES][3];                    /* from a voxel */
    int32_t places[IMAGE_TYPE_VERTICES][3];                     /* of the first coefficient, from a voxel */
    double weights[IMAGE_TYPE_VERTICES][3][IMAGE_TYPE_WEIGHTS]; /* of the coefficients */
    /* Sums of the coordinates of those vertices whose bit is 1, for each value of adjacent bits. The norm of a sum is that of
     * the harmonics. */
    double sums[IMAGE_TYPE_PARTS][1 << IMAGE_TYPE_TOGETHER][IMAGE_TYPE_ORDERS];
};

/* A recursive filter: weights of values (`n` of this and earlier ones, `m` of later ones) and of earlier results, and the part
 * of results before the ends. */
struct image_type_recursion {
    double n[4], d[4], m[4], bn[4], bm[4];
};

struct image_type_step {
    enum image_type_action action;
    enum filter_kind kind;
    int from, to; /* enum image_type_place */
    int axis;
    int64_t sides[3];                   /* of the volume that is read */
    int64_t first[3], size[3];          /* the voxels that are written; of lines: without their axis */
    bool to_reversed;                   /* taps: slices are written in reverse */
    bool adds, begins;                  /* recursion: the result times `factor` is added to the response, or to 0 */
    int64_t added[3], adding[3];        /* ... the box of these voxels */
    double factor;                      /* also of a point */
    int count;                          /* taps, or points */
    double taps[2 * FILTER_MAX_POINTS]; /* of a wavelet; LBP2D: rows, then columns of the points */
    int64_t period, begin;              /* taps: the volume repeats itself, and the place in it of the first voxel */
    int low[2 * FILTER_MAX_POINTS];     /* LBP2D: the largest whole numbers up to them */
    struct image_type_recursion recursion;
    double per[3]; /* gradient: half of the distance's inverse */
    enum filter_lbp method;
    enum filter_harmonic harmonic;
    bool whole, is_unsigned;
};

/* The plan of an image type. Only LBP3D needs the table. */
struct image_type_plan {
    struct image_type_demand demand; /* with its box */
    bool none;                       /* the responses must be absent */
    int responses;
    int count;
    struct image_type_step steps[IMAGE_TYPE_STEPS];
    /* Voxels from `copied` on are copied. Along an axis with a period they are places of the repeated volume. */
    int64_t copied[3], copies[3], periods[3];
    int64_t own[3]; /* sides of the lane's volume */
    bool reversed;  /* slices are copied in reverse */
    bool between;   /* the first and second volume are used */
};

/* Adjacent lines: elements of a line are `stride` apart, and the lines `apart`. `sum`: of the response of a recursion. */
struct image_type_lines {
    const double *from;
    double *to, *sum;
    int64_t stride, apart, sum_stride, sum_apart;
    int count;
};

/* Samples of LBP3D at the vertices of IMAGE_TYPE_ROW adjacent voxels, and the voxels themselves. */
struct image_type_samples {
    double at[IMAGE_TYPE_VERTICES][IMAGE_TYPE_ROW], centres[IMAGE_TYPE_ROW];
    uint64_t bits[IMAGE_TYPE_ROW];
    double kurtosis[IMAGE_TYPE_ROW];
};

/* The volumes of all steps. */
struct image_type_memory {
    double *at[IMAGE_TYPE_PLACES];
    const struct image_type_table *table;
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

/* Copies a row of the values: copies[1] * copies[2] rows of copies[0] values. */
void image_type_copy(const struct image_type_plan *plan, const struct image_type_request *request, int64_t row,
                     double *values);

/* Fills the table of LBP3D. */
void image_type_table_make(const struct image_type_demand *demand, struct image_type_table *table);

/* Returns the number of elements of a volume with its slack. */
static inline size_t
image_type_elements(const int64_t sides[3])
{
    return (size_t)(sides[0] * sides[1] * sides[2]) + IMAGE_TYPE_SLACK;
}

/* Returns the number of items of a step. */
static inline int64_t
image_type_items(const struct image_type_step *step)
{
    return step->size[0] * step->size[1] * step->size[2];
}

/* ----------------------------------------------------------------------------------- items -- */

FILTER_INLINE double
image_type_rounded(double value)
{
    return (double)(float)value;
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

/* Returns the number of taps that are beyond the last voxel of the period, for a voxel that is written. */
FILTER_INLINE int
image_type_beyond(const struct image_type_step *step, int64_t voxel)
{
    int64_t place = step->begin + voxel;

    while (place >= step->period)
        place -= step->period;
    return place + step->count / 2 < step->period ? 0 : (int)(place + step->count / 2 - step->period + 1);
}

/* Returns the tap whose product is added as number `i`, if the first `beyond` taps are beyond the last voxel. */
FILTER_INLINE int
image_type_tap(int i, int beyond)
{
    return i < beyond ? beyond - 1 - i : i;
}

/* Returns the sum of taps along an axis. */
FILTER_INLINE double
image_type_taps(const struct image_type_step *step, const double *from, int beyond)
{
    const int64_t stride = step->axis == 0 ? 1 : step->axis == 1 ? step->sides[0] : step->sides[0] * step->sides[1];
    double sum = 0;

    for (int i = 0; i < step->count; i++) {
        const int t = image_type_tap(i, beyond);

        sum = sum + step->taps[t] * from[(step->count - 1 - t) * stride];
    }
    return sum;
}

/* Returns a value of a slice; 0 beyond it. */
FILTER_INLINE double
image_type_within(const struct image_type_step *step, const double *slice, int64_t y, int64_t x)
{
    return y < 0 || y >= step->sides[1] || x < 0 || x >= step->sides[0] ? 0 : slice[y * step->sides[0] + x];
}

/* Returns the slice's value at a point of LBP2D. Points have five decimals, so that a place does not round them to others. */
FILTER_INLINE double
image_type_linear(const struct image_type_step *step, const double *slice, const int64_t place[3], int point)
{
    const double y = (double)place[1] + step->taps[point], x = (double)place[0] + step->taps[FILTER_MAX_POINTS + point];
    const int64_t y0 = place[1] + step->low[point], x0 = place[0] + step->low[FILTER_MAX_POINTS + point];
    const double dy = y - (double)y0, dx = x - (double)x0;
    const int64_t y1 = y0 + (dy > 0), x1 = x0 + (dx > 0);
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
        const double value = image_type_linear(step, slice, place, i);

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

/* Returns whether a vertex lies within the volume along an axis: 0 slices, 1 rows, 2 columns. */
FILTER_INLINE bool
image_type_is_within(const struct image_type_step *step, const struct image_type_table *table, int vertex, int axis,
                     int64_t place)
{
    const double at = (double)place + table->vertices[vertex][axis];

    return at >= 0 && at <= (double)(step->sides[2 - axis] - 1);
}

/* Returns the coefficient's place along an axis of a side, mirrored at the outermost voxels. */
FILTER_INLINE int64_t
image_type_mirrored(int64_t place, int64_t side)
{
    const int64_t around = side > 1 ? 2 * (side - 1) : 1;

    if (place >= 0 && place < side)
        return place;
    place = place % around;
    place = place < 0 ? place + around : place;
    return place < side ? place : around - place;
}

/* Returns the spline of coefficients at a vertex: sums along slices first, then along rows and columns. */
FILTER_INLINE double
image_type_sample(const struct image_type_step *step, const struct image_type_memory *memory, int vertex,
                  const int64_t place[3])
{
    const struct image_type_table *table = memory->table;
    int64_t places[3][IMAGE_TYPE_WEIGHTS];
    double sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        if (!image_type_is_within(step, table, vertex, axis, place[2 - axis]))
            return 0;
        for (int i = 0; i < IMAGE_TYPE_WEIGHTS; i++)
            places[axis][i] =
                image_type_mirrored(place[2 - axis] + table->places[vertex][axis] + i, step->sides[2 - axis]);
    }
    for (int i = 0; i < IMAGE_TYPE_WEIGHTS; i++) {
        double column = 0;

        for (int j = 0; j < IMAGE_TYPE_WEIGHTS; j++) {
            double line = 0;

            for (int k = 0; k < IMAGE_TYPE_WEIGHTS; k++) {
                const int64_t row = places[0][k] * step->sides[1] + places[1][j];

                line = fma(table->weights[vertex][0][k], memory->at[step->from][row * step->sides[0] + places[2][i]],
                           line);
            }
            column = fma(table->weights[vertex][1][j], line, column);
        }
        sum = fma(table->weights[vertex][2][i], column, sum);
    }
    return sum;
}

/* Returns the smallest sample that an image of whole numbers holds. */
FILTER_INLINE double
image_type_lowest(const struct image_type_step *step)
{
    return step->is_unsigned ? 0 : -INFINITY;
}

/* Returns a sample as an image of whole numbers holds it. Vectors of any processor can compute it, without branches. */
FILTER_INLINE double
image_type_whole(double lowest, double value)
{
    const double size = fabs(value), above = size + 0.5;
    const double even = above + 0x1p52 - 0x1p52; /* rounded to even */
    const double whole = copysign(even - (even > above ? 1.0 : 0.0), value);
    const double nearest = size < 0x1p52 ? whole : value;

    return nearest < lowest ? lowest : nearest;
}

/* Returns the excess kurtosis of sums of squares and of fourth powers of distances from the mean. */
FILTER_INLINE double
image_type_excess(double mean, double second, double fourth)
{
    second = second / IMAGE_TYPE_VERTICES;
    fourth = fourth / IMAGE_TYPE_VERTICES;
    if (second <= 1e-15 * mean * (1e-15 * mean))
        return NAN; /* all samples are equal */
    return fourth / (second * second) - 3;
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
    return image_type_excess(mean, second, fourth);
}

/* Returns the norm over all vertices of a spherical harmonic of the bits. */
FILTER_INLINE double
image_type_norm(const struct image_type_step *step, const struct image_type_table *table, uint64_t bits)
{
    double sums[IMAGE_TYPE_ORDERS] = {0}, norm = 0;

    for (int part = 0; part < IMAGE_TYPE_PARTS; part++) {
        const double *own = table->sums[part][bits >> part * IMAGE_TYPE_TOGETHER & ((1 << IMAGE_TYPE_TOGETHER) - 1)];

        for (int order = 0; order < 2 * (int)step->harmonic + 1; order++)
            sums[order] = sums[order] + own[order];
    }
    for (int order = 0; order < 2 * (int)step->harmonic + 1; order++)
        norm = norm + sums[order] * sums[order];
    return sqrt(norm);
}

FILTER_INLINE double
image_type_lbp_3d(const struct image_type_step *step, const struct image_type_memory *memory, const int64_t place[3],
                  int64_t index)
{
    const double centre = memory->at[IMAGE_TYPE_VALUES][index];
    double samples[IMAGE_TYPE_VERTICES];
    uint64_t bits = 0;

    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        samples[v] = image_type_sample(step, memory, v, place);
        if (step->whole)
            samples[v] = image_type_whole(image_type_lowest(step), samples[v]);
        bits |= (uint64_t)(samples[v] >= centre) << v;
    }
    return step->harmonic == LBP_K ? image_type_kurtosis(samples) : image_type_norm(step, memory->table, bits);
}

/* Returns the axis across which lines are adjacent. */
FILTER_INLINE int
image_type_across(const struct image_type_step *step)
{
    return step->axis == 0 ? 1 : 0;
}

/* Returns the lines from an item on, up to the last adjacent one. */
FILTER_INLINE struct image_type_lines
image_type_lines_of(const struct image_type_step *step, const struct image_type_memory *memory, int64_t item)
{
    const int fast = image_type_across(step), slow = step->axis == 2 ? 1 : 2;
    const int64_t strides[3] = {1, step->sides[0], step->sides[0] * step->sides[1]};
    const int64_t sums[3] = {1, step->adding[0], step->adding[0] * step->adding[1]};
    const int64_t across = item % step->size[fast], along = item / step->size[fast];
    const int64_t at = (step->first[fast] + across) * strides[fast] + (step->first[slow] + along) * strides[slow];
    const int64_t left = step->size[fast] - across;
    struct image_type_lines lines;

    lines.from = memory->at[step->from] + at;
    lines.to = memory->at[step->to] + at;
    lines.sum = step->adds ? memory->at[IMAGE_TYPE_RESPONSES] + across * sums[fast] + along * sums[slow] : NULL;
    lines.stride = strides[step->axis];
    lines.apart = strides[fast];
    lines.sum_stride = sums[step->axis];
    lines.sum_apart = sums[fast];
    lines.count = (int)(left < (int64_t)IMAGE_TYPE_LINES ? left : (int64_t)IMAGE_TYPE_LINES);
    return lines;
}

/* Runs an item of a step whose items are voxels. It is at this column, row and slice of the voxels that are written. */
FILTER_INLINE void
image_type_item_at(const struct image_type_step *step, const struct image_type_memory *memory, int64_t item,
                   int64_t across, int64_t down, int64_t deep)
{
    const double *from = memory->at[step->from];
    const int64_t place[3] = {step->first[0] + across, step->first[1] + down, step->first[2] + deep};
    const int64_t index = (place[2] * step->sides[1] + place[1]) * step->sides[0] + place[0];
    double *to = &memory->at[step->to][item];

    switch (step->action) {
    case IMAGE_TYPE_POINT:
        *to = image_type_point(step, from[index]);
        break;
    case IMAGE_TYPE_GRADIENT:
        *to = image_type_gradient(step, from, place, index);
        break;
    case IMAGE_TYPE_LBP_2D:
        *to = image_type_lbp_2d(step, from, place);
        break;
    case IMAGE_TYPE_LBP_3D:
        *to = image_type_lbp_3d(step, memory, place, index);
        break;
    default:
        if (step->to_reversed)
            to += (step->size[2] - 1 - 2 * deep) * step->size[0] * step->size[1];
        *to = image_type_taps(step, from + index,
                              image_type_beyond(step, step->axis == 0   ? across
                                                      : step->axis == 1 ? down
                                                                        : deep));
        break;
    }
}

FILTER_INLINE void
image_type_item(const struct image_type_step *step, const struct image_type_memory *memory, int64_t item)
{
    image_type_item_at(step, memory, item, item % step->size[0], item / step->size[0] % step->size[1],
                       item / (step->size[0] * step->size[1]));
}

#ifdef __cplusplus
}
#endif
#endif
