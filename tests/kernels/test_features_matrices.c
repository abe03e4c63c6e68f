/*
 * test_features_matrices.c - families that count matrices of levels by runs, zones and neighbours: IBSI's values for
 * its digital phantom, regions with known features, and cases without a value.
 */
#include "kernels/features/matrices/level_matrix.h"
#include "kernels/features/matrices/neighbourhood.h"
#include "kernels/features/matrices/wide.h"
#include "kernels/texture/texture.h"
#include "tests/kernels/ref_ibsi.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the order of enum aggregation, or of enum dimension. */
struct printed {
    const char *code;
    double value[AGGREGATIONS];
};

static const struct printed glrlm[] = {
    {"22OV", {0.641, 0.661, 0.665, 0.68, 0.705, 0.729}},  {"W4KF", {3.78, 3.51, 3.46, 3.27, 3.06, 2.76}},
    {"V3SW", {0.604, 0.609, 0.58, 0.585, 0.603, 0.607}},  {"G3QZ", {9.82, 9.74, 10.3, 10.2, 9.7, 9.64}},
    {"HTZT", {0.294, 0.311, 0.296, 0.312, 0.352, 0.372}}, {"GD3A", {8.57, 8.67, 9.03, 9.05, 8.54, 8.67}},
    {"IVPO", {3.14, 2.92, 2.79, 2.63, 2.39, 2.16}},       {"3KUM", {17.4, 16.1, 17.9, 17, 17.6, 15.6}},
    {"R5YN", {5.2, 20.5, 19.5, 77.1, 21.8, 281}},         {"OVBL", {0.46, 0.456, 0.413, 0.412, 0.43, 0.43}},
    {"W92Y", {6.12, 21.6, 22.3, 83.2, 26.9, 328}},        {"IC23", {0.492, 0.441, 0.461, 0.445, 0.513, 0.501}},
    {"9ZK5", {0.627, 0.627, 0.632, 0.632, 0.68, 0.68}},   {"8CE5", {3.35, 3.37, 3.58, 3.59, 3.46, 3.48}},
    {"SXLW", {0.761, 0.778, 0.758, 0.767, 0.574, 0.598}}, {"HJ9O", {2.17, 2.57, 2.52, 2.76, 2.43, 2.62}},
};

static const struct printed glszm[] = {
    {"5QRC", {0.363, 0.368, 0.255}}, {"48P8", {43.9, 34.2, 550}},        {"XMSY", {0.371, 0.368, 0.253}},
    {"5GN9", {16.4, 16.2, 15.6}},    {"5RAI", {0.0259, 0.0295, 0.0256}}, {"HW1V", {10.3, 9.87, 2.76}},
    {"YH51", {40.4, 30.6, 503}},     {"J17V", {113, 107, 1.49e3}},       {"JNSA", {1.41, 5.44, 1.4}},
    {"Y1RO", {0.323, 0.302, 0.28}},  {"4JP3", {1.49, 3.44, 1}},          {"VB3A", {0.333, 0.191, 0.2}},
    {"P30P", {0.24, 0.243, 0.0676}}, {"BYLV", {3.97, 3.92, 2.64}},       {"3NSA", {21, 17.3, 331}},
    {"GU8N", {1.93, 3.08, 2.32}},
};

static const struct printed gldzm[] = {
    {"0GBI", {0.946, 0.917, 1}},     {"MB4I", {1.21, 1.33, 1}},       {"S1RA", {0.371, 0.368, 0.253}},
    {"K26C", {16.4, 16.2, 15.6}},    {"RUVG", {0.367, 0.362, 0.253}}, {"DKNJ", {15.2, 14.3, 15.6}},
    {"A7WM", {0.386, 0.391, 0.253}}, {"KLTH", {21.3, 23.7, 15.6}},    {"VFT7", {1.41, 5.44, 1.4}},
    {"7HP3", {0.323, 0.302, 0.28}},  {"V294", {3.79, 14.4, 5}},       {"IATH", {0.898, 0.802, 1}},
    {"VIWW", {0.24, 0.243, 0.0676}}, {"QK93", {3.97, 3.92, 2.64}},    {"7WT1", {0.051, 0.0988, 0}},
    {"GBDU", {1.73, 2, 1.92}},
};

static const struct printed ngtdm[] = {
    {"QCDE", {0.121, 0.0285, 0.0296}}, {"65HE", {0.925, 0.601, 0.584}}, {"NQ30", {2.99, 6.8, 6.54}},
    {"HDEZ", {10.4, 14.1, 13.5}},      {"1X9X", {2.88, 0.741, 0.763}},
};

static const struct printed ngldm[] = {
    {"SODN", {0.158, 0.159, 0.045}},
    {"IMOQ", {19.2, 18.8, 109}},
    {"TL9H", {0.702, 0.693, 0.693}},
    {"OAE7", {7.49, 7.66, 7.66}},
    {"EQ3F", {0.0473, 0.0477, 0.00963}},
    {"JA6D", {3.06, 3.07, 0.736}},
    {"NBZI", {17.6, 17.2, 102}},
    {"9QMG", {49.5, 50.8, 235}},
    {"FP8K", {10.2, 37.9, 37.9}},
    {"5SPA", {0.562, 0.512, 0.512}},
    {"Z87G", {3.96, 12.4, 4.86}},
    {"OKJI", {0.212, 0.167, 0.0657}},
    {"6XV8", {1, 1, 1}},
    {"1PFV", {2.7, 3.05, 3.05}},
    {"DNX2", {2.73, 3.27, 22.1}},
    {"FCBV", {2.71, 3.36, 4.4}},
    {"CAS9", {0.17, 0.122, 0.0533}},
};

static struct texture_options
options_of(enum aggregation aggregation)
{
    return (struct texture_options){
        .families = 1u << TEXTURE_FAMILY_all, .aggregation = aggregation, .ngtdm_distance = 1, .ngldm_distance = 1};
}

static void
check_printed(const struct feature_family *family, enum aggregation aggregation, const struct printed *printed,
              size_t count, size_t column)
{
    const struct texture_options options = options_of(aggregation);
    struct ibsi_published published[FEATURE_FAMILY_MAX];

    for (size_t i = 0; i < count; i++)
        published[i] = (struct ibsi_published){printed[i].code, 0, printed[i].value[column]};
    ibsi_check(family, &options, 0, published, count);
}

START_TEST(phantom_of_ibsi)
{
    const enum aggregation aggregation = (enum aggregation)_i;
    const size_t dimension = aggregation_dimension(aggregation);

    check_printed(&family_glrlm, aggregation, glrlm, sizeof(glrlm) / sizeof(glrlm[0]), (size_t)_i);
    check_printed(&family_glszm, aggregation, glszm, sizeof(glszm) / sizeof(glszm[0]), dimension);
    check_printed(&family_gldzm, aggregation, gldzm, sizeof(gldzm) / sizeof(gldzm[0]), dimension);
    check_printed(&family_ngtdm, aggregation, ngtdm, sizeof(ngtdm) / sizeof(ngtdm[0]), dimension);
    check_printed(&family_ngldm, aggregation, ngldm, sizeof(ngldm) / sizeof(ngldm[0]), dimension);
}

END_TEST

/* ------------------------------------------------------------------------ known regions -- */

static struct kernels_device *device;
static struct kernels_lane *lane;
static struct feature_value values[FEATURE_FAMILY_MAX];

static void
set_up(void)
{
    const struct kernels_device_options cpu = {.backend = "cpu", .threads = 3};

    ck_assert_int_eq(kernels_device_open(&cpu, &device, NULL), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, NULL), 0);
}

static void
tear_down(void)
{
    kernels_lane_close(lane);
    kernels_device_close(device);
}

/* Measures a row of voxels whose values are their levels; 0 is outside the region. */
static void
take(const struct feature_family *family, enum aggregation aggregation, const uint8_t *row, int64_t columns)
{
    const struct texture_options options = options_of(aggregation);
    const struct kernels_demand demand = {.of[KERNELS_NEIGHBOURS] = &kernels_asked, .of[KERNELS_RUNS] = &kernels_asked};
    const struct feature_volume volume = {
        .lane = lane, .options = &options, .columns = columns, .rows = 1, .slices = 1, .tables = 1, .values = 256};
    uint16_t level_of[256];
    uint64_t bits = 0, *counts = NULL;
    void *voxels;

    for (int i = 0; i < 256; i++)
        level_of[i] = (uint16_t)(i < 8 ? i : 0);
    for (int64_t x = 0; x < columns; x++)
        bits |= (uint64_t)(row[x] > 0) << x;
    const struct feature_region region = {.volume = &volume, .bits = &bits, .level_of = level_of, .levels = 8};

    ck_assert_int_eq(
        kernels_volume_begin(lane, (struct image_extent){columns, 1, 1}, IMAGE_UINT8, &demand, &voxels, NULL), 0);
    memcpy(voxels, row, (size_t)columns);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 1, NULL), 0);
    ck_assert_int_eq(family->count(&region, 0, &counts, NULL), 0);
    for (int f = 0; f < FEATURE_FAMILY_MAX; f++)
        values[f] = feature_absent(FEATURE_EMPTY_REGION);
    ck_assert_int_eq(family->values(&region, 0, counts, values), 0);
    free(counts);
}

static void
check_value(int feature, double expected)
{
    ck_assert_int_eq(values[feature].missing, FEATURE_PRESENT);
    ck_assert_double_eq_tol(values[feature].value, expected, 1e-14 * fmax(1, fabs(expected)));
}

START_TEST(runs_of_a_row)
{
    take(&family_glrlm, AGGREGATION_2_5D_DIRECTION_MERGED, (uint8_t[]){2, 2, 2, 0, 2, 5}, 6);
    /* Along the row 3, 1 of level 2 and 1 of level 5; in each other direction five of 1. */
    check_value(LEVEL_MATRIX_SHORT, ((1.0 / 9 + 2) / 3 + 3) / 4);
    check_value(LEVEL_MATRIX_LONG, (11.0 / 3 + 3) / 4);
    check_value(LEVEL_MATRIX_PERCENTAGE, (3.0 / 5 + 3) / 4);
    take(&family_glrlm, AGGREGATION_3D_MERGED, (uint8_t[]){0, 0}, 2);
    for (int f = 0; f < LEVEL_MATRIX_ENERGY; f++)
        ck_assert_int_eq(values[f].missing, FEATURE_EMPTY_REGION);
}

END_TEST

START_TEST(dependences_of_a_row)
{
    take(&family_ngldm, AGGREGATION_3D_MERGED, (uint8_t[]){3, 3, 3, 0, 1}, 5);
    check_value(LEVEL_MATRIX_LONG, (4.0 + 9 + 4 + 1) / 4); /* 2, 3, 2 and 1 */
    check_value(LEVEL_MATRIX_PERCENTAGE, 1);
    take(&family_ngldm, AGGREGATION_2D_AVERAGED, (uint8_t[]){6}, 1);
    check_value(LEVEL_MATRIX_LONG, 1);
    check_value(LEVEL_MATRIX_ENTROPY, 0);
    ck_assert(!signbit(values[LEVEL_MATRIX_ENTROPY].value));
}

END_TEST

/* IBSI's values for a sum of 0. */
START_TEST(tones_of_one_level)
{
    take(&family_ngtdm, AGGREGATION_3D_MERGED, (uint8_t[]){4, 4, 4}, 3);
    check_value(NGTDM_COARSENESS, 1e6);
    for (int f = NGTDM_CONTRAST; f < NGTDM_FEATURES; f++)
        check_value(f, 0);
}

END_TEST

START_TEST(tones_without_neighbours)
{
    take(&family_ngtdm, AGGREGATION_3D_MERGED, (uint8_t[]){4, 0, 4}, 3);
    for (int f = 0; f < NGTDM_FEATURES; f++)
        ck_assert_int_eq(values[f].missing, FEATURE_NO_NEIGHBOURS);
}

END_TEST

/* Two voxels of level 1 and one of level 2: the products of level and share are equal. */
START_TEST(tones_of_equal_products)
{
    take(&family_ngtdm, AGGREGATION_3D_MERGED, (uint8_t[]){1, 1, 2}, 3);
    ck_assert_int_eq(values[NGTDM_BUSYNESS].missing, FEATURE_DIVISION_BY_ZERO);
    check_value(NGTDM_COARSENESS, 1 / (2.0 / 3 * 0.5 + 1.0 / 3));
}

END_TEST

/* ------------------------------------------------------------- levels on the host (wide.h) -- */

enum { WIDE_COLUMNS = 17, WIDE_ROWS = 13, WIDE_SLICES = 7, WIDE_VOXELS = WIDE_COLUMNS * WIDE_ROWS * WIDE_SLICES };

/* Measures a family with the levels of the lane, or with those on the host. */
static void
measure_levels(const struct feature_family *family, const struct feature_region *region, struct feature_value *found)
{
    uint64_t *counts = NULL;
    struct error error;

    ck_assert_msg(family->count(region, 0, &counts, &error) == 0, "%s", error.message);
    for (int f = 0; f < FEATURE_FAMILY_MAX; f++)
        found[f] = feature_absent(FEATURE_EMPTY_REGION);
    ck_assert_int_eq(family->values(region, 0, counts, found), 0);
    free(counts);
}

/* Few levels, so that runs and zones are long; voxels outside the region, and voxels of it without a level. */
START_TEST(levels_on_the_host_are_counted_like_the_lanes)
{
    static const struct feature_family *const families[] = {&family_glcm,  &family_glrlm, &family_glszm,
                                                            &family_gldzm, &family_ngtdm, &family_ngldm};
    static const struct image_extent extent = {WIDE_COLUMNS, WIDE_ROWS, WIDE_SLICES};
    struct texture_options options = options_of((enum aggregation)(_i % AGGREGATIONS));
    const struct kernels_demand demand = {.of[KERNELS_NEIGHBOURS] = &kernels_asked,
                                          .of[KERNELS_RUNS] = &kernels_asked,
                                          .of[KERNELS_GLCM] = &kernels_asked,
                                          .of[KERNELS_ZONES] = &kernels_asked};
    const struct feature_volume volume = {.lane = lane,
                                          .options = &options,
                                          .columns = WIDE_COLUMNS,
                                          .rows = WIDE_ROWS,
                                          .slices = WIDE_SLICES,
                                          .tables = 1,
                                          .values = 256};
    static uint32_t wide[WIDE_VOXELS];
    uint64_t bits[WIDE_ROWS * WIDE_SLICES] = {0}, random = 3 + (uint64_t)_i;
    uint16_t level_of[256];
    uint8_t *voxels;

    options.ngldm_alpha = _i % 3;
    options.ngldm_distance = 1 + _i / AGGREGATIONS;
    for (int v = 0; v < 256; v++)
        level_of[v] = (uint16_t)(v < 6 ? v : 0);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, (void **)&voxels, NULL), 0);
    for (int v = 0; v < WIDE_VOXELS; v++) {
        const bool inside = ref_random_below(&random, 10) > 1;

        voxels[v] = (uint8_t)(v > 0 && ref_random_below(&random, 2) ? voxels[v - 1] : ref_random_below(&random, 7));
        bits[v / WIDE_COLUMNS] |= (uint64_t)inside << v % WIDE_COLUMNS;
        wide[v] = inside ? level_of[voxels[v]] : 0;
    }
    ck_assert_int_eq(kernels_volume_ready(lane, 0, WIDE_SLICES, NULL), 0);
    const struct feature_region of_lane = {.volume = &volume, .bits = bits, .level_of = level_of, .levels = 6};
    struct feature_region of_host = of_lane;

    of_host.wide = wide;
    of_host.level_of = NULL;
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        struct feature_value host[FEATURE_FAMILY_MAX];

        measure_levels(families[f], &of_lane, values);
        measure_levels(families[f], &of_host, host);
        for (size_t i = 0; i < families[f]->definition_count; i++)
            ck_assert_msg(values[i].missing == host[i].missing && values[i].value == host[i].value, "%s %s",
                          families[f]->name, families[f]->definitions[i].name);
    }
}

END_TEST

/* A volume of levels, of which few occur, and a region of it. */
struct many {
    struct image_extent extent;
    int levels;
    bool in_slice, per_slice;
    uint16_t *voxels;
    uint64_t *bits;
    uint16_t *same; /* level_of */
    uint32_t *wide;
};

static void
many_fill(struct many *many, int seed)
{
    const struct image_extent extent = many->extent;
    const int64_t columns = extent.columns, words = (columns + 63) / 64, margin = seed % 2 ? 0 : 2;
    const int apart = seed % 2 ? 1 : many->levels / 3;
    uint64_t random = 5 + (uint64_t)seed;

    many->voxels = calloc((size_t)ref_voxels(extent), sizeof(*many->voxels));
    many->bits = calloc((size_t)(words * extent.rows * extent.slices), sizeof(*many->bits));
    many->same = calloc(65536, sizeof(*many->same));
    many->wide = calloc((size_t)ref_voxels(extent), sizeof(*many->wide));
    for (int v = 0; v < 65536; v++)
        many->same[v] = (uint16_t)v;
    for (int64_t v = 0; v < ref_voxels(extent); v++) {
        const int64_t x = v % columns;
        const bool inside = x >= margin && x < columns - margin && ref_random_below(&random, 10) > 0;

        many->voxels[v] = (uint16_t)(many->levels - apart * (int)ref_random_below(&random, 3));
        if (v > 0 && ref_random_below(&random, 3))
            many->voxels[v] = many->voxels[v - 1];
        many->bits[v / columns * words + x / 64] |= (uint64_t)inside << x % 64;
        many->wide[v] = inside ? many->voxels[v] : 0;
    }
}

static void
many_free(struct many *many)
{
    free(many->voxels);
    free(many->bits);
    free(many->same);
    free(many->wide);
}

/* Compares the counts, and frees them. */
static void
check_counts(uint64_t *counts, uint64_t *expected, size_t size)
{
    ck_assert_mem_eq(counts, expected, size * sizeof(*counts));
    free(counts);
    free(expected);
}

static void
check_many_pairs(const struct many *many, const struct feature_region *region)
{
    static const struct texture_offset far[] = {{2, 0, 0}, {-1, 3, 0}, {0, -1, 0}, {1, -1, 2}, {-3, 0, -1}, {0, 50, 0}};
    const struct texture_glcm request = {
        {many->levels, many->same, 1}, many->bits, far, sizeof(far) / sizeof(far[0]), many->per_slice};
    const size_t matrices = (many->per_slice ? (size_t)many->extent.slices : 1) * request.offset_count;
    const size_t size = matrices * (size_t)many->levels * (size_t)many->levels;
    uint64_t *counts = calloc(size, sizeof(*counts)), *expected = calloc(size, sizeof(*expected));

    ref_texture_glcm(many->extent, IMAGE_UINT16, many->voxels, &request, expected);
    wide_glcm(region, &request, counts);
    check_counts(counts, expected, size);
}

static void
check_many_runs(const struct many *many, const struct feature_region *region)
{
    struct texture_offset directions[TEXTURE_MAX_DIRECTIONS];
    const struct texture_runs request = {.levels = {many->levels, many->same, 1},
                                         .region = many->bits,
                                         .directions = directions,
                                         .direction_count = ref_directions(many->in_slice, 1, directions),
                                         .longest = many->extent.columns + many->extent.rows + many->extent.slices,
                                         .per_slice = many->per_slice};
    const size_t size = texture_runs_size(&request, many->extent.slices);
    uint64_t *counts = calloc(size, sizeof(*counts)), *expected = calloc(size, sizeof(*expected));

    ref_texture_runs(many->extent, IMAGE_UINT16, many->voxels, &request, expected);
    wide_runs(region, &request, counts);
    check_counts(counts, expected, size);
}

static void
check_many_neighbours(const struct many *many, const struct feature_region *region, int distance)
{
    const struct texture_neighbours request = {
        {many->levels, many->same, 1}, many->bits, distance, distance - 1, many->in_slice, many->per_slice};
    const size_t size = (many->per_slice ? (size_t)many->extent.slices : 1) * TEXTURE_NEIGHBOUR_KINDS *
                        (size_t)many->levels * texture_neighbours_width(&request);
    uint64_t *counts = calloc(size, sizeof(*counts)), *expected = calloc(size, sizeof(*expected));

    ref_texture_neighbours(many->extent, IMAGE_UINT16, many->voxels, &request, expected);
    wide_neighbours(region, &request, counts);
    check_counts(counts, expected, size);
}

/* Compares zones with the keys of the reference, which have room for levels below 512. */
static void
check_many_zones(const struct many *many, const struct feature_region *region)
{
    const struct texture_zones request = {
        {many->levels, many->same, 1}, many->bits, true, many->in_slice, many->per_slice};
    const size_t room = (size_t)ref_voxels(many->extent) + 1;
    struct texture_zone_list lists[TEXTURE_ZONE_KINDS] = {{NULL, 0}};
    uint64_t *expected = calloc(room, sizeof(*expected)), *listed = calloc(room, sizeof(*listed));

    ck_assert_int_eq(wide_zones(region, &request, lists, NULL), 0);
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++) {
        const uint64_t count = ref_texture_zones(many->extent, IMAGE_UINT16, many->voxels, &request,
                                                 (enum texture_zone_kind)kind, expected);

        for (size_t i = 0; i < lists[kind].count; i++) {
            uint64_t *key = &lists[kind].zones[i].key;
            const uint64_t group = *key >> WIDE_ZONE_VALUE_BITS;

            *key =
                texture_zone_key((int64_t)(group >> WIDE_ZONE_LEVEL_BITS), group & ((1u << WIDE_ZONE_LEVEL_BITS) - 1),
                                 *key & ((UINT64_C(1) << WIDE_ZONE_VALUE_BITS) - 1));
        }
        ck_assert_uint_eq(ref_texture_listed(&lists[kind], listed), count);
        ck_assert_mem_eq(listed, expected, count * sizeof(*listed));
        free(lists[kind].zones);
    }
    free(expected);
    free(listed);
}

/* Long and short rows, a region at the border or not, levels on both sides of the limit of a lane, all kinds of slices. */
START_TEST(many_levels_are_counted_like_the_reference)
{
    static const struct image_extent extents[] = {{1100, 3, 3}, {17, 13, 7}, {70, 40, 1}, {1, 1, 9}};
    static const int levels[] = {TEXTURE_MAX_LEVELS, TEXTURE_MAX_LEVELS + 1, 500};
    const struct texture_options options = options_of(AGGREGATION_3D_AVERAGED);
    struct many many = {
        .extent = extents[_i % 4], .levels = levels[_i / 4 % 3], .in_slice = _i >= 12, .per_slice = _i >= 24};
    const struct feature_volume volume = {.lane = lane,
                                          .options = &options,
                                          .columns = many.extent.columns,
                                          .rows = many.extent.rows,
                                          .slices = many.extent.slices};

    many_fill(&many, _i);
    const struct feature_region region = {
        .volume = &volume, .bits = many.bits, .levels = many.levels, .wide = many.wide};

    check_many_pairs(&many, &region);
    check_many_runs(&many, &region);
    for (int distance = 1; distance <= TEXTURE_MAX_DISTANCE; distance++)
        check_many_neighbours(&many, &region, distance);
    check_many_zones(&many, &region);
    many_free(&many);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("features_matrices");
    TCase *tcase = tcase_create("features_matrices");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, phantom_of_ibsi, 0, AGGREGATIONS);
    tcase_add_test(tcase, runs_of_a_row);
    tcase_add_test(tcase, dependences_of_a_row);
    tcase_add_test(tcase, tones_of_one_level);
    tcase_add_test(tcase, tones_without_neighbours);
    tcase_add_test(tcase, tones_of_equal_products);
    tcase_add_loop_test(tcase, levels_on_the_host_are_counted_like_the_lanes, 0, 3 * AGGREGATIONS);
    tcase_add_loop_test(tcase, many_levels_are_counted_like_the_reference, 0, 36);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
