/* Names and reasons in the quarantine. */
#include "service/receiver/spool/quarantine_files.h"

#include "service/common/layout.h"
#include "tests/unit/scratch_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

static const struct file_stamp STAMP = {.device = 1, .inode = 2, .size = 3, .mtime_ns = 4};
static const time_t NOW = 1795228353; /* 2026-11-21T02:32:33Z */

/* Gets the name for a new file. */
static void
new_name(const char *original, const struct file_stamp *stamp, char name[QUARANTINE_NAME])
{
    char folder[QUARANTINE_FOLDER];
    int root = open(scratch, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(quarantine_find(root, original, stamp, folder, name), -ENOENT);
    close(root);
}

START_TEST(a_name_follows_from_path_size_and_time)
{
    char name[QUARANTINE_NAME], again[QUARANTINE_NAME];
    new_name("/in/a/DOE^JOHN.dcm", &STAMP, name);
    ck_assert_uint_eq(strlen(name), 16); /* without the original name */
    ck_assert_uint_eq(strspn(name, "0123456789abcdef"), 16);
    struct file_stamp same = STAMP;
    same.inode = 99;
    same.ctime_ns = 99;
    new_name("/in/a/DOE^JOHN.dcm", &same, again);
    ck_assert_str_eq(name, again);
    same.size++;
    new_name("/in/a/DOE^JOHN.dcm", &same, again);
    ck_assert_str_ne(name, again);
    same = STAMP;
    same.mtime_ns++;
    new_name("/in/a/DOE^JOHN.dcm", &same, again);
    ck_assert_str_ne(name, again);
    new_name("/in/b/DOE^JOHN.dcm", &STAMP, again);
    ck_assert_str_ne(name, again);
}

END_TEST

START_TEST(the_folder_is_the_day)
{
    char folder[QUARANTINE_FOLDER];
    quarantine_folder(NOW, folder);
    ck_assert_str_eq(folder, LAYOUT_QUARANTINE "/20261121");
    quarantine_folder(0, folder);
    ck_assert_str_eq(folder, LAYOUT_QUARANTINE "/19700101");
}

END_TEST

/* Files under their own name, and under that of version 0.1.0. */
static const struct {
    const char *original, *ending;
} stored[] = {
    {"/in/a/IM1.dcm", ""},
    {"/in/a/IM1.dcm", "-IM1.dcm"},
    {"/in/a\nb\x7f\x01.dcm", "-a_b__.dcm"},
    {"/in/L\xe4nge \xc2\x9b L\xc3\xa4nge.dcm", "-L_nge __ L\xc3\xa4nge.dcm"},
};

START_TEST(a_quarantined_file_is_found_on_any_day)
{
    char folder[QUARANTINE_FOLDER], name[QUARANTINE_NAME], found[QUARANTINE_NAME], path[256];
    int root = open(scratch, O_RDONLY | O_DIRECTORY);
    const char *original = stored[_i].original;
    new_name(original, &STAMP, name);
    strcat(name, stored[_i].ending);
    scratch_folder("quarantine");
    scratch_folder("quarantine/20250101");
    scratch_folder("quarantine/20260203");
    scratch_folder("quarantine/notes123");
    snprintf(path, sizeof path, "quarantine/notes123/%s", name);
    scratch_write(path, "x", 1);
    new_name(original, &STAMP, found);
    snprintf(path, sizeof path, "quarantine/20260203/%s", name);
    scratch_write(path, "x", 1);
    ck_assert_int_eq(quarantine_find(root, original, &STAMP, folder, found), 0);
    ck_assert_str_eq(folder, "quarantine/20260203");
    ck_assert_str_eq(found, name);
    close(root);
}

END_TEST

START_TEST(the_reason_is_written_once)
{
    const struct quarantine_reason reason = {
        .code = CODE_NOT_DICOM,
        .message = "It says \"hello\".",
        .original = "/in/a\nb",
        .series_uid = "",
        .sop_instance_uid = "1.2.3",
    };
    struct quarantine_reason other = reason;
    other.code = CODE_FILE_EMPTY;
    scratch_folder("quarantine");
    scratch_folder("quarantine/20261121");
    int root = open(scratch, O_RDONLY | O_DIRECTORY);
    const char *folder = "quarantine/20261121";
    ck_assert_int_eq(quarantine_explain(root, folder, "abc-x", &reason, NOW), 0);
    ck_assert_int_eq(quarantine_explain(root, folder, "abc-x", &other, NOW), 0);
    ck_assert_int_eq(quarantine_explain(root, "quarantine/none", "x", &reason, NOW), -ENOENT);
    char *text = scratch_text("quarantine/20261121/abc-x.reason.json");
    ck_assert_ptr_nonnull(strstr(text, "\"code\": \"NOT_DICOM\""));
    ck_assert_ptr_nonnull(strstr(text, "It says \\\"hello\\\"."));
    ck_assert_ptr_nonnull(strstr(text, "\"original_path\": \"/in/a\\"));
    ck_assert_ptr_nonnull(strstr(text, "\"sop_instance_uid\": \"1.2.3\""));
    ck_assert_ptr_null(strstr(text, "/in/a\n"));
    ck_assert_ptr_nonnull(strstr(text, "\"time\": \"2026-11-21T"));
    free(text);
    ck_assert(!scratch_has("quarantine/20261121/abc-x.reason.json.part"));
    close(root);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_quarantine");
    TCase *tests = tcase_create("quarantine");
    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_test(tests, a_name_follows_from_path_size_and_time);
    tcase_add_test(tests, the_folder_is_the_day);
    tcase_add_loop_test(tests, a_quarantined_file_is_found_on_any_day, 0, sizeof stored / sizeof *stored);
    tcase_add_test(tests, the_reason_is_written_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
