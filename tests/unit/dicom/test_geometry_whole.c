/* What is missing though no gap shows it, and the digits of positions. */
#include "tests/unit/series_sample.h"

#include <math.h>

/* ---- what is missing ---- */

START_TEST(a_position_that_one_volume_lacks)
{
    for (int i = 0; i < 3 * 8; i++)
        if (i != 12)
            add_slice(2 * (i % 8));
    ck_assert_int_eq(code_of_group(), CODE_INCOMPLETE_SERIES);
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "7 of 8 positions have 3 slices"));
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "2 of them at 8 mm"));
    const struct geometry_limits missing = {
        .min_planes = 2, .spacing_tolerance = 0.01, .allow_missing = true};
    struct geometry_series *result = group_with(&missing);
    ck_assert_int_eq(result->stacks[0].error.code, CODE_DUPLICATE_POSITION);
    geometry_series_free(result);
}

END_TEST

/* Each lacks what the other has: neither is whole. */
START_TEST(an_end_that_siblings_have)
{
    for (int i = 0; i < 10; i++) {
        if (i > 0)
            strcpy(add_slice(2 * i)->echo, "1");
        if (i < 9)
            strcpy(add_slice(2 * i)->echo, "2");
    }
    ck_assert_str_eq(stacks_of_group(), "echo 1:9!INCOMPLETE_SERIES | echo 2:9!INCOMPLETE_SERIES");
    const struct geometry_limits missing = {
        .min_planes = 2, .spacing_tolerance = 0.01, .allow_missing = true};
    struct geometry_series *result = group_with(&missing);
    ck_assert(result->stacks[0].accepted && result->stacks[1].accepted);
    geometry_series_free(result);
    result = group();
    ck_assert_ptr_nonnull(strstr(result->stacks[0].error.message, "none lies at 0 mm"));
    ck_assert_ptr_nonnull(strstr(result->stacks[1].error.message, "none lies at 18 mm"));
    geometry_series_free(result);
}

END_TEST

static void
announce(int32_t images, int32_t expected)
{
    for (int32_t i = 0; i < series.count; i++) {
        series.storage[i].images_in_acquisition = images;
        series.storage[i].expected_instances = expected;
    }
}

START_TEST(images_in_acquisition)
{
    static const struct {
        int32_t images, expected;
        enum code code;
    } cases[] = {
        {0, 0, CODE_NONE},
        {10, 10, CODE_NONE},
        {9, 9, CODE_NONE},
        {11, 11, CODE_INCOMPLETE_SERIES},
        {10, 50, CODE_NONE}, /* one time of five */
        {9, 45, CODE_INCOMPLETE_SERIES},
        {1, 40, CODE_NONE},
        {0, 30, CODE_INCOMPLETE_SERIES},
    };

    add_slices(10, 0, 2);
    announce(cases[_i].images, cases[_i].expected);
    ck_assert_int_eq(code_of_group(), cases[_i].code);
    /* A scout is no image of them. */
    place_frame(add_frames(1), coronal, 0, 0, 0);
    last()->images_in_acquisition = cases[_i].images;
    last()->frames[0].excluded = CODE_LOCALIZER;
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stacks[0].error.code, cases[_i].code);
    geometry_series_free(result);
}

END_TEST

/* Three of sixteen times, each whole; all times in one number. */
START_TEST(images_of_several_times)
{
    for (int i = 0; i < 3 * 8; i++)
        add_slice(2 * (i % 8));
    announce(8, 128);
    ck_assert_str_eq(stacks_of_group(), "volume 1:8 | volume 2:8 | volume 3:8");
    announce(24, 72);
    ck_assert_str_eq(stacks_of_group(), "volume 1:8 | volume 2:8 | volume 3:8");
    announce(25, 75);
    ck_assert_str_eq(stacks_of_group(), "volume 1:8!INCOMPLETE_SERIES | volume "
                                        "2:8!INCOMPLETE_SERIES | volume 3:8!INCOMPLETE_SERIES");
    announce(9, 27);
    ck_assert_str_eq(stacks_of_group(), "volume 1:8!INCOMPLETE_SERIES | volume "
                                        "2:8!INCOMPLETE_SERIES | volume 3:8!INCOMPLETE_SERIES");
}

END_TEST

START_TEST(numbers_before_the_first)
{
    static const struct {
        int32_t slices, first;
        int32_t scout; /* 0: none */
        enum code code;
    } cases[] = {
        {10, 1, 0, CODE_NONE},
        {10, 0, 0, CODE_NONE},
        {10, 2, 0, CODE_INCOMPLETE_SERIES},
        {10, 3, 0, CODE_NONE},
        {40, 5, 0, CODE_INCOMPLETE_SERIES},
        {40, 6, 0, CODE_NONE},
        {10, 2, 1, CODE_NONE},
        {10, 3, 1, CODE_INCOMPLETE_SERIES},
        {10, 1, 11, CODE_NONE},
        {10, 1, 12, CODE_INCOMPLETE_SERIES},
        {10, 1, 13, CODE_NONE},
        {60, 41, 0, CODE_NONE},
    };

    for (int down = 0; down < 2; down++) {
        free_series();
        for (int32_t i = 0; i < cases[_i].slices; i++) {
            add_slice(2 * i);
            last()->instance_number = cases[_i].first + (down ? cases[_i].slices - 1 - i : i);
        }
        if (cases[_i].scout > 0) {
            place_frame(add_frames(1), coronal, 0, 0, 0);
            last()->instance_number = cases[_i].scout;
            last()->frames[0].excluded = CODE_LOCALIZER;
        }
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stacks[0].error.code, cases[_i].code);
        geometry_series_free(result);
    }
}

END_TEST

/* A gap between two orientations: one of them lacks a slice. */
START_TEST(numbers_between_stacks)
{
    for (int i = 0; i < 6; i++)
        place_frame(add_frames(1), axial, 0, 0, 2 * i);
    for (int i = 0; i < 6; i++)
        place_frame(add_frames(1), coronal, 0, 2 * i, 0);
    ck_assert_str_eq(stacks_of_group(), "axial:6 | coronal:6");
    for (int i = 6; i < 12; i++)
        series.storage[i].instance_number++;
    ck_assert_str_eq(stacks_of_group(), "axial:6!INCOMPLETE_SERIES | coronal:6!INCOMPLETE_SERIES");
}

END_TEST

/* The lost number is that of the slice that the first lacks, not one before the second. */
START_TEST(numbers_that_siblings_lack)
{
    for (int i = 0; i < 15; i++) {
        strcpy(add_slice(2 * (i < 7 ? i : i - 7))->echo, i < 7 ? "1" : "2");
        series.storage[i].instance_number += i >= 7;
    }
    ck_assert_str_eq(stacks_of_group(), "echo 1:7!INCOMPLETE_SERIES | echo 2:8");
}

END_TEST

/* What is left of two volumes looks like one. */
START_TEST(numbers_of_two_volumes)
{
    add_slices(10, 0, 2);
    for (int i = 6; i < 10; i++)
        series.storage[i].instance_number += 10;
    ck_assert_int_eq(code_of_group(), CODE_INCOMPLETE_SERIES);
    for (int i = 6; i < 10; i++)
        series.storage[i].instance_number -= 3; /* something else was in between */
    ck_assert_int_eq(code_of_group(), CODE_NONE);
    for (int i = 0; i < 10; i++)
        series.storage[i].instance_number = 1 + 4 * i + (i >= 6);
    ck_assert_int_eq(code_of_group(), CODE_INCOMPLETE_SERIES);
    for (int i = 0; i < 10; i++)
        series.storage[i].instance_number = 2 + 4 * i;
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

/* ---- digits ---- */

static void
add_written(const double orientation[6], double x, double y, double z, int decimals)
{
    struct dicom_frame *frame = add_frames(1);
    const double position[3] = {x, y, z};
    place_frame(frame, orientation, 0, 0, 0);
    for (int c = 0; c < 3; c++) {
        char *text = frame->position_text[c];
        snprintf(text, DICOM_DS_SIZE, "%.*f", decimals, position[c]);
        frame->position[c] = strtod(text, NULL);
        while (strchr(text, '.') && text[strlen(text) - 1] == '0')
            text[strlen(text) - 1] = '\0'; /* as some senders do */
    }
}

START_TEST(digits_that_the_file_writes)
{
    static const struct {
        double step;
        int decimals;
        enum code code;
    } cases[] = {
        {1.25, 1, CODE_NONE},
        {0.75, 1, CODE_NONE},
        {0.625, 1, CODE_NONE},
        {5, 0, CODE_NONE},
        {2.5, 0, CODE_SPACING_NOT_UNIFORM},
        {6.3, 0, CODE_NONE},
        {1.25, 2, CODE_NONE},
        {0.3, 1, CODE_NONE},
        {0.25, 1, CODE_SPACING_NOT_UNIFORM},
    };

    for (int32_t i = 0; i < 60; i++)
        add_written(axial, -100, 20.5, -73.4567 + i * cases[_i].step, cases[_i].decimals);
    ck_assert_int_eq(code_of_group(), cases[_i].code);
}

END_TEST

/* Of three coordinates, each rounded. */
START_TEST(digits_of_oblique_positions)
{
    const double angle = 0.7,
                 orientation[6] = {cos(angle), sin(angle) * 0.6, sin(angle) * 0.8, 0, 0.8, -0.6};
    double normal[3] = {orientation[1] * orientation[5] - orientation[2] * orientation[4],
                        orientation[2] * orientation[3] - orientation[0] * orientation[5],
                        orientation[0] * orientation[4] - orientation[1] * orientation[3]};
    for (int32_t i = 0; i < 200; i++)
        add_written(orientation, 12.345 + normal[0] * 1.25 * i, normal[1] * 1.25 * i,
                    40 + normal[2] * 1.25 * i, 1);
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

/* A slice in the wrong place by more than its digits is seen, however coarse they are. */
START_TEST(digits_do_not_hide_what_is_longer)
{
    for (int32_t i = 0; i < 40; i++)
        add_written(axial, 0, 0, 1.25 * i + (i > 20 ? 0.3 : 0), 1);
    ck_assert_int_eq(code_of_group(), CODE_SPACING_NOT_UNIFORM);
}

END_TEST

/* Rounding hides a shear from one slice to the next, not over all of them. */
START_TEST(digits_do_not_hide_a_shear)
{
    for (int shear = 0; shear < 2; shear++) {
        free_series();
        for (int32_t i = 0; i < 40; i++)
            add_written(axial, 0, 7.04 + 0.05 * shear * i, 2 * i, 1);
        ck_assert_int_eq(code_of_group(), shear ? CODE_GANTRY_TILT : CODE_NONE);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_whole");
    TCase *whole = new_case(suite, "whole");
    tcase_add_test(whole, a_position_that_one_volume_lacks);
    tcase_add_test(whole, an_end_that_siblings_have);
    tcase_add_loop_test(whole, images_in_acquisition, 0, 8);
    tcase_add_test(whole, images_of_several_times);
    tcase_add_loop_test(whole, numbers_before_the_first, 0, 12);
    tcase_add_test(whole, numbers_between_stacks);
    tcase_add_test(whole, numbers_that_siblings_lack);
    tcase_add_test(whole, numbers_of_two_volumes);
    TCase *digits = new_case(suite, "digits");
    tcase_add_loop_test(digits, digits_that_the_file_writes, 0, 9);
    tcase_add_test(digits, digits_of_oblique_positions);
    tcase_add_test(digits, digits_do_not_hide_what_is_longer);
    tcase_add_test(digits, digits_do_not_hide_a_shear);
    return suite_run(suite);
}
