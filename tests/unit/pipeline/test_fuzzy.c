/*
 * Conversion of configured segments to objects of fuzzy connectedness: units, seeds, rejections, and measured values,
 * compared with explicit sums.
 */
#include "service/pipeline/segment/segment_fuzzy.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 11, ROWS = 9, PLANES = 7, VOXELS = COLUMNS * ROWS * PLANES };

static char names[PLANES][16], vessel[] = "Vessel", bone[] = "Bone", pipeline_name[] = "p";
static struct dicom_frame frames[PLANES];
static struct dicom_instance instances[PLANES];
static struct dicom_instance *pointers[PLANES];
static struct geometry_plane planes[PLANES];
static struct geometry_stack stack;
static struct conf_seed seeds[256];
static struct conf_segment segments[3];
static struct conf_pipeline pipeline;
static int16_t volume[VOXELS];
static struct segmentation segmentation;
static const struct fuzzy_objects *objects;
static struct error error;

static void
make_series(void)
{
    for (int i = 0; i < PLANES; i++) {
        snprintf(names[i], sizeof names[i], "%d.dcm", i);
        frames[i] = (struct dicom_frame){.has_rescale = true, .slope = 1, .intercept = -1024};
        instances[i] = (struct dicom_instance){.path = names[i], .frame_count = 1, .frames = &frames[i]};
        pointers[i] = &instances[i];
        planes[i] = (struct geometry_plane){.instance = i, .frame = 0, .position = i};
    }
    stack = (struct geometry_stack){.accepted = true,
                                    .columns = COLUMNS,
                                    .rows = ROWS,
                                    .plane_count = PLANES,
                                    .planes = planes,
                                    .pixel = IMAGE_INT16,
                                    .has_geometry = true,
                                    .spacing = {0.5, 2, 3},
                                    .origin = {100, 200, 300},
                                    .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    memset(seeds, 0, sizeof seeds);
    seeds[0] = (struct conf_seed){CONF_VOXEL, {5, 4, 3}};
    segments[0] = (struct conf_segment){.label = vessel,
                                        .method = CONF_FUZZY,
                                        .seeds = seeds,
                                        .seed_count = 1,
                                        .estimate_voxels = 2,
                                        .weight = 0.5,
                                        .threshold = 0.5};
    segments[1] = segments[2] = (struct conf_segment){.label = bone, .method = CONF_LEVEL_SET};
    pipeline = (struct conf_pipeline){.name = pipeline_name, .segments = segments, .segment_count = 1};
    srand(3);
    for (int i = 0; i < VOXELS; i++)
        volume[i] = (int16_t)(rand() % 5000 - 2000);
}

static void
give(double mean, double sigma, double homogeneity_sigma)
{
    segments[0].object_mean = (struct conf_estimable){true, mean};
    segments[0].object_sigma = (struct conf_estimable){true, sigma};
    segments[0].homogeneity_sigma = (struct conf_estimable){true, homogeneity_sigma};
}

static void
rescale(double slope, double intercept)
{
    for (int i = 0; i < PLANES; i++) {
        frames[i].slope = slope;
        frames[i].intercept = intercept;
    }
}

static int
make(void)
{
    memset(&error, 0, sizeof error);
    struct kernels_demand demand;
    segmentation = (struct segmentation){.pipeline = &pipeline, .instances = pointers, .stack = &stack};
    int rc = segmentation_prepare(&segmentation, &demand, &error);
    objects = segmentation.of[CONF_FUZZY].prepared;
    for (size_t i = 0; i < pipeline.segment_count; i++)
        segmentation.ready[i] = true;
    if (rc)
        segmentation_release(&segmentation);
    return rc;
}

static void
make_well(void)
{
    int rc = make();
    ck_assert_msg(rc == 0, "%s", error.message);
}

static int
measure(void)
{
    return fuzzy_objects_measure(&segmentation, volume, &error);
}

/* ----------------------------------------------------------------------------------- units ---- */

START_TEST(gaussians_become_stored_values)
{
    give(160, 25, 12);
    make_well();
    ck_assert_int_eq(measure(), 0);
    ck_assert_double_eq(objects->items[0].mean, 1184);
    ck_assert_double_eq(objects->items[0].sigma, 25);
    ck_assert_double_eq(objects->items[0].homogeneity_sigma, 12);
    ck_assert_double_eq(objects->gaussians[0].mean.value, 160);
    ck_assert_int_eq(objects->gaussians[0].measured_voxels, 0);
    segmentation_release(&segmentation);

    rescale(-0.5, 10); /* stored values fall as real ones rise; deviations stay positive */
    make_well();
    ck_assert_int_eq(measure(), 0);
    ck_assert_double_eq(objects->items[0].mean, -300);
    ck_assert_double_eq(objects->items[0].sigma, 50);
    ck_assert_double_eq(objects->items[0].homogeneity_sigma, 24);
    segmentation_release(&segmentation);

    for (int i = 0; i < PLANES; i++) /* MR: without a rescale */
        frames[i].has_rescale = false;
    make_well();
    ck_assert_int_eq(measure(), 0);
    ck_assert_double_eq(objects->items[0].mean, 160);
    segmentation_release(&segmentation);
}

END_TEST

START_TEST(parameters_for_the_kernels)
{
    static const struct {
        double threshold;
        unsigned stored;
    } thresholds[] = {{0, 0}, {0.5, 32767}, {0.25, 16383}, {0.99999, 65534}, {1e-5, 0}};

    give(0, 1, 1);
    segments[0].weight = 0.75;
    segments[0].connectedness_map = true;
    for (int i = 0; i < PLANES; i++) {
        instances[i].has_padding = true;
        instances[i].padding_lo = -3;
        instances[i].padding_hi = -2;
    }
    for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++) {
        segments[0].threshold = thresholds[i].threshold;
        make_well();
        ck_assert_uint_eq(objects->items[0].threshold, thresholds[i].stored);
        ck_assert_double_eq(objects->items[0].weight, 0.75);
        ck_assert_int_eq(objects->items[0].padding.lo, -3);
        ck_assert_int_eq(objects->items[0].padding.hi, -2);
        ck_assert(objects->items[0].map);
        ck_assert_uint_eq(objects->demand.maps, 1);
        segmentation_release(&segmentation);
    }
}

END_TEST

START_TEST(methods_may_be_mixed)
{
    static struct conf_seed other[] = {{CONF_VOXEL, {1, 1, 1}}, {CONF_VOXEL, {2, 2, 2}}};
    give(0, 1, 1);
    segments[2] = segments[0];
    segments[2].seeds = other;
    segments[2].seed_count = 2;
    pipeline.segment_count = 3;
    make_well();
    ck_assert_uint_eq(segmentation.of[CONF_FUZZY].count, 2);
    ck_assert_uint_eq(segmentation.of[CONF_FUZZY].segments[0], 0);
    ck_assert_uint_eq(segmentation.of[CONF_FUZZY].segments[1], 2);
    ck_assert_uint_eq(objects->items[1].seed_count, 2);
    ck_assert_int_eq(objects->items[0].seeds[0].x, 5);
    ck_assert_int_eq(objects->items[1].seeds[0].x, 1);
    ck_assert_int_eq(objects->items[1].seeds[1].z, 2);
    segmentation_release(&segmentation);

    /* A series that fuzzy connectedness would reject must be accepted without it. */
    pipeline.segments = &segments[1];
    pipeline.segment_count = 1;
    frames[2].slope = 2;
    make_well();
    ck_assert_uint_eq(segmentation.of[CONF_FUZZY].count, 0);
    ck_assert_ptr_null(objects); /* so there must be no measurement and no run */
    segmentation_release(&segmentation);
}

END_TEST

/* ----------------------------------------------------------------------------------- seeds ---- */

static void
assert_seed(enum conf_unit unit, double x, double y, double z, int64_t cx, int64_t cy, int64_t cz)
{
    seeds[0] = (struct conf_seed){unit, {x, y, z}};
    make_well();
    ck_assert_int_eq(objects->items[0].seeds[0].x, cx);
    ck_assert_int_eq(objects->items[0].seeds[0].y, cy);
    ck_assert_int_eq(objects->items[0].seeds[0].z, cz);
    segmentation_release(&segmentation);
}

START_TEST(a_seed_is_the_nearest_voxel)
{
    assert_seed(CONF_VOXEL, 5, 4, 3, 5, 4, 3);
    assert_seed(CONF_VOXEL, 0.5, 0.49, 10 / 3.0, 1, 0, 3);
    assert_seed(CONF_FRACTION, 0, 0.5, 1, 0, 4, 6);
    assert_seed(CONF_FRACTION, 1, 1, 0, COLUMNS - 1, ROWS - 1, 0);
    assert_seed(CONF_MM, 100, 200, 300, 0, 0, 0);
    assert_seed(CONF_MM, 102.3, 203.1, 310.4, 5, 2, 3);
    assert_seed(CONF_MM, 99.76, 199.1, 298.6, 0, 0, 0); /* within half a voxel */
}

END_TEST

START_TEST(a_seed_outside_is_refused_by_its_number)
{
    static const struct conf_seed outside[] = {
        {CONF_VOXEL, {COLUMNS, 0, 0}}, {CONF_VOXEL, {0, ROWS - 0.5, 0}}, {CONF_VOXEL, {0, 0, PLANES}},
        {CONF_MM, {99, 200, 300}},     {CONF_MM, {100, 200, 1e6}},       {CONF_MM, {100, (double)NAN, 300}},
        {CONF_VOXEL, {1e300, 0, 0}},
    };
    segments[0].seed_count = 2;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        seeds[1] = outside[i];
        ck_assert_int_eq(make(), -EINVAL);
        ck_assert_int_eq(error.code, CODE_SEED_OUTSIDE);
        ck_assert_ptr_nonnull(strstr(error.message, "seed 2 of segment \"Vessel\""));
        ck_assert_ptr_nonnull(strstr(error.message, "11 x 9 x 7 voxels"));
    }
}

END_TEST

/* ------------------------------------------------------------------------------- rejections --- */

START_TEST(slices_of_different_padding_are_refused)
{
    instances[5].has_padding = true;
    instances[5].padding_lo = instances[5].padding_hi = -2000;
    ck_assert_int_eq(make(), -EINVAL);
    ck_assert_int_eq(error.code, CODE_PADDING_MIXED);
    ck_assert_str_eq(error.file[1], "5.dcm");
}

END_TEST

/* ------------------------------------------------------------------------------- measuring ---- */

struct expected {
    double mean, sigma, homogeneity;
    int64_t voxels;
};

/* Returns whether a voxel counts, by the definition: it is in a cube. */
static bool
counts(int x, int y, int z)
{
    int v = volume[(z * ROWS + y) * COLUMNS + x];
    if (instances[0].has_padding && v >= instances[0].padding_lo && v <= instances[0].padding_hi)
        return false;
    int reach = segments[0].estimate_voxels;
    for (size_t i = 0; i < segments[0].seed_count; i++)
        if (fabs(x - seeds[i].at[0]) <= reach && fabs(y - seeds[i].at[1]) <= reach && fabs(z - seeds[i].at[2]) <= reach)
            return true;
    return false;
}

static struct expected
expect(void)
{
    struct expected e = {0};
    double sum = 0, pair_sum = 0, square = 0;
    int64_t pairs = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int z = 0; z < PLANES; z++)
            for (int y = 0; y < ROWS; y++)
                for (int x = 0; x < COLUMNS; x++) {
                    int i = (z * ROWS + y) * COLUMNS + x;
                    if (!counts(x, y, z))
                        continue;
                    double value = frames[0].slope * volume[i] + frames[0].intercept;
                    if (pass == 1) {
                        square += (value - e.mean) * (value - e.mean);
                        continue;
                    }
                    sum += value;
                    e.voxels++;
                    const int next[3][3] = {{x + 1, y, z}, {x, y + 1, z}, {x, y, z + 1}};
                    for (int axis = 0; axis < 3; axis++) {
                        const int *n = next[axis];
                        if (n[0] >= COLUMNS || n[1] >= ROWS || n[2] >= PLANES || !counts(n[0], n[1], n[2]))
                            continue;
                        double half = frames[0].slope * (volume[i] - volume[(n[2] * ROWS + n[1]) * COLUMNS + n[0]]) / 2;
                        pair_sum += half * half;
                        pairs++;
                    }
                    e.mean = sum / (double)e.voxels;
                }
    e.sigma = sqrt(square / (double)e.voxels);
    e.homogeneity = sqrt(pair_sum / (double)pairs);
    return e;
}

static void
assert_measured_as_defined(void)
{
    struct expected e = expect();
    make_well();
    ck_assert_int_eq(measure(), 0);
    const struct fuzzy_gaussians *got = &objects->gaussians[0];
    ck_assert_int_eq(got->measured_voxels, e.voxels);
    ck_assert_double_eq_tol(got->mean.value, e.mean, 1e-9 * (1 + fabs(e.mean)));
    ck_assert_double_eq_tol(got->sigma.value, e.sigma, 1e-9 * e.sigma);
    ck_assert_double_eq_tol(got->homogeneity_sigma.value, e.homogeneity, 1e-9 * e.homogeneity);
    ck_assert(!got->mean.given && !got->sigma.given && !got->homogeneity_sigma.given);
    ck_assert_double_eq_tol(objects->items[0].sigma * fabs(frames[0].slope), e.sigma, 1e-9 * e.sigma);
    segmentation_release(&segmentation);
}

START_TEST(measured_numbers_by_hand)
{
    /*
     * Along x at the seed: 10, 14, 10; all others are padding. Mean 34/3; differences 4 and 4: half of them squared
     * is 4, so homogeneity is 2.
     */
    for (int i = 0; i < VOXELS; i++)
        volume[i] = -2000;
    int16_t *at = &volume[(3 * ROWS + 4) * COLUMNS + 5];
    at[-1] = at[1] = 10;
    at[0] = 14;
    for (int i = 0; i < PLANES; i++) {
        instances[i].has_padding = true;
        instances[i].padding_lo = instances[i].padding_hi = -2000;
    }
    rescale(1, 0);
    segments[0].estimate_voxels = 1;
    make_well();
    ck_assert_int_eq(measure(), 0);
    ck_assert_int_eq(objects->gaussians[0].measured_voxels, 3);
    ck_assert_double_eq_tol(objects->gaussians[0].mean.value, 34.0 / 3, 1e-12);
    ck_assert_double_eq_tol(objects->gaussians[0].sigma.value, sqrt(32.0 / 9), 1e-12);
    ck_assert_double_eq_tol(objects->gaussians[0].homogeneity_sigma.value, 2, 1e-12);
    segmentation_release(&segmentation);
}

END_TEST

START_TEST(measured_as_defined)
{
    assert_measured_as_defined();
    rescale(-0.37, 12.5);
    assert_measured_as_defined();
    seeds[0] = (struct conf_seed){CONF_VOXEL, {0, 0, PLANES - 1}}; /* cut off at three faces */
    assert_measured_as_defined();
    segments[0].estimate_voxels = 16; /* the whole volume */
    assert_measured_as_defined();
}

END_TEST

START_TEST(voxels_of_several_cubes_count_once)
{
    static const double at[][3] = {{2, 2, 2}, {4, 3, 2}, {2, 2, 2}, {10, 8, 6}, {5, 3, 2}, {0, 8, 0}};
    segments[0].estimate_voxels = 1;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        seeds[i].unit = CONF_VOXEL;
        memcpy(seeds[i].at, at[i], sizeof at[i]);
        segments[0].seed_count = i + 1;
        assert_measured_as_defined();
    }
    for (int i = 0; i < PLANES; i++) {
        instances[i].has_padding = true;
        instances[i].padding_lo = -1000;
        instances[i].padding_hi = 500;
    }
    assert_measured_as_defined();
}

END_TEST

START_TEST(every_pixel_type_is_measured)
{
    static uint16_t words[VOXELS];
    static uint8_t bytes[VOXELS];
    for (int i = 0; i < VOXELS; i++) {
        words[i] = (uint16_t)(i % 2 ? 65535 : 65533);
        bytes[i] = (uint8_t)(i % 2 ? 255 : 253);
    }
    rescale(1, 0);
    stack.pixel = IMAGE_UINT16;
    make_well();
    ck_assert_int_eq(fuzzy_objects_measure(&segmentation, words, &error), 0);
    ck_assert_double_eq_tol(objects->gaussians[0].mean.value, 65534, 0.1);
    segmentation_release(&segmentation);
    stack.pixel = IMAGE_UINT8;
    make_well();
    ck_assert_int_eq(fuzzy_objects_measure(&segmentation, bytes, &error), 0);
    ck_assert_double_eq_tol(objects->gaussians[0].mean.value, 254, 0.1);
    segmentation_release(&segmentation);
}

END_TEST

START_TEST(given_values_are_kept)
{
    segments[0].object_sigma = (struct conf_estimable){true, 7};
    struct expected e = expect();
    make_well();
    ck_assert_int_eq(measure(), 0);
    ck_assert_double_eq(objects->items[0].sigma, 7);
    ck_assert_double_eq_tol(objects->gaussians[0].mean.value, e.mean, 1e-9);
    ck_assert(objects->gaussians[0].sigma.given && !objects->gaussians[0].mean.given);
    segmentation_release(&segmentation);
}

END_TEST

START_TEST(a_zero_deviation_becomes_one_step)
{
    for (int i = 0; i < VOXELS; i++)
        volume[i] = 1064;
    rescale(-0.25, 3);
    make_well();
    ck_assert_int_eq(measure(), 0);
    ck_assert_double_eq(objects->gaussians[0].mean.value, -263);
    ck_assert_double_eq(objects->gaussians[0].sigma.value, 0.25);
    ck_assert_double_eq(objects->gaussians[0].homogeneity_sigma.value, 0.25);
    ck_assert_double_eq(objects->items[0].mean, 1064);
    ck_assert_double_eq(objects->items[0].sigma, 1);
    ck_assert_double_eq(objects->items[0].homogeneity_sigma, 1);
    segmentation_release(&segmentation);
}

END_TEST

START_TEST(only_padding_cannot_be_measured)
{
    for (int i = 0; i < PLANES; i++) {
        instances[i].has_padding = true;
        instances[i].padding_lo = INT16_MIN;
        instances[i].padding_hi = INT16_MAX;
    }
    make_well();
    ck_assert_int_eq(measure(), -EINVAL);
    ck_assert_int_eq(error.code, CODE_SEEDS_IN_PADDING);
    ck_assert_ptr_nonnull(strstr(error.message, "\"Vessel\""));
    segmentation_release(&segmentation);
    give(0, 1, 1); /* without measurements this must be accepted */
    make_well();
    ck_assert_int_eq(measure(), 0);
    segmentation_release(&segmentation);
}

END_TEST

/* ---------------------------------------------------------------------------------- texts ---- */

START_TEST(the_description_states_the_measurements)
{
    char text[SEGMENT_DESCRIPTION];
    struct pipeline_segment segment = {.label = "Vessel"};
    segments[0].object_sigma = (struct conf_estimable){true, 7};
    for (int i = 0; i < VOXELS; i++)
        volume[i] = 1064;
    pipeline.relative_connectedness = true;
    make_well();
    ck_assert_int_eq(measure(), 0);
    segment_fuzzy.describe(&segmentation, 0, text);
    ck_assert_str_eq(text, "object mean 40 (measured), sigma 7; homogeneity sigma 1 (measured); "
                           "weight 0.5; threshold 0.5; relative connectedness; seeds in voxels "
                           "5,4,3");
    segment_fuzzy.report(&segmentation, 0, &segment);
    ck_assert(segment_describe_measured(&segment, text, sizeof text));
    ck_assert_str_eq(text, "Vessel: measured mean 40, homogeneity sigma 1");
    segmentation_release(&segmentation);
    give(1, 2, 3);
    make_well();
    ck_assert_int_eq(measure(), 0);
    segment_fuzzy.report(&segmentation, 0, &segment);
    ck_assert(!segment_describe_measured(&segment, text, sizeof text));
    segmentation_release(&segmentation);
}

END_TEST

START_TEST(the_description_is_cut_at_the_attribute_length)
{
    char text[SEGMENT_DESCRIPTION];
    give(1, 2, 3);
    for (int i = 0; i < 256; i++)
        seeds[i] = (struct conf_seed){CONF_VOXEL, {10, 8, 6}};
    segments[0].seed_count = 256;
    make_well();
    ck_assert_int_eq(measure(), 0);
    segment_fuzzy.describe(&segmentation, 0, text);
    ck_assert_uint_eq(strlen(text), 1024);
    segmentation_release(&segmentation);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_fuzzy_objects");
    TCase *tests = tcase_create("fuzzy_objects");
    tcase_add_checked_fixture(tests, make_series, NULL);
    tcase_add_test(tests, gaussians_become_stored_values);
    tcase_add_test(tests, parameters_for_the_kernels);
    tcase_add_test(tests, methods_may_be_mixed);
    tcase_add_test(tests, a_seed_is_the_nearest_voxel);
    tcase_add_test(tests, a_seed_outside_is_refused_by_its_number);
    tcase_add_test(tests, slices_of_different_padding_are_refused);
    tcase_add_test(tests, measured_numbers_by_hand);
    tcase_add_test(tests, measured_as_defined);
    tcase_add_test(tests, voxels_of_several_cubes_count_once);
    tcase_add_test(tests, every_pixel_type_is_measured);
    tcase_add_test(tests, given_values_are_kept);
    tcase_add_test(tests, a_zero_deviation_becomes_one_step);
    tcase_add_test(tests, only_padding_cannot_be_measured);
    tcase_add_test(tests, the_description_states_the_measurements);
    tcase_add_test(tests, the_description_is_cut_at_the_attribute_length);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
