/* Conversion of configured segments to kernel labels: ranges compared with the definition, padding, shapes. */
#include "service/pipeline/segment/segment_level_set.h"
#include "service/pipeline/volume.h"

#include <check.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Checks a range against the definition, for every stored value. Check's asserts are system calls: one per range, not
 * one per value.
 */
static void
assert_range_is_exact(enum image_pixel pixel, double lo, double hi, double slope, double intercept)
{
    const double range[2] = {lo, hi};
    struct image_range limits = image_pixel_range(pixel);
    struct image_range got = volume_stored_range(range, slope, intercept, limits);
    int32_t v = limits.lo;
    for (; v <= limits.hi; v++) {
        double value = slope * v + intercept;
        if ((lo <= value && value <= hi) != (got.lo <= v && v <= got.hi))
            break;
    }
    ck_assert_msg(v > limits.hi, "%g..%g with %g * %d + %g", lo, hi, slope, v, intercept);
    ck_assert(got.lo > got.hi || (got.lo >= limits.lo && got.hi <= limits.hi));
}

START_TEST(ranges_are_the_definition)
{
    static const double slopes[] = {1, -1, 0.1, -0.1, 1.0 / 3, 2.5, -7.25, 1e-3, 4095, 1e-300, 1e300};
    static const double intercepts[] = {0, -1024, 0.5, -0.3, 1e5, -32768};
    static const double bounds[][2] = {
        {0, 80},         {-1000, -1000}, {0.1, 0.3},     {-0.30000000000000004, 0.7},
        {-1e308, 1e308}, {80, 0},        {65535, 65536}, {-32768, 32767},
        {1e9, 2e9},      {-1e9, -5e8},   {-0.0, 0.0},    {-1024.5, -1023.5},
    };
    for (size_t s = 0; s < sizeof slopes / sizeof slopes[0]; s++)
        for (size_t i = 0; i < sizeof intercepts / sizeof intercepts[0]; i++)
            for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
                assert_range_is_exact(IMAGE_INT16, bounds[b][0], bounds[b][1], slopes[s], intercepts[i]);
                assert_range_is_exact(IMAGE_UINT8, bounds[b][0], bounds[b][1], slopes[s], intercepts[i]);
            }
}

END_TEST

START_TEST(ranges_at_the_very_values)
{
    srand(7);
    for (int i = 0; i < 150; i++) {
        /* Use bounds that equal a stored value, or differ from it by one ulp. */
        double slope = (rand() % 2000 - 1000) / 997.0, intercept = rand() % 5000 - 2500.3;
        if (slope == 0)
            slope = 0.25;
        int32_t a = rand() % 65536, b = rand() % 65536;
        double lo = slope * a + intercept, hi = slope * b + intercept;
        if (lo > hi) {
            double swap = lo;
            lo = hi;
            hi = swap;
        }
        assert_range_is_exact(IMAGE_UINT16, lo, hi, slope, intercept);
        assert_range_is_exact(IMAGE_UINT16, nextafter(lo, DBL_MAX), nextafter(hi, -DBL_MAX), slope, intercept);
        assert_range_is_exact(IMAGE_UINT16, nextafter(lo, -DBL_MAX), nextafter(hi, DBL_MAX), slope, intercept);
    }
}

END_TEST

START_TEST(invalid_rescales_match_no_value)
{
    static const double range[2] = {-1e9, 1e9};
    struct image_range limits = image_pixel_range(IMAGE_INT16);
    const double bad[][2] = {{0, 5}, {(double)NAN, 0}, {1, (double)NAN}, {(double)INFINITY, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct image_range got = volume_stored_range(range, bad[i][0], bad[i][1], limits);
        ck_assert_int_gt(got.lo, got.hi);
    }
    const double nan_range[2] = {(double)NAN, 5};
    struct image_range got = volume_stored_range(nan_range, 1, 0, limits);
    ck_assert_int_gt(got.lo, got.hi);
}

END_TEST

/* ---------------------------------------------------------------- a series of one-frame files --
 */

enum { PLANES = 4 };

static char file_name[] = "file.dcm", label_name[] = "Brain", pipeline_name[] = "p";
static struct dicom_frame frames[PLANES];
static struct dicom_instance instances[PLANES];
static struct dicom_instance *pointers[PLANES];
static struct geometry_plane planes[PLANES];
static struct geometry_stack stack;
static struct conf_shape shape;
static struct conf_segment segment;
static struct conf_pipeline pipeline;

static void
make_series(void)
{
    memset(frames, 0, sizeof frames);
    memset(instances, 0, sizeof instances);
    for (int i = 0; i < PLANES; i++) {
        frames[i].has_rescale = true;
        frames[i].slope = 1;
        instances[i].path = file_name;
        instances[i].frame_count = 1;
        instances[i].frames = &frames[i];
        pointers[i] = &instances[i];
        planes[i] = (struct geometry_plane){.instance = i, .frame = 0, .position = i};
    }
    stack = (struct geometry_stack){.accepted = true,
                                    .columns = 11,
                                    .rows = 21,
                                    .plane_count = PLANES,
                                    .planes = planes,
                                    .pixel = IMAGE_INT16,
                                    .has_geometry = true,
                                    .spacing = {0.5, 0.5, 0.5},
                                    .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    shape = (struct conf_shape){.kind = CONF_SPHERE,
                                .center_unit = CONF_VOXEL,
                                .center = {1, 2, 3},
                                .radius_unit = CONF_VOXEL,
                                .radius = {2, 2, 2}};
    segment =
        (struct conf_segment){.label = label_name, .range = {.ends = {0, 100}}, .shapes = &shape, .shape_count = 1};
    pipeline = (struct conf_pipeline){.name = pipeline_name, .segments = &segment, .segment_count = 1};
}

static void
pad(int plane, int32_t lo, int32_t hi)
{
    instances[plane].has_padding = true;
    instances[plane].padding_lo = lo;
    instances[plane].padding_hi = hi;
}

/*
 * Returns the first stored value of a plane for which the label differs from the definition, or the number after the
 * last one.
 */
static int32_t
first_misjudged(const struct kernels_level_set_label *label, int z)
{
    const struct dicom_instance *instance = &instances[z];
    int32_t v = INT16_MIN;
    for (; v <= INT16_MAX; v++) {
        double value = frames[z].slope * v + frames[z].intercept;
        bool padded = instance->has_padding && instance->padding_lo <= v && v <= instance->padding_hi;
        bool expected = segment.range.ends[0] <= value && value <= segment.range.ends[1] && !padded;
        bool found =
            label->ranges[z].lo <= v && v <= label->ranges[z].hi && !(label->padding.lo <= v && v <= label->padding.hi);
        if (expected != found)
            break;
    }
    return v;
}

static int
prepare(struct segmentation *segmentation, struct error *error)
{
    struct kernels_demand demand;
    *segmentation = (struct segmentation){.pipeline = &pipeline, .instances = pointers, .stack = &stack};
    return segmentation_prepare(segmentation, &demand, error);
}

static void
assert_labels_are_exact(void)
{
    struct segmentation segmentation;
    struct error error = {0};
    ck_assert_msg(prepare(&segmentation, &error) == 0, "%s", error.message);
    const struct level_set_labels *labels = segmentation.of[CONF_LEVEL_SET].prepared;
    ck_assert_uint_eq(labels->demand.labels, 1);
    ck_assert_uint_eq(labels->items[0].range_count, PLANES);
    for (int z = 0; z < PLANES; z++) {
        int32_t v = first_misjudged(&labels->items[0], z);
        ck_assert_msg(v > INT16_MAX, "plane %d, value %d", z, v);
    }
    segmentation_release(&segmentation);
}

static void
assert_refused(enum code code, struct error *error)
{
    struct segmentation segmentation;
    ck_assert_int_eq(prepare(&segmentation, error), -EINVAL);
    ck_assert_int_eq(error->code, code);
    segmentation_release(&segmentation);
}

START_TEST(every_plane_has_its_own_rescale)
{
    for (int i = 0; i < PLANES; i++) {
        frames[i].slope = 0.3 * (i - 1.5);
        frames[i].intercept = 10 * i;
    }
    assert_labels_are_exact();
    frames[2].has_rescale = false;
    frames[2].slope = 1;
    frames[2].intercept = 0;
    assert_labels_are_exact();
}

END_TEST

START_TEST(one_padding_is_never_in_range)
{
    static const int32_t paddings[][2] = {{-2000, -2000}, {-5, 3}, {90, 200},  {-10, 500},   {50, 50},
                                          {40, 60},       {0, 0},  {100, 100}, {-32768, -1}, {101, 32767}};
    for (size_t p = 0; p < sizeof paddings / sizeof paddings[0]; p++) {
        for (int i = 0; i < PLANES; i++)
            pad(i, paddings[p][0], paddings[p][1]);
        assert_labels_are_exact();
        frames[1].slope = -0.5;
        frames[1].intercept = 80;
        assert_labels_are_exact();
        make_series();
    }
}

END_TEST

START_TEST(different_paddings_are_exact_or_refused)
{
    struct error error;
    /* One cut off at the end, one outside, one strictly inside: the label can express all ... */
    pad(0, 50, 200);
    pad(1, -2000, -1500);
    for (int i = 0; i < PLANES; i++)
        frames[i].intercept = 0;
    assert_labels_are_exact();
    frames[2].intercept = -30000;
    frames[3].intercept = -30000;
    frames[1].intercept = -30000;
    pad(0, 50, 60);
    assert_labels_are_exact();
    /* ... but not a hole in one plane if another plane has values there. */
    frames[2].intercept = 0;
    assert_refused(CODE_PADDING_MIXED, &error);
    ck_assert_str_eq(error.file[0], "file.dcm");
    /* Two different holes. */
    pad(2, 20, 30);
    assert_refused(CODE_PADDING_MIXED, &error);
}

END_TEST

START_TEST(common_padding_is_common)
{
    struct image_range none = volume_common_padding(pointers, &stack);
    ck_assert_int_gt(none.lo, none.hi);
    for (int i = 0; i < PLANES; i++)
        pad(i, -7, -5);
    struct image_range common = volume_common_padding(pointers, &stack);
    ck_assert_int_eq(common.lo, -7);
    ck_assert_int_eq(common.hi, -5);
    pad(3, -7, -4);
    none = volume_common_padding(pointers, &stack);
    ck_assert_int_gt(none.lo, none.hi);
}

END_TEST

/* ------------------------------------------------------------------------------------ shapes -- */

static struct kernels_shape
convert(void)
{
    struct kernels_shape voxels;
    ck_assert_int_eq(level_set_shape(&shape, &stack, &voxels), 0);
    return voxels;
}

static void
assert_triple(const double got[3], double x, double y, double z)
{
    ck_assert_double_eq_tol(got[0], x, 1e-12);
    ck_assert_double_eq_tol(got[1], y, 1e-12);
    ck_assert_double_eq_tol(got[2], z, 1e-12);
}

START_TEST(centers)
{
    assert_triple(convert().center, 1, 2, 3);
    shape.center_unit = CONF_FRACTION;
    memcpy(shape.center, (const double[]){0.5, 0.5, 0.5}, sizeof shape.center);
    assert_triple(convert().center, 5, 10, 1.5);
    memcpy(shape.center, (const double[]){0, 1, 1}, sizeof shape.center);
    assert_triple(convert().center, 0, 20, 3);
    shape.center_unit = CONF_MM;
    memcpy(stack.origin, (const double[]){100, 200, 300}, sizeof stack.origin);
    memcpy(shape.center, (const double[]){101, 200.25, 299}, sizeof shape.center);
    assert_triple(convert().center, 2, 0.5, -2);
}

END_TEST

START_TEST(a_sphere_in_mm_is_an_ellipsoid_of_anisotropic_voxels)
{
    shape.radius_unit = CONF_MM;
    struct kernels_shape voxels = convert();
    ck_assert_int_eq(voxels.kind, KERNELS_SPHERE);
    assert_triple(voxels.radius, 4, 4, 4);
    stack.spacing[2] = 2;
    voxels = convert();
    ck_assert_int_eq(voxels.kind, KERNELS_ELLIPSOID);
    assert_triple(voxels.radius, 4, 4, 1);
    shape.radius_unit = CONF_VOXEL;
    ck_assert_int_eq(convert().kind, KERNELS_SPHERE);
}

END_TEST

START_TEST(other_kinds)
{
    shape.kind = CONF_BOX;
    memcpy(shape.radius, (const double[]){1, 2, 3}, sizeof shape.radius);
    struct kernels_shape voxels = convert();
    ck_assert_int_eq(voxels.kind, KERNELS_BOX);
    assert_triple(voxels.radius, 1, 2, 3);
    shape.kind = CONF_ELLIPSOID;
    ck_assert_int_eq(convert().kind, KERNELS_ELLIPSOID);
    shape.radius[1] = 0;
    assert_triple(convert().radius, 1, 0, 3);
}

END_TEST

START_TEST(senseless_shapes_are_refused)
{
    struct error error;
    shape.radius_unit = CONF_MM;
    stack.spacing[1] = 0;
    assert_refused(CODE_SHAPE_INVALID, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "Brain"));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_labels");
    TCase *tests = tcase_create("labels");
    tcase_add_checked_fixture(tests, make_series, NULL);
    tcase_add_test(tests, ranges_are_the_definition);
    tcase_add_test(tests, ranges_at_the_very_values);
    tcase_add_test(tests, invalid_rescales_match_no_value);
    tcase_add_test(tests, every_plane_has_its_own_rescale);
    tcase_add_test(tests, one_padding_is_never_in_range);
    tcase_add_test(tests, different_paddings_are_exact_or_refused);
    tcase_add_test(tests, common_padding_is_common);
    tcase_add_test(tests, centers);
    tcase_add_test(tests, a_sphere_in_mm_is_an_ellipsoid_of_anisotropic_voxels);
    tcase_add_test(tests, other_kinds);
    tcase_add_test(tests, senseless_shapes_are_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
