/*
 * discretise.c - see discretise.h. Rules: floor(g * levels / 256) + 1 of stored values; IBSI K15C
 * and Q3RU; pyradiomics' getBinEdges.
 */
#include "kernels/features/discretise.h"

#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct discretise_rule
discretise_rule_of(const struct discretisation_options *options, double lo, double hi)
{
    struct discretise_rule rule = {options, lo, hi, options->has_range ? options->range[0] : lo};

    if (options->kind == DISCRETISATION_PYRADIOMICS_BIN_WIDTH) {
        const double beyond = fmod(lo, options->bin_width); /* of lo's sign, NumPy's remainder is not negative */

        rule.origin = lo - (beyond < 0 ? beyond + options->bin_width : beyond);
    }
    return rule;
}

/* Returns the number of pyradiomics' bin edges up to a value. Edges are rounded as those of NumPy's arange: a value on the edge
 * of a bin whose width is no binary fraction otherwise has another level. */
static double
edges_up_to(const struct discretise_rule *rule, double value)
{
    const double width = (rule->origin + rule->options->bin_width) - rule->origin;
    const double bin = floor((value - rule->origin) / width);

    if (rule->origin + bin * width > value)
        return bin;
    return rule->origin + (bin + 1) * width <= value ? bin + 2 : bin + 1;
}

/* Returns the level of a value, which must lie in lo .. hi. */
static double
level_of_value(const struct discretise_rule *rule, double stored, double value)
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
        return edges_up_to(rule, value);
    case DISCRETISATIONS:
        break;
    }
    return 0;
}

/* Maps the stored values, beginning with the smallest. */
struct level_table {
    const struct image_rescale *rescale;
    size_t values;
    int32_t smallest;
};

static double
table_value(const struct level_table *table, size_t entry)
{
    return table->rescale->slope * ((double)table->smallest + (double)entry) + table->rescale->intercept;
}

/* Returns the first entry whose value is at the bound, or beyond it, in the table's order of
 * values. */
static size_t
table_entry(const struct level_table *table, double bound, bool beyond)
{
    const bool falls = table->rescale->slope < 0;
    size_t first = 0, end = table->values;

    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        const double value = table_value(table, middle);

        if (value == bound ? beyond : (value < bound) != falls)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Returns the number of levels of the rule, which may be undefined for an empty region. */
static double
highest_level(const struct discretise_rule *rule)
{
    const struct discretisation_options *options = rule->options;

    if (discretisation_by_number(options->kind))
        return options->levels;
    return rule->lo <= rule->hi ? level_of_value(rule, 0, rule->hi) : 1;
}

int
discretise_most_levels(const struct discretisation_options *options, double lo, double hi)
{
    const struct discretise_rule rule =
        discretise_rule_of(options, options->has_range ? fmax(lo, options->range[0]) : lo,
                           options->has_range ? fmin(hi, options->range[1]) : hi);

    return (int)fmin(fmax(highest_level(&rule), 2), DISCRETISE_MAX_LEVELS);
}

/* Fills a table. The rule covers the values of the region and of the range. Values are monotone, so that their entries
 * are contiguous. Returns false if the rule does not cover a value. */
static bool
discretise_table(const struct discretise_rule *rule, const struct level_table *table, uint16_t *level_of)
{
    const struct discretisation_options *options = rule->options;
    const double lo = options->has_range ? fmax(rule->lo, options->range[0]) : rule->lo;
    const double hi = options->has_range ? fmin(rule->hi, options->range[1]) : rule->hi;
    const bool falls = table->rescale->slope < 0;

    memset(level_of, 0, table->values * sizeof(*level_of));
    if (!(lo <= hi))
        return true;
    const size_t end = table_entry(table, falls ? lo : hi, true);

    for (size_t i = table_entry(table, falls ? hi : lo, false); i < end; i++) {
        const double stored = (double)table->smallest + (double)i;

        if (options->kind == DISCRETISATION_STORED_256 && (stored < 0 || stored > 255))
            return false;
        level_of[i] = (uint16_t)level_of_value(rule, stored, table_value(table, i));
    }
    return true;
}

int
discretise_count(const struct discretisation_options *options, double lo, double hi, int *levels)
{
    const struct discretise_rule rule = discretise_rule_of(options, lo, hi);
    const double highest = highest_level(&rule);

    if (!(highest >= 1 && highest <= DISCRETISE_MAX_LEVELS))
        return -ERANGE;
    *levels = highest < 2 ? 2 : (int)highest;
    return 0;
}

uint32_t
discretise_value(const struct discretise_rule *rule, double value)
{
    return (uint32_t)level_of_value(rule, 0, value);
}

/* Returns the value, or the nearer end of lo .. hi. */
static inline double
within(double value, double lo, double hi)
{
    value = value > lo ? value : lo;
    return value < hi ? value : hi;
}

/* As edges_up_to(), 4 or 8 at a time. A product with 1 / width is at most one bin off, which both comparisons correct. Values
 * must have fewer than 2^30 bins. */
static void
discretise_by_width(const struct discretise_rule *rule, const double *values, int64_t count, uint16_t *levels)
{
    const double lo = rule->lo, hi = rule->hi, origin = rule->origin;
    const double width = (origin + rule->options->bin_width) - origin, per_width = 1 / width;

    for (int64_t i = 0; i < count; i++) {
        const double value = within(values[i], lo, hi), bin = (double)(int32_t)((value - origin) * per_width);
        const double above = origin + (bin + 1) * width <= value ? 1 : 0, below = origin + bin * width > value ? 1 : 0;

        levels[i] = (uint16_t)(int32_t)(bin + 1 + above - below);
    }
}

void
discretise_values(const struct discretise_rule *rule, const double *values, int64_t count, uint16_t *levels)
{
    const double width = rule->options->bin_width;

    if (rule->options->kind == DISCRETISATION_PYRADIOMICS_BIN_WIDTH && width > 0x1p-1000 &&
        fmax(fabs(rule->lo), fabs(rule->hi)) / width < 0x1p28)
        discretise_by_width(rule, values, count, levels);
    else
        for (int64_t i = 0; i < count; i++)
            levels[i] = (uint16_t)level_of_value(rule, 0, within(values[i], rule->lo, rule->hi));
}

int
discretise(const struct discretisation_options *options, const struct image_rescale *rescales, size_t table_count,
           size_t values, int32_t smallest, double lo, double hi, uint16_t *level_of, int *levels)
{
    const struct discretise_rule rule = discretise_rule_of(options, lo, hi);
    int rc = discretise_count(options, lo, hi, levels);

    if (rc || *levels > TEXTURE_MAX_LEVELS)
        return rc;
    for (size_t t = 0; t < table_count; t++) {
        const struct level_table table = {&rescales[t], values, smallest};

        if (!discretise_table(&rule, &table, level_of + t * values))
            return -EDOM;
    }
    return 0;
}
