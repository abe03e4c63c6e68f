/*
 * test_image_type.c - compares image types with the plain reference, with each number of threads, which must give the same
 * bits. tests/integ/test_image_types.py compares with pyradiomics.
 */
#include "tests/kernels/ref_image_type.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CASES = 108 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

static void
compare_case(uint64_t seed)
{
    struct image_type_case each;
    const double *responses = NULL;
    double *first;
    long double *expected, off;
    int64_t count;

    image_type_make_case(&each, seed);
    count = ref_voxels(each.extent);
    expected = ref_allocate(count, sizeof(*expected));
    first = ref_allocate(count, sizeof(*first));
    ref_image_type(&each, expected);
    off = ref_image_type_off(&each);
    for (size_t v = 0; v < variant_count; v++) {
        ck_assert_msg(image_type_run_case(variants[v].lane, &each, &responses, &error) == 0, "%s", error.message);
        if (v == 0)
            memcpy(first, responses, (size_t)count * sizeof(*first));
        ck_assert_msg(memcmp(first, responses, (size_t)count * sizeof(*first)) == 0, "case %llu: %d threads differ",
                      (unsigned long long)seed, variants[v].threads);
    }
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(isnan(expected[i]) ? isnan(first[i]) : fabsl(first[i] - expected[i]) <= off,
                      "case %llu (%s), voxel %lld: %.17g, not %.17Lg", (unsigned long long)seed,
                      filter_kind_names[each.demand.options.kind], (long long)i, first[i], expected[i]);
    free(expected);
    free(first);
    image_type_free_case(&each);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < CASES / (uint64_t)test_share(); seed++)
        compare_case(seed);
}

END_TEST

/* Voxels of a box have the same response as in the whole volume. */
START_TEST(a_box)
{
    for (uint64_t seed = 0; seed < 54; seed++) {
        struct image_type_case each;
        struct image_type_request request;
        const double *responses = NULL;
        double *whole;

        image_type_make_case(&each, seed);
        const int64_t sides[3] = {each.extent.columns, each.extent.rows, each.extent.slices};

        whole = ref_allocate(ref_voxels(each.extent), sizeof(*whole));
        ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), 0);
        memcpy(whole, responses, (size_t)ref_voxels(each.extent) * sizeof(*whole));
        request.values = each.values;
        for (int axis = 0; axis < 3; axis++) {
            request.first[axis] = sides[axis] / 3;
            request.size[axis] = (sides[axis] + 1) / 2;
        }
        ck_assert_int_eq(image_type_run(variants[0].lane, &request, &responses, &error), 0);
        for (int64_t z = 0; z < request.size[2]; z++)
            for (int64_t y = 0; y < request.size[1]; y++)
                for (int64_t x = 0; x < request.size[0]; x++) {
                    const int64_t i =
                        ((request.first[2] + z) * sides[1] + request.first[1] + y) * sides[0] + request.first[0] + x;

                    ck_assert(memcmp(&whole[i], &responses[i], sizeof(whole[i])) == 0);
                }
        free(whole);
        image_type_free_case(&each);
    }
}

END_TEST

/* No response exceeds the bound. */
START_TEST(bounds)
{
    for (uint64_t seed = 0; seed < 180; seed++) {
        struct image_type_case each;
        const double *responses = NULL;
        double peak = 0;

        image_type_make_case(&each, seed);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            peak = fmax(peak, fabs(each.values[i]));
        ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), 0);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            ck_assert(!(fabs(responses[i]) > image_type_bound(&each.demand, peak) * (1 + 1e-12)));
        image_type_free_case(&each);
    }
}

END_TEST

START_TEST(volumes_of_zeros_and_of_one_value)
{
    static const double values[] = {0, 1, -7.5};

    for (uint64_t seed = 0; seed < 90; seed++) {
        struct image_type_case each;
        const double *responses = NULL;

        image_type_make_case(&each, seed);
        const double value = values[seed / 9 % 3];
        const enum filter_kind kind = each.demand.options.kind;

        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            each.values[i] = value;
        ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), 0);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++) {
            if (kind == FILTER_PYRADIOMICS_GRADIENT || (kind == FILTER_PYRADIOMICS_SQUARE_ROOT && value == 0))
                ck_assert(responses[i] == 0);
            if (value == 0 && (kind == FILTER_PYRADIOMICS_SQUARE || kind == FILTER_PYRADIOMICS_LOGARITHM ||
                               kind == FILTER_PYRADIOMICS_EXPONENTIAL))
                ck_assert(isnan(responses[i]));
            if (kind == FILTER_PYRADIOMICS_LOG && !isnan(responses[i]))
                ck_assert(fabs(responses[i]) <= (double)ref_image_type_off(&each) + 1e-6);
        }
        image_type_free_case(&each);
    }
}

END_TEST

START_TEST(refusals)
{
    struct image_type_case each;
    const double *responses;

    image_type_make_case(&each, FILTER_PYRADIOMICS_WAVELET - FILTER_PYRADIOMICS_SQUARE);
    each.demand.options.level = 0;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), -EINVAL);
    each.demand.options.level = FILTER_MAX_LEVEL + 1;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), -EINVAL);
    each.demand.options.kind = FILTER_PYRADIOMICS_LOG;
    each.demand.options.sigma_mm = 0;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), -EINVAL);
    each.demand.options.kind = FILTER_PYRADIOMICS_LBP_2D;
    each.demand.options.points = FILTER_MAX_POINTS + 1;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), -EINVAL);
    each.demand.options.kind = FILTER_MEAN;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, &responses, &error), -EINVAL);
    image_type_free_case(&each);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("image_type");
    TCase *tcase = tcase_create("image_type");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_cases);
    tcase_add_test(tcase, a_box);
    tcase_add_test(tcase, bounds);
    tcase_add_test(tcase, volumes_of_zeros_and_of_one_value);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
