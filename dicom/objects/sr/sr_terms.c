/* sr_terms.c - see sr_terms.h. */
#include "dicom/objects/sr/sr_terms.h"

#include "base/quantities.h"
#include "dicom/read/suv/suv.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Abbreviations of the schemes, for the tables. */
#define IBSI CONCEPT_IBSI_SCHEME
#define OWN  CONCEPT_OWN_SCHEME

/* How reports encode a setting (feature_settings.def). */
struct report_row {
    /* position among the settings, from 1; 0: not encoded by this row */
    int place;
    const char *only;              /* the only value to encode; NULL for all */
    struct coded_concept modifier; /* name of a code */
    struct coded_concept value;    /* the code; if absent, that of the setting's word (terms.def) */
    struct coded_concept number;   /* name of a number */
    const char *unit;              /* UCUM unit of the number; NULL: that of the image's values */
    struct coded_concept words;    /* name of a text */
};

static const struct report_row rows[FEATURE_SETTING_COUNT] = {
#define SETTING(key, kind, ...) [FEATURE_##key] = {__VA_ARGS__},
#include "base/feature_settings.def"
#undef SETTING
};

/* Code of a setting's word, and the name of the number that comes with it. */
static const struct term {
    enum feature_setting setting;
    const char *word;
    struct coded_concept code;
    enum feature_setting number_setting;
    struct coded_concept number;
} terms[] = {

#define AGGREGATION(id, name, scheme, value, meaning)                                                                  \
    {FEATURE_aggregation, name, {value, scheme, meaning}, FEATURE_SETTING_COUNT, {0}},
#define DIMENSION(id, name, scheme, value, meaning)                                                                    \
    {FEATURE_aggregation, name, {value, scheme, meaning}, FEATURE_SETTING_COUNT, {0}},
#define INTERPOLATION(id, name, scheme, value, meaning, order)                                                         \
    {FEATURE_interpolation, name, {value, scheme, meaning}, FEATURE_SETTING_COUNT, {0}},
#define FILTER(id, name, scheme, value, meaning)                                                                       \
    {FEATURE_filter, name, {value, scheme, meaning}, FEATURE_SETTING_COUNT, {0}},
#define DISCRETISATION(id, name, scheme, value, meaning, with, with_scheme, with_value, with_meaning)                  \
    {FEATURE_discretisation, name, {value, scheme, meaning}, FEATURE_##with, {with_value, with_scheme, with_meaning}},
#include "base/terms.def"
};

static void
add_modifier(struct sr_measurement *measurement, const struct coded_concept *name, const struct coded_concept *value)
{
    struct coded_concept *modifier = measurement->modifiers[measurement->modifier_count++];
    modifier[0] = *name;
    modifier[1] = *value;
}

/* Settings of a measurement, while they are added. */
struct sr_description {
    struct sr_measurement *measurement;
    const char *settings, *value_unit;
    char (*words)[FEATURE_SETTING]; /* [SR_MAX_WORDS] */
};

/* Adds a number. A value that is not finite is the open end of a range and is skipped. */
static void
describe_number(const struct sr_description *to, enum feature_setting setting, const struct coded_concept *name)
{
    const char *unit = rows[setting].unit ? rows[setting].unit : to->value_unit;
    const double value = feature_get_number(to->settings, setting);
    if (isfinite(value))
        to->measurement->parameters[to->measurement->parameter_count++] =
            (struct sr_parameter){.concept = *name, .unit = sr_unit(unit), .value = value};
}

static void
describe_setting(const struct sr_description *to, enum feature_setting setting)
{
    const struct report_row *row = &rows[setting];
    char value[FEATURE_SETTING];
    if (!feature_get(to->settings, setting, value) || (row->only && strcmp(row->only, value) != 0))
        return;
    if (row->value.value)
        add_modifier(to->measurement, &row->modifier, &row->value);
    else if (row->modifier.value) {
        for (size_t i = 0; i < COUNT(terms); i++) {
            const struct term *term = &terms[i];
            if (term->setting != setting || strcmp(term->word, value) != 0)
                continue;
            add_modifier(to->measurement, &rows[setting].modifier, &term->code);
            if (term->number.value)
                describe_number(to, term->number_setting, &term->number);
        }
    }
    if (row->number.value)
        describe_number(to, setting, &row->number);
    if (row->words.value) {
        char *text = to->words[to->measurement->words_count];
        memcpy(text, value, strlen(value) + 1);
        to->measurement->words[to->measurement->words_count++] = (struct sr_words){.concept = row->words, .text = text};
    }
}

#define SCHEME_IBSI IBSI
#define SCHEME_OWN  OWN
#define SCHEME_DCM  "DCM"
#define SCHEME_SCT  "SCT"

/* Codes of the values of quantities (quantities.def), by name. */
static const struct quantity_term {
    const char *name;
    struct coded_concept code;
} quantity_terms[] = {

#define QUANTITY_VALUE(ID, quantity, name, ibsi, scheme, code, meaning, ...) {name, {code, SCHEME_##scheme, meaning}},
#include "base/quantities.def"
};

static const struct coded_concept quantity_methods[QUANTITY_VALUES] = {
#define QUANTITY_METHOD(ID, code, meaning) [QUANTITY_VALUE_##ID] = {code, "DCM", meaning},
#include "base/quantities.def"
};

/*
 * Adds the method of a quantity, and that of an SUV (126410 to 126415 DCM) to a measurement in its unit or in a power of
 * it.
 */
static void
describe_method(const struct sr_description *to)
{
    static const struct coded_concept method = {"370129005", "SCT", "Measurement Method"};
    const struct coded_concept *concept = &to->measurement->concept;
    for (size_t i = 0; i < QUANTITY_VALUES; i++) {
        const struct coded_concept *code = &quantity_terms[i].code;
        if (quantity_methods[i].value && concept->value && strcmp(concept->value, code->value) == 0 &&
            strcmp(concept->scheme, code->scheme) == 0)
            add_modifier(to->measurement, &method, &quantity_methods[i]);
    }
    for (size_t i = 0; i < SUV_UNIT_COUNT; i++) {
        const struct suv_unit_row *row = &suv_unit_rows[i];
        if (strcmp(to->value_unit, row->ucum) == 0 && to->measurement->unit.value &&
            strstr(to->measurement->unit.value, row->ucum))
            add_modifier(to->measurement, &method, &(struct coded_concept){row->method, "DCM", row->method_meaning});
    }
}

void
sr_describe(struct sr_measurement *measurement, const char *settings, const char *value_unit,
            char words[SR_MAX_WORDS][FEATURE_SETTING])
{
    const struct sr_description to = {measurement, settings, value_unit, words};
    bool has[FEATURE_SETTING_COUNT] = {false};
    char key[64], value[FEATURE_SETTING];
    describe_method(&to);
    for (const char *at = settings; feature_next_setting(&at, key, value);)
        for (int s = 0; s < FEATURE_SETTING_COUNT; s++)
            has[s] |= strcmp(feature_setting_rows[s].key, key) == 0;
    for (int place = 1; place <= FEATURE_SETTING_COUNT; place++)
        for (int s = 0; s < FEATURE_SETTING_COUNT; s++)
            if (has[s] && rows[s].place == place)
                describe_setting(&to, (enum feature_setting)s);
}

struct coded_concept
sr_feature_concept(const char *ibsi, const char *name, const char *meaning)
{
    static const struct {
        const char *name;
        struct coded_concept code;
    } others[] = {

#define QUANTITY_VALUE(ID, quantity, name, ibsi, scheme, code, meaning, ...)                                           \
    {name "_change", {"d_" #ID, CONCEPT_OWN_SCHEME, "Change of " meaning}},                                            \
        {name "_relative_change", {"rd_" #ID, CONCEPT_OWN_SCHEME, "Relative change of " meaning}},
#include "base/quantities.def"
        {"volume_change", {"d_VOLUME", CONCEPT_OWN_SCHEME, "Change of Volume"}},
        {"volume_relative_change", {"rd_VOLUME", CONCEPT_OWN_SCHEME, "Relative change of Volume"}},
        {"standard_deviation", {"386136009", "SCT", "Standard Deviation"}},
        /* Code Value has at most 16 characters, and some readers do not support Long Code Value. */
        {"maximal_correlation_coefficient", {"max_correlation", CONCEPT_OWN_SCHEME, "Maximal correlation coefficient"}},
        {"perimeter_surface_ratio", {"perimeter_ratio", CONCEPT_OWN_SCHEME, "Perimeter to surface ratio"}},
        {"spherical_disproportion", {"disproportion", CONCEPT_OWN_SCHEME, "Spherical disproportion"}},
        {"major_axis_length", {"major_axis", CONCEPT_OWN_SCHEME, "Major axis length"}},
        {"minor_axis_length", {"minor_axis", CONCEPT_OWN_SCHEME, "Minor axis length"}},
        {"maximum_2d_diameter_slice", {"max_2d_slice", CONCEPT_OWN_SCHEME, "Maximum 2D diameter, slices"}},
        {"maximum_2d_diameter_column", {"max_2d_column", CONCEPT_OWN_SCHEME, "Maximum 2D diameter, columns"}},
        {"maximum_2d_diameter_row", {"max_2d_row", CONCEPT_OWN_SCHEME, "Maximum 2D diameter, rows"}},
    };

    if (ibsi[0] != '\0')
        return (struct coded_concept){ibsi, CONCEPT_IBSI_SCHEME, meaning};
    for (size_t i = 0; i < COUNT(quantity_terms); i++) {
        if (strcmp(quantity_terms[i].name, name) == 0)
            return quantity_terms[i].code;
    }
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
        {"d", "day"},
    };
    for (size_t i = 0; i < COUNT(meanings); i++) {
        if (strcmp(meanings[i][0], ucum) == 0)
            return (struct coded_concept){ucum, "UCUM", meanings[i][1]};
    }
    for (size_t i = 0; i < SUV_UNIT_COUNT; i++) {
        if (strcmp(suv_unit_rows[i].ucum, ucum) == 0)
            return (struct coded_concept){ucum, "UCUM", suv_unit_rows[i].ucum_meaning};
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
