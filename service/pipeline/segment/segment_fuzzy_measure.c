/* segment_fuzzy_measure.c - measures values around the seeds; see segment_fuzzy.h. */
#include "service/pipeline/segment/segment_fuzzy.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------ cubes ---- */

/* The voxels around an object's seeds. */
struct neighbourhood {
    const struct kernels_fuzzy_object *object;
    const struct geometry_stack *stack;
    const void *voxels;
    const struct image_rescale *rescales; /* of the planes; NULL: stored values */
    bool is_whole;                        /* the values are integers */
    int64_t reach;                        /* from a seed along each axis */
    int64_t words;                        /* of a row */
    uint64_t *near;                       /* bits */
    int64_t first_z;                      /* slices with bits; first > last: no slice */
    int64_t last_z;
};

static int64_t
clip(int64_t value, int64_t size)
{
    return value < 0 ? 0 : value >= size ? size - 1 : value;
}

static uint64_t *
near_row(const struct neighbourhood *n, int64_t y, int64_t z)
{
    return n->near + (z * n->stack->rows + y) * n->words;
}

/* Adds the cubes of one word's seeds; they reach at most into the neighbouring words. */
static void
spread_word(struct neighbourhood *n, uint64_t seeds, int64_t word, int64_t y, int64_t z)
{
    const struct geometry_stack *stack = n->stack;
    const uint64_t tail = ~UINT64_C(0) >> (64 * n->words - stack->columns); /* of a row, used */
    const int64_t end_z = clip(z + n->reach, stack->plane_count);
    uint64_t before = 0, here = seeds, after = 0;
    for (int64_t d = 1; d <= n->reach; d++) {
        before |= seeds << (64 - d);
        here |= seeds << d | seeds >> d;
        after |= seeds >> (64 - d);
    }
    n->first_z = n->first_z < z - n->reach ? n->first_z : clip(z - n->reach, stack->plane_count);
    n->last_z = n->last_z > end_z ? n->last_z : end_z;
    for (int64_t k = clip(z - n->reach, stack->plane_count); k <= end_z; k++)
        for (int64_t j = clip(y - n->reach, stack->rows); j <= clip(y + n->reach, stack->rows); j++) {
            uint64_t *row = near_row(n, j, k);
            if (word > 0)
                row[word - 1] |= before;
            row[word] |= here;
            if (word + 1 < n->words)
                row[word + 1] |= after;
            row[n->words - 1] &= tail;
        }
}

/* ------------------------------------------------------------------------------- sums ---- */

__extension__ typedef __int128 whole_sum; /* 2^33 voxels of 39 bits, squared */

/*
 * Sums over the voxels and pairs of a neighbourhood. The first value is subtracted from each value. Sums of integers are
 * exact.
 */
struct sum {
    whole_sum whole; /* of integers */
    double real;     /* of others */
};

struct sums {
    double first;
    int64_t voxels, pairs;
    struct sum values, squares, square_differences;
};

/* Reads a voxel of the neighbourhood. Returns false for padding and voxels outside. */
static bool
fuzzy_take(const struct neighbourhood *n, int64_t x, int64_t y, int64_t z, double *value)
{
    const struct geometry_stack *stack = n->stack;
    if (x >= stack->columns || y >= stack->rows || z >= stack->plane_count ||
        !(near_row(n, y, z)[x / 64] >> x % 64 & 1))
        return false;
    const int32_t stored = image_value(n->voxels, stack->pixel, (z * stack->rows + y) * stack->columns + x);
    const struct image_rescale rescale = n->rescales ? n->rescales[z] : (struct image_rescale){1, 0};
    *value = rescale.slope * stored + rescale.intercept;
    return stored < n->object->padding.lo || stored > n->object->padding.hi;
}

/* Adds a number to a power. */
static void
add_power(const struct neighbourhood *n, struct sum *sum, double number, int power)
{
    if (n->is_whole)
        sum->whole += (whole_sum)number * (power == 2 ? (whole_sum)number : 1);
    else
        sum->real += power == 2 ? number * number : number;
}

static double
power_sum(const struct neighbourhood *n, const struct sum *sum)
{
    return n->is_whole ? (double)sum->whole : sum->real;
}

/* Adds the pair with the next voxel along an axis, so that each pair counts once. */
static void
add_pair(const struct neighbourhood *n, int64_t x, int64_t y, int64_t z, double value, struct sums *sums)
{
    double other;
    if (!fuzzy_take(n, x, y, z, &other))
        return;
    add_power(n, &sums->square_differences, value - other, 2);
    sums->pairs++;
}

static void
add_voxel(const struct neighbourhood *n, int64_t x, int64_t y, int64_t z, struct sums *sums)
{
    double value;
    if (!fuzzy_take(n, x, y, z, &value))
        return;
    if (sums->voxels++ == 0)
        sums->first = value;
    add_power(n, &sums->values, value - sums->first, 1);
    add_power(n, &sums->squares, value - sums->first, 2);
    add_pair(n, x + 1, y, z, value, sums);
    add_pair(n, x, y + 1, z, value, sums);
    add_pair(n, x, y, z + 1, value, sums);
}

/* ------------------------------------------------------------------------------ measuring ---- */

/* Returns the deviation in values, never 0. */
static double
deviation(const struct neighbourhood *n, double mean_square)
{
    double least = 1;
    for (int32_t z = 0; z < n->stack->plane_count && !n->is_whole; z++)
        least = z == 0 ? fabs(n->rescales[z].slope) : fmin(least, fabs(n->rescales[z].slope));
    return mean_square > 0 ? sqrt(mean_square) : least;
}

static void
fill_in(struct conf_estimable *number, double measured)
{
    if (!number->given)
        number->value = measured;
}

static int
measure_sums(const struct conf_segment *segment, const struct neighbourhood *n, struct image_rescale rescale,
             struct fuzzy_gaussians *gaussians, struct error *error)
{
    struct sums sums = {0};
    for (int64_t z = n->first_z; z <= n->last_z; z++)
        for (int64_t y = 0; y < n->stack->rows; y++)
            for (int64_t word = 0; word < n->words; word++)
                for (uint64_t left = near_row(n, y, z)[word]; left; left &= left - 1)
                    add_voxel(n, word * 64 + __builtin_ctzll(left), y, z, &sums);
    if (sums.voxels == 0 && n->first_z <= n->last_z)
        return error_set(error, -EINVAL, CODE_SEEDS_IN_PADDING,
                         "there is only padding within %d voxels of the seeds of segment "
                         "\"%s\", so its values cannot be measured",
                         segment->estimate_voxels, segment->label);
    if (sums.voxels == 0 && segment->from)
        return error_set(error, -EINVAL, CODE_SEEDS_IN_PADDING,
                         "segment \"%s\", which segment \"%s\" starts from, has no voxel, so the "
                         "values to look for cannot be measured",
                         segment->from, segment->label);
    if (sums.voxels == 0)
        return error_set(error, -EINVAL, CODE_SEEDS_IN_PADDING,
                         "auto finds no voxel to start segment \"%s\" from, so its values cannot be measured",
                         segment->label);
    double count = (double)sums.voxels, mean = power_sum(n, &sums.values) / count;
    double variance = power_sum(n, &sums.squares) / count - mean * mean;
    double half_squares = sums.pairs > 0 ? power_sum(n, &sums.square_differences) / (4 * (double)sums.pairs) : 0;
    fill_in(&gaussians->mean, rescale.slope * (sums.first + mean) + rescale.intercept);
    fill_in(&gaussians->sigma, fabs(rescale.slope) * deviation(n, variance));
    fill_in(&gaussians->homogeneity_sigma, fabs(rescale.slope) * deviation(n, half_squares));
    gaussians->measured_voxels = sums.voxels;
    return 0;
}

/* Measures the numbers that are not given around the seeds of a segment. */
static int
measure(const struct segmentation *segmentation, size_t k, const void *voxels, struct error *error)
{
    struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const struct conf_segment *segment = segment_at(segmentation, CONF_FUZZY, k);
    const struct kernels_fuzzy_object *object = &objects->items[k];
    const struct geometry_stack *stack = segmentation->stack;
    struct neighbourhood n = {.object = object,
                              .stack = stack,
                              .voxels = voxels,
                              .rescales = objects->series.rescales,
                              .is_whole = !objects->series.is_apart || objects->series.values.whole,
                              .reach = segment->estimate_voxels,
                              .words = (stack->columns - 1) / 64 + 1,
                              .first_z = INT64_MAX,
                              .last_z = -1};
    n.near = calloc(segment_mask_words(stack), sizeof *n.near);
    if (!n.near)
        return error_set_system(error, -ENOMEM, "measure around the seeds");
    for (size_t i = 0; i < object->seed_count; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];
        spread_word(&n, UINT64_C(1) << seed->x % 64, seed->x / 64, seed->y, seed->z);
    }
    const int64_t rows = stack->rows, all = n.words * rows * stack->plane_count;
    for (int64_t i = 0; object->start && i < all; i++)
        if (object->start[i])
            spread_word(&n, object->start[i], i % n.words, i / n.words % rows, i / n.words / rows);
    int rc = measure_sums(segment, &n, objects->series.rescale, &objects->gaussians[k], error);
    free(n.near);
    return rc;
}

int
fuzzy_objects_measure(const struct segmentation *segmentation, const void *voxels, struct error *error)
{
    struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const struct image_rescale *rescale = &objects->series.rescale;
    int rc = 0;
    for (size_t k = 0; k < segmentation->of[CONF_FUZZY].count && rc == 0; k++) {
        const struct fuzzy_gaussians *own = &objects->gaussians[k];
        struct kernels_fuzzy_object *object = &objects->items[k];
        if (!segmentation->ready[segmentation->of[CONF_FUZZY].segments[k]])
            continue;
        if (!own->mean.given || !own->sigma.given || !own->homogeneity_sigma.given)
            rc = measure(segmentation, k, voxels, error);
        object->mean = (own->mean.value - rescale->intercept) / rescale->slope;
        object->sigma = own->sigma.value / fabs(rescale->slope);
        object->homogeneity_sigma = own->homogeneity_sigma.value / fabs(rescale->slope);
    }
    return rc;
}
