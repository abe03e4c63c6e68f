/* The geometry check: rejected stacks, the reasons, and the reported files. */
#include "tests/unit/series_sample.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

static bool
names(const struct error *error, int32_t a, int32_t b)
{
    return strcmp(error->file[0], series.storage[a].path) == 0 && strcmp(error->file[1], series.storage[b].path) == 0;
}

START_TEST(spacing_not_uniform)
{
    add_slices(12, 0, 2);
    add_slices(10, 25, 3);
    shuffle(1);
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_SPACING_NOT_UNIFORM);
    ck_assert(names(error, 11, 12));
    ck_assert_ptr_nonnull(strstr(error->message, "3 mm between 0011.dcm and 0012.dcm"));
    ck_assert_ptr_nonnull(strstr(error->message, "the regular step is 2 mm"));
    ck_assert_ptr_nonnull(strstr(error->message, "from 2 to 3 mm"));
}

END_TEST

START_TEST(missing_slices)
{
    add_slices(10, 0, 2);
    add_slices(10, 24, 2); /* 20 and 22 are missing */
    shuffle(2);
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_MISSING_SLICE);
    ck_assert(names(error, 9, 10));
    ck_assert_ptr_nonnull(strstr(error->message, "2 slices are missing"));
}

END_TEST

START_TEST(a_gap_without_measure_is_no_missing_slice)
{
    add_slices(10, 0, 2);
    add_slice(500000);
    ck_assert_int_eq(code_of_group(), CODE_SPACING_NOT_UNIFORM);
}

END_TEST

START_TEST(a_missing_slice_and_an_irregular_step)
{
    add_slices(10, 0, 2);
    add_slices(10, 22, 2);
    add_slice(41.3);
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_MISSING_SLICE);
    ck_assert_ptr_nonnull(strstr(error->message, "1 slice is missing"));
    ck_assert_ptr_nonnull(strstr(error->message, "Also SPACING_NOT_UNIFORM"));
}

END_TEST

START_TEST(duplicate_positions)
{
    add_slices(10, 0, 2);
    add_slice(8);
    shuffle(3);
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_DUPLICATE_POSITION);
    ck_assert(names(error, 4, 10));
    ck_assert_ptr_nonnull(strstr(error->message, "8 mm"));
}

END_TEST

START_TEST(gantry_tilt)
{
    for (int32_t i = 0; i < 10; i++)
        place_frame(add_frames(1), axial, 0, tan(18.5 / 180 * M_PI) * 4 * i, 4 * i);
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_GANTRY_TILT);
    ck_assert(names(error, 0, 1));
    ck_assert_ptr_nonnull(strstr(error->message, "18.5 degrees"));
    ck_assert_ptr_null(strstr(error->message, "Also"));
}

END_TEST

START_TEST(no_tilt_from_rounding)
{
    /* Cosines of four decimals, positions of two: errors of much less than a pixel. */
    const double angle = 0.31, orientation[6] = {1, 0, 0, 0, 0.9523, 0.3051};
    for (int32_t i = 0; i < 30; i++)
        place_frame(add_frames(1), orientation, 0, round(-sin(angle) * 300 * i) / 100,
                    round(cos(angle) * 300 * i) / 100);
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

START_TEST(no_geometry)
{
    add_slices(10, 0, 2);
    struct dicom_frame *frame = &series.storage[4].frames[0];
    frame->has_position = false;
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_NO_GEOMETRY);
    ck_assert_str_eq(error->file[0], "/series/0004.dcm");
    ck_assert_ptr_nonnull(strstr(error->message, "Image Position"));
    frame->has_position = true;
    frame->has_spacing = false;
    ck_assert_int_eq(code_of_group(), CODE_NO_GEOMETRY);
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "Pixel Spacing"));
}

END_TEST

/* Without any geometry, the sender's numbering orders the planes of the rejected stack. */
START_TEST(no_geometry_at_all)
{
    add_slices(10, 0, 2);
    for (int32_t i = 0; i < 10; i++) {
        series.storage[i].frames[0].has_position = false;
        series.storage[i].frames[0].has_orientation = false;
        series.storage[i].instance_number = 10 - i;
    }
    shuffle(4);
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert_int_eq(s->error.code, CODE_NO_GEOMETRY);
    ck_assert(!s->has_geometry);
    for (int32_t i = 0; i < 10; i++)
        ck_assert_int_eq(series.instances[s->planes[i].instance]->instance_number, i + 1);
    geometry_series_free(result);
}

END_TEST

START_TEST(sizes_mixed)
{
    add_slices(10, 0, 2);
    series.storage[3].rows = 21;
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_SIZE_MIXED);
    ck_assert(names(error, 0, 3));
    series.storage[3].rows = 20;
    series.storage[3].frames[0].pixel_spacing[0] = 0.5001;
    ck_assert_int_eq(code_of_group(), CODE_NONE);
    series.storage[3].frames[0].pixel_spacing[0] = 0.51;
    ck_assert_int_eq(code_of_group(), CODE_SIZE_MIXED);
}

END_TEST

START_TEST(pixels_mixed)
{
    add_slices(10, 0, 2);
    series.storage[9].pixel = IMAGE_INT16;
    series.storage[9].is_signed = true;
    ck_assert_int_eq(code_of_group(), CODE_PIXELS_MIXED);
    series.storage[9].pixel = IMAGE_UINT16;
    series.storage[9].is_signed = false;
    series.storage[9].bits_stored = 12; /* harmless: the values are the same */
    ck_assert_int_eq(code_of_group(), CODE_NONE);
    series.storage[9].monochrome1 = true;
    ck_assert_int_eq(code_of_group(), CODE_PIXELS_MIXED);
}

END_TEST

START_TEST(rescale_invalid)
{
    static const struct {
        const char *modality;
        bool has_rescale;
        double slope, intercept;
        enum code code;
    } cases[] = {
        {"MR", false, 1, 0, CODE_NONE},
        {"MR", true, 0.5, 3, CODE_NONE},
        {"MR", true, 0, 3, CODE_RESCALE_INVALID},
        {"MR", true, NAN, 3, CODE_RESCALE_INVALID},
        {"MR", true, 1, INFINITY, CODE_RESCALE_INVALID},
        {"CT", false, 1, 0, CODE_RESCALE_INVALID},
        {"PT", false, 1, 0, CODE_RESCALE_INVALID},
        {"PT", true, 0.1, 0, CODE_NONE},
        {"CT", true, -1, 0, CODE_NONE},
    };

    add_slices(10, 0, 2);
    for (int32_t i = 0; i < 10; i++)
        strcpy(series.storage[i].modality, cases[_i].modality);
    struct dicom_frame *frame = &series.storage[7].frames[0];
    frame->has_rescale = cases[_i].has_rescale;
    frame->slope = cases[_i].slope;
    frame->intercept = cases[_i].intercept;
    ck_assert_int_eq(code_of_group(), cases[_i].code);
}

END_TEST

START_TEST(precedence)
{
    add_slices(3, 0, 2);
    add_slices(3, 15, 4);
    const struct geometry_limits many = {.min_planes = 10, .spacing_tolerance = 0.01};
    series.storage[1].rows = 21;
    series.storage[2].frames[0].slope = 0;
    struct geometry_series *result = group_with(&many);
    const struct error *error = &result->stacks[0].error;
    ck_assert_int_eq(error->code, CODE_SIZE_MIXED);

    static const enum code also[] = {CODE_RESCALE_INVALID, CODE_TOO_FEW_SLICES, CODE_SPACING_NOT_UNIFORM};

    const char *at = error->message;
    for (size_t i = 0; i < 3 && at; i++) {
        at = strstr(at, code_name(also[i]));
        ck_assert_msg(at != NULL, "%s is not there or not in order: %s", code_name(also[i]), error->message);
    }
    geometry_series_free(result);
}

END_TEST

/*
 * All images must be of one series, and so on. The first trait that differs sets the code, with the same two files in
 * any order.
 */
START_TEST(one_series_has_one_patient_study_and_frame_of_reference)
{
    static const struct {
        size_t offset;
        enum code code;
    } traits[] = {
        {offsetof(struct dicom_instance, series_uid), CODE_SERIES_MIXED},
        {offsetof(struct dicom_instance, patient), CODE_MIXED_PATIENTS},
        {offsetof(struct dicom_instance, patient_name), CODE_MIXED_PATIENTS},
        {offsetof(struct dicom_instance, study_uid), CODE_MIXED_STUDIES},
        {offsetof(struct dicom_instance, modality), CODE_MIXED_MODALITIES},
        {offsetof(struct dicom_instance, frame_of_reference_uid), CODE_MIXED_FRAMES_OF_REFERENCE},
    };

    struct geometry_series *result;
    struct error error;
    add_slices(9, 0, 2);
    for (size_t i = 6; i-- > 0;) {
        strcpy((char *)&series.storage[3 + i / 2] + traits[i].offset, "1.9");
        for (uint32_t seed = 0; seed < 10; seed++) {
            shuffle(seed);
            ck_assert_int_eq(geometry_group(series.instances, series.count, &limits, &result, &error), -EINVAL);
            ck_assert_ptr_null(result);
            ck_assert_int_eq(error.code, traits[i].code);
            ck_assert(names(&error, 0, (int32_t)(3 + i / 2)));
            ck_assert_ptr_null(strstr(error.message, "1.9"));
        }
    }
}

END_TEST

/* A screenshot may have its own frame of reference, but must have the same patient. */
START_TEST(skipped_images_must_have_the_same_patient)
{
    struct geometry_series *result;
    struct error error;
    add_slices(9, 0, 2);
    series.storage[4].frames[0].excluded = CODE_SCREENSHOT;
    strcpy(series.storage[4].frame_of_reference_uid, "1.9");
    strcpy(series.storage[4].modality, "OT");
    series.storage[4].rows = 1000;
    geometry_series_free(group());
    strcpy(series.storage[4].patient, "other");
    ck_assert_int_eq(geometry_group(series.instances, series.count, &limits, &result, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_MIXED_PATIENTS);
}

END_TEST

/* ---- straightening ---- */

static const struct geometry_limits straightening = {.min_planes = 2, .spacing_tolerance = 0.01, .straighten = true};

/* Returns the only stack with straightening enabled. */
static struct geometry_stack
straightened(void)
{
    struct geometry_series *result = group_with(&straightening);
    ck_assert_int_eq(result->stack_count, 1);
    struct geometry_stack stack = result->stacks[0];
    geometry_series_free(result);
    ck_assert(stack.accepted == (stack.error.code == CODE_NONE));
    return stack;
}

static void
add_thick_slices(int32_t count, double first, double step)
{
    for (int32_t i = 0; i < count; i++)
        add_slice(first + i * step)->slice_thickness = step;
}

START_TEST(a_tilted_stack_is_accepted_to_be_straightened)
{
    for (int32_t i = 0; i < 10; i++)
        place_frame(add_frames(1), axial, -10, -20 + 0.7 * i, 2 * i);
    const struct geometry_stack stack = straightened();
    ck_assert(stack.accepted && stack.tilted && !stack.uneven && geometry_needs_resampling(&stack));
    ck_assert_double_eq_tol(stack.tilt_degrees, atan(0.35) * 180 / M_PI, 1e-9);
    ck_assert_int_eq(code_of_group(), CODE_GANTRY_TILT);
}

END_TEST

START_TEST(an_upright_stack_is_not_crooked)
{
    add_slices(10, 0, 2);
    const struct geometry_stack stack = straightened();
    ck_assert(stack.accepted && !geometry_needs_resampling(&stack));
}

END_TEST

START_TEST(continuing_thicker_slices_are_uneven_without_gaps)
{
    add_thick_slices(12, 0, 2.5);
    add_thick_slices(10, 12 * 2.5 + 1.25, 5);
    const struct geometry_stack stack = straightened();
    ck_assert(stack.accepted && stack.uneven && !stack.tilted);
    ck_assert_int_eq(code_of_group(), CODE_MISSING_SLICE);
}

END_TEST

START_TEST(a_possible_gap_is_not_counted_as_missing_slices)
{
    static const double lost[] = {5, 22.5, 41.25, 61.25}; /* of each part, and next to its end */
    for (size_t k = 0; k < 4; k++) {
        add_thick_slices(12, 0, 2.5);
        add_thick_slices(10, 12 * 2.5 + 1.25, 5);
        for (int32_t i = 0; i < series.count; i++)
            if (series.storage[i].frames->position[2] == lost[k])
                series.storage[i].frames->position[2] = 1e4; /* far from the others */
        int32_t kept = 0;
        for (int32_t i = 0; i < series.count; i++)
            if (series.storage[i].frames->position[2] < 1e4)
                series.instances[kept++] = &series.storage[i];
        ck_assert_int_eq(kept, series.count - 1);
        struct geometry_series *result;
        struct error error;
        ck_assert_int_eq(geometry_group(series.instances, kept, &straightening, &result, &error), 0);
        ck_assert(!result->stacks[0].accepted);
        ck_assert_ptr_nonnull(strstr(result->stacks[0].error.message, "may be missing"));
        geometry_series_free(result);
        free_series();
    }
}

END_TEST

START_TEST(without_thickness_a_step_is_compared_with_its_neighbours)
{
    static const struct {
        double step, last;
        enum code code;
    } cases[] = {
        {2.9, 2, CODE_NONE}, {3.1, 2, CODE_SPACING_NOT_UNIFORM}, {4, 2, CODE_MISSING_SLICE}, {1.4, 2, CODE_NONE}};

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        add_slices(8, 0, 2);
        add_slices(8, 14 + cases[k].step, 2);
        for (int32_t i = 0; i < series.count; i++)
            series.storage[i].frames->slice_thickness = 0;
        ck_assert_int_eq(straightened().error.code, cases[k].code);
        free_series();
    }
}

END_TEST

START_TEST(different_rescales_or_paddings_are_not_straightened)
{
    for (int differs = 0; differs < 2; differs++) {
        for (int32_t i = 0; i < 10; i++)
            place_frame(add_frames(1), axial, -10, -20 + 0.7 * i, 2 * i);
        if (differs)
            last()->has_padding = true;
        else
            last()->frames->slope = 2;
        const struct geometry_stack stack = straightened();
        ck_assert_int_eq(stack.error.code, CODE_GANTRY_TILT);
        ck_assert_ptr_nonnull(strstr(stack.error.message, differs ? "in their padding" : "in their rescale"));
        free_series();
    }
}

END_TEST

START_TEST(a_shear_beyond_45_degrees_is_refused)
{
    for (int32_t i = 0; i < 10; i++)
        place_frame(add_frames(1), axial, -10, -20 + (i == 5 ? 2.2 : 0), 2 * i);
    const struct geometry_stack stack = straightened();
    ck_assert_int_eq(stack.error.code, CODE_GANTRY_TILT);
    ck_assert_ptr_nonnull(strstr(stack.error.message, "too much"));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_check");
    TCase *gate = new_case(suite, "gate");
    tcase_add_test(gate, spacing_not_uniform);
    tcase_add_test(gate, missing_slices);
    tcase_add_test(gate, a_gap_without_measure_is_no_missing_slice);
    tcase_add_test(gate, a_missing_slice_and_an_irregular_step);
    tcase_add_test(gate, duplicate_positions);
    tcase_add_test(gate, gantry_tilt);
    tcase_add_test(gate, a_tilted_stack_is_accepted_to_be_straightened);
    tcase_add_test(gate, an_upright_stack_is_not_crooked);
    tcase_add_test(gate, continuing_thicker_slices_are_uneven_without_gaps);
    tcase_add_test(gate, a_possible_gap_is_not_counted_as_missing_slices);
    tcase_add_test(gate, without_thickness_a_step_is_compared_with_its_neighbours);
    tcase_add_test(gate, different_rescales_or_paddings_are_not_straightened);
    tcase_add_test(gate, a_shear_beyond_45_degrees_is_refused);
    tcase_add_test(gate, no_tilt_from_rounding);
    tcase_add_test(gate, no_geometry);
    tcase_add_test(gate, no_geometry_at_all);
    tcase_add_test(gate, sizes_mixed);
    tcase_add_test(gate, pixels_mixed);
    tcase_add_loop_test(gate, rescale_invalid, 0, 9);
    tcase_add_test(gate, precedence);
    tcase_add_test(gate, one_series_has_one_patient_study_and_frame_of_reference);
    tcase_add_test(gate, skipped_images_must_have_the_same_patient);
    return suite_run(suite);
}
