/* volume_histogram.c - the intensity-volume histogram (IBSI 3.5), from value histograms. */
#include "kernels/features/volume_histogram.h"

#include "kernels/features/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Intensities are those of the image, or bin numbers without a unit: these have separate
 * definitions, which then replace their namesakes. */
enum {
    BINS = VOLUME_HISTOGRAM_FEATURES,
    DEFINITIONS = BINS + 3,
};

static const struct feature_definition volume_histogram_definitions[DEFINITIONS] = {
    {"volume_at_intensity_fraction", "Volume at intensity fraction", "BC2M", .unit = "1", .percent = 10},
    {"volume_at_intensity_fraction", "Volume at intensity fraction", "BC2M", .unit = "1", .percent = 90},
    {"intensity_at_volume_fraction", "Intensity at volume fraction", "GBPN", .unit = "", .value_power = 1,
     .percent = 10},
    {"intensity_at_volume_fraction", "Intensity at volume fraction", "GBPN", .unit = "", .value_power = 1,
     .percent = 90},
    {"volume_fraction_difference", "Volume fraction difference between intensity fractions", "DDTU", .unit = "1"},
    {"intensity_fraction_difference", "Intensity fraction difference between volume fractions", "CNV2", .unit = "",
     .value_power = 1},
    {"intensity_at_volume_fraction", "Intensity at volume fraction", "GBPN", .unit = "1", .percent = 10},
    {"intensity_at_volume_fraction", "Intensity at volume fraction", "GBPN", .unit = "1", .percent = 90},
    {"intensity_fraction_difference", "Intensity fraction difference between volume fractions", "CNV2", .unit = "1"},
};

/* Steps of intensity that occur: intensities are origin + scale * step. Fractions of intensity are
 * relative to the ends. The next step is `next` further. */
struct steps {
    struct value_list list;
    double low, high;
    double next;
    double origin, scale;
};

/* Bins the values: by width, with bin centres as values, or into a fixed number of bins. */
static void
steps_make_bins(struct steps *steps, const struct volume_histogram_options *options)
{
    const bool of_width = options->kind == VOLUME_HISTOGRAM_BIN_SIZE;
    const double least = steps->list.items[0].value;
    const double most = steps->list.items[steps->list.size - 1].value;
    size_t kept = 0;

    for (size_t i = 0; i < steps->list.size; i++) {
        const struct value_count item = steps->list.items[i];
        double step = 1;

        if (of_width)
            step = floor((item.value - steps->low) / options->bin_width) + 0.5;
        else if (most > least)
            step = fmin(floor(options->levels * (item.value - least) / (most - least)) + 1, options->levels);
        if (kept == 0 || steps->list.items[kept - 1].value != step)
            steps->list.items[kept++] = (struct value_count){step, 0};
        steps->list.items[kept - 1].count += item.count;
    }
    steps->list.size = kept;
    steps->next = 1;
    if (of_width) {
        steps->origin = steps->low;
        steps->scale = options->bin_width;
        steps->high = (steps->high - steps->low) / options->bin_width;
        steps->low = 0;
    } else {
        steps->low = 1;
        steps->high = options->levels;
    }
}

/* Makes the steps, or sets *missing to the reason. The caller must free the list if there are
 * steps. */
static int
steps_make(const struct feature_region *region, struct steps *steps, enum feature_missing *missing)
{
    const struct feature_volume *volume = region->volume;
    const struct texture_options *options = volume->options;
    const double *range = options->levels.has_range ? options->levels.range : NULL;

    *steps = (struct steps){.scale = 1, .next = fabs(volume->rescales[0].slope)};
    for (size_t i = 1; i < volume->tables; i++)
        if (fabs(volume->rescales[i].slope) != fabs(volume->rescales[0].slope))
            steps->next = 0; /* values have no common step */
    if (volume->reals)
        steps->next = 0; /* the lowest intensity that at most a part of the volume reaches is then a limit */
    *missing = FEATURE_EMPTY_REGION;
    if (value_list_make(region, &steps->list))
        return -ENOMEM;
    if (steps->list.size == 0)
        return 0;
    steps->low = range && isfinite(range[0]) ? range[0] : steps->list.items[0].value;
    steps->high = range && isfinite(range[1]) ? range[1] : steps->list.items[steps->list.size - 1].value;
    if (options->ivh.kind != VOLUME_HISTOGRAM_VALUES)
        steps_make_bins(steps, &options->ivh);
    *missing = steps->next > 0 || region->volume->reals ? FEATURE_PRESENT : FEATURE_NOT_DISCRETISED;
    return 0;
}

/* Returns the volume fraction with an intensity of at least `percent` of the intensity range. */
static struct feature_value
volume_at(const struct steps *steps, int percent)
{
    double count = 0;

    if (!(steps->high > steps->low))
        return feature_absent(FEATURE_ONE_GREY_LEVEL);
    for (size_t i = 0; i < steps->list.size; i++)
        if (100 * (steps->list.items[i].value - steps->low) >= percent * (steps->high - steps->low))
            count += (double)steps->list.items[i].count;
    return feature_present(count / steps->list.total);
}

/* Returns the lowest step that at most `percent` of the volume reaches: the one after the highest
 * that more than that reaches. */
static double
intensity_at(const struct steps *steps, int percent)
{
    double reaching = 0;
    size_t i = steps->list.size;

    while (i > 0 && 100 * reaching <= percent * steps->list.total)
        reaching += (double)steps->list.items[--i].count;
    return steps->origin + steps->scale * (steps->list.items[i].value + steps->next);
}

static int
volume_histogram_values(const struct feature_region *region, size_t set, const uint64_t *counts,
                        struct feature_value *values)
{
    enum feature_missing missing;
    struct steps steps;

    (void)set;
    (void)counts;
    if (steps_make(region, &steps, &missing))
        return -ENOMEM;
    if (missing == FEATURE_PRESENT) {
        const double high = intensity_at(&steps, 10), low = intensity_at(&steps, 90);

        values[VOLUME_HISTOGRAM_VOLUME_10] = volume_at(&steps, 10);
        values[VOLUME_HISTOGRAM_VOLUME_90] = volume_at(&steps, 90);
        values[VOLUME_HISTOGRAM_VOLUME_DIFFERENCE] = values[VOLUME_HISTOGRAM_VOLUME_10];
        values[VOLUME_HISTOGRAM_VOLUME_DIFFERENCE].value -= values[VOLUME_HISTOGRAM_VOLUME_90].value;
        values[VOLUME_HISTOGRAM_INTENSITY_10] = values[BINS] = feature_present(high);
        values[VOLUME_HISTOGRAM_INTENSITY_90] = values[BINS + 1] = feature_present(low);
        values[VOLUME_HISTOGRAM_INTENSITY_DIFFERENCE] = values[BINS + 2] = feature_present(high - low);
    }
    for (int f = 0; f < DEFINITIONS && missing != FEATURE_PRESENT; f++)
        values[f] = feature_absent(missing);
    free(steps.list.items);
    return 0;
}

static void
volume_histogram_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    (void)set;
    if (options->ivh.kind == VOLUME_HISTOGRAM_BIN_NUMBER) {
        feature_put_text(settings, FEATURE_discretisation, discretisation_names[DISCRETISATION_FIXED_BIN_NUMBER]);
        feature_put_integer(settings, FEATURE_levels, options->ivh.levels);
    }
    if (options->ivh.kind == VOLUME_HISTOGRAM_BIN_SIZE) {
        feature_put_text(settings, FEATURE_discretisation, discretisation_names[DISCRETISATION_FIXED_BIN_SIZE]);
        feature_put_number(settings, FEATURE_bin_width, options->ivh.bin_width);
    }
}

static bool
volume_histogram_tells(const struct texture_options *options, size_t feature)
{
    const bool bins = options->ivh.kind == VOLUME_HISTOGRAM_BIN_NUMBER;

    if (feature >= BINS)
        return bins;
    return !bins || volume_histogram_definitions[feature].value_power == 0;
}

const struct feature_family family_volume_histogram = {
    .name = "intensity-volume-histogram",
    .definitions = volume_histogram_definitions,
    .definition_count = DEFINITIONS,
    .needs = FEATURE_NEEDS_VALUES,
    .choice = TEXTURE_FAMILY_volume_histogram,
    .describe = volume_histogram_describe,
    .tells = volume_histogram_tells,
    .bytes = value_list_bytes,
    .values = volume_histogram_values,
};
