/* Groups instances into stacks. */
#include "tests/unit/series_sample.h"

#include <math.h>

/* ---- order and frame of one stack ---- */

START_TEST(slices_are_ordered_by_position_alone)
{
    add_slices(40, -50, 2.5);
    for (int32_t i = 0; i < series.count; i++) {
        series.storage[i].instance_number = (i * 7) % 40; /* is wrong */
        snprintf(series.storage[i].sop_instance_uid, DICOM_UID_SIZE, "1.2.%d", (i * 13) % 40);
    }
    for (uint32_t seed = 0; seed < 50; seed++) {
        shuffle(seed);
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stack_count, 1);
        const struct geometry_stack *stack = &result->stacks[0];
        ck_assert_msg(stack->accepted, "%s", stack->error.message);
        ck_assert_str_eq(stack->name, "");
        ck_assert_int_eq(stack->plane_count, 40);
        for (int32_t i = 0; i < 40; i++) {
            const struct geometry_plane *plane = &stack->planes[i];
            ck_assert_ptr_eq(series.instances[plane->instance], &series.storage[i]);
            ck_assert_double_eq_tol(plane->position, -50 + 2.5 * i, 1e-12);
        }
        geometry_series_free(result);
    }
}

END_TEST

START_TEST(frame_of_a_stack)
{
    add_slices(5, 30, -2);
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert(s->accepted && s->has_geometry);
    ck_assert(s->columns == 30 && s->rows == 20 && s->pixel == IMAGE_UINT16);
    ck_assert(s->spacing[0] == 0.75 && s->spacing[1] == 0.5 && s->spacing[2] == 2);
    ck_assert(s->normal[0] == 0 && s->normal[1] == 0 && s->normal[2] == 1);
    ck_assert(s->origin[0] == -10 && s->origin[1] == -20 && s->origin[2] == 22);
    const double point[3] = {-10 + 3 * 0.75, -20 + 7 * 0.5, 22 + 2.5 * 2};
    double voxel[3];
    geometry_voxel_from_mm(s, point, voxel);
    ck_assert(voxel[0] == 3 && voxel[1] == 7 && voxel[2] == 2.5);
    geometry_series_free(result);
}

END_TEST

/* Order and spacing of an oblique stack must come from its normal, not from a coordinate axis. */
START_TEST(oblique_stacks)
{
    const double angle = 0.7, orientation[6] = {1, 0, 0, 0, cos(angle), sin(angle)};
    const double normal[3] = {0, -sin(angle), cos(angle)};
    for (int32_t i = 0; i < 12; i++)
        place_frame(add_frames(1), orientation, 5, 6 + normal[1] * 3 * i, 7 + normal[2] * 3 * i);
    shuffle(3);
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert_msg(s->accepted, "%s", s->error.message);
    ck_assert_double_eq_tol(s->spacing[2], 3, 1e-12);
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq_tol(s->normal[k], normal[k], 1e-12);
    const double point[3] = {5 + 0.75, 6 + 2 * 0.5 * cos(angle) + normal[1] * 9,
                             7 + 2 * 0.5 * sin(angle) + normal[2] * 9};
    double voxel[3];
    geometry_voxel_from_mm(s, point, voxel);
    ck_assert_double_eq_tol(voxel[0], 1, 1e-9);
    ck_assert_double_eq_tol(voxel[1], 2, 1e-9);
    ck_assert_double_eq_tol(voxel[2], 3, 1e-9);
    geometry_series_free(result);
}

END_TEST

START_TEST(frames_of_one_instance_in_any_order)
{
    struct dicom_frame *frames = add_frames(30);
    for (int32_t i = 0; i < 30; i++)
        place_frame(&frames[i], axial, 0, 0, 1.5 * ((i * 11) % 30));
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert_msg(s->accepted, "%s", s->error.message);
    for (int32_t i = 0; i < 30; i++)
        ck_assert_int_eq((s->planes[i].frame * 11) % 30, i);
    geometry_series_free(result);
}

END_TEST

START_TEST(one_plane)
{
    const struct geometry_limits one = {.min_planes = 1, .spacing_tolerance = 0.01};
    add_slice(5);
    ck_assert_int_eq(code_of_group(), CODE_TOO_FEW_SLICES);
    struct geometry_series *result = group_with(&one);
    ck_assert(result->stacks[0].accepted);
    ck_assert(result->stacks[0].spacing[2] == 2.5);
    geometry_series_free(result);
    last()->frames[0].slice_thickness = 0;
    result = group_with(&one);
    ck_assert(result->stacks[0].spacing[2] == 1);
    geometry_series_free(result);
}

END_TEST

START_TEST(no_instance_at_all)
{
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 0);
    geometry_series_free(result);
    geometry_series_free(NULL);
}

END_TEST

/* ---- tolerances ---- */

/* Positions rounded to a number of decimals, as by senders, must still be regular. */
START_TEST(rounded_positions_are_uniform)
{
    static const struct {
        double step;
        int decimals;
    } cases[] = {
        {0.666666686534882, 2}, {0.666666686534882, 6}, {1.25, 2}, {0.3333333, 2}, {5, 0}, {2.9999, 3},
    };

    const double scale = pow(10, cases[_i].decimals);
    for (int32_t i = 0; i < 200; i++)
        add_slice(round((-73.4567 + i * cases[_i].step) * scale) / scale);
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

/* Also oblique ones, where the rounding of three coordinates adds up. */
START_TEST(rounded_oblique_positions_are_uniform)
{
    const double angle = 0.7, orientation[6] = {cos(angle), sin(angle) * 0.6, sin(angle) * 0.8, 0, 0.8, -0.6};
    const double normal[3] = {orientation[1] * orientation[5] - orientation[2] * orientation[4],
                              orientation[2] * orientation[3] - orientation[0] * orientation[5],
                              orientation[0] * orientation[4] - orientation[1] * orientation[3]};
    for (int32_t i = 0; i < 200; i++) {
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] = round((12.345 * k + normal[k] * 0.666666 * i) * 100) / 100;
        place_frame(add_frames(1), orientation, p[0], p[1], p[2]);
    }
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

START_TEST(steps_beyond_the_tolerance_are_not)
{
    const double steps[] = {5.04, 5.06};
    for (size_t k = 0; k < 2; k++) {
        add_slices(10, 0, 5);
        add_slice(45 + steps[k]);
        ck_assert_int_eq(code_of_group(), k ? CODE_SPACING_NOT_UNIFORM : CODE_NONE);
        free_series();
    }
}

END_TEST

/* ---- stacks ---- */

START_TEST(orientations_make_stacks)
{
    for (int32_t i = 0; i < 5; i++) {
        place_frame(add_frames(1), axial, 0, 0, 3 * i);
        place_frame(add_frames(1), coronal, 0, 3 * i, 0);
        place_frame(add_frames(1), sagittal, 3 * i, 0, 0);
    }
    for (uint32_t seed = 0; seed < 20; seed++) {
        shuffle(seed);
        ck_assert_str_eq(stacks_of_group(), "axial:5 | coronal:5 | sagittal:5");
    }
}

END_TEST

START_TEST(orientations_of_one_name_are_numbered)
{
    const double tilted[6] = {1, 0, 0, 0, cos(0.2), sin(0.2)};
    for (int32_t i = 0; i < 5; i++) {
        place_frame(add_frames(1), axial, 0, 0, 3 * i);
        place_frame(add_frames(1), tilted, 0, -sin(0.2) * 3 * i, cos(0.2) * 3 * i);
    }
    for (uint32_t seed = 0; seed < 20; seed++) {
        shuffle(seed);
        ck_assert_str_eq(stacks_of_group(), "axial 1:5 | axial 2:5");
    }
}

END_TEST

/* A localizer of another size must not split the rest of its series. */
START_TEST(sizes_do_not_make_stacks)
{
    add_slices(5, 0, 3);
    add_slice(15);
    last()->rows = last()->columns = 512;
    ck_assert_str_eq(stacks_of_group(), ":6!SIZE_MIXED");
}

END_TEST

START_TEST(echoes_at_the_same_positions)
{
    for (int32_t i = 0; i < 8; i++)
        for (int echo = 1; echo <= 3; echo++)
            sprintf(add_slice(2 * i)->echo, "%d", echo);
    shuffle(5);
    ck_assert_str_eq(stacks_of_group(), "echo 1:8 | echo 2:8 | echo 3:8");
}

END_TEST

START_TEST(stacks_are_ordered_by_number)
{
    static const int values[] = {0, 50, 800, 1000};
    for (int32_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 4; k++)
            sprintf(add_slice(2 * i)->b_value, "%d", values[k]);
    shuffle(6);
    ck_assert_str_eq(stacks_of_group(), "b 0:8 | b 50:8 | b 800:8 | b 1000:8");
}

END_TEST

START_TEST(a_missing_slice_in_one_of_two_echoes)
{
    for (int32_t i = 0; i < 8; i++) {
        strcpy(add_slice(2 * i)->echo, "1");
        if (i != 3)
            strcpy(add_slice(2 * i)->echo, "2");
    }
    ck_assert_str_eq(stacks_of_group(), "echo 1:8 | echo 2:7!MISSING_SLICE");
}

END_TEST

/*
 * If different contrasts together make one regular stack, they are parts of two volumes, or of one with a wrong
 * header.
 */
START_TEST(echoes_side_by_side)
{
    for (int32_t i = 0; i < 10; i++)
        strcpy(add_slice(2 * i)->echo, i < 5 ? "1" : "2");
    ck_assert_str_eq(stacks_of_group(), "echo 1:5!VOLUMES_MIXED | echo 2:5!VOLUMES_MIXED");
}

END_TEST

/* For example, one b-value for the first slices and none for the rest. */
START_TEST(an_absent_key_is_a_value)
{
    for (int32_t i = 0; i < 8; i++) {
        add_slice(2 * i);
        strcpy(add_slice(2 * i)->temporal, "2");
    }
    ck_assert_str_eq(stacks_of_group(), "time 2:8 | time none:8");
}

END_TEST

START_TEST(keys_that_vary_per_slice_do_not_split)
{
    for (int32_t i = 0; i < 12; i++) {
        struct dicom_frame *frame = add_slice(2 * i);
        sprintf(frame->echo, "%g ms", 15 + 0.01 * i);
        sprintf(frame->phase, "%d ms", 12 + 7 * i);
        sprintf(frame->temporal, "%d", i + 1);
        strcpy(frame->image_type, i % 2 ? "AXIAL" : "AXIAL/ADD");
        sprintf(last()->frames[0].acquisition, "%d", i / 3);
    }
    ck_assert_str_eq(stacks_of_group(), ":12");
}

END_TEST

/* Image types and acquisition numbers must split a stack if positions repeat, and only then. */
START_TEST(magnitude_and_phase_images)
{
    for (int32_t i = 0; i < 8; i++) {
        strcpy(add_slice(2 * i)->image_type, "M");
        strcpy(add_slice(2 * i)->image_type, "P");
    }
    ck_assert_str_eq(stacks_of_group(), "M:8 | P:8");
}

END_TEST

START_TEST(two_acquisitions_of_the_same_slices)
{
    for (int32_t i = 0; i < 8; i++) {
        add_slice(2 * i);
        sprintf(last()->frames[0].acquisition, "%d", 1);
        add_slice(2 * i);
        sprintf(last()->frames[0].acquisition, "%d", 2);
    }
    ck_assert_str_eq(stacks_of_group(), "acquisition 1:8 | acquisition 2:8");
}

END_TEST

START_TEST(phases_of_the_heart)
{
    for (int32_t i = 0; i < 6; i++)
        for (int phase = 0; phase < 4; phase++)
            sprintf(add_slice(8 * i)->phase, "%d %%", 25 * phase);
    ck_assert_str_eq(stacks_of_group(), "phase 0 %:6 | phase 25 %:6 | phase 50 %:6 | phase 75 %:6");
}

END_TEST

/* Trigger times that differ per image cannot identify the volume of a slice. */
START_TEST(unresolved_repeated_positions)
{
    for (int32_t i = 0; i < 6; i++)
        for (int phase = 0; phase < 4; phase++)
            sprintf(add_slice(8 * i)->phase, "%d ms", 100 * phase + 3 * i);
    for (int32_t i = 0; i < series.count; i++)
        series.storage[i].instance_number = 0;
    ck_assert_str_eq(stacks_of_group(), ":24!DUPLICATE_POSITION");
}

END_TEST

START_TEST(one_position_many_times)
{
    for (int phase = 0; phase < 5; phase++)
        sprintf(add_slice(8)->phase, "%d ms", 100 * phase);
    ck_assert_str_eq(stacks_of_group(), "phase 0 ms:1!TOO_FEW_SLICES | phase 100 ms:1!TOO_FEW_SLICES | "
                                        "phase 200 ms:1!TOO_FEW_SLICES | phase 300 ms:1!TOO_FEW_SLICES | "
                                        "phase 400 ms:1!TOO_FEW_SLICES");
}

END_TEST

START_TEST(several_keys_at_once)
{
    for (int32_t i = 0; i < 4; i++)
        for (int echo = 1; echo <= 2; echo++)
            for (int time = 1; time <= 2; time++) {
                struct dicom_frame *frame = add_slice(2 * i);
                sprintf(frame->echo, "%d", echo);
                sprintf(frame->temporal, "%d", time);
            }
    for (uint32_t seed = 0; seed < 20; seed++) {
        shuffle(seed);
        ck_assert_str_eq(stacks_of_group(), "echo 1, time 1:4 | echo 1, time 2:4 | "
                                            "echo 2, time 1:4 | echo 2, time 2:4");
    }
}

END_TEST

/* Interleaves frames of two instances and of two echoes: every plane must be found once. */
START_TEST(planes_are_neither_lost_nor_doubled)
{
    uint32_t state = 11;
    for (int k = 0; k < 5; k++) {
        struct dicom_frame *frames = add_frames(40);
        for (int32_t f = 0; f < 40; f++) {
            place_frame(&frames[f], next_random(&state) % 2 ? axial : coronal, 0, f, f);
            sprintf(frames[f].echo, "%u", next_random(&state) % 3);
            sprintf(frames[f].image_type, "%u", next_random(&state) % 3);
        }
    }
    shuffle(7);
    struct geometry_series *result = group();
    bool seen[5][40] = {0};
    int32_t total = 0;
    for (int32_t i = 0; i < result->stack_count; i++)
        for (int32_t p = 0; p < result->stacks[i].plane_count; p++) {
            const struct geometry_plane *plane = &result->stacks[i].planes[p];
            ck_assert(!seen[plane->instance][plane->frame]);
            seen[plane->instance][plane->frame] = true;
            total++;
            if (p > 0)
                ck_assert(plane[-1].position <= plane->position);
        }
    ck_assert_int_eq(total, 200);
    geometry_series_free(result);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry");
    TCase *order = new_case(suite, "order");
    tcase_add_test(order, slices_are_ordered_by_position_alone);
    tcase_add_test(order, frame_of_a_stack);
    tcase_add_test(order, oblique_stacks);
    tcase_add_test(order, frames_of_one_instance_in_any_order);
    tcase_add_test(order, one_plane);
    tcase_add_test(order, no_instance_at_all);
    tcase_add_loop_test(order, rounded_positions_are_uniform, 0, 6);
    tcase_add_test(order, rounded_oblique_positions_are_uniform);
    tcase_add_test(order, steps_beyond_the_tolerance_are_not);
    TCase *stacks = new_case(suite, "stacks");
    tcase_add_test(stacks, orientations_make_stacks);
    tcase_add_test(stacks, orientations_of_one_name_are_numbered);
    tcase_add_test(stacks, sizes_do_not_make_stacks);
    tcase_add_test(stacks, echoes_at_the_same_positions);
    tcase_add_test(stacks, stacks_are_ordered_by_number);
    tcase_add_test(stacks, a_missing_slice_in_one_of_two_echoes);
    tcase_add_test(stacks, echoes_side_by_side);
    tcase_add_test(stacks, an_absent_key_is_a_value);
    tcase_add_test(stacks, keys_that_vary_per_slice_do_not_split);
    tcase_add_test(stacks, magnitude_and_phase_images);
    tcase_add_test(stacks, two_acquisitions_of_the_same_slices);
    tcase_add_test(stacks, phases_of_the_heart);
    tcase_add_test(stacks, unresolved_repeated_positions);
    tcase_add_test(stacks, one_position_many_times);
    tcase_add_test(stacks, several_keys_at_once);
    tcase_add_test(stacks, planes_are_neither_lost_nor_doubled);
    return suite_run(suite);
}
