/* test_running.c - finds daemons in a synthetic /proc. integ.which_config uses real daemons. */
#include "service/cli/running/running.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <getopt.h>

/* Writes the files of a process. '|' ends each argument and each environment variable. */
struct process {
    const char *pid, *name, *spaces, *words, *environment, *folder, *root;
};

static void
write_words(const char *pid, const char *file, const char *words)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", pid, file);
    FILE *out = fopen(scratch_path(path), "w");
    ck_assert_ptr_nonnull(out);
    for (; *words; words++)
        fputc(*words == '|' ? '\0' : *words, out);
    ck_assert_int_eq(fclose(out), 0);
}

static void
make_process(const struct process *process)
{
    char path[64], status[256];
    ck_assert_int_eq(mkdir(scratch_path(process->pid), 0700), 0);
    snprintf(status, sizeof status, "Name:\t%s\nState:\tS\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t%s\n", process->name,
             process->spaces ? process->spaces : process->pid);
    write_words(process->pid, "status", status);
    write_words(process->pid, "cmdline", process->words);
    if (process->environment)
        write_words(process->pid, "environ", process->environment);
    snprintf(path, sizeof path, "%s/cwd", process->pid);
    if (process->folder)
        ck_assert_int_eq(symlink(process->folder, scratch_path(path)), 0);
    snprintf(path, sizeof path, "%s/root", process->pid);
    if (process->root)
        ck_assert_int_eq(symlink(process->root, scratch_path(path)), 0);
}

static struct running_daemon *
find(const struct process *process, size_t expected)
{
    struct running_daemon *daemons;
    size_t count;
    scratch_make();
    make_process(process);
    const int told = opterr;
    ck_assert_int_eq(running_daemons(scratch, &daemons, &count), 0);
    ck_assert_uint_eq(count, expected);
    ck_assert_int_eq(opterr, told);
    scratch_remove();
    return daemons;
}

#define ENVIRONMENT "HOME=/root|NOCTULE_CONFIG_=no|NOCTULE_CONFIG=env.conf|"

/* Writes a daemon with process ID 7. */
#define DAEMON(words_, ...)                                                                                            \
    {                                                                                                                  \
        .pid = "7", .name = "noctuled", .words = "noctuled|" words_, __VA_ARGS__                                       \
    }

static const struct {
    struct process process;
    const char *config, *root;
} seen[] = {
    {DAEMON("--config|/a/b.conf|"), "/a/b.conf", ""},
    {DAEMON("-cb.conf|", .folder = "/a"), "/a/b.conf", ""},
    {DAEMON("--conf=b.conf|--root|data|", .folder = "/a"), "/a/b.conf", "/a/data"},
    {DAEMON("--root=/x|", .environment = ENVIRONMENT, .folder = "/a"), "/a/env.conf", "/x"},
    {DAEMON("-c|/a/b.conf|", .environment = ENVIRONMENT, .folder = "/a"), "/a/b.conf", ""},
    {DAEMON("", .environment = "NOCTULE_CONFIG=|"), "/etc/noctule/noctule.conf", ""},
    {DAEMON("", .environment = ""), "/etc/noctule/noctule.conf", ""},
    {DAEMON("-c|/a/b.conf|", .root = "/"), "/a/b.conf", ""},
    /* Checks that the daemon is found without its configuration. */
    {DAEMON("", .folder = "/a"), "", ""},
    {DAEMON("-c|b.conf|"), "", ""},
    {DAEMON("-c|/a/b.conf|-r|data|"), "", ""},
};

START_TEST(arguments_of_a_running_daemon)
{
    struct running_daemon *daemon = find(&seen[_i].process, 1);
    ck_assert_int_eq(daemon->pid, 7);
    ck_assert_uint_eq(daemon->user, 1001);
    ck_assert_str_eq(daemon->config, seen[_i].config);
    ck_assert_str_eq(daemon->root, seen[_i].root);
    free(daemon);
}

END_TEST

#define MANY "-rx|-rx|-rx|-rx|-rx|-rx|-rx|-rx|-rx|-rx|-rx|"

static const struct process others[] = {
    {.pid = "7", .name = "noctule-worker", .words = "noctuled|--role|worker|-c|/a/b.conf|"},
    DAEMON("--role|worker|-c|/a/b.conf|"),
    DAEMON("-c|/a/b.conf|", .spaces = "7\t1"),     /* in a container */
    DAEMON("-c|/a/b.conf|", .root = "/proc"),      /* in a chroot */
    {.pid = "7", .name = "noctuled", .words = ""}, /* a zombie */
    DAEMON("--version|"),
    DAEMON("--what|"),
    DAEMON(MANY MANY MANY, .folder = "/a"),
    {.pid = "7", .name = "vim", .words = "vim|noctuled|"},
    {.pid = "self", .name = "noctuled", .words = "noctuled|-c|/a/b.conf|"},
};

START_TEST(other_processes_are_ignored)
{
    ck_assert_ptr_null(find(&others[_i], 0));
}

END_TEST

START_TEST(daemons_are_in_order)
{
    struct running_daemon *daemons;
    size_t count;
    scratch_make();
    for (size_t i = 0; i < 3; i++) {
        static const char *const numbers[] = {"12", "9", "100"};
        make_process(&(struct process){.pid = numbers[i], .name = "noctuled", .words = "noctuled|-c|/a|"});
    }
    ck_assert_int_eq(mkdir(scratch_path("11"), 0700), 0); /* it has just ended */
    ck_assert_int_eq(running_daemons(scratch, &daemons, &count), 0);
    ck_assert_uint_eq(count, 3);
    ck_assert(daemons[0].pid == 9 && daemons[1].pid == 12 && daemons[2].pid == 100);
    free(daemons);
    scratch_remove();
    ck_assert_int_lt(running_daemons(scratch, &daemons, &count), 0);
    ck_assert(!daemons && count == 0);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("cli_running");
    TCase *tests = tcase_create("running");
    tcase_add_loop_test(tests, arguments_of_a_running_daemon, 0, sizeof seen / sizeof *seen);
    tcase_add_loop_test(tests, other_processes_are_ignored, 0, sizeof others / sizeof *others);
    tcase_add_test(tests, daemons_are_in_order);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
