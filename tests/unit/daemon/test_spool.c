/*
 * The spool: created, locked once, cleared of incomplete files.
 */
#include "service/daemon/spool.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64], root[128];
static struct error error;

static char *
path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void
write_file(const char *name)
{
    FILE *file = fopen(path_of(name), "w");
    ck_assert_msg(file != NULL, "%s", name);
    fputs("x", file);
    fclose(file);
}

static bool
is_there(const char *name)
{
    struct stat status;
    return lstat(path_of(name), &status) == 0;
}

static void
set_up(void)
{
    strcpy(base, "/tmp/noctule-test-spool-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    snprintf(root, sizeof root, "%s/a/b", base);
    ck_assert_msg(spool_make(root, &error) == 0, "%s", error.message);
}

static void
tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", base);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(all_folders_are_created_and_may_exist)
{
    static const char *const folders[] = {"incoming", "series", "quarantine", "released", "jobs", "outbox", "run"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ck_assert_msg(is_there(folders[i]), "%s", folders[i]);
    ck_assert_int_eq(spool_make(root, &error), 0);
}

END_TEST

START_TEST(an_unusable_root_is_rejected_by_name)
{
    char below[256];
    write_file("file");
    snprintf(below, sizeof below, "%s/file/root", root);
    ck_assert_int_eq(spool_make(below, &error), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(error.message, below));
}

END_TEST

START_TEST(the_root_is_locked_once)
{
    int first[2], second[2];
    ck_assert_int_eq(spool_lock(root, first, &error), 0);
    ck_assert_int_ne(fcntl(first[0], F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(first[1], F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(spool_lock(root, second, &error), -EBUSY);
    ck_assert_ptr_nonnull(strstr(error.message, root));
    spool_unlock(first);
    ck_assert_int_eq(spool_lock(root, second, &error), 0);
    spool_unlock(second);
}

END_TEST

START_TEST(a_deleted_lock_file_does_not_unlock_the_root)
{
    char path[256];
    int first[2], second[2];
    snprintf(path, sizeof path, "%s/lock", root);
    ck_assert_int_eq(spool_lock(root, first, &error), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(spool_lock(root, second, &error), -EBUSY);
    ck_assert_ptr_nonnull(strstr(error.message, "another noctuled already uses"));
    spool_unlock(first);
    ck_assert_int_eq(spool_lock(root, second, &error), 0);
    spool_unlock(second);
}

END_TEST

START_TEST(only_partial_files_are_removed_from_incoming)
{
    write_file("incoming/1.part");
    write_file("incoming/.2.part");
    write_file("incoming/kept");
    write_file("incoming/part");
    spool_sweep_incoming(root);
    ck_assert(!is_there("incoming/1.part") && !is_there("incoming/.2.part"));
    ck_assert(is_there("incoming/kept") && is_there("incoming/part"));
}

END_TEST

START_TEST(the_start_removes_outputs_of_interrupted_jobs)
{
    write_file("jobs/17.job");
    write_file("jobs/18.job");
    write_file("jobs/19.job.part");
    write_file("jobs/notes.txt");
    write_file("jobs/-3.job");
    ck_assert_int_eq(mkdir(path_of("outbox/17"), 0700), 0);
    ck_assert_int_eq(mkdir(path_of("outbox/18"), 0700), 0);
    ck_assert_int_eq(mkdir(path_of("outbox/20"), 0700), 0);
    write_file("outbox/17/.seg.dcm.part");
    write_file("outbox/18/.seg.dcm.part");
    write_file("outbox/18/seg.dcm");
    write_file("outbox/20/.seg.dcm.part"); /* not of a job that ran here */
    spool_sweep_jobs(root);
    ck_assert(!is_there("jobs/17.job") && !is_there("jobs/18.job"));
    ck_assert(!is_there("jobs/19.job.part"));
    ck_assert(is_there("jobs/notes.txt") && is_there("jobs/-3.job"));
    ck_assert(!is_there("outbox/17"));
    ck_assert(is_there("outbox/18/seg.dcm") && !is_there("outbox/18/.seg.dcm.part"));
    ck_assert(is_there("outbox/20/.seg.dcm.part"));
}

END_TEST

START_TEST(the_output_of_a_cancelled_job_is_removed)
{
    ck_assert_int_eq(mkdir(path_of("outbox/17"), 0700), 0);
    write_file("outbox/17/seg.dcm");
    write_file("outbox/17/job.json");
    spool_remove_output(root, 17);
    ck_assert(!is_there("outbox/17"));
    spool_remove_output(root, 4711); /* never existed */
}

END_TEST

START_TEST(a_link_in_the_output_is_removed_and_not_followed)
{
    char target[256];
    write_file("series/kept");
    snprintf(target, sizeof target, "%s/series", root);
    ck_assert_int_eq(mkdir(path_of("outbox/17"), 0700), 0);
    ck_assert_int_eq(symlink(target, path_of("outbox/17/series.part")), 0);
    spool_sweep_job(root, 17);
    ck_assert(!is_there("outbox/17") && is_there("series/kept"));
}

END_TEST

START_TEST(free_space_is_reported)
{
    double free_mib = -1;
    ck_assert_int_eq(spool_free_mib(root, &free_mib), 0);
    ck_assert(free_mib >= 0);
    ck_assert_int_eq(spool_free_mib("/nowhere", &free_mib), -ENOENT);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_spool");
    TCase *tests = tcase_create("spool");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, all_folders_are_created_and_may_exist);
    tcase_add_test(tests, an_unusable_root_is_rejected_by_name);
    tcase_add_test(tests, the_root_is_locked_once);
    tcase_add_test(tests, a_deleted_lock_file_does_not_unlock_the_root);
    tcase_add_test(tests, only_partial_files_are_removed_from_incoming);
    tcase_add_test(tests, the_start_removes_outputs_of_interrupted_jobs);
    tcase_add_test(tests, the_output_of_a_cancelled_job_is_removed);
    tcase_add_test(tests, a_link_in_the_output_is_removed_and_not_followed);
    tcase_add_test(tests, free_space_is_reported);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
