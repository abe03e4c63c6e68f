/* Missing slices without a gap, and the digits of positions. */
#include "tests/unit/series_sample.h"

#include <math.h>

/* ---- missing slices ---- */

START_TEST(a_position_missing_in_one_volume)
{
    for (int i = 0; i < 3 * 8; i++)
        if (i != 12)
            add_slice(2 * (i % 8));
    ck_assert_int_eq(code_of_group(), CODE_INCOMPLETE_SERIES);
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "7 of 8 positions have 3 slices"));
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "2 at 8 mm"));
    const struct geometry_limits missing = {.min_planes = 2, .spacing_tolerance = 0.01, .allow_missing = true};
    struct geometry_series *result = group_with(&missing);
    ck_assert_int_eq(result->stacks[0].error.code, CODE_DUPLICATE_POSITION);
    geometry_series_free(result);
}

END_TEST

/* Each lacks a slice of the other: neither is complete. */
START_TEST(an_end_slice_present_in_sibling_volumes)
{
    for (int i = 0; i < 10; i++) {
        if (i > 0)
            strcpy(add_slice(2 * i)->echo, "1");
        if (i < 9)
            strcpy(add_slice(2 * i)->echo, "2");
    }
    ck_assert_str_eq(stacks_of_group(), "echo 1:9!INCOMPLETE_SERIES | echo 2:9!INCOMPLETE_SERIES");
    const struct geometry_limits missing = {.min_planes = 2, .spacing_tolerance = 0.01, .allow_missing = true};
    struct geometry_series *result = group_with(&missing);
    ck_assert(result->stacks[0].accepted && result->stacks[1].accepted);
    geometry_series_free(result);
    result = group();
    static const char *const told[2][2] = {
        {"Stack \"echo 1\" lacks 1 of the slices that other", "it has no slice at 0 mm along"},
        {"Stack \"echo 2\" lacks 1 of the slices that other", "it has no slice at 18 mm along"}};

    for (int s = 0; s < 2; s++) {
        const char *message = result->stacks[s].error.message;
        ck_assert_ptr_nonnull(strstr(message, told[s][0]));
        ck_assert_ptr_nonnull(strstr(message, told[s][1]));
        ck_assert_ptr_nonnull(strstr(message, s ? "stack \"echo 1\". That one in turn lacks 1: "
                                                  "it has no slice at 0 mm."
                                                : "stack \"echo 2\". That one in turn lacks 1: "
                                                  "it has no slice at 18 mm."));
        ck_assert_str_eq(message + strlen(message) - strlen(GEOMETRY_REMEDY), GEOMETRY_REMEDY);
    }
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
        enum code alone, with_scout, with_scout_of_its_own;
    } cases[] = {

#define SAME(images, expected, code) {images, expected, code, code, code}
        SAME(0, 0, CODE_NONE),
        SAME(10, 10, CODE_NONE),
        SAME(9, 9, CODE_NONE),
        {11, 11, CODE_INCOMPLETE_SERIES, CODE_NONE, CODE_INCOMPLETE_SERIES},
        SAME(12, 12, CODE_INCOMPLETE_SERIES),
        SAME(10, 50, CODE_NONE), /* one time of five */
        {11, 55, CODE_INCOMPLETE_SERIES, CODE_NONE, CODE_INCOMPLETE_SERIES},
        SAME(9, 45, CODE_INCOMPLETE_SERIES),
        SAME(1, 40, CODE_NONE),
        SAME(0, 30, CODE_INCOMPLETE_SERIES),
        {0, 11, CODE_INCOMPLETE_SERIES, CODE_NONE, CODE_INCOMPLETE_SERIES},
#undef SAME
    };

    add_slices(10, 0, 2);
    announce(cases[_i].images, cases[_i].expected);
    ck_assert_int_eq(code_of_group(), cases[_i].alone);
    /* A scout is excluded, but may have been counted, which its own number shows. */
    place_frame(add_frames(1), coronal, 0, 0, 0);
    last()->frames[0].excluded = CODE_LOCALIZER;
    for (int same = 0; same < 2; same++) {
        last()->images_in_acquisition = same ? cases[_i].images : 2;
        last()->expected_instances = same ? cases[_i].expected : 2;
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stacks[0].error.code, same ? cases[_i].with_scout : cases[_i].with_scout_of_its_own);
        geometry_series_free(result);
    }
}

END_TEST

/* Three of sixteen times, each complete; all times in one number. */
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

/* Two counted scouts of a series of several times. */
START_TEST(scouts_of_several_times)
{
    for (int i = 0; i < 3 * 8; i++)
        add_slice(2 * (i % 8));
    for (int i = 0; i < 2; i++) {
        place_frame(add_frames(1), coronal, 0, i, 0);
        last()->frames[0].excluded = CODE_LOCALIZER;
    }
    announce(26, 78);
    ck_assert_str_eq(stacks_of_group(), "localizer:2!LOCALIZER | volume 1:8 | volume 2:8 | volume 3:8");
    announce(27, 81);
    ck_assert_ptr_nonnull(strstr(stacks_of_group(), "volume 1:8!INCOMPLETE_SERIES"));
}

END_TEST

/* A duplicate must not replace a missing slice in the count. */
START_TEST(older_slices_are_not_counted)
{
    add_slices(10, 0, 2);
    add_slice(4);
    last()->instance_number = series.storage[2].instance_number;
    strcpy(last()->created, "20200101");
    for (int32_t i = 0; i < 10; i++)
        strcpy(series.storage[i].created, "20200102");
    announce(11, 11);
    const struct geometry_limits newest = {.min_planes = 2, .spacing_tolerance = 0.01, .newest_of_duplicates = true};
    struct geometry_series *result = group_with(&newest);
    ck_assert_int_eq(result->stack_count, 2);
    ck_assert_int_eq(result->stacks[0].error.code, CODE_INCOMPLETE_SERIES);
    ck_assert_int_eq(result->stacks[1].error.code, CODE_DUPLICATE_POSITION);
    geometry_series_free(result);
}

END_TEST

/* ---- temporal positions ---- */

/* Adds volumes with these identifiers, one letter each; " " has none. */
static void
add_times(const char *identifiers, int32_t announced)
{
    for (int t = 0; identifiers[t]; t++)
        for (int i = 0; i < 6; i++) {
            const char text[2] = {identifiers[t] == ' ' ? '\0' : identifiers[t], '\0'};
            strcpy(add_slice(2 * i)->temporal, text);
            last()->temporal_positions = announced;
        }
}

START_TEST(temporal_positions)
{
    static const struct {
        const char *identifiers;
        int32_t announced;
        enum code code;
        const char *lacking; /* NULL: no list */
        int32_t times;
    } cases[] = {
        {"123", 0, CODE_NONE, NULL, 0},
        {"1234", 4, CODE_NONE, NULL, 4},
        {"1234", 3, CODE_NONE, NULL, 4},
        {"123", 4, CODE_INCOMPLETE_SERIES, "There are 3 of the 4 temporal positions", 3},
        {"123", 4, CODE_INCOMPLETE_SERIES, "(0020,0100) 4.", 3},
        {"14", 8, CODE_INCOMPLETE_SERIES, "(0020,0100) 2 to 3, 5 to 8.", 2},
        {"234", 4, CODE_INCOMPLETE_SERIES, "(0020,0100) 1.", 3},
        {"012", 4, CODE_INCOMPLETE_SERIES, "announces. Send the missing images", 3},
        {"abc", 4, CODE_INCOMPLETE_SERIES, "announces. Send the missing images", 3},
        {"2", 5, CODE_NONE, NULL, 1},    /* each a separate series */
        {"   ", 16, CODE_NONE, NULL, 3}, /* split by their numbers */
        {"111", 16, CODE_NONE, NULL, 3}, /* same */
    };

    add_times(cases[_i].identifiers, cases[_i].announced);
    for (int missing = 0; missing < 2; missing++) {
        const struct geometry_limits taken = {.min_planes = 2, .spacing_tolerance = 0.01, .allow_missing = missing};
        struct geometry_series *result = group_with(&taken);
        ck_assert_int_eq(result->times, cases[_i].times);
        ck_assert_int_eq(result->times_announced, cases[_i].announced);
        for (int32_t s = 0; s < result->stack_count; s++) {
            const struct error *error = &result->stacks[s].error;
            ck_assert_int_eq(error->code, missing ? CODE_NONE : cases[_i].code);
            if (error->code != CODE_NONE)
                ck_assert_msg(strstr(error->message, cases[_i].lacking), "%s", error->message);
        }
        geometry_series_free(result);
    }
}

END_TEST

/* A stack without an identifier is of another volume; echoes are not times; a long list is truncated. */
START_TEST(temporal_positions_with_other_keys)
{
    add_times("13579", 40);
    for (int i = 0; i < 6; i++)
        place_frame(add_frames(1), coronal, 0, 2 * i, 0);
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 6);
    for (int32_t s = 0; s < 6; s++)
        ck_assert_int_eq(result->stacks[s].accepted, strncmp(result->stacks[s].name, "coronal", 7) == 0);
    geometry_series_free(result);
    free_series();
    for (int t = 1; t < 100; t += 2)
        for (int i = 0; i < 6; i++) {
            snprintf(add_slice(2 * i)->temporal, DICOM_DS_SIZE, "%d", t);
            last()->temporal_positions = 100;
        }
    result = group();
    ck_assert_ptr_nonnull(strstr(result->stacks[0].error.message, "2, 4, 6, 8, "));
    ck_assert_ptr_nonnull(strstr(result->stacks[0].error.message, ", ...."));
    geometry_series_free(result);
    free_series();
    add_times("    ", 8);
    for (int i = 0; i < 24; i++)
        strcpy(series.storage[i].frames[0].echo, i / 12 ? "2" : "1");
    result = group();
    ck_assert_int_eq(result->stack_count, 4);
    ck_assert_int_eq(result->times, 2);
    geometry_series_free(result);
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

/* The missing number is that of the slice that the first lacks, not one before the second. */
START_TEST(numbers_missing_in_sibling_volumes)
{
    for (int i = 0; i < 15; i++) {
        strcpy(add_slice(2 * (i < 7 ? i : i - 7))->echo, i < 7 ? "1" : "2");
        series.storage[i].instance_number += i >= 7;
    }
    ck_assert_str_eq(stacks_of_group(), "echo 1:7!INCOMPLETE_SERIES | echo 2:8");
}

END_TEST

/* The rest of two volumes looks like one. */
START_TEST(numbers_of_two_volumes)
{
    add_slices(10, 0, 2);
    for (int i = 6; i < 10; i++)
        series.storage[i].instance_number += 10;
    ck_assert_int_eq(code_of_group(), CODE_VOLUMES_MIXED);
    for (int i = 6; i < 10; i++)
        series.storage[i].instance_number -= 3; /* another image was in between */
    ck_assert_int_eq(code_of_group(), CODE_NONE);
    for (int i = 0; i < 10; i++)
        series.storage[i].instance_number = 1 + 4 * i + (i >= 6);
    ck_assert_int_eq(code_of_group(), CODE_VOLUMES_MIXED);
    for (int i = 0; i < 10; i++)
        series.storage[i].instance_number = 2 + 4 * i;
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

/* ---- digits ---- */

static const struct geometry_limits straightening = {.min_planes = 2, .spacing_tolerance = 0.03, .straighten = true};

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
            text[strlen(text) - 1] = '\0'; /* as by some senders */
    }
}

START_TEST(digits_as_written_in_the_file)
{
    static const struct {
        double step;
        int decimals;
        enum code code;
    } cases[] = {
        {1.25, 1, CODE_NONE}, {0.75, 1, CODE_NONE},         {0.625, 1, CODE_NONE}, {5, 0, CODE_NONE},
        {2.5, 0, CODE_NONE},  {6.3, 0, CODE_NONE},          {1.25, 2, CODE_NONE},  {0.3, 1, CODE_NONE},
        {0.25, 1, CODE_NONE}, {1.5, 0, CODE_MISSING_SLICE}, /* steps of 1 and 2: the digits hide half a step */
        {3.27, 0, CODE_NONE}, {1.0 / 3, 1, CODE_NONE},      {0.004, 6, CODE_NONE},
    };

    for (int32_t i = 0; i < 60; i++)
        add_written(axial, -100, 20.5, -73.4567 + i * cases[_i].step, cases[_i].decimals);
    ck_assert_int_eq(code_of_group(), cases[_i].code);
}

END_TEST

/* Of three coordinates, each rounded. */
START_TEST(digits_of_oblique_positions)
{
    const double angle = 0.7, orientation[6] = {cos(angle), sin(angle) * 0.6, sin(angle) * 0.8, 0, 0.8, -0.6};
    double normal[3] = {orientation[1] * orientation[5] - orientation[2] * orientation[4],
                        orientation[2] * orientation[3] - orientation[0] * orientation[5],
                        orientation[0] * orientation[4] - orientation[1] * orientation[3]};
    for (int32_t i = 0; i < 200; i++)
        add_written(orientation, 12.345 + normal[0] * 1.25 * i, normal[1] * 1.25 * i, 40 + normal[2] * 1.25 * i, 1);
    ck_assert_int_eq(code_of_group(), CODE_NONE);
}

END_TEST

/* A slice that is misplaced by more than its digits must be detected, for any number of digits. */
START_TEST(rounding_does_not_hide_a_longer_step)
{
    for (int32_t i = 0; i < 40; i++)
        add_written(axial, 0, 0, 1.25 * i + (i > 20 ? 0.3 : 0), 1);
    ck_assert_int_eq(code_of_group(), CODE_SPACING_NOT_UNIFORM);
}

END_TEST

/* Each text as a scanner wrote it; 1: each slice lies within half of the last digit of equal steps, by hand. */
START_TEST(digits_by_hand)
{
    static const struct {
        const char *z[8];
        bool even;
    } cases[] = {
        {{"0", "3", "7", "10", "13", "16", "20", "23"}, true},  /* 3.27 mm */
        {{"0", "3", "5", "8", "10", "13", "15", "18"}, true},   /* 2.5 mm */
        {{"0", "3", "7", "10", "14", "17", "21", "24"}, true},  /* 3.5 mm, from -0.4 */
        {{"0", "3", "7", "10", "15", "18", "21", "25"}, false}, /* 3.27 mm, and half a step after the fourth */
        {{"0", "2", "4", "6", "9", "11", "13", "15"}, false},   /* one step of 3 among 2 */
        {{"0.0", "0.6", "1.3", "1.9", "2.5", "3.1", "3.8", "4.4"}, true},             /* 0.625 mm */
        {{"0.0", "0.6", "1.3", "1.9", "2.8", "3.4", "4.1", "4.7"}, false},            /* half a step after the fourth */
        {{"0.0", "0.3", "0.5", "0.8", "1.0", "1.3", "1.5", "1.8"}, true},             /* 0.25 mm */
        {{"-2.10", "-1.47", "-0.85", "-0.22", "0.40", "1.02", "1.65", "2.28"}, true}, /* 0.625 mm, from -2.1 */
        {{"-2.10", "-1.47", "-0.85", "-0.22", "0.71", "1.34", "1.96", "2.59"}, false}, /* half a step besides */
        {{"0.000000", "0.333333", "0.666667", "1.000000", "1.333333", "1.666667", "2.000000", "2.333333"}, true},
        {{"0.000000", "0.333333", "0.666667", "1.000000", "1.500000", "1.833333", "2.166667", "2.500000"}, false},
        {{"-73.4000015", "-72.8000031", "-72.0999985", "-71.5", "-70.9000015", "-70.3000031", "-69.5999985", "-69"},
         true}, /* 0.625 mm, to 0.1 in single precision */
    };

    for (int32_t i = 0; i < 8; i++) {
        struct dicom_frame *frame = add_slice(strtod(cases[_i].z[i], NULL));
        const char *const position[3] = {"-10", "-20", cases[_i].z[i]};
        for (int c = 0; c < 3; c++)
            strcpy(frame->position_text[c], position[c]);
    }
    struct geometry_series *result = group_with(&straightening);
    ck_assert_int_eq(result->stack_count, 1);
    const struct geometry_stack *stack = result->stacks;
    ck_assert(stack->accepted ? geometry_needs_resampling(stack) != cases[_i].even : !cases[_i].even);
    geometry_series_free(result);
}

END_TEST

/*
 * Equal steps along a random normal, written with few digits, are never resampled. A stack with half a step too much at
 * one place is never taken for one of equal steps. By hand: the gap puts a plane of n at least (1 - 2 / n) / 4 of a step
 * off each line, 0.225 for 20 planes. Rounding and tolerance explain at most the units of the digits, a sixth of a step
 * here, and half of the tolerance, at most 0.034.
 */
START_TEST(rounding_and_half_a_step)
{
    enum { CASES = 400 };

    uint32_t state = 5;
    for (int32_t number = 0; number < CASES; number++) {
#define DRAW(low, high) ((low) + ((high) - (low)) * (double)next_random(&state) / 16777216.0)
        const double a = DRAW(-M_PI, M_PI), b = DRAW(-M_PI, M_PI), turn = number % 5 ? pow(10, -(3 + number % 4)) : 0;
        const double written[6] = {cos(a), sin(a) * cos(b), sin(a) * sin(b), 0, -sin(b), cos(b)};
        const double normal[3] = {sin(a), -cos(a) * cos(b), -cos(a) * sin(b)};
        const double origin[3] = {DRAW(-300, 300), DRAW(-300, 300), DRAW(-900, 900)};
        const int decimals = number % 3 == 2 ? 6 : number % 3 + 1;
        const double unit = pow(10, -decimals) * (fabs(normal[0]) + fabs(normal[1]) + fabs(normal[2]));
        const double step = DRAW(fmax(6 * unit, 0.3), 8);
        const int32_t count = 20 + (int32_t)DRAW(0, 280), after = 1 + (int32_t)DRAW(0, count - 1.01);
        double orientation[6];
        for (int c = 0; c < 6; c++)
            orientation[c] = turn > 0 ? round(written[c] / turn) * turn : written[c];
        for (int gap = 0; gap < 2; gap++) {
            free_series();
            for (int32_t i = 0; i < count; i++) {
                const double along = step * (i + (gap && i >= after ? 0.5 : 0));
                add_written(orientation, origin[0] + along * normal[0], origin[1] + along * normal[1],
                            origin[2] + along * normal[2], decimals);
            }
            struct geometry_series *result = group_with(&straightening);
            ck_assert_int_eq(result->stack_count, 1);
            const struct geometry_stack *stack = result->stacks;
            ck_assert_msg(gap ? !stack->accepted || stack->uneven
                              : stack->accepted && !geometry_needs_resampling(stack),
                          "case %d: %d slices, step %g, %d decimals, gap %d: %s", number, count, step, decimals, gap,
                          stack->accepted ? "accepted" : stack->error.message);
            geometry_series_free(result);
        }
    }
}

END_TEST

/* Digits finer than the tolerance must not excuse a step: one 1.25 % too long, with a tolerance of 1 % and of 3 %. */
START_TEST(fine_digits_leave_the_tolerance)
{
    for (int percent = 1; percent <= 3; percent += 2) {
        free_series();
        for (int32_t i = 0; i < 6; i++)
            add_written(axial, 0, 0, 26.6667 * i + (i > 2 ? 0.3333 : 0), 4);
        const struct geometry_limits tolerance = {
            .min_planes = 2, .spacing_tolerance = percent / 100.0, .straighten = true};
        struct geometry_series *result = group_with(&tolerance);
        ck_assert_int_eq(result->stacks->uneven, percent == 1);
        geometry_series_free(result);
    }
}

END_TEST

/* 399 slices: of a third of a mm, and of positions that were rounded, then added to. */
START_TEST(rounding_that_adds_up)
{
    for (int kind = 0; kind < 3; kind++) {
        free_series();
        for (int32_t i = 0; i < 399; i++) {
            const double exact = i / 3.0, sum = i * 0.3;
            /* The last third of a stack of 0.3 mm goes on with 0.35 mm. */
            const double drift = i < 266 ? sum : 266 * 0.3 + (i - 266) * 0.35;
            add_written(axial, 0, 0, kind == 0 ? exact : kind == 1 ? sum : drift, 1);
        }
        struct geometry_series *result = group_with(&straightening);
        ck_assert(result->stacks->accepted);
        ck_assert_int_eq(result->stacks->uneven, kind == 2);
        geometry_series_free(result);
    }
}

END_TEST

/* Rounding may hide a shear between two slices, but not over all of them. */
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
    tcase_add_test(whole, a_position_missing_in_one_volume);
    tcase_add_test(whole, an_end_slice_present_in_sibling_volumes);
    tcase_add_loop_test(whole, images_in_acquisition, 0, 11);
    tcase_add_test(whole, images_of_several_times);
    tcase_add_test(whole, scouts_of_several_times);
    tcase_add_test(whole, older_slices_are_not_counted);
    tcase_add_loop_test(whole, temporal_positions, 0, 12);
    tcase_add_test(whole, temporal_positions_with_other_keys);
    tcase_add_loop_test(whole, numbers_before_the_first, 0, 12);
    tcase_add_test(whole, numbers_between_stacks);
    tcase_add_test(whole, numbers_missing_in_sibling_volumes);
    tcase_add_test(whole, numbers_of_two_volumes);
    TCase *digits = new_case(suite, "digits");
    tcase_add_loop_test(digits, digits_as_written_in_the_file, 0, 13);
    tcase_add_test(digits, digits_of_oblique_positions);
    tcase_add_loop_test(digits, digits_by_hand, 0, 13);
    tcase_add_test(digits, rounding_and_half_a_step);
    tcase_add_test(digits, rounding_that_adds_up);
    tcase_add_test(digits, fine_digits_leave_the_tolerance);
    tcase_add_test(digits, rounding_does_not_hide_a_longer_step);
    tcase_add_test(digits, digits_do_not_hide_a_shear);
    return suite_run(suite);
}
