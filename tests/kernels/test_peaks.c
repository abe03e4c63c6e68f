/*
 * test_peaks.c - compares means of balls on the CPU with the plain reference, on each available instruction set, with
 * 1 and 2 threads. Also checks known answers and rejected requests.
 */
#include "tests/kernels/ref_peaks.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CASES = 300 };

static struct error error;

static void
open_variants(void)
{
    variants_open(2);
}

static void
check_case(const struct peaks_case *each, uint64_t seed)
{
    struct peaks_found expected, found;

    ref_peaks(each->extent, each->pixel, each->voxels, &each->request, &expected);
    for (size_t i = 0; i < variant_count; i++) {
        ck_assert_msg(peaks_run_case(variants[i].lane, each, &found, &error) == 0, "%s", error.message);
        ck_assert_msg(memcmp(&found, &expected, sizeof(found)) == 0,
                      "case %llu, %s, %d threads: %.17g and %.17g of %llu, not %.17g and %.17g of "
                      "%llu",
                      (unsigned long long)seed, variants[i].isa, variants[i].threads, found.local, found.global,
                      (unsigned long long)found.balls, expected.local, expected.global,
                      (unsigned long long)expected.balls);
    }
}

START_TEST(random_cases)
{
    for (uint64_t seed = test_share_first(); seed < CASES; seed += test_share()) {
        struct peaks_case each;

        peaks_make_case(&each, seed);
        check_case(&each, seed);
        peaks_free_case(&each);
    }
}

END_TEST

/* One bright voxel on the edge of the region: the ball must include all its voxels in the volume. */
START_TEST(a_ball_on_the_edge)
{
    static const struct image_rescale rescale = {1, 0};
    static const struct image_range none = {1, 0}, dark = {0, 0};
    uint8_t voxels[9] = {10, 0, 0, 0, 0, 0, 0, 0, 90};
    uint64_t region = 1;
    struct peaks_case each = {.extent = {9, 1, 1},
                              .pixel = IMAGE_UINT8,
                              .voxels = voxels,
                              .request = {.region = &region,
                                          .rescales = &rescale,
                                          .paddings = &none,
                                          .table_count = 1,
                                          .kept = {-INFINITY, INFINITY},
                                          .largest = 10,
                                          .spacing = {3, 3, 3}}};
    struct peaks_found found;

    ck_assert_int_eq(peaks_run_case(variants[0].lane, &each, &found, &error), 0);
    ck_assert_uint_eq(found.balls, 1);
    ck_assert_double_eq(found.local, 10.0 / 3); /* two voxels of 3 mm are within 6.2 */
    ck_assert_double_eq(found.global, 10.0 / 3);
    each.request.paddings = &dark;
    ck_assert_int_eq(peaks_run_case(variants[0].lane, &each, &found, &error), 0);
    ck_assert_double_eq(found.global, 10);
    region = 0;
    ck_assert_int_eq(peaks_run_case(variants[0].lane, &each, &found, &error), 0);
    ck_assert_uint_eq(found.balls, 0);
}

END_TEST

START_TEST(refusals)
{
    struct peaks_case each;
    struct peaks_found found;

    peaks_make_case(&each, 1);
    each.request.spacing[1] = 0;
    ck_assert_int_eq(peaks_run_case(variants[0].lane, &each, &found, &error), -EINVAL);
    each.request.spacing[1] = 0.01;
    each.request.spacing[2] = 0.01;
    ck_assert_int_eq(peaks_run_case(variants[0].lane, &each, &found, &error), -E2BIG);
    ck_assert(peaks_too_fine(each.request.spacing));
    each.request.spacing[1] = each.request.spacing[2] = 1;
    each.request.table_count = 99;
    ck_assert_int_eq(peaks_run_case(variants[0].lane, &each, &found, &error), -EINVAL);
    peaks_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("peaks");
    TCase *tcase = tcase_create("peaks");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, a_ball_on_the_edge);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
