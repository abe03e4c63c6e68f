/*
 * test_features_basic.c - intensity-based statistics and where a region lies: IBSI's values for its
 * digital phantom, lists of values written out, and what has none.
 */
#include "kernels/features/features.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct image_rescale as_stored = {1, 0};

/* A region and histograms of bytes, one a slice or one for all. */
struct scene {
    struct basic_region region;
    uint64_t *histograms;
    struct basic_input input;
};

static void
open_scene(struct scene *scene, struct image_extent extent, const uint8_t *voxels,
           const uint64_t *bits, bool per_slice)
{
    const size_t histograms = per_slice ? (size_t)extent.slices : 1;

    *scene = (struct scene){0};
    basic_region_of(bits, extent.columns, extent.rows, extent.slices, &scene->region);
    scene->histograms = malloc(histograms * 256 * sizeof(*scene->histograms));
    ck_assert_ptr_nonnull(scene->histograms);
    ref_texture_histogram(extent, IMAGE_UINT8, voxels, bits, per_slice, scene->histograms);
    scene->input = (struct basic_input){
        .region = &scene->region,
        .histograms = scene->histograms,
        .histogram_count = histograms,
        .values = 256,
        .rescales = &as_stored,
        .voxel_to_mm = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}},
        .spacing = {1, 1, 1},
    };
}

static void
close_scene(struct scene *scene)
{
    free(scene->histograms);
}

static void
take(const struct scene *scene, struct feature_value values[BASIC_FEATURES])
{
    ck_assert_int_eq(basic_features(&scene->input, values), 0);
}

static double
present(const struct feature_value values[BASIC_FEATURES], enum basic_feature feature)
{
    ck_assert_msg(values[feature].absence == FEATURES_PRESENT, "%s is absent",
                  basic_feature_definitions[feature].name);
    return values[feature].value;
}

static void
check_value(const struct feature_value values[BASIC_FEATURES], enum basic_feature feature,
            double expected, double tolerance)
{
    const double value = present(values, feature);

    ck_assert_msg(fabs(value - expected) <= tolerance, "%s is %.17g, not %.17g",
                  basic_feature_definitions[feature].name, value, expected);
}

/* ----------------------------------------------------------- the digital phantom of IBSI -- */

/* IBSI reference manual, chapter 5; negative where the mask leaves a voxel out. CC BY 4.0. */
static const int phantom[80] = {
    1, 4, 4, 1,  1,  1, 4, 6, 1, 1, 4,  1, 6,  4, 1, 4, 4, 6, 4, 1, /* slice 1 */
    1, 4, 4, 1,  1,  1, 1, 6, 1, 1, -1, 1, 3,  1, 1, 4, 4, 6, 1, 1, /* slice 2 */
    1, 4, 4, -1, -1, 1, 1, 1, 1, 1, 1,  1, -9, 1, 1, 1, 1, 6, 1, 1, /* slice 3 */
    1, 4, 4, -1, -1, 1, 1, 1, 1, 1, 1,  1, 1,  1, 1, 1, 1, 6, 1, 1, /* slice 4 */
};

static const struct image_extent phantom_extent = {5, 4, 4};

static void
fill_phantom(uint8_t voxels[80], uint64_t bits[16])
{
    memset(bits, 0, 16 * sizeof(*bits));
    for (int i = 0; i < 80; i++) {
        voxels[i] = (uint8_t)abs(phantom[i]);
        if (phantom[i] > 0)
            bits[i / 5] |= UINT64_C(1) << (i % 5);
    }
}

START_TEST(phantom_of_ibsi)
{
    static const struct {
        enum basic_feature feature;
        const char *ibsi;
        double value, printed_to;
    } published[] = {
        {BASIC_MEAN, "Q4LE", 2.15, 0.005},
        {BASIC_VARIANCE, "ECT3", 3.05, 0.005},
        {BASIC_SKEWNESS, "KE2A", 1.08, 0.005},
        {BASIC_KURTOSIS, "IPH6", -0.355, 0.0005},
        {BASIC_MEDIAN, "Y12H", 1, 0},
        {BASIC_MINIMUM, "1GSF", 1, 0},
        {BASIC_PERCENTILE_10, "QG58", 1, 0},
        {BASIC_PERCENTILE_90, "8DWT", 4, 0},
        {BASIC_MAXIMUM, "84IY", 6, 0},
        {BASIC_INTERQUARTILE_RANGE, "SALO", 3, 0},
        {BASIC_RANGE, "2OJQ", 5, 0},
        {BASIC_ENERGY, "N8CA", 567, 0},
        {BASIC_ROOT_MEAN_SQUARE, "5ZWQ", 2.77, 0.005},
        {BASIC_ENTROPY, "TLU2", 1.27, 0.005},
        {BASIC_VOLUME_ML, "YEKZ", 0.592, 1e-15},
    };
    struct feature_value values[BASIC_FEATURES];
    uint16_t level_of[256] = {0};
    uint8_t voxels[80];
    uint64_t bits[16];
    struct scene scene;

    fill_phantom(voxels, bits);
    for (int level = 1; level <= 6; level++)
        level_of[level] = (uint16_t)level;
    open_scene(&scene, phantom_extent, voxels, bits, false);
    scene.input.level_of = level_of;
    scene.input.levels = 6;
    for (int i = 0; i < 3; i++)
        scene.input.spacing[i] = scene.input.voxel_to_mm[i][i] = 2;
    take(&scene, values);
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        ck_assert_str_eq(basic_feature_definitions[published[i].feature].ibsi, published[i].ibsi);
        check_value(values, published[i].feature, published[i].value, published[i].printed_to);
    }
    check_value(values, BASIC_VOXEL_COUNT, 74, 0);
    check_value(values, BASIC_STANDARD_DEVIATION, sqrt(values[BASIC_VARIANCE].value), 1e-15);
    check_value(values, BASIC_BOX_X, 10, 0);
    check_value(values, BASIC_BOX_Y, 8, 0);
    check_value(values, BASIC_BOX_Z, 8, 0);
    close_scene(&scene);
}

END_TEST

/* ------------------------------------------------------------------------------- regions -- */

/* Widths around the words of a row; sums and extremes one voxel at a time. */
START_TEST(regions)
{
    static const int64_t widths[] = {1, 2, 63, 64, 65, 128, 200};
    uint64_t random = 4;

    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        const struct image_extent extent = {widths[w], 5, 7};
        const int64_t words = (extent.columns + 63) / 64;
        uint64_t *bits = calloc((size_t)(words * 35), sizeof(*bits));
        struct basic_region region;
        int64_t count = 0, sum[3] = {0}, first[3] = {999, 999, 999}, last[3] = {-1, -1, -1};

        for (int64_t y = 1; y < 4; y++)
            for (int64_t z = 2; z < 6; z++)
                for (int64_t x = 0; x < extent.columns; x++) {
                    const int64_t at[3] = {x, y, z};

                    if (ref_random_below(&random, 3) > 0)
                        continue;
                    bits[(z * 5 + y) * words + x / 64] |= UINT64_C(1) << (x % 64);
                    count++;
                    for (int i = 0; i < 3; i++) {
                        sum[i] += at[i];
                        first[i] = at[i] < first[i] ? at[i] : first[i];
                        last[i] = at[i] > last[i] ? at[i] : last[i];
                    }
                }
        basic_region_of(bits, extent.columns, 5, 7, &region);
        ck_assert_int_eq(region.voxels, count);
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(region.sum[i], sum[i]);
            ck_assert_int_eq(region.first[i], first[i]);
            ck_assert_int_eq(region.last[i], last[i]);
        }
        free(bits);
    }
}

END_TEST

/* Oblique axes: the affine is what places the centre; spacings are along the axes. */
START_TEST(place_in_space)
{
    static const double affine[3][4] = {
        {0.5, -0.3, 0.1, -120}, {0.2, 0.6, -0.4, 35.5}, {0, 0.7, 2.5, -800}};
    struct feature_value values[BASIC_FEATURES];
    uint8_t voxels[5 * 4 * 3] = {0};
    uint64_t bits[12] = {0};
    struct scene scene;

    bits[1] = 0x6;       /* (1, 1, 0), (2, 1, 0) */
    bits[2 * 4 + 2] = 2; /* (1, 2, 2) */
    open_scene(&scene, (struct image_extent){5, 4, 3}, voxels, bits, false);
    memcpy(scene.input.voxel_to_mm, affine, sizeof(affine));
    memcpy(scene.input.spacing, (double[3]){0.5, 0.75, 2.5}, sizeof(scene.input.spacing));
    take(&scene, values);
    for (int i = 0; i < 3; i++)
        check_value(values, (enum basic_feature)(BASIC_CENTROID_X + i),
                    affine[i][0] * 4 / 3 + affine[i][1] * 4 / 3 + affine[i][2] * 2 / 3 +
                        affine[i][3],
                    1e-12);
    check_value(values, BASIC_BOX_X, 1, 1e-15);
    check_value(values, BASIC_BOX_Y, 1.5, 1e-15);
    check_value(values, BASIC_BOX_Z, 7.5, 1e-15);
    check_value(values, BASIC_VOLUME_ML, 3 * 0.9375 / 1000, 1e-18);
    close_scene(&scene);
}

END_TEST

/* ---------------------------------------------------------------------------- statistics -- */

static int
ascending(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static double
interpolated(const double *sorted, size_t count, double fraction)
{
    const double rank = fraction * (double)(count - 1);
    const size_t below = (size_t)rank, above = below + 1 < count ? below + 1 : below;

    return sorted[below] + (sorted[above] - sorted[below]) * (rank - (double)below);
}

/* Of values written out one by one. */
static void
check_list(const struct feature_value values[BASIC_FEATURES], double *list, size_t count)
{
    double sum = 0, squares = 0, moment[5] = {0}, n = (double)count;

    qsort(list, count, sizeof(*list), ascending);
    for (size_t i = 0; i < count; i++) {
        sum += list[i];
        squares += list[i] * list[i];
    }
    for (size_t i = 0; i < count; i++)
        for (int power = 2; power <= 4; power++)
            moment[power] += pow(list[i] - sum / n, power) / n;
    check_value(values, BASIC_MEAN, sum / n, 1e-10);
    check_value(values, BASIC_VARIANCE, moment[2], 1e-10 * moment[2]);
    check_value(values, BASIC_SKEWNESS, moment[3] / pow(moment[2], 1.5), 1e-10);
    check_value(values, BASIC_KURTOSIS, moment[4] / (moment[2] * moment[2]) - 3, 1e-10);
    check_value(values, BASIC_ENERGY, squares, 1e-10 * squares);
    check_value(values, BASIC_ROOT_MEAN_SQUARE, sqrt(squares / n), 1e-10);
    check_value(values, BASIC_MINIMUM, list[0], 0);
    check_value(values, BASIC_MAXIMUM, list[count - 1], 0);
    check_value(values, BASIC_RANGE, list[count - 1] - list[0], 0);
    check_value(values, BASIC_MEDIAN, interpolated(list, count, 0.5), 1e-10);
    check_value(values, BASIC_PERCENTILE_10, interpolated(list, count, 0.1), 1e-10);
    check_value(values, BASIC_PERCENTILE_90, interpolated(list, count, 0.9), 1e-10);
    check_value(values, BASIC_INTERQUARTILE_RANGE,
                interpolated(list, count, 0.75) - interpolated(list, count, 0.25), 1e-10);
}

/* Three slices, each stored in its own way, one upside down; some values are the same. */
START_TEST(a_rescale_for_each_slice)
{
    static const struct image_rescale rescales[3] = {{2, -100}, {-0.25, 40}, {1.1, -1e3}};
    const struct image_extent extent = {9, 8, 3};
    struct feature_value values[BASIC_FEATURES];
    uint8_t voxels[9 * 8 * 3];
    uint64_t bits[24], random = 12;
    double list[9 * 8 * 3];
    size_t count = 0;
    struct scene scene;

    for (int row = 0; row < 24; row++)
        bits[row] = (uint64_t)ref_random_below(&random, 512);
    for (int i = 0; i < 9 * 8 * 3; i++) {
        voxels[i] = (uint8_t)ref_random_below(&random, 256);
        if (bits[i / 9] >> (i % 9) & 1)
            list[count++] = rescales[i / 72].slope * voxels[i] + rescales[i / 72].intercept;
    }
    open_scene(&scene, extent, voxels, bits, true);
    scene.input.rescales = rescales;
    take(&scene, values);
    check_value(values, BASIC_VOXEL_COUNT, (double)count, 0);
    check_list(values, list, count);
    close_scene(&scene);
}

END_TEST

/* Entries of a signed type start at its smallest value; a large offset costs no digits. */
START_TEST(signed_values)
{
    static uint64_t histogram[65536];
    static const struct image_rescale far_off = {1, 1e7};
    const struct basic_region region = {.voxels = 5, .last = {0, 0, 0}};
    struct basic_input input = {.region = &region,
                                .histograms = histogram,
                                .histogram_count = 1,
                                .values = 65536,
                                .smallest = -32768,
                                .rescales = &far_off};
    double list[5] = {1e7 - 32768, 1e7 - 3, 1e7 - 3, 1e7, 1e7 + 32767};
    struct feature_value values[BASIC_FEATURES];

    histogram[0] = 1;
    histogram[32768 - 3] = 2;
    histogram[32768] = histogram[65535] = 1;
    ck_assert_int_eq(basic_features(&input, values), 0);
    check_list(values, list, 5);
}

END_TEST

/* Each slice has its levels; what has none takes no part. */
START_TEST(entropy_of_levels)
{
    const struct basic_region region = {.voxels = 16, .last = {3, 1, 1}};
    static const struct image_rescale rescales[2] = {{1, 0}, {-1, 9}};
    static uint64_t histograms[2 * 256];
    static uint16_t level_of[2 * 256];
    struct basic_input input = {.region = &region,
                                .histograms = histograms,
                                .histogram_count = 2,
                                .values = 256,
                                .rescales = rescales,
                                .level_of = level_of,
                                .levels = 3};
    struct feature_value values[BASIC_FEATURES];

    histograms[2] = 3;
    histograms[3] = 5;
    histograms[256 + 7] = 1; /* 2 */
    histograms[256 + 6] = 3; /* 3 */
    histograms[256 + 1] = 4; /* 8, left out */
    level_of[2] = level_of[256 + 7] = 1;
    level_of[3] = level_of[256 + 6] = 3;
    ck_assert_int_eq(basic_features(&input, values), 0);
    check_value(values, BASIC_ENTROPY, -(log2(1.0 / 3) + 2 * log2(2.0 / 3)) / 3, 1e-15);
    level_of[2] = level_of[256 + 7] = level_of[3] = level_of[256 + 6] = 0;
    ck_assert_int_eq(basic_features(&input, values), 0);
    ck_assert_int_eq(values[BASIC_ENTROPY].absence, FEATURES_NO_VOXEL);
    input.level_of = NULL;
    ck_assert_int_eq(basic_features(&input, values), 0);
    ck_assert_int_eq(values[BASIC_ENTROPY].absence, FEATURES_NO_LEVELS);
    ck_assert_double_eq(values[BASIC_ENTROPY].value, 0);
}

END_TEST

/* ------------------------------------------------------------------------------ absences -- */

START_TEST(empty_region)
{
    struct feature_value values[BASIC_FEATURES];
    uint8_t voxels[6] = {1, 2, 3, 4, 5, 6};
    uint64_t bits[2] = {0};
    struct scene scene;

    open_scene(&scene, (struct image_extent){3, 2, 1}, voxels, bits, false);
    take(&scene, values);
    check_value(values, BASIC_VOXEL_COUNT, 0, 0);
    check_value(values, BASIC_VOLUME_ML, 0, 0);
    for (int f = BASIC_MEAN; f < BASIC_FEATURES; f++) {
        ck_assert_int_eq(values[f].absence, FEATURES_NO_VOXEL);
        ck_assert_double_eq(values[f].value, 0);
    }
    close_scene(&scene);
}

END_TEST

/* Voxels that are padding have a place, and no value. */
START_TEST(region_of_padding)
{
    struct feature_value values[BASIC_FEATURES];
    uint8_t voxels[6] = {0};
    uint64_t bits[2] = {4, 4};
    struct scene scene;

    open_scene(&scene, (struct image_extent){3, 2, 1}, voxels, bits, false);
    scene.histograms[0] = 0;
    take(&scene, values);
    check_value(values, BASIC_VOXEL_COUNT, 2, 0);
    check_value(values, BASIC_CENTROID_X, 2, 0);
    check_value(values, BASIC_CENTROID_Y, 0.5, 0);
    for (int f = BASIC_MEAN; f <= BASIC_ENTROPY; f++)
        ck_assert_int_eq(values[f].absence, FEATURES_NO_VOXEL);
    close_scene(&scene);
}

END_TEST

/* One voxel, then several of one value that has no exact double: no spread, and no shape of it. */
START_TEST(one_value)
{
    static const struct image_rescale tenth = {0.1, -0.3};
    struct feature_value values[BASIC_FEATURES];
    uint16_t level_of[256] = {0};
    uint8_t voxels[6] = {7, 7, 7, 7, 7, 7};
    uint64_t bits[2] = {1, 0};
    const double value = 0.1 * 7 - 0.3;
    struct scene scene;

    level_of[7] = 1;
    for (int all = 0; all < 2; all++) {
        bits[0] = all ? 7 : 1;
        open_scene(&scene, (struct image_extent){3, 2, 1}, voxels, bits, false);
        scene.input.rescales = &tenth;
        scene.input.level_of = level_of;
        scene.input.levels = 2;
        take(&scene, values);
        ck_assert_int_eq(values[BASIC_SKEWNESS].absence, FEATURES_ONE_LEVEL);
        ck_assert_int_eq(values[BASIC_KURTOSIS].absence, FEATURES_ONE_LEVEL);
        check_value(values, BASIC_MEAN, value, 1e-15);
        check_value(values, BASIC_VARIANCE, 0, 0);
        check_value(values, BASIC_STANDARD_DEVIATION, 0, 0);
        check_value(values, BASIC_MEDIAN, value, 0);
        check_value(values, BASIC_RANGE, 0, 0);
        check_value(values, BASIC_INTERQUARTILE_RANGE, 0, 0);
        check_value(values, BASIC_ENTROPY, 0, 0);
        ck_assert(!signbit(values[BASIC_ENTROPY].value));
        close_scene(&scene);
    }
}

END_TEST

/* However often it occurs: rounding makes no spread of it. */
START_TEST(one_value_many_times)
{
    static const struct image_rescale rescale = {0.1, -1000.3};
    static uint64_t histogram[256];
    const struct basic_region region = {.voxels = 1};
    const struct basic_input input = {.region = &region,
                                      .histograms = histogram,
                                      .histogram_count = 1,
                                      .values = 256,
                                      .rescales = &rescale};
    struct feature_value values[BASIC_FEATURES];

    for (uint64_t count = 1; count < 3000; count++) {
        histogram[77] = count * count;
        ck_assert_int_eq(basic_features(&input, values), 0);
        check_value(values, BASIC_VARIANCE, 0, 0);
        ck_assert_int_eq(values[BASIC_SKEWNESS].absence, FEATURES_ONE_LEVEL);
        check_value(values, BASIC_MEAN, 0.1 * 77 - 1000.3, 0);
    }
}

END_TEST

/* Whatever is counted, a feature is a finite number or absent. */
START_TEST(finite_or_absent)
{
    static uint64_t histograms[2 * 256];
    static uint16_t level_of[2 * 256];
    uint64_t random = 21;

    for (int round = 0; round < 5000; round++) {
        const struct image_rescale rescales[2] = {
            {pow(10, (double)ref_random_below(&random, 9) - 4), 3.3}, {-0.7, 1e6}};
        const struct basic_region region = {.voxels = 1 + ref_random_below(&random, 9)};
        const struct basic_input input = {.region = &region,
                                          .histograms = histograms,
                                          .histogram_count = 2,
                                          .values = 256,
                                          .rescales = rescales,
                                          .level_of = level_of,
                                          .levels = 4};
        struct feature_value values[BASIC_FEATURES];

        memset(histograms, 0, sizeof(histograms));
        for (int64_t i = ref_random_below(&random, 4); i > 0; i--) {
            const int64_t at = ref_random_below(&random, 512);

            histograms[at] = UINT64_C(1) << ref_random_below(&random, 33);
            level_of[at] = (uint16_t)ref_random_below(&random, 5);
        }
        ck_assert_int_eq(basic_features(&input, values), 0);
        for (int f = 0; f < BASIC_FEATURES; f++) {
            ck_assert(isfinite(values[f].value));
            ck_assert(values[f].absence == FEATURES_PRESENT || values[f].value == 0);
        }
        ck_assert_double_ge(values[BASIC_INTERQUARTILE_RANGE].value, 0);
        ck_assert_double_le(values[BASIC_INTERQUARTILE_RANGE].value, values[BASIC_RANGE].value);
    }
}

END_TEST

START_TEST(names_and_units)
{
    for (int f = 0; f < BASIC_FEATURES; f++) {
        const struct feature_definition *definition = &basic_feature_definitions[f];

        ck_assert_int_eq(definition->unit[0] == 0, definition->value_power > 0);
        for (int g = 0; g < f; g++)
            ck_assert_str_ne(definition->name, basic_feature_definitions[g].name);
    }
    ck_assert_int_eq(basic_feature_definitions[BASIC_MEAN].value_power, 1);
    ck_assert_int_eq(basic_feature_definitions[BASIC_VARIANCE].value_power, 2);
    ck_assert_int_eq(basic_feature_definitions[BASIC_ENERGY].value_power, 2);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("features_basic");
    TCase *tcase = tcase_create("features_basic");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, phantom_of_ibsi);
    tcase_add_test(tcase, regions);
    tcase_add_test(tcase, place_in_space);
    tcase_add_test(tcase, a_rescale_for_each_slice);
    tcase_add_test(tcase, signed_values);
    tcase_add_test(tcase, entropy_of_levels);
    tcase_add_test(tcase, empty_region);
    tcase_add_test(tcase, region_of_padding);
    tcase_add_test(tcase, one_value);
    tcase_add_test(tcase, one_value_many_times);
    tcase_add_test(tcase, finite_or_absent);
    tcase_add_test(tcase, names_and_units);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
