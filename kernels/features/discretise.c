/*
 * discretise.c - see discretise.h. Rules: floor(g * levels / 256) + 1 of stored values; IBSI K15C
 * and Q3RU; pyradiomics' getBinEdges.
 */
#include "kernels/features/discretise.h"

#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>

/* What the rule counts from: the extremes of the region, and the lower end of the range. */
struct rule {
    const struct discretisation_options *options;
    double lo, hi;
    double origin;
};

/* Of a value that lies in lo .. hi. */
static double
level_of_value(const struct rule *rule, double stored, double value)
{
    const struct discretisation_options *options = rule->options;
    double level;

    switch (options->kind) {
    case DISCRETISATION_STORED_256:
        return floor(stored * options->levels / 256) + 1;
    case DISCRETISATION_FIXED_BIN_NUMBER:
        if (!(rule->hi > rule->lo))
            return 1;
        level = floor(options->levels * (value - rule->lo) / (rule->hi - rule->lo)) + 1;
        return level < options->levels ? level : options->levels;
    case DISCRETISATION_FIXED_BIN_SIZE:
        return floor((value - rule->origin) / options->bin_width) + 1;
    case DISCRETISATION_PYRADIOMICS_BIN_WIDTH:
        return floor(value / options->bin_width) - floor(rule->lo / options->bin_width) + 1;
    case DISCRETISATIONS:
        break;
    }
    return 0;
}

static bool
is_left_out(const struct rule *rule, double value)
{
    const struct discretisation_options *options = rule->options;

    return value < rule->lo || value > rule->hi ||
           (options->has_range && (value < options->range[0] || value > options->range[1]));
}

/* How many levels the rule makes; an empty region has none of its own. */
static double
highest_level(const struct rule *rule)
{
    const struct discretisation_options *options = rule->options;

    if (discretisation_by_number(options->kind))
        return options->levels;
    return rule->lo <= rule->hi ? level_of_value(rule, 0, rule->hi) : 1;
}

int
discretise_most_levels(const struct discretisation_options *options, double lo, double hi)
{
    struct rule rule = {options, lo, hi, lo};

    if (options->has_range) {
        rule.lo = fmax(lo, options->range[0]);
        rule.hi = fmin(hi, options->range[1]);
        rule.origin = options->range[0];
    }
    return (int)fmin(fmax(highest_level(&rule), 2), TEXTURE_MAX_LEVELS);
}

/* False: a value is none of those that the rule takes. */
static bool
discretise_table(const struct rule *rule, const struct image_rescale *rescale, size_t values,
                 int32_t smallest, uint16_t *level_of)
{
    for (size_t i = 0; i < values; i++) {
        const double stored = (double)smallest + (double)i;
        const double value = rescale->slope * stored + rescale->intercept;

        level_of[i] = 0;
        if (is_left_out(rule, value))
            continue;
        if (rule->options->kind == DISCRETISATION_STORED_256 && (stored < 0 || stored > 255))
            return false;
        level_of[i] = (uint16_t)level_of_value(rule, stored, value);
    }
    return true;
}

int
discretise(const struct discretisation_options *options, const struct image_rescale *rescales,
           size_t table_count, size_t values, int32_t smallest, double lo, double hi,
           uint16_t *level_of, int *levels)
{
    const struct rule rule = {options, lo, hi, options->has_range ? options->range[0] : lo};
    const double highest = highest_level(&rule);

    if (!(highest >= 1 && highest <= TEXTURE_MAX_LEVELS))
        return -ERANGE;
    for (size_t table = 0; table < table_count; table++)
        if (!discretise_table(&rule, &rescales[table], values, smallest, level_of + table * values))
            return -EDOM;
    *levels = highest < 2 ? 2 : (int)highest;
    return 0;
}
