/* Measurements in a report: every setting of a job must reach the report. */
#include "service/pipeline/results/measurements.h"

#include "kernels/features/family.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The settings are valid until the next call. */
static struct feature
texture(int32_t segment, const char *aggregation, const char *discretisation)
{
    static char settings[FEATURE_SETTINGS];
    settings[0] = '\0';
    feature_put_text(settings, FEATURE_aggregation, aggregation);
    feature_put_text(settings, FEATURE_discretisation, discretisation);
    feature_put_integer(settings, FEATURE_levels, 32);
    feature_put_number(settings, FEATURE_bin_width, 25);
    feature_put_integer(settings, FEATURE_distance, 1);
    return (struct feature){
        .segment = segment,
        .label = "",
        .family = "glcm",
        .name = "joint_entropy",
        .meaning = "Joint entropy",
        .ibsi = "TU9B",
        .value = 1.5,
        .missing_reason = "",
        .unit = "1",
        .settings = settings,
    };
}

static void
expect_modifier(const struct sr_measurement *measurement, const char *name, const char *value)
{
    for (size_t i = 0; i < measurement->modifier_count; i++) {
        if (strcmp(measurement->modifiers[i][0].value, name) == 0 &&
            (!value || strcmp(measurement->modifiers[i][1].value, value) == 0))
            return;
    }
    ck_abort_msg("there is no modifier %s = %s", name, value ? value : "any");
}

/* The report must have a code for each name of the kernels and the configuration. */
START_TEST(each_name_has_a_code)
{
    static const char *const ways[] = {"stored-256", "fixed-bin-number", "fixed-bin-size", "pyradiomics-bin-width"};
    for (int a = 0; a < AGGREGATIONS; a++) {
        struct feature feature = texture(1, aggregation_names[a], ways[a % 4]);
        const struct feature_set set = {.items = &feature, .count = 1};
        struct measurements measurements;
        ck_assert_int_eq(measurements_make(&set, 0, "[hnsf'U]", &measurements), 0);
        expect_modifier(&measurements.items[0], "5QB6", aggregation_codes[a]);
        expect_modifier(&measurements.items[0], "4R0B", NULL);
        measurements_free(&measurements);
    }
}

END_TEST

/* Readers expect Code Value, which has 16 characters, and not Long Code Value. */
START_TEST(every_feature_has_a_short_code)
{
    const struct feature_family *family = feature_families[_i];
    for (size_t i = 0; i < family->definition_count; i++) {
        const struct feature_definition *definition = &family->definitions[i];
        struct feature feature = texture(1, "", "");
        feature.name = definition->name;
        feature.meaning = definition->meaning;
        feature.ibsi = definition->ibsi;
        const struct feature_set set = {.items = &feature, .count = 1};
        struct measurements measurements;
        ck_assert_int_eq(measurements_make(&set, 0, "1", &measurements), 0);
        const char *code = measurements.items[0].concept.value;
        ck_assert_msg(code[0] != '\0' && strlen(code) <= 16, "%s", code);
        measurements_free(&measurements);
    }
}

END_TEST

/* Each reason must have a text in the report, because readers do not show an unknown code. */
START_TEST(each_absence_has_a_text)
{
    for (int reason = FEATURE_PRESENT; reason < FEATURE_MISSINGS; reason++) {
        struct feature feature = texture(1, "3d-merged", "stored-256");
        const char *name = feature_missing_names[reason];
        feature.missing_reason = name;
        const struct feature_set set = {.items = &feature, .count = 1};
        struct measurements measurements;
        ck_assert_int_eq(measurements_make(&set, 0, "1", &measurements), 0);
        const char *words = measurements.items[0].absence;
        ck_assert(name[0] == '\0' ? words[0] == '\0' : strchr(words, ' ') != NULL);
        measurements_free(&measurements);
    }
}

END_TEST

START_TEST(a_group_for_each_region)
{
    struct feature features[5];
    for (int i = 0; i < 5; i++)
        features[i] = texture(i < 2 ? 1 : i < 4 ? 3 : 0, "3d-merged", "stored-256");
    features[4].value = 2.5;
    const struct feature_set set = {.items = features, .count = 5};
    struct measurements measurements;
    ck_assert_int_eq(measurements_make(&set, 0, "1", &measurements), 0);
    ck_assert_uint_eq(measurements.group_count, 3);
    static const int32_t segments[3] = {0, 2, SR_WHOLE_VOLUME};
    static const size_t counts[3] = {2, 2, 1};
    for (int g = 0; g < 3; g++) {
        ck_assert_int_eq(measurements.groups[g].segment, segments[g]);
        ck_assert_uint_eq(measurements.groups[g].measurement_count, counts[g]);
    }
    ck_assert_double_eq(measurements.groups[2].measurements[0].value, 2.5);
    measurements_free(&measurements);
    /* The root of results also lists the second and the fourth segment. */
    ck_assert_int_eq(measurements_make(&set, 4, "1", &measurements), 0);
    ck_assert_uint_eq(measurements.group_count, 5);
    for (int g = 0; g < 2; g++) {
        ck_assert_int_eq(measurements.groups[3 + g].segment, 1 + 2 * g);
        ck_assert_uint_eq(measurements.groups[3 + g].measurement_count, 0);
    }
    measurements_free(&measurements);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_measurements");
    TCase *tests = tcase_create("measurements");
    tcase_add_test(tests, each_name_has_a_code);
    tcase_add_loop_test(tests, every_feature_has_a_short_code, 0, FEATURE_FAMILIES);
    tcase_add_test(tests, each_absence_has_a_text);
    tcase_add_test(tests, a_group_for_each_region);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
