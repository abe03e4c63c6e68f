/* first_order.c - intensity-based statistics (IBSI 3.3) from value histograms. */
#include "kernels/features/first_order.h"

#include "kernels/features/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct feature_definition first_order_definitions[FIRST_ORDER_FEATURES] = {
    {"mean", "Mean", "Q4LE", .unit = "", .value_power = 1},
    {"standard_deviation", "Standard deviation", "", .unit = "", .value_power = 1},
    {"variance", "Variance", "ECT3", .unit = "", .value_power = 2},
    {"skewness", "Skewness", "KE2A", .unit = "1"},
    {"kurtosis", "(Excess) kurtosis", "IPH6", .unit = "1"},
    {"median", "Median", "Y12H", .unit = "", .value_power = 1},
    {"minimum", "Minimum", "1GSF", .unit = "", .value_power = 1},
    {"percentile_10", "10th percentile", "QG58", .unit = "", .value_power = 1},
    {"percentile_90", "90th percentile", "8DWT", .unit = "", .value_power = 1},
    {"maximum", "Maximum", "84IY", .unit = "", .value_power = 1},
    {"interquartile_range", "Interquartile range", "SALO", .unit = "", .value_power = 1},
    {"range", "Range", "2OJQ", .unit = "", .value_power = 1},
    {"mean_absolute_deviation", "Mean absolute deviation", "4FUA", .unit = "", .value_power = 1},
    {"robust_mean_absolute_deviation", "Robust mean absolute deviation", "1128", .unit = "", .value_power = 1},
    {"median_absolute_deviation", "Median absolute deviation", "N72L", .unit = "", .value_power = 1},
    {"coefficient_of_variation", "Coefficient of variation", "7TET", .unit = "1"},
    {"quartile_coefficient_of_dispersion", "Quartile coefficient of dispersion", "9S40", .unit = "1"},
    {"energy", "Energy", "N8CA", .unit = "", .value_power = 2, .of_shift = true},
    {"root_mean_square", "Root mean square", "5ZWQ", .unit = "", .value_power = 1, .of_shift = true},
    {"entropy", "Discretised intensity entropy", "TLU2", .unit = "1", .of_levels = true},
};

/* Computes the statistics of the kept values. Returns 0, -ENODATA if there are none, or -ENOMEM. */
static int
first_order_statistics(const struct feature_region *region, struct feature_value statistics[STATISTICS])
{
    const struct feature_volume *volume = region->volume;
    const double shift = volume->options->energy_shift;
    const struct image_extent extent = feature_extent(volume);
    struct value_list list;

    if (volume->reals)
        return statistics_of_reals(volume->lane, volume->reals, &extent, region->bits, region->kept, shift, statistics);
    if (value_list_make(region, &list))
        return -ENOMEM;
    if (list.size > 0)
        statistics_of(&list, shift, statistics);
    free(list.items);
    return list.size > 0 ? 0 : -ENODATA;
}

static int
first_order_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                   struct feature_value *values)
{
    struct feature_value statistics[STATISTICS];
    uint64_t *levels = NULL, any = 0;
    const int rc = first_order_statistics(region, statistics);

    (void)set;
    (void)counts;
    if (rc)
        return rc == -ENODATA ? 0 : rc; /* the whole region may be padding */
    /* The standard deviation follows the mean, and the entropy is last. The others are in the
     * order of enum statistic. */
    values[FIRST_ORDER_MEAN] = statistics[STATISTIC_MEAN];
    values[FIRST_ORDER_STANDARD_DEVIATION] = feature_present(sqrt(statistics[STATISTIC_VARIANCE].value));
    for (int s = STATISTIC_VARIANCE; s < STATISTICS; s++)
        values[FIRST_ORDER_VARIANCE + s - STATISTIC_VARIANCE] = statistics[s];
    if (region->no_levels) {
        values[FIRST_ORDER_ENTROPY] = feature_absent(region->no_levels);
        return 0;
    }
    /* The entropy is that of the levels. Values without a level (re-segmentation) do not count. */
    levels = malloc((size_t)region->levels * sizeof(*levels));
    if (!levels)
        return -ENOMEM;
    level_counts(region, levels);
    for (int level = 0; level < region->levels; level++)
        any |= levels[level];
    if (any)
        values[FIRST_ORDER_ENTROPY] = feature_present(entropy_of_counts(levels, (size_t)region->levels));
    free(levels);
    return 0;
}

/* The entropy is reported by one family only. */
static bool
first_order_tells(const struct texture_options *options, size_t feature)
{
    return feature != FIRST_ORDER_ENTROPY || !texture_wants(options, TEXTURE_FAMILY_intensity_histogram);
}

const struct feature_family family_first_order = {
    .name = "first-order",
    .definitions = first_order_definitions,
    .definition_count = FIRST_ORDER_FEATURES,
    .needs = FEATURE_NEEDS_VALUES,
    .choice = TEXTURE_FAMILY_first_order,
    .by_first_order = true,
    .tells = first_order_tells,
    .bytes = value_list_bytes,
    .values = first_order_values,
};
