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
    const double *responses[IMAGE_TYPE_BANDS] = {NULL};
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
        ck_assert_msg(image_type_run_case(variants[v].lane, &each, responses, &error) == 0, "%s", error.message);
        if (v == 0)
            memcpy(first, responses[0], (size_t)count * sizeof(*first));
        ck_assert_msg(memcmp(first, responses[0], (size_t)count * sizeof(*first)) == 0, "case %llu: %d threads differ",
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

/* Bands that are computed together, of a box, are those of the volume that are computed one by one. */
START_TEST(bands_and_boxes)
{
    for (uint64_t seed = 0; seed < 270; seed++) {
        struct image_type_case each, box;
        const double *whole[IMAGE_TYPE_BANDS], *part[IMAGE_TYPE_BANDS];
        int count = 0;

        image_type_make_case(&each, seed);
        box = image_type_boxed(&each, seed);
        ck_assert_int_eq(image_type_run_case(variants[seed % variant_count].lane, &box, part, &error), 0);
        for (unsigned band = 0; band < IMAGE_TYPE_BANDS; band++) {
            if (!(image_type_bands(&box.demand) >> band & 1))
                continue;
            for (int axis = 0; axis < 3 && each.demand.options.kind == FILTER_PYRADIOMICS_WAVELET; axis++)
                each.demand.options.high[axis] = band >> axis & 1;
            ck_assert_int_eq(image_type_run_case(variants[(seed + 1) % variant_count].lane, &each, whole, &error), 0);
            for (int64_t i = 0; i < image_type_box_voxels(&box); i++)
                ck_assert_msg(memcmp(&whole[0][image_type_box_voxel(&box, i)], &part[count][i], sizeof(double)) == 0,
                              "case %llu, band %u, voxel %lld", (unsigned long long)seed, band, (long long)i);
            count++;
        }
        ck_assert_int_eq(count, image_type_count(&box.demand));
        image_type_free_case(&each);
    }
}

END_TEST

/* Values may be a part of a larger volume, and NAN counts as another value. */
START_TEST(a_part_of_a_volume)
{
    for (uint64_t seed = 0; seed < 90; seed++) {
        struct image_type_case each;
        const double *responses[IMAGE_TYPE_BANDS];
        double *expected;
        uint64_t random = seed;

        image_type_make_case(&each, seed);
        const struct image_extent own = each.extent;
        const int64_t count = ref_voxels(own), sides[3] = {own.columns + 3, own.rows + 2, own.slices + 4};
        double *const around = ref_allocate(sides[0] * sides[1] * sides[2], sizeof(*around));
        const struct image_type_request request = {
            .values = around, .none = 3.25, .sides = {sides[0], sides[1], sides[2]}, .at = {2, 1, 3}};

        for (int64_t i = 0; i < sides[0] * sides[1] * sides[2]; i++)
            around[i] = (double)ref_random_below(&random, 1000000);
        for (int64_t i = 0; i < count; i++) {
            const bool is_none = ref_random_below(&random, 9) == 0;
            const int64_t x = 2 + i % own.columns, y = 1 + i / own.columns % own.rows,
                          z = 3 + i / own.columns / own.rows;

            each.values[i] = is_none ? request.none : each.values[i];
            around[(z * sides[1] + y) * sides[0] + x] = is_none ? NAN : each.values[i];
        }
        expected = ref_allocate(count, sizeof(*expected));
        ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), 0);
        memcpy(expected, responses[0], (size_t)count * sizeof(*expected));
        ck_assert_int_eq(image_type_run(variants[0].lane, &request, responses, &error), 0);
        ck_assert(memcmp(expected, responses[0], (size_t)count * sizeof(*expected)) == 0);
        free(expected);
        free(around);
        image_type_free_case(&each);
    }
}

END_TEST

/* A part has the responses of the whole volume if the largest absolute value of this is given. */
START_TEST(a_part_with_the_peak_of_the_whole)
{
    int cases = 0;

    for (uint64_t seed = 0; seed < 90; seed++) {
        struct image_type_case each;
        const double *responses[IMAGE_TYPE_BANDS];
        struct image_type_request request = {.none = 0};

        image_type_make_case(&each, seed);
        const struct image_extent whole = each.extent;
        const int64_t count = ref_voxels(whole), slice = whole.columns * whole.rows;
        double *const values = each.values, *const expected = ref_allocate(count, sizeof(*expected));

        if (image_type_has_peak(each.demand.options.kind) && whole.slices > 1) {
            for (int64_t i = 0; i < count; i++)
                request.peak = fmax(request.peak, fabs(values[i]));
            ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), 0);
            memcpy(expected, responses[0], (size_t)count * sizeof(*expected));
            each.extent.slices = 1;
            request.values = values;
            for (int axis = 0; axis < 3; axis++)
                request.sides[axis] = axis == 0 ? whole.columns : axis == 1 ? whole.rows : whole.slices;
            for (request.at[2] = 0; request.at[2] < whole.slices; request.at[2]++) {
                ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), 0);
                ck_assert_int_eq(image_type_run(variants[0].lane, &request, responses, &error), 0);
                ck_assert(memcmp(expected + request.at[2] * slice, responses[0], (size_t)slice * sizeof(double)) == 0);
            }
            cases++;
        }
        free(expected);
        image_type_free_case(&each);
    }
    ck_assert_int_ge(cases, 10);
}

END_TEST

/* No response exceeds the bound. */
START_TEST(bounds)
{
    for (uint64_t seed = 0; seed < 180; seed++) {
        struct image_type_case each;
        const double *responses[IMAGE_TYPE_BANDS] = {NULL};
        double peak = 0;

        image_type_make_case(&each, seed);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            peak = fmax(peak, fabs(each.values[i]));
        ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), 0);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            ck_assert(!(fabs(responses[0][i]) > image_type_bound(&each.demand, peak) * (1 + 1e-12)));
        image_type_free_case(&each);
    }
}

END_TEST

START_TEST(volumes_of_zeros_and_of_one_value)
{
    static const double values[] = {0, 1, -7.5};

    for (uint64_t seed = 0; seed < 90; seed++) {
        struct image_type_case each;
        const double *responses[IMAGE_TYPE_BANDS] = {NULL};

        image_type_make_case(&each, seed);
        const double value = values[seed / 9 % 3];
        const enum filter_kind kind = each.demand.options.kind;

        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            each.values[i] = value;
        ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), 0);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++) {
            if (kind == FILTER_PYRADIOMICS_GRADIENT || (kind == FILTER_PYRADIOMICS_SQUARE_ROOT && value == 0))
                ck_assert(responses[0][i] == 0);
            if (value == 0 && (kind == FILTER_PYRADIOMICS_SQUARE || kind == FILTER_PYRADIOMICS_LOGARITHM ||
                               kind == FILTER_PYRADIOMICS_EXPONENTIAL))
                ck_assert(isnan(responses[0][i]));
            if (kind == FILTER_PYRADIOMICS_LOG && !isnan(responses[0][i]))
                ck_assert(fabs(responses[0][i]) <= (double)ref_image_type_off(&each) + 1e-6);
        }
        image_type_free_case(&each);
    }
}

END_TEST

START_TEST(refusals)
{
    struct image_type_case each;
    const double *responses[IMAGE_TYPE_BANDS];

    image_type_make_case(&each, FILTER_PYRADIOMICS_WAVELET - FILTER_PYRADIOMICS_SQUARE);
    each.demand.options.level = 0;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), -EINVAL);
    each.demand.options.level = FILTER_MAX_LEVEL + 1;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), -EINVAL);
    each.demand.options.kind = FILTER_PYRADIOMICS_LOG;
    each.demand.options.sigma_mm = 0;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), -EINVAL);
    each.demand.options.kind = FILTER_PYRADIOMICS_LBP_2D;
    each.demand.options.points = FILTER_MAX_POINTS + 1;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), -EINVAL);
    each.demand.options.kind = FILTER_MEAN;
    ck_assert_int_eq(image_type_run_case(variants[0].lane, &each, responses, &error), -EINVAL);
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
    tcase_add_test(tcase, bands_and_boxes);
    tcase_add_test(tcase, a_part_of_a_volume);
    tcase_add_test(tcase, a_part_with_the_peak_of_the_whole);
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
