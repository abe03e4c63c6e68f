/*
 * test_features_basic.c - intensity-based statistics and location of a region: IBSI's values for its digital phantom,
 * short lists of values, and cases without a value.
 */
#include "kernels/features/first_order.h"
#include "kernels/features/shape/shape.h"
#include "tests/kernels/ref_ibsi.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct image_rescale as_stored = {1, 0};

/* The values of both families, one after the other. */
#define INTENSITY(name) (SHAPE_FEATURES + FIRST_ORDER_##name)
#define ALL_FEATURES    (SHAPE_FEATURES + FIRST_ORDER_FEATURES)

static const struct feature_definition *
definition_of(int feature)
{
    return feature < SHAPE_FEATURES ? &family_shape.definitions[feature]
                                    : &family_first_order.definitions[feature - SHAPE_FEATURES];
}

static const struct texture_options no_options;

/* A region and histograms of bytes, one per slice or one for all. */
struct scene {
    struct feature_volume volume;
    struct feature_region region;
    uint64_t *histograms;
};

static void
open_scene(struct scene *scene, struct image_extent extent, const uint8_t *voxels, const uint64_t *bits, bool per_slice)
{
    const size_t histograms = per_slice ? (size_t)extent.slices : 1;

    *scene = (struct scene){0};
    scene->histograms = malloc(histograms * 256 * sizeof(*scene->histograms));
    ck_assert_ptr_nonnull(scene->histograms);
    ref_texture_histogram(extent, IMAGE_UINT8, voxels, bits, per_slice, scene->histograms);
    scene->volume = (struct feature_volume){
        .options = &no_options,
        .columns = extent.columns,
        .rows = extent.rows,
        .slices = extent.slices,
        .voxel_to_mm = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}},
        .spacing = {1, 1, 1},
        .tables = histograms,
        .values = 256,
        .rescales = &as_stored,
    };
    scene->region = (struct feature_region){
        .volume = &scene->volume,
        .bits = bits,
        .histograms = scene->histograms,
        .no_levels = FEATURE_NOT_DISCRETISED,
    };
}

static void
close_scene(struct scene *scene)
{
    free(scene->histograms);
}

static void
take_intensities(const struct feature_region *region, struct feature_value values[ALL_FEATURES])
{
    for (int f = 0; f < ALL_FEATURES; f++)
        values[f] = feature_absent(FEATURE_EMPTY_REGION);
    ck_assert_int_eq(family_first_order.values(region, 0, NULL, values + SHAPE_FEATURES), 0);
}

static void
take(const struct scene *scene, struct feature_value values[ALL_FEATURES])
{
    take_intensities(&scene->region, values);
    ck_assert_int_eq(family_shape.values(&scene->region, 0, NULL, values), 0);
}

static double
present(const struct feature_value values[ALL_FEATURES], int feature)
{
    ck_assert_msg(values[feature].missing == FEATURE_PRESENT, "%s is missing", definition_of(feature)->name);
    return values[feature].value;
}

static void
check_value(const struct feature_value values[ALL_FEATURES], int feature, double expected, double tolerance)
{
    const double value = present(values, feature);

    ck_assert_msg(fabs(value - expected) <= tolerance, "%s is %.17g, not %.17g", definition_of(feature)->name, value,
                  expected);
}

/* ----------------------------------------------------------- the digital phantom of IBSI -- */

START_TEST(phantom_of_ibsi)
{
    static const struct {
        int feature;
        const char *ibsi;
        double value, printed_to;
    } published[] = {
        {INTENSITY(MEAN), "Q4LE", 2.15, 0.005},
        {INTENSITY(VARIANCE), "ECT3", 3.05, 0.005},
        {INTENSITY(SKEWNESS), "KE2A", 1.08, 0.005},
        {INTENSITY(KURTOSIS), "IPH6", -0.355, 0.0005},
        {INTENSITY(MEDIAN), "Y12H", 1, 0},
        {INTENSITY(MINIMUM), "1GSF", 1, 0},
        {INTENSITY(PERCENTILE_10), "QG58", 1, 0},
        {INTENSITY(PERCENTILE_90), "8DWT", 4, 0},
        {INTENSITY(MAXIMUM), "84IY", 6, 0},
        {INTENSITY(INTERQUARTILE_RANGE), "SALO", 3, 0},
        {INTENSITY(RANGE), "2OJQ", 5, 0},
        {INTENSITY(MEAN_ABSOLUTE_DEVIATION), "4FUA", 1.55, 0.005},
        {INTENSITY(ROBUST_MEAN_ABSOLUTE_DEVIATION), "1128", 1.11, 0.005},
        {INTENSITY(MEDIAN_ABSOLUTE_DEVIATION), "N72L", 1.15, 0.005},
        {INTENSITY(COEFFICIENT_OF_VARIATION), "7TET", 0.812, 0.0005},
        {INTENSITY(QUARTILE_COEFFICIENT_OF_DISPERSION), "9S40", 0.6, 1e-15},
        {INTENSITY(ENERGY), "N8CA", 567, 0},
        {INTENSITY(ROOT_MEAN_SQUARE), "5ZWQ", 2.77, 0.005},
        {INTENSITY(ENTROPY), "TLU2", 1.27, 0.005},
        {SHAPE_VOLUME_ML, "YEKZ", 0.592, 1e-15},
    };
    struct feature_value values[ALL_FEATURES];
    struct ibsi_phantom phantom;
    struct scene scene;

    ibsi_fill(&phantom);
    open_scene(&scene, ibsi_extent, phantom.voxels, phantom.region, false);
    scene.region.no_levels = FEATURE_PRESENT;
    scene.region.level_of = phantom.level_of;
    scene.region.levels = 6;
    for (int i = 0; i < 3; i++)
        scene.volume.spacing[i] = scene.volume.voxel_to_mm[i][i] = 2;
    take(&scene, values);
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        ck_assert_str_eq(definition_of(published[i].feature)->ibsi, published[i].ibsi);
        check_value(values, published[i].feature, published[i].value, published[i].printed_to);
    }
    check_value(values, SHAPE_VOXEL_COUNT, 74, 0);
    check_value(values, INTENSITY(STANDARD_DEVIATION), sqrt(values[INTENSITY(VARIANCE)].value), 1e-15);
    check_value(values, SHAPE_BOX_X, 10, 0);
    check_value(values, SHAPE_BOX_Y, 8, 0);
    check_value(values, SHAPE_BOX_Z, 8, 0);
    close_scene(&scene);
}

END_TEST

/* ------------------------------------------------------------------------------- regions -- */

/* Checks widths around the words of a row. Sums and extremes are computed one voxel at a time. */
START_TEST(regions)
{
    static const int64_t widths[] = {1, 2, 63, 64, 65, 128, 200};
    uint64_t random = 4;

    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        const struct image_extent extent = {widths[w], 5, 7};
        const int64_t words = (extent.columns + 63) / 64;
        uint64_t *bits = calloc((size_t)(words * 35), sizeof(*bits));
        struct shape_place place;
        int64_t count = 0, sum[3] = {0}, first[3] = {999, 999, 999}, last[3] = {-1, -1, -1};
        int64_t square[3] = {0}, product[3] = {0};

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
                        square[i] += at[i] * at[i];
                        product[i] += at[(i + 1) % 3] * at[(i + 2) % 3];
                        first[i] = at[i] < first[i] ? at[i] : first[i];
                        last[i] = at[i] > last[i] ? at[i] : last[i];
                    }
                }
        shape_place_of(NULL, bits, &extent, &place);
        ck_assert_int_eq(place.voxels, count);
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(place.sum[i], sum[i]);
            ck_assert_int_eq((int64_t)place.square[i], square[i]);
            ck_assert_int_eq((int64_t)place.product[i], product[i]);
            ck_assert_int_eq(place.first[i], first[i]);
            ck_assert_int_eq(place.last[i], last[i]);
        }
        free(bits);
    }
}

END_TEST

/* Oblique axes: the affine places the centre; spacings are along the axes. */
START_TEST(place_in_space)
{
    static const double affine[3][4] = {{0.5, -0.3, 0.1, -120}, {0.2, 0.6, -0.4, 35.5}, {0, 0.7, 2.5, -800}};
    struct feature_value values[ALL_FEATURES];
    uint8_t voxels[5 * 4 * 3] = {0};
    uint64_t bits[12] = {0};
    struct scene scene;

    bits[1] = 0x6;       /* (1, 1, 0), (2, 1, 0) */
    bits[2 * 4 + 2] = 2; /* (1, 2, 2) */
    open_scene(&scene, (struct image_extent){5, 4, 3}, voxels, bits, false);
    memcpy(scene.volume.voxel_to_mm, affine, sizeof(affine));
    memcpy(scene.volume.spacing, (double[3]){0.5, 0.75, 2.5}, sizeof(scene.volume.spacing));
    take(&scene, values);
    for (int i = 0; i < 3; i++)
        check_value(values, SHAPE_CENTROID_X + i,
                    affine[i][0] * 4 / 3 + affine[i][1] * 4 / 3 + affine[i][2] * 2 / 3 + affine[i][3], 1e-12);
    check_value(values, SHAPE_BOX_X, 1, 1e-15);
    check_value(values, SHAPE_BOX_Y, 1.5, 1e-15);
    check_value(values, SHAPE_BOX_Z, 7.5, 1e-15);
    check_value(values, SHAPE_VOLUME_ML, 3 * 0.9375 / 1000, 1e-18);
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

static void
check_list(const struct feature_value values[ALL_FEATURES], double *list, size_t count)
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
    check_value(values, INTENSITY(MEAN), sum / n, 1e-10);
    check_value(values, INTENSITY(VARIANCE), moment[2], 1e-10 * moment[2]);
    check_value(values, INTENSITY(SKEWNESS), moment[3] / pow(moment[2], 1.5), 1e-10);
    check_value(values, INTENSITY(KURTOSIS), moment[4] / (moment[2] * moment[2]) - 3, 1e-10);
    check_value(values, INTENSITY(ENERGY), squares, 1e-10 * squares);
    check_value(values, INTENSITY(ROOT_MEAN_SQUARE), sqrt(squares / n), 1e-10);
    check_value(values, INTENSITY(MINIMUM), list[0], 0);
    check_value(values, INTENSITY(MAXIMUM), list[count - 1], 0);
    check_value(values, INTENSITY(RANGE), list[count - 1] - list[0], 0);
    check_value(values, INTENSITY(MEDIAN), interpolated(list, count, 0.5), 1e-10);
    check_value(values, INTENSITY(PERCENTILE_10), interpolated(list, count, 0.1), 1e-10);
    check_value(values, INTENSITY(PERCENTILE_90), interpolated(list, count, 0.9), 1e-10);
    check_value(values, INTENSITY(INTERQUARTILE_RANGE),
                interpolated(list, count, 0.75) - interpolated(list, count, 0.25), 1e-10);
}

/* Three slices, each with its own rescale, one with a negative slope; some values are equal. */
START_TEST(a_rescale_for_each_slice)
{
    static const struct image_rescale rescales[3] = {{2, -100}, {-0.25, 40}, {1.1, -1e3}};
    const struct image_extent extent = {9, 8, 3};
    struct feature_value values[ALL_FEATURES];
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
    scene.volume.rescales = rescales;
    take(&scene, values);
    check_value(values, SHAPE_VOXEL_COUNT, (double)count, 0);
    check_list(values, list, count);
    close_scene(&scene);
}

END_TEST

/* Entries of a signed type start at its smallest value. A large offset must not cost precision. */
START_TEST(signed_values)
{
    static uint64_t histogram[65536];
    static const struct image_rescale far_off = {1, 1e7};
    const struct feature_volume volume = {
        .options = &no_options, .tables = 1, .values = 65536, .smallest = -32768, .rescales = &far_off};
    const struct feature_region region = {
        .volume = &volume, .histograms = histogram, .no_levels = FEATURE_NOT_DISCRETISED};
    double list[5] = {1e7 - 32768, 1e7 - 3, 1e7 - 3, 1e7, 1e7 + 32767};
    struct feature_value values[ALL_FEATURES];

    histogram[0] = 1;
    histogram[32768 - 3] = 2;
    histogram[32768] = histogram[65535] = 1;
    take_intensities(&region, values);
    check_list(values, list, 5);
}

END_TEST

/* Each slice has its levels. Values without a level do not count. */
START_TEST(entropy_of_levels)
{
    static const struct image_rescale rescales[2] = {{1, 0}, {-1, 9}};
    static uint64_t histograms[2 * 256];
    static uint16_t level_of[2 * 256];
    const struct feature_volume volume = {.options = &no_options, .tables = 2, .values = 256, .rescales = rescales};
    struct feature_region region = {.volume = &volume, .histograms = histograms, .level_of = level_of, .levels = 3};
    struct feature_value values[ALL_FEATURES];

    histograms[2] = 3;
    histograms[3] = 5;
    histograms[256 + 7] = 1; /* 2 */
    histograms[256 + 6] = 3; /* 3 */
    histograms[256 + 1] = 4; /* 8, excluded */
    level_of[2] = level_of[256 + 7] = 1;
    level_of[3] = level_of[256 + 6] = 3;
    take_intensities(&region, values);
    check_value(values, INTENSITY(ENTROPY), -(log2(1.0 / 3) + 2 * log2(2.0 / 3)) / 3, 1e-15);
    level_of[2] = level_of[256 + 7] = level_of[3] = level_of[256 + 6] = 0;
    take_intensities(&region, values);
    ck_assert_int_eq(values[INTENSITY(ENTROPY)].missing, FEATURE_EMPTY_REGION);
    region.no_levels = FEATURE_NOT_DISCRETISED;
    take_intensities(&region, values);
    ck_assert_int_eq(values[INTENSITY(ENTROPY)].missing, FEATURE_NOT_DISCRETISED);
    ck_assert_double_eq(values[INTENSITY(ENTROPY)].value, 0);
}

END_TEST

/* ------------------------------------------------------------------------- missing values -- */

START_TEST(empty_region)
{
    struct feature_value values[ALL_FEATURES];
    uint8_t voxels[6] = {1, 2, 3, 4, 5, 6};
    uint64_t bits[2] = {0};
    struct scene scene;

    open_scene(&scene, (struct image_extent){3, 2, 1}, voxels, bits, false);
    take(&scene, values);
    check_value(values, SHAPE_VOXEL_COUNT, 0, 0);
    check_value(values, SHAPE_VOLUME_ML, 0, 0);
    for (int f = SHAPE_CENTROID_X; f < ALL_FEATURES; f++) {
        ck_assert_int_eq(values[f].missing, FEATURE_EMPTY_REGION);
        ck_assert_double_eq(values[f].value, 0);
    }
    close_scene(&scene);
}

END_TEST

/* Padding voxels have a place, but no value. */
START_TEST(region_of_padding)
{
    struct feature_value values[ALL_FEATURES];
    uint8_t voxels[6] = {0};
    uint64_t bits[2] = {4, 4};
    struct scene scene;

    open_scene(&scene, (struct image_extent){3, 2, 1}, voxels, bits, false);
    scene.histograms[0] = 0;
    take(&scene, values);
    check_value(values, SHAPE_VOXEL_COUNT, 2, 0);
    check_value(values, SHAPE_CENTROID_X, 2, 0);
    check_value(values, SHAPE_CENTROID_Y, 0.5, 0);
    for (int f = INTENSITY(MEAN); f <= INTENSITY(ENTROPY); f++)
        ck_assert_int_eq(values[f].missing, FEATURE_EMPTY_REGION);
    close_scene(&scene);
}

END_TEST

/* One voxel, then several of one value without an exact double: no spread, and so no shape of it. */
START_TEST(one_value)
{
    static const struct image_rescale tenth = {0.1, -0.3};
    struct feature_value values[ALL_FEATURES];
    uint16_t level_of[256] = {0};
    uint8_t voxels[6] = {7, 7, 7, 7, 7, 7};
    uint64_t bits[2] = {1, 0};
    const double value = 0.1 * 7 - 0.3;
    struct scene scene;

    level_of[7] = 1;
    for (int all = 0; all < 2; all++) {
        bits[0] = all ? 7 : 1;
        open_scene(&scene, (struct image_extent){3, 2, 1}, voxels, bits, false);
        scene.volume.rescales = &tenth;
        scene.region.no_levels = FEATURE_PRESENT;
        scene.region.level_of = level_of;
        scene.region.levels = 2;
        take(&scene, values);
        ck_assert_int_eq(values[INTENSITY(SKEWNESS)].missing, FEATURE_ONE_GREY_LEVEL);
        ck_assert_int_eq(values[INTENSITY(KURTOSIS)].missing, FEATURE_ONE_GREY_LEVEL);
        check_value(values, INTENSITY(MEAN), value, 1e-15);
        check_value(values, INTENSITY(VARIANCE), 0, 0);
        check_value(values, INTENSITY(STANDARD_DEVIATION), 0, 0);
        check_value(values, INTENSITY(MEDIAN), value, 0);
        check_value(values, INTENSITY(RANGE), 0, 0);
        check_value(values, INTENSITY(INTERQUARTILE_RANGE), 0, 0);
        check_value(values, INTENSITY(ENTROPY), 0, 0);
        ck_assert(!signbit(values[INTENSITY(ENTROPY)].value));
        close_scene(&scene);
    }
}

END_TEST

/* Rounding must not create a spread, for any number of voxels. */
START_TEST(one_value_many_times)
{
    static const struct image_rescale rescale = {0.1, -1000.3};
    static uint64_t histogram[256];
    const struct feature_volume volume = {.options = &no_options, .tables = 1, .values = 256, .rescales = &rescale};
    const struct feature_region region = {
        .volume = &volume, .histograms = histogram, .no_levels = FEATURE_NOT_DISCRETISED};
    struct feature_value values[ALL_FEATURES];

    for (uint64_t count = 1; count < 3000; count++) {
        histogram[77] = count * count;
        take_intensities(&region, values);
        check_value(values, INTENSITY(VARIANCE), 0, 0);
        ck_assert_int_eq(values[INTENSITY(SKEWNESS)].missing, FEATURE_ONE_GREY_LEVEL);
        check_value(values, INTENSITY(MEAN), 0.1 * 77 - 1000.3, 0);
    }
}

END_TEST

/* For any counts, a feature must be finite or absent. */
START_TEST(finite_or_absent)
{
    static uint64_t histograms[2 * 256];
    static uint16_t level_of[2 * 256];
    uint64_t random = 21;

    for (int round = 0; round < 5000; round++) {
        const struct image_rescale rescales[2] = {{pow(10, (double)ref_random_below(&random, 9) - 4), 3.3},
                                                  {-0.7, 1e6}};
        const uint64_t bits = (UINT64_C(2) << ref_random_below(&random, 9)) - 1;
        const struct feature_volume volume = {.options = &no_options,
                                              .columns = 64,
                                              .rows = 1,
                                              .slices = 1,
                                              .tables = 2,
                                              .values = 256,
                                              .rescales = rescales};
        const struct scene scene = {
            .region = {.volume = &volume, .bits = &bits, .histograms = histograms, .level_of = level_of, .levels = 4}};
        struct feature_value values[ALL_FEATURES];

        memset(histograms, 0, sizeof(histograms));
        for (int64_t i = ref_random_below(&random, 4); i > 0; i--) {
            const int64_t at = ref_random_below(&random, 512);

            histograms[at] = UINT64_C(1) << ref_random_below(&random, 33);
            level_of[at] = (uint16_t)ref_random_below(&random, 5);
        }
        take(&scene, values);
        for (int f = 0; f < ALL_FEATURES; f++) {
            ck_assert(isfinite(values[f].value));
            ck_assert(values[f].missing == FEATURE_PRESENT || values[f].value == 0);
        }
        ck_assert_double_ge(values[INTENSITY(INTERQUARTILE_RANGE)].value, 0);
        ck_assert_double_le(values[INTENSITY(INTERQUARTILE_RANGE)].value, values[INTENSITY(RANGE)].value);
    }
}

END_TEST

START_TEST(names_and_units)
{
    for (int f = 0; f < ALL_FEATURES; f++) {
        const struct feature_definition *definition = definition_of(f);

        ck_assert_int_eq(definition->unit[0] == 0, definition->value_power > 0);
        for (int g = 0; g < f; g++)
            ck_assert_str_ne(definition->name, definition_of(g)->name);
    }
    ck_assert_int_eq(definition_of(INTENSITY(MEAN))->value_power, 1);
    ck_assert_int_eq(definition_of(INTENSITY(VARIANCE))->value_power, 2);
    ck_assert_int_eq(definition_of(INTENSITY(ENERGY))->value_power, 2);
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
