/*
 * Values that distinguish volumes without repeated positions, and counts in headers. Expected stacks come from the
 * description of each series, not from the program.
 */
#include "tests/unit/series_sample.h"

enum { SLICES = 20 };

/* Adds contiguous slices: 2.5 mm thick and apart, numbered from 1. */
static struct dicom_frame *
add_touching(int32_t i)
{
    return add_slice(2.5 * i);
}

/* ---- alternating, by halves, at random ---- */

static void
set_component(struct dicom_frame *frame, bool other)
{
    strcpy(frame->component, other ? "phase" : "magnitude");
}

static void
set_kernel(struct dicom_frame *frame, bool other)
{
    strcpy(frame->kernel, other ? "H70" : "H30");
}

static void
set_energy(struct dicom_frame *frame, bool other)
{
    strcpy(frame->energy, other ? "140 kV" : "80 kV");
}

static void
set_inversion(struct dicom_frame *frame, bool other)
{
    strcpy(frame->inversion, other ? "2500 ms" : "100 ms");
}

static void
set_direction(struct dicom_frame *frame, bool other)
{
    strcpy(frame->direction, other ? "1.000 0.000 0.000" : "0.000 1.000 0.000");
}

static void
set_echo(struct dicom_frame *frame, bool other)
{
    strcpy(frame->echo, other ? "20 ms" : "10 ms");
}

static void
set_absent_echo(struct dicom_frame *frame, bool other)
{
    strcpy(frame->echo, other ? "" : "10 ms");
}

static void
set_temporal(struct dicom_frame *frame, bool other)
{
    strcpy(frame->temporal, other ? "2" : "1");
}

static void
set_flip(struct dicom_frame *frame, bool other)
{
    strcpy(frame->flip, other ? "30" : "5");
}

static void (*const keys[])(struct dicom_frame *frame, bool other) = {
    set_component, set_kernel, set_energy,      set_inversion, set_direction,
    set_echo,      set_flip,   set_absent_echo, set_temporal,
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]), MIXTURES = 3 };

static bool
is_other(int mixture, int32_t i)
{
    static const bool at_random[SLICES] = {0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0};
    return mixture == 0 ? i % 2 : mixture == 1 ? i >= SLICES / 2 : at_random[i];
}

/* Half of the slices of one volume and the other half of another must not make one volume. Neither half is complete. */
START_TEST(mixed_volumes_are_refused)
{
    for (int mixture = 0; mixture < MIXTURES; mixture++) {
        for (int32_t i = 0; i < SLICES; i++)
            keys[_i](add_touching(i), is_other(mixture, i));
        shuffle((uint32_t)mixture);
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stack_count, 2);
        for (int32_t s = 0; s < 2; s++)
            ck_assert_msg(!result->stacks[s].accepted, "key %d, mixture %d, stack \"%s\"", _i, mixture,
                          result->stacks[s].name);
        geometry_series_free(result);
        free_series();
    }
}

END_TEST

/* Two complete volumes, the second shifted by half a slice: slices that overlap are of different volumes. */
START_TEST(shifted_volumes_are_two)
{
    for (int other = 0; other < 2; other++)
        for (int32_t i = 0; i < SLICES; i++)
            set_kernel(add_slice(2.5 * i + 1.25 * other), other);
    ck_assert_str_eq(stacks_of_group(), "kernel H30:20 | kernel H70:20");
}

END_TEST

START_TEST(jitter_is_one_value)
{
    for (int32_t i = 0; i < SLICES; i++)
        strcpy(add_touching(i)->echo, i % 2 ? "9.99 ms" : "10.01 ms");
    ck_assert_str_eq(stacks_of_group(), ":20");
    free_series();
    /* If positions repeat, close values are volumes. */
    for (int32_t i = 0; i < SLICES; i++) {
        strcpy(add_touching(i)->echo, "9.99 ms");
        strcpy(add_touching(i)->echo, "10.01 ms");
    }
    ck_assert_str_eq(stacks_of_group(), "echo 9.99 ms:20 | echo 10.01 ms:20");
}

END_TEST

/* ---- acquisitions ---- */

static void
add_acquisition(int number, int32_t count, double first, double step)
{
    for (int32_t i = 0; i < count; i++)
        sprintf(add_slice(first + i * step)->acquisition, "%d", number);
}

START_TEST(overlapping_acquisitions_are_two_volumes)
{
    add_acquisition(1, SLICES, 0, 2.5);
    add_acquisition(2, SLICES, 43.75, 2.5);
    ck_assert_str_eq(stacks_of_group(), "acquisition 1:20 | acquisition 2:20");
}

END_TEST

/* A scanner that moves the table between acquisitions, and one that acquires every second slice first. */
START_TEST(acquisitions_of_one_volume_are_joined)
{
    for (int number = 0; number < 5; number++)
        add_acquisition(number, 4, 10.0 * number, 2.5);
    ck_assert_str_eq(stacks_of_group(), ":20");
    free_series();
    add_acquisition(1, 10, 0, 5);
    add_acquisition(2, 10, 2.5, 5);
    for (int32_t i = 0; i < 10; i++) { /* numbered as acquired */
        series.storage[i].instance_number = 2 * i + 1;
        series.storage[10 + i].instance_number = 2 * i + 2;
    }
    ck_assert_str_eq(stacks_of_group(), ":20");
}

END_TEST

/* Bolus tracking: monitoring slices at one position of the volume. "newest" must not put any of them into it. */
START_TEST(monitoring_slices_are_outside_the_volume)
{
    const struct geometry_limits newest = {.min_planes = 3, .spacing_tolerance = 0.01, .newest_of_duplicates = true};
    add_acquisition(1, SLICES, 0, 2.5);
    for (int k = 0; k < 6; k++) {
        add_acquisition(3 + k, 1, 25, 1);
        strcpy(last()->created, "20300101000000");
    }
    struct geometry_series *result = group_with(&newest);
    ck_assert_int_eq(result->stack_count, 7);
    for (int32_t s = 0; s < 7; s++) {
        const struct geometry_stack *stack = &result->stacks[s];
        ck_assert_int_eq(stack->accepted, s == 0);
        ck_assert_ptr_null(strstr(stack->error.message, "newest"));
    }
    ck_assert_int_eq(result->stacks[0].plane_count, SLICES);
    for (int32_t i = 0; i < SLICES; i++)
        ck_assert_int_lt(series.instances[result->stacks[0].planes[i].instance]->instance_number, SLICES + 1);
    geometry_series_free(result);
}

END_TEST

/* ---- passes that differ only in acquisition time ---- */

static void
add_pass(double time, double pause, int32_t count, double first, double step)
{
    for (int32_t i = 0; i < count; i++)
        snprintf(add_slice(first + i * step)->acquired, DICOM_DS_SIZE, "20260101%013.6f", time + i * pause);
}

START_TEST(passes_in_time_are_volumes)
{
    static const double shifts[] = {1.25, 43.75, 20.625}; /* of slices of 2.5 mm */
    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        add_pass(120000, 0.5, SLICES, 0, 2.5);
        add_pass(120200, 0.5, SLICES, shifts[i], 2.5);
        ck_assert_str_eq(stacks_of_group(), "pass 1:20 | pass 2:20");
        free_series();
    }
}

END_TEST

/* A pass with a missing slice must not make a stack, nor must both passes together. */
START_TEST(incomplete_passes_are_refused)
{
    for (int lost = 1; lost < SLICES - 1; lost += 6) {
        add_pass(120000, 0, SLICES, 0, 2.5);
        add_pass(120200, 0, SLICES, 1.25, 2.5);
        series.instances[SLICES + lost] = series.instances[series.count - 1];
        series.count--;
        ck_assert(code_of_group() != CODE_NONE);
        series.count++;
        free_series();
    }
}

END_TEST

/* The remnant of one acquisition among the slices of another, also if the stack can be straightened. */
START_TEST(remnants_of_acquisitions_are_refused)
{
    const struct geometry_limits straighten = {.min_planes = 3, .spacing_tolerance = 0.01, .straighten = true};
    for (int32_t rest = 1; rest < 3; rest++) {
        add_acquisition(1, rest, 2.5 * (SLICES - 1 - rest) + 1.25, 2.5);
        add_acquisition(2, SLICES, 0, 2.5);
        struct geometry_series *result = group_with(&straighten);
        for (int32_t s = 0; s < result->stack_count; s++)
            ck_assert_msg(!result->stacks[s].accepted || result->stacks[s].plane_count == SLICES,
                          "%d slices of another acquisition", rest);
        geometry_series_free(result);
        free_series();
    }
}

END_TEST

/* Odd slices first, complete or with a missing slice; overlapping slices of a moving table; all at one time. */
START_TEST(time_ranges_of_one_volume_are_joined)
{
    add_pass(120000, 0.5, SLICES / 2, 0, 5);
    add_pass(120200, 0.5, SLICES / 2, 2.5, 5);
    for (int32_t i = 0; i < SLICES; i++)
        series.storage[i].instance_number = 2 * (i % 10) + i / 10 + 1;
    ck_assert_str_eq(stacks_of_group(), ":20");
    series.instances[9] = series.instances[SLICES - 1]; /* the last but one of the stack */
    series.count--;
    ck_assert_str_eq(stacks_of_group(), ":19!MISSING_SLICE");
    series.count++;
    free_series();
    add_pass(120000, 0.5, SLICES, 0, 1.25);
    ck_assert_str_eq(stacks_of_group(), ":20");
    free_series();
    add_pass(120000, 0, SLICES, 0, 1.25);
    ck_assert_str_eq(stacks_of_group(), ":20");
}

END_TEST

START_TEST(monitoring_slices_are_a_pass)
{
    const struct geometry_limits newest = {.min_planes = 3, .spacing_tolerance = 0.01, .newest_of_duplicates = true};
    add_pass(120000, 2, 5, 25, 0);
    add_pass(120030, 0.5, SLICES, 0, 2.5);
    struct geometry_series *result = group_with(&newest);
    ck_assert_int_eq(result->stack_count, 2);
    ck_assert(!result->stacks[0].accepted && result->stacks[1].accepted);
    ck_assert_int_eq(result->stacks[1].plane_count, SLICES);
    geometry_series_free(result);
}

END_TEST

/* Each slice is there twice: volumes must consist of one acquisition each. */
START_TEST(copies_of_passes_stay_separate)
{
    for (int copy = 0; copy < 2; copy++) {
        add_acquisition(1, SLICES, 0, 2.5);
        add_acquisition(2, SLICES, 1.25, 2.5);
    }
    ck_assert_str_eq(stacks_of_group(), "acquisition 1, volume 1:20 | acquisition 1, volume 2:20 | "
                                        "acquisition 2, volume 1:20 | acquisition 2, volume 2:20");
}

END_TEST

/* ---- numbers of several volumes ---- */

static void
add_numbered(const int32_t *numbers, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        add_touching(i);
        last()->instance_number = numbers[i];
    }
}

START_TEST(numbers_of_several_volumes_are_refused)
{
    static const int32_t numbers[][8] = {
        {1, 10, 3, 12, 5, 14, 7, 16},    /* of 2 volumes of 8 slices, alternating */
        {1, 2, 11, 12, 5, 14, 7, 8},     /* at random */
        {24, 15, 22, 21, 12, 19, 18, 9}, /* of 3 volumes, descending */
        {1, 4, 5, 8, 9, 12, 13, 16},     /* of 2 volumes, slice by slice */
        {1, 5, 8, 10, 14, 16, 19, 23},   /* of 3 volumes */
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        add_numbered(numbers[i], 8);
        for (int accept = 0; accept < 2; accept++) {
            const struct geometry_limits missing = {
                .min_planes = 3, .spacing_tolerance = 0.01, .allow_missing = accept};
            struct geometry_series *result = group_with(&missing);
            ck_assert_msg(result->stacks[0].error.code == CODE_VOLUMES_MIXED, "numbers of row %zu", i);
            geometry_series_free(result);
        }
        free_series();
    }
}

END_TEST

/* Volumes that differ only in their numbers, from the last slice of one to the last but one of another. */
START_TEST(volumes_begin_with_their_first_slice)
{
    for (int32_t first = 0; first < 8; first += 7) {
        for (int32_t i = first; i < first + 24; i++) {
            add_touching(i % 8);
            last()->instance_number = i + 1;
        }
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stacks[0].accepted, first == 0);
        ck_assert_int_eq(result->stack_count, first == 0 ? 3 : 1);
        geometry_series_free(result);
        free_series();
    }
}

END_TEST

START_TEST(numbers_of_one_volume_are_accepted)
{
    static const int32_t numbers[][8] = {
        {1, 2, 3, 4, 5, 6, 7, 8},        {8, 7, 6, 5, 4, 3, 2, 1}, {1, 5, 2, 6, 3, 7, 4, 8}, /* odd slices first */
        {5, 6, 7, 8, 1, 2, 3, 4},                                                            /* cyclic */
        {1, 4, 7, 10, 13, 16, 19, 22},   /* the first of 3 echoes; the others are separate series */
        {10, 19, 28, 37, 46, 55, 64, 73} /* steps of a whole volume and one */
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        add_numbered(numbers[i], 8);
        ck_assert_msg(code_of_group() == CODE_NONE, "numbers of row %zu", i);
        free_series();
    }
}

END_TEST

/* The rest of 10 slices is unevenly spaced, and so are its numbers. Slices of two thicknesses have all numbers. */
START_TEST(uneven_distances_that_follow_the_numbers_are_gaps)
{
    static const int32_t left[] = {1, 3, 5, 6, 8, 10};
    const struct geometry_limits straighten = {.min_planes = 3, .spacing_tolerance = 0.01, .straighten = true};
    for (int even = 0; even < 2; even++) {
        for (int32_t i = 0; i < 6; i++) {
            add_slice(2.5 * left[i]);
            last()->instance_number = even ? i + 1 : left[i];
        }
        struct geometry_series *result = group_with(&straighten);
        ck_assert_int_eq(result->stacks[0].error.code, even ? CODE_NONE : CODE_INCOMPLETE_SERIES);
        geometry_series_free(result);
        free_series();
    }
}

END_TEST

START_TEST(a_single_position_is_not_a_volume)
{
    for (int32_t i = 0; i < 6; i++)
        add_slice(10);
    ck_assert_str_eq(stacks_of_group(), ":6!DUPLICATE_POSITION");
}

END_TEST

/* ---- counts ---- */

static void
announce(enum dicom_count count, int32_t number)
{
    for (int32_t i = 0; i < series.count; i++)
        series.storage[i].counts[count] = number;
}

START_TEST(announced_locations_are_needed)
{
    for (int32_t i = 0; i < SLICES; i++)
        add_touching(i);
    announce((enum dicom_count)_i, SLICES);
    ck_assert_str_eq(stacks_of_group(), ":20");
    announce((enum dicom_count)_i, SLICES + 1);
    ck_assert_str_eq(stacks_of_group(), ":20!INCOMPLETE_SERIES");
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "20 of the 21 slice locations"));
    for (int32_t i = 0; i < series.count; i++)
        series.storage[i].frames[0].derived = true; /* a reformat has the counts of its source */
    ck_assert_str_eq(stacks_of_group(), ":20");
}

END_TEST

/* Two echoes of half of the slices: as many images as announced locations. */
START_TEST(images_are_no_locations)
{
    for (int32_t i = 0; i < SLICES / 2; i++)
        for (int echo = 0; echo < 2; echo++)
            set_echo(add_touching(i), echo);
    announce(DICOM_COUNT_philips, SLICES);
    ck_assert_str_eq(stacks_of_group(), "echo 10 ms:10!INCOMPLETE_SERIES | echo 20 ms:10!INCOMPLETE_SERIES");
    announce(DICOM_COUNT_philips, SLICES / 2);
    ck_assert_str_eq(stacks_of_group(), "echo 10 ms:10 | echo 20 ms:10");
}

END_TEST

START_TEST(contradictory_counts_hold_the_series)
{
    for (int32_t i = 0; i < SLICES; i++)
        add_touching(i);
    announce(DICOM_COUNT_siemens, SLICES);
    announce(DICOM_COUNT_ge, SLICES - 2);
    const struct error *error = error_of_group();
    ck_assert_int_eq(error->code, CODE_INCOMPLETE_SERIES);
    ck_assert_ptr_nonnull(strstr(error->message, "20 slice locations"));
    ck_assert_ptr_nonnull(strstr(error->message, "18 by Locations in Acquisition"));
}

END_TEST

/* Adds a multi-frame image in parts of five frames. */
static void
add_part(int32_t number, int32_t total)
{
    struct dicom_frame *frames = add_frames(5);
    for (int32_t f = 0; f < 5; f++)
        place_frame(&frames[f], axial, 0, 0, 2.5 * (5 * (number - 1) + f));
    last()->multi_frame = true;
    last()->concatenation_number = number;
    last()->concatenation_total = total;
    strcpy(last()->concatenation_uid, "1.5");
}

START_TEST(all_parts_of_a_concatenation_are_required)
{
    add_part(1, 3);
    add_part(2, 3);
    ck_assert_str_eq(stacks_of_group(), ":10!INCOMPLETE_SERIES");
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "2 of the 3 parts"));
    add_part(3, 3);
    ck_assert_str_eq(stacks_of_group(), ":15");
    free_series();
    add_part(2, 0); /* without a total */
    add_part(3, 0);
    ck_assert_str_eq(stacks_of_group(), ":10!INCOMPLETE_SERIES");
}

END_TEST

/* Files 2 to 4 of a multi-frame series that is not a concatenation. */
START_TEST(the_first_multi_frame_file_is_needed)
{
    for (int32_t number = 2; number <= 4; number++) {
        add_part(number, 0);
        last()->concatenation_uid[0] = '\0';
        last()->instance_number = number;
    }
    ck_assert_str_eq(stacks_of_group(), ":15!INCOMPLETE_SERIES");
    add_part(1, 0);
    last()->concatenation_uid[0] = '\0';
    last()->instance_number = 1;
    ck_assert_str_eq(stacks_of_group(), ":20");
}

END_TEST

START_TEST(numbers_from_1_to_n_are_complete)
{
    for (int32_t i = 0; i < SLICES; i++) {
        add_touching(i);
        last()->instance_number = (i + 6) % SLICES + 1;
    }
    ck_assert_str_eq(stacks_of_group(), ":20");
}

END_TEST

START_TEST(every_second_slice_is_no_volume)
{
    for (int32_t i = 0; i < SLICES; i += 2) {
        add_touching(i);
        last()->instance_number = i + 1;
    }
    ck_assert_str_eq(stacks_of_group(), ":10!INCOMPLETE_SERIES");
    for (int32_t i = 0; i < series.count; i++)
        series.storage[i].instance_number = i + 1; /* slices with gaps */
    ck_assert_str_eq(stacks_of_group(), ":10");
    for (int32_t i = 0; i < series.count; i++)
        series.storage[i].frames[0].spacing_between_slices = 2.5;
    ck_assert_str_eq(stacks_of_group(), ":10!INCOMPLETE_SERIES");
}

END_TEST

/* ---- positions ---- */

static void
write_positions(void)
{
    for (int32_t i = 0; i < series.count; i++)
        for (int c = 0; c < 3; c++)
            sprintf(series.storage[i].frames[0].position_text[c], "%.4f", series.storage[i].frames[0].position[c]);
}

START_TEST(rounded_positions_are_regular)
{
    const struct geometry_limits straighten = {.min_planes = 2, .spacing_tolerance = 0.03, .straighten = true};
    for (int32_t i = 0; i < 40; i++)
        add_slice((double)(int)(6.25 * i + 0.5) / 10); /* 0.625 mm rounded to 0.1, written with four decimals */
    write_positions();
    struct geometry_series *result = group_with(&straighten);
    ck_assert(result->stacks[0].accepted && !result->stacks[0].uneven);
    geometry_series_free(result);
    free_series();
    for (int32_t i = 0; i < 40; i++)
        add_slice(3.27 * i + (i > 20 ? 0.04 : 0)); /* one step of 3.31 */
    write_positions();
    result = group_with(&straighten);
    ck_assert(result->stacks[0].accepted && !result->stacks[0].uneven);
    geometry_series_free(result);
}

END_TEST

/* Each step differs little from the one before, but the stack is far from regular. */
START_TEST(steps_that_grow_are_uneven)
{
    const struct geometry_limits straighten = {.min_planes = 2, .spacing_tolerance = 0.03, .straighten = true};
    for (int32_t i = 0; i < 100; i++)
        add_slice(i < 50 ? 3 * i : 150 + 3.08 * (i - 50));
    struct geometry_series *result = group_with(&straighten);
    ck_assert(result->stacks[0].accepted && result->stacks[0].uneven);
    geometry_series_free(result);
    ck_assert_int_eq(code_of_group(), CODE_SPACING_NOT_UNIFORM);
}

END_TEST

START_TEST(an_accepted_gap_is_filled)
{
    const struct geometry_limits accept = {
        .min_planes = 2, .spacing_tolerance = 0.03, .straighten = true, .allow_missing = true};
    for (int32_t i = 0; i < SLICES; i++)
        add_slice(i < 10 ? 3 * i : 30 + 6 * (i - 10));
    struct geometry_series *result = group_with(&accept);
    ck_assert(result->stacks[0].accepted && result->stacks[0].uneven);
    geometry_series_free(result);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_pieces");
    TCase *pieces = new_case(suite, "pieces");
    tcase_add_loop_test(pieces, mixed_volumes_are_refused, 0, KEYS);
    tcase_add_test(pieces, shifted_volumes_are_two);
    tcase_add_test(pieces, jitter_is_one_value);
    tcase_add_test(pieces, overlapping_acquisitions_are_two_volumes);
    tcase_add_test(pieces, acquisitions_of_one_volume_are_joined);
    tcase_add_test(pieces, monitoring_slices_are_outside_the_volume);
    tcase_add_test(pieces, a_single_position_is_not_a_volume);
    tcase_add_loop_test(pieces, announced_locations_are_needed, DICOM_COUNT_siemens, DICOM_COUNTS);
    tcase_add_test(pieces, images_are_no_locations);
    tcase_add_test(pieces, contradictory_counts_hold_the_series);
    tcase_add_test(pieces, all_parts_of_a_concatenation_are_required);
    tcase_add_test(pieces, the_first_multi_frame_file_is_needed);
    tcase_add_test(pieces, numbers_from_1_to_n_are_complete);
    tcase_add_test(pieces, every_second_slice_is_no_volume);
    tcase_add_test(pieces, rounded_positions_are_regular);
    tcase_add_test(pieces, steps_that_grow_are_uneven);
    tcase_add_test(pieces, an_accepted_gap_is_filled);
    TCase *passes = new_case(suite, "passes");
    tcase_add_test(passes, passes_in_time_are_volumes);
    tcase_add_test(passes, incomplete_passes_are_refused);
    tcase_add_test(passes, remnants_of_acquisitions_are_refused);
    tcase_add_test(passes, time_ranges_of_one_volume_are_joined);
    tcase_add_test(passes, monitoring_slices_are_a_pass);
    tcase_add_test(passes, copies_of_passes_stay_separate);
    TCase *mixed = new_case(suite, "numbers");
    tcase_add_test(mixed, numbers_of_several_volumes_are_refused);
    tcase_add_test(mixed, volumes_begin_with_their_first_slice);
    tcase_add_test(mixed, numbers_of_one_volume_are_accepted);
    tcase_add_test(mixed, uneven_distances_that_follow_the_numbers_are_gaps);
    return suite_run(suite);
}
