/* Files to jobs: series and stacks apart, and folders whose names are unique and plain. */
#include "service/cli/collect.h"
#include "service/cli/units.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 32 };

static struct dicom_instance instances[MOST];
static struct dicom_frame frames[MOST];
static char paths[MOST][16];
static struct dicom_instance *pointers[MOST];
static struct error errors[MOST];
static int results[MOST];
static struct headers headers;
static struct conf_pipeline pipeline;
static struct units units;

static void
set_up(void)
{
    memset(instances, 0, sizeof instances);
    memset(frames, 0, sizeof frames);
    memset(pointers, 0, sizeof pointers);
    memset(results, 0, sizeof results);
    headers =
        (struct headers){.instances = pointers, .errors = errors, .rc = results, .seconds = 1.5};
    pipeline = (struct conf_pipeline){.min_slices = 1, .spacing_tolerance = 0.01};
}

static void
tear_down(void)
{
    units_free(&units);
}

/* Three axial slices of a series. */
static void
add_series(const char *uid, int32_t number, const char *echo)
{
    for (int z = 0; z < 3; z++) {
        size_t i = headers.count++;
        struct dicom_frame *frame = &frames[i];
        *frame = (struct dicom_frame){.has_position = true,
                                      .has_orientation = true,
                                      .has_spacing = true,
                                      .position = {0, 0, 2.0 * z},
                                      .orientation = {1, 0, 0, 0, 1, 0},
                                      .pixel_spacing = {1, 1},
                                      .slope = 1,
                                      .has_rescale = true};
        snprintf(frame->echo, sizeof frame->echo, "%s", echo);
        snprintf(paths[i], sizeof paths[i], "/in/%zu", i);
        instances[i] = (struct dicom_instance){.path = paths[i],
                                               .series_number = number,
                                               .rows = 4,
                                               .columns = 4,
                                               .bits_allocated = 16,
                                               .bits_stored = 16,
                                               .frame_count = 1,
                                               .frames = frame};
        snprintf(instances[i].series_uid, DICOM_UID_SIZE, "%s", uid);
        snprintf(instances[i].sop_instance_uid, DICOM_UID_SIZE, "1.%zu", i);
        pointers[i] = &instances[i];
    }
}

static void
make(const char *stack)
{
    struct error error = {0};
    int rc = units_make(&headers, &pipeline, stack, "/out", &units, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
}

START_TEST(one_stack_goes_into_the_folder_itself)
{
    add_series("1.2.3", 4, "");
    make(NULL);
    ck_assert_uint_eq(units.count, 1);
    ck_assert_str_eq(units.items[0].output, "/out");
    ck_assert_str_eq(units.items[0].stack, "");
    ck_assert_uint_eq(units.items[0].headers->count, 3);
    ck_assert_str_eq(units.items[0].paths[2], "/in/2");
    ck_assert_double_eq(units.items[0].headers->seconds, 1.5);
}

END_TEST

START_TEST(series_are_apart_and_named_by_number_or_uid)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.9", 0, "");
    add_series("1.2.4", 7, "");
    add_series("1.2.5", 7, "");
    make(NULL);
    ck_assert_uint_eq(units.count, 4);
    ck_assert_str_eq(units.items[0].output, "/out/series-4");
    ck_assert_str_eq(units.items[1].output, "/out/1.2.9");
    ck_assert_str_eq(units.items[2].output, "/out/1.2.4");
    ck_assert_str_eq(units.items[3].output, "/out/1.2.5");
    for (size_t i = 0; i < units.count; i++)
        ck_assert_uint_eq(units.items[i].headers->count, 3);
}

END_TEST

START_TEST(stacks_are_apart_and_can_be_picked)
{
    add_series("1.2.3", 4, "1");
    add_series("1.2.3", 4, "2");
    make(NULL);
    ck_assert_uint_eq(units.count, 2);
    ck_assert_str_ne(units.items[0].stack, units.items[1].stack);
    ck_assert_str_ne(units.items[0].output, units.items[1].output);
    ck_assert_int_eq(strncmp(units.items[0].output, "/out/series-4-", 14), 0);
    ck_assert_ptr_null(strpbrk(units.items[0].output + 5, " /\\:"));
    char name[128];
    snprintf(name, sizeof name, "%s", units.items[1].stack);
    units_free(&units);
    make(name);
    ck_assert_uint_eq(units.count, 1);
    ck_assert_str_eq(units.items[0].stack, name);
    ck_assert_str_eq(units.items[0].output, "/out");
    units_free(&units);
    make("no such stack");
    ck_assert_uint_eq(units.count, 0);
}

END_TEST

START_TEST(names_that_look_alike_stay_apart)
{
    add_series("1.2.3", 4, "a b");
    add_series("1.2.3", 4, "a/b");
    add_series("1.2.3", 4, "a-b");
    make(NULL);
    ck_assert_uint_eq(units.count, 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(units.items[i].output, units.items[j].output);
}

END_TEST

START_TEST(faulty_files_are_passed_over)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.4", 5, "");
    for (int i = 0; i < 3; i++) {
        pointers[i] = NULL;
        results[i] = -EINVAL;
    }
    make(NULL);
    ck_assert_uint_eq(units.count, 1);
    ck_assert_str_eq(units.items[0].headers->instances[0]->series_uid, "1.2.4");
}

END_TEST

/* -------------------------------------------------------------------------------- collecting -- */

static char folder[64];

static void
touch(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

static void
make_below(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

START_TEST(folders_are_walked_in_order)
{
    static const char *const expected[] = {"1.dcm",  "a/2",          "a/b/3.DCM",
                                           "link/2", "link/b/3.DCM", "z"};
    struct collection collection = {0};
    char *where, link_path[160], target[160], command[128];
    snprintf(folder, sizeof folder, "/tmp/noctule-collect.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_below("a");
    make_below("a/b");
    make_below(".git");
    static const char *const files[] = {"z",    "1.dcm",  "a/b/3.DCM",   "a/2",
                                        ".hid", ".git/x", "a/half.part", "a/copy.tmp"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        touch(files[i]);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    snprintf(target, sizeof target, "%s/a", folder);
    ck_assert_int_eq(symlink(target, link_path), 0);
    snprintf(link_path, sizeof link_path, "%s/a/loop", folder);
    ck_assert_int_eq(symlink(folder, link_path), 0);

    ck_assert_int_eq(collect_input(&collection, folder, &where), 0);
    /* Through the loop of links each folder is entered once more at most; what counts is the rest.
     */
    size_t at = 0;
    for (size_t i = 0; i < collection.count; i++) {
        const char *name = collection.paths[i] + strlen(folder) + 1;
        if (strstr(name, "loop"))
            continue;
        ck_assert_uint_lt(at, sizeof expected / sizeof expected[0]);
        ck_assert_str_eq(name, expected[at]);
        at++;
    }
    ck_assert_uint_eq(at, sizeof expected / sizeof expected[0]);
    collect_free(&collection);

    snprintf(target, sizeof target, "%s/.hid", folder); /* named outright: taken */
    ck_assert_int_eq(collect_input(&collection, target, &where), 0);
    ck_assert_uint_eq(collection.count, 1);
    snprintf(target, sizeof target, "%s/none", folder);
    ck_assert_int_eq(collect_input(&collection, target, &where), -ENOENT);
    ck_assert_str_eq(where, target);
    free(where);
    collect_free(&collection);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_units");
    TCase *tests = tcase_create("units");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_stack_goes_into_the_folder_itself);
    tcase_add_test(tests, series_are_apart_and_named_by_number_or_uid);
    tcase_add_test(tests, stacks_are_apart_and_can_be_picked);
    tcase_add_test(tests, names_that_look_alike_stay_apart);
    tcase_add_test(tests, faulty_files_are_passed_over);
    tcase_add_test(tests, folders_are_walked_in_order);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
