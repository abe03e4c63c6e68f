/*
 * test_filter_spectral.c - compares filters with a transfer function with the plain reference, on each available
 * instruction set, and the reference's transform with its definition. tests/integ/test_filter_maps.py has the response
 * maps of IBSI 2.
 */
#include "kernels/filter/fft.h"
#include "kernels/filter/filter_private.h"
#include "kernels/op.h"
#include "tests/kernels/spectral_cases.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <string.h>

enum { CASES = 96 };

static struct error error;

static void
open_variants(void)
{
    variants_open(2);
}

/* ---- transforms ---- */

/* The reference equals the sum by which the transform is defined, for lengths with all kinds of radices. */
START_TEST(transforms)
{
    static const int64_t sides[] = {1,  2,   3,   4,   5,   6,   7,   8,   9,   11,  12,  13,  15,  37,  47, 74,
                                    83, 141, 149, 185, 197, 223, 16,  17,  20,  24,  27,  30,  31,  32,  35, 48,
                                    49, 61,  64,  72,  81,  96,  101, 121, 127, 128, 143, 160, 243, 256, 257};

    for (size_t s = 0; s < sizeof(sides) / sizeof(sides[0]); s++)
        for (int inverse = 0; inverse < 2; inverse++) {
            const int64_t n = sides[s];
            double complex values[257], found[257];
            uint64_t random = (uint64_t)n;

            for (int64_t i = 0; i < n; i++)
                found[i] = values[i] = CMPLX((double)ref_random_below(&random, 2001) - 1000,
                                             (double)ref_random_below(&random, 2001) - 1000);
            ref_fft(n, found, inverse);
            for (int64_t k = 0; k < n; k++) {
                long double re = 0, im = 0;

                for (int64_t t = 0; t < n; t++) {
                    const long double angle =
                        (inverse ? 2 : -2) * acosl(-1) * (long double)(k * t % n) / (long double)n;

                    re += (long double)creal(values[t]) * cosl(angle) - (long double)cimag(values[t]) * sinl(angle);
                    im += (long double)creal(values[t]) * sinl(angle) + (long double)cimag(values[t]) * cosl(angle);
                }
                ck_assert_double_eq_tol(creal(found[k]), (double)re, 2e-11 * (double)n);
                ck_assert_double_eq_tol(cimag(found[k]), (double)im, 2e-11 * (double)n);
            }
        }
}

END_TEST

/* fft_root is within two units of the last place of the exact root. */
START_TEST(roots)
{
    for (int32_t n = 1; n < 300; n++) {
        struct fft_value found[300];

        fft_roots(n, found);
        for (int32_t k = 0; k < n; k++) {
            const long double angle = 2 * acosl(-1) * k / n;

            ck_assert_double_eq_tol(found[k].re, (double)cosl(angle), 3e-16);
            ck_assert_double_eq_tol(found[k].im, (double)-sinl(angle), 3e-16);
        }
    }
}

END_TEST

START_TEST(plans)
{
    for (int64_t side = 1; side <= FFT_MAX_SIDE; side++) {
        struct fft_plan plan;
        int64_t product = 1;

        fft_plan_make(side, &plan);
        ck_assert_int_le(plan.steps, FFT_MAX_STEPS);
        for (int i = 0; i < plan.steps; i++)
            product *= plan.radix[i];
        ck_assert_int_eq(product, side);
    }
    ck_assert_int_eq(fft_good_side(1), 12);
    ck_assert_int_eq(fft_good_side(513), 576);
    ck_assert_int_eq(fft_good_side(577), 648);
    ck_assert_int_eq(fft_good_side(1025), 1152);
}

END_TEST

/* ---- filters ---- */

static void
compare(struct filter_case *each, uint64_t seed)
{
    const int64_t count = ref_voxels(each->extent);
    int32_t *expected = allocate(count, sizeof(*expected));

    ck_assert_msg(spectral_expect(variants[0].lane, each, expected, &error) == 0, "%s", error.message);
    for (size_t i = 0; i < variant_count; i++) {
        const int32_t *codes = NULL;
        double step;

        ck_assert_msg(filter_run_codes(variants[i].lane, each, &codes, &step, &error) == 0, "%s", error.message);
        for (int64_t v = 0; v < count; v++)
            ck_assert_msg(codes[v] == expected[v], "case %llu, %s, %d threads, voxel %lld: %d, not %d",
                          (unsigned long long)seed, variants[i].isa, variants[i].threads, (long long)v, codes[v],
                          expected[v]);
    }
    free(expected);
    filter_free_case(each);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++) {
        struct filter_case each;

        spectral_make_case(&each, seed);
        compare(&each, seed);
    }
}

END_TEST

START_TEST(long_cases)
{
    for (uint64_t seed = 0; seed < SPECTRAL_LONG_CASES / (uint64_t)test_share(); seed++) {
        struct filter_case each;

        spectral_make_long_case(&each, seed);
        compare(&each, seed);
    }
}

END_TEST

START_TEST(refusals)
{
    struct filter_case each;
    const int32_t *codes;
    double step;

    spectral_make_case(&each, 0);
    each.request.values = NULL;
    each.demand.values = false;
    each.demand.options = (struct filter_options){.kind = FILTER_SIMONCELLI, .level = 0};
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -EINVAL);
    each.demand.options.level = FILTER_MAX_LEVEL + 1;
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -EINVAL);
    each.demand.options = (struct filter_options){.kind = FILTER_RIESZ_SIMONCELLI, .level = 1};
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -EINVAL); /* of no order */
    each.demand.options.riesz[0] = 1;
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), 0);
    each.demand.options.pooling = FILTER_MAX;
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -EINVAL);
    each.demand.options = (struct filter_options){
        .kind = FILTER_GABOR, .sigma_mm = 1, .gamma = 1, .lambda_mm = 2, .theta_degrees = 45, .pooling = FILTER_MAX};
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), 0);
    each.demand.options.theta_degrees = 50; /* does not divide a turn */
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -EINVAL);
    each.demand.options.theta_degrees = 45;
    each.demand.options.gamma = 0;
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -EINVAL);
    each.demand.options.gamma = 0.001;
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -E2BIG);
    ck_assert_int_eq(error.code, CODE_VOLUME_TOO_LARGE);
    filter_free_case(&each);
    each = (struct filter_case){.demand.options = {.kind = FILTER_SIMONCELLI, .level = 1},
                                .demand.spacing = {1, 1, 1},
                                .request = {.limit = 1, .padding = {1, 0}},
                                .extent = {FFT_MAX_SIDE + 1, 1, 1}};
    each.voxels = allocate(FFT_MAX_SIDE + 1, 1);
    ck_assert_int_eq(filter_run_codes(variants[0].lane, &each, &codes, &step, &error), -E2BIG);
    ck_assert_int_eq(error.code, CODE_VOLUME_TOO_LARGE);
    filter_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("filter_spectral");
    TCase *tcase = tcase_create("filter_spectral");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, transforms);
    tcase_add_test(tcase, roots);
    tcase_add_test(tcase, plans);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, long_cases);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
