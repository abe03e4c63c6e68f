/*
 * test_coarse.c - compares blocks and expanded masks with the plain reference, on each available instruction set. Also
 * checks grids, known answers and rejected requests.
 */
#include "tests/kernels/ref_coarse.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <string.h>

enum { CASES = 300 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

START_TEST(grids)
{
    static const double spacing[3] = {0.7, 0.98, 2.5};
    const struct image_extent extent = {512, 511, 300};
    struct coarse_grid grid;

    coarse_grid_find(extent, spacing, 2, &grid);
    ck_assert_int_eq(grid.factor[0], 3); /* 2 / 0.7 + 0.5 = 3.36 */
    ck_assert_int_eq(grid.factor[1], 2);
    ck_assert_int_eq(grid.factor[2], 1);
    ck_assert_int_eq(grid.extent.columns, 171);
    ck_assert_int_eq(grid.extent.rows, 256);
    ck_assert_int_eq(grid.extent.slices, 300);
    ck_assert_double_eq(grid.spacing[0], 3 * 0.7);
    ck_assert_double_eq(grid.spacing[2], 2.5);
    coarse_grid_find(extent, spacing, 1e300, &grid);
    ck_assert_int_eq(grid.extent.columns * grid.extent.rows * grid.extent.slices, 1);
}

END_TEST

static void
check_case(const struct coarse_case *each, uint64_t seed)
{
    const int64_t count = ref_voxels(each->request.grid.extent);
    int16_t *expected = allocate(count, sizeof(*expected)), *blocks = allocate(count, sizeof(*blocks));

    ref_coarse(each->extent, each->pixel, each->voxels, &each->request, expected);
    for (size_t i = 0; i < variant_count; i++) {
        memset(blocks, 0x55, (size_t)count * sizeof(*blocks));
        ck_assert_msg(coarse_run_case(variants[i].lane, each, blocks, &error) == 0, "%s", error.message);
        for (int64_t k = 0; k < count; k++)
            ck_assert_msg(blocks[k] == expected[k], "case %llu, %s, %d threads, block %lld: %d, not %d",
                          (unsigned long long)seed, variants[i].isa, variants[i].threads, (long long)k, blocks[k],
                          expected[k]);
    }
    free(expected);
    free(blocks);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++) {
        struct coarse_case each;

        coarse_make_case(&each, seed);
        check_case(&each, seed);
        coarse_free_case(&each);
    }
}

END_TEST

/* All dividends that a block of n voxels can have: the quotient by multiplication must be exact. */
START_TEST(every_quotient)
{
    static const int64_t sides[][3] = {{1, 1, 1}, {2, 2, 2}, {3, 1, 1}, {3, 3, 1}, {7, 1, 1}, {5, 5, 1}, {3, 3, 3}};

    for (size_t s = 0; s < sizeof(sides) / sizeof(sides[0]); s++) {
        const int64_t n = sides[s][0] * sides[s][1] * sides[s][2];
        struct coarse_case each = {.extent = {sides[s][0] * 65536, sides[s][1], sides[s][2]}, .pixel = IMAGE_UINT16};
        uint16_t *voxels = allocate(65536 * n, sizeof(*voxels));

        each.request =
            (struct coarse_request){.grid = {{sides[s][0], sides[s][1], sides[s][2]}, {65536, 1, 1}, {1, 1, 1}},
                                    .hi = 65535,
                                    .offset = 32768,
                                    .scale = 1,
                                    .padding = {1, 0}};
        for (int64_t i = 0; i < 65536 * n; i++) { /* block b has the mean b, more or less */
            const int64_t b = i / sides[s][0] % 65536;

            voxels[i] = (uint16_t)(b + (b < 65535 && i % 3 == 0));
        }
        each.voxels = voxels;
        check_case(&each, s);
        free(voxels);
    }
}

END_TEST

START_TEST(expanded_masks)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct coarse_case each;
        uint64_t random = seed;

        coarse_make_case(&each, seed);
        const struct image_extent extent = each.extent, blocks = each.request.grid.extent;
        const int64_t words = (extent.columns + 63) / 64 * extent.rows * extent.slices;
        const int64_t words_of_blocks = (blocks.columns + 63) / 64 * blocks.rows * blocks.slices;
        uint64_t *mask = allocate(words_of_blocks, 8), *expected = allocate(words, 8), *bits = allocate(words, 8);

        for (int64_t i = 0; i < words_of_blocks; i++) /* padding of rows, too */
            mask[i] = ref_random_below(&random, 3) ? ref_random(&random) | ref_random(&random) : ~UINT64_C(0);
        ref_coarse_expand(&each.request.grid, mask, extent, expected);
        memset(bits, 0x55, (size_t)words * 8);
        for (int64_t i = 0; seed % 2 > 0 && i < words; i++)
            expected[i] |= bits[i];
        coarse_expand(&each.request.grid, mask, extent, 1 + (int)(seed % 3), seed % 2 > 0, bits);
        ck_assert_msg(memcmp(bits, expected, (size_t)words * 8) == 0, "case %llu", (unsigned long long)seed);
        free(mask);
        free(expected);
        free(bits);
        coarse_free_case(&each);
    }
}

END_TEST

/* Two voxels of -1024 and 1 HU in eighths: the mean -511.5 rounds up; padding counts as the lowest value. */
START_TEST(known_answers)
{
    int16_t voxels[4] = {-1025, 1, 3072, -2000}, blocks[2];
    struct coarse_case each = {
        .extent = {4, 1, 1},
        .pixel = IMAGE_INT16,
        .voxels = voxels,
        .request = {
            .grid = {{2, 1, 1}, {2, 1, 1}, {2, 1, 1}}, .lo = -1024, .hi = 3071, .scale = 1, .padding = {-2000, -2000}}};

    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), 0);
    ck_assert_int_eq(blocks[0], -511);
    ck_assert_int_eq(blocks[1], 1024); /* 1023.5 */
    each.request.scale = 8;
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), 0);
    ck_assert_int_eq(blocks[0], -4092);
}

END_TEST

START_TEST(refusals)
{
    struct coarse_case each;
    int16_t *blocks;

    coarse_make_case(&each, 1);
    blocks = allocate(ref_voxels(each.request.grid.extent), sizeof(*blocks));
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, NULL, &error), -EINVAL);
    each.request.scale = 65;
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), -EINVAL);
    each.request.scale = 0;
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), -EINVAL);
    each.request.scale = 1;
    each.request.hi = each.request.offset + 32768;
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), -EINVAL);
    each.request.hi = each.request.lo - 1;
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), -EINVAL);
    each.request.hi = each.request.lo;
    each.request.grid.extent.rows++;
    ck_assert_int_eq(coarse_run_case(variants[0].lane, &each, blocks, &error), -EINVAL);
    free(blocks);
    coarse_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("coarse");
    TCase *tcase = tcase_create("coarse");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, grids);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, every_quotient);
    tcase_add_test(tcase, expanded_masks);
    tcase_add_test(tcase, known_answers);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
