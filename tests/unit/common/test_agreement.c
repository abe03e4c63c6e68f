/* Agreement of two masks, on shapes whose areas and distances are known by hand. tests/integ/test_compare.py compares it
 * with the package surface-distance. */
#include "service/common/agreement.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { SIDE = 12 };

static uint64_t bits[2][SIDE * SIDE];

static void
add_box(int which, const int first[3], const int last[3])
{
    for (int z = first[2]; z <= last[2]; z++)
        for (int y = first[1]; y <= last[1]; y++)
            for (int x = first[0]; x <= last[0]; x++)
                bits[which][z * SIDE + y] |= UINT64_C(1) << x;
}

static struct agreement
measure(double tolerance, int threads)
{
    const struct agreement_request request = {.extent = {SIDE, SIDE, SIDE},
                                              .spacing = {1, 2, 3},
                                              .masks = {{bits[0], 1, 0}, {bits[1], 1, 0}},
                                              .tolerance_mm = tolerance,
                                              .threads = threads};
    struct agreement agreement;
    struct error error;
    ck_assert_int_eq(agreement_measure(&request, &agreement, &error), 0);
    return agreement;
}

static void
clear(void)
{
    memset(bits, 0, sizeof bits);
}

START_TEST(empty_masks)
{
    struct agreement agreement = measure(1, 1);
    ck_assert(isnan(agreement.dice) && isnan(agreement.distance_95) && isnan(agreement.surface_dice));
    ck_assert_int_eq(agreement.wrong, 0);
    ck_assert_double_eq(agreement.wrong_share, 0);
    add_box(0, (int[]){0, 0, 0}, (int[]){0, 0, 0});
    agreement = measure(1, 1);
    ck_assert_double_eq(agreement.dice, 0);
    ck_assert_int_eq(agreement.wrong, 1);
    ck_assert_double_eq(agreement.wrong_share, 1.0 / (SIDE * SIDE * SIDE));
    ck_assert_double_eq(agreement.surface_dice, 0);
    ck_assert(isinf(agreement.distance_95) && isinf(agreement.ratio));
    ck_assert_double_eq_tol(agreement.bias_ml, 0.006, 1e-15);
}

END_TEST

/* Boxes at all faces of the volume, of which one is longer by two voxels along x. */
START_TEST(boxes)
{
    add_box(0, (int[]){0, 0, 0}, (int[]){SIDE - 1, SIDE - 1, SIDE - 1});
    add_box(1, (int[]){0, 0, 0}, (int[]){SIDE - 3, SIDE - 1, SIDE - 1});
    struct agreement one = measure(1.5, 1), other = measure(2, 3);
    ck_assert_double_eq_tol(one.dice, 2 * 10.0 / 22, 1e-15);
    ck_assert_double_eq_tol(one.ratio, 1.2, 1e-15);
    ck_assert_double_eq(one.distance_95, 2);
    ck_assert_double_eq(other.surface_dice, 1);
    ck_assert_double_eq(other.distance_95, 2);
    ck_assert(one.surface_dice < 1 && one.surface_dice > 0.5);
}

END_TEST

/* A plane across z has the area of a face of a voxel per corner; so has the surface of a large box almost. */
START_TEST(one_voxel)
{
    add_box(0, (int[]){3, 3, 3}, (int[]){3, 3, 3});
    add_box(1, (int[]){4, 3, 3}, (int[]){4, 3, 3});
    /* Four of the eight corners of each voxel are common, and all have the same area. */
    ck_assert_double_eq(measure(0, 1).surface_dice, 0.5);
    ck_assert_double_eq(measure(1, 1).surface_dice, 1);
    ck_assert_double_eq(measure(1, 1).distance_95, 1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common/agreement");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, clear, NULL);
    tcase_add_test(cases, empty_masks);
    tcase_add_test(cases, boxes);
    tcase_add_test(cases, one_voxel);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
