/*
 * test_filter.c - compares responses of separable filters with the plain reference, and with each other bit for bit, on
 * each available instruction set. Also checks fixed responses, steps and rejected requests.
 */
#include "tests/kernels/ref_filter.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CASES = 400 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

static void
check_responses(const struct filter_case *each, const int32_t *codes, double step, uint64_t seed)
{
    const int64_t count = ref_voxels(each->extent);
    const bool energy = each->demand.options.kind == FILTER_LAWS && each->demand.options.energy > 0;
    long double *responses = allocate(count, sizeof(*responses));
    int32_t *values = allocate(count, sizeof(*values));

    ref_filter_values(each, values);
    ref_filter(each->extent, values, &each->demand, responses);
    ck_assert_double_eq(step, ref_filter_step(&each->demand, each->request.limit));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabsl(codes[i] - responses[i] / step) <= (energy ? REF_FILTER_ENERGY : REF_FILTER_OFF),
                      "case %llu, kind %d, pooling %d, voxel %lld: %d, not %.4Lf", (unsigned long long)seed,
                      each->demand.options.kind, each->demand.options.pooling, (long long)i, codes[i],
                      responses[i] / step);
    free(values);
    free(responses);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++) {
        struct filter_case each;

        filter_make_case(&each, seed);
        const size_t size = (size_t)ref_voxels(each.extent) * sizeof(int32_t);
        int32_t *codes = allocate(1, size), *others = allocate(1, size);
        double step = 0;

        for (size_t i = 0; i < variant_count; i++) {
            ck_assert_msg(filter_run_case(variants[i].lane, &each, i == 0 ? codes : others, &step, &error) == 0,
                          "case %llu: %s", (unsigned long long)seed, error.message);
            if (i == 0)
                check_responses(&each, codes, step, seed);
            else
                ck_assert_msg(memcmp(codes, others, size) == 0, "case %llu: others with %s, %d threads",
                              (unsigned long long)seed, variants[i].isa, variants[i].threads);
        }
        free(codes);
        free(others);
        filter_free_case(&each);
    }
}

END_TEST

/* Runs a filter on a line of nine voxels along x. */
static void
run_line(uint16_t line[9], const struct filter_options *options, double responses[9])
{
    struct filter_case each = {.extent = {9, 1, 1}, .pixel = IMAGE_UINT16, .voxels = line};
    int32_t codes[9];
    double step;

    each.demand = (struct filter_demand){.options = *options, .spacing = {1, 1, 1}};
    each.request = (struct filter_request){.limit = 65536, .padding = {1, 0}};
    ck_assert_msg(filter_run_case(variants[0].lane, &each, codes, &step, &error) == 0, "%s", error.message);
    for (int i = 0; i < 9; i++)
        responses[i] = codes[i] * step;
}

/* A mean of three voxels of 3 rows and 3 slices that are 0 beyond the line: a ninth of it. */
START_TEST(means_at_boundaries)
{
    static uint16_t line[9] = {27, 0, 0, 0, 0, 0, 0, 0, 54};
    static const double expected[FILTER_BOUNDARIES][2] = {{1, 2}, {18, 36}, {27, 27}, {18, 36}};

    for (int boundary = 0; boundary < FILTER_BOUNDARIES; boundary++) {
        const struct filter_options options = {
            .kind = FILTER_MEAN, .size = 3, .boundary = (enum filter_boundary)boundary};
        double found[9];

        run_line(line, &options, found);
        ck_assert_double_eq_tol(found[0], expected[boundary][0], 1e-4);
        ck_assert_double_eq_tol(found[8], expected[boundary][1], 1e-4);
    }
}

END_TEST

/* The impulse response of a kernel is the kernel from the last tap on: a convolution. */
START_TEST(impulses)
{
    static uint16_t line[9] = {0, 0, 0, 0, 1000, 0, 0, 0, 0};
    static const double e5[5] = {-1, -2, 0, 2, 1};
    const struct filter_options laws = {
        .kind = FILTER_LAWS, .in_slice = true, .laws = {LAWS_E5, LAWS_L5}, .boundary = FILTER_ZERO};
    const struct filter_options db2 = {
        .kind = FILTER_WAVELET, .wavelet = WAVELET_DB2, .level = 1, .in_slice = true, .boundary = FILTER_ZERO};
    double found[9];

    run_line(line, &laws, found); /* 6 / sqrt(70) of L5 along y */
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq_tol(found[2 + i], e5[i] * 6000 / sqrt(700), 1e-3);
    run_line(line, &db2, found); /* the taps begin two voxels before: tap 2 is at the voxel */
    ck_assert_double_eq_tol(found[4], 836.5163037378079 * 0.8365163037378079, 1e-3);
    ck_assert_double_eq_tol(found[2], -129.40952255126037 * 0.8365163037378079, 1e-3);
    ck_assert_double_eq_tol(found[5], 482.96291314453416 * 0.8365163037378079, 1e-3);
    ck_assert_double_eq_tol(found[6], 0, 1e-3);
}

END_TEST

START_TEST(exponential)
{
    ck_assert_double_eq(filter_exp_minus(0), 1);
    ck_assert_double_eq(filter_exp_minus(1000), 0);
    for (int i = 0; i < 4000; i++) {
        const double x = i / 97.0;

        ck_assert_double_eq_tol(filter_exp_minus(x) / exp(-x), 1, 5e-16);
    }
}

END_TEST

START_TEST(refusals)
{
    struct kernels_lane *lane = variants[0].lane;
    struct filter_case each;
    const int32_t *found;
    int32_t *codes;
    double step;

    filter_make_case(&each, 1);
    codes = allocate(ref_voxels(each.extent), sizeof(*codes));
    each.demand.options = (struct filter_options){.kind = FILTER_LOG, .sigma_mm = 1};
    each.demand.spacing[1] = 0.01;
    ck_assert_int_eq(filter_run_case(lane, &each, codes, &step, &error), -E2BIG);
    ck_assert_int_eq(error.code, CODE_VOLUME_TOO_LARGE);
    each.demand.spacing[1] = 1;
    ck_assert_int_eq(filter_run_case(lane, &each, codes, &step, &error), 0);
    ck_assert_int_eq(filter_run(lane, FILTER_MEAN, &each.request, &found, &step, &error), -EINVAL);
    each.request.values = each.values;
    ck_assert_int_eq(filter_run(lane, FILTER_LOG, &each.request, &found, &step, &error), -EINVAL);
    each.request.values = NULL;
    each.request.limit = 0;
    ck_assert_int_eq(filter_run(lane, FILTER_LOG, &each.request, &found, &step, &error), -EINVAL);
    each.request.limit = 1;
    each.request.padded = 2;
    ck_assert_int_eq(filter_run(lane, FILTER_LOG, &each.request, &found, &step, &error), -EINVAL);
    each.request.padded = 0;
    for (int size = -1; size <= FILTER_MAX_SIZE + 2; size++) {
        each.demand.options = (struct filter_options){.kind = FILTER_MEAN, .size = size};
        ck_assert_int_eq(filter_run_case(lane, &each, codes, &step, &error),
                         size >= 1 && size % 2 && size <= FILTER_MAX_SIZE ? 0 : -EINVAL);
    }
    free(codes);
    filter_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("filter");
    TCase *tcase = tcase_create("filter");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 600);
    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, means_at_boundaries);
    tcase_add_test(tcase, impulses);
    tcase_add_test(tcase, exponential);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
