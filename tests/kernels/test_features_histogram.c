/*
 * test_features_histogram.c - histograms of levels and of volume by intensity: IBSI's values for its digital phantom,
 * histograms with known features, and cases without a value.
 */
#include "kernels/features/intensity_histogram.h"
#include "kernels/features/volume_histogram.h"
#include "tests/kernels/ref_ibsi.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static const struct texture_options as_stored = {.first_order = true};

START_TEST(levels_of_the_phantom)
{
    static const struct ibsi_published published[] = {
        {"X6K6", 0, 2.15},  {"CH89", 0, 3.05}, {"88K1", 0, 1.08}, {"C3I7", 0, -0.355}, {"WIFQ", 0, 1},
        {"1PR8", 0, 1},     {"GPMT", 0, 1},    {"OZ0C", 0, 4},    {"3NCY", 0, 6},      {"AMMC", 0, 1},
        {"WR0O", 0, 3},     {"5Z3W", 0, 5},    {"D2ZX", 0, 1.55}, {"WRZB", 0, 1.11},   {"4RNL", 0, 1.15},
        {"CWYJ", 0, 0.812}, {"SLWD", 0, 0.6},  {"TLU2", 0, 1.27}, {"BJ5W", 0, 0.512},  {"12CE", 0, 8},
        {"8E6O", 0, 3},     {"VQB3", 0, -50},  {"RHQZ", 0, 1},
    };

    ibsi_check(&family_intensity_histogram, &as_stored, 0, published, sizeof(published) / sizeof(published[0]));
}

END_TEST

START_TEST(volume_by_intensity_of_the_phantom)
{
    static const struct ibsi_published published[] = {
        {"BC2M", 10, 0.324}, {"BC2M", 90, 0.0946}, {"GBPN", 10, 5}, {"GBPN", 90, 2}, {"DDTU", 0, 0.23}, {"CNV2", 0, 3},
    };

    ibsi_check(&family_volume_histogram, &as_stored, 0, published, sizeof(published) / sizeof(published[0]));
}

END_TEST

/* ---------------------------------------------------------------------- known histograms -- */

static uint64_t histogram[256];
static uint16_t level_of[256];
static struct image_rescale rescale;
static struct texture_options options;
static const struct feature_volume volume = {.options = &options, .tables = 1, .values = 256, .rescales = &rescale};
static struct feature_region region;
static struct feature_value values[FEATURE_FAMILY_MAX];

/* Sets counts of the levels, or stored values, 1, 2 ... */
static void
take(const struct feature_family *family, int levels, const uint64_t *counts)
{
    region =
        (struct feature_region){.volume = &volume, .histograms = histogram, .level_of = level_of, .levels = levels};
    for (int i = 0; i < 256; i++) {
        histogram[i] = i > 0 && i <= levels ? counts[i - 1] : 0;
        level_of[i] = (uint16_t)(i > 0 && i <= levels ? i : 0);
    }
    for (int f = 0; f < FEATURE_FAMILY_MAX; f++)
        values[f] = feature_absent(FEATURE_EMPTY_REGION);
    ck_assert_int_eq(family->values(&region, 0, NULL, values), 0);
}

static void
set_up(void)
{
    rescale = (struct image_rescale){1, 0};
    options = (struct texture_options){.families = 1u << TEXTURE_FAMILY_all};
}

static void
check_value(int feature, double expected)
{
    ck_assert_int_eq(values[feature].missing, FEATURE_PRESENT);
    ck_assert_double_eq_tol(values[feature].value, expected, 1e-14 * fmax(1, fabs(expected)));
}

/* Of several most frequent levels, the mode is the closest to the mean, then the lower. */
START_TEST(mode_of_several)
{
    take(&family_intensity_histogram, 5, (uint64_t[]){7, 7, 1, 0, 7}); /* mean 2.68 */
    check_value(INTENSITY_HISTOGRAM_MODE, 2);
    take(&family_intensity_histogram, 5, (uint64_t[]){3, 0, 1, 0, 3}); /* mean 3 */
    check_value(INTENSITY_HISTOGRAM_MODE, 1);
    take(&family_intensity_histogram, 5, (uint64_t[]){3, 0, 1, 1, 3}); /* mean 3.125 */
    check_value(INTENSITY_HISTOGRAM_MODE, 5);
}

END_TEST

START_TEST(gradients)
{
    take(&family_intensity_histogram, 4, (uint64_t[]){1, 4, 9, 2}); /* 3, 4, -1, -7 */
    check_value(INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT, 4);
    check_value(INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT_LEVEL, 2);
    check_value(INTENSITY_HISTOGRAM_MINIMUM_GRADIENT, -7);
    check_value(INTENSITY_HISTOGRAM_MINIMUM_GRADIENT_LEVEL, 4);
    take(&family_intensity_histogram, 3, (uint64_t[]){1, 0, 2}); /* -1, 0.5, 2 */
    check_value(INTENSITY_HISTOGRAM_MAXIMUM_GRADIENT, 2);
    check_value(INTENSITY_HISTOGRAM_MINIMUM_GRADIENT, -1);
}

END_TEST

START_TEST(one_level)
{
    take(&family_intensity_histogram, 2, (uint64_t[]){5, 0});
    check_value(INTENSITY_HISTOGRAM_MEAN, 1);
    check_value(INTENSITY_HISTOGRAM_VARIANCE, 0);
    check_value(INTENSITY_HISTOGRAM_ENTROPY, 0);
    ck_assert(!signbit(values[INTENSITY_HISTOGRAM_ENTROPY].value));
    check_value(INTENSITY_HISTOGRAM_UNIFORMITY, 1);
    check_value(INTENSITY_HISTOGRAM_MINIMUM_GRADIENT, -5);
    ck_assert_int_eq(values[INTENSITY_HISTOGRAM_SKEWNESS].missing, FEATURE_ONE_GREY_LEVEL);
    take(&family_intensity_histogram, 2, (uint64_t[]){0, 0});
    for (int f = 0; f < INTENSITY_HISTOGRAM_FEATURES; f++)
        ck_assert_int_eq(values[f].missing, FEATURE_EMPTY_REGION);
}

END_TEST

/* There is no distance between the percentiles of two values. A mean of 0 must not divide. */
START_TEST(division_by_zero_gives_no_value)
{
    take(&family_intensity_histogram, 5, (uint64_t[]){1, 0, 0, 0, 1});
    ck_assert_int_eq(values[INTENSITY_HISTOGRAM_ROBUST_MEAN_ABSOLUTE_DEVIATION].missing, FEATURE_DIVISION_BY_ZERO);
    check_value(INTENSITY_HISTOGRAM_MEAN_ABSOLUTE_DEVIATION, 2);
}

END_TEST

/* Steps are those of the rescale slope, up or down. */
START_TEST(intensities_in_steps)
{
    const uint64_t counts[] = {50, 0, 40, 10};

    rescale = (struct image_rescale){0.5, 10}; /* 10.5, 11.5, 12 */
    take(&family_volume_histogram, 4, counts);
    check_value(VOLUME_HISTOGRAM_VOLUME_10, 0.5);
    check_value(VOLUME_HISTOGRAM_VOLUME_90, 0.1);
    check_value(VOLUME_HISTOGRAM_INTENSITY_10, 12);
    check_value(VOLUME_HISTOGRAM_INTENSITY_90, 11);
    rescale = (struct image_rescale){-2, 0}; /* -8: 10, -6: 40, -2: 50 */
    take(&family_volume_histogram, 4, counts);
    check_value(VOLUME_HISTOGRAM_INTENSITY_90, -6);
    check_value(VOLUME_HISTOGRAM_INTENSITY_10, 0);
}

END_TEST

/* Fractions are of the range. */
START_TEST(intensities_in_a_range)
{
    options.levels = (struct discretisation_options){.has_range = true, .range = {2, 12}};
    take(&family_volume_histogram, 5, (uint64_t[]){0, 1, 1, 1, 1});
    check_value(VOLUME_HISTOGRAM_VOLUME_10, 0.75); /* from 3 */
    check_value(VOLUME_HISTOGRAM_VOLUME_90, 0);    /* from 11 */
    check_value(VOLUME_HISTOGRAM_VOLUME_DIFFERENCE, 0.75);
}

END_TEST

/* Bins of a fixed number count from 1. Bins of a fixed width have their centres, from the range. */
START_TEST(intensities_in_bins)
{
    options.ivh = (struct volume_histogram_options){VOLUME_HISTOGRAM_BIN_NUMBER, 10, 0};
    take(&family_volume_histogram, 5, (uint64_t[]){4, 0, 4, 0, 2}); /* bins 1, 6, 10 */
    check_value(VOLUME_HISTOGRAM_VOLUME_10, 0.6);
    check_value(VOLUME_HISTOGRAM_VOLUME_90, 0.2);
    check_value(VOLUME_HISTOGRAM_INTENSITY_10, 11);
    check_value(VOLUME_HISTOGRAM_INTENSITY_90, 2);
    options.ivh = (struct volume_histogram_options){VOLUME_HISTOGRAM_BIN_SIZE, 0, 2.5};
    options.levels = (struct discretisation_options){.has_range = true, .range = {0, 10}};
    take(&family_volume_histogram, 5, (uint64_t[]){4, 0, 4, 0, 2}); /* 1.25, 3.75, 6.25 */
    check_value(VOLUME_HISTOGRAM_VOLUME_10, 1);
    check_value(VOLUME_HISTOGRAM_VOLUME_90, 0);
    check_value(VOLUME_HISTOGRAM_INTENSITY_10, 8.75);
    check_value(VOLUME_HISTOGRAM_INTENSITY_90, 3.75);
    check_value(VOLUME_HISTOGRAM_INTENSITY_DIFFERENCE, 5);
}

END_TEST

/* Bin numbers have no unit and replace intensities. */
START_TEST(reported_features)
{
    for (int kind = 0; kind < VOLUME_HISTOGRAM_KINDS; kind++) {
        int told = 0, with_unit = 0;

        options.ivh.kind = (enum volume_histogram_kind)kind;
        for (size_t f = 0; f < family_volume_histogram.definition_count; f++) {
            told += family_volume_histogram.tells(&options, f);
            with_unit +=
                family_volume_histogram.tells(&options, f) && family_volume_histogram.definitions[f].value_power == 1;
        }
        ck_assert_int_eq(told, VOLUME_HISTOGRAM_FEATURES);
        ck_assert_int_eq(with_unit, kind == VOLUME_HISTOGRAM_BIN_NUMBER ? 0 : 3);
    }
}

END_TEST

START_TEST(no_steps)
{
    static const struct image_rescale rescales[2] = {{1, 0}, {2, 0}};
    static uint64_t two[2 * 256];
    const struct feature_volume slices = {.options = &options, .tables = 2, .values = 256, .rescales = rescales};
    const struct feature_region of_two = {.volume = &slices, .histograms = two};

    take(&family_volume_histogram, 3, (uint64_t[]){0, 8, 0});
    ck_assert_int_eq(values[VOLUME_HISTOGRAM_VOLUME_10].missing, FEATURE_ONE_GREY_LEVEL);
    check_value(VOLUME_HISTOGRAM_INTENSITY_10, 3);
    take(&family_volume_histogram, 3, (uint64_t[]){0, 0, 0});
    ck_assert_int_eq(values[VOLUME_HISTOGRAM_INTENSITY_10].missing, FEATURE_EMPTY_REGION);
    two[3] = two[256 + 5] = 2;
    ck_assert_int_eq(family_volume_histogram.values(&of_two, 0, NULL, values), 0);
    ck_assert_int_eq(values[VOLUME_HISTOGRAM_INTENSITY_10].missing, FEATURE_NOT_DISCRETISED);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("features_histogram");
    TCase *tcase = tcase_create("features_histogram");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, levels_of_the_phantom);
    tcase_add_test(tcase, volume_by_intensity_of_the_phantom);
    tcase_add_test(tcase, mode_of_several);
    tcase_add_test(tcase, gradients);
    tcase_add_test(tcase, one_level);
    tcase_add_test(tcase, division_by_zero_gives_no_value);
    tcase_add_test(tcase, intensities_in_steps);
    tcase_add_test(tcase, intensities_in_a_range);
    tcase_add_test(tcase, intensities_in_bins);
    tcase_add_test(tcase, reported_features);
    tcase_add_test(tcase, no_steps);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
