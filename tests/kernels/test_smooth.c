/*
 * test_smooth.c - compares ranges and histograms of filtered values with the plain reference, on each available
 * instruction set. Also checks weights and rejected requests.
 */
#include "tests/kernels/ref_smooth.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CASES = 240 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

/* sigma 1: floor(2^14 exp(-i^2 / 2) / 2.505947 + 0.5) is 3966, 885, 73 for i = 1, 2, 3. */
START_TEST(weights)
{
    int32_t found[SMOOTH_MAX_RADIUS + 1];

    ck_assert_int_eq(smooth_weights(1, found), 3);
    ck_assert_int_eq(found[0], 6536);
    ck_assert_int_eq(found[1], 3966);
    ck_assert_int_eq(found[2], 885);
    ck_assert_int_eq(found[3], 73);
    ck_assert_int_eq(smooth_weights(0, found), 0);
    ck_assert_int_eq(found[0], 16384);
    ck_assert_int_eq(smooth_weights(0.1, found), 0);
    ck_assert_int_eq(smooth_weights(21.5, found), -1); /* 3 * 21.5 + 0.5 = 65 */
    ck_assert_int_eq(smooth_weights(21.49, found), 64);
    ck_assert_int_eq(smooth_weights((double)INFINITY, found), -1);
    ck_assert_int_eq(smooth_weights((double)NAN, found), -1);
    for (int i = 0; i < 2140; i++) { /* filtered values cannot exceed the values */
        const int radius = smooth_weights(i / 100.0, found);
        int32_t sum = 0;

        ck_assert_int_eq(radius, (int)floor(3 * (i / 100.0) + 0.5));
        for (int k = -radius; k <= radius; k++) {
            ck_assert_int_ge(found[abs(k)], 0);
            sum += found[abs(k)];
        }
        ck_assert_int_eq(sum, 16384);
    }
}

END_TEST

static void
check_case(struct smooth_case *each, uint64_t seed)
{
    const size_t words = smooth_words(each), bins = (size_t)each->request.bins;
    struct smooth_request expected = each->request;
    int32_t *filtered = allocate(ref_voxels(each->extent), sizeof(*filtered));

    expected.bits = allocate((int64_t)words, sizeof(*expected.bits));
    expected.histogram = allocate((int64_t)bins, sizeof(*expected.histogram));
    ref_smooth_values(each->extent, each->pixel, each->voxels, each->spacing, &each->request, filtered);
    ref_smooth_results(each->extent, filtered, &expected);
    for (size_t i = 0; i < variant_count; i++) {
        memset(each->request.bits, 0x55, words * sizeof(*expected.bits));
        ck_assert_msg(smooth_run_case(variants[i].lane, each, &error) == 0, "%s", error.message);
        ck_assert_msg(memcmp(each->request.bits, expected.bits, words * sizeof(*expected.bits)) == 0,
                      "case %llu, %s, %d threads: other bits", (unsigned long long)seed, variants[i].isa,
                      variants[i].threads);
        ck_assert_msg(memcmp(each->request.histogram, expected.histogram, bins * sizeof(*expected.histogram)) == 0,
                      "case %llu, %s, %d threads: another histogram", (unsigned long long)seed, variants[i].isa,
                      variants[i].threads);
    }
    free(filtered);
    free(expected.bits);
    free(expected.histogram);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++) {
        struct smooth_case each;

        smooth_make_case(&each, seed);
        check_case(&each, seed);
        smooth_free_case(&each);
    }
}

END_TEST

/* The bits of v >= limit for each limit give each filtered value: one voxel of 16384 shows the weights. */
START_TEST(an_impulse)
{
    uint16_t voxels[9] = {0, 0, 0, 0, 16384, 0, 0, 0, 0};
    static const int32_t expected[9] = {0, 73, 885, 3966, 6536, 3966, 885, 73, 0};
    uint64_t bits;
    struct smooth_case each = {.extent = {9, 1, 1}, .pixel = IMAGE_UINT16, .voxels = voxels, .spacing = {2, 9, 9}};

    each.request = (struct smooth_request){.sigma_mm = 2, .hi = 65535, .padding = {1, 0}, .bits = &bits};
    for (int x = 0; x < 9; x++) {
        each.request.range = (struct image_range){expected[x], expected[x]};
        ck_assert_int_eq(smooth_run_case(variants[0].lane, &each, &error), 0);
        ck_assert(bits >> x & 1);
    }
    each.request.range = (struct image_range){1, 0};
    ck_assert_int_eq(smooth_run_case(variants[0].lane, &each, &error), 0);
    ck_assert_uint_eq(bits, 0);
    each.request.range = (struct image_range){-5, -1};
    ck_assert_int_eq(smooth_run_case(variants[0].lane, &each, &error), 0);
    ck_assert_uint_eq(bits, 0);
}

END_TEST

START_TEST(refusals)
{
    struct kernels_lane *lane = variants[0].lane;
    struct smooth_case each;

    smooth_make_case(&each, 1);
    each.spacing[1] = 0.01;
    each.request.sigma_mm = 1;
    ck_assert_int_eq(smooth_run_case(lane, &each, &error), -E2BIG);
    ck_assert_int_eq(error.code, CODE_VOLUME_TOO_LARGE);
    each.spacing[1] = 1;
    ck_assert_int_eq(smooth_run_case(lane, &each, &error), 0);
    each.request.sigma_mm = 2; /* above the demand */
    ck_assert_int_eq(smooth_run(lane, &each.request, &error), -EINVAL);
    each.request.sigma_mm = (double)NAN;
    ck_assert_int_eq(smooth_run(lane, &each.request, &error), -EINVAL);
    each.request.sigma_mm = 0.5;
    ck_assert_int_eq(smooth_run(lane, &each.request, &error), 0);
    each.request.width = 0;
    ck_assert_int_eq(smooth_run(lane, &each.request, &error), -EINVAL);
    each.request.width = 1;
    each.request.bins = SMOOTH_MAX_BINS + 1;
    ck_assert_int_eq(smooth_run(lane, &each.request, &error), -EINVAL);
    each.request.bins = 1;
    each.request.hi = each.request.lo + 65536;
    ck_assert_int_eq(smooth_run(lane, &each.request, &error), -EINVAL);
    smooth_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("smooth");
    TCase *tcase = tcase_create("smooth");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, weights);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, an_impulse);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
