/* measurements.c - see measurements.h. */
#include "measurements.h"

#include "file_ops.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE_SIZE    17 /* Code Value is SH, of 16 characters */
#define MEANING_SIZE 65 /* Code Meaning is LO, of 64 */

/* Texts of one measurement that are made for it. */
struct measurement_text {
    char concept[FEATURE_NAME];
    char offsets[CODE_SIZE];
    char offsets_meaning[MEANING_SIZE];
};

/* -------------------------------------------------------------------------------- concepts -- */

static const struct {
    const char *name;
    struct seg_code code;
} named[] = {
    {"standard_deviation", {"386136009", "SCT", "Standard Deviation"}},
    {"maximal_correlation_coefficient",
     {"MAX_CORRELATION", SR_OWN_SCHEME, "Maximal correlation coefficient"}},
};

static struct seg_code
concept_of(const struct feature *feature, struct measurement_text *text)
{
    if (feature->ibsi[0])
        return (struct seg_code){feature->ibsi, SR_IBSI_SCHEME, feature->meaning};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strcmp(feature->name, named[i].name) == 0)
            return named[i].code;
    for (size_t i = 0; feature->name[i]; i++)
        text->concept[i] = (char)toupper((unsigned char)feature->name[i]);
    return (struct seg_code){text->concept, SR_OWN_SCHEME, feature->meaning};
}

/* What the units of PS3.16 are called; one that is not known is its own name. */
static struct seg_code
unit_of(const char *unit)
{
    static const char *const meanings[][2] = {
        {"1", "no units"},
        {"ml", "milliliter"},
        {"mm", "millimeter"},
        {"[hnsf'U]", "Hounsfield unit"},
        {"[hnsf'U]2", "Square Hounsfield unit"},
    };
    const char *meaning = unit;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(unit, meanings[i][0]) == 0)
            meaning = meanings[i][1];
    return (struct seg_code){unit, "UCUM", meaning};
}

/* -------------------------------------------------------------------------------- settings -- */

struct setting {
    const char *name; /* as the feature has it */
    struct seg_code code;
};

static const struct setting aggregations[] = {
    {"BTW3", {"BTW3", SR_IBSI_SCHEME, "2D averaged"}},
    {"SUJT", {"SUJT", SR_IBSI_SCHEME, "2D slice-merged"}},
    {"JJUI", {"JJUI", SR_IBSI_SCHEME, "2.5D direction-merged"}},
    {"ZW7Z", {"ZW7Z", SR_IBSI_SCHEME, "2.5D merged"}},
    {"ITBB", {"ITBB", SR_IBSI_SCHEME, "3D averaged"}},
    {"IAZD", {"IAZD", SR_IBSI_SCHEME, "3D merged"}},
};

static const struct setting discretisations[] = {
    {"paper", {"EQUAL_PARTS_256", SR_OWN_SCHEME, "Equal parts of the stored values 0 to 255"}},
    {"fixed-bin-number", {"K15C", SR_IBSI_SCHEME, "Fixed bin number"}},
    {"fixed-bin-size", {"Q3RU", SR_IBSI_SCHEME, "Fixed bin size"}},
    {"pyradiomics-bin-width",
     {"BIN_WIDTH_AT_0", SR_OWN_SCHEME, "Bins of fixed size with edges at multiples of it"}},
};

static const struct setting angles[] = {
    {"0", {"ANGLE_0", SR_OWN_SCHEME, "0 degrees"}},
    {"45", {"ANGLE_45", SR_OWN_SCHEME, "45 degrees"}},
    {"90", {"ANGLE_90", SR_OWN_SCHEME, "90 degrees"}},
    {"135", {"ANGLE_135", SR_OWN_SCHEME, "135 degrees"}},
};

static const struct seg_code aggregation_name = {"5QB6", SR_IBSI_SCHEME,
                                                 "Texture matrix aggregation"};
static const struct seg_code discretisation_name = {"DISCRETISATION", SR_OWN_SCHEME,
                                                    "Discretisation"};
static const struct seg_code symmetry_name = {"SYMMETRY", SR_OWN_SCHEME,
                                              "Symmetry of the texture matrix"};
static const struct seg_code symmetric = {"SYMMETRIC", SR_OWN_SCHEME, "Symmetric"};
static const struct seg_code directional = {"DIRECTIONAL", SR_OWN_SCHEME, "Directional"};
static const struct seg_code direction_name = {"DIRECTION", SR_OWN_SCHEME,
                                               "Direction of neighbours"};

static void
add_modifier(struct sr_measurement *measurement, const struct seg_code *name,
             const struct seg_code *value)
{
    if (measurement->modifier_count == SR_MAX_MODIFIERS)
        return;
    measurement->modifiers[measurement->modifier_count][0] = *name;
    measurement->modifiers[measurement->modifier_count++][1] = *value;
}

static void
add_setting(struct sr_measurement *measurement, const struct seg_code *name,
            const struct setting *settings, size_t count, const char *which)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(settings[i].name, which) == 0)
            add_modifier(measurement, name, &settings[i].code);
}

/* "0,90" is a modifier for each; three at most, for four are all. */
static void
add_angles(struct sr_measurement *measurement, const char *directions)
{
    char copy[sizeof((struct feature *)NULL)->directions];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", directions);
    for (char *angle = strtok_r(copy, ",", &rest); angle; angle = strtok_r(NULL, ",", &rest))
        add_setting(measurement, &direction_name, angles, sizeof angles / sizeof angles[0], angle);
}

/* Offsets have no code of theirs: the value tells one set from another, the meaning is for people,
 * and as long as a meaning may be. */
static void
add_offsets(struct sr_measurement *measurement, const char *directions,
            struct measurement_text *text)
{
    uint64_t digest = file_digest(0, directions, strlen(directions));
    snprintf(text->offsets, sizeof text->offsets, "OFFSETS_%08" PRIX32, (uint32_t)digest);
    snprintf(text->offsets_meaning, sizeof text->offsets_meaning, "Offsets %.56s", directions);
    const struct seg_code offsets = {text->offsets, SR_OWN_SCHEME, text->offsets_meaning};
    add_modifier(measurement, &direction_name, &offsets);
}

static void
add_modifiers(struct sr_measurement *measurement, const struct feature *feature,
              struct measurement_text *text)
{
    add_setting(measurement, &aggregation_name, aggregations,
                sizeof aggregations / sizeof aggregations[0], feature->aggregation_ibsi);
    add_setting(measurement, &discretisation_name, discretisations,
                sizeof discretisations / sizeof discretisations[0], feature->discretisation);
    if (feature->aggregation[0])
        add_modifier(measurement, &symmetry_name, feature->symmetric ? &symmetric : &directional);
    if (feature->directions[0] == '(')
        add_offsets(measurement, feature->directions, text);
    else if (feature->directions[0])
        add_angles(measurement, feature->directions);
}

static void
add_parameter(struct sr_measurement *measurement, const char *code, const char *meaning,
              const char *unit, double value)
{
    measurement->parameters[measurement->parameter_count++] = (struct sr_parameter){
        .concept = {code, SR_OWN_SCHEME, meaning}, .unit = unit_of(unit), .value = value};
}

static void
add_parameters(struct sr_measurement *measurement, const struct feature *feature,
               const char *value_unit)
{
    if (feature->levels > 0)
        add_parameter(measurement, "LEVELS", "Number of grey levels", "1", feature->levels);
    if (feature->bin_width > 0)
        add_parameter(measurement, "BIN_WIDTH", "Bin width", value_unit, feature->bin_width);
    if (feature->distance > 0)
        add_parameter(measurement, "DISTANCE", "Chebyshev distance in voxels", "1",
                      feature->distance);
    if (feature->has_range) {
        add_parameter(measurement, "RANGE_LOW", "Lower end of the re-segmentation range",
                      value_unit, feature->range[0]);
        add_parameter(measurement, "RANGE_HIGH", "Upper end of the re-segmentation range",
                      value_unit, feature->range[1]);
    }
}

/* --------------------------------------------------------------------------- measurements -- */

static const struct absence {
    const char *reason;
    const char *words;
    enum sr_qualifier qualifier;
} absences[] = {
    {"EMPTY_REGION", "The region has no voxel with a value.", SR_NOT_A_NUMBER},
    {"NO_NEIGHBOURS", "No two voxels of the region are neighbours.", SR_NOT_A_NUMBER},
    {"ONE_GREY_LEVEL", "Not defined for a region of one value.", SR_NOT_A_NUMBER},
    {"NOT_DISCRETISED", "The values could not be made grey levels with these settings.",
     SR_MEASUREMENT_FAILURE},
};

static void
put_absence(struct sr_measurement *measurement, const char *reason)
{
    measurement->absence = reason;
    for (size_t i = 0; i < sizeof absences / sizeof absences[0]; i++) {
        if (strcmp(reason, absences[i].reason) == 0) {
            measurement->absence = absences[i].words;
            measurement->qualifier = absences[i].qualifier;
        }
    }
}

static void
fill(struct sr_measurement *measurement, const struct feature *feature, const char *value_unit,
     struct measurement_text *text)
{
    *measurement = (struct sr_measurement){.concept = concept_of(feature, text),
                                           .unit = unit_of(feature->unit),
                                           .value = feature->value};
    put_absence(measurement, feature->absence);
    add_modifiers(measurement, feature, text);
    add_parameters(measurement, feature, value_unit);
}

static void
make_groups(const struct feature_set *set, struct measurements *measurements)
{
    struct sr_group *group = NULL;
    for (size_t i = 0; i < set->count; i++) {
        if (!group || set->items[i].segment != set->items[i - 1].segment) {
            group = &measurements->groups[measurements->group_count++];
            group->segment =
                set->items[i].segment > 0 ? set->items[i].segment - 1 : SR_WHOLE_VOLUME;
            group->measurements = &measurements->items[i];
        }
        group->measurement_count++;
    }
}

int
measurements_make(const struct feature_set *set, const char *value_unit,
                  struct measurements *measurements)
{
    *measurements = (struct measurements){
        .groups = calloc(set->count + 1, sizeof *measurements->groups),
        .items = calloc(set->count + 1, sizeof *measurements->items),
        .texts = calloc(set->count + 1, sizeof *measurements->texts),
    };
    if (!measurements->groups || !measurements->items || !measurements->texts) {
        measurements_free(measurements);
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->count; i++)
        fill(&measurements->items[i], &set->items[i], value_unit, &measurements->texts[i]);
    make_groups(set, measurements);
    return 0;
}

void
measurements_free(struct measurements *measurements)
{
    free(measurements->groups);
    free(measurements->items);
    free(measurements->texts);
    *measurements = (struct measurements){0};
}
