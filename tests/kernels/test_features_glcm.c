/*
 * test_features_glcm.c - features of co-occurrence matrices: IBSI's values for its digital phantom, matrices with
 * known features, and cases without a value.
 */
#include "kernels/features/matrices/glcm.h"
#include "tests/kernels/ref_ibsi.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- the digital phantom of IBSI -- */

struct published {
    const char *ibsi;
    const char *printed[AGGREGATIONS]; /* three digits; "" if IBSI has no value */
    const char *full[AGGREGATIONS];    /* six digits */
};

/*
 * In the order of enum glcm_feature and of enum aggregation. f14, which is not in IBSI, was computed from the same
 * matrices with another implementation.
 */
static const struct published published[GLCM_FEATURES] = {
    {"GYBY",
     {"0.519", "0.512", "0.489", "0.492", "0.503", "0.509"},
     {"0.5188", "0.512292", "0.488963", "0.492228", "0.502811", "0.508539"}},
    {"60VM",
     {"2.14", "2.14", "2.2", "2.2", "2.14", "2.15"},
     {"2.14242", "2.14343", "2.20457", "2.20466", "2.143", "2.14896"}},
    {"UR99",
     {"2.69", "2.71", "3.22", "3.24", "3.1", "3.13"},
     {"2.6877", "2.71158", "3.21809", "3.23532", "3.09932", "3.13246"}},
    {"TU9B",
     {"2.05", "2.24", "2.48", "2.61", "2.4", "2.57"},
     {"2.04966", "2.23838", "2.48401", "2.60675", "2.39971", "2.5739"}},
    {"TF7R",
     {"1.42", "1.4", "1.46", "1.44", "1.43", "1.38"},
     {"1.42247", "1.39902", "1.46078", "1.43523", "1.43098", "1.37951"}},
    {"D3YU",
     {"2.9", "3.06", "3.11", "3.23", "3.06", "3.21"},
     {"2.90159", "3.06426", "3.10768", "3.23026", "3.05628", "3.21461"}},
    {"NTRS",
     {"1.4", "1.49", "1.61", "1.67", "1.56", "1.64"},
     {"1.39615", "1.49262", "1.61433", "1.67461", "1.56273", "1.64088"}},
    {"ZGXS",
     {"4.28", "4.29", "4.41", "4.41", "4.29", "4.3"},
     {"4.28484", "4.28686", "4.40913", "4.40933", "4.28599", "4.29791"}},
    {"OEEB",
     {"5.47", "5.66", "7.48", "7.65", "7.07", "7.41"},
     {"5.47293", "5.65615", "7.47951", "7.6511", "7.0728", "7.4122"}},
    {"P6QZ",
     {"1.6", "1.79", "2.01", "2.14", "1.92", "2.11"},
     {"1.60319", "1.79494", "2.01372", "2.14045", "1.92261", "2.10986"}},
    {"8ZQL",
     {"0.368", "0.352", "0.286", "0.277", "0.303", "0.291"},
     {"0.367529", "0.351678", "0.28628", "0.276813", "0.302975", "0.290951"}},
    {"ACUI",
     {"5.28", "5.19", "5.39", "5.29", "5.32", "5.12"},
     {"5.27785", "5.19019", "5.39285", "5.29016", "5.32448", "5.11765"}},
    {"8S9J",
     {"1.42", "1.4", "1.46", "1.44", "1.43", "1.38"},
     {"1.42247", "1.39902", "1.46078", "1.43523", "1.43098", "1.37951"}},
    {"IB1Z",
     {"0.678", "0.683", "0.668", "0.673", "0.677", "0.688"},
     {"0.677949", "0.683294", "0.667617", "0.673143", "0.676615", "0.687698"}},
    {"NDRX",
     {"0.851", "0.854", "0.847", "0.85", "0.851", "0.856"},
     {"0.851399", "0.853846", "0.847075", "0.849668", "0.850679", "0.855898"}},
    {"WF0Z",
     {"0.619", "0.625", "0.606", "0.613", "0.618", "0.631"},
     {"0.618737", "0.625003", "0.606448", "0.612874", "0.617739", "0.630638"}},
    {"1QCO",
     {"0.899", "0.901", "0.897", "0.899", "0.898", "0.902"},
     {"0.899219", "0.900879", "0.896823", "0.898688", "0.898443", "0.90221"}},
    {"E8JP",
     {"0.0567", "0.0553", "0.0597", "0.0582", "0.0604", "0.0574"},
     {"0.0566983", "0.055286", "0.0597138", "0.0581635", "0.0604163", "0.0574447"}},
    {"NI2N",
     {"-0.0121", "0.0173", "0.178", "0.182", "0.157", "0.183"},
     {"-0.012107", "0.0173072", "0.177551", "0.182436", "0.15735", "0.183127"}},
    {"QWB0",
     {"5.09", "5.14", "5.4", "5.45", "5.06", "5.19"},
     {"5.09437", "5.13953", "5.40314", "5.45078", "5.05544", "5.19165"}},
    {"DG8W",
     {"5.47", "5.66", "7.48", "7.65", "7.07", "7.41"},
     {"5.47293", "5.65615", "7.47951", "7.6511", "7.0728", "7.4122"}},
    {"7NFM",
     {"7", "6.98", "16.6", "16.4", "16.6", "17.4"},
     {"6.99782", "6.97661", "16.6057", "16.4065", "16.6441", "17.4192"}},
    {"AE86",
     {"79.1", "80.4", "147", "142", "145", "147"},
     {"79.1126", "80.3855", "147.202", "142.418", "144.703", "147.464"}},
    {"R8DG",
     {"-0.155", "-0.0341", "-0.124", "-0.0334", "-0.157", "-0.0288"},
     {"-0.15512", "-0.0340891", "-0.124062", "-0.0334172", "-0.156848", "-0.0287997"}},
    {"JN9H",
     {"0.487", "0.263", "0.487", "0.291", "0.52", "0.269"},
     {"0.487457", "0.262509", "0.487095", "0.29117", "0.519588", "0.269169"}},
    {"", {"", "", "", "", "", ""}, {"0.404424", "0.170477", "0.400977", "0.227580", "0.440543", "0.218356"}},
};

/* Counts as the aggregation requires. The caller must free the counts. */
static uint64_t *
count(struct image_extent extent, const uint8_t *voxels, const uint64_t *region, const uint16_t *level_of, int levels,
      enum aggregation aggregation, int64_t *slices, int64_t *directions)
{
    struct texture_offset offsets[13];
    struct texture_glcm request = {
        .levels = {levels, level_of, 1},
        .region = region,
        .offsets = offsets,
        .offset_count = ref_directions(aggregation_is_2d(aggregation), 1, offsets),
        .per_slice = aggregation_per_slice(aggregation),
    };
    const size_t square = (size_t)levels * (size_t)levels;
    uint64_t *counts;

    *slices = request.per_slice ? extent.slices : 1;
    *directions = (int64_t)request.offset_count;
    counts = malloc((size_t)(*slices * *directions) * square * sizeof(*counts));
    ck_assert_ptr_nonnull(counts);
    ref_texture_glcm(extent, IMAGE_UINT8, voxels, &request, counts);
    return counts;
}

/* Prints the value with `count_of_digits` significant digits. */
static const char *
digits(double value, int count_of_digits, char text[32])
{
    snprintf(text, 32, "%.*g", count_of_digits, value);
    return text;
}

static void
check_digits(const struct feature_value *value, const char *expected, int count_of_digits, const char *name)
{
    char text[32], wanted[32];

    ck_assert_int_eq(value->missing, FEATURE_PRESENT);
    ck_assert_msg(strcmp(digits(value->value, count_of_digits, text),
                         digits(strtod(expected, NULL), count_of_digits, wanted)) == 0,
                  "%s is %.9g, not %s", name, value->value, expected);
}

START_TEST(phantom_of_ibsi)
{
    const enum aggregation aggregation = (enum aggregation)_i;
    const struct glcm_settings settings = {6, aggregation, true, GLCM_ONE_LEVEL_ABSENT};
    struct feature_value values[GLCM_FEATURES];
    struct ibsi_phantom scene;
    int64_t slices, directions;
    uint64_t *counts;

    ibsi_fill(&scene);
    counts = count(ibsi_extent, scene.voxels, scene.region, scene.level_of, 6, aggregation, &slices, &directions);
    ck_assert_int_eq(directions, aggregation_is_2d(aggregation) ? 4 : 13);
    ck_assert_int_eq(glcm_features(&settings, NULL, counts, slices, directions, values), 0);
    for (int f = 0; f < GLCM_FEATURES; f++) {
        const struct feature_definition *definition = &family_glcm.definitions[f];

        ck_assert_str_eq(definition->ibsi, published[f].ibsi);
        if (published[f].printed[_i][0])
            check_digits(&values[f], published[f].printed[_i], 3, definition->name);
        check_digits(&values[f], published[f].full[_i], 6, definition->name);
    }
    free(counts);
}

END_TEST

START_TEST(counts_of_the_phantom)
{
    static const struct {
        int i, j;
        uint64_t count;
    } merged[] = {{1, 1, 536}, {1, 3, 14}, {1, 4, 105}, {1, 6, 61}, {3, 3, 0}, {3, 4, 5},
                  {3, 6, 6},   {4, 4, 64}, {4, 6, 28},  {6, 6, 16}, {2, 2, 0}, {1, 5, 0}};
    struct ibsi_phantom scene;
    int64_t slices, directions;
    uint64_t *counts, sum = 0;

    ibsi_fill(&scene);
    counts =
        count(ibsi_extent, scene.voxels, scene.region, scene.level_of, 6, AGGREGATION_3D_MERGED, &slices, &directions);
    for (int64_t i = 0; i < directions * 36; i++)
        sum += 2 * counts[i];
    ck_assert_uint_eq(sum, 1054);
    for (size_t m = 0; m < sizeof(merged) / sizeof(merged[0]); m++) {
        const int i = merged[m].i - 1, j = merged[m].j - 1;

        sum = 0;
        for (int64_t d = 0; d < directions; d++)
            sum += counts[d * 36 + i * 6 + j] + counts[d * 36 + j * 6 + i];
        ck_assert_uint_eq(sum, merged[m].count);
    }
    free(counts);
}

END_TEST

/* -------------------------------------------------------------- examples of other software -- */

/* Counts one slice in one direction; `symmetric` adds the transpose. */
static void
count_slice(int64_t size, const uint8_t *voxels, int levels, struct texture_offset offset, bool symmetric,
            uint64_t *counts)
{
    const struct image_extent extent = {size, size, 1};
    uint64_t directional[64];
    uint16_t level_of[256] = {0};
    struct texture_glcm request = {.levels = {levels, level_of, 1}, .offsets = &offset, .offset_count = 1};

    for (int level = 0; level <= levels; level++)
        level_of[level] = (uint16_t)level;
    ref_texture_glcm(extent, IMAGE_UINT8, voxels, &request, directional);
    for (int i = 0; i < levels; i++)
        for (int j = 0; j < levels; j++)
            counts[i * levels + j] = directional[i * levels + j] + (symmetric ? directional[j * levels + i] : 0);
}

/* The example of graycomatrix, at 0 degrees. Its levels 0 .. 3 are 1 .. 4 here. */
START_TEST(example_of_scikit_image)
{
    static const uint8_t voxels[16] = {1, 1, 2, 2, 1, 1, 2, 2, 1, 3, 3, 3, 3, 3, 4, 4};
    static const uint64_t expected[16] = {2, 2, 1, 0, 0, 2, 0, 0, 0, 0, 3, 1, 0, 0, 0, 1};
    uint64_t counts[16];

    count_slice(4, voxels, 4, (struct texture_offset){1, 0, 0}, false, counts);
    ck_assert_mem_eq(counts, expected, sizeof(expected));
}

END_TEST

START_TEST(example_of_pyradiomics)
{
    static const uint8_t voxels[25] = {1, 2, 5, 2, 3, 3, 2, 1, 3, 1, 1, 3, 5, 5, 2, 1, 1, 1, 1, 2, 1, 2, 4, 3, 5};
    static const uint64_t expected[25] = {6, 4, 3, 0, 0, 4, 0, 2, 1, 3, 3, 2, 0, 1, 2, 0, 1, 1, 0, 0, 0, 3, 2, 0, 2};
    uint64_t counts[25];

    count_slice(5, voxels, 5, (struct texture_offset){1, 0, 0}, true, counts);
    ck_assert_mem_eq(counts, expected, sizeof(expected));
}

END_TEST

/* ------------------------------------------------------------------------ known matrices -- */

static void
features_of(int levels, bool symmetric, const uint64_t *counts, struct feature_value values[GLCM_FEATURES])
{
    const struct glcm_settings settings = {levels, AGGREGATION_3D_MERGED, symmetric, GLCM_ONE_LEVEL_ABSENT};

    ck_assert_int_eq(glcm_features(&settings, NULL, counts, 1, 1, values), 0);
}

static double
present(const struct feature_value values[GLCM_FEATURES], enum glcm_feature feature)
{
    ck_assert_msg(values[feature].missing == FEATURE_PRESENT, "%s is missing", family_glcm.definitions[feature].name);
    return values[feature].value;
}

static void
check_value(const struct feature_value values[GLCM_FEATURES], enum glcm_feature feature, double expected)
{
    const double value = present(values, feature);

    ck_assert_msg(fabs(value - expected) <= 1e-14 * fmax(1, fabs(expected)), "%s is %.17g, not %.17g",
                  family_glcm.definitions[feature].name, value, expected);
}

/* With independent levels every count is a product: one level gives no information on the other. */
START_TEST(independent_levels)
{
    static const uint64_t left[5] = {3, 0, 7, 1000003, 11}, right[5] = {5, 13, 0, 999983, 1};
    struct feature_value values[GLCM_FEATURES];
    uint64_t counts[25];

    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            counts[i * 5 + j] = left[i] * right[j];
    features_of(5, false, counts, values);
    ck_assert_double_eq_tol(present(values, GLCM_CORRELATION), 0, 1e-12);
    ck_assert_double_eq_tol(present(values, GLCM_INFORMATION_CORRELATION_1), 0, 1e-12);
    ck_assert_double_eq_tol(present(values, GLCM_INFORMATION_CORRELATION_2), 0, 1e-7);
    ck_assert_double_eq_tol(present(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT), 0, 1e-14);
    for (int i = 0; i < 25; i++)
        counts[i] = 17;
    features_of(5, true, counts, values);
    check_value(values, GLCM_JOINT_ENTROPY, log2(25));
    check_value(values, GLCM_ANGULAR_SECOND_MOMENT, 1.0 / 25);
    ck_assert_double_eq(present(values, GLCM_INFORMATION_CORRELATION_1), 0);
    ck_assert_double_eq(present(values, GLCM_INFORMATION_CORRELATION_2), 0);
    ck_assert_double_eq(present(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT), 0);
}

END_TEST

/* Two equally frequent levels that are almost independent: p is 1/4 + or - a quarter of e. */
START_TEST(nearly_independent_levels)
{
    const uint64_t half = UINT64_C(1) << 36, little = 1 << 10;
    const double e = (double)little / (double)half; /* 1.5e-8 */
    const uint64_t counts[4] = {half + little, half - little, half - little, half + little};
    struct feature_value values[GLCM_FEATURES];

    features_of(2, false, counts, values);
    ck_assert_double_eq_tol(present(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT) / e, 1, 1e-9);
    ck_assert_double_eq_tol(present(values, GLCM_CORRELATION) / e, 1, 1e-9);
    ck_assert_double_le(present(values, GLCM_INFORMATION_CORRELATION_2), 1e-7);
    ck_assert_double_ge(present(values, GLCM_INFORMATION_CORRELATION_2), 0);
}

END_TEST

/* Each level is followed by the next, the last by the first: full information, and not symmetric. */
START_TEST(one_level_follows_another)
{
    struct feature_value values[GLCM_FEATURES];
    uint64_t counts[36] = {0};

    for (int i = 0; i < 6; i++)
        counts[i * 6 + (i + 1) % 6] = 4;
    features_of(6, false, counts, values);
    check_value(values, GLCM_JOINT_MAXIMUM, 1.0 / 6);
    check_value(values, GLCM_JOINT_AVERAGE, 3.5);
    check_value(values, GLCM_JOINT_VARIANCE, 35.0 / 12);
    check_value(values, GLCM_JOINT_ENTROPY, log2(6));
    check_value(values, GLCM_CONTRAST, 5);             /* (5 * 1 + 25) / 6 */
    check_value(values, GLCM_DISSIMILARITY, 10.0 / 6); /* (5 * 1 + 5) / 6 */
    check_value(values, GLCM_DIFFERENCE_VARIANCE, 5 - 100.0 / 36);
    check_value(values, GLCM_INVERSE_VARIANCE, (5 + 0.04) / 6);
    check_value(values, GLCM_NORMALISED_INVERSE_DIFFERENCE, (5 / (1 + 1.0 / 6) + 1 / (1 + 5.0 / 6)) / 6);
    check_value(values, GLCM_AUTOCORRELATION, 76.0 / 6); /* 2 + 6 + 12 + 20 + 30 + 6 */
    check_value(values, GLCM_CORRELATION, (76.0 / 6 - 12.25) / (35.0 / 12));
    check_value(values, GLCM_INFORMATION_CORRELATION_1, -1);
    check_value(values, GLCM_INFORMATION_CORRELATION_2, sqrt(1 - exp(-2 * log2(6))));
    check_value(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT, 1);
    /* The symmetric form cannot distinguish the two neighbours: cos(2 pi / 6) and -1. */
    features_of(6, true, counts, values);
    check_value(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT, 1);
    check_value(values, GLCM_JOINT_ENTROPY, log2(12));
}

END_TEST

/* Rows and columns have different numbers of levels. Transposing must not change singular values. */
START_TEST(transposed)
{
    static const enum glcm_feature alike[] = {GLCM_MAXIMAL_CORRELATION_COEFFICIENT,
                                              GLCM_CORRELATION,
                                              GLCM_CONTRAST,
                                              GLCM_SUM_ENTROPY,
                                              GLCM_INFORMATION_CORRELATION_1,
                                              GLCM_INFORMATION_CORRELATION_2,
                                              GLCM_CLUSTER_SHADE};
    struct feature_value values[GLCM_FEATURES], others[GLCM_FEATURES];
    uint64_t counts[49] = {0}, turned[49] = {0}, random = 5;

    for (int i = 0; i < 7; i += 2)
        for (int j = 1; j < 7; j++)
            counts[i * 7 + j] = turned[j * 7 + i] = (uint64_t)ref_random_below(&random, 50);
    features_of(7, false, counts, values);
    features_of(7, false, turned, others);
    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
        ck_assert_double_eq_tol(present(values, alike[i]), present(others, alike[i]), 1e-13);
    ck_assert_double_ge(fabs(present(values, GLCM_JOINT_AVERAGE) - present(others, GLCM_JOINT_AVERAGE)), 0.1);
}

END_TEST

/* A symmetric matrix must give the same with both settings; and `symmetric` must add the transpose. */
START_TEST(symmetric_and_directional)
{
    struct feature_value once[GLCM_FEATURES], twice[GLCM_FEATURES];
    uint64_t counts[81], both[81], random = 6;

    for (int i = 0; i < 81; i++)
        counts[i] = (uint64_t)ref_random_below(&random, 9);
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            both[i * 9 + j] = counts[i * 9 + j] + counts[j * 9 + i];
    features_of(9, true, counts, once);
    features_of(9, false, both, twice);
    for (int f = 0; f < GLCM_FEATURES; f++)
        ck_assert_double_eq_tol(present(once, (enum glcm_feature)f), present(twice, (enum glcm_feature)f), 1e-12);
}

END_TEST

/* The same matrix among 256 levels, and multiplied by a large number. */
START_TEST(levels_without_voxels)
{
    static const enum glcm_feature alike[] = {GLCM_JOINT_MAXIMUM,
                                              GLCM_JOINT_VARIANCE,
                                              GLCM_JOINT_ENTROPY,
                                              GLCM_DIFFERENCE_VARIANCE,
                                              GLCM_SUM_VARIANCE,
                                              GLCM_SUM_ENTROPY,
                                              GLCM_CONTRAST,
                                              GLCM_INVERSE_DIFFERENCE,
                                              GLCM_CORRELATION,
                                              GLCM_CLUSTER_PROMINENCE,
                                              GLCM_INFORMATION_CORRELATION_1,
                                              GLCM_INFORMATION_CORRELATION_2,
                                              GLCM_MAXIMAL_CORRELATION_COEFFICIENT};

    uint64_t *many = calloc(256 * 256, sizeof(*many)), few[25], random = 9;
    struct feature_value values[GLCM_FEATURES], others[GLCM_FEATURES];

    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            few[i * 5 + j] = (uint64_t)ref_random_below(&random, 1000);
            many[(i + 251) * 256 + j + 251] = few[i * 5 + j] << 38;
        }
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        features_of(5, symmetric, few, values);
        features_of(256, symmetric, many, others);
        for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
            ck_assert_double_eq_tol(present(values, alike[i]), present(others, alike[i]), 1e-11);
        ck_assert_double_eq_tol(present(values, GLCM_JOINT_AVERAGE) + 251, present(others, GLCM_JOINT_AVERAGE), 1e-11);
        ck_assert_double_ge(present(others, GLCM_NORMALISED_INVERSE_DIFFERENCE),
                            present(values, GLCM_NORMALISED_INVERSE_DIFFERENCE));
    }
    free(many);
}

END_TEST

/* ------------------------------------------------------------------- averages, missing ------ */

/* Averages matrices of 3 levels. */
static void
average_of(const uint64_t (*matrices)[9], int64_t slices, int64_t directions, enum aggregation aggregation,
           struct feature_value values[GLCM_FEATURES])
{
    const struct glcm_settings settings = {3, aggregation, true, GLCM_ONE_LEVEL_ABSENT};

    ck_assert_int_eq(glcm_features(&settings, NULL, &matrices[0][0], slices, directions, values), 0);
}

START_TEST(averages)
{
    static const uint64_t matrices[6][9] = {
        {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0}, {9, 0, 0, 1, 0, 2, 0, 0, 4}, {0}, {0}, {0, 5, 1}};
    static const int filled[3] = {0, 2, 5};
    struct feature_value values[GLCM_FEATURES], one[GLCM_FEATURES];
    double sums[GLCM_FEATURES] = {0};

    for (int m = 0; m < 3; m++) {
        features_of(3, true, matrices[filled[m]], one);
        for (int f = 0; f < GLCM_FEATURES; f++)
            sums[f] += present(one, (enum glcm_feature)f);
    }
    /* Matrices without a count must be skipped in any position. */
    average_of(matrices, 3, 2, AGGREGATION_2D_AVERAGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        check_value(values, (enum glcm_feature)f, sums[f] / 3);
    average_of(matrices, 1, 6, AGGREGATION_3D_AVERAGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        check_value(values, (enum glcm_feature)f, sums[f] / 3);
    average_of(matrices, 1, 6, AGGREGATION_2_5D_DIRECTION_MERGED, values);
    check_value(values, GLCM_CONTRAST, sums[GLCM_CONTRAST] / 3);
}

END_TEST

START_TEST(merged_matrices)
{
    static const uint64_t matrices[4][9] = {
        {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 0, 2}, {9, 0, 0, 1, 0, 2, 0, 0, 4}, {0, 5, 1}};
    static const uint64_t slices[2][9] = {{1, 2, 5, 4, 5, 6, 7, 8, 9}, {9, 5, 1, 1, 0, 2, 0, 0, 4}};
    static const uint64_t all[1][9] = {{10, 7, 6, 5, 5, 8, 7, 8, 13}};
    struct feature_value values[GLCM_FEATURES], first[GLCM_FEATURES], second[GLCM_FEATURES];

    features_of(3, true, slices[0], first);
    features_of(3, true, slices[1], second);
    average_of(matrices, 2, 2, AGGREGATION_2D_SLICE_MERGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        check_value(values, (enum glcm_feature)f, (first[f].value + second[f].value) / 2);
    features_of(3, true, all[0], first);
    average_of(matrices, 1, 4, AGGREGATION_2_5D_MERGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        check_value(values, (enum glcm_feature)f, first[f].value);
    average_of(matrices, 1, 4, AGGREGATION_3D_MERGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        check_value(values, (enum glcm_feature)f, first[f].value);
}

END_TEST

static bool
needs_two_levels(enum glcm_feature feature)
{
    return feature == GLCM_CORRELATION || feature == GLCM_INFORMATION_CORRELATION_1 ||
           feature == GLCM_MAXIMAL_CORRELATION_COEFFICIENT;
}

START_TEST(no_neighbours)
{
    static const uint64_t matrices[2][9] = {{0}, {0}};
    struct feature_value values[GLCM_FEATURES];

    for (int aggregation = 0; aggregation < AGGREGATIONS; aggregation++) {
        average_of(matrices, 1, 2, (enum aggregation)aggregation, values);
        for (int f = 0; f < GLCM_FEATURES; f++) {
            ck_assert_int_eq(values[f].missing, FEATURE_NO_NEIGHBOURS);
            ck_assert_double_eq(values[f].value, 0);
        }
    }
}

END_TEST

START_TEST(one_level)
{
    static const uint64_t matrices[3][9] = {{0, 0, 0, 0, 7}, {0}, {0, 0, 0, 0, 1}};
    struct feature_value values[GLCM_FEATURES];

    average_of(matrices, 1, 3, AGGREGATION_3D_AVERAGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        ck_assert_int_eq(values[f].missing,
                         needs_two_levels((enum glcm_feature)f) ? FEATURE_ONE_GREY_LEVEL : FEATURE_PRESENT);
    check_value(values, GLCM_JOINT_MAXIMUM, 1);
    check_value(values, GLCM_JOINT_AVERAGE, 2);
    check_value(values, GLCM_JOINT_VARIANCE, 0);
    check_value(values, GLCM_JOINT_ENTROPY, 0);
    ck_assert(!signbit(values[GLCM_JOINT_ENTROPY].value)); /* must not print -0 */
    ck_assert(!signbit(values[GLCM_SUM_ENTROPY].value));
    check_value(values, GLCM_NORMALISED_INVERSE_DIFFERENCE, 1);
    check_value(values, GLCM_INVERSE_VARIANCE, 0);
    check_value(values, GLCM_INFORMATION_CORRELATION_2, 0);
}

END_TEST

/* A direction of one level has no correlation, but its contrast is 0. */
START_TEST(one_level_in_a_direction)
{
    static const uint64_t matrices[2][9] = {{4, 2, 0, 0, 6, 1, 0, 0, 3}, {0, 0, 0, 0, 7}};
    struct feature_value values[GLCM_FEATURES], first[GLCM_FEATURES];

    features_of(3, true, matrices[0], first);
    average_of(matrices, 1, 2, AGGREGATION_3D_AVERAGED, values);
    for (int f = 0; f < GLCM_FEATURES; f++)
        if (needs_two_levels((enum glcm_feature)f))
            check_value(values, (enum glcm_feature)f, first[f].value);
    check_value(values, GLCM_CONTRAST, first[GLCM_CONTRAST].value / 2);
}

END_TEST

/* For any counts, a feature must be finite or absent, and within its bounds. */
START_TEST(finite_or_absent)
{
    uint64_t random = 11, counts[3 * 64];

    for (int round = 0; round < 20000; round++) {
        const int levels = 2 + (int)ref_random_below(&random, 7);
        const int64_t filled = ref_random_below(&random, 6);
        const struct glcm_settings settings = {levels, (enum aggregation)ref_random_below(&random, AGGREGATIONS),
                                               round % 2, GLCM_ONE_LEVEL_ABSENT};
        struct feature_value v[GLCM_FEATURES];

        memset(counts, 0, sizeof(counts));
        for (int64_t i = 0; i < filled; i++)
            counts[ref_random_below(&random, 3 * levels * levels)] = UINT64_C(1) << ref_random_below(&random, 44);
        ck_assert_int_eq(glcm_features(&settings, NULL, counts, 1, 3, v), 0);
        for (int f = 0; f < GLCM_FEATURES; f++) {
            ck_assert(isfinite(v[f].value));
            ck_assert(v[f].missing == FEATURE_PRESENT || v[f].value == 0);
            ck_assert_int_eq(v[f].missing == FEATURE_NO_NEIGHBOURS, filled == 0);
        }
        ck_assert_double_ge(v[GLCM_INFORMATION_CORRELATION_1].value, -1 - 1e-12);
        ck_assert_double_le(v[GLCM_INFORMATION_CORRELATION_1].value, 0);
        ck_assert_double_ge(v[GLCM_INFORMATION_CORRELATION_2].value, 0);
        ck_assert_double_le(v[GLCM_INFORMATION_CORRELATION_2].value, 1);
        ck_assert_double_le(v[GLCM_MAXIMAL_CORRELATION_COEFFICIENT].value, 1);
        ck_assert_double_le(fabs(v[GLCM_CORRELATION].value), 1 + 1e-9);
        ck_assert_double_le(fabs(v[GLCM_CORRELATION].value), v[GLCM_MAXIMAL_CORRELATION_COEFFICIENT].value + 1e-9);
        ck_assert_double_ge(v[GLCM_JOINT_ENTROPY].value, 0);
    }
}

END_TEST

START_TEST(names_and_codes)
{
    static const char *const names[AGGREGATIONS] = {"2d-averaged", "2d-slice-merged", "2.5d-direction-merged",
                                                    "2.5d-merged", "3d-averaged",     "3d-merged"};
    static const char *const codes[AGGREGATIONS] = {"BTW3", "SUJT", "JJUI", "ZW7Z", "ITBB", "IAZD"};

    for (int i = 0; i < AGGREGATIONS; i++) {
        ck_assert_str_eq(aggregation_names[i], names[i]);
        ck_assert_str_eq(aggregation_codes[i], codes[i]);
    }
    for (int f = 0; f < GLCM_FEATURES; f++)
        for (int g = 0; g < f; g++)
            ck_assert_str_ne(family_glcm.definitions[f].name, family_glcm.definitions[g].name);
    ck_assert_str_eq(feature_missing_names[FEATURE_EMPTY_REGION], "EMPTY_REGION");
    ck_assert_str_eq(feature_missing_names[FEATURE_NO_NEIGHBOURS], "NO_NEIGHBOURS");
    ck_assert_str_eq(feature_missing_names[FEATURE_ONE_GREY_LEVEL], "ONE_GREY_LEVEL");
    ck_assert_str_eq(feature_missing_names[FEATURE_NOT_DISCRETISED], "NOT_DISCRETISED");
    ck_assert_str_eq(feature_missing_names[FEATURE_PRESENT], "");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("features_glcm");
    TCase *tcase = tcase_create("features_glcm");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tcase, phantom_of_ibsi, 0, AGGREGATIONS);
    tcase_add_test(tcase, counts_of_the_phantom);
    tcase_add_test(tcase, example_of_scikit_image);
    tcase_add_test(tcase, example_of_pyradiomics);
    tcase_add_test(tcase, independent_levels);
    tcase_add_test(tcase, nearly_independent_levels);
    tcase_add_test(tcase, one_level_follows_another);
    tcase_add_test(tcase, transposed);
    tcase_add_test(tcase, symmetric_and_directional);
    tcase_add_test(tcase, levels_without_voxels);
    tcase_add_test(tcase, averages);
    tcase_add_test(tcase, merged_matrices);
    tcase_add_test(tcase, no_neighbours);
    tcase_add_test(tcase, one_level);
    tcase_add_test(tcase, one_level_in_a_direction);
    tcase_add_test(tcase, finite_or_absent);
    tcase_add_test(tcase, names_and_codes);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
