/*
 * Selection of GPUs for the workers: all, or the configured ones, and names without a GPU.
 */
#include "service/daemon/jobs/devices.h"

#include <check.h>
#include <stdlib.h>

#define A "GPU-aaaaaaaa-0000-4000-8000-000000000000"
#define B "GPU-bbbbbbbb-0000-4000-8000-000000000000"
#define C "GPU-cccccccc-0000-4000-8000-000000000000"

static const struct kernels_gpu found[] = {{.index = 0, .uuid = A}, {.index = 1, .uuid = B}, {.index = 4, .uuid = C}};

static struct {
    size_t found_count;
    char *names[4];
    size_t name_count;
    size_t chosen[4], chosen_count;
    size_t missing[4], missing_count;
} cases[] = {
    {3, {NULL}, 0, {0, 1, 2}, 3, {0}, 0},
    {0, {NULL}, 0, {0}, 0, {0}, 0},
    {3, {C, "0"}, 2, {2, 0}, 2, {0}, 0},
    {3, {"4"}, 1, {2}, 1, {0}, 0}, /* its index, not its position */
    {3, {"2"}, 1, {0}, 0, {0}, 1},
    {3, {"1", B, "1"}, 3, {1}, 1, {0}, 0},
    {3, {"GPU-BBBBBBBB-0000-4000-8000-000000000000"}, 1, {1}, 1, {0}, 0},
    {1, {B, A, C}, 3, {0}, 1, {0, 2}, 2},
    {3, {"GPU-aaaaaaaa"}, 1, {0}, 0, {0}, 1}, /* part of a UUID does not match */
    {0, {"0"}, 1, {0}, 0, {0}, 1},
};

START_TEST(devices_are_chosen)
{
    struct devices_choice choice;
    devices_choose(found, cases[_i].found_count, cases[_i].names, cases[_i].name_count, &choice);
    ck_assert_uint_eq(choice.chosen_count, cases[_i].chosen_count);
    for (size_t i = 0; i < choice.chosen_count; i++)
        ck_assert_uint_eq(choice.chosen[i], cases[_i].chosen[i]);
    ck_assert_uint_eq(choice.missing_count, cases[_i].missing_count);
    for (size_t i = 0; i < choice.missing_count; i++)
        ck_assert_uint_eq(choice.missing[i], cases[_i].missing[i]);
}

END_TEST

START_TEST(the_number_of_devices_is_limited)
{
    struct kernels_gpu many[DEVICES_MAX + 5] = {{.index = 0}};
    struct devices_choice choice;
    for (int i = 0; i < DEVICES_MAX + 5; i++)
        many[i].index = i;
    devices_choose(many, DEVICES_MAX + 5, NULL, 0, &choice);
    ck_assert_uint_eq(choice.chosen_count, DEVICES_MAX);
    ck_assert_uint_eq(choice.chosen[DEVICES_MAX - 1], DEVICES_MAX - 1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_devices");
    TCase *tests = tcase_create("devices");
    tcase_add_loop_test(tests, devices_are_chosen, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, the_number_of_devices_is_limited);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
