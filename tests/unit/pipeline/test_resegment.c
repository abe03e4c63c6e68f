/* Intensity masks: the values of a region after a range and standard deviations. */
#include "service/pipeline/measure/measure.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 256 };

static const struct image_rescale rescales[2] = {{2, -100}, {1, -100}};
static struct texture_options options;
static uint64_t histograms[2 * VALUES];

static struct feature_volume volume = {.options = &options, .tables = 1, .values = VALUES, .rescales = rescales};

static void
set_up(void)
{
    options = (struct texture_options){0};
    volume.tables = 1;
    memset(histograms, 0, sizeof histograms);
}

/* Returns the number of remaining voxels, and their smallest and largest value. */
static uint64_t
left(double *lo, double *hi)
{
    double kept[2], extremes[2];
    uint64_t count = 0;
    resegment(&volume, histograms, kept, extremes);
    for (size_t i = 0; i < volume.tables * VALUES; i++)
        count += histograms[i];
    *lo = extremes[0];
    *hi = extremes[1];
    ck_assert(*lo > *hi || (kept[0] <= *lo && *hi <= kept[1]));
    return count;
}

START_TEST(without_options_all_voxels_stay)
{
    double lo, hi, kept[2], extremes[2];
    for (int v = 0; v < VALUES; v++)
        histograms[v] = 1;
    ck_assert_uint_eq(left(&lo, &hi), VALUES);
    ck_assert(lo == -100 && hi == 410);
    resegment(&volume, histograms, kept, extremes);
    ck_assert(kept[0] == -INFINITY && kept[1] == INFINITY);
}

END_TEST

/* The range is in real-world units, with both ends included, for any rescale of a slice. */
START_TEST(a_range_applies_to_real_world_values)
{
    double lo, hi;
    volume.tables = 2;
    for (int i = 0; i < 2 * VALUES; i++)
        histograms[i] = 3;
    options.levels.has_range = true;
    options.levels.range[0] = 0;
    options.levels.range[1] = 10;
    ck_assert_uint_eq(left(&lo, &hi), 3 * (6 + 11));
    ck_assert(lo == 0 && hi == 10);
}

END_TEST

/* Of 10 zeros and one value at 100: mean 100/11, deviation 28.7; 3 of them reach 95.3 and 4 reach 124. */
START_TEST(outliers_are_removed)
{
    double lo, hi;
    for (int sigma = 3; sigma <= 4; sigma++) {
        histograms[50] = 10;
        histograms[100] = 1;
        options.sigma = sigma;
        ck_assert_uint_eq(left(&lo, &hi), sigma == 3 ? 10 : 11);
        ck_assert(lo == 0 && hi == (sigma == 3 ? 0 : 100));
    }
}

END_TEST

/* The mean is of the whole region, not of the range: both ranges are computed first, then intersected. */
START_TEST(range_and_outliers_refer_to_the_original_region)
{
    double lo, hi;
    histograms[50] = 10;  /* 0 */
    histograms[60] = 1;   /* 20: 2.8 deviations from the zeros alone, much less from all */
    histograms[250] = 10; /* 400 */
    options.levels.has_range = true;
    options.levels.range[1] = 100;
    options.sigma = 2;
    ck_assert_uint_eq(left(&lo, &hi), 11);
    ck_assert(lo == 0 && hi == 20);
}

END_TEST

START_TEST(a_constant_region_has_no_outlier)
{
    double lo, hi;
    histograms[77] = 1000003;
    options.sigma = 1e-6;
    ck_assert_uint_eq(left(&lo, &hi), 1000003);
    ck_assert(lo == hi && lo == 54);
}

END_TEST

START_TEST(an_empty_region_stays_empty)
{
    double lo, hi;
    options.sigma = 3;
    ck_assert_uint_eq(left(&lo, &hi), 0);
    ck_assert(lo > hi);
}

END_TEST

/* The test of a voxel by the families must match the counts. */
START_TEST(removed_voxels_are_outside_the_intensity_mask)
{
    const struct feature_region region = {.volume = &volume, .histograms = histograms};
    double lo, hi;
    volume.tables = 2;
    histograms[50] = histograms[VALUES + 50] = 1; /* 0 and -50 */
    options.levels.has_range = true;
    left(&lo, &hi);
    ck_assert(feature_region_keeps(&region, 0, 50) && !feature_region_keeps(&region, 1, 50));
    ck_assert(!feature_region_keeps(&region, 0, 51));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("resegment");
    TCase *tcase = tcase_create("resegment");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, without_options_all_voxels_stay);
    tcase_add_test(tcase, a_range_applies_to_real_world_values);
    tcase_add_test(tcase, outliers_are_removed);
    tcase_add_test(tcase, range_and_outliers_refer_to_the_original_region);
    tcase_add_test(tcase, a_constant_region_has_no_outlier);
    tcase_add_test(tcase, an_empty_region_stays_empty);
    tcase_add_test(tcase, removed_voxels_are_outside_the_intensity_mask);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
