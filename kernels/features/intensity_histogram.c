/* intensity_histogram.c - the histogram of grey levels (IBSI 3.4). */
#include "kernels/features/intensity_histogram.h"

#include "kernels/features/statistics.h"

#include <errno.h>
#include <stdlib.h>

static const struct feature_definition definitions[INTENSITY_HISTOGRAM_FEATURES] = {
    {"discretised_mean", "Mean discretised intensity", "X6K6", .unit = "1"},
    {"discretised_variance", "Discretised intensity variance", "CH89", .unit = "1"},
    {"discretised_skewness", "Discretised intensity skewness", "88K1", .unit = "1"},
    {"discretised_kurtosis", "(Excess) discretised intensity kurtosis", "C3I7", .unit = "1"},
    {"discretised_median", "Median discretised intensity", "WIFQ", .unit = "1"},
    {"discretised_minimum", "Minimum discretised intensity", "1PR8", .unit = "1"},
    {"discretised_percentile_10", "10th discretised intensity percentile", "GPMT", .unit = "1"},
    {"discretised_percentile_90", "90th discretised intensity percentile", "OZ0C", .unit = "1"},
    {"discretised_maximum", "Maximum discretised intensity", "3NCY", .unit = "1"},
    {"histogram_mode", "Intensity histogram mode", "AMMC", .unit = "1"},
    {"discretised_interquartile_range", "Discretised intensity interquartile range", "WR0O", .unit = "1"},
    {"discretised_range", "Discretised intensity range", "5Z3W", .unit = "1"},
    {"histogram_mean_absolute_deviation", "Intensity histogram mean absolute deviation", "D2ZX", .unit = "1"},
    {"histogram_robust_mean_absolute_deviation", "Intensity histogram robust mean absolute deviation", "WRZB",
     .unit = "1"},
    {"histogram_median_absolute_deviation", "Intensity histogram median absolute deviation", "4RNL", .unit = "1"},
    {"histogram_coefficient_of_variation", "Intensity histogram coefficient of variation", "CWYJ", .unit = "1"},
    {"histogram_quartile_coefficient_of_dispersion", "Intensity histogram quartile coefficient of dispersion", "SLWD",
     .unit = "1"},
    {"entropy", "Discretised intensity entropy", "TLU2", .unit = "1"},
    {"uniformity", "Discretised intensity uniformity", "BJ5W", .unit = "1"},
    {"maximum_histogram_gradient", "Maximum histogram gradient", "12CE", .unit = "1"},
    {"maximum_histogram_gradient_intensity", "Maximum histogram gradient intensity", "8E6O", .unit = "1"},
    {"minimum_histogram_gradient", "Minimum histogram gradient", "VQB3", .unit = "1"},
    {"minimum_histogram_gradient_intensity", "Minimum histogram gradient intensity", "RHQZ", .unit = "1"},
};

/* Counts of the levels 1 .. size. `total` must not be 0. */
struct level_histogram {
    const uint64_t *counts;
    int size;
    uint64_t total, sum; /* sum of the counts; sum of the voxels' levels */
};

/* The mode is inserted among the statistics, whose order is otherwise kept. */
static int
put_statistics(const struct level_histogram *histogram, struct feature_value *values)
{
    struct feature_value statistics[STATISTICS];
    struct value_list list = {
        .items = malloc((size_t)histogram->size * sizeof(*list.items)),
        .total = (double)histogram->total,
    };

    if (!list.items)
        return -ENOMEM;
    for (int i = 0; i < histogram->size; i++)
        if (histogram->counts[i] > 0)
            list.items[list.size++] = (struct value_count){i + 1, histogram->counts[i]};
    statistics_of(&list, 0, statistics);
    free(list.items);
    for (int s = STATISTIC_MEAN; s < STATISTIC_ENERGY; s++)
        values[s < STATISTIC_INTERQUARTILE_RANGE ? s : s + 1] = statistics[s];
    return 0;
}

/* Returns the most frequent level, of several that closest to the mean, of two the lower one.
 * Exact: compares |level - sum / total| without division. */
static int
mode_of(const struct level_histogram *histogram)
{
    int64_t closest = 0;
    int mode = 0;

    for (int i = 0; i < histogram->size; i++) {
        const int64_t from = llabs((int64_t)histogram->total * (i + 1) - (int64_t)histogram->sum);

        if (mode > 0 && (histogram->counts[i] < histogram->counts[mode - 1] ||
                         (histogram->counts[i] == histogram->counts[mode - 1] && from >= closest)))
            continue;
        mode = i + 1;
        closest = from;
    }
    return mode;
}

/* Returns twice the slope of the histogram at a level. At its ends, the slope is that between two
 * levels. */
static int64_t
twice_gradient(const struct level_histogram *histogram, int i)
{
    const int before = i > 0 ? i - 1 : i, after = i + 1 < histogram->size ? i + 1 : i;
    const int64_t rise = (int64_t)histogram->counts[after] - (int64_t)histogram->counts[before];

    return after - before == 1 ? 2 * rise : rise;
}

static void
put_gradients(const struct level_histogram *histogram, struct feature_value *values)
{
    int steepest = 0, lowest = 0;

    for (int i = 1; i < histogram->size; i++) {
        const int64_t gradient = twice_gradient(histogram, i);

        steepest = gradient > twice_gradient(histogram, steepest) ? i : steepest;
        lowest = gradient < twice_gradient(histogram, lowest) ? i : lowest;
    }
    values[INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT] = feature_present((double)twice_gradient(histogram, steepest) / 2);
    values[INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT_LEVEL] = feature_present(steepest + 1);
    values[INTENSITY_HISTOGRAM_MINIMUM_GRADIENT] = feature_present((double)twice_gradient(histogram, lowest) / 2);
    values[INTENSITY_HISTOGRAM_MINIMUM_GRADIENT_LEVEL] = feature_present(lowest + 1);
}

static int
intensity_histogram_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                           struct feature_value *values)
{
    uint64_t *of_levels = malloc((size_t)region->levels * sizeof(*of_levels));
    struct level_histogram histogram = {.counts = of_levels, .size = region->levels};
    double squares = 0;
    int rc = 0;

    (void)set;
    (void)counts;
    if (!of_levels)
        return -ENOMEM;
    level_counts(region, of_levels);
    for (int i = 0; i < histogram.size; i++) {
        histogram.total += of_levels[i];
        histogram.sum += of_levels[i] * (uint64_t)(i + 1);
    }
    if (histogram.total > 0) {
        for (int i = 0; i < histogram.size; i++) {
            const double p = (double)of_levels[i] / (double)histogram.total;

            squares += p * p;
        }
        values[INTENSITY_HISTOGRAM_MODE] = feature_present(mode_of(&histogram));
        values[INTENSITY_HISTOGRAM_ENTROPY] =
            feature_present(entropy_of_counts(histogram.counts, (size_t)histogram.size));
        values[INTENSITY_HISTOGRAM_UNIFORMITY] = feature_present(squares);
        put_gradients(&histogram, values);
        rc = put_statistics(&histogram, values);
    }
    free(of_levels);
    return rc;
}

const struct feature_family family_intensity_histogram = {
    .name = "intensity-histogram",
    .definitions = definitions,
    .definition_count = INTENSITY_HISTOGRAM_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .choice = TEXTURE_FAMILY_intensity_histogram,
    .values = intensity_histogram_values,
};
