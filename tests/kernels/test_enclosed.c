/*
 * test_enclosed.c - compares enclosed voxels on the CPU with the plain reference, on each available instruction set, with 1, 2 and 3
 * threads. Also checks known answers and rejected requests.
 */
#include "tests/kernels/ref_enclosed.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CASES = 300 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++) {
        struct enclosed_case each;

        enclosed_make_case(&each, seed);

        const size_t words = enclosed_words(&each);
        uint64_t *expected = allocate((int64_t)words, sizeof(*expected)),
                 *found = allocate((int64_t)words, sizeof(*found));

        ref_enclosed(&each, expected);
        for (size_t i = 0; i < variant_count; i++) {
            memset(found, 0xA5, words * sizeof(*found));
            ck_assert_msg(enclosed_run_case(variants[i].lane, &each, found, &error) == 0, "%s", error.message);
            ck_assert_msg(memcmp(found, expected, words * sizeof(*found)) == 0, "case %llu, %s, %d threads",
                          (unsigned long long)seed, variants[i].isa, variants[i].threads);
        }
        free(expected);
        free(found);
        enclosed_free_case(&each);
    }
}

END_TEST

/* A voxel in a closed box, and one behind a hole of it. */
START_TEST(a_box_with_a_hole)
{
    uint64_t mask[25] = {0}, found[25];
    struct enclosed_case each = {.extent = {5, 5, 5},
                                 .mask = mask,
                                 .request = {.mask = mask, .at_least = 26, .within_mm = 10, .spacing = {1, 1, 1}}};

    for (int z = 1; z < 4; z++)
        for (int y = 1; y < 4; y++)
            mask[5 * z + y] = z == 2 && y == 2 ? 0xA : 0xE;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_uint_eq(found[12], 0xE);
    ck_assert_uint_eq(found[7], 0xE);
    ck_assert_uint_eq(found[0], 0);
    mask[7] = 0xA; /* opens the side towards slice 0 */
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_uint_eq(found[12], 0xA);
    each.request.at_least = 25;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_uint_eq(found[12], 0xE);
}

END_TEST

/* The voxel (1, 1) lies between (0, 0) and (2, 1). */
START_TEST(a_knight_meets_voxels_between)
{
    uint64_t mask[3] = {0, 2, 0}, found[3];
    struct enclosed_case each = {
        .extent = {3, 3, 1},
        .mask = mask,
        .request = {
            .mask = mask, .directions = ENCLOSED_AXIAL_16, .at_least = 3, .within_mm = 1, .spacing = {1, 1, 1}}};

    /* (0, 0) meets it by (1, 1), (2, 1) and (1, 2); (1, 0) by (0, 1), (1, 2) and (-1, 2). */
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_uint_eq(found[0], 7);
    ck_assert_uint_eq(found[1], 7);
    each.request.at_least = 4;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_uint_eq(found[0], 0);
    ck_assert_uint_eq(found[1], 2);
    each.request.at_least = 16;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_uint_eq(found[1], 2);
}

END_TEST

START_TEST(refusals)
{
    struct enclosed_case each;
    uint64_t *found;

    enclosed_make_case(&each, 1);
    found = allocate((int64_t)enclosed_words(&each), sizeof(*found));
    each.request.at_least = 0;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), -EINVAL);
    each.request.at_least = 17;
    each.request.directions = ENCLOSED_AXIAL_16;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), -EINVAL);
    each.request.at_least = 16;
    each.request.within_mm = NAN;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), -EINVAL);
    each.request.within_mm = 1;
    each.request.spacing[2] = 0;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), -EINVAL);
    each.request.spacing[2] = 1;
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, found, &error), 0);
    ck_assert_int_eq(enclosed_run_case(variants[0].lane, &each, NULL, &error), -EINVAL);
    free(found);
    enclosed_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("enclosed");
    TCase *tcase = tcase_create("enclosed");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, a_box_with_a_hole);
    tcase_add_test(tcase, a_knight_meets_voxels_between);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
