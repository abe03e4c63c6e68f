/* Images that are excluded from volumes, and names of stacks. */
#include "tests/unit/series_sample.h"

#include <errno.h>
#include <math.h>

/* ---- exclusion ---- */

START_TEST(each_reason_is_a_stack)
{
    static const enum code codes[] = {CODE_LOCALIZER, CODE_LOCALIZER, CODE_SCREENSHOT, CODE_DERIVED_IMAGE, CODE_MOSAIC};

    add_slices(10, 0, 2);
    for (size_t i = 0; i < 5; i++) {
        place_frame(add_frames(1), i % 2 ? coronal : axial, 0, 0, 4);
        last()->rows = 512;
        last()->frames[0].excluded = codes[i];
        last()->frames[0].tiles = 35;
    }
    shuffle(1);
    ck_assert_str_eq(stacks_of_group(), ":10 | derived:1!DERIVED_IMAGE | localizer:2!LOCALIZER | "
                                        "mosaic:1!MOSAIC | screenshot:1!SCREENSHOT");
    struct geometry_series *result = group();
    for (int32_t i = 1; i < result->stack_count; i++) {
        const struct geometry_stack *stack = &result->stacks[i];
        ck_assert(stack->passed_over == (stack->error.code != CODE_MOSAIC));
        ck_assert(!stack->has_geometry && stack->error.file[0][0]);
    }
    ck_assert(!result->stacks[0].passed_over);
    ck_assert_str_eq(result->stacks[2].error.file[0], "/series/0010.dcm");
    ck_assert_ptr_nonnull(strstr(result->stacks[2].error.message, "1 more"));
    ck_assert_ptr_nonnull(strstr(result->stacks[3].error.message, "a mosaic of 35 tiles"));
    geometry_series_free(result);
}

END_TEST

/* In a series with a volume: skipped, or a stack per frame, whatever their modality, frame of reference and number of slices. */
START_TEST(flat_images_are_skipped_or_stacks_of_one_slice)
{
    const struct geometry_limits flat = {.min_planes = 2, .spacing_tolerance = 0.01, .take_flat = true};
    static const char *const names[] = {"", "image 18", "image 19", "image 20, frame 1", "image 20, frame 2"};
    add_slices(10, 0, 2);
    for (int32_t number = 20; number > 17; number--) {
        add_frames(number == 20 ? 2 : 1);
        struct dicom_instance *image = last();
        image->flat = true;
        image->instance_number = number;
        image->rows = 100 + number;
        strcpy(image->modality, "OT");
        strcpy(image->frame_of_reference_uid, "1.2.99");
        for (int32_t f = 0; f < image->frame_count; f++)
            image->frames[f] = (struct dicom_frame){
                .slope = number == 18 ? 0 : 1,
                .has_spacing = number > 18,
                .pixel_spacing = {0.5, 0.25},
                .spacing = number > 18 ? DICOM_SPACING_IMAGER : DICOM_SPACING_NONE,
                .calibrated = {1, 2, 3, 4},
                .derived = true,
            };
    }
    shuffle(1);
    ck_assert_str_eq(stacks_of_group(), ":10 | 2-D images:4!FLAT_IMAGE");
    struct geometry_series *result = group_with(&flat);
    ck_assert_int_eq(result->stack_count, 5);
    for (int32_t i = 0; i < 5; i++) {
        const struct geometry_stack *stack = &result->stacks[i];
        ck_assert_str_eq(stack->name, names[i]);
        ck_assert(stack->accepted == (i != 1) && stack->flat == (i > 0) && stack->has_geometry == (i == 0));
        ck_assert(geometry_is_in_mm(stack) == (i != 1));
    }
    ck_assert_int_eq(result->stacks[1].error.code, CODE_RESCALE_INVALID);
    const struct geometry_stack *second = &result->stacks[3];
    ck_assert(second->plane_count == 1 && second->rows == 120 && second->calibrated[3] == 4);
    ck_assert(second->spacing_source == DICOM_SPACING_IMAGER && second->spacing[0] == 0.25 &&
              second->spacing[1] == 0.5);
    geometry_series_free(result);
}

END_TEST

START_TEST(derived_images_among_originals)
{
    const struct geometry_limits derived = {.min_planes = 2, .spacing_tolerance = 0.01, .include_derived = true};
    for (int i = 0; i < 8; i++) {
        strcpy(add_slice(2 * i)->image_type, "M");
        struct dicom_frame *frame = add_slice(2 * i);
        strcpy(frame->image_type, "TRACE");
        frame->derived = true;
    }
    ck_assert_str_eq(stacks_of_group(), ":8 | derived:8!DERIVED_IMAGE");
    struct geometry_series *result = group_with(&derived);
    ck_assert_int_eq(result->stack_count, 2);
    ck_assert(result->stacks[0].accepted && result->stacks[1].accepted);
    geometry_series_free(result);
}

END_TEST

START_TEST(a_series_of_derived_images)
{
    add_slices(8, 0, 2);
    for (int32_t i = 0; i < 8; i++)
        series.storage[i].frames[0].derived = true;
    ck_assert_str_eq(stacks_of_group(), ":8");
    place_frame(add_frames(1), coronal, 0, 0, 0);
    last()->frames[0].excluded = CODE_LOCALIZER; /* not an original */
    ck_assert_str_eq(stacks_of_group(), ":8 | localizer:1!LOCALIZER");
}

END_TEST

/* The last slices are derived, and the rest alone is not the volume. */
START_TEST(a_missing_original_present_as_derived_is_incomplete)
{
    add_slices(10, 0, 2);
    series.storage[9].frames[0].derived = true;
    ck_assert_str_eq(stacks_of_group(), ":9!INCOMPLETE_SERIES | derived:1!DERIVED_IMAGE");
    series.storage[9].frames[0].position[2] = 19.3; /* of another grid */
    series.storage[9].instance_number = 100;
    ck_assert_str_eq(stacks_of_group(), ":9 | derived:1!DERIVED_IMAGE");
    series.storage[9].frames[0].position[2] = 18;
    series.storage[9].rows = 512; /* of another size */
    ck_assert_str_eq(stacks_of_group(), ":9 | derived:1!DERIVED_IMAGE");
}

END_TEST

START_TEST(too_many_orientations)
{
    enum { FRAMES = 20000 };

    struct dicom_frame *frames = add_frames(FRAMES);
    for (int i = 0; i < FRAMES; i++) {
        const double a = 0.2 * (i % 30), b = 0.002 * (i / 30.0);
        const double orientation[6] = {cos(a), sin(a), 0, -sin(a) * cos(b), cos(a) * cos(b), sin(b)};
        place_frame(&frames[i], orientation, 0, 0, i);
    }
    ck_assert_str_eq(stacks_of_group(), ":20000!TOO_MANY_STACKS");
}

END_TEST

START_TEST(too_many_volumes)
{
    enum { VOLUMES = LIMIT_STACKS };

    struct dicom_frame *frames = add_frames(2 * VOLUMES + 2);
    for (int i = 0; i < 2 * VOLUMES + 2; i++) {
        place_frame(&frames[i], axial, 0, 0, 2 * (i % 2));
        sprintf(frames[i].temporal, "%d", i / 2);
    }
    ck_assert_str_eq(stacks_of_group(), ":8194!TOO_MANY_STACKS");
    series.storage[0].frame_count -= 2;
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, VOLUMES);
    geometry_series_free(result);
}

END_TEST

/* ---- names ---- */

START_TEST(names_are_different)
{
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++) {
            struct dicom_frame *frame = add_slice(2 * i);
            memset(frame->echo, 'e', DICOM_DS_SIZE - 1);
            frame->echo[5] = (char)('a' + k);
            memset(frame->b_value, 'b', DICOM_DS_SIZE - 1);
            frame->b_value[0] = (char)('0' + k);
            memset(frame->label, '#', DICOM_DS_SIZE - 1);
            memset(frame->kernel, 'k', DICOM_DS_SIZE - 1);
        }
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 3);
    geometry_series_free(result);
    /* Uses every part of a name, in both orientations and many values, beyond the maximum length. */
    free_series();
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) {
            struct dicom_frame *frame = add_slice(2 * i);
            char *const texts[] = {frame->echo, frame->b_value, frame->temporal, frame->inversion};
            for (int t = 0; t < 4; t++) {
                memset(texts[t], '#', DICOM_DS_SIZE - 1);
                texts[t][DICOM_DS_SIZE - 2] = (char)('0' + (k >> t) % 2);
            }
        }
    result = group();
    ck_assert_int_eq(result->stack_count, 16);
    for (int32_t i = 0; i < 16; i++) {
        ck_assert(result->stacks[i].accepted);
        ck_assert(i == 0 || strverscmp(result->stacks[i - 1].name, result->stacks[i].name) < 0);
    }
    ck_assert_ptr_nonnull(strstr(result->stacks[1].name, " #2"));
    geometry_series_free(result);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_excluded");
    TCase *aside = new_case(suite, "aside");
    tcase_add_test(aside, each_reason_is_a_stack);
    tcase_add_test(aside, flat_images_are_skipped_or_stacks_of_one_slice);
    tcase_add_test(aside, derived_images_among_originals);
    tcase_add_test(aside, a_series_of_derived_images);
    tcase_add_test(aside, a_missing_original_present_as_derived_is_incomplete);
    tcase_add_test(aside, too_many_orientations);
    tcase_add_test(aside, too_many_volumes);
    TCase *names = new_case(suite, "names");
    tcase_add_test(names, names_are_different);
    return suite_run(suite);
}
