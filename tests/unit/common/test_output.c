/* The output folder: all files of a job or none, whatever happens between. */
#include "base/durable.h"
#include "service/common/jobs/job_output.h"
#include "service/pipeline/results/results.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char base[64];
static char path[128];

static void
make_base(void)
{
    snprintf(base, sizeof base, "/tmp/noctule-output.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    snprintf(path, sizeof path, "%s/a/b/17", base);
}

static void
remove_base(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    ck_assert_int_eq(system(command), 0);
}

static struct output *
open_output(void)
{
    struct output *output = NULL;
    ck_assert_int_eq(output_open(path, true, &output), 0);
    return output;
}

static void
add_file(struct output *output, const char *name, const char *text)
{
    int fd;
    ck_assert_int_eq(output_create(output, name, &fd), 0);
    ck_assert_int_eq(durable_write_all(fd, text, strlen(text)), 0);
    output_finish(output, fd);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Checks the folder's entries, sorted, each followed by a space. */
static void
assert_entries(const char *expected)
{
    char names[20][256], joined[6000] = "";
    int count = 0;
    DIR *entries = opendir(path);
    for (const struct dirent *e; entries && (e = readdir(entries)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            snprintf(names[count++], sizeof names[0], "%s", e->d_name);
    if (entries)
        closedir(entries);
    qsort(names, (size_t)count, sizeof names[0], by_text);
    for (int i = 0; i < count; i++) {
        strcat(joined, names[i]);
        strcat(joined, " ");
    }
    ck_assert_str_eq(joined, expected);
}

static void
put_file(const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", path, name);
    int fd = open(full, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

START_TEST(files_appear_together)
{
    struct output *output = open_output();
    add_file(output, "seg.dcm", "seg");
    add_file(output, "job.json", "{}");
    assert_entries(".job.json.part .seg.dcm.part ");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    assert_entries("job.json seg.dcm ");
    output_close(output);
    assert_entries("job.json seg.dcm ");
    char full[256];
    struct stat status;
    snprintf(full, sizeof full, "%s/seg.dcm", path);
    ck_assert_int_eq(stat(full, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0137, 0);
    ck_assert_int_eq(status.st_size, 3);
}

END_TEST

START_TEST(unpublished_files_are_removed)
{
    struct output *output = open_output();
    add_file(output, "seg.dcm", "seg");
    output_close(output);
    char above[128];
    snprintf(above, sizeof above, "%s/a", base);
    ck_assert_int_eq(access(above, F_OK), -1); /* this run created these folders, too */

    ck_assert_int_eq(mkdir(above, 0700), 0);
    strcat(above, "/b");
    ck_assert_int_eq(mkdir(above, 0700), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    output = open_output();
    add_file(output, "seg.dcm", "seg");
    output_close(output);
    assert_entries("");
}

END_TEST

START_TEST(only_created_folders_are_removed)
{
    char above[128], beside[160], slashes[160];
    snprintf(above, sizeof above, "%s/a", base);
    ck_assert_int_eq(mkdir(above, 0700), 0);
    struct output *output = NULL;
    snprintf(slashes, sizeof slashes, "%s/a//b///17//", base);
    ck_assert_int_eq(output_open(slashes, true, &output), 0);
    assert_entries("");
    output_close(output);
    ck_assert_int_eq(rmdir(above), 0); /* existed before, and is empty */

    output = open_output();
    snprintf(beside, sizeof beside, "%s/beside", above);
    ck_assert_int_eq(mkdir(beside, 0700), 0);
    output_close(output);
    ck_assert_int_eq(rmdir(beside), 0);
    ck_assert_int_eq(rmdir(above), 0);
}

END_TEST

START_TEST(leftovers_of_a_killed_run_are_swept)
{
    ck_assert_int_eq(mkdir(path, 0700), -1);
    output_close(open_output());
    struct output *output = open_output();
    add_file(output, "seg.dcm", "1");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    output_close(output);
    put_file(".seg.dcm.part");
    put_file(".preview.png.part");
    put_file(".profile");
    put_file("notes.part");
    output = open_output();
    assert_entries(".profile notes.part seg.dcm ");
    add_file(output, "seg.dcm", "22");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    output_close(output);
    assert_entries(".profile notes.part seg.dcm ");
}

END_TEST

START_TEST(results_missing_in_a_rerun_are_removed)
{
    struct output *output = open_output();
    add_file(output, "seg.dcm", "1");
    add_file(output, "codes-1.nrrd", "1");
    add_file(output, "codes-2.nrrd", "1");
    add_file(output, "job.json", "1");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    output_close(output);
    put_file("notes.txt");
    put_file("other.dcm");
    output = open_output();
    add_file(output, "job.json", "EMPTY");
    add_file(output, "codes-2.nrrd", "1");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    output_close(output);
    assert_entries("codes-2.nrrd job.json notes.txt other.dcm ");
}

END_TEST

START_TEST(an_abandoned_rerun_keeps_the_earlier_results)
{
    struct output *output = open_output();
    add_file(output, "seg.dcm", "1");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    output_close(output);
    output = open_output();
    add_file(output, "seg.dcm", "2");
    output_close(output);
    assert_entries("seg.dcm ");
}

END_TEST

START_TEST(a_failed_publication_leaves_no_file_of_this_run)
{
    struct output *output = open_output();
    char blocked[256];
    add_file(output, "preview.png", "1");
    add_file(output, "seg.dcm", "2");
    snprintf(blocked, sizeof blocked, "%s/seg.dcm", path);
    ck_assert_int_eq(mkdir(blocked, 0700), 0); /* makes the second rename fail */
    ck_assert_int_eq(output_publish(output, results_is_file), -EISDIR);
    assert_entries("seg.dcm ");
    output_close(output);
    assert_entries("seg.dcm ");
    ck_assert_int_eq(rmdir(blocked), 0);
}

END_TEST

/* Replaces the file's descriptor by a pipe, which cannot be synced. */
START_TEST(files_that_cannot_be_synced_are_not_published)
{
    struct output *output = open_output();
    const char *name = NULL;
    int fds[2], fd;
    add_file(output, "seg.dcm", "seg");
    ck_assert_int_eq(output_create(output, "preview.png", &fd), 0);
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(dup2(fds[1], fd), fd);
    output_finish(output, fd);
    add_file(output, "job.json", "{}");
    ck_assert_int_eq(output_sync_all(output, &name), -EINVAL);
    ck_assert_str_eq(name, "preview.png");
    ck_assert_int_eq(output_publish(output, results_is_file), -EINVAL);
    assert_entries("");
    output_close(output);
    close(fds[0]);
    close(fds[1]);
}

END_TEST

static atomic_int synced;

/* Replace the C library's functions for the linked code. */
int
fdatasync(int fd)
{
    synced++;
    return (int)syscall(SYS_fdatasync, fd);
}

int
fsync(int fd)
{
    synced++;
    return (int)syscall(SYS_fsync, fd);
}

/* Expects syncs of two files, the folder, and its entry. */
START_TEST(temporary_output_is_not_synced)
{
    static const int expected[] = {0, 4};
    for (int lasts = 0; lasts < 2; lasts++) {
        struct output *output;
        remove_base();
        make_base();
        snprintf(path, sizeof path, "%s/17", base);
        synced = 0;
        ck_assert_int_eq(output_open(path, lasts, &output), 0);
        add_file(output, "seg.dcm", "seg");
        add_file(output, "job.json", "{}");
        ck_assert_int_eq(output_publish(output, results_is_file), 0);
        output_close(output);
        ck_assert_int_eq(atomic_load(&synced), expected[lasts]);
        assert_entries("job.json seg.dcm ");
    }
}

END_TEST

START_TEST(unfinished_files_are_not_published)
{
    struct output *output = open_output();
    int fd;
    add_file(output, "seg.dcm", "seg");
    ck_assert_int_eq(output_create(output, "job.json", &fd), 0);
    ck_assert_int_eq(output_publish(output, results_is_file), -EBUSY);
    assert_entries("");
    output_close(output);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1); /* closed with the output */
}

END_TEST

START_TEST(one_job_at_a_time)
{
    struct output *first = open_output(), *second;
    ck_assert_int_eq(output_open(path, true, &second), -EBUSY);
    add_file(first, "seg.dcm", "1");
    ck_assert_int_eq(output_open(path, true, &second), -EBUSY);
    assert_entries(".seg.dcm.part ");
    output_close(first);
    first = open_output();
    output_close(first);
}

END_TEST

START_TEST(unusable_folders_are_refused)
{
    struct output *output;
    char file[128];
    snprintf(file, sizeof file, "%s/file", base);
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    close(fd);
    ck_assert_int_eq(output_open(file, true, &output), -ENOTDIR);
    snprintf(path, sizeof path, "%s/file/17", base);
    ck_assert_int_eq(output_open(path, true, &output), -ENOTDIR);
    ck_assert_int_eq(output_open("/proc/noctule-test", true, &output), -ENOENT);
}

END_TEST

START_TEST(a_name_is_used_once)
{
    struct output *output = open_output();
    int fd;
    add_file(output, "seg.dcm", "1");
    ck_assert_int_eq(output_create(output, "seg.dcm", &fd), -EEXIST);
    output_close(output);
}

END_TEST

START_TEST(a_trailing_slash_has_no_effect)
{
    strcat(path, "///");
    struct output *output = open_output();
    add_file(output, "seg.dcm", "1");
    ck_assert_int_eq(output_publish(output, results_is_file), 0);
    output_close(output);
    path[strlen(path) - 3] = '\0';
    assert_entries("seg.dcm ");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_output");
    TCase *tests = tcase_create("output");
    tcase_add_checked_fixture(tests, make_base, remove_base);
    tcase_add_test(tests, files_appear_together);
    tcase_add_test(tests, unpublished_files_are_removed);
    tcase_add_test(tests, only_created_folders_are_removed);
    tcase_add_test(tests, leftovers_of_a_killed_run_are_swept);
    tcase_add_test(tests, results_missing_in_a_rerun_are_removed);
    tcase_add_test(tests, an_abandoned_rerun_keeps_the_earlier_results);
    tcase_add_test(tests, a_failed_publication_leaves_no_file_of_this_run);
    tcase_add_test(tests, files_that_cannot_be_synced_are_not_published);
    tcase_add_test(tests, temporary_output_is_not_synced);
    tcase_add_test(tests, unfinished_files_are_not_published);
    tcase_add_test(tests, one_job_at_a_time);
    tcase_add_test(tests, unusable_folders_are_refused);
    tcase_add_test(tests, a_name_is_used_once);
    tcase_add_test(tests, a_trailing_slash_has_no_effect);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
