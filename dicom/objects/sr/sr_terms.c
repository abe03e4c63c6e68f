/* sr_terms.c - see sr_terms.h. */
#include "dicom/objects/sr/sr_terms.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A code, by what configuration, rows and features.json call it. */
struct term {
    const char *name;
    struct coded_concept code;
};

#define SCHEME_IBSI SR_IBSI_SCHEME
#define SCHEME_OWN  CONCEPT_OWN_SCHEME

static const struct term aggregations[] = {
#define AGGREGATION(id, name, scheme, code, meaning) {name, {code, SCHEME_##scheme, meaning}},
#include "base/terms.def"
};

/* A way to make grey levels, and what its one number is called. */
static const struct discretisation {
    const char *name;
    struct coded_concept code;

    enum { OF_levels, OF_bin_width } number; /* which setting it is */
    struct coded_concept parameter;
} discretisations[] = {

#define DISCRETISATION(id, name, scheme, code, meaning, number, number_scheme, number_code,        \
                       number_meaning)                                                             \
    {name,                                                                                         \
     {code, SCHEME_##scheme, meaning},                                                             \
     OF_##number,                                                                                  \
     {number_code, SCHEME_##number_scheme, number_meaning}},
#include "base/terms.def"
};

static bool
is_set(const char *text)
{
    return text && text[0] != '\0';
}

static void
add_modifier(struct sr_measurement *measurement, const struct coded_concept *name,
             const struct coded_concept *value)
{
    struct coded_concept *modifier = measurement->modifiers[measurement->modifier_count++];
    modifier[0] = *name;
    modifier[1] = *value;
}

static void
add_parameter(struct sr_measurement *measurement, const struct coded_concept *name, double value,
              const char *unit)
{
    measurement->parameters[measurement->parameter_count++] =
        (struct sr_parameter){.concept = *name, .unit = sr_unit(unit), .value = value};
}

static void
add_aggregation(struct sr_measurement *measurement, const struct sr_settings *settings)
{
    static const struct coded_concept name = {"5QB6", SR_IBSI_SCHEME, "Feature aggregation"};
    static const struct coded_concept matrix = {"MATRIX", CONCEPT_OWN_SCHEME,
                                                "Co-occurrence matrix"};
    static const struct coded_concept directional = {"DIRECTIONAL", CONCEPT_OWN_SCHEME,
                                                     "Directional: pairs count in one order"};
    for (size_t i = 0; i < COUNT(aggregations); i++) {
        if (strcmp(aggregations[i].name, settings->aggregation) == 0)
            add_modifier(measurement, &name, &aggregations[i].code);
    }
    if (!settings->symmetric)
        add_modifier(measurement, &matrix, &directional);
}

static void
add_discretisation(struct sr_measurement *measurement, const struct sr_settings *settings)
{
    static const struct coded_concept name = {"4R0B", SR_IBSI_SCHEME, "Intensity discretisation"};
    for (size_t i = 0; i < COUNT(discretisations); i++) {
        const struct discretisation *way = &discretisations[i];
        if (strcmp(way->name, settings->discretisation) != 0)
            continue;
        add_modifier(measurement, &name, &way->code);
        if (way->number == OF_bin_width)
            add_parameter(measurement, &way->parameter, settings->bin_width, settings->value_unit);
        else
            add_parameter(measurement, &way->parameter, settings->levels, "1");
    }
}

static void
add_range(struct sr_measurement *measurement, const struct sr_settings *settings)
{
    static const struct coded_concept name = {"IF9H", SR_IBSI_SCHEME, "Re-segmentation"};
    static const struct coded_concept range = {"USB3", SR_IBSI_SCHEME, "Range re-segmentation"};
    static const struct coded_concept ends[2] = {
        {"RANGE_LOW", CONCEPT_OWN_SCHEME, "Lower end of the re-segmentation range"},
        {"RANGE_HIGH", CONCEPT_OWN_SCHEME, "Upper end of the re-segmentation range"},
    };
    add_modifier(measurement, &name, &range);
    for (int i = 0; i < 2; i++) {
        if (isfinite(settings->range[i]))
            add_parameter(measurement, &ends[i], settings->range[i], settings->value_unit);
    }
}

void
sr_describe(struct sr_measurement *measurement, const struct sr_settings *settings)
{
    static const struct coded_concept distance = {"PVMT", SR_IBSI_SCHEME, "Chebyshev norm"};
    if (is_set(settings->aggregation))
        add_aggregation(measurement, settings);
    if (is_set(settings->discretisation))
        add_discretisation(measurement, settings);
    if (settings->has_range)
        add_range(measurement, settings);
    if (settings->distance > 0)
        add_parameter(measurement, &distance, settings->distance, "{voxels}");
    if (is_set(settings->directions))
        measurement->words = (struct sr_words){
            .concept = {"DIRECTIONS", CONCEPT_OWN_SCHEME, "Directions"},
            .text = settings->directions,
        };
}

struct coded_concept
sr_feature_concept(const char *ibsi, const char *name, const char *meaning)
{
    static const struct term others[] = {
        {"standard_deviation", {"386136009", "SCT", "Standard Deviation"}},
        /* Code Value has 16 characters, and not every reader knows Long Code Value. */
        {"maximal_correlation_coefficient",
         {"max_correlation", CONCEPT_OWN_SCHEME, "Maximal correlation coefficient"}},
    };
    if (is_set(ibsi))
        return (struct coded_concept){ibsi, SR_IBSI_SCHEME, meaning};
    for (size_t i = 0; i < COUNT(others); i++) {
        if (strcmp(others[i].name, name) == 0)
            return others[i].code;
    }
    return (struct coded_concept){name, CONCEPT_OWN_SCHEME, meaning};
}

struct coded_concept
sr_unit(const char *ucum)
{
    static const char *const meanings[][2] = {
        {"1", "no units"},
        {"ml", "milliliter"},
        {"mm", "millimeter"},
        {"{voxels}", "voxels"},
        {"[hnsf'U]", "Hounsfield unit"},
        {"[hnsf'U]2", "square Hounsfield unit"},
        {"Bq/ml", "Becquerels/milliliter"},
        {"cm2/ml", "Centimeter**2/milliliter"},
        {"%", "Percent"},
    };
    for (size_t i = 0; i < COUNT(meanings); i++) {
        if (strcmp(meanings[i][0], ucum) == 0)
            return (struct coded_concept){ucum, "UCUM", meanings[i][1]};
    }
    return (struct coded_concept){ucum, "UCUM", ucum};
}

void
sr_make_absent(struct sr_measurement *measurement, const char *reason)
{
    static const struct {
        const char *reason, *words;
        enum sr_qualifier qualifier;
    } reasons[] = {

#define MISSING(id, qualifier, words) {#id, words, SR_##qualifier},
#include "base/terms.def"
    };

    measurement->absence = reason;
    for (size_t i = 0; i < COUNT(reasons); i++) {
        if (strcmp(reasons[i].reason, reason) == 0) {
            measurement->absence = reasons[i].words;
            measurement->qualifier = reasons[i].qualifier;
        }
    }
}
