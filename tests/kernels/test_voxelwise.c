/*
 * test_voxelwise.c - compares maps of features with the plain reference, with each number of threads, which must give the same
 * bits; and with hand counts.
 */
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/ref_voxelwise.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CASES = 66 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

/* Checks a value. Features of differences, such as variances, round relative to what they subtract. */
static void
check_value(uint64_t seed, int row, int64_t voxel, double found, double expected, double levels)
{
    const bool cubes = row == VOXELWISE_OF_glcm_CLUSTER_SHADE || row == VOXELWISE_OF_glcm_CLUSTER_PROMINENCE;
    const double size = cubes ? pow(levels, 4) : voxelwise_rows[row].family == VOXELWISE_FAMILY_first_order ? 1e3 : 1;

    ck_assert_msg(isnan(expected) ? isnan(found) : fabs(found - expected) <= 1e-11 * fmax(size, fabs(expected)),
                  "case %llu, %s of family %d, voxel %lld: %.17g, not %.17g", (unsigned long long)seed,
                  voxelwise_rows[row].name, (int)voxelwise_rows[row].family, (long long)voxel, found, expected);
}

static void
compare_case(uint64_t seed)
{
    struct voxelwise_case each;

    voxelwise_make_case(&each, seed);

    const int64_t count = each.request.count;
    double *first = ref_allocate(count * each.features + 1, sizeof(*first));
    double *maps = ref_allocate(count * each.features + 1, sizeof(*maps));

    for (size_t v = 0; v < variant_count; v++) {
        ck_assert_msg(voxelwise_run_case(variants[v].lane, &each, v == 0 ? first : maps, &error) == 0, "%s",
                      error.message);
        ck_assert_msg(v == 0 || memcmp(first, maps, (size_t)(count * each.features) * sizeof(*first)) == 0,
                      "case %llu: %d threads differ", (unsigned long long)seed, variants[v].threads);
    }
    for (int64_t i = 0; i < count; i += 1 + count / 40) {
        double expected[VOXELWISE_FEATURES];
        int feature = 0;

        ref_voxelwise(&each.request, each.voxels[i], expected);
        for (int row = 0; row < VOXELWISE_FEATURES; row++)
            if (voxelwise_wants(&each.options, row))
                check_value(seed, row, each.voxels[i], first[count * feature++ + i], expected[row],
                            each.request.level_count);
        ck_assert_int_eq(feature, each.features);
    }
    free(first);
    free(maps);
    voxelwise_free_case(&each);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++)
        compare_case(seed);
}

END_TEST

/* Computes all features of the second of four voxels in a row. */
static void
map_row(const uint16_t levels[4], double all[VOXELWISE_FEATURES])
{
    static const double values[4] = {10, 20, 10, 40};
    static const int64_t voxel = 1;
    struct voxelwise_case each = {.options = {.radius = 2}, .features = VOXELWISE_FEATURES};

    for (int row = 0; row < VOXELWISE_FEATURES; row++)
        each.options.features[voxelwise_rows[row].family] |= 1u << voxelwise_rows[row].feature;
    each.request = (struct voxelwise_request){
        .size = {4, 1, 1}, .levels = levels, .values = values, .level_count = 3, .voxels = &voxel, .count = 1};
    ck_assert_msg(voxelwise_run_case(variants[0].lane, &each, all, &error) == 0, "%s", error.message);
}

static void
is_near(double found, double expected)
{
    ck_assert_msg(fabs(found - expected) < 1e-14 * fmax(1, fabs(expected)), "%.17g, not %.17g", found, expected);
}

/*
 * Levels 1 2 1 1. One direction has pairs: (1, 2), (2, 1), (1, 1). In both orders, the matrix has 2, 2 and 2 of 6; the levels
 * occur 4 and 2 times. Runs: 1, 2, 1 1. Zones: the same, since only neighbours along the row exist. Dependences: 1, 1, 2, 2.
 */
START_TEST(hand_counts)
{
    static const uint16_t levels[4] = {1, 2, 1, 1};
    double all[VOXELWISE_FEATURES];

    map_row(levels, all);
    is_near(all[VOXELWISE_OF_glcm_JOINT_MAXIMUM], 1.0 / 3);
    is_near(all[VOXELWISE_OF_glcm_JOINT_AVERAGE], 4.0 / 3);
    is_near(all[VOXELWISE_OF_glcm_JOINT_ENTROPY], log2(3));
    is_near(all[VOXELWISE_OF_glcm_CONTRAST], 2.0 / 3);
    is_near(all[VOXELWISE_OF_glcm_ANGULAR_SECOND_MOMENT], 1.0 / 3);
    is_near(all[VOXELWISE_OF_glcm_INVERSE_DIFFERENCE], 2.0 / 3);
    is_near(all[VOXELWISE_OF_glcm_NORMALISED_INVERSE_DIFFERENCE], (1 + 2 * 0.75) / 3);
    is_near(all[VOXELWISE_OF_glcm_SUM_ENTROPY], log2(3) - 2.0 / 3);
    is_near(all[VOXELWISE_OF_glcm_CORRELATION], -0.5);
    is_near(all[VOXELWISE_OF_glcm_MAXIMAL_CORRELATION_COEFFICIENT], 0.5); /* of two levels: |correlation| */
    is_near(all[VOXELWISE_OF_glrlm_SHORT_RUNS_EMPHASIS], 0.75);
    is_near(all[VOXELWISE_OF_glrlm_RUN_PERCENTAGE], 0.75);
    is_near(all[VOXELWISE_OF_glszm_LARGE_ZONE_EMPHASIS], 2);
    is_near(all[VOXELWISE_OF_glszm_GREY_LEVEL_NON_UNIFORMITY], 5.0 / 3);
    is_near(all[VOXELWISE_OF_ngldm_HIGH_DEPENDENCE_EMPHASIS], 2.5);
    is_near(all[VOXELWISE_OF_ngldm_DEPENDENCE_COUNT_NON_UNIFORMITY], 2);
    /* Deviations from neighbours: 1, 1, 0.5, 0. */
    is_near(all[VOXELWISE_OF_ngtdm_COARSENESS], 1 / (0.75 * 1.5 + 0.25));
    is_near(all[VOXELWISE_OF_first_order_MEAN], 20);
    is_near(all[VOXELWISE_OF_first_order_MEDIAN], 15);
    is_near(all[VOXELWISE_OF_first_order_PERCENTILE_90], 34);
    is_near(all[VOXELWISE_OF_first_order_ENERGY], 2200);
    is_near(all[VOXELWISE_OF_first_order_UNIFORMITY], 0.625);
}

END_TEST

/* One grey level, and a voxel alone. */
START_TEST(undefined_features)
{
    static const uint16_t flat[4] = {2, 2, 2, 0}, alone[4] = {0, 3, 0, 1};
    double all[VOXELWISE_FEATURES];

    map_row(flat, all);
    is_near(all[VOXELWISE_OF_glcm_CORRELATION], 1);
    is_near(all[VOXELWISE_OF_glcm_INFORMATION_CORRELATION_1], 0);
    is_near(all[VOXELWISE_OF_glcm_INFORMATION_CORRELATION_2], 0);
    is_near(all[VOXELWISE_OF_glcm_MAXIMAL_CORRELATION_COEFFICIENT], 0);
    is_near(all[VOXELWISE_OF_glcm_JOINT_ENTROPY], 0);
    is_near(all[VOXELWISE_OF_ngtdm_COARSENESS], 1e6);
    map_row(alone, all); /* one line of two voxels, without pairs */
    ck_assert(isnan(all[VOXELWISE_OF_glcm_CONTRAST]) && isnan(all[VOXELWISE_OF_glcm_CORRELATION]));
    is_near(all[VOXELWISE_OF_glrlm_RUN_PERCENTAGE], 1);
    is_near(all[VOXELWISE_OF_ngtdm_COARSENESS], 1e6);
    is_near(all[VOXELWISE_OF_ngtdm_CONTRAST], 0);
}

END_TEST

START_TEST(refusals)
{
    struct voxelwise_case each;
    double map[8];

    voxelwise_make_case(&each, 1);
    each.options.radius = 0;
    ck_assert_int_eq(voxelwise_run_case(variants[0].lane, &each, map, &error), -EINVAL);
    each.options.radius = VOXELWISE_MAX_RADIUS + 1;
    ck_assert_int_eq(voxelwise_run_case(variants[0].lane, &each, map, &error), -EINVAL);
    each.options.radius = 1;
    each.request.level_count = VOXELWISE_MAX_LEVELS + 1;
    ck_assert_int_eq(voxelwise_run_case(variants[0].lane, &each, map, &error), -EINVAL);
    voxelwise_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("voxelwise");
    TCase *tcase = tcase_create("voxelwise");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, hand_counts);
    tcase_add_test(tcase, undefined_features);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
