/* voxelwise_steps.h - the features of one window (voxelwise.h), which all backends compute by the same operations. Private to
 * kernels/. */
#ifndef NOCTULE_KERNELS_VOXELWISE_VOXELWISE_STEPS_H
#define NOCTULE_KERNELS_VOXELWISE_VOXELWISE_STEPS_H

#include "kernels/filter/filter_private.h"
#include "kernels/voxelwise/mcc.h"
#include "kernels/voxelwise/voxelwise.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VOXELWISE_DIRECTIONS = 13,
    VOXELWISE_NEIGHBOURS = 26,
    VOXELWISE_MOST = 24, /* features of a family */
    VOXELWISE_SIDE = 2 * VOXELWISE_MAX_RADIUS + 1,
    VOXELWISE_WINDOW = VOXELWISE_SIDE * VOXELWISE_SIDE * VOXELWISE_SIDE,
    VOXELWISE_LOGARITHMS = 2 * VOXELWISE_WINDOW + 1,
    VOXELWISE_WEIGHTS = 5,
};

#define VOXELWISE_WEIGHT_ONE 0x1p50

/* Of all distances of the levels of a GLCM. */
enum voxelwise_weight {
    VOXELWISE_INVERSE,
    VOXELWISE_INVERSE_NORMALISED,
    VOXELWISE_INVERSE_SQUARE,
    VOXELWISE_INVERSE_SQUARE_NORMALISED,
    VOXELWISE_INVERSE_VARIANCE,
};

/* Tables: c log2(c) in steps of 2^-exponent; weights by kind and distance in steps of 1 / VOXELWISE_WEIGHT_ONE. */
struct voxelwise_tables {
    int64_t logarithms[VOXELWISE_LOGARITHMS];
    int64_t weights[VOXELWISE_WEIGHTS][VOXELWISE_MAX_LEVELS];
};

/* Volumes and settings of all windows. */
struct voxelwise_plan {
    int radius, side, levels;
    int64_t size[3]; /* of the next two */
    const uint16_t *grey;
    const double *values;
    double shift, step; /* of the logarithms */
    const struct voxelwise_tables *tables;
    unsigned features; /* 1 << feature, or-ed */
};

/* Memory of a window, for its features of a family. */
struct voxelwise_memory {
    uint16_t *window;           /* levels, side^3 */
    uint16_t *counts;           /* voxelwise_counts() */
    double *numbers;            /* voxelwise_numbers() */
    const double *coefficients; /* of each direction (mcc.h), `apart` elements from each other; NULL: not wanted */
    int64_t apart;
};

/* Request of the operations. */
struct voxelwise_task {
    const struct voxelwise_request *request;
    unsigned features[VOXELWISE_FAMILIES]; /* without the bit for all */
    struct voxelwise_plan plan;            /* without volumes, tables and features */
};

/* Fills the tables for windows of a radius and a number of levels. */
void voxelwise_tables_make(int radius, int levels, struct voxelwise_tables *tables);

/* Return the elements of the memory of a window for a family and a number of levels. */
size_t voxelwise_counts(enum voxelwise_family family, int radius, int levels);
size_t voxelwise_numbers(enum voxelwise_family family, int radius, int levels);

/* ------------------------------------------------------------------------------ the window -- */

FILTER_INLINE int
voxelwise_voxels(const struct voxelwise_plan *plan)
{
    return plan->side * plan->side * plan->side;
}

/* Copies the levels, and the values if `values` is not NULL, of the window around a voxel; 0: beyond the volume. */
FILTER_INLINE void
voxelwise_take(const struct voxelwise_plan *plan, int64_t voxel, uint16_t *window, double *values)
{
    const int r = plan->radius;
    const int64_t columns = plan->size[0], rows = plan->size[1];
    const int64_t x = voxel % columns, y = voxel / columns % rows, z = voxel / columns / rows;
    int at = 0;

    for (int64_t k = z - r; k <= z + r; k++)
        for (int64_t j = y - r; j <= y + r; j++)
            for (int64_t i = x - r; i <= x + r; i++, at++) {
                const bool within = i >= 0 && i < columns && j >= 0 && j < rows && k >= 0 && k < plan->size[2];
                const int64_t place = within ? (k * rows + j) * columns + i : 0;

                window[at] = within ? plan->grey[place] : 0;
                if (values)
                    values[at] = plan->values[place];
            }
}

/* Returns whether a family needs the coefficients of mcc.h. */
FILTER_INLINE bool
voxelwise_correlates(const struct voxelwise_plan *plan, enum voxelwise_family family)
{
    return family == VOXELWISE_FAMILY_glcm && plan->features >> VOXELWISE_glcm_MAXIMAL_CORRELATION_COEFFICIENT & 1;
}

/* Replaces the levels of a window by their ranks among those that occur, from 1. Returns how many occur. Uses 1 + levels of `counts`. */
FILTER_INLINE int
voxelwise_rank(const struct voxelwise_plan *plan, uint16_t *window, uint16_t *counts)
{
    uint16_t ranks = 0;

    for (int i = 0; i <= plan->levels; i++)
        counts[i] = 0;
    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++)
        counts[window[voxel]] = 1;
    for (int i = 1; i <= plan->levels; i++)
        counts[i] = counts[i] ? ++ranks : 0;
    counts[0] = 0;
    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++)
        window[voxel] = counts[window[voxel]];
    return ranks;
}

/* A direction as steps along the axes, and the part of a window that has a next voxel in this direction. */
struct voxelwise_direction {
    int step[3], first[3], end[3], offset;
};

/* Finds a direction, 0 to 12. */
FILTER_INLINE void
voxelwise_find_direction(const struct voxelwise_plan *plan, int number, struct voxelwise_direction *direction)
{
    const int place = number + 14;
    const int step[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};

    for (int axis = 0; axis < 3; axis++) {
        direction->step[axis] = step[axis];
        direction->first[axis] = step[axis] < 0 ? 1 : 0;
        direction->end[axis] = plan->side - (step[axis] > 0 ? 1 : 0);
    }
    direction->offset = (step[2] * plan->side + step[1]) * plan->side + step[0];
}

/* Returns a value as a feature has it: 0 is not negative. */
FILTER_INLINE double
voxelwise_plain(double value)
{
    return value == 0 ? 0 : value;
}

/* ------------------------------------------------------------------------------------ GLCM -- */

/* The counts of a direction: pairs of levels (the lower half of the matrix), of sums, of distances, and of each level. */
struct voxelwise_pairs {
    uint16_t *joint, *sums, *distances, *levels;
    int64_t pairs, energy, logarithms;
    int peak;
};

FILTER_INLINE void
voxelwise_glcm_set(const struct voxelwise_plan *plan, uint16_t *counts, struct voxelwise_pairs *glcm)
{
    const int n = plan->levels, joint = n * (n + 1) / 2;

    glcm->joint = counts;
    glcm->sums = counts + joint;
    glcm->distances = glcm->sums + 2 * n - 1;
    glcm->levels = glcm->distances + n;
    glcm->pairs = glcm->energy = glcm->logarithms = 0;
    glcm->peak = 0;
    for (int i = 0; i < joint + 4 * n - 1; i++)
        counts[i] = 0;
}

/* Counts a pair in both orders: twice in the same element of the matrix if the levels are equal. */
FILTER_INLINE void
voxelwise_glcm_add(const struct voxelwise_plan *plan, struct voxelwise_pairs *glcm, int a, int b)
{
    const int64_t *logarithms = plan->tables->logarithms;
    const int hi = (a > b ? a : b) - 1, lo = (a > b ? b : a) - 1;
    const int place = hi * (hi + 1) / 2 + lo, before = glcm->joint[place], twice = hi == lo;
    const int count = (before + 1) << twice;

    glcm->joint[place] = (uint16_t)(before + 1);
    glcm->sums[hi + lo]++;
    glcm->distances[hi - lo]++;
    glcm->levels[hi]++;
    glcm->levels[lo]++;
    glcm->pairs++;
    glcm->energy += (int64_t)(2 * before + 1) << (1 + twice);
    glcm->logarithms += (logarithms[count] - logarithms[before << twice]) << (1 - twice);
    glcm->peak = count > glcm->peak ? count : glcm->peak;
}

FILTER_INLINE void
voxelwise_glcm_count(const struct voxelwise_plan *plan, const uint16_t *window, int number,
                     struct voxelwise_pairs *glcm)
{
    struct voxelwise_direction direction;

    voxelwise_find_direction(plan, number, &direction);
    for (int z = direction.first[2]; z < direction.end[2]; z++)
        for (int y = direction.first[1]; y < direction.end[1]; y++) {
            const uint16_t *row = window + (z * plan->side + y) * plan->side;

            for (int x = direction.first[0]; x < direction.end[0]; x++)
                if (row[x] && row[x + direction.offset])
                    voxelwise_glcm_add(plan, glcm, row[x], row[x + direction.offset]);
        }
}

/* Sums over the counts of sums, distances and levels. */
struct voxelwise_glcm_sums {
    int64_t power[5];                /* of a + b: power[1] is their sum */
    int64_t sums, distances, levels; /* c log2(c) */
    int64_t distance, square;        /* of the levels' distance; of the levels */
    int64_t weights[VOXELWISE_WEIGHTS];
    int occurring;
};

FILTER_INLINE void
voxelwise_glcm_sum(const struct voxelwise_plan *plan, const struct voxelwise_pairs *glcm,
                   struct voxelwise_glcm_sums *sums)
{
    const int64_t *logarithms = plan->tables->logarithms;

    sums->sums = sums->distances = sums->levels = sums->distance = sums->square = 0;
    sums->occurring = 0;
    for (int i = 0; i < 5; i++)
        sums->power[i] = sums->weights[i] = 0;
    for (int k = 0; k < 2 * plan->levels - 1; k++) {
        int64_t part = glcm->sums[k];

        if (part == 0)
            continue;
        sums->sums += logarithms[part];
        for (int i = 1; i < 5; i++) {
            part *= k + 2;
            sums->power[i] += part;
        }
    }
    for (int k = 0; k < plan->levels; k++) {
        const int64_t apart = glcm->distances[k], here = glcm->levels[k];

        sums->levels += logarithms[here];
        sums->square += here * (k + 1) * (k + 1);
        sums->occurring += here > 0;
        if (apart == 0)
            continue;
        sums->distances += logarithms[apart];
        sums->distance += apart * k;
        for (int i = 0; i < VOXELWISE_WEIGHTS; i++)
            sums->weights[i] += apart * plan->tables->weights[i][k];
    }
}

/* Computes the central moments of a + b: from those around a whole number near the mean, which are exact. */
FILTER_INLINE void
voxelwise_glcm_cluster(const int64_t power[5], int64_t n, double *features)
{
    const int64_t k = power[1] / n, k2 = k * k;
    const int64_t m1 = power[1] - k * n, m2 = power[2] - 2 * k * power[1] + k2 * n;
    const int64_t m3 = power[3] - 3 * k * power[2] + 3 * k2 * power[1] - k * k2 * n;
    const int64_t m4 = power[4] - 4 * k * power[3] + 6 * k2 * power[2] - 4 * k * k2 * power[1] + k2 * k2 * n;
    const double all = (double)n, from = (double)m1 / all;

    features[VOXELWISE_glcm_CLUSTER_TENDENCY] = (double)(n * m2 - m1 * m1) / (all * all);
    features[VOXELWISE_glcm_CLUSTER_SHADE] =
        (double)(n * n * m3 - 3 * n * m1 * m2 + 2 * m1 * m1 * m1) / (all * all * all);
    features[VOXELWISE_glcm_CLUSTER_PROMINENCE] =
        ((double)m4 - from * (4 * (double)m3 - from * (6 * (double)m2 - from * (3 * (double)m1)))) / all;
}

/* Computes the features of a direction with pairs. */
FILTER_INLINE void
voxelwise_glcm_features(const struct voxelwise_plan *plan, const struct voxelwise_pairs *glcm, double coefficient,
                        double features[VOXELWISE_MOST])
{
    const int64_t *logarithms = plan->tables->logarithms, n = glcm->pairs, t = 2 * n;
    const double all = (double)n, both = (double)t;
    struct voxelwise_glcm_sums sums;
    int64_t mutual;

    voxelwise_glcm_sum(plan, glcm, &sums);
    const int64_t first = sums.power[1], product = sums.power[2] - sums.square; /* twice the sum of a b */
    const int64_t apart = 2 * sums.square - sums.power[2];                      /* the sum of (a - b)^2 */
    const double variance = (double)(t * sums.square - first * first);

    features[VOXELWISE_glcm_JOINT_MAXIMUM] = glcm->peak / both;
    features[VOXELWISE_glcm_JOINT_AVERAGE] = (double)first / both;
    features[VOXELWISE_glcm_JOINT_VARIANCE] = variance / (both * both);
    features[VOXELWISE_glcm_JOINT_ENTROPY] = (double)(logarithms[t] - glcm->logarithms) * plan->step / both;
    features[VOXELWISE_glcm_DIFFERENCE_AVERAGE] = (double)sums.distance / all;
    features[VOXELWISE_glcm_DIFFERENCE_VARIANCE] = (double)(n * apart - sums.distance * sums.distance) / (all * all);
    features[VOXELWISE_glcm_DIFFERENCE_ENTROPY] = (double)(logarithms[n] - sums.distances) * plan->step / all;
    features[VOXELWISE_glcm_SUM_AVERAGE] = (double)first / all;
    features[VOXELWISE_glcm_SUM_ENTROPY] = (double)(logarithms[n] - sums.sums) * plan->step / all;
    features[VOXELWISE_glcm_ANGULAR_SECOND_MOMENT] = (double)glcm->energy / (both * both);
    features[VOXELWISE_glcm_CONTRAST] = (double)apart / all;
    features[VOXELWISE_glcm_INVERSE_DIFFERENCE] = (double)sums.weights[VOXELWISE_INVERSE] / VOXELWISE_WEIGHT_ONE / all;
    features[VOXELWISE_glcm_NORMALISED_INVERSE_DIFFERENCE] =
        (double)sums.weights[VOXELWISE_INVERSE_NORMALISED] / VOXELWISE_WEIGHT_ONE / all;
    features[VOXELWISE_glcm_INVERSE_DIFFERENCE_MOMENT] =
        (double)sums.weights[VOXELWISE_INVERSE_SQUARE] / VOXELWISE_WEIGHT_ONE / all;
    features[VOXELWISE_glcm_NORMALISED_INVERSE_DIFFERENCE_MOMENT] =
        (double)sums.weights[VOXELWISE_INVERSE_SQUARE_NORMALISED] / VOXELWISE_WEIGHT_ONE / all;
    features[VOXELWISE_glcm_INVERSE_VARIANCE] =
        (double)sums.weights[VOXELWISE_INVERSE_VARIANCE] / VOXELWISE_WEIGHT_ONE / all;
    features[VOXELWISE_glcm_AUTOCORRELATION] = (double)product / both;
    voxelwise_glcm_cluster(sums.power, n, features);
    if (sums.occurring < 2) {
        features[VOXELWISE_glcm_CORRELATION] = 1;
        features[VOXELWISE_glcm_INFORMATION_CORRELATION_1] = features[VOXELWISE_glcm_INFORMATION_CORRELATION_2] =
            features[VOXELWISE_glcm_MAXIMAL_CORRELATION_COEFFICIENT] = 0;
        return;
    }
    features[VOXELWISE_glcm_CORRELATION] = (double)(t * product - first * first) / variance;
    /* The mutual information of both levels; less than the rounding of the logarithms is none (glcm.c). */
    mutual = logarithms[t] - 2 * sums.levels + glcm->logarithms;
    mutual = (double)mutual * plan->step < 0x1p-36 ? 0 : mutual;
    features[VOXELWISE_glcm_INFORMATION_CORRELATION_1] = -((double)mutual / (double)(logarithms[t] - sums.levels));
    features[VOXELWISE_glcm_INFORMATION_CORRELATION_2] =
        sqrt(1 - filter_exp_of(2 * ((double)mutual * plan->step / both)));
    features[VOXELWISE_glcm_MAXIMAL_CORRELATION_COEFFICIENT] = coefficient;
}

FILTER_INLINE void
voxelwise_glcm(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory, double mean[VOXELWISE_MOST])
{
    double features[VOXELWISE_MOST];
    int directions = 0;

    for (int f = 0; f < VOXELWISE_glcm_COUNT; f++)
        mean[f] = 0;
    for (int number = 0; number < VOXELWISE_DIRECTIONS; number++) {
        struct voxelwise_pairs glcm;

        voxelwise_glcm_set(plan, memory->counts, &glcm);
        voxelwise_glcm_count(plan, memory->window, number, &glcm);
        if (glcm.pairs == 0)
            continue;
        voxelwise_glcm_features(plan, &glcm, memory->coefficients ? memory->coefficients[number * memory->apart] : 0,
                                features);
        directions++;
        for (int f = 0; f < VOXELWISE_glcm_COUNT; f++)
            mean[f] += features[f];
    }
    for (int f = 0; f < VOXELWISE_glcm_COUNT; f++)
        mean[f] = directions > 0 ? voxelwise_plain(mean[f] / directions) : NAN;
}

/* ----------------------------------------------------------------- levels by sizes of parts -- */

/* A matrix of levels by lengths of runs, sizes of zones or dependences: its counts, also of levels and lengths alone. */
struct voxelwise_matrix {
    int lengths; /* the longest */
    uint16_t *levels, *by_length, *joint;
    int64_t parts, level, length, level_square, length_square, product; /* sums; product: of both squares */
    int64_t levels_square, lengths_square, logarithms;                  /* of counts */
    double small, low, small_low, small_high, large_low;
};

FILTER_INLINE void
voxelwise_matrix_set(const struct voxelwise_plan *plan, uint16_t *counts, int lengths, struct voxelwise_matrix *matrix)
{
    memset(matrix, 0, sizeof(*matrix));
    matrix->lengths = lengths;
    matrix->levels = counts;
    matrix->by_length = counts + plan->levels;
    matrix->joint = matrix->by_length + lengths;
    for (int i = 0; i < plan->levels + lengths + plan->levels * lengths; i++)
        counts[i] = 0;
}

/* Counts a part, and adds to the sums of squares of counts, and of c log2(c), by what they grow. */
FILTER_INLINE void
voxelwise_matrix_add(const struct voxelwise_plan *plan, struct voxelwise_matrix *matrix, int level, int length)
{
    const int64_t *logarithms = plan->tables->logarithms, i = level, l = length, i2 = i * i, l2 = l * l;
    const double high = (double)i2, large = (double)l2;
    uint16_t *joint = &matrix->joint[(level - 1) * matrix->lengths + length - 1];

    matrix->parts++;
    matrix->level += i;
    matrix->length += l;
    matrix->level_square += i2;
    matrix->length_square += l2;
    matrix->product += i2 * l2;
    matrix->levels_square += 2 * matrix->levels[level - 1]++ + 1;
    matrix->lengths_square += 2 * matrix->by_length[length - 1]++ + 1;
    matrix->logarithms += logarithms[*joint + 1] - logarithms[*joint];
    ++*joint;
    matrix->small += 1 / large;
    matrix->low += 1 / high;
    matrix->small_low += 1 / (high * large);
    matrix->small_high += high / large;
    matrix->large_low += large / high;
}

/* Writes the 16 features in the order of GLRLM. */
FILTER_INLINE void
voxelwise_matrix_features(const struct voxelwise_plan *plan, const struct voxelwise_matrix *matrix, double *features)
{
    const int64_t n = matrix->parts;
    const double all = (double)n;

    features[VOXELWISE_glrlm_SHORT_RUNS_EMPHASIS] = matrix->small / all;
    features[VOXELWISE_glrlm_LONG_RUNS_EMPHASIS] = (double)matrix->length_square / all;
    features[VOXELWISE_glrlm_LOW_GREY_LEVEL_RUN_EMPHASIS] = matrix->low / all;
    features[VOXELWISE_glrlm_HIGH_GREY_LEVEL_RUN_EMPHASIS] = (double)matrix->level_square / all;
    features[VOXELWISE_glrlm_SHORT_RUN_LOW_GREY_LEVEL_EMPHASIS] = matrix->small_low / all;
    features[VOXELWISE_glrlm_SHORT_RUN_HIGH_GREY_LEVEL_EMPHASIS] = matrix->small_high / all;
    features[VOXELWISE_glrlm_LONG_RUN_LOW_GREY_LEVEL_EMPHASIS] = matrix->large_low / all;
    features[VOXELWISE_glrlm_LONG_RUN_HIGH_GREY_LEVEL_EMPHASIS] = (double)matrix->product / all;
    features[VOXELWISE_glrlm_GREY_LEVEL_NON_UNIFORMITY] = (double)matrix->levels_square / all;
    features[VOXELWISE_glrlm_NORMALISED_GREY_LEVEL_NON_UNIFORMITY] = (double)matrix->levels_square / (all * all);
    features[VOXELWISE_glrlm_RUN_LENGTH_NON_UNIFORMITY] = (double)matrix->lengths_square / all;
    features[VOXELWISE_glrlm_NORMALISED_RUN_LENGTH_NON_UNIFORMITY] = (double)matrix->lengths_square / (all * all);
    features[VOXELWISE_glrlm_RUN_PERCENTAGE] = all / (double)matrix->length;
    features[VOXELWISE_glrlm_GREY_LEVEL_VARIANCE] =
        (double)(n * matrix->level_square - matrix->level * matrix->level) / (all * all);
    features[VOXELWISE_glrlm_RUN_LENGTH_VARIANCE] =
        (double)(n * matrix->length_square - matrix->length * matrix->length) / (all * all);
    features[VOXELWISE_glrlm_RUN_ENTROPY] =
        (double)(plan->tables->logarithms[n] - matrix->logarithms) * plan->step / all;
}

/* Returns the level of the voxel that is `away` steps from a voxel of a window; -1: it is beyond the window. */
FILTER_INLINE int
voxelwise_step(const struct voxelwise_plan *plan, const uint16_t *window, const struct voxelwise_direction *way,
               int voxel, int away)
{
    const int side = plan->side;
    const int x = voxel % side + away * way->step[0], y = voxel / side % side + away * way->step[1];
    const int z = voxel / side / side + away * way->step[2];

    if (x < 0 || x >= side || y < 0 || y >= side || z < 0 || z >= side)
        return -1;
    return window[voxel + away * way->offset];
}

/* Counts the runs of a direction. Returns whether a line has more than one voxel. */
FILTER_INLINE bool
voxelwise_glrlm_count(const struct voxelwise_plan *plan, const uint16_t *window, int number,
                      struct voxelwise_matrix *matrix)
{
    struct voxelwise_direction way;
    bool lines = false;

    voxelwise_find_direction(plan, number, &way);
    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++) {
        const int level = window[voxel];
        int length = 1, next;

        if (level == 0 || voxelwise_step(plan, window, &way, voxel, -1) == level)
            continue;
        while ((next = voxelwise_step(plan, window, &way, voxel, length)) == level)
            length++;
        voxelwise_matrix_add(plan, matrix, level, length);
        lines |= length > 1;
        for (int away = length; !lines && next >= 0; away++) { /* after a gap */
            lines = next > 0;
            next = voxelwise_step(plan, window, &way, voxel, away + 1);
        }
    }
    return lines;
}

FILTER_INLINE void
voxelwise_glrlm(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory, double mean[VOXELWISE_MOST])
{
    double features[VOXELWISE_MOST];
    int directions = 0;

    for (int f = 0; f < VOXELWISE_glrlm_COUNT; f++)
        mean[f] = 0;
    for (int number = 0; number < VOXELWISE_DIRECTIONS; number++) {
        struct voxelwise_matrix matrix;

        voxelwise_matrix_set(plan, memory->counts, plan->side, &matrix);
        if (!voxelwise_glrlm_count(plan, memory->window, number, &matrix))
            continue;
        voxelwise_matrix_features(plan, &matrix, features);
        directions++;
        for (int f = 0; f < VOXELWISE_glrlm_COUNT; f++)
            mean[f] += features[f];
    }
    for (int f = 0; f < VOXELWISE_glrlm_COUNT; f++)
        mean[f] = directions > 0 ? mean[f] / directions : NAN;
}

/* Returns the index of a neighbour of a voxel of a window; -1: it is beyond the window. `number` is 0 to 25. */
FILTER_INLINE int
voxelwise_neighbour(const struct voxelwise_plan *plan, int voxel, int number)
{
    const int side = plan->side, place = number < VOXELWISE_DIRECTIONS ? number : number + 1;
    const int x = voxel % side + place % 3 - 1, y = voxel / side % side + place / 3 % 3 - 1;
    const int z = voxel / side / side + place / 9 - 1;

    return x >= 0 && x < side && y >= 0 && y < side && z >= 0 && z < side ? (z * side + y) * side + x : -1;
}

/* Removes each zone from the window by a flood. */
FILTER_INLINE void
voxelwise_glszm(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory,
                double features[VOXELWISE_MOST])
{
    const int voxels = voxelwise_voxels(plan);
    uint16_t *window = memory->window, *stack = memory->counts, *counts = stack + voxels;
    struct voxelwise_matrix matrix;

    voxelwise_matrix_set(plan, counts, voxels, &matrix);
    for (int first = 0; first < voxels; first++) {
        const uint16_t level = window[first];
        int waiting = 0, size = 0;

        if (level == 0)
            continue;
        stack[waiting++] = (uint16_t)first;
        window[first] = 0;
        while (waiting > 0) {
            const int voxel = stack[--waiting];

            size++;
            for (int number = 0; number < VOXELWISE_NEIGHBOURS; number++) {
                const int next = voxelwise_neighbour(plan, voxel, number);

                if (next >= 0 && window[next] == level) {
                    window[next] = 0;
                    stack[waiting++] = (uint16_t)next;
                }
            }
        }
        voxelwise_matrix_add(plan, &matrix, level, size);
    }
    voxelwise_matrix_features(plan, &matrix, features);
}

/* A voxel depends on itself and on each neighbour of its level. */
FILTER_INLINE void
voxelwise_ngldm(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory,
                double features[VOXELWISE_MOST])
{
    const uint16_t *window = memory->window;
    struct voxelwise_matrix matrix;
    double all[VOXELWISE_MOST];
    int f = 0;

    voxelwise_matrix_set(plan, memory->counts, VOXELWISE_NEIGHBOURS + 1, &matrix);
    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++) {
        int dependence = 1;

        if (window[voxel] == 0)
            continue;
        for (int number = 0; number < VOXELWISE_NEIGHBOURS; number++) {
            const int next = voxelwise_neighbour(plan, voxel, number);

            dependence += next >= 0 && window[next] == window[voxel];
        }
        voxelwise_matrix_add(plan, &matrix, window[voxel], dependence);
    }
    voxelwise_matrix_features(plan, &matrix, all);
    for (int i = 0; i < VOXELWISE_glrlm_COUNT; i++)
        if (i != VOXELWISE_glrlm_NORMALISED_GREY_LEVEL_NON_UNIFORMITY && i != VOXELWISE_glrlm_RUN_PERCENTAGE)
            features[f++] = all[i];
}

/* ----------------------------------------------------------------------------------- NGTDM -- */

/* The least common multiple of 1 to 26: sums of quotients by numbers of neighbours are whole multiples of its inverse. */
#define VOXELWISE_MULTIPLE INT64_C(26771144400)

/* Adds the deviations of the voxels of a window from the mean of their neighbours, by level: multiples that are below 2^53.
 * Voxels without neighbours count, with a deviation of 0. */
FILTER_INLINE void
voxelwise_tones_add(const struct voxelwise_plan *plan, const uint16_t *window, uint16_t *counts, double *deviations)
{
    for (int i = 0; i < plan->levels; i++)
        counts[i] = 0;
    for (int i = 0; i < plan->levels; i++)
        deviations[i] = 0;
    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++) {
        const int level = window[voxel];
        int sum = 0, neighbours = 0;

        for (int number = 0; number < VOXELWISE_NEIGHBOURS && level > 0; number++) {
            const int next = voxelwise_neighbour(plan, voxel, number);

            if (next >= 0 && window[next] > 0) {
                sum += window[next];
                neighbours++;
            }
        }
        if (level == 0)
            continue;
        const int64_t apart = level * neighbours - sum;

        counts[level - 1]++;
        if (neighbours > 0)
            deviations[level - 1] += (double)((apart < 0 ? -apart : apart) * (VOXELWISE_MULTIPLE / neighbours));
    }
}

FILTER_INLINE void
voxelwise_ngtdm(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory,
                double features[VOXELWISE_MOST])
{
    const int n = plan->levels;
    double *deviations = memory->numbers;
    double *level = memory->numbers + n, *p = level + n, *s = p + n;
    double voxels = 0, weighted = 0, sum = 0, contrast = 0, busyness = 0, complexity = 0, strength = 0;
    int count = 0;

    voxelwise_tones_add(plan, memory->window, memory->counts, deviations);
    for (int i = 0; i < n; i++) {
        if (memory->counts[i] == 0)
            continue;
        level[count] = i + 1;
        p[count] = memory->counts[i];
        s[count++] = deviations[i] / (double)VOXELWISE_MULTIPLE;
        voxels += memory->counts[i];
    }
    for (int i = 0; i < count; i++) {
        p[i] = p[i] / voxels;
        weighted += p[i] * s[i];
        sum += s[i];
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            const double apart = level[i] - level[j];

            contrast += p[i] * p[j] * apart * apart;
            busyness += fabs(level[i] * p[i] - level[j] * p[j]);
            complexity += fabs(apart) * (p[i] * s[i] + p[j] * s[j]) / (p[i] + p[j]);
            strength += (p[i] + p[j]) * apart * apart;
        }
    for (int f = 0; f < VOXELWISE_ngtdm_COUNT; f++)
        features[f] = 0;
    features[VOXELWISE_ngtdm_COARSENESS] = weighted > 0 && 1 / weighted < 1e6 ? 1 / weighted : 1e6;
    if (count > 1)
        features[VOXELWISE_ngtdm_CONTRAST] = contrast / ((double)count * (count - 1)) * sum / voxels;
    if (busyness > 0)
        features[VOXELWISE_ngtdm_BUSYNESS] = weighted / busyness;
    features[VOXELWISE_ngtdm_COMPLEXITY] = voxels > 0 ? complexity / voxels : 0;
    if (sum > 0)
        features[VOXELWISE_ngtdm_STRENGTH] = strength / sum;
}

/* ----------------------------------------------------------------------------- first order -- */

/* Returns the value below which a fraction of the sorted values lie, interpolated between the nearest ranks. */
FILTER_INLINE double
voxelwise_percentile(const double *sorted, int count, double fraction)
{
    const double rank = fraction * (count - 1), below = floor(rank);
    const double low = sorted[(int)below], high = sorted[(int)ceil(rank)];

    return low + (high - low) * (rank - below);
}

/* Sorts by insertion over shrinking distances (Shell). */
FILTER_INLINE void
voxelwise_sort(double *values, int count)
{
    const int gaps[] = {301, 132, 57, 23, 10, 4, 1};

    for (int g = 0; g < 7; g++)
        for (int i = gaps[g]; i < count; i++) {
            const double value = values[i];
            int j = i;

            for (; j >= gaps[g] && values[j - gaps[g]] > value; j -= gaps[g])
                values[j] = values[j - gaps[g]];
            values[j] = value;
        }
}

/* Computes the entropy and uniformity of the levels. */
FILTER_INLINE void
voxelwise_of_levels(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory, int count,
                    double *features)
{
    const int64_t *logarithms = plan->tables->logarithms;
    const double all = count;
    int64_t sum = 0, squares = 0;

    for (int i = 0; i < plan->levels; i++)
        memory->counts[i] = 0;
    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++)
        if (memory->window[voxel] > 0) {
            const int before = memory->counts[memory->window[voxel] - 1]++;

            sum += logarithms[before + 1] - logarithms[before];
            squares += 2 * before + 1;
        }
    features[VOXELWISE_first_order_ENTROPY] = (double)(logarithms[count] - sum) * plan->step / all;
    features[VOXELWISE_first_order_UNIFORMITY] = (double)squares / (all * all);
}

/* Returns the mean absolute deviation from their mean of the values within limits. */
FILTER_INLINE double
voxelwise_deviation(const double *values, int count, double low, double high)
{
    double sum = 0, all = 0, mean;

    for (int i = 0; i < count; i++)
        if (values[i] >= low && values[i] <= high) {
            sum += values[i];
            all += 1;
        }
    mean = sum / all;
    sum = 0;
    for (int i = 0; i < count; i++)
        if (values[i] >= low && values[i] <= high)
            sum += fabs(values[i] - mean);
    return sum / all;
}

/* Computes mean, central moments, energy, root mean square. */
FILTER_INLINE void
voxelwise_moments(const struct voxelwise_plan *plan, const double *values, int count, bool flat, double *features)
{
    const double all = count;
    double sum = 0, second = 0, third = 0, fourth = 0, energy = 0;

    for (int i = 0; i < count; i++)
        sum += values[i];
    const double mean = sum / all;

    for (int i = 0; i < count; i++) {
        const double from = values[i] - mean, square = from * from, shifted = values[i] + plan->shift;

        second += square;
        third += square * from;
        fourth += square * square;
        energy += shifted * shifted;
    }
    second = flat ? 0 : second / all;
    features[VOXELWISE_first_order_MEAN] = mean;
    features[VOXELWISE_first_order_VARIANCE] = second;
    features[VOXELWISE_first_order_STANDARD_DEVIATION] = sqrt(second);
    features[VOXELWISE_first_order_SKEWNESS] = second > 0 ? third / all / (second * sqrt(second)) : 0;
    features[VOXELWISE_first_order_KURTOSIS] = second > 0 ? fourth / all / (second * second) - 3 : 0;
    features[VOXELWISE_first_order_ENERGY] = energy;
    features[VOXELWISE_first_order_ROOT_MEAN_SQUARE] = sqrt(energy / all);
}

FILTER_INLINE void
voxelwise_first_order(const struct voxelwise_plan *plan, const struct voxelwise_memory *memory,
                      double features[VOXELWISE_MOST])
{
    double *values = memory->numbers, *sorted = values + voxelwise_voxels(plan);
    int count = 0;

    for (int voxel = 0; voxel < voxelwise_voxels(plan); voxel++)
        if (memory->window[voxel] > 0) {
            values[count] = values[voxel];
            sorted[count] = values[voxel];
            count++;
        }
    voxelwise_sort(sorted, count);
    const double least = sorted[0], most = sorted[count - 1];
    const double low = voxelwise_percentile(sorted, count, 0.1), high = voxelwise_percentile(sorted, count, 0.9);

    voxelwise_moments(plan, values, count, least == most, features);
    features[VOXELWISE_first_order_MEDIAN] = voxelwise_percentile(sorted, count, 0.5);
    features[VOXELWISE_first_order_MINIMUM] = least;
    features[VOXELWISE_first_order_PERCENTILE_10] = low;
    features[VOXELWISE_first_order_PERCENTILE_90] = high;
    features[VOXELWISE_first_order_MAXIMUM] = most;
    features[VOXELWISE_first_order_INTERQUARTILE_RANGE] =
        voxelwise_percentile(sorted, count, 0.75) - voxelwise_percentile(sorted, count, 0.25);
    features[VOXELWISE_first_order_RANGE] = most - least;
    features[VOXELWISE_first_order_MEAN_ABSOLUTE_DEVIATION] = voxelwise_deviation(values, count, least, most);
    features[VOXELWISE_first_order_ROBUST_MEAN_ABSOLUTE_DEVIATION] = voxelwise_deviation(values, count, low, high);
    voxelwise_of_levels(plan, memory, count, features);
    for (int f = 0; f < VOXELWISE_first_order_COUNT; f++)
        features[f] = voxelwise_plain(features[f]);
}

/* ------------------------------------------------------------------------------- the whole -- */

/* Computes the features of a family in the window around a voxel that has a level, and writes the wanted ones, `stride` apart. */
FILTER_INLINE void
voxelwise_voxel(const struct voxelwise_plan *plan, enum voxelwise_family family, const struct voxelwise_memory *memory,
                int64_t voxel, double *to, int64_t stride)
{
    double features[VOXELWISE_MOST];

    voxelwise_take(plan, voxel, memory->window, family == VOXELWISE_FAMILY_first_order ? memory->numbers : NULL);
    switch (family) {
    case VOXELWISE_FAMILY_first_order:
        voxelwise_first_order(plan, memory, features);
        break;
    case VOXELWISE_FAMILY_glcm:
        voxelwise_glcm(plan, memory, features);
        break;
    case VOXELWISE_FAMILY_glrlm:
        voxelwise_glrlm(plan, memory, features);
        break;
    case VOXELWISE_FAMILY_glszm:
        voxelwise_glszm(plan, memory, features);
        break;
    case VOXELWISE_FAMILY_ngldm:
        voxelwise_ngldm(plan, memory, features);
        break;
    case VOXELWISE_FAMILY_ngtdm:
        voxelwise_ngtdm(plan, memory, features);
        break;
    case VOXELWISE_FAMILIES:
        break;
    }
    for (int f = 0; f < VOXELWISE_MOST; f++)
        if (plan->features >> f & 1) {
            *to = features[f];
            to += stride;
        }
}

#ifdef __cplusplus
}
#endif
#endif
