/* The rights of a confined process. Each case runs in its own process. */
#include "service/common/confine/confine.h"

#include "service/common/log.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/var/tmp/noctule-confine-XXXXXX";

static const char *
path(const char *name)
{
    static char paths[4][128];
    static int next;
    char *made = paths[next++ % 4];
    snprintf(made, sizeof paths[0], "%s/%s", folder, name);
    return made;
}

/* Returns the errno of creating a file. */
static int
make(const char *name)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* Returns the errno of reading a file or folder. */
static int
look(const char *name)
{
    int fd = open(path(name), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int
move(const char *from, const char *to)
{
    return rename(path(from), path(to)) < 0 ? errno : 0;
}

/* Returns the errno of connecting to a port, or of binding one if `listens`. */
static int
use_net(bool listens)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(listens ? 0 : 1), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    int rc = (listens ? bind : connect)(fd, (const struct sockaddr *)&address, sizeof address);
    int error = rc < 0 ? errno : 0;
    close(fd);
    return error;
}

/* Returns the expected errno: `error` from kernel version `since` on, else `otherwise`. */
static int
denied(long since, int error, int otherwise)
{
    return confine_landlock() >= since ? error : otherwise;
}

static void
set_up(void)
{
    static const char *const folders[] = {"series", "series/1.2", "incoming", "quarantine", "jobs",
                                          "outbox", "outbox/7",   "in",       "moved",      "to"};
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ck_assert_int_eq(mkdir(path(folders[i]), 0700), 0);
    ck_assert_int_eq(make("series/1.2/image") | make("noctule.db") | make("jobs/7.job"), 0);
    ck_assert_int_eq(make("outbox/7/seg.dcm") | make("in/new") | make("quarantine/q"), 0);
}

static void
tear_down(void)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* A configuration with every kind of path. */
static struct conf
configured(void)
{
    static struct conf_inbox inbox;
    static struct conf_destination destination;
    static char names[4][128];
    snprintf(names[0], sizeof *names, "%s", folder);
    snprintf(names[1], sizeof *names, "%s/in", folder);
    snprintf(names[2], sizeof *names, "%s/moved", folder);
    snprintf(names[3], sizeof *names, "%s/to", folder);
    inbox = (struct conf_inbox){.path = names[1], .after = CONF_MOVE, .move_to = names[2]};
    destination = (struct conf_destination){.name = names[3], .folder = names[3]};
    return (struct conf){
        .root = names[0], .inboxes = &inbox, .inbox_count = 1, .destinations = &destination, .destination_count = 1};
}

static void
confine(enum confine_role role)
{
    const struct conf conf = configured();
    ck_assert_int_eq(confine_self(role, &conf), 0);
}

/* Checks actions that no role may do. */
static void
check_what_all_may_not(void)
{
    ck_assert_int_eq(look("noctule.db"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("noctule.db"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("new"), denied(1, EACCES, 0));
    ck_assert(denied(1, 0, 1) || (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES));
    ck_assert(denied(1, 0, 1) || (mkfifo(path("outbox/fifo"), 0600) < 0 && errno == EACCES));
    ck_assert(denied(6, 0, 1) || (kill(getppid(), 0) < 0 && errno == EPERM));
    ck_assert_int_ge(open("/dev/null", O_WRONLY | O_CLOEXEC), 0);
    if (confine_landlock() >= 1) {
        execl("/bin/true", "true", (char *)NULL);
        ck_assert_int_eq(errno, EACCES);
    }
}

static void
check_worker(void)
{
    ck_assert_int_eq(look("series/1.2/image") | look("jobs/7.job"), 0);
    ck_assert_int_eq(make("outbox/7/new") | move("outbox/7/new", "outbox/7/other"), 0);
    ck_assert_int_eq(mkdir(path("outbox/8"), 0700) | rmdir(path("outbox/8")), 0);
    ck_assert_int_eq(unlink(path("outbox/7/other")), 0);
    ck_assert_int_eq(make("series/1.2/image"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("jobs/8.job"), denied(1, EACCES, 0));
    ck_assert_int_eq(look("quarantine/q"), denied(1, EACCES, 0));
    ck_assert_int_eq(look("in/new"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("to/new"), denied(1, EACCES, 0));
    ck_assert_int_eq(use_net(true), denied(4, EACCES, 0));
    ck_assert_int_eq(use_net(false), denied(4, EACCES, ECONNREFUSED));
}

START_TEST(a_worker_reads_series_and_writes_results)
{
    confine(CONFINE_WORKER);
    check_worker();
    ck_assert(denied(1, 0, 1) || (open("/proc/1/stat", O_RDONLY | O_CLOEXEC) < 0));
}

END_TEST

START_TEST(a_gpu_worker_can_read_the_files_of_its_driver)
{
    char cache[128];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("CUDA_CACHE_PATH", cache, 1);
    confine(CONFINE_GPU_WORKER);
    ck_assert_int_ge(open("/proc/1/stat", O_RDONLY | O_CLOEXEC), 0);
    ck_assert_int_eq(make("cache/compiled"), 0);
    ck_assert_int_ge(open("/proc/self/comm", O_WRONLY | O_TRUNC | O_CLOEXEC), 0);
    check_worker();
}

END_TEST

/* Attempts are folders of the share, and series are below it: here `outbox/7` and `series`. */
START_TEST(a_step_writes_its_own_attempt_and_scratch)
{
    char series[128], scratch[128], attempt[128], *attempts[] = {attempt};
    snprintf(series, sizeof series, "%s", path("series"));
    snprintf(scratch, sizeof scratch, "%s", path("to/step"));
    snprintf(attempt, sizeof attempt, "%s", path("outbox/7"));
    ck_assert_int_eq(mkdir(scratch, 0700), 0);
    const struct step_places step = {.series = series, .scratch = scratch, .attempts = attempts, .attempt_count = 1};
    ck_assert_int_eq(confine_step(CONFINE_STEP, &step), 0);
    ck_assert_int_eq(look("series/1.2/image") | look("outbox/7/seg.dcm"), 0);
    ck_assert_int_eq(make("outbox/7/part") | move("outbox/7/part", "outbox/7/manifest"), 0);
    ck_assert_int_eq(mkdir(path("to/step/results"), 0700) | make("to/step/results/new"), 0);
    ck_assert_int_eq(unlink(path("to/step/results/new")) | rmdir(path("to/step/results")), 0);
    ck_assert_int_eq(rmdir(scratch), 0);
    ck_assert_int_eq(make("to/new"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("outbox/8"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("series/1.2/image"), denied(1, EACCES, 0));
    ck_assert_int_eq(look("jobs/7.job"), denied(1, EACCES, 0));
    ck_assert_int_eq(use_net(true), denied(4, EACCES, 0));
    ck_assert_int_eq(use_net(false), denied(4, EACCES, ECONNREFUSED));
    check_what_all_may_not();
}

END_TEST

START_TEST(the_receiver_listens_and_fills_the_spool)
{
    confine(CONFINE_INTAKE);
    ck_assert_int_eq(look("") | look("in/new"), 0);
    ck_assert_int_eq(make("incoming/part") | mkdir(path("series/3.4"), 0700), 0);
    ck_assert_int_eq(move("incoming/part", "series/3.4/image"), 0);
    ck_assert_int_eq(make("quarantine/new"), 0);
    ck_assert_int_eq(move("in/new", "moved/new"), 0);
    ck_assert_int_eq(use_net(true), 0);
    ck_assert_int_eq(use_net(false), denied(4, EACCES, ECONNREFUSED));
    ck_assert_int_eq(look("jobs/7.job"), denied(2, EACCES, 0));
    ck_assert_int_eq(make("to/new"), denied(2, EACCES, 0));
    if (confine_landlock() >= 2)
        check_what_all_may_not();
}

END_TEST

/* Checks the rights on originals for each value of `after`. */
static void
check_originals(enum conf_after after, int removed, int made)
{
    struct conf conf = configured();
    conf.inboxes[0].after = after;
    conf.inboxes[0].move_to = NULL;
    ck_assert_int_eq(confine_self(CONFINE_INTAKE, &conf), 0);
    ck_assert_int_eq(look("in/new"), 0);
    ck_assert_int_eq(make("in/other"), denied(2, made, 0));
    ck_assert_int_eq(unlink(path("in/new")) < 0 ? errno : 0, denied(2, removed, 0));
}

START_TEST(kept_originals_are_read_only)
{
    check_originals(CONF_KEEP, EACCES, EACCES);
}

END_TEST

START_TEST(deletable_originals_are_not_written)
{
    check_originals(CONF_DELETE, 0, EACCES);
}

END_TEST

START_TEST(the_sender_connects_and_reads_results)
{
    confine(CONFINE_COURIER);
    ck_assert_int_eq(look("outbox/7/seg.dcm"), 0);
    ck_assert_int_eq(make("to/part") | move("to/part", "to/new"), 0);
    ck_assert_int_eq(use_net(true), denied(4, EACCES, 0));
    ck_assert_int_eq(use_net(false), ECONNREFUSED);
    ck_assert_int_eq(look("series/1.2/image"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("outbox/7/seg.dcm"), denied(1, EACCES, 0));
    ck_assert_int_eq(look("in/new"), denied(1, EACCES, 0));
    check_what_all_may_not();
}

END_TEST

START_TEST(the_web_ui_reads_the_database_and_results)
{
    ck_assert_int_eq(make("noctule.db"), 0);
    confine(CONFINE_PAGE);
    ck_assert_int_eq(look("noctule.db") | look("outbox/7/seg.dcm"), 0);
    ck_assert_int_eq(make("outbox/7/seg.dcm"), denied(1, EACCES, 0));
    ck_assert_int_eq(look("series/1.2/image"), denied(1, EACCES, 0));
    ck_assert_int_eq(look("in/new"), denied(1, EACCES, 0));
    ck_assert_int_eq(make("to/part"), denied(1, EACCES, 0));
    ck_assert_int_eq(use_net(true), denied(4, EACCES, 0));
    ck_assert_int_eq(use_net(false), denied(4, EACCES, ECONNREFUSED));
}

END_TEST

/* Returns the path that a `courier` process with this configuration lacks. */
static const char *
lacking(const struct conf *conf)
{
    static char text[128];
    struct places needed;
    ck_assert_int_eq(places_of(CONFINE_COURIER, conf, &needed), 0);
    const char *found = confine_lacks(&needed);
    snprintf(text, sizeof text, "%s", found ? found : "");
    places_free(&needed);
    return text;
}

START_TEST(new_and_replaced_paths_are_reported_as_missing)
{
    struct conf conf = configured();
    int order[2];
    char other[128];
    snprintf(other, sizeof other, "%s", path("in"));
    ck_assert_int_eq(pipe(order), 0);
    const pid_t people = fork(); /* an unconfined process, as an administrator's */
    if (people == 0)
        _exit(read(order[0], other, 1) != 1 || move("to", "away") || mkdir(path("to"), 0700));
    ck_assert_int_eq(confine_self(CONFINE_COURIER, &conf), 0);
    const bool is_confined = confine_landlock() >= 1;
    ck_assert_str_eq(lacking(&conf), "");
    conf.destinations[0].folder = other;
    ck_assert_str_eq(lacking(&conf), is_confined ? other : "");
    conf.destinations[0].folder = conf.destinations[0].name;
    int status;
    ck_assert_int_eq(write(order[1], "", 1), 1);
    ck_assert_int_eq(waitpid(people, &status, 0), people);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(lacking(&conf), is_confined ? path("to") : "");
    ck_assert_int_eq(make("to/new"), denied(1, EACCES, 0));
}

END_TEST

START_TEST(missing_folders_are_created_or_skipped)
{
    struct conf conf = configured();
    char made[128], nowhere[] = "/proc/nowhere";
    snprintf(made, sizeof made, "%s", path("new/folder"));
    conf.inboxes[0].move_to = nowhere;
    conf.inboxes[0].path = made;
    ck_assert_int_eq(confine_self(CONFINE_INTAKE, &conf), 0);
    ck_assert_int_eq(make("new/folder/file"), 0);
}

END_TEST

/* Each case has its own folders, created and removed by an unconfined process. */
static void
add_case(Suite *suite, const char *name, const TTest *test)
{
    TCase *tests = tcase_create(name);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, test);
    suite_add_tcase(suite, tests);
}

int
main(void)
{
    log_open("test", "error");
    Suite *suite = suite_create("common_confine");
    add_case(suite, "worker", a_worker_reads_series_and_writes_results);
    add_case(suite, "gpu worker", a_gpu_worker_can_read_the_files_of_its_driver);
    add_case(suite, "step", a_step_writes_its_own_attempt_and_scratch);
    add_case(suite, "intake", the_receiver_listens_and_fills_the_spool);
    add_case(suite, "keep", kept_originals_are_read_only);
    add_case(suite, "delete", deletable_originals_are_not_written);
    add_case(suite, "courier", the_sender_connects_and_reads_results);
    add_case(suite, "page", the_web_ui_reads_the_database_and_results);
    add_case(suite, "lacking", new_and_replaced_paths_are_reported_as_missing);
    add_case(suite, "missing", missing_folders_are_created_or_skipped);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
