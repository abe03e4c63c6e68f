/* test_units.c - sorts files into units: series, stacks, and unique plain folder names. */
#include "service/cli/input/input.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 };

static struct dicom_instance instances[MOST];
static struct dicom_frame frames[MOST];
static char paths[MOST][16];
static struct dicom_instance *pointers[MOST];
static struct error errors[MOST];
static int results[MOST];
static struct headers headers;
static struct conf_pipeline pipeline;
static struct conf_series most;
static struct units units;
static struct input_skipped skipped;
static char *file_paths[MOST];
static struct units_request request;

static void
set_up(void)
{
    memset(instances, 0, sizeof instances);
    memset(frames, 0, sizeof frames);
    memset(pointers, 0, sizeof pointers);
    memset(results, 0, sizeof results);
    headers = (struct headers){.instances = pointers, .errors = errors, .rc = results, .seconds = 1.5};
    pipeline = (struct conf_pipeline){.min_slices = 1, .spacing_tolerance = 0.01};
    most = (struct conf_series){.max_instances = MOST, .max_mib = 1};
    request = (struct units_request){.headers = &headers,
                                     .series_limits = &most,
                                     .paths = file_paths,
                                     .pipeline = &pipeline,
                                     .output = "/out",
                                     .skipped = &skipped};
}

static void
tear_down(void)
{
    input_units_free(&units);
    input_skipped_clear(&skipped);
}

/* Sets up three axial slices of a series. */
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
        file_paths[i] = paths[i];
        instances[i] = (struct dicom_instance){.path = paths[i],
                                               .series_number = number,
                                               .modality = "CT",
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
make(void)
{
    struct error error = {0};
    int rc = input_units_make(&request, &units, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
}

static void
make_stack(const char *stack)
{
    request.stack = stack;
    make();
}

START_TEST(a_single_stack_uses_the_output_folder_itself)
{
    add_series("1.2.3", 4, "");
    make();
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
    make();
    ck_assert_uint_eq(units.count, 4);
    ck_assert_str_eq(units.items[0].output, "/out/CT-4");
    ck_assert_str_eq(units.items[1].output, "/out/CT-1.2.9");
    ck_assert_str_eq(units.items[2].output, "/out/CT-1.2.4");
    ck_assert_str_eq(units.items[3].output, "/out/CT-1.2.5");
    for (size_t i = 0; i < units.count; i++)
        ck_assert_uint_eq(units.items[i].headers->count, 3);
}

END_TEST

START_TEST(stacks_are_apart_and_can_be_picked)
{
    add_series("1.2.3", 4, "1");
    add_series("1.2.3", 4, "2");
    make();
    ck_assert_uint_eq(units.count, 2);
    ck_assert_str_ne(units.items[0].stack, units.items[1].stack);
    ck_assert_str_ne(units.items[0].output, units.items[1].output);
    ck_assert_int_eq(strncmp(units.items[0].output, "/out/CT-4-", 10), 0);
    ck_assert_ptr_null(strpbrk(units.items[0].output + 5, " /\\:"));
    char name[128];
    snprintf(name, sizeof name, "%s", units.items[1].stack);
    input_units_free(&units);
    make_stack(name);
    ck_assert_uint_eq(units.count, 1);
    ck_assert_str_eq(units.items[0].stack, name);
    ck_assert_str_eq(units.items[0].output, "/out");
    input_units_free(&units);
    make_stack("no such stack");
    ck_assert_uint_eq(units.count, 0);
}

END_TEST

START_TEST(similar_names_get_separate_folders)
{
    add_series("1.2.3", 4, "a b");
    add_series("1.2.3", 4, "a/b");
    add_series("1.2.3", 4, "a-b");
    make();
    ck_assert_uint_eq(units.count, 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(units.items[i].output, units.items[j].output);
}

END_TEST

/* Makes a file unreadable. */
static void
damage(size_t i, enum code code)
{
    pointers[i] = NULL;
    results[i] = -EBADMSG;
    errors[i] = (struct error){.code = code};
}

START_TEST(other_files_are_not_damaged_images)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.4", 5, "");
    for (size_t i = 0; i < 3; i++)
        damage(i, i == 0 ? CODE_NOT_DICOM : i == 1 ? CODE_SOP_CLASS_UNSUPPORTED : CODE_OWN_RESULT);
    make();
    ck_assert_uint_eq(units.count, 1);
    ck_assert_str_eq(units.items[0].headers->instances[0]->series_uid, "1.2.4");
    ck_assert_int_eq(units.items[0].refusal.code, CODE_NONE);
    ck_assert_uint_eq(units.sorted.orphans, 0);
}

END_TEST

/* A file that is not DICOM must count as a damaged image if its name ends in .dcm. */
START_TEST(invalid_dcm_files_count_as_damaged)
{
    static const struct {
        const char *path;
        bool damage;
    } cases[] = {{"/in/1.dcm", true},  {"/in/1.DCM", true},     {"/in/dcm", false},
                 {"/in/1.txt", false}, {"/in.dcm/note", false}, {"/in/1.dcm.gz", false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error = {.code = CODE_NOT_DICOM};
        snprintf(error.file[0], sizeof error.file[0], "%s", cases[i].path);
        ck_assert_int_eq(input_sorted_is_other(&error), !cases[i].damage);
    }
}

END_TEST

START_TEST(a_damaged_file_makes_the_series_in_its_folder_incomplete)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.4", 5, "");
    damage(2, CODE_FILE_EMPTY);
    snprintf(paths[4], sizeof paths[4], "/other/4");
    snprintf(paths[3], sizeof paths[3], "/other/3");
    snprintf(paths[5], sizeof paths[5], "/other/5");
    make();
    ck_assert_uint_eq(units.count, 2);
    ck_assert_int_eq(units.items[0].refusal.code, CODE_INCOMPLETE_SERIES);
    ck_assert_str_eq(units.items[0].refusal.file[0], "/in/2");
    ck_assert_ptr_nonnull(strstr(units.items[0].refusal.message, "2 cannot be used (FILE_EMPTY)"));
    ck_assert_int_eq(units.items[1].refusal.code, CODE_NONE);
    input_units_free(&units);

    request.accept_missing = true;
    make();
    ck_assert_int_eq(units.items[0].refusal.code, CODE_NONE);
    ck_assert_str_eq(units.items[0].note, "missing files are accepted: 1 cannot be used, such as 2");
    ck_assert_str_eq(units.items[1].note, "");
}

END_TEST

START_TEST(damaged_files_without_a_series_are_counted)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.4", 5, "");
    damage(3, CODE_FILE_TRUNCATED);
    damage(4, CODE_FILE_TRUNCATED);
    damage(5, CODE_FILE_TRUNCATED);
    for (size_t i = 3; i < 6; i++)
        snprintf(paths[i], sizeof paths[i], "/other/%zu", i);
    make();
    ck_assert_uint_eq(units.sorted.orphans, 3);
    ck_assert_uint_eq(units.count, 1);
    ck_assert_int_eq(units.items[0].refusal.code, CODE_NONE);
}

END_TEST

START_TEST(missing_slices_are_refused_or_accepted)
{
    add_series("1.2.3", 4, "");
    for (int i = 0; i < 3; i++)
        instances[i].images_in_acquisition = instances[i].expected_instances = 4;
    make();
    ck_assert_uint_eq(units.count, 1);
    ck_assert_int_eq(units.items[0].refusal.code, CODE_INCOMPLETE_SERIES);
    input_units_free(&units);
    request.accept_missing = true;
    make();
    ck_assert_uint_eq(units.count, 1);
    ck_assert_int_eq(units.items[0].refusal.code, CODE_NONE);
    ck_assert_ptr_nonnull(strstr(units.items[0].note, "missing slices are accepted: "));
}

END_TEST

START_TEST(scouts_are_skipped_file_by_file)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.3", 4, "");
    for (int i = 0; i < 3; i++)
        frames[i].excluded = CODE_LOCALIZER;
    make();
    ck_assert_uint_eq(units.count, 1);
    ck_assert_uint_eq(units.stacks, 1);
    ck_assert_str_eq(units.items[0].stack, "");
    ck_assert_uint_eq(skipped.count, 3);
    for (size_t i = 0; i < 3; i++) {
        char words[64];
        snprintf(words, sizeof words, "%zu is a localizer.", i);
        ck_assert_str_eq(skipped.files[i].path, paths[i]);
        ck_assert_int_eq(skipped.files[i].code, CODE_LOCALIZER);
        ck_assert_str_eq(skipped.files[i].message, words);
    }
}

END_TEST

START_TEST(two_patients_are_refused_as_one_unit)
{
    add_series("1.2.3", 4, "");
    add_series("1.2.4", 5, "");
    snprintf(instances[1].patient, sizeof instances[1].patient, "another");
    make();
    ck_assert_uint_eq(units.count, 2);
    ck_assert_int_eq(units.items[0].refusal.code, CODE_MIXED_PATIENTS);
    ck_assert_int_eq(units.items[1].refusal.code, CODE_NONE);
    ck_assert_ptr_null(strstr(units.items[0].refusal.message, "another"));
}

END_TEST

/* ------------------------------------------------------------------------------ selection ---- */

/* Sets up echoes; the first is refused on request. */
static void
add_echoes(int count, bool first_refused)
{
    for (int echo = 1; echo <= count; echo++) {
        char text[16];
        snprintf(text, sizeof text, "%d", echo);
        add_series("1.2.3", 4, text);
    }
    for (int i = 0; i < 3 && first_refused; i++)
        instances[i].columns += i;
}

static const struct {
    const char *stacks;
    int echoes;
    bool first_refused;
    const char *expected; /* numbers of the echoes, with ! if refused */
} choices[] = {
    {NULL, 3, false, "123"},    {NULL, 3, true, "1!23"},   {"all", 9, false, "123456789"},
    {"all", 3, true, "1!23"},   {"first", 9, false, "1"},  {"first", 3, true, "2"},
    {"last", 9, false, "9"},    {"b0", 3, false, ""},      {"echo [12]", 9, false, "12"},
    {"echo ?", 2, true, "1!2"}, {"echo 1", 2, true, "1!"}, {"nothing", 2, false, ""},
    {"nothing", 2, true, "1!"},
};

START_TEST(stacks_are_chosen)
{
    char made[64] = "";
    add_echoes(choices[_i].echoes, choices[_i].first_refused);
    request.stacks = choices[_i].stacks;
    make();
    for (size_t i = 0; i < units.count; i++) {
        ck_assert_int_eq(strncmp(units.items[i].stack, "echo ", 5), 0);
        strcat(made, units.items[i].stack + 5);
        strcat(made, units.items[i].refusal.code ? "!" : "");
    }
    ck_assert_str_eq(made, choices[_i].expected);
    ck_assert_uint_eq(units.stacks, (size_t)choices[_i].echoes);
}

END_TEST

START_TEST(too_many_stacks_are_refused)
{
    add_echoes(8, false);
    make();
    ck_assert_uint_eq(units.count, 8);
    input_units_free(&units);
    set_up();
    headers.count = 0;
    add_echoes(9, false);
    make();
    ck_assert_uint_eq(units.count, 1);
    ck_assert_int_eq(units.items[0].refusal.code, CODE_TOO_MANY_STACKS);
    ck_assert_ptr_nonnull(strstr(units.items[0].refusal.message,
                                 "9 volumes: echo 1; echo 2; echo 3; echo 4; echo 5; echo 6; "
                                 "echo 7; echo 8; echo 9. "));
    input_units_free(&units);
    make_stack("echo 7");
    ck_assert_uint_eq(units.count, 1);
    ck_assert_str_eq(units.items[0].stack, "echo 7");
}

END_TEST

/*
 * Returns the refusal of a series of three files of 0.5 MiB each. The other, small series must run
 * in every case.
 */
static const char *
make_large(int max_instances, double max_mib)
{
    input_units_free(&units);
    set_up();
    most = (struct conf_series){.max_instances = max_instances, .max_mib = max_mib};
    add_series("1.1", 1, "");
    for (size_t i = 0; i < headers.count; i++)
        instances[i].file_size = 1 << 19;
    add_series("1.2", 2, "");
    headers.count--;
    make();
    ck_assert_uint_eq(units.count, 2);
    ck_assert_int_eq(units.items[1].refusal.code, CODE_NONE);
    const struct error *refusal = &units.items[0].refusal;
    ck_assert(refusal->code == CODE_NONE || refusal->code == CODE_SERIES_TOO_LARGE);
    return refusal->message;
}

START_TEST(only_the_oversized_series_is_refused)
{
    ck_assert_str_eq(make_large(3, 1.5), "");
    ck_assert_str_eq(make_large(2, 1.5), "series 1.1 has 3 instances, and series.max_instances is "
                                         "2: raise it, or split the series");
    ck_assert_str_eq(make_large(3, 1.4), "the files of series 1.1 have 1.5 MiB, and series.max_mib "
                                         "is 1.4: raise it, or split the series");
}

END_TEST

/* ------------------------------------------------------------------------ collecting files ---- */

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
    static const char *const expected[] = {"1.dcm", "a/2", "a/b/3.DCM", "link/2", "link/b/3.DCM", "z"};
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

    ck_assert_int_eq(input_collect(&collection, folder, &where), 0);
    /* A link loop must enter each folder at most once more; the other files must be found. */
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
    input_collect_free(&collection);

    snprintf(target, sizeof target, "%s/.hid", folder); /* given by name: accepted */
    ck_assert_int_eq(input_collect(&collection, target, &where), 0);
    ck_assert_uint_eq(collection.count, 1);
    snprintf(target, sizeof target, "%s/none", folder);
    ck_assert_int_eq(input_collect(&collection, target, &where), -ENOENT);
    ck_assert_str_eq(where, target);
    free(where);
    input_collect_free(&collection);
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
    tcase_add_test(tests, a_single_stack_uses_the_output_folder_itself);
    tcase_add_test(tests, series_are_apart_and_named_by_number_or_uid);
    tcase_add_test(tests, stacks_are_apart_and_can_be_picked);
    tcase_add_test(tests, similar_names_get_separate_folders);
    tcase_add_test(tests, other_files_are_not_damaged_images);
    tcase_add_test(tests, invalid_dcm_files_count_as_damaged);
    tcase_add_test(tests, a_damaged_file_makes_the_series_in_its_folder_incomplete);
    tcase_add_test(tests, damaged_files_without_a_series_are_counted);
    tcase_add_test(tests, missing_slices_are_refused_or_accepted);
    tcase_add_test(tests, scouts_are_skipped_file_by_file);
    tcase_add_test(tests, two_patients_are_refused_as_one_unit);
    tcase_add_loop_test(tests, stacks_are_chosen, 0, sizeof choices / sizeof choices[0]);
    tcase_add_test(tests, too_many_stacks_are_refused);
    tcase_add_test(tests, only_the_oversized_series_is_refused);
    tcase_add_test(tests, folders_are_walked_in_order);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
