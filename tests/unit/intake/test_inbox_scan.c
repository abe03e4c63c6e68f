/* Names and paths of inboxes, walking in steps, and events of inotify. */
#include "service/receiver/inbox/inbox_scan.h"

#include "tests/unit/scratch_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

START_TEST(ignored_names)
{
    static const char *const ignored[] = {".", ".hidden", "..", "a.part", "A.TMP", "a.Part", "x.partial", ".part"};
    static const char *const taken[] = {"a", "a.dcm", "part", "tmp", "a.part.dcm", "IM0001", "a.tmpx", "-", " "};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        ck_assert_msg(scan_ignores(ignored[i]), "%s", ignored[i]);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        ck_assert_msg(!scan_ignores(taken[i]), "%s", taken[i]);
}

END_TEST

START_TEST(inboxes_in_folders_of_the_service_are_refused)
{
    static const char *const refused[] = {"/srv/noctule",
                                          "/srv",
                                          "/",
                                          "/srv/noctule/series",
                                          "/srv/noctule/series/1.2",
                                          "/srv/noctule/incoming",
                                          "/srv/noctule/quarantine",
                                          "/srv/noctule/outbox/17",
                                          "/srv/noctule/run",
                                          "/srv/noctule/jobs"};
    static const char *const fine[] = {"/srv/noctule/inbox",
                                       "/srv/noctule/inbox/series",
                                       "/srv/noctule2",
                                       "/srv/noctule/series2",
                                       "/data",
                                       "/srv/noc"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert_msg(scan_conflict(refused[i], "/srv/noctule") != NULL, "%s", refused[i]);
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        ck_assert_msg(scan_conflict(fine[i], "/srv/noctule") == NULL, "%s", fine[i]);
    ck_assert(scan_is_within("/a/b", "/a/"));
    ck_assert(!scan_is_within("/ab", "/a"));
}

END_TEST

static struct scan_step step;

static void
enter(const char *folder)
{
    step = (struct scan_step){.kind = SCAN_ENTER, .inbox = strdup(scratch_path("in"))};
    step.root = strdup(scratch_path("root"));
    step.folder = strdup(folder);
    scan_run(&step);
}

static void
leave(void)
{
    if (step.directory)
        closedir(step.directory);
    scan_clear(&step);
    free((char *)(uintptr_t)step.inbox);
    free((char *)(uintptr_t)step.root);
}

START_TEST(a_folder_is_read_in_steps)
{
    scratch_folder("root");
    scratch_folder("in");
    scratch_folder("in/sub");
    const int files = 2 * SCAN_STEP + 10;
    for (int i = 0; i < files; i++) {
        char name[32];
        snprintf(name, sizeof name, "in/sub/%d", i);
        scratch_write(name, "x", 1);
    }
    scratch_write("in/sub/no.part", "x", 1);
    enter("sub");
    ck_assert_int_eq(step.error, 0);
    ck_assert_ptr_nonnull(step.directory);
    ck_assert_int_eq(step.descriptor, -ENOSYS);
    size_t seen = 0;
    int steps = 0;
    step.kind = SCAN_READ;
    while (step.directory) {
        scan_run(&step);
        ck_assert_int_eq(step.error, 0);
        for (size_t i = 0; i < step.count; i++) {
            ck_assert_int_eq(strncmp(step.found_files[i].relative, "sub/", 4), 0);
            ck_assert(S_ISREG(step.found_files[i].mode));
            ck_assert_int_eq(step.found_files[i].stamp.size, 1);
            free(step.found_files[i].relative);
        }
        seen += step.count;
        step.count = 0;
        steps++;
    }
    ck_assert_uint_eq(seen, (size_t)files);
    ck_assert_int_eq(steps, 3);
    leave();
}

END_TEST

START_TEST(only_a_missing_inbox_itself_is_created)
{
    scratch_folder("root");
    enter("");
    ck_assert_int_eq(step.error, 0);
    ck_assert(step.made);
    leave();
    ck_assert(scratch_has("in"));
    enter("gone");
    ck_assert_int_eq(step.error, -ENOENT);
    leave();
    ck_assert(!scratch_has("in/gone"));
}

END_TEST

START_TEST(links_lead_nowhere)
{
    scratch_folder("root");
    scratch_folder("in");
    scratch_folder("out");
    scratch_folder("out/deep");
    scratch_write("out/deep/file", "x", 1);
    ck_assert_int_eq(symlink(scratch_path("out"), scratch_path("in/link")), 0);
    ck_assert_int_eq(symlink(scratch_path("out/deep/file"), scratch_path("in/file")), 0);
    enter("link");
    ck_assert(step.error == -ELOOP || step.error == -ENOTDIR);
    leave();
    enter("link/deep");
    ck_assert(step.error == -ELOOP || step.error == -ENOTDIR);
    leave();
    int base = open(scratch_path("in"), O_PATH | O_DIRECTORY);
    ck_assert_int_ge(base, 0);
    ck_assert_int_eq(file_open_below(base, "file", O_RDONLY), -ELOOP);
    ck_assert_int_lt(file_open_below(base, "link/deep/file", O_RDONLY), 0);
    ck_assert_int_eq(file_open_below(base, "../out/deep/file", O_RDONLY), -EINVAL);
    close(base);
}

END_TEST

START_TEST(a_link_to_the_root_is_refused)
{
    scratch_folder("root");
    ck_assert_int_eq(symlink(scratch_path("root"), scratch_path("in")), 0);
    enter("");
    ck_assert_int_eq(step.error, -EINVAL);
    ck_assert_ptr_nonnull(step.conflict);
    leave();
}

END_TEST

START_TEST(looks_report_the_state_of_files)
{
    scratch_folder("root");
    scratch_folder("in");
    scratch_write("in/file", "four", 4);
    step = (struct scan_step){.kind = SCAN_LOOK, .inbox = strdup(scratch_path("in")), .count = 2};
    step.root = strdup(scratch_path("root"));
    step.found_files[0].relative = strdup("file");
    step.found_files[1].relative = strdup("gone");
    scan_run(&step);
    ck_assert(S_ISREG(step.found_files[0].mode));
    ck_assert_int_eq(step.found_files[0].stamp.size, 4);
    ck_assert_int_eq(step.found_files[1].error, -ENOENT);
    leave();
}

END_TEST

/* -------------------------------------------------------------------------- watch ------ */

static char told[512];

static void
tell(void *context, enum inotify_event_kind kind, const char *folder, const char *name)
{
    (void)context;
    static const char *const names[] = {"written", "renamed", "folder", "gone", "overflow"};
    size_t at = strlen(told);
    snprintf(told + at, sizeof told - at, "%s:%s/%s ", names[kind], folder, name);
}

static const char *
read_all(struct inotify *inotify)
{
    struct pollfd ready = {.fd = inotify_fd(inotify), .events = POLLIN};
    told[0] = '\0';
    while (poll(&ready, 1, 0) == 1)
        ck_assert_int_eq(inotify_read(inotify, tell, NULL), 0);
    return told;
}

START_TEST(inotify_reports_relevant_events)
{
    struct inotify *inotify;
    scratch_folder("in");
    ck_assert_int_eq(inotify_open(&inotify), 0);
    int descriptor = inotify_watch(inotify, scratch_path("in"));
    ck_assert_int_ge(descriptor, 0);
    scratch_write("in/early", "x", 1);
    /* Dropped without a name: reading the folder finds the file. */
    ck_assert_str_eq(read_all(inotify), "");
    ck_assert_int_eq(inotify_name(inotify, descriptor, "in", 1), 0);
    scratch_write("in/a.part", "x", 1);
    ck_assert_str_eq(read_all(inotify), "written:in/a.part written:in/a.part ");
    ck_assert_int_eq(rename(scratch_path("in/a.part"), scratch_path("in/a")), 0);
    ck_assert_str_eq(read_all(inotify), "renamed:in/a ");
    scratch_folder("in/sub");
    ck_assert_str_eq(read_all(inotify), "folder:in/sub ");
    ck_assert_int_eq(unlink(scratch_path("in/a")), 0);
    ck_assert_str_eq(read_all(inotify), "");
    inotify_close(inotify);
}

END_TEST

START_TEST(watches_are_renamed_and_forgotten)
{
    struct inotify *inotify;
    ck_assert_int_eq(inotify_open(&inotify), 0);
    int descriptors[40];
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        scratch_folder(name);
        descriptors[i] = inotify_watch(inotify, scratch_path(name));
        ck_assert_int_eq(inotify_name(inotify, descriptors[i], name, 1), 0);
    }
    ck_assert_int_eq(inotify_watch(inotify, scratch_path("f3")), descriptors[3]);
    ck_assert_int_eq(inotify_name(inotify, descriptors[3], "three", 2), 0);
    scratch_write("f3/x", "x", 1);
    ck_assert_str_eq(read_all(inotify), "written:three/x written:three/x ");
    inotify_forget_unmet(inotify, 2);
    scratch_write("f4/x", "x", 1);
    scratch_write("f3/y", "x", 1);
    ck_assert_str_eq(read_all(inotify), "written:three/y written:three/y ");
    ck_assert_int_eq(unlink(scratch_path("f3/x")) + unlink(scratch_path("f3/y")), 0);
    ck_assert_int_eq(rmdir(scratch_path("f3")), 0);
    ck_assert_str_eq(read_all(inotify), "gone:three/ ");
    ck_assert_int_lt(inotify_watch(inotify, scratch_path("f3")), 0);
    inotify_close(inotify);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_inbox_walk");
    TCase *tests = tcase_create("scan");
    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_test(tests, ignored_names);
    tcase_add_test(tests, inboxes_in_folders_of_the_service_are_refused);
    tcase_add_test(tests, a_folder_is_read_in_steps);
    tcase_add_test(tests, only_a_missing_inbox_itself_is_created);
    tcase_add_test(tests, links_lead_nowhere);
    tcase_add_test(tests, a_link_to_the_root_is_refused);
    tcase_add_test(tests, looks_report_the_state_of_files);
    tcase_add_test(tests, inotify_reports_relevant_events);
    tcase_add_test(tests, watches_are_renamed_and_forgotten);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
