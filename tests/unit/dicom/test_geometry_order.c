/* Repeated positions without a distinguishing key: volumes by the general rule, and duplicates. */
#include "tests/unit/series_sample.h"

/* ---- the general rule ---- */

enum { SLICES = 6, VOLUMES = 3 };

static void
number_by_volume(int volume, int slice)
{
    last()->instance_number = 10 + volume * SLICES + slice;
}

static void
number_by_slice(int volume, int slice)
{
    last()->instance_number = 7 + slice * VOLUMES + volume;
}

static void
number_upside_down(int volume, int slice)
{
    last()->instance_number = 100 - (volume * SLICES + slice);
}

static void
acquired_by_volume(int volume, int slice)
{
    (void)slice;
    sprintf(last()->frames[0].acquired, "202611012359%02d", 57 + volume);
    if (volume == 2)
        strcpy(last()->frames[0].acquired, "20261102000001");
}

static void
acquired_slice_by_slice(int volume, int slice)
{
    sprintf(last()->frames[0].acquired, "20261101120%d%02d.5", volume, slice * 10);
}

static void
acquisition_numbers(int volume, int slice)
{
    sprintf(last()->frames[0].acquisition, "%d", 1 + volume * SLICES + slice);
}

static void
content_by_volume(int volume, int slice)
{
    sprintf(last()->content, "12%02d0%d", volume, slice);
}

/* Numbers that restart with every volume do not distinguish volumes. */
static void
number_alike(int volume, int slice)
{
    (void)volume;
    last()->instance_number = slice + 1;
}

/* All but one slice of each volume have consecutive numbers. */
static void
number_out_of_line(int volume, int slice)
{
    number_by_volume(volume, slice);
    if (volume == 1 && slice == 2)
        last()->instance_number = 500;
}

/* Numbers the ends of two volumes and of two others: 1-3 with 10-12, 13-15 with 22-24, ... */
static void
number_in_halves(int volume, int slice)
{
    last()->instance_number = 1 + volume * 2 * SLICES + slice + (slice >= SLICES / 2 ? SLICES : 0);
}

static const struct {
    void (*tell)(int volume, int slice);
    const char *what; /* NULL: no distinction */
} rules[] = {
    {number_by_volume, "Instance Number"},
    {number_by_slice, "Instance Number"},
    {number_upside_down, "Instance Number"},
    {acquired_by_volume, "Acquisition Date and Time"},
    {acquired_slice_by_slice, "Acquisition Date and Time"},
    {acquisition_numbers, "Acquisition Number"},
    {content_by_volume, "Content Date and Time"},
    {number_alike, NULL},
    {number_out_of_line, NULL},
    {number_in_halves, NULL},
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };

START_TEST(attributes_that_sort_into_volumes)
{
    for (int volume = 0; volume < VOLUMES; volume++)
        for (int slice = 0; slice < SLICES; slice++) {
            add_slice(2 * slice);
            last()->instance_number = 0;
            rules[_i].tell(volume, slice);
        }
    shuffle((uint32_t)_i);
    if (!rules[_i].what) {
        ck_assert_str_eq(stacks_of_group(), ":18!DUPLICATE_POSITION");
        return;
    }
    ck_assert_str_eq(stacks_of_group(), "volume 1:6 | volume 2:6 | volume 3:6");
    struct geometry_series *result = group();
    for (int v = 0; v < VOLUMES; v++) {
        const int whose = rules[_i].tell == number_upside_down ? VOLUMES - 1 - v : v;
        ck_assert_ptr_nonnull(strstr(result->stacks[v].split_by, rules[_i].what));
        for (int32_t p = 0; p < SLICES; p++)
            ck_assert_ptr_eq(series.instances[result->stacks[v].planes[p].instance],
                             &series.storage[whose * SLICES + p]);
    }
    geometry_series_free(result);
}

END_TEST

START_TEST(frames_of_a_file_are_in_order)
{
    for (int by_slice = 0; by_slice < 2; by_slice++) {
        struct dicom_frame *frames = add_frames(VOLUMES * SLICES);
        for (int i = 0; i < VOLUMES * SLICES; i++)
            place_frame(&frames[i], axial, 0, 0, 2 * (by_slice ? i / VOLUMES : i % SLICES));
        ck_assert_str_eq(stacks_of_group(), "volume 1:6 | volume 2:6 | volume 3:6");
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stacks[1].planes[2].frame, by_slice ? 7 : 8);
        geometry_series_free(result);
        free_series();
    }
}

END_TEST

START_TEST(split_attributes_are_reported)
{
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 4; k++)
            sprintf(add_slice(2 * i)->echo, "%d", k / 2 + 1);
    place_frame(add_frames(1), coronal, 0, 0, 0);
    place_frame(add_frames(1), coronal, 0, 3, 0);
    ck_assert_str_eq(stacks_of_group(), "axial, echo 1, volume 1:6 | axial, echo 1, volume 2:6 | "
                                        "axial, echo 2, volume 1:6 | axial, echo 2, volume 2:6 | coronal:2");
    struct geometry_series *result = group();
    ck_assert_str_eq(result->stacks[0].split_by,
                     "Image Orientation (Patient) (0020,0037); Echo Numbers (0018,0086) and Echo "
                     "Time (0018,0081); Instance Number (0020,0013) or the order of the frames");
    ck_assert_str_eq(result->stacks[4].split_by, "Image Orientation (Patient) (0020,0037)");
    geometry_series_free(result);
}

END_TEST

/* ---- the newest ---- */

static const struct geometry_limits newest = {.min_planes = 2, .spacing_tolerance = 0.01, .newest_of_duplicates = true};

/* Returns the code. The rejection without that option must recommend it exactly if the option makes a volume. */
static enum code
code_of_newest(void)
{
    struct geometry_series *result = group_with(&newest);
    const enum code code = result->stacks[0].error.code;
    if (code == CODE_NONE) {
        ck_assert_int_eq(result->stack_count, 2);
        const struct geometry_stack *older = &result->stacks[1];
        ck_assert_str_eq(older->name, "older slices");
        ck_assert(!older->accepted && older->passed_over);
        ck_assert_int_eq(older->error.code, CODE_DUPLICATE_POSITION);
        ck_assert_int_eq(older->plane_count, 1);
    }
    geometry_series_free(result);
    ck_assert_int_eq(strstr(error_of_group()->message, "duplicates = ") != NULL, code == CODE_NONE);
    return code;
}

START_TEST(newest_by_creation_or_content)
{
    add_slices(10, 0, 2);
    struct dicom_instance *first = &series.storage[4];
    add_slice(8);
    struct dicom_instance *again = last();
    again->instance_number = first->instance_number;
    ck_assert_int_eq(code_of_newest(), CODE_DUPLICATE_POSITION);
    strcpy(again->content, "20261101120000.5");
    ck_assert_int_eq(code_of_newest(), CODE_DUPLICATE_POSITION); /* the other has none */
    strcpy(first->content, "20261101120000.4");
    ck_assert_int_eq(code_of_newest(), CODE_NONE);
    strcpy(first->created, "20261101120002");
    strcpy(again->created, "20261101120001"); /* before the content */
    struct geometry_series *result = group_with(&newest);
    ck_assert_ptr_eq(series.instances[result->stacks[0].planes[4].instance], first);
    geometry_series_free(result);
    ck_assert_int_eq(code_of_group(), CODE_DUPLICATE_POSITION);
}

END_TEST

/*
 * A slice with another number or time was acquired again, or is of another volume. It must not count as a newer copy.
 */
START_TEST(newest_of_copies_only)
{
    add_slices(10, 0, 2);
    struct dicom_instance *first = &series.storage[4];
    struct dicom_frame *frame = add_slice(8);
    strcpy(first->created, "20261101120000");
    strcpy(last()->created, "20261101120001");
    ck_assert_int_eq(code_of_newest(), CODE_DUPLICATE_POSITION);
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "Instance Number"));
    last()->instance_number = first->instance_number;
    ck_assert_int_eq(code_of_newest(), CODE_NONE);
    strcpy(first->frames[0].acquired, "20261101115900");
    strcpy(frame->acquired, "20261101115901");
    ck_assert_int_eq(code_of_newest(), CODE_DUPLICATE_POSITION);
    ck_assert_ptr_nonnull(strstr(error_of_group()->message, "Acquisition Date and Time"));
}

END_TEST

/* If volumes cannot be distinguished, the newest slices must not make one. */
START_TEST(newest_of_few_only)
{
    add_slices(10, 0, 2);
    for (int32_t i = 0; i < 5; i++) {
        add_slice(2 * i);
        last()->instance_number = series.storage[i].instance_number;
        sprintf(last()->created, "2026110112%02d", i);
        sprintf(series.storage[i].created, "2026110111%02d", i);
    }
    ck_assert_int_eq(code_of_newest(), CODE_DUPLICATE_POSITION);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_order");
    TCase *volumes = new_case(suite, "volumes");
    tcase_add_loop_test(volumes, attributes_that_sort_into_volumes, 0, RULES);
    tcase_add_test(volumes, frames_of_a_file_are_in_order);
    tcase_add_test(volumes, split_attributes_are_reported);
    TCase *duplicates = new_case(suite, "newest");
    tcase_add_test(duplicates, newest_by_creation_or_content);
    tcase_add_test(duplicates, newest_of_copies_only);
    tcase_add_test(duplicates, newest_of_few_only);
    return suite_run(suite);
}
