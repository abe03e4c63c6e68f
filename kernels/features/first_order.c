/*
 * first_order.c - intensity-based statistics (IBSI 3.3) from value histograms.
 *
 * Histograms of all slices become one list of real-world values with their counts, in ascending
 * order; every statistic is a pass over that list.
 */
#include "kernels/features/first_order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const struct feature_definition first_order_definitions[FIRST_ORDER_FEATURES] = {
    {"mean", "Mean", "Q4LE", "", 1, false},
    {"standard_deviation", "Standard deviation", "", "", 1, false},
    {"variance", "Variance", "ECT3", "", 2, false},
    {"skewness", "Skewness", "KE2A", "1", 0, false},
    {"kurtosis", "(Excess) kurtosis", "IPH6", "1", 0, false},
    {"median", "Median", "Y12H", "", 1, false},
    {"minimum", "Minimum", "1GSF", "", 1, false},
    {"percentile_10", "10th percentile", "QG58", "", 1, false},
    {"percentile_90", "90th percentile", "8DWT", "", 1, false},
    {"maximum", "Maximum", "84IY", "", 1, false},
    {"interquartile_range", "Interquartile range", "SALO", "", 1, false},
    {"range", "Range", "2OJQ", "", 1, false},
    {"energy", "Energy", "N8CA", "", 2, false},
    {"root_mean_square", "Root mean square", "5ZWQ", "", 1, false},
    {"entropy", "Discretised intensity entropy", "TLU2", "1", 0, true},
};

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
weighted_compare(const void *left, const void *right)
{
    const struct weighted *a = left, *b = right;

    return (a->value > b->value) - (a->value < b->value);
}

/* Equal values of several slices become one: the list does not depend on how slices are cut. */
static void
weighted_list_merge(struct weighted_list *list)
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
weighted_list_make(const struct feature_region *region, struct weighted_list *list)
{
    const struct feature_volume *volume = region->volume;
    const size_t all = volume->tables * volume->values;
    size_t filled = 0;

    for (size_t i = 0; i < all; i++)
        filled += region->histograms[i] > 0;
    *list = (struct weighted_list){.items = malloc((filled + 1) * sizeof(*list->items))};
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < all; i++) {
        const struct image_rescale *rescale = &volume->rescales[i / volume->values];
        const double stored = (double)volume->smallest + (double)(i % volume->values);

        if (region->histograms[i] == 0)
            continue;
        list->items[list->size++] =
            (struct weighted){rescale->slope * stored + rescale->intercept, region->histograms[i]};
        list->total += (double)region->histograms[i];
    }
    qsort(list->items, list->size, sizeof(*list->items), weighted_compare);
    weighted_list_merge(list);
    return 0;
}

/* The value at a rank, from 0, of the sorted voxels. */
static double
weighted_list_at(const struct weighted_list *list, double rank)
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
weighted_list_percentile(const struct weighted_list *list, double fraction)
{
    const double rank = fraction * (list->total - 1), below = floor(rank);
    const double low = weighted_list_at(list, below), high = weighted_list_at(list, ceil(rank));

    return low + (high - low) * (rank - below);
}

/* -------------------------------------------------------------------------- the features -- */

static void
first_order_put_moments(const struct weighted_list *list, struct feature_value *values)
{
    const double minimum = list->items[0].value; /* of one value the mean is this, exactly */
    double above = 0, squares = 0, second = 0, third = 0, fourth = 0;

    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, value = list->items[i].value;

        above += count * (value - minimum);
        squares += count * value * value;
    }
    const double mean = minimum + above / list->total;
    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, from = list->items[i].value - mean;

        second += count * from * from;
        third += count * from * from * from;
        fourth += count * from * from * from * from;
    }
    second /= list->total;
    values[FIRST_ORDER_MEAN] = feature_present(mean);
    values[FIRST_ORDER_VARIANCE] = feature_present(second);
    values[FIRST_ORDER_STANDARD_DEVIATION] = feature_present(sqrt(second));
    values[FIRST_ORDER_ENERGY] = feature_present(squares);
    values[FIRST_ORDER_ROOT_MEAN_SQUARE] = feature_present(sqrt(squares / list->total));
    values[FIRST_ORDER_SKEWNESS] = values[FIRST_ORDER_KURTOSIS] =
        feature_absent(FEATURE_ONE_GREY_LEVEL);
    if (second > 0) {
        values[FIRST_ORDER_SKEWNESS] =
            feature_present(third / list->total / (second * sqrt(second)));
        values[FIRST_ORDER_KURTOSIS] =
            feature_present(fourth / list->total / (second * second) - 3);
    }
}

static void
first_order_put_ranks(const struct weighted_list *list, struct feature_value *values)
{
    const double minimum = list->items[0].value, maximum = list->items[list->size - 1].value;

    values[FIRST_ORDER_MINIMUM] = feature_present(minimum);
    values[FIRST_ORDER_MAXIMUM] = feature_present(maximum);
    values[FIRST_ORDER_RANGE] = feature_present(maximum - minimum);
    values[FIRST_ORDER_MEDIAN] = feature_present(weighted_list_percentile(list, 0.5));
    values[FIRST_ORDER_PERCENTILE_10] = feature_present(weighted_list_percentile(list, 0.1));
    values[FIRST_ORDER_PERCENTILE_90] = feature_present(weighted_list_percentile(list, 0.9));
    values[FIRST_ORDER_INTERQUARTILE_RANGE] = feature_present(weighted_list_percentile(list, 0.75) -
                                                              weighted_list_percentile(list, 0.25));
}

/* Of the levels; values that have none (re-segmentation) take no part. */
static int
first_order_put_entropy(const struct feature_region *region, struct feature_value *values)
{
    const size_t entries = region->volume->tables * region->volume->values;
    double *counts = calloc((size_t)region->levels + 1, sizeof(*counts)), total = 0, sum = 0;

    if (!counts)
        return -ENOMEM;
    for (size_t i = 0; i < entries; i++)
        counts[region->level_of[i]] += (double)region->histograms[i];
    for (int level = 1; level <= region->levels; level++)
        total += counts[level];
    for (int level = 1; level <= region->levels; level++)
        if (counts[level] > 0)
            sum -= counts[level] / total * log2(counts[level] / total);
    free(counts);
    if (total > 0)
        values[FIRST_ORDER_ENTROPY] = feature_present(sum > 0 ? sum : 0);
    return 0;
}

static int
first_order_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                   struct feature_value *values)
{
    struct weighted_list list;
    int rc = 0;

    (void)set;
    (void)counts;
    if (weighted_list_make(region, &list))
        return -ENOMEM;
    if (list.size > 0) { /* all of the region may be padding */
        first_order_put_moments(&list, values);
        first_order_put_ranks(&list, values);
        if (region->no_levels)
            values[FIRST_ORDER_ENTROPY] = feature_absent(region->no_levels);
        else
            rc = first_order_put_entropy(region, values);
    }
    free(list.items);
    return rc;
}

static bool
first_order_wanted(const struct texture_options *options)
{
    return options->first_order;
}

const struct feature_family family_first_order = {
    .name = "first-order",
    .definitions = first_order_definitions,
    .definition_count = FIRST_ORDER_FEATURES,
    .needs = FEATURE_NEEDS_VALUES,
    .wanted = first_order_wanted,
    .values = first_order_values,
};
