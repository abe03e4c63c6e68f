/* What a confined process can still do, and what not. Each case is a process of its own. */
#include "service/common/confine.h"

#include "service/common/log.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[] =
    "/var/tmp/noctule-confine-XXXXXX"; /* not in /tmp, where libraries may write */

/* 0: none. */
static long
landlock(void)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? 0 : abi;
}

static const char *
path(const char *name)
{
    static char paths[2][128];
    static int next;
    char *made = paths[next++ % 2];
    snprintf(made, sizeof paths[0], "%s/%s", folder, name);
    return made;
}

/* The errno of making a file. */
static int
make(const char *name)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* The errno of connecting to, or (`listens`) of taking a port. */
static int
use_net(bool listens)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(listens ? 0 : 1),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    int rc = (listens ? bind : connect)(fd, (const struct sockaddr *)&address, sizeof address);
    int error = rc < 0 ? errno : 0;
    close(fd);
    return error;
}

static void
set_up(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(path("out"), 0700), 0);
    ck_assert_int_eq(make("before"), 0);
}

START_TEST(a_worker_writes_to_its_folder_alone)
{
    const long abi = landlock();
    const int denied = abi >= 1 ? EACCES : 0;
    ck_assert_int_eq(confine_self(&(struct confine){.writes_below = path("out")}), 0);
    ck_assert_int_eq(make("out/result"), 0);
    ck_assert_int_eq(rename(path("out/result"), path("out/other")), 0);
    ck_assert_int_eq(mkdir(path("out/7"), 0700), 0);
    ck_assert_int_eq(unlink(path("out/other")) + rmdir(path("out/7")), 0);
    ck_assert_int_eq(make("before"), denied);
    ck_assert_int_eq(make("new"), denied);
    ck_assert(abi < 1 || (unlink(path("before")) < 0 && errno == EACCES));
    ck_assert_int_ge(open(path("before"), O_RDONLY | O_CLOEXEC), 0);
    ck_assert_int_ge(open("/dev/null", O_WRONLY | O_CLOEXEC), 0);
    ck_assert_int_eq(use_net(true), abi >= 4 ? EACCES : 0);
    ck_assert_int_eq(use_net(false), abi >= 4 ? EACCES : ECONNREFUSED);
    ck_assert(abi < 6 || (kill(getppid(), 0) < 0 && errno == EPERM));
    if (abi >= 1) {
        execl("/bin/true", "true", (char *)NULL);
        ck_assert_int_eq(errno, EACCES);
    }
}

END_TEST

START_TEST(the_intake_listens_and_does_not_connect)
{
    ck_assert_int_eq(confine_self(&(struct confine){.may_listen = true}), 0);
    ck_assert_int_eq(use_net(true), 0);
    ck_assert_int_eq(use_net(false), landlock() >= 4 ? EACCES : ECONNREFUSED);
    ck_assert_int_eq(make("new"), 0);
}

END_TEST

START_TEST(the_courier_connects_and_does_not_listen)
{
    ck_assert_int_eq(confine_self(&(struct confine){.may_connect = true}), 0);
    ck_assert_int_eq(use_net(true), landlock() >= 4 ? EACCES : 0);
    ck_assert_int_eq(use_net(false), ECONNREFUSED);
    ck_assert_int_eq(make("new"), 0);
}

END_TEST

START_TEST(a_folder_that_is_not_there_is_told)
{
    ck_assert_int_eq(confine_self(&(struct confine){.writes_below = path("nowhere")}),
                     landlock() ? -ENOENT : 0);
    ck_assert_int_eq(make("new"), 0);
}

END_TEST

static void
tear_down(void)
{
    unlink(path("before"));
    unlink(path("new"));
    rmdir(path("out"));
    rmdir(folder);
}

int
main(void)
{
    log_open("test", "error");
    Suite *suite = suite_create("common_confine");
    TCase *tests = tcase_create("confine");
    tcase_add_unchecked_fixture(tests, set_up, tear_down); /* whom nothing confines */
    tcase_add_test(tests, a_worker_writes_to_its_folder_alone);
    tcase_add_test(tests, the_intake_listens_and_does_not_connect);
    tcase_add_test(tests, the_courier_connects_and_does_not_listen);
    tcase_add_test(tests, a_folder_that_is_not_there_is_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
