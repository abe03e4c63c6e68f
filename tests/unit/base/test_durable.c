/* Files are complete or absent. */
#include "base/durable.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static int folder;

static bool
is_there(const char *name)
{
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
assert_holds(const char *name, const char *expected)
{
    char text[64] = "";
    int fd = openat(folder, name, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(read(fd, text, sizeof text - 1), 0);
    close(fd);
    ck_assert_str_eq(text, expected);
}

static int
put(const char *name, const char *text, enum durable_target target)
{
    return durable_write(folder, name, text, strlen(text), 0600, target);
}

static void
set_up(void)
{
    strcpy(root, "/tmp/noctule-test-durable-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    folder = open(root, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(folder, 0);
}

static void
tear_down(void)
{
    char command[128];
    close(folder);
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(replacement_is_complete_and_private)
{
    struct stat status;
    ck_assert_int_eq(put("copy", "first", DURABLE_REPLACE), 0);
    ck_assert_int_eq(put("copy", "second", DURABLE_REPLACE), 0);
    assert_holds("copy", "second");
    ck_assert_int_eq(fstatat(folder, "copy", &status, 0), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert(!is_there("copy.part"));
    char path[96];
    snprintf(path, sizeof path, "%s/copy", root);
    ck_assert_int_eq(durable_write(AT_FDCWD, path, "third", 5, 0600, DURABLE_REPLACE), 0);
    assert_holds("copy", "third");
    ck_assert_int_eq(put("nowhere/at/all", "x", DURABLE_REPLACE), -ENOENT);
}

END_TEST

START_TEST(a_failed_replacement_keeps_the_old_file)
{
    ck_assert_int_eq(mkdirat(folder, "folder", 0700), 0);
    ck_assert_int_eq(put("folder/inside", "x", DURABLE_NEW), 0);
    ck_assert_int_eq(put("folder", "x", DURABLE_REPLACE), -EISDIR);
    ck_assert(is_there("folder/inside") && !is_there("folder.part"));
}

END_TEST

START_TEST(a_new_file_does_not_replace_an_existing_one)
{
    ck_assert_int_eq(put("file", "first", DURABLE_NEW), 0);
    ck_assert_int_eq(put("file", "second", DURABLE_NEW), -EEXIST);
    assert_holds("file", "first");
    ck_assert(!is_there("file.part"));
    char name[NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[NAME_MAX] = '\0';
    ck_assert_int_eq(put(name, "x", DURABLE_NEW), -ENAMETOOLONG); /* with ".part" */
}

END_TEST

START_TEST(a_leftover_partial_file_is_overwritten)
{
    int fd = durable_create(folder, "file.part", 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(durable_write_all(fd, "more than comes after", 21), 0);
    ck_assert_int_eq(durable_close(fd), 0);
    ck_assert_int_eq(put("file", "short", DURABLE_NEW), 0);
    assert_holds("file", "short");
}

END_TEST

START_TEST(links_are_not_followed)
{
    ck_assert_int_eq(put("elsewhere", "untouched", DURABLE_NEW), 0);
    ck_assert_int_eq(symlinkat("elsewhere", folder, "file.part"), 0);
    ck_assert_int_eq(put("file", "x", DURABLE_NEW), -ELOOP);
    assert_holds("elsewhere", "untouched");
    ck_assert(!is_there("file"));
}

END_TEST

START_TEST(a_failed_write_leaves_no_file)
{
    struct rlimit before, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 4, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = put("file", "more than four", DURABLE_REPLACE);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(rc, -EFBIG);
    ck_assert(!is_there("file") && !is_there("file.part"));
}

END_TEST

START_TEST(the_first_failure_is_reported)
{
    int fd = durable_create(folder, "file", 0600);
    ck_assert_int_eq(durable_finish(fd, -ENOSPC), -ENOSPC);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(durable_finish(ends[1], 0), -EINVAL); /* a pipe cannot be synced */
    close(ends[0]);
    ck_assert_int_eq(durable_sync_folder(folder, "."), 0);
    ck_assert_int_eq(durable_sync_folder(folder, "nowhere"), -ENOENT);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_durable");
    TCase *tests = tcase_create("durable");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, replacement_is_complete_and_private);
    tcase_add_test(tests, a_failed_replacement_keeps_the_old_file);
    tcase_add_test(tests, a_new_file_does_not_replace_an_existing_one);
    tcase_add_test(tests, a_leftover_partial_file_is_overwritten);
    tcase_add_test(tests, links_are_not_followed);
    tcase_add_test(tests, a_failed_write_leaves_no_file);
    tcase_add_test(tests, the_first_failure_is_reported);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
