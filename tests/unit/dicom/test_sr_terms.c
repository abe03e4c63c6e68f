/* Terms of reports: codes of a feature, its settings, its unit and its absence. */
#include "dicom/objects/sr/sr_terms.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sr_measurement measurement;

static void
describe(const char *settings, const char *value_unit)
{
    static char words[SR_MAX_WORDS][FEATURE_SETTING];
    measurement = (struct sr_measurement){0};
    sr_describe(&measurement, settings, value_unit, words);
}

static void
expect_code(const struct coded_concept *code, const char *scheme, const char *value)
{
    ck_assert_str_eq(code->scheme, scheme);
    ck_assert_str_eq(code->value, value);
    ck_assert_str_ne(code->meaning, "");
}

/* Returns the value of the modifier with that name, or NULL. */
static const struct coded_concept *
modifier(const char *name)
{
    for (size_t i = 0; i < measurement.modifier_count; i++) {
        if (strcmp(measurement.modifiers[i][0].value, name) == 0)
            return &measurement.modifiers[i][1];
    }
    return NULL;
}

static const struct sr_parameter *
parameter(const char *name)
{
    for (size_t i = 0; i < measurement.parameter_count; i++) {
        if (strcmp(measurement.parameters[i].concept.value, name) == 0)
            return &measurement.parameters[i];
    }
    return NULL;
}

static void
expect_parameter(const char *scheme, const char *name, double value, const char *unit)
{
    const struct sr_parameter *found = parameter(name);
    ck_assert_ptr_nonnull(found);
    expect_code(&found->concept, scheme, name);
    ck_assert_double_eq(found->value, value);
    expect_code(&found->unit, "UCUM", unit);
}

START_TEST(settings_of_ibsi)
{
    describe("aggregation=3d-merged;discretisation=fixed-bin-number;distance=2;levels=32;symmetric=true", "[hnsf'U]");
    ck_assert_uint_eq(measurement.modifier_count, 2);
    expect_code(modifier("5QB6"), "IBSI", "IAZD");
    expect_code(modifier("4R0B"), "IBSI", "K15C");
    ck_assert_uint_eq(measurement.parameter_count, 2);
    expect_parameter("IBSI", "K15C", 32, "1");
    expect_parameter("IBSI", "PVMT", 2, "{voxels}");
    ck_assert_uint_eq(measurement.words_count, 0);
}

END_TEST

/* Uses the maximum number of settings that a number can have at once. */
START_TEST(settings_of_the_private_scheme)
{
    describe("aggregation=2d-averaged;bin_width=12.5;directions=0,90;discretisation=pyradiomics-"
             "bin-width;distance=1;levels=40;range_high=90;range_low=-3;symmetric=false",
             "[hnsf'U]");
    expect_code(modifier("5QB6"), "IBSI", "BTW3");
    expect_code(modifier("MATRIX"), CONCEPT_OWN_SCHEME, "DIRECTIONAL");
    expect_code(modifier("4R0B"), CONCEPT_OWN_SCHEME, "MULTIPLES");
    expect_code(modifier("IF9H"), "IBSI", "USB3");
    expect_parameter(CONCEPT_OWN_SCHEME, "BIN_WIDTH", 12.5, "[hnsf'U]");
    expect_parameter(CONCEPT_OWN_SCHEME, "RANGE_LOW", -3, "[hnsf'U]");
    expect_parameter(CONCEPT_OWN_SCHEME, "RANGE_HIGH", 90, "[hnsf'U]");
    ck_assert_ptr_null(parameter("LEVELS"));
    expect_code(&measurement.words[0].concept, CONCEPT_OWN_SCHEME, "DIRECTIONS");
    ck_assert_str_eq(measurement.words[0].text, "0,90");
    /* The order also determines the UIDs of reports, so it must not change. */
    static const char *const modifiers[] = {"5QB6", "MATRIX", "4R0B", "IF9H"};
    static const char *const parameters[] = {"BIN_WIDTH", "RANGE_LOW", "RANGE_HIGH", "PVMT"};
    ck_assert_uint_eq(measurement.modifier_count, 4);
    ck_assert_uint_eq(measurement.parameter_count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(measurement.modifiers[i][0].value, modifiers[i]);
        ck_assert_str_eq(measurement.parameters[i].concept.value, parameters[i]);
    }
    ck_assert_uint_le(measurement.modifier_count, SR_MAX_MODIFIERS);
    ck_assert_uint_le(measurement.parameter_count, SR_MAX_PARAMETERS);
}

END_TEST

START_TEST(discretisations)
{
    describe("discretisation=stored-256;levels=16", "1");
    expect_code(modifier("4R0B"), CONCEPT_OWN_SCHEME, "STORED_256");
    expect_parameter(CONCEPT_OWN_SCHEME, "LEVELS", 16, "1");
    describe("bin_width=4;discretisation=fixed-bin-size", "Bq/ml");
    expect_code(modifier("4R0B"), "IBSI", "Q3RU");
    expect_parameter("IBSI", "Q3RU", 4, "Bq/ml");
    ck_assert_ptr_null(modifier("MATRIX"));
}

END_TEST

/* A parameter must be a finite number; an infinite end is not a setting. */
START_TEST(a_range_with_one_end)
{
    describe("range_high=90;range_low=-inf", "[hnsf'U]");
    expect_code(modifier("IF9H"), "IBSI", "USB3");
    ck_assert_ptr_null(parameter("RANGE_LOW"));
    expect_parameter(CONCEPT_OWN_SCHEME, "RANGE_HIGH", 90, "[hnsf'U]");
}

END_TEST

START_TEST(no_settings)
{
    describe("", "1");
    ck_assert_uint_eq(measurement.modifier_count + measurement.parameter_count, 0);
    ck_assert_uint_eq(measurement.words_count, 0);
}

END_TEST

START_TEST(concepts)
{
    struct coded_concept code = sr_feature_concept("TU9B", "joint_entropy", "Joint entropy");
    expect_code(&code, "IBSI", "TU9B");
    code = sr_feature_concept("", "standard_deviation", "Standard deviation");
    expect_code(&code, "SCT", "386136009");
    code = sr_feature_concept("", "maximal_correlation_coefficient", "Maximal correlation");
    expect_code(&code, CONCEPT_OWN_SCHEME, "max_correlation");
    code = sr_feature_concept("", "voxel_count", "Voxels");
    expect_code(&code, CONCEPT_OWN_SCHEME, "voxel_count");
    ck_assert_str_eq(code.meaning, "Voxels");
}

END_TEST

/* Codes have at most 16 characters and meanings 64 (PS3.3 8.8); only those without a scheme of DICOM or IBSI are ours. */
START_TEST(concepts_of_quantities)
{
    static const struct {
        const char *name, *ibsi, *code, *meaning, *scheme;
    } rows[] = {

#define QUANTITY_VALUE(ID, quantity, name, ibsi, scheme, code, meaning, ...) {name, ibsi, code, meaning, #scheme},
#include "base/quantities.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct coded_concept code = sr_feature_concept(rows[i].ibsi, rows[i].name, rows[i].meaning);
        expect_code(&code, strcmp(rows[i].scheme, "OWN") == 0 ? CONCEPT_OWN_SCHEME : rows[i].scheme, rows[i].code);
        ck_assert_str_eq(code.meaning, rows[i].meaning);
        ck_assert_uint_le(strlen(code.value), 16);
        ck_assert_uint_le(strlen(code.meaning), 64);
        measurement = (struct sr_measurement){.concept = code, .unit = sr_unit("1")};
        sr_describe(&measurement, "", "[hnsf'U]", (char[SR_MAX_WORDS][FEATURE_SETTING]){{0}});
        ck_assert_uint_eq(measurement.modifier_count, strcmp(rows[i].name, "agatston") == 0);
        if (measurement.modifier_count > 0)
            expect_code(modifier("370129005"), "DCM", "112055");
    }
}

END_TEST

START_TEST(units)
{
    struct coded_concept code = sr_unit("[hnsf'U]");
    expect_code(&code, "UCUM", "[hnsf'U]");
    ck_assert_str_eq(code.meaning, "Hounsfield unit");
    code = sr_unit("Bq/ml");
    ck_assert_str_eq(code.meaning, "Becquerels/milliliter");
    code = sr_unit("furlong");
    expect_code(&code, "UCUM", "furlong");
    ck_assert_str_eq(code.meaning, "furlong");
}

END_TEST

START_TEST(absences)
{
    measurement = (struct sr_measurement){.value = 7};
    sr_make_absent(&measurement, "");
    ck_assert_str_eq(measurement.absence, "");
    sr_make_absent(&measurement, "ONE_GREY_LEVEL");
    ck_assert_ptr_nonnull(strstr(measurement.absence, "one value or grey level"));
    ck_assert_int_eq(measurement.qualifier, SR_NOT_A_NUMBER);
    sr_make_absent(&measurement, "NOT_DISCRETISED");
    ck_assert_int_eq(measurement.qualifier, SR_MEASUREMENT_FAILURE);
    sr_make_absent(&measurement, "NO_PRIOR");
    ck_assert_int_eq(measurement.qualifier, SR_NOT_ATTEMPTED);
    measurement = (struct sr_measurement){.value = 7};
    sr_make_absent(&measurement, "SOMETHING_ELSE");
    ck_assert_str_eq(measurement.absence, "SOMETHING_ELSE");
}

END_TEST

/* Units of CID 85, and the method of a number in that unit or in a power of it (PS3.16 Annex D). */
START_TEST(units_of_suv)
{
    static const struct {
        const char *unit, *method;
    } cases[] = {{"g/ml{SUVbw}", "126410"},
                 {"g/ml{SUVlbm(James128)}", "126415"},
                 {"g/ml{SUVlbm(Janma)}", "126414"},
                 {"cm2/ml{SUVbsa}", "126412"},
                 {"g/ml{SUVibw}", "126413"}};

    char words[SR_MAX_WORDS][FEATURE_SETTING], square[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(square, sizeof square, "(%s)2", cases[i].unit);
        for (int power = 0; power <= 2; power++) {
            const char *unit = power == 0 ? "1" : power == 1 ? cases[i].unit : square;
            measurement = (struct sr_measurement){.unit = sr_unit(unit)};
            sr_describe(&measurement, "", cases[i].unit, words);
            if (power == 0)
                ck_assert_uint_eq(measurement.modifier_count, 0);
            else
                expect_code(modifier("370129005"), "DCM", cases[i].method);
        }
        ck_assert_int_eq(strncmp(sr_unit(cases[i].unit).meaning, "Standardized Uptake Value ", 26), 0);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_sr_terms");
    TCase *tests = tcase_create("terms");
    tcase_add_test(tests, settings_of_ibsi);
    tcase_add_test(tests, settings_of_the_private_scheme);
    tcase_add_test(tests, discretisations);
    tcase_add_test(tests, a_range_with_one_end);
    tcase_add_test(tests, no_settings);
    tcase_add_test(tests, concepts);
    tcase_add_test(tests, concepts_of_quantities);
    tcase_add_test(tests, units);
    tcase_add_test(tests, absences);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, units_of_suv);
    return suite_run(suite);
}
