/* Programs in each kind of sandbox that works here: how they end, what they get, and what they leave. */
#include "service/common/program/sandbox.h"

#include "service/common/clock.h"
#include "service/common/confine/call_filter.h"
#include "service/common/log.h"
#include "tests/unit/marked.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SECONDS 60 /* only a hang takes longer */

static const enum sandbox_kind kinds[] = {SANDBOX_WEAK, SANDBOX_OWN, SANDBOX_BUBBLEWRAP};
static enum sandbox_kind kind; /* of this test */
static struct sandbox_probe probe;
static char mark[96], output[65536];
static struct sandbox_end end;

static void
set_up(void)
{
    scratch_make();
    scratch_folder("in");
    scratch_folder("out");
    scratch_folder("tmp");
    scratch_folder("tmp/shm");
    scratch_write("in/case", "voxels", 6);
    scratch_write("secret", "secret", 6);
    snprintf(mark, sizeof mark, "NOCTULE_TEST_SANDBOX=%s", scratch);
}

static struct sandbox_order
order_of(char *script, char **words, char **environment)
{
    static const char *const given[] = {NULL};
    static char paths[4][96], shell[] = "/bin/sh", option[] = "-c";
    static const char *const names[] = {"in", "out", "tmp", "tmp/shm"};
    for (size_t i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(names[i]));
    words[0] = shell;
    words[1] = option;
    words[2] = script;
    words[3] = NULL;
    environment[0] = mark;
    environment[1] = NULL;
    return (struct sandbox_order){.kind = kind,
                                  .host_proc = probe.host_proc,
                                  .argv = words,
                                  .environment = environment,
                                  .input = -1,
                                  .places = {.root = "/nonexistent",
                                             .in = paths[0],
                                             .out = paths[1],
                                             .temporary = paths[2],
                                             .shared = paths[3],
                                             .given = given}};
}

/* Runs a script to its end. Fills `end` and `output`. */
static void
run_limited(const char *script, const struct sandbox_limits *limits, bool host_network)
{
    char *words[4], *environment[2], text[4096];
    int ends[2], status;
    struct error error;
    snprintf(text, sizeof text, "%s", script);
    struct sandbox_order order = order_of(text, words, environment);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    order.output = order.errors = ends[1];
    order.limits = *limits;
    order.host_network = host_network;
    const pid_t keeper = sandbox_start(&order, &error);
    ck_assert_msg(keeper > 0, "%s", error.message);
    close(ends[1]);
    size_t used = 0;
    for (ssize_t size; (size = read(ends[0], output + used, sizeof output - 1 - used)) > 0;)
        used += (size_t)size;
    output[used] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
    sandbox_end_of(status, &end);
    ck_assert_int_eq(count_marked(mark), 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
}

static void
run(const char *script)
{
    run_limited(script, &(struct sandbox_limits){0}, false);
    ck_assert_msg(!end.failed, "%s", output);
}

START_TEST(the_end_is_reported)
{
    static const struct {
        const char *script;
        int exit_code, signal;
    } cases[] = {{"exit 0", 0, 0},       {"exit 3", 3, 0},     {"exit 128", 128, 0},
                 {"kill -11 $$", 0, 11}, {"kill -9 $$", 0, 9}, {"kill -15 $$", 0, 15},
                 {"exit 139", 0, 11},    {"exit 255", 255, 0}, {"(exit 7) & wait", 0, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run(cases[i].script);
        ck_assert_msg(end.exit_code == cases[i].exit_code && end.signal == cases[i].signal, "%s: %s: %d, %d",
                      sandbox_name(kind), cases[i].script, end.exit_code, end.signal);
    }
}

END_TEST

START_TEST(a_program_gets_what_it_is_given)
{
    char expected[600];
    run("env | grep -v '^_=' | sort; pwd; umask; cat /proc/self/stat | grep -c . ; ls /proc/self/fd | wc -l; cat; echo "
        "error >&2");
    /* sh exports PWD. ls opens the folder itself as a fourth descriptor. */
    snprintf(expected, sizeof expected, "%s\nPWD=%s/out\n%s/out\n0022\n1\n4\nerror\n", mark, scratch, scratch);
    ck_assert_str_eq(output, expected);
    run("grep -E '^(Sig(Blk|Ign)|Cap(Prm|Eff|Inh)|NoNewPrivs)' /proc/self/status");
    ck_assert_str_eq(output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nCapInh:\t0000000000000000\n"
                             "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n");
}

END_TEST

START_TEST(files_outside_are_out_of_reach)
{
    char script[1024];
    static const char *const denied[] = {"cat $S/secret",    "echo > $S/in/case", "rm $S/in/case",
                                         "echo > /etc/made", "echo > /usr/made",  "echo > /made",
                                         "ls $S/../*/root",  "cat /etc/shadow",   "mount -t proc x /mnt",
                                         "unshare -U true",  "echo > /dev/made"};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        snprintf(script, sizeof script, "S=%s; %s", scratch, denied[i]);
        run(script);
        ck_assert_msg(end.exit_code != 0 || (!call_filter_possible() && strstr(script, "unshare")), "%s: %s: %s",
                      sandbox_name(kind), script, output);
    }
    run("echo > ../../../$(basename $(dirname $PWD))/made"); /* with bubblewrap, /tmp is that of the program */
    ck_assert(!scratch_has("made"));
    ck_assert(access("/etc/made", F_OK) != 0 && access("/usr/made", F_OK) != 0);
    run("cat ../in/case; echo a > b; mkdir c; mv b c; ln -s c d; mkfifo e; echo > ../tmp/f; : > /dev/null");
    ck_assert_msg(end.exit_code == 0, "%s", output);
    ck_assert_str_eq(output, "voxels");
    ck_assert(scratch_has("out/c/b") && scratch_has("tmp/f"));
}

END_TEST

START_TEST(the_network_is_out_of_reach)
{
    static const char *const denied[] = {"socket.create_connection(('127.0.0.1', 1), 1)",
                                         "socket.socket(socket.AF_INET, 2)", "socket.socket(socket.AF_NETLINK, 3)"};
    char script[512];
    for (size_t i = 0; i < 3 && call_filter_possible(); i++) {
        snprintf(script, sizeof script, "exec python3 -c \"import socket; %s\"", denied[i]);
        run(script);
        ck_assert_msg(end.exit_code == 1 && strstr(output, "PermissionError"), "%s: %s", sandbox_name(kind), output);
    }
    run("exec python3 -c 'import socket; socket.socketpair()'");
    ck_assert_msg(end.exit_code == 0, "%s", output);
    run_limited("exec python3 -c 'import socket; socket.socket(socket.AF_INET, 2)'", &(struct sandbox_limits){0}, true);
    ck_assert_msg(end.exit_code == 0, "%s", output);
}

END_TEST

START_TEST(limits_hold)
{
    run_limited("ulimit -c -f -d", &(struct sandbox_limits){.file_bytes = 1 << 20, .data_bytes = 64 << 20}, false);
    run_limited("head -c 2000000 /dev/zero > file", &(struct sandbox_limits){.file_bytes = 1 << 20}, false);
    ck_assert(end.signal == SIGXFSZ || end.exit_code == 1);
    run_limited("exec python3 -c 'bytearray(200 << 20)'", &(struct sandbox_limits){.data_bytes = 100 << 20}, false);
    ck_assert_ptr_nonnull(strstr(output, "MemoryError"));
    run_limited("nproc", &(struct sandbox_limits){.cpus = 1, .slot = 5}, false);
    ck_assert_str_eq(output, "1\n");
}

END_TEST

START_TEST(a_program_that_cannot_be_executed)
{
    scratch_write("out/script", "#!/no/such/interpreter\n", 23);
    ck_assert_int_eq(chmod(scratch_path("out/script"), 0755), 0);
    run("exec ./script");
    ck_assert_msg(end.exit_code == 127 || end.exit_code == 126, "%d", end.exit_code);
}

END_TEST

/* Starts a script that makes three generations with sessions of their own, and waits for them. */
static pid_t
start_generations(void)
{
    static char text[] =
        "trap '' TERM HUP; (setsid sh -c 'setsid sh -c \"(setsid sleep 60 &); sleep 60\" & sleep 60' &) ; "
        "while :; do sleep 1; done";
    char *words[4], *environment[2];
    struct error error;
    struct sandbox_order order = order_of(text, words, environment);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    order.output = order.errors = null;
    const pid_t keeper = sandbox_start(&order, &error);
    ck_assert_int_gt(keeper, 0);
    close(null);
    const double until = clock_seconds() + SECONDS;
    int marked; /* a process that executes another program has no mark for a moment */
    while ((marked = count_marked(mark)) < 5 && clock_seconds() < until)
        usleep(5000);
    ck_assert_int_ge(marked, 5);
    return keeper;
}

START_TEST(a_keeper_ends_all_generations)
{
    int status;
    const pid_t keeper = start_generations();
    ck_assert_int_eq(kill(keeper, SIGTERM), 0);
    ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
    ck_assert_int_eq(count_marked(mark), 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

END_TEST

START_TEST(all_generations_end_with_the_parent)
{
    int status;
    const pid_t parent = fork(); /* as the broker */
    if (parent == 0) {
        start_generations();
        pause();
    }
    const double until = clock_seconds() + SECONDS;
    int marked; /* a process that executes another program has no mark for a moment */
    while ((marked = count_marked(mark)) < 5 && clock_seconds() < until)
        usleep(5000);
    ck_assert_int_ge(marked, 5);
    ck_assert_int_eq(kill(parent, SIGKILL), 0);
    ck_assert_int_eq(waitpid(parent, &status, 0), parent);
    const double start = clock_seconds();
    while (count_marked(mark) > 0 && clock_seconds() < until)
        usleep(5000);
    ck_assert_int_eq(count_marked(mark), 0);
    ck_assert_double_lt(clock_seconds() - start, 2);
}

END_TEST

/* Kills the children of a process. */
static void
kill_children_of(pid_t parent)
{
    char path[64], child[16];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%15s", child) == 1)
        kill(atoi(child), SIGKILL);
    if (children)
        fclose(children);
}

/* The rest of a killed keeper must neither block the probe nor remain. */
START_TEST(a_probe_whose_keepers_are_killed_ends)
{
    const pid_t prober = fork(); /* as the broker */
    if (prober == 0) {
        struct sandbox_probe found;
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        for (int i = 0; i < 40; i++)
            sandbox_probe(&found);
        _exit(waitpid(-1, NULL, WNOHANG) != -1);
    }
    const double until = clock_seconds() + SECONDS;
    int status = -1;
    for (unsigned turn = 0; waitpid(prober, &status, WNOHANG) == 0 && clock_seconds() < until; turn++) {
        kill_children_of(prober);
        usleep(turn % 16 * 300);
    }
    kill(prober, SIGKILL);
    ck_assert_int_eq(status, 0);
}

END_TEST

START_TEST(the_probe_finds_the_strongest_kind)
{
    struct sandbox_probe found;
    sandbox_probe(&found);
    ck_assert_int_eq(found.kind, probe.kind);
    setenv("NOCTULE_SANDBOX", "weak", 1);
    sandbox_probe(&found);
    unsetenv("NOCTULE_SANDBOX");
    ck_assert_int_eq(found.kind, SANDBOX_WEAK);
    ck_assert(found.no_network == call_filter_possible());
}

END_TEST

int
main(void)
{
    int failed = 0;
    log_open("test", "error");
    sandbox_probe(&probe);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kind = kinds[i];
        if (kind > probe.kind) {
            printf("SKIPPED: %s: %s\n", sandbox_name(kind), probe.why);
            continue;
        }
        Suite *suite = suite_create(sandbox_name(kind));
        TCase *tests = tcase_create("sandbox");
        tcase_add_checked_fixture(tests, set_up, scratch_remove);
        tcase_add_test(tests, the_end_is_reported);
        tcase_add_test(tests, a_program_gets_what_it_is_given);
        tcase_add_test(tests, files_outside_are_out_of_reach);
        tcase_add_test(tests, the_network_is_out_of_reach);
        tcase_add_test(tests, limits_hold);
        tcase_add_test(tests, a_program_that_cannot_be_executed);
        tcase_add_test(tests, a_keeper_ends_all_generations);
        tcase_add_test(tests, all_generations_end_with_the_parent);
        tcase_add_test(tests, a_probe_whose_keepers_are_killed_ends);
        tcase_add_test(tests, the_probe_finds_the_strongest_kind);
        suite_add_tcase(suite, tests);
        failed |= suite_run(suite);
    }
    return failed;
}
