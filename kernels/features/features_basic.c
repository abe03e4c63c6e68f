/*
 * features_basic.c - intensity-based statistics from value histograms, and where a region lies.
 *
 * Histograms of all slices become one list of real-world values with their counts, in ascending
 * order; every statistic is a pass over that list.
 */
#include "kernels/features/features.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct feature_definition basic_feature_definitions[BASIC_FEATURES] = {
    {"voxel_count", "Number of voxels", "", "1", 0},
    {"volume", "Volume (voxel counting)", "YEKZ", "ml", 0},
    {"mean", "Mean", "Q4LE", "", 1},
    {"standard_deviation", "Standard deviation", "", "", 1},
    {"variance", "Variance", "ECT3", "", 2},
    {"skewness", "Skewness", "KE2A", "1", 0},
    {"kurtosis", "(Excess) kurtosis", "IPH6", "1", 0},
    {"median", "Median", "Y12H", "", 1},
    {"minimum", "Minimum", "1GSF", "", 1},
    {"percentile_10", "10th percentile", "QG58", "", 1},
    {"percentile_90", "90th percentile", "8DWT", "", 1},
    {"maximum", "Maximum", "84IY", "", 1},
    {"interquartile_range", "Interquartile range", "SALO", "", 1},
    {"range", "Range", "2OJQ", "", 1},
    {"energy", "Energy", "N8CA", "", 2},
    {"root_mean_square", "Root mean square", "5ZWQ", "", 1},
    {"entropy", "Discretised intensity entropy", "TLU2", "1", 0},
    {"centroid_x", "Centroid x (LPS)", "", "mm", 0},
    {"centroid_y", "Centroid y (LPS)", "", "mm", 0},
    {"centroid_z", "Centroid z (LPS)", "", "mm", 0},
    {"box_columns", "Bounding box along columns", "", "mm", 0},
    {"box_rows", "Bounding box along rows", "", "mm", 0},
    {"box_slices", "Bounding box along slices", "", "mm", 0},
};

/* ------------------------------------------------------------------------------- regions -- */

/* The sum of the places of the bits that are set. */
static int64_t
sum_of_places(uint64_t bits)
{
    static const uint64_t place_has[6] = {
        0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000,
    };
    int64_t sum = 0;

    for (int i = 0; i < 6; i++)
        sum += (int64_t)__builtin_popcountll(bits & place_has[i]) << i;
    return sum;
}

/* Bits of a row: how many, the sum of their columns, the first and the last. */
static void
add_row(const uint64_t *row, int64_t words, int64_t y, int64_t z, struct basic_region *region)
{
    for (int64_t w = 0; w < words; w++) {
        const uint64_t bits = row[w];
        const int64_t count = __builtin_popcountll(bits);
        int64_t first, last;

        if (bits == 0)
            continue;
        first = 64 * w + __builtin_ctzll(bits);
        last = 64 * w + 63 - __builtin_clzll(bits);
        region->voxels += count;
        region->sum[1] += count * y;
        region->sum[2] += count * z;
        region->first[0] = first < region->first[0] ? first : region->first[0];
        region->last[0] = last > region->last[0] ? last : region->last[0];
        region->first[1] = y < region->first[1] ? y : region->first[1];
        region->last[1] = y > region->last[1] ? y : region->last[1];
        region->first[2] = z < region->first[2] ? z : region->first[2];
        region->last[2] = z > region->last[2] ? z : region->last[2];
        region->sum[0] += count * 64 * w + sum_of_places(bits);
    }
}

void
basic_region_of(const uint64_t *bits, int64_t columns, int64_t rows, int64_t slices,
                struct basic_region *region)
{
    const int64_t words = (columns + 63) / 64;

    *region = (struct basic_region){.first = {columns, rows, slices}, .last = {-1, -1, -1}};
    for (int64_t z = 0; z < slices; z++)
        for (int64_t y = 0; y < rows; y++)
            add_row(bits + (z * rows + y) * words, words, y, z, region);
}

/* ---------------------------------------------------------------------------- the values -- */

struct weighted {
    double value;
    uint64_t count;
};

struct weighted_list {
    struct weighted *items; /* ascending */
    size_t size;
    double total; /* of the counts */
};

static int
by_value(const void *left, const void *right)
{
    const struct weighted *a = left, *b = right;

    return (a->value > b->value) - (a->value < b->value);
}

/* Equal values of several slices become one: the list does not depend on how slices are cut. */
static void
merge_equal(struct weighted_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->size; i++) {
        if (kept > 0 && list->items[kept - 1].value == list->items[i].value)
            list->items[kept - 1].count += list->items[i].count;
        else
            list->items[kept++] = list->items[i];
    }
    list->size = kept;
}

static int
gather(const struct basic_input *input, struct weighted_list *list)
{
    const size_t all = input->histogram_count * input->values;
    size_t filled = 0;

    for (size_t i = 0; i < all; i++)
        filled += input->histograms[i] > 0;
    *list = (struct weighted_list){.items = malloc((filled + 1) * sizeof(*list->items))};
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < all; i++) {
        const struct image_rescale *rescale = &input->rescales[i / input->values];
        const double stored = (double)input->smallest + (double)(i % input->values);

        if (input->histograms[i] == 0)
            continue;
        list->items[list->size++] =
            (struct weighted){rescale->slope * stored + rescale->intercept, input->histograms[i]};
        list->total += (double)input->histograms[i];
    }
    qsort(list->items, list->size, sizeof(*list->items), by_value);
    merge_equal(list);
    return 0;
}

/* The value at a rank, from 0, of the sorted voxels. */
static double
at_rank(const struct weighted_list *list, double rank)
{
    double passed = 0;

    for (size_t i = 0; i < list->size; i++) {
        passed += (double)list->items[i].count;
        if (rank < passed)
            return list->items[i].value;
    }
    return list->items[list->size - 1].value;
}

/* Between the two nearest ranks, linearly: NumPy's and pyradiomics' definition. */
static double
percentile(const struct weighted_list *list, double fraction)
{
    const double rank = fraction * (list->total - 1), below = floor(rank);
    const double low = at_rank(list, below), high = at_rank(list, ceil(rank));

    return low + (high - low) * (rank - below);
}

/* -------------------------------------------------------------------------- the features -- */

static void
put(struct feature_value values[BASIC_FEATURES], enum basic_feature feature, double value)
{
    values[feature] = (struct feature_value){value, FEATURES_PRESENT};
}

static void
put_moments(const struct weighted_list *list, struct feature_value values[BASIC_FEATURES])
{
    const double least = list->items[0].value; /* of one value the mean is this, exactly */
    double above = 0, squares = 0, second = 0, third = 0, fourth = 0;

    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, value = list->items[i].value;

        above += count * (value - least);
        squares += count * value * value;
    }
    const double mean = least + above / list->total;
    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, from = list->items[i].value - mean;

        second += count * from * from;
        third += count * from * from * from;
        fourth += count * from * from * from * from;
    }
    second /= list->total;
    put(values, BASIC_MEAN, mean);
    put(values, BASIC_VARIANCE, second);
    put(values, BASIC_STANDARD_DEVIATION, sqrt(second));
    put(values, BASIC_ENERGY, squares);
    put(values, BASIC_ROOT_MEAN_SQUARE, sqrt(squares / list->total));
    values[BASIC_SKEWNESS].absence = values[BASIC_KURTOSIS].absence = FEATURES_ONE_LEVEL;
    if (second > 0) {
        put(values, BASIC_SKEWNESS, third / list->total / (second * sqrt(second)));
        put(values, BASIC_KURTOSIS, fourth / list->total / (second * second) - 3);
    }
}

static void
put_ranks(const struct weighted_list *list, struct feature_value values[BASIC_FEATURES])
{
    const double least = list->items[0].value, most = list->items[list->size - 1].value;

    put(values, BASIC_MINIMUM, least);
    put(values, BASIC_MAXIMUM, most);
    put(values, BASIC_RANGE, most - least);
    put(values, BASIC_MEDIAN, percentile(list, 0.5));
    put(values, BASIC_PERCENTILE_10, percentile(list, 0.1));
    put(values, BASIC_PERCENTILE_90, percentile(list, 0.9));
    put(values, BASIC_INTERQUARTILE_RANGE, percentile(list, 0.75) - percentile(list, 0.25));
}

/* Of the levels; values that have none (re-segmentation) take no part. */
static int
put_entropy(const struct basic_input *input, struct feature_value values[BASIC_FEATURES])
{
    double *counts = calloc((size_t)input->levels + 1, sizeof(*counts)), total = 0, sum = 0;

    if (!counts)
        return -ENOMEM;
    for (size_t i = 0; i < input->histogram_count * input->values; i++)
        counts[input->level_of[i]] += (double)input->histograms[i];
    for (int level = 1; level <= input->levels; level++)
        total += counts[level];
    for (int level = 1; level <= input->levels; level++)
        if (counts[level] > 0)
            sum -= counts[level] / total * log2(counts[level] / total);
    free(counts);
    if (total > 0)
        put(values, BASIC_ENTROPY, sum > 0 ? sum : 0);
    return 0;
}

static void
put_place(const struct basic_input *input, struct feature_value values[BASIC_FEATURES])
{
    const struct basic_region *region = input->region;
    const double voxel = input->spacing[0] * input->spacing[1] * input->spacing[2];
    double centre[3];

    for (int i = 0; i < 3; i++)
        centre[i] = (double)region->sum[i] / (double)region->voxels;
    put(values, BASIC_VOLUME_ML, (double)region->voxels * voxel / 1000);
    for (int i = 0; i < 3; i++) {
        const double *to = input->voxel_to_mm[i];

        put(values, (enum basic_feature)(BASIC_CENTROID_X + i),
            to[0] * centre[0] + to[1] * centre[1] + to[2] * centre[2] + to[3]);
        put(values, (enum basic_feature)(BASIC_BOX_X + i),
            (double)(region->last[i] - region->first[i] + 1) * input->spacing[i]);
    }
}

int
basic_features(const struct basic_input *input, struct feature_value values[BASIC_FEATURES])
{
    struct weighted_list list;
    int error = 0;

    for (int f = 0; f < BASIC_FEATURES; f++)
        values[f] = (struct feature_value){0, FEATURES_NO_VOXEL};
    put(values, BASIC_VOXEL_COUNT, (double)input->region->voxels);
    put(values, BASIC_VOLUME_ML, 0);
    if (input->region->voxels == 0)
        return 0;
    put_place(input, values);
    if (gather(input, &list))
        return -ENOMEM;
    if (list.size > 0) { /* all of the region may be padding */
        put_moments(&list, values);
        put_ranks(&list, values);
        values[BASIC_ENTROPY].absence = input->level_of ? FEATURES_NO_VOXEL : FEATURES_NO_LEVELS;
        error = input->level_of ? put_entropy(input, values) : 0;
    }
    free(list.items);
    return error;
}
