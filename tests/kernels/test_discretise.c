/* test_discretise.c - grey levels of stored values by the four rules, at their edges. */
#include "kernels/features/discretise.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INT16_VALUES 65536

static const struct image_rescale as_stored = {1, 0};

/* Table of int16; the level of a stored value is level[32768 + value]. */
static uint16_t table[2 * INT16_VALUES];

static int
level(int stored)
{
    return table[32768 + stored];
}

static int
levels_of(const struct discretisation_options *settings, const struct image_rescale *rescales, size_t tables, double lo,
          double hi)
{
    int levels = -1, too_high = 0;

    ck_assert_int_eq(discretise(settings, rescales, tables, INT16_VALUES, -32768, lo, hi, table, &levels), 0);
    ck_assert_int_ge(levels, 2);
    for (size_t i = 0; i < tables * INT16_VALUES; i++)
        too_high += table[i] > levels;
    ck_assert_int_eq(too_high, 0);
    return levels;
}

static int
error_of(const struct discretisation_options *settings, double lo, double hi)
{
    int levels;

    return discretise(settings, &as_stored, 1, INT16_VALUES, -32768, lo, hi, table, &levels);
}

START_TEST(paper)
{
    static const int numbers[] = {2, 3, 8, 32, 255, 256};
    const struct image_rescale steep = {-2, 7};

    for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
        const struct discretisation_options settings = {.kind = DISCRETISATION_STORED_256, .levels = numbers[n]};

        ck_assert_int_eq(levels_of(&settings, &as_stored, 1, 0, 255), numbers[n]);
        for (int g = 0; g < 256; g++)
            ck_assert_int_eq(level(g), g * numbers[n] / 256 + 1);
        ck_assert_int_eq(level(-1), 0);
        ck_assert_int_eq(level(256), 0);
        /* Grey levels are stored values, for any rescale. */
        ck_assert_int_eq(levels_of(&settings, &steep, 1, 7 - 2 * 255, 7), numbers[n]);
        for (int g = 0; g < 256; g++)
            ck_assert_int_eq(level(g), g * numbers[n] / 256 + 1);
    }
}

END_TEST

START_TEST(stored_256_refuses_values_beyond_a_byte)
{
    struct discretisation_options settings = {.kind = DISCRETISATION_STORED_256, .levels = 8};

    ck_assert_int_eq(error_of(&settings, -1, 255), -EDOM);
    ck_assert_int_eq(error_of(&settings, 0, 256), -EDOM);
    settings.has_range = true; /* excludes them */
    settings.range[0] = 0;
    settings.range[1] = 255;
    ck_assert_int_eq(error_of(&settings, -5, 300), 0);
    ck_assert_int_eq(level(-5), 0);
    ck_assert_int_eq(level(300), 0);
    ck_assert_int_eq(level(255), 8);
}

END_TEST

/* IBSI 2.7: the largest value belongs to the last bin, all others to bins closed below. */
START_TEST(fixed_bin_number)
{
    const struct discretisation_options four = {.kind = DISCRETISATION_FIXED_BIN_NUMBER, .levels = 4};
    struct discretisation_options any = four;
    int wrong = 0;

    ck_assert_int_eq(levels_of(&four, &as_stored, 1, -100, 300), 4);
    ck_assert_int_eq(level(-101), 0);
    ck_assert_int_eq(level(-100), 1);
    ck_assert_int_eq(level(-1), 1);
    ck_assert_int_eq(level(0), 2);
    ck_assert_int_eq(level(199), 3);
    ck_assert_int_eq(level(200), 4);
    ck_assert_int_eq(level(300), 4);
    ck_assert_int_eq(level(301), 0);
    for (any.levels = 2; any.levels <= 256; any.levels++) {
        ck_assert_int_eq(levels_of(&any, &as_stored, 1, -1000, 3071), any.levels);
        ck_assert_int_eq(level(-1000), 1);
        ck_assert_int_eq(level(3071), any.levels);
        for (int g = -1000; g < 3071; g++)
            wrong += level(g) != any.levels * (g + 1000) / 4071 + 1;
    }
    ck_assert_int_eq(wrong, 0);
}

END_TEST

/* Bins start at the lower end of the re-segmentation range, if there is one. */
START_TEST(fixed_bin_size)
{
    struct discretisation_options settings = {.kind = DISCRETISATION_FIXED_BIN_SIZE, .bin_width = 25};

    ck_assert_int_eq(levels_of(&settings, &as_stored, 1, -7, 100), 5);
    ck_assert_int_eq(level(-7), 1);
    ck_assert_int_eq(level(17), 1);
    ck_assert_int_eq(level(18), 2);
    ck_assert_int_eq(level(93), 5);
    ck_assert_int_eq(level(-8), 0);
    settings.has_range = true;
    settings.range[0] = -50;
    settings.range[1] = 90;
    ck_assert_int_eq(levels_of(&settings, &as_stored, 1, -7, 88), 6);
    ck_assert_int_eq(level(-7), 2);
    ck_assert_int_eq(level(0), 3);
    ck_assert_int_eq(level(88), 6);
    ck_assert_int_eq(level(89), 0);
    settings.bin_width = 0.5;
    settings.has_range = false;
    ck_assert_int_eq(levels_of(&settings, &as_stored, 1, 0, 100), 201);
    ck_assert_int_eq(level(1), 3);
}

END_TEST

/* Bins start at multiples of the width. The first bin in use is number one. */
START_TEST(bin_width_of_pyradiomics)
{
    const struct discretisation_options settings = {.kind = DISCRETISATION_PYRADIOMICS_BIN_WIDTH, .bin_width = 25};

    ck_assert_int_eq(levels_of(&settings, &as_stored, 1, -7, 100), 6);
    ck_assert_int_eq(level(-7), 1);
    ck_assert_int_eq(level(-1), 1);
    ck_assert_int_eq(level(0), 2);
    ck_assert_int_eq(level(24), 2);
    ck_assert_int_eq(level(25), 3);
    ck_assert_int_eq(level(99), 5);
    ck_assert_int_eq(level(100), 6);
    ck_assert_int_eq(level(101), 0);
}

END_TEST

/* NumPy 2.4: digitize(range(-77, 101), arange(low, 100 + 2 * 1.1, 1.1)), low = -77 - (-77 % 1.1). Exact edges would give 33, 55
 * and 66 one level less. */
START_TEST(rounded_edges_of_pyradiomics)
{
    const struct discretisation_options settings = {.kind = DISCRETISATION_PYRADIOMICS_BIN_WIDTH, .bin_width = 1.1};

    ck_assert_int_eq(levels_of(&settings, &as_stored, 1, -77, 100), 161);
    ck_assert_int_eq(level(-77), 1);
    ck_assert_int_eq(level(32), 100);
    ck_assert_int_eq(level(33), 101);
    ck_assert_int_eq(level(55), 121);
    ck_assert_int_eq(level(66), 131);
    ck_assert_int_eq(level(99), 161);
}

END_TEST

/* Counts the edges of numpy.arange(lo - lo % width, ...), which are start + k * ((start + width) - start), up to the value. */
static int
edges_of_numpy(double lo, double width, double value)
{
    const double rest = fmod(lo, width), start = lo - (rest < 0 ? rest + width : rest), step = (start + width) - start;
    int count = 0;

    while (start + count * step <= value)
        count++;
    return count;
}

/* Levels of many values are those of each, by the formulas: also below 0, at edges, and for bins of more than 31 bits. */
START_TEST(many_values)
{
    static const double widths[] = {25, 0.1, 1e-9, 3.7e9};
    double values[101];
    uint16_t found[101];

    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
        for (int shift = -2; shift <= 2; shift++) {
            struct discretisation_options settings = {
                .kind = DISCRETISATION_PYRADIOMICS_BIN_WIDTH, .bin_width = widths[w], .levels = 16};

            for (int i = 0; i < 101; i++)
                values[i] = (100 * shift + i - 50) * widths[w] * (i % 2 ? 0.25 : 0.3);
            const double lo = (100 * shift - 50) * widths[w] * (shift < 0 ? 0.31 : 0.2);
            const double hi = (100 * shift + 50) * widths[w] * (shift < 0 ? 0.2 : 0.31);
            struct discretise_rule rule = discretise_rule_of(&settings, lo, hi);

            discretise_values(&rule, values, 101, found);
            for (int i = 0; i < 101; i++)
                if (values[i] >= lo && values[i] <= hi)
                    ck_assert_int_eq(found[i], edges_of_numpy(lo, widths[w], values[i]));
            settings.kind = DISCRETISATION_FIXED_BIN_NUMBER;
            rule = discretise_rule_of(&settings, lo, hi);
            discretise_values(&rule, values, 101, found);
            for (int i = 0; i < 101; i++)
                if (values[i] >= lo && values[i] <= hi)
                    ck_assert_int_eq(found[i], (int)fmin(floor(16 * (values[i] - lo) / (hi - lo)) + 1, 16));
            values[7] = NAN; /* outside of a region: any level, and no fault */
            discretise_values(&rule, values, 101, found);
        }
}

END_TEST

/* Every rule must exclude values outside the range, for any region. */
START_TEST(re_segmentation)
{
    for (int kind = 0; kind < 4; kind++) {
        const struct discretisation_options settings = {(enum discretisation)kind, 16, 10, true, {20, 100}};

        levels_of(&settings, &as_stored, 1, 30, 90);
        ck_assert_int_eq(level(29), 0);
        ck_assert_int_gt(level(30), 0);
        ck_assert_int_gt(level(90), 0);
        ck_assert_int_eq(level(91), 0);
        levels_of(&settings, &as_stored, 1, 0, 150);
        ck_assert_int_eq(level(19), 0);
        ck_assert_int_gt(level(20), 0);
        ck_assert_int_gt(level(100), 0);
        ck_assert_int_eq(level(101), 0);
    }
}

END_TEST

/* Slices that store the same real-world values differently, one of them with a negative slope. */
START_TEST(a_rescale_for_each_slice)
{
    const struct image_rescale rescales[2] = {{2, -100}, {-0.5, 40}};
    const struct discretisation_options settings = {.kind = DISCRETISATION_FIXED_BIN_SIZE, .bin_width = 10};

    ck_assert_int_eq(levels_of(&settings, rescales, 2, -100, 100), 21);
    for (int value = -100; value <= 100; value += 2) {
        const int expected = (value + 100) / 10 + 1;

        ck_assert_int_eq(table[32768 + (value + 100) / 2], expected);
        ck_assert_int_eq(table[INT16_VALUES + 32768 + (40 - value) * 2], expected);
    }
    ck_assert_int_eq(table[32768 - 1], 0);
    ck_assert_int_eq(table[INT16_VALUES + 32768 + 281], 0);
    ck_assert_int_eq(table[INT16_VALUES + 32768 - 121], 0);
}

END_TEST

START_TEST(too_many_levels)
{
    struct discretisation_options settings = {.kind = DISCRETISATION_FIXED_BIN_SIZE, .bin_width = 1};

    for (int kind = DISCRETISATION_FIXED_BIN_SIZE; kind <= DISCRETISATION_PYRADIOMICS_BIN_WIDTH; kind++) {
        settings.kind = (enum discretisation)kind;
        settings.bin_width = 1;
        ck_assert_int_eq(levels_of(&settings, &as_stored, 1, 0, 255), 256);
        ck_assert_int_eq(level(255), 256);
        ck_assert_int_eq(levels_of(&settings, &as_stored, 1, 0, 256), 257);
        ck_assert_int_eq(levels_of(&settings, &as_stored, 1, -32768, 32767), 65536);
        settings.bin_width = 0.5;
        ck_assert_int_eq(error_of(&settings, -32768, 32767), -ERANGE);
        settings.bin_width = 0;
        ck_assert_int_eq(error_of(&settings, 0, 255), -ERANGE);
        settings.bin_width = -1;
        ck_assert_int_eq(error_of(&settings, 0, 255), -ERANGE);
    }
    settings.kind = DISCRETISATION_FIXED_BIN_NUMBER;
    settings.levels = 65537;
    ck_assert_int_eq(error_of(&settings, 0, 255), -ERANGE);
    settings.levels = 0;
    ck_assert_int_eq(error_of(&settings, 0, 255), -ERANGE);
}

END_TEST

/* One value has one level; no value has no level. Matrices have at least two. */
START_TEST(flat_and_empty_regions)
{
    for (int kind = 0; kind < 4; kind++) {
        const struct discretisation_options settings = {
            .kind = (enum discretisation)kind, .levels = 8, .bin_width = 25};
        const bool by_width = kind >= DISCRETISATION_FIXED_BIN_SIZE;
        int filled = 0;

        ck_assert_int_eq(levels_of(&settings, &as_stored, 1, 77, 77), by_width ? 2 : 8);
        for (int g = -32768; g <= 32767; g++)
            filled += level(g) > 0;
        ck_assert_int_eq(filled, 1);
        ck_assert_int_eq(level(77), kind == DISCRETISATION_STORED_256 ? 77 * 8 / 256 + 1 : 1);
        ck_assert_int_eq(levels_of(&settings, &as_stored, 1, INFINITY, -INFINITY), by_width ? 2 : 8);
        filled = 0;
        for (int g = -32768; g <= 32767; g++)
            filled += level(g) > 0;
        ck_assert_int_eq(filled, 0);
    }
}

END_TEST

START_TEST(bytes)
{
    const struct discretisation_options settings = {.kind = DISCRETISATION_FIXED_BIN_NUMBER, .levels = 256};
    uint16_t of_bytes[256];
    int levels;

    ck_assert_int_eq(discretise(&settings, &as_stored, 1, 256, 0, 0, 255, of_bytes, &levels), 0);
    ck_assert_int_eq(levels, 256);
    for (int g = 0; g < 256; g++)
        ck_assert_int_eq(of_bytes[g], g * 256 / 255 + 1 < 256 ? g * 256 / 255 + 1 : 256);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("discretise");
    TCase *tcase = tcase_create("discretise");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, paper);
    tcase_add_test(tcase, stored_256_refuses_values_beyond_a_byte);
    tcase_add_test(tcase, fixed_bin_number);
    tcase_add_test(tcase, fixed_bin_size);
    tcase_add_test(tcase, bin_width_of_pyradiomics);
    tcase_add_test(tcase, rounded_edges_of_pyradiomics);
    tcase_add_test(tcase, many_values);
    tcase_add_test(tcase, re_segmentation);
    tcase_add_test(tcase, a_rescale_for_each_slice);
    tcase_add_test(tcase, too_many_levels);
    tcase_add_test(tcase, flat_and_empty_regions);
    tcase_add_test(tcase, bytes);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
