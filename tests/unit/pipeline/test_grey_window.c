/* The window of a preview: the images' own if it shows the tissue, else one from the values. */
#include "service/pipeline/results/grey_window.h"
#include "tests/unit/suite.h"

#include <string.h>

#define SIDE 32

/* A ramp across of 0 to 31 on two slices, of which columns 8 to 15 are tissue. */
struct sample {
    int16_t voxels[2 * SIDE * SIDE];
    uint64_t bits[2 * SIDE];
    struct geometry_plane planes[2];
    struct dicom_frame frames[2];
    struct dicom_instance instance;
    struct dicom_instance *instances[1];
    struct geometry_stack stack;
    struct image_mask mask;
    struct panel_volume volume;
    struct panel panels[2];
};

static struct sample sample;
static double set[2]; /* by the pipeline */

static void
set_window(int slice, double low, double high)
{
    struct dicom_frame *frame = &sample.frames[slice];
    frame->has_window = true;
    frame->window_low = low;
    frame->window_high = high;
    frame->window_center = (low + high) / 2;
    frame->window_width = high - low;
}

static void
setup(void)
{
    memset(&sample, 0, sizeof sample);
    set[0] = set[1] = 0;
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        sample.voxels[i] = (int16_t)(i % SIDE);
    for (int i = 0; i < 2 * SIDE; i++)
        sample.bits[i] = 0xff00;
    sample.instance.frames = sample.frames;
    sample.instance.frame_count = 2;
    sample.instances[0] = &sample.instance;
    sample.planes[1] = (struct geometry_plane){.frame = 1, .position = 1};
    sample.frames[0].slope = sample.frames[1].slope = 1;
    sample.stack = (struct geometry_stack){
        .columns = SIDE, .rows = SIDE, .plane_count = 2, .planes = sample.planes, .pixel = IMAGE_INT16};
    sample.mask = (struct image_mask){.bits = sample.bits, .words_per_row = 1};
    sample.volume =
        (struct panel_volume){.instances = sample.instances, .stack = &sample.stack, .voxels = sample.voxels};
    ck_assert_int_eq(panel_volume_make(&sample.volume), 0);
    for (int z = 0; z < 2; z++) {
        sample.panels[z] =
            (struct panel){.across = 0, .down = 1, .through = 2, .at = z, .box = {.width = 96, .height = 96}};
        ck_assert_int_eq(panel_make(&sample.volume, &sample.panels[z]), 0);
        panel_sample(&sample.volume, &sample.panels[z]);
    }
}

static void
teardown(void)
{
    panel_free(&sample.panels[0]);
    panel_free(&sample.panels[1]);
    panel_volume_free(&sample.volume);
}

static struct grey_window
choose(bool segmented)
{
    const struct image_mask *const masks[] = {&sample.mask};
    const struct grey_window_request request = {&sample.volume, sample.panels, 2, masks, segmented, set};
    struct grey_window window;
    ck_assert_int_eq(grey_window_choose(&request, &window), 0);
    return window;
}

/* Windows for 8 values, so that sixteen times their spread are 112. */
static const struct {
    double low, high;
    bool right;
} windows[] = {
    {0, 20, true},    {10, 40, true},       {-40, 60, true}, /* much too wide, but the tissue is visible */
    {14, 40, false},                                         /* three quarters are black */
    {-60, 60, false},                                        /* one grey */
    {40, 60, false},  {-1000, -900, false},
};

START_TEST(the_images_window_is_used_if_it_contains_the_tissue)
{
    set_window(0, windows[_i].low, windows[_i].high);
    set_window(1, windows[_i].low, windows[_i].high);
    struct grey_window window = choose(true);
    if (windows[_i].right) {
        ck_assert_int_eq(window.origin, GREY_WINDOW_OF_IMAGES);
        ck_assert_double_eq(window.low, windows[_i].low);
        ck_assert_double_eq(window.high, windows[_i].high);
    } else {
        ck_assert_int_eq(window.origin, GREY_WINDOW_OF_SEGMENTS);
        ck_assert_double_eq_tol(window.low, 0, 1);
        ck_assert_double_eq_tol(window.high, 25.5, 1);
    }
}

END_TEST

START_TEST(different_windows_are_ignored)
{
    set_window(0, 0, 20);
    ck_assert_int_eq(choose(true).origin, GREY_WINDOW_OF_SEGMENTS);
    set_window(1, 0, 21);
    ck_assert_int_eq(choose(true).origin, GREY_WINDOW_OF_SEGMENTS);
    set_window(1, 0, 20);
    ck_assert_int_eq(choose(true).origin, GREY_WINDOW_OF_IMAGES);
}

END_TEST

START_TEST(without_a_segment_all_voxels_count)
{
    struct grey_window window = choose(false);
    ck_assert_int_eq(window.origin, GREY_WINDOW_OF_EVERYTHING);
    ck_assert_double_eq_tol(window.low, 0, 1);
    ck_assert_double_eq_tol(window.high, 31, 1);
    set_window(0, 28, 29);
    set_window(1, 28, 29);
    ck_assert_int_eq(choose(false).origin, GREY_WINDOW_OF_EVERYTHING);
    set_window(0, 28, 31);
    set_window(1, 28, 31);
    ck_assert_int_eq(choose(false).origin, GREY_WINDOW_OF_IMAGES);
}

END_TEST

START_TEST(a_window_of_the_pipeline_comes_first)
{
    set_window(0, 0, 20);
    set_window(1, 0, 20);
    set[0] = -600;
    set[1] = 1500;
    struct grey_window window = choose(true);
    ck_assert_int_eq(window.origin, GREY_WINDOW_OF_PIPELINE);
    ck_assert_double_eq(window.low, -1350);
    ck_assert_double_eq(window.high, 150);
    ck_assert_double_eq(window.center, -600);
    ck_assert_double_eq(window.width, 1500);
}

END_TEST

START_TEST(a_window_is_printed_as_centre_and_width)
{
    char text[80];
    const struct grey_window own = {0, 79, 40, 80, GREY_WINDOW_OF_IMAGES};
    const struct grey_window chosen = {0.5, 4.5, 2.5, 4, GREY_WINDOW_OF_SEGMENTS};
    const struct grey_window all = {0, 4095, 2047.5, 4095, GREY_WINDOW_OF_EVERYTHING};
    const struct grey_window set_one = {-1350, 150, -600, 1500, GREY_WINDOW_OF_PIPELINE};
    grey_window_describe(&set_one, "[hnsf'U]", text, sizeof text);
    ck_assert_str_eq(text, "Window C -600 W 1500 HU, set by the pipeline");
    grey_window_describe(&own, "[hnsf'U]", text, sizeof text);
    ck_assert_str_eq(text, "Window C 40 W 80 HU, of the images");
    grey_window_describe(&chosen, "g/ml", text, sizeof text);
    ck_assert_str_eq(text, "Window C 2.5 W 4 g/ml, by the segments' values");
    grey_window_describe(&all, "", text, sizeof text);
    ck_assert_str_eq(text, "Window C 2048 W 4095, by all values");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_grey_window");
    TCase *tests = tcase_create("grey_window");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, the_images_window_is_used_if_it_contains_the_tissue, 0,
                        sizeof windows / sizeof windows[0]);
    tcase_add_test(tests, different_windows_are_ignored);
    tcase_add_test(tests, without_a_segment_all_voxels_count);
    tcase_add_test(tests, a_window_of_the_pipeline_comes_first);
    tcase_add_test(tests, a_window_is_printed_as_centre_and_width);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
