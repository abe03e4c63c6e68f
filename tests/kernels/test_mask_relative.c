/* test_mask_relative.c - compares relative ranges with plain definitions: sorted values, and every split. */
#include "kernels/mask/relative.h"
#include "kernels/texture/texture.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 65536, MOST = 4000 };

static struct error error;
static uint64_t random_state;

/* Values in input order, one entry each. */
struct sample {
    double values[MOST];
    int count;
};

static int
compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Makes two slices of random values, of few kinds, each with its own rescale. */
static struct mask_tally
random_tally(int kinds, int count, struct sample *sample)
{
    static uint64_t histograms[2 * BINS];
    const struct image_rescale rescales[2] = {{0.5, -10}, {0.25, 3}};
    struct mask_tally tally;
    int kind[MOST];

    memset(histograms, 0, sizeof(histograms));
    for (int i = 0; i < kinds; i++)
        kind[i] = (int)ref_random_below(&random_state, kinds > 8 ? BINS : 40);
    sample->count = count;
    for (int i = 0; i < count; i++) {
        int bin = kind[ref_random_below(&random_state, kinds)], slice = i % 2;

        histograms[slice * BINS + bin]++;
        sample->values[i] = rescales[slice].slope * (bin - 32768) + rescales[slice].intercept;
    }
    qsort(sample->values, (size_t)count, sizeof(double), compare_doubles);
    ck_assert_int_eq(mask_tally_make(IMAGE_INT16, histograms, 2, rescales, &tally, &error), 0);
    ck_assert_uint_eq(tally.total, (uint64_t)count);
    return tally;
}

START_TEST(percentiles_equal_those_of_sorted_values)
{
    static const double ranks[] = {0, 0.1, 1, 5, 33.3, 50, 75, 97.5, 99.99, 100};
    const int ends = sizeof(ranks) / sizeof(ranks[0]);
    static struct sample sample;

    random_state = (uint64_t)_i;
    for (int round = 0; round < 40; round++) {
        const int count = 1 + (int)ref_random_below(&random_state, round % 2 ? 10 : MOST);
        struct mask_tally tally = random_tally(1 + round * 3, count, &sample);

        for (int a = 0; a < ends; a++)
            for (int b = 0; b < ends; b++) {
                double range[2], wanted[2] = {ranks[a], ranks[b]};

                ck_assert_int_eq(mask_range_percentile(&tally, ranks[a], ranks[b], range), 0);
                for (int end = 0; end < 2; end++) {
                    int rank = 1;

                    while (rank < count && rank < wanted[end] / 100 * count)
                        rank++;
                    ck_assert(range[end] == sample.values[rank - 1]);
                }
            }
        mask_tally_free(&tally);
    }
}

END_TEST

START_TEST(sigma_and_share)
{
    static struct sample sample;

    random_state = (uint64_t)_i + 100;
    for (int round = 1; round < 40; round++) {
        struct mask_tally tally = random_tally(round * 5, 50 * round, &sample);
        double sum = 0, squares = 0, mean, sd, range[2];

        for (int i = 0; i < sample.count; i++)
            sum += sample.values[i];
        mean = sum / sample.count;
        for (int i = 0; i < sample.count; i++)
            squares += (sample.values[i] - mean) * (sample.values[i] - mean);
        sd = sqrt(squares / sample.count);
        ck_assert_int_eq(mask_range_sigma(&tally, 2.5, range), 0);
        ck_assert_double_eq_tol(range[0], mean - 2.5 * sd, 1e-7 * (fabs(mean) + sd));
        ck_assert_double_eq_tol(range[1], mean + 2.5 * sd, 1e-7 * (fabs(mean) + sd));
        ck_assert_int_eq(mask_range_of_max(&tally, 0.41, range), 0);
        ck_assert(range[0] == 0.41 * sample.values[sample.count - 1] && range[1] == INFINITY);
        mask_tally_free(&tally);
    }
}

END_TEST

/* Returns the sum of squares about their mean, of values first .. end - 1 of a tally. */
static double
spread_of(const struct mask_tally *tally, size_t first, size_t end)
{
    double number = 0, sum = 0, squares = 0;

    for (size_t i = first; i < end; i++) {
        number += (double)tally->counts[i];
        sum += tally->values[i] * (double)tally->counts[i];
    }
    for (size_t i = first; i < end; i++) {
        double away = tally->values[i] - sum / number;

        squares += away * away * (double)tally->counts[i];
    }
    return squares;
}

/* Returns the minimum spread of values from `first` on, in this many classes, by trying all. */
static double
least_spread(const struct mask_tally *tally, size_t first, int classes)
{
    double least = INFINITY;

    if (classes == 1)
        return spread_of(tally, first, tally->count);
    for (size_t end = first + 1; end + (size_t)classes - 1 <= tally->count; end++) {
        double spread = spread_of(tally, first, end) + least_spread(tally, end, classes - 1);

        least = spread < least ? spread : least;
    }
    return least;
}

START_TEST(classes_are_the_optimum_of_all_splits)
{
    static struct sample sample;

    random_state = (uint64_t)_i + 7;
    for (int round = 0; round < 60; round++) {
        struct mask_tally tally = random_tally(8, 4 + round * 20, &sample);
        const double all = spread_of(&tally, 0, tally.count);

        for (int classes = 2; classes <= 5 && tally.count >= (size_t)classes; classes++) {
            double range[2], spread = 0, least = least_spread(&tally, 0, classes);
            size_t first = 0;

            for (int number = 1; number <= classes; number++) {
                size_t end = first;

                ck_assert_int_eq(mask_range_otsu(&tally, classes, number, range, &error), 0);
                ck_assert(tally.values[first] == range[0]);
                while (end < tally.count && tally.values[end] <= range[1])
                    end++;
                ck_assert(tally.values[end - 1] == range[1]);
                spread += spread_of(&tally, first, end);
                first = end;
            }
            ck_assert_uint_eq(first, tally.count);
            ck_assert_double_le(spread, least + 1e-9 * all);
        }
        mask_tally_free(&tally);
    }
}

END_TEST

/* Uses sixteen thousand values; the search must take logarithmic time. */
START_TEST(classes_of_many_values)
{
    static uint64_t histogram[BINS];
    const struct image_rescale rescale = {1, 0};
    const double modes[3] = {10000, 30000, 50000};
    struct mask_tally tally;
    double range[2];

    memset(histogram, 0, sizeof(histogram));
    for (int mode = 0; mode < 3; mode++)
        for (int i = -3000; i <= 3000; i++)
            histogram[(int)modes[mode] + i] += (uint64_t)(3001 - abs(i));
    ck_assert_int_eq(mask_tally_make(IMAGE_UINT16, histogram, 1, &rescale, &tally, &error), 0);
    for (int number = 1; number <= 3; number++) {
        ck_assert_int_eq(mask_range_otsu(&tally, 3, number, range, &error), 0);
        ck_assert(range[0] == modes[number - 1] - 3000 && range[1] == modes[number - 1] + 3000);
    }
    mask_tally_free(&tally);
}

END_TEST

START_TEST(an_empty_region_has_no_range)
{
    static uint64_t histogram[256];
    const struct image_rescale rescale = {1, 0};
    struct mask_tally tally;
    double range[2];

    memset(histogram, 0, sizeof(histogram));
    ck_assert_int_eq(mask_tally_make(IMAGE_UINT8, histogram, 1, &rescale, &tally, &error), 0);
    ck_assert_int_eq(mask_range_percentile(&tally, 0, 100, range), -ENODATA);
    ck_assert_int_eq(mask_range_sigma(&tally, 1, range), -ENODATA);
    ck_assert_int_eq(mask_range_of_max(&tally, 0.5, range), -ENODATA);
    ck_assert_int_eq(mask_range_otsu(&tally, 2, 1, range, &error), -ENODATA);
    mask_tally_free(&tally);
    histogram[7] = 3;
    ck_assert_int_eq(mask_tally_make(IMAGE_UINT8, histogram, 1, &rescale, &tally, &error), 0);
    ck_assert_int_eq(mask_range_otsu(&tally, 2, 1, range, &error), -ENODATA);
    ck_assert_int_eq(mask_range_otsu(&tally, 9, 1, range, &error), -EINVAL);
    ck_assert_int_eq(mask_range_otsu(&tally, 2, 3, range, &error), -EINVAL);
    ck_assert_int_eq(mask_range_percentile(&tally, 0, 100, range), 0);
    ck_assert(range[0] == 7 && range[1] == 7);
    mask_tally_free(&tally);
}

END_TEST

/* Checks the whole way from voxels in a region to the range. */
START_TEST(a_region_of_a_lane)
{
    const struct image_extent extent = {70, 20, 3};
    const struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    const struct kernels_demand demand = {.of = {[KERNELS_HISTOGRAM] = &kernels_asked}};
    const struct image_rescale rescale = {2, -1000};
    static uint64_t region[2 * 20 * 3], histogram[BINS];
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct mask_tally tally;
    double range[2];
    void *voxels;
    int seen = 0;

    random_state = 3;
    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_INT16, &demand, &voxels, &error), 0);
    for (int i = 0; i < 70 * 20 * 3; i++)
        ((int16_t *)voxels)[i] = (int16_t)(i % 70 < 40 ? i % 7 - 5 : 9000);
    for (int row = 0; row < 20 * 3; row++)
        region[2 * row] = (UINT64_C(1) << 40) - 1;
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, &error), 0);
    ck_assert_int_eq(texture_histogram_run(lane, region, false, histogram, &error), 0);
    ck_assert_int_eq(mask_tally_make(IMAGE_INT16, histogram, 1, &rescale, &tally, &error), 0);
    for (size_t i = 0; i < tally.count; i++)
        seen += tally.values[i] == 2 * ((int)i - 5) - 1000;
    ck_assert_int_eq(seen, 7);
    ck_assert_uint_eq(tally.total, 40 * 20 * 3);
    ck_assert_int_eq(mask_range_percentile(&tally, 0, 100, range), 0);
    ck_assert(range[0] == -1010 && range[1] == -998);
    mask_tally_free(&tally);
    kernels_lane_close(lane);
    kernels_device_close(device);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("mask_relative");
    TCase *tests = tcase_create("ranges");

    tcase_add_loop_test(tests, percentiles_equal_those_of_sorted_values, 0, 3);
    tcase_add_loop_test(tests, sigma_and_share, 0, 3);
    tcase_add_loop_test(tests, classes_are_the_optimum_of_all_splits, 0, 3);
    tcase_add_test(tests, classes_of_many_values);
    tcase_add_test(tests, an_empty_region_has_no_range);
    tcase_add_test(tests, a_region_of_a_lane);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
