/* Expectations: each option at and beyond its bounds, on masks drawn here. */
#include "service/pipeline/expectations.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 70, ROWS_ = 5, SLICES = 4, WORDS = 2, VOXELS = COLUMNS * ROWS_ * SLICES };

static const struct image_extent extent = {COLUMNS, ROWS_, SLICES};
static uint64_t bits[2][WORDS * ROWS_ * SLICES];
static int16_t voxels[VOXELS];
static struct image_mask masks[2];
static struct conf_expect expect;
static struct conf_segment segments[2];
static struct image_rescale rescale[SLICES];
static struct image_range padding[SLICES];
static struct expect_breaches found;
static struct segment_measures measures[2];
static struct expect_volume volume;

static const struct conf_pipeline pipeline = {.segments = segments, .segment_count = 2};

static void
begin(void)
{
    memset(bits, 0, sizeof bits);
    memset(voxels, 0, sizeof voxels);
    expect = (struct conf_expect){.touches = CONF_TOUCHES_ANY};
    volume = (struct expect_volume){.masks = masks,
                                    .extent = extent,
                                    .spacing = {0.5, 2, 4},
                                    .voxels = voxels,
                                    .pixel = IMAGE_INT16,
                                    .rescale = rescale,
                                    .padding = padding,
                                    .unit = " HU",
                                    .ucum = "[hnsf'U]",
                                    .slice_mm = 3,
                                    .threads = 3};
    segments[0] = (struct conf_segment){.label = (char *)"Brain", .expect = &expect};
    segments[1] = (struct conf_segment){.label = (char *)"Body"};
    for (int i = 0; i < 2; i++)
        masks[i] = (struct image_mask){bits[i], WORDS, 0};
    for (int z = 0; z < SLICES; z++)
        rescale[z] = (struct image_rescale){1, 0}, padding[z] = (struct image_range){1, 0};
}

static void
end(void)
{
    expect_clear(&found);
}

static void
put(int mask, int x, int y, int z)
{
    bits[mask][(z * ROWS_ + y) * WORDS + x / 64] |= UINT64_C(1) << (x % 64);
    masks[mask].voxels++;
}

static size_t
check(void)
{
    struct error error;
    expect_clear(&found);
    ck_assert_int_eq(expect_check(&pipeline, &volume, NULL, measures, &found, &error), 0);
    return found.count;
}

static void
assert_broken(const char *expectation, const char *text)
{
    ck_assert_uint_eq(check(), 1);
    ck_assert_str_eq(found.at[0].expectation, expectation);
    ck_assert_str_eq(found.at[0].text, text);
    ck_assert_uint_eq(found.at[0].segment, 0);
}

static struct conf_bounds
bounds(double low, double high)
{
    return (struct conf_bounds){true, {low, high}};
}

START_TEST(volumes)
{
    for (int x = 0; x < 10; x++) /* of 0.004 ml each */
        put(0, x, 1, 1);
    expect.volume_ml = bounds(0.04, 0.04);
    ck_assert_uint_eq(check(), 0);
    expect.volume_ml = bounds(0.05, 9);
    assert_broken("volume_ml", "Brain: volume 0.04 ml, expected 0.05 to 9 ml");
    ck_assert(found.at[0].bounded && found.at[0].found == 0.04);
    ck_assert(found.at[0].allowed[0] == 0.05 && found.at[0].allowed[1] == 9);
    expect.volume_ml = bounds(0, 0.03);
    assert_broken("volume_ml", "Brain: volume 0.04 ml, expected 0 to 0.03 ml");
}

END_TEST

/* A value that six digits would round into the bounds must be reported with all digits. */
START_TEST(the_smallest_excess_is_detected)
{
    put(0, 0, 0, 0);
    put(0, 1, 0, 0);
    put(0, 2, 0, 0);
    rescale[0] = (struct image_rescale){1, 100.00000001};
    expect.mean = bounds(0, 100);
    assert_broken("mean", "Brain: mean 100.00000001 HU, expected 0 to 100 HU");
}

END_TEST

START_TEST(means)
{
    put(0, 3, 2, 0);
    put(0, 69, 2, 0);
    put(0, 64, 4, 3);
    voxels[2 * COLUMNS + 3] = -100;
    voxels[2 * COLUMNS + 69] = 40;
    voxels[(3 * ROWS_ + 4) * COLUMNS + 64] = 30;
    rescale[0] = (struct image_rescale){2, 10};
    rescale[3] = (struct image_rescale){0.5, -3};
    expect.mean = bounds(-88.0 / 3, -88.0 / 3); /* -190 + 90 + 12 */
    ck_assert_uint_eq(check(), 0);
    expect.mean = bounds(0, 80);
    assert_broken("mean", "Brain: mean -29.3333 HU, expected 0 to 80 HU");
}

END_TEST

/* Arms that meet only in the last slice, and in the first. */
START_TEST(late_joined_components)
{
    for (int z = 0; z < SLICES; z++) {
        put(0, 0, 0, z);
        put(0, 69, 0, z);
        put(0, 30, 2, z);
    }
    for (int x = 1; x < 69; x++)
        put(0, x, 0, 3);
    expect.components = bounds(1, 1);
    assert_broken("components", "Brain: components: 2, expected 1");
    put(0, 30, 1, 0);
    ck_assert_uint_eq(check(), 1);
    put(0, 30, 1, 3);
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(slices)
{
    put(0, 5, 2, 0);
    put(0, 5, 2, 3);
    expect.slices = bounds(2, 2);
    ck_assert_uint_eq(check(), 0);
    expect.slices = bounds(3, 4);
    assert_broken("slices", "Brain: slices with voxels: 2, expected 3 to 4");
}

END_TEST

/*
 * By hand: voxels (3, 2, 0), (4, 2, 0) and (65, 4, 2) of 0.5 x 2 x 4 mm; the slices lie at 0, 4, 8 and 13 mm. Rows
 * point to the back, columns to the feet and slices to the left of the patient. The third slice has a negative slope.
 */
START_TEST(segments_are_measured)
{
    static const double positions[SLICES] = {0, 4, 8, 13};
    const struct expect_frame frame = {
        .origin = {10, 20, 30}, .axes = {0, 1, 0, 0, 0, -1, -1, 0, 0}, .positions = positions};
    put(0, 3, 2, 0);
    put(0, 4, 2, 0);
    put(0, 65, 4, 2);
    voxels[2 * COLUMNS + 3] = 10;
    voxels[2 * COLUMNS + 4] = -2;
    voxels[(2 * ROWS_ + 4) * COLUMNS + 65] = 7;
    rescale[0] = (struct image_rescale){2, 1};
    rescale[2] = (struct image_rescale){-3, 0.5};
    volume.frame = &frame;
    ck_assert_uint_eq(check(), 0);
    const struct segment_measures *m = &measures[0];
    ck_assert_double_eq_tol(m->mean, (21.0 - 3 - 20.5) / 3, 1e-15);
    ck_assert_double_eq(m->minimum, -20.5);
    ck_assert_double_eq(m->maximum, 21);
    ck_assert(m->first[0] == 3 && m->first[1] == 2 && m->first[2] == 0);
    ck_assert(m->last[0] == 65 && m->last[1] == 4 && m->last[2] == 2);
    ck_assert_int_eq(m->slices, 2);
    ck_assert_double_eq_tol(m->centroid[0], 10 - 8.0 / 3, 1e-12);
    ck_assert_double_eq_tol(m->centroid[1], 20 + (3 + 4 + 65) / 3.0 * 0.5, 1e-12);
    ck_assert_double_eq_tol(m->centroid[2], 30 - (2 + 2 + 4) / 3.0 * 2, 1e-12);
    ck_assert(isnan(measures[1].mean) && isnan(measures[1].minimum) && measures[1].slices == 0);
    ck_assert(measures[1].last[0] < measures[1].first[0] && isnan(measures[1].centroid[0]));
}

END_TEST

/* A run of whole words, and pixels of each type, including values beyond 32767. */
START_TEST(values_of_each_pixel_type_are_measured)
{
    static uint8_t bytes[VOXELS];
    static uint16_t words[VOXELS];
    double sum = 0;
    for (int i = 0; i < VOXELS; i++) {
        bytes[i] = (uint8_t)(i % 251);
        words[i] = (uint16_t)(65535 - i);
        voxels[i] = (int16_t)(i - 700);
    }
    for (int x = 0; x < COLUMNS; x++)
        put(0, x, 1, 1);
    const int first = (ROWS_ + 1) * COLUMNS, last = first + COLUMNS - 1;
    check();
    ck_assert_double_eq(measures[0].mean, (first + last) / 2.0 - 700);
    ck_assert_double_eq(measures[0].minimum, first - 700);
    ck_assert_double_eq(measures[0].maximum, last - 700);
    volume.voxels = words;
    volume.pixel = IMAGE_UINT16;
    check();
    ck_assert_double_eq(measures[0].mean, 65535 - (first + last) / 2.0);
    ck_assert_double_eq(measures[0].maximum, 65535 - first);
    volume.voxels = bytes;
    volume.pixel = IMAGE_UINT8;
    for (int i = first; i <= last; i++)
        sum += i % 251;
    check();
    ck_assert_double_eq_tol(measures[0].mean, sum / COLUMNS, 1e-12);
}

END_TEST

/* Words with all voxels, some and none; the last voxel of the volume; values of one sign, whose sums are large. */
START_TEST(values_of_scattered_voxels_are_measured)
{
    enum { TALL = 200 };

    static int16_t values[COLUMNS * TALL];
    for (int seed = 0; seed < 40; seed++) {
        int64_t sum = 0, least = INT32_MAX, most = INT32_MIN;
        uint64_t scattered[WORDS * TALL] = {0};
        srand((unsigned)seed + 1);
        volume.extent = (struct image_extent){COLUMNS, TALL, 1};
        volume.voxels = values;
        volume.pixel = seed % 2 ? IMAGE_UINT16 : IMAGE_INT16;
        masks[0] = (struct image_mask){scattered, WORDS, 0};
        for (int i = 0; i < COLUMNS * TALL; i++) {
            const int x = i % COLUMNS, y = i / COLUMNS;
            const int32_t stored = seed % 4 < 2 ? rand() % 65536 : 65535 - rand() % 9;
            values[i] = (int16_t)(uint16_t)stored;
            if (i < COLUMNS * TALL - 1 && (y % 3 == 2 || (rand() % 4 < seed % 5 && (x >= 64 || y % 3 == 1))))
                continue;
            const int64_t value = seed % 2 ? stored : values[i];
            scattered[y * WORDS + x / 64] |= UINT64_C(1) << (x % 64);
            masks[0].voxels++;
            sum += value;
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
        check();
        ck_assert_double_eq_tol(measures[0].mean, (double)sum / (double)masks[0].voxels, 1e-9);
        ck_assert_double_eq(measures[0].minimum, (double)least);
        ck_assert_double_eq(measures[0].maximum, (double)most);
    }
}

END_TEST

/* Threads share the rows of a large slice. The first slice has voxels in two rows far apart, and the second in all. */
START_TEST(large_slices_are_measured_in_bands)
{
    enum { WIDE = 1500, HIGH = 2100, LARGE = WIDE * HIGH, WIDE_WORDS = (WIDE + 63) / 64 };

    static const double positions[2] = {0, 1};
    const struct expect_frame frame = {.axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .positions = positions};
    uint8_t *values = malloc(2 * LARGE);
    uint64_t *all = calloc(2 * WIDE_WORDS * HIGH, sizeof *all);
    int64_t sum = 0;
    ck_assert(values && all);
    for (int i = 0; i < 2 * LARGE; i++)
        values[i] = (uint8_t)(3 + i * 7 % 241);
    values[5 * WIDE + 100] = 1;
    values[2090 * WIDE + 1400] = 251;
    all[5 * WIDE_WORDS + 100 / 64] |= UINT64_C(1) << 100 % 64;
    all[2090 * WIDE_WORDS + 1400 / 64] |= UINT64_C(1) << 1400 % 64;
    for (int i = 0; i < LARGE; i++) {
        all[(HIGH + i / WIDE) * WIDE_WORDS + i % WIDE / 64] |= UINT64_C(1) << i % WIDE % 64;
        sum += values[LARGE + i];
    }
    volume.extent = (struct image_extent){WIDE, HIGH, 2};
    volume.voxels = values;
    volume.pixel = IMAGE_UINT8;
    volume.frame = &frame;
    masks[0] = (struct image_mask){all, WIDE_WORDS, LARGE + 2};
    expect.touches = CONF_TOUCHES_NONE;
    ck_assert_uint_eq(check(), 1);
    ck_assert_str_eq(found.at[0].text,
                     "Brain: reaches the edge of the volume (first column, last column, first row, last "
                     "row, lowest slice, highest slice), expected to reach none");
    const struct segment_measures *m = &measures[0];
    const int64_t rows = 5 + 2090 + (int64_t)WIDE * (HIGH * (HIGH - 1) / 2);
    ck_assert_double_eq_tol(m->mean, (double)(sum + 252) / (LARGE + 2), 1e-12);
    ck_assert_double_eq(m->minimum, 1);
    ck_assert_double_eq(m->maximum, 251);
    ck_assert(m->first[0] == 0 && m->first[1] == 0 && m->last[0] == WIDE - 1 && m->last[1] == HIGH - 1);
    ck_assert_double_eq_tol(m->centroid[0], (100 + 1400 + (double)HIGH * WIDE * (WIDE - 1) / 2) / (LARGE + 2) * 0.5,
                            1e-9);
    ck_assert_double_eq_tol(m->centroid[1], (double)rows / (LARGE + 2) * 2, 1e-9);
    memset(all + WIDE_WORDS * HIGH, 0, WIDE_WORDS * HIGH * sizeof *all);
    masks[0].voxels = 2;
    check();
    ck_assert(m->first[0] == 100 && m->first[1] == 5 && m->last[0] == 1400 && m->last[1] == 2090 && m->slices == 1);
    free(values);
    free(all);
}

END_TEST

START_TEST(faces)
{
    static const struct {
        int x, y, z;
        const char *name;
        bool slice;
    } cases[] = {
        {0, 2, 1, "first column", false}, {69, 2, 1, "last column", false}, {5, 0, 1, "first row", false},
        {5, 4, 1, "last row", false},     {5, 2, 0, "lowest slice", true},  {5, 2, 3, "highest slice", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[160];
        begin();
        put(0, 5, 2, 1);
        expect.touches = CONF_TOUCHES_NONE;
        ck_assert_uint_eq(check(), 0);
        put(0, cases[i].x, cases[i].y, cases[i].z);
        snprintf(text, sizeof text, "Brain: reaches the edge of the volume (%s), expected to reach none",
                 cases[i].name);
        assert_broken("touches", text);
        expect.touches = CONF_TOUCHES_ANY;
        ck_assert_uint_eq(check(), 0);
        expect.touches = CONF_TOUCHES_TOP_BOTTOM;
        ck_assert_uint_eq(check(), !cases[i].slice);
    }
    put(0, 0, 0, 0);
    assert_broken("touches", "Brain: reaches the edge of the volume (first column, first row), "
                             "expected in the lowest and the highest slice alone");
}

END_TEST

/* As in a straightened stack, whose images cover less of some slices than of others. */
START_TEST(edges_of_the_images)
{
    static const struct expect_window windows[SLICES] = {
        {{0, 0}, {69, 2}}, {{0, 1}, {69, 3}}, {{0, 2}, {69, 4}}, {{3, 3}, {66, 4}}};
    expect.touches = CONF_TOUCHES_TOP_BOTTOM;
    put(0, 5, 1, 0);
    put(0, 5, 2, 1);
    put(0, 5, 3, 2);
    volume.windows = windows;
    ck_assert_uint_eq(check(), 0);
    put(0, 5, 2, 2);
    assert_broken("touches", "Brain: reaches the edge of the volume (first row), expected in the "
                             "lowest and the highest slice alone");
    put(0, 67, 3, 2);
    ck_assert_uint_eq(check(), 1);
    put(0, 67, 2, 3); /* outside */
    assert_broken("touches", "Brain: reaches the edge of the volume (last column, first row), expected in the "
                             "lowest and the highest slice alone");
    volume.windows = NULL;
    ck_assert_uint_eq(check(), 0);
}

END_TEST

/* As at the end of a round field of view, which cuts structures at its edge. */
START_TEST(padding_of_the_images)
{
    expect.touches = CONF_TOUCHES_TOP_BOTTOM;
    put(0, 5, 2, 1);
    put(0, 8, 2, 1);
    voxels[(1 * ROWS_ + 2) * COLUMNS + 6] = -2000; /* a hole in it is not an edge */
    voxels[(1 * ROWS_ + 2) * COLUMNS + 9] = -1999;
    padding[1] = (struct image_range){-2000, -2000};
    ck_assert_uint_eq(check(), 0);
    voxels[(1 * ROWS_ + 2) * COLUMNS + 9] = -2000;
    assert_broken("touches", "Brain: reaches the edge of the volume (padding), expected in the "
                             "lowest and the highest slice alone");
    voxels[(1 * ROWS_ + 2) * COLUMNS + 9] = 0;
    voxels[(1 * ROWS_ + 2) * COLUMNS + 4] = -2000;
    ck_assert_uint_eq(check(), 1);
    padding[1] = (struct image_range){1, 0};
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(shares)
{
    struct conf_share share = {(char *)"Body", {0.25, 0.5}};
    expect.share_of = &share;
    for (int x = 0; x < 8; x++)
        put(1, x, 0, 0);
    put(0, 0, 0, 0);
    assert_broken("share_of", "Brain: share of Body 0.125, expected 0.25 to 0.5");
    put(0, 1, 0, 0);
    ck_assert_uint_eq(check(), 0);
    masks[1].voxels = 0;
    assert_broken("share_of", "Brain: its share of Body is not known: that segment is empty");
    ck_assert(!found.at[0].bounded);
}

END_TEST

START_TEST(shares_of_the_box)
{
    put(0, 3, 1, 1);
    put(0, 66, 4, 2); /* a box of 64 x 4 x 2 */
    expect.share_of_box = bounds(2.0 / 512, 0.5);
    ck_assert_uint_eq(check(), 0);
    expect.share_of_box = bounds(0, 0.003);
    assert_broken("share_of_box", "Brain: share of the box around it 0.00390625, expected 0 to 0.003");
    put(0, 0, 0, 0);
    put(0, 69, 0, 3); /* the whole volume */
    expect.share_of_box = bounds(4.0 / VOXELS, 4.0 / VOXELS);
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(slices_of_the_images)
{
    put(0, 0, 0, 0);
    expect.slice_mm = bounds(0, 3);
    volume.slice_mm = 3.0004; /* typical for decimal positions */
    ck_assert_uint_eq(check(), 0);
    volume.slice_mm = 3.27;
    assert_broken("slice_mm", "Brain: slices of 3.27 mm, expected 0 to 3 mm");
    ck_assert(found.at[0].bounded && found.at[0].found == 3.27);
    volume.slice_mm = 0;
    assert_broken("slice_mm", "Brain: how thick the slices are is not known");
    ck_assert(!found.at[0].bounded);
}

END_TEST

START_TEST(units_of_the_images)
{
    put(0, 0, 0, 0);
    expect.unit = (char *)"g/ml";
    assert_broken("unit", "Brain: the images' values are in HU, expected in g/ml");
    volume.ucum = "";
    assert_broken("unit", "Brain: the images' values are of no known unit, expected in g/ml");
    volume.ucum = "g/ml";
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(contrast_in_the_images)
{
    put(0, 0, 0, 0);
    volume.contrast = true;
    ck_assert_uint_eq(check(), 0);
    expect.has_contrast = true;
    assert_broken("contrast", "Brain: the images name a contrast agent, expected none");
    volume.contrast = false;
    ck_assert_uint_eq(check(), 0);
    expect.contrast = true;
    assert_broken("contrast", "Brain: the images name no contrast agent, expected one");
}

END_TEST

START_TEST(an_empty_segment_violates_each_expectation_once)
{
    ck_assert_uint_eq(check(), 1);
    expect.volume_ml = bounds(0, 5);
    expect.touches = CONF_TOUCHES_NONE;
    assert_broken("expect", "Brain: the segment is empty");
    segments[0].expect = NULL;
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(all_violated_expectations_are_reported)
{
    struct conf_expect body = {.slices = bounds(4, 4)};
    char text[512], small[120];
    put(0, 0, 0, 0);
    put(1, 0, 0, 0);
    segments[1].expect = &body;
    expect.volume_ml = bounds(1, 2);
    expect.mean = bounds(1, 2);
    expect.components = bounds(2, 3);
    expect.slices = bounds(2, 3);
    expect.touches = CONF_TOUCHES_NONE;
    ck_assert_uint_eq(check(), 6);
    ck_assert_uint_eq(found.at[5].segment, 1);
    expect_tell(&found, text, sizeof text);
    ck_assert_str_eq(text, "Brain: volume 0.004 ml, expected 1 to 2 ml; Brain: mean 0 HU, expected 1 to 2 HU; "
                           "Brain: components: 1, expected 2 to 3; Brain: slices with voxels: 1, expected 2 to 3; "
                           "Brain: reaches the edge of the volume (first column, first row, lowest slice), "
                           "expected to reach none; Body: slices with voxels: 1, expected 4");
    expect_tell(&found, small, sizeof small);
    ck_assert_str_eq(small, "Brain: volume 0.004 ml, expected 1 to 2 ml; and 5 more: job.json");
}

END_TEST

int
main(void)
{
    const TTest *const tests[] = {volumes,
                                  the_smallest_excess_is_detected,
                                  means,
                                  late_joined_components,
                                  slices,
                                  segments_are_measured,
                                  values_of_each_pixel_type_are_measured,
                                  values_of_scattered_voxels_are_measured,
                                  large_slices_are_measured_in_bands,
                                  faces,
                                  edges_of_the_images,
                                  padding_of_the_images,
                                  shares,
                                  shares_of_the_box,
                                  slices_of_the_images,
                                  units_of_the_images,
                                  contrast_in_the_images,
                                  an_empty_segment_violates_each_expectation_once,
                                  all_violated_expectations_are_reported};
    Suite *suite = suite_create("expect");
    TCase *tcase = tcase_create("expect");
    tcase_add_checked_fixture(tcase, begin, end);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
