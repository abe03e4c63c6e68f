/* Orders for the broker, with steps that write and read no images: each end of a program has its code, leaves no process,
 * and no file but those of the result. */
#include "service/common/program/broker.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "tests/unit/edge.h"
#include "tests/unit/marked.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define MARK    "NOCTULE_TEST_BROKER"
#define SECONDS 60 /* only a hang takes longer */

static char mark[96]; /* in the environment of each program */
static struct broker *broker;
static struct conf_program program;
static struct program_outcome outcome;

/* --------------------------------------------------------------------------------- steps ---- */

/* Steps must not assert: in their processes the descriptor of Check is another file. */

/* The stack of an order tells a step to misbehave: "write sleep", "read crash". */
static void
misbehave(const struct program_order *order, const char *step)
{
    char text[32];
    snprintf(text, sizeof text, "%s sleep", step);
    while (strcmp(order->stack, text) == 0)
        usleep(10000);
    snprintf(text, sizeof text, "%s crash", step);
    if (strcmp(order->stack, text) == 0)
        raise(SIGKILL);
}

static int
copy_file(int work, const char *from, const char *to)
{
    char bytes[4096];
    const int source = openat(work, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t size = source < 0 ? -1 : read(source, bytes, sizeof bytes);
    const int target = size < 0 ? -1 : openat(work, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    const bool well = target >= 0 && write(target, bytes, (size_t)size) == size;
    if (source >= 0)
        close(source);
    if (target >= 0)
        close(target);
    return well ? 0 : -ENOENT;
}

static int
write_input(const struct program_order *order, const struct conf_program *given, int work, struct error *error)
{
    misbehave(order, "write");
    const int fd = strcmp(given->name, "test") != 0
                       ? -1
                       : openat(work, "in/case.nii", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    const int rc = fd < 0 || write(fd, "voxels", 6) != 6 ? -errno : 0;
    close(fd);
    return rc ? error_set_system(error, rc, "write the input") : 0;
}

static int
read_output(const struct program_order *order, const struct conf_program *given, int work,
            struct program_outcome *result, struct error *error)
{
    (void)given;
    misbehave(order, "read");
    if (copy_file(work, "out/mask", "mask") != 0)
        return error_set(error, -ENOENT, CODE_PROGRAM_NO_OUTPUT, "no output");
    strcpy(result->sha256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    result->labels = 2;
    result->labelled = 77;
    result->size = 5;
    result->peak_bytes = 1; /* not a member that the step may set */
    return 0;
}

static const struct program_steps steps = {write_input, read_output};

/* ------------------------------------------------------------------------------- helpers ---- */

static char *command[] = {(char[]){"/bin/sh"}, (char[]){"-c"},   NULL,
                          (char[]){"name"},    (char[]){"{in}"}, (char[]){"{out}"}};
static char *environment[] = {mark};

static void
set_up(void)
{
    static char empty[] = "", name[] = "test", input_file[] = "case.nii";
    scratch_make();
    scratch_folder("root");
    scratch_folder("root/programs");
    scratch_write("root/secret", "secret", 6);
    snprintf(mark, sizeof mark, MARK "=%s", scratch);
    program = (struct conf_program){.name = name,
                                    .command = command,
                                    .command_count = 6,
                                    .environment = environment,
                                    .environment_count = 1,
                                    .input_file = input_file,
                                    .output_file = empty,
                                    .algorithm = {.name = name, .version = name, .source = empty},
                                    .processes = 64,
                                    .deadline_seconds = SECONDS,
                                    .output_mib = 4,
                                    .output_files = 16,
                                    .max_attempts = 1,
                                    .warm_seconds = 60};
    ck_assert_int_eq(broker_open(&steps, scratch_path("root"), &broker), 0);
}

static void
wait_for_none(void)
{
    const double until = clock_seconds() + SECONDS;
    while (count_marked(mark) > 0 && clock_seconds() < until)
        usleep(5000);
    ck_assert_int_eq(count_marked(mark), 0);
}

static void
tear_down(void)
{
    broker_close(broker);
    broker = NULL;
    wait_for_none();
    scratch_remove();
}

static struct program_order order;

/* Prepares an order for a shell script. */
static struct program_order *
order_of(const char *script)
{
    static char work[128], result[128], empty[] = "", stack[32];
    static char text[4096], input[128];
    static char *inputs[] = {input};
    stack[0] = '\0';
    snprintf(text, sizeof text, "%s", script);
    command[2] = text;
    snprintf(work, sizeof work, "%s/root/programs/7.1", scratch);
    snprintf(result, sizeof result, "%s/root/programs/7", scratch);
    snprintf(input, sizeof input, "%s/root/secret", scratch);
    char *settings = conf_program_to_text(&program);
    ck_assert_ptr_nonnull(settings);
    free(order.program);
    order = (struct program_order){.run = 7,
                                   .attempt = 1,
                                   .program = settings,
                                   .identity = empty,
                                   .pipeline = empty,
                                   .stack = stack,
                                   .inputs = inputs,
                                   .input_count = 1,
                                   .work = work,
                                   .result = result,
                                   .gpu = empty,
                                   .threads = 1};
    return &order;
}

static void
run_order(void)
{
    outcome = (struct program_outcome){.end = PROGRAM_END_STOPPED};
    ck_assert_int_eq(broker_run(broker, &order, NULL, NULL, NULL, &outcome), 0);
    ck_assert(!scratch_has("root/programs/7.1"));
    ck_assert_int_eq(count_marked(mark), 0);
}

static void
run_script(const char *script)
{
    order_of(script);
    run_order();
}

static void
expect_text(const char *file, const char *expected)
{
    char *text = scratch_text(file);
    ck_assert_str_eq(text, expected);
    free(text);
}

/* Runs a script, and expects this code with this part of the message. */
static void
expect_code(const char *script, enum code code, const char *part)
{
    run_script(script);
    ck_assert_msg(outcome.error.code == code && outcome.end == PROGRAM_END_ILL, "%s: %s: %s", script,
                  code_name(outcome.error.code), outcome.error.message);
    ck_assert_msg(strstr(outcome.error.message, part) != NULL, "%s: %s", script, outcome.error.message);
    ck_assert(!scratch_has("root/programs/7/mask") && scratch_has("root/programs/7/output.txt"));
}

/* --------------------------------------------------------------------------------- tests ---- */

START_TEST(a_program_gets_its_words_and_leaves_its_result)
{
    char words[][64] = {"/bin/sh", "-c",   "echo $*; echo text >&2; cat $1/case.nii > $3/mask",
                        "name",    "{in}", "--file={in_file}={case}={{case}",
                        "{out}"};
    char *list[] = {words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
    program.command = list;
    program.command_count = 7;
    order_of("");
    run_order();
    ck_assert_msg(outcome.end == PROGRAM_END_WELL, "%s", outcome.error.message);
    expect_text("root/programs/7/mask", "voxels");
    char expected[600];
    snprintf(expected, sizeof expected, "%s/in --file=%s/in/case.nii=case={case %s/out\ntext\n", order.work, order.work,
             order.work);
    expect_text("root/programs/7/output.txt", expected);
    ck_assert_int_eq(outcome.labelled, 77);
    ck_assert_int_eq(outcome.labels, 2);
    ck_assert_int_eq(outcome.starts, 1);
    ck_assert_uint_eq(strlen(outcome.identity), 64);
    ck_assert_uint_eq(strlen(outcome.program_sha256), 64);
    ck_assert_str_eq(outcome.weights_sha256, "");
    ck_assert(outcome.sandbox[0] && outcome.peak_bytes != 1 && outcome.program_seconds > 0);
}

END_TEST

START_TEST(each_end_has_its_code)
{
    expect_code("echo why; exit 3", CODE_PROGRAM_FAILED, "status 3");
    expect_text("root/programs/7/output.txt", "why\n");
    expect_code("kill -11 $$", CODE_PROGRAM_CRASHED, "signal 11");
    expect_code("sh -c 'kill -6 $$'", CODE_PROGRAM_CRASHED, "signal 6");
    expect_code("exit 0", CODE_PROGRAM_NO_OUTPUT, "no output");
    expect_code("/no/such/program", CODE_PROGRAM_FAILED, "status 127");
}

END_TEST

START_TEST(each_limit_ends_the_program)
{
    program.deadline_seconds = 1;
    expect_code("while :; do :; done", CODE_PROGRAM_TOO_LONG, "deadline_seconds (1)");
    expect_code("trap '' TERM; while :; do echo; sleep 0.1; done", CODE_PROGRAM_TOO_LONG, "deadline_seconds");
    program.deadline_seconds = SECONDS;
    program.silence_seconds = 1;
    expect_code("echo; sleep 60", CODE_PROGRAM_SILENT, "silence_seconds (1)");
    program.silence_seconds = 0;
    program.memory_mib = 100;
    expect_code("head -c 400000000 /dev/zero | tail", CODE_PROGRAM_OUT_OF_MEMORY, "memory_mib (100)");
    program.memory_mib = 0;
    program.processes = 8;
    expect_code("for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait", CODE_PROGRAM_TOO_MANY_PROCESSES,
                "processes (8)");
    program.processes = 64;
}

END_TEST

START_TEST(the_output_is_bounded)
{
    expect_code("head -c 50000000 /dev/zero > file", CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_mib (4)");
    expect_code("for i in 1 2 3; do head -c 2000000 /dev/zero > $i; done", CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_mib");
    expect_code("truncate -s 4500000 file", CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_mib");
    expect_code("head -c 4500000 /dev/zero > $TMPDIR/file", CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_mib");
    expect_code("for i in $(seq 17); do : > $i; done", CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_files (16)");
    expect_code("for i in $(seq 15); do mkdir a; cd a; done; mkdir b c", CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_files");
}

END_TEST

/* Runs a program that writes zeros and a word, and expects the size and the end of the output that is kept. */
static void
expect_kept(long zeros, long size)
{
    char script[128], last[5] = "";
    struct stat status;
    snprintf(script, sizeof script, "head -c %ld /dev/zero; printf last; echo m > mask", zeros);
    run_script(script);
    ck_assert_msg(outcome.end == PROGRAM_END_WELL, "%s", outcome.error.message);
    ck_assert_int_eq(stat(scratch_path("root/programs/7/output.txt"), &status), 0);
    ck_assert_int_eq(status.st_size, size);
    const int fd = open(scratch_path("root/programs/7/output.txt"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, last, 4, size - 4), 4);
    close(fd);
    ck_assert_str_eq(last, "last");
}

START_TEST(the_end_of_the_output_is_kept)
{
    const struct edge edge = EDGE(PROGRAM_OUTPUT_BYTES);
    expect_kept(edge.most - 4, edge.most);
    expect_kept(edge.most - 3, edge.most);
    expect_kept(100000000, edge.most);
    expect_kept(10, 14);
}

END_TEST

START_TEST(no_process_outlives_its_program)
{
    run_script("(setsid sh -c 'setsid sleep 60 & sleep 60' &); (sleep 60 &); echo m > mask");
    ck_assert_msg(outcome.end == PROGRAM_END_WELL, "%s", outcome.error.message);
    /* A file that a grandchild would write later comes neither into the result nor elsewhere. */
    expect_code("(setsid sh -c 'sleep 1; echo m > mask' &)", CODE_PROGRAM_NO_OUTPUT, "no output");
}

END_TEST

START_TEST(folders_without_permissions_are_removed)
{
    run_script("mkdir a a/b; : > a/b/c; chmod 0 a/b a; echo m > mask");
    ck_assert_msg(outcome.end == PROGRAM_END_WELL, "%s", outcome.error.message);
}

END_TEST

START_TEST(the_folder_of_the_service_is_hidden)
{
    char script[512];
    snprintf(script, sizeof script, "cat %s/root/secret", scratch);
    expect_code(script, CODE_PROGRAM_FAILED, "status 1");
    snprintf(script, sizeof script, "echo > %s/root/made", scratch);
    run_script(script);
    ck_assert(!scratch_has("root/made"));
    expect_code("echo > ../in/more", CODE_PROGRAM_FAILED, "status");
    char *read[] = {scratch};
    program.read = read;
    program.read_count = 1;
    expect_code("echo m > mask", CODE_PROGRAM_UNAVAILABLE, "service's own folder");
}

END_TEST

START_TEST(an_absent_file_is_named)
{
    char *weights[] = {(char[]){"/no/such/weights"}};
    program.weights = weights;
    program.weights_count = 1;
    expect_code("echo m > mask", CODE_PROGRAM_UNAVAILABLE, "/no/such/weights: No such file");
    program.weights_count = 0;
    program.read = weights;
    program.read_count = 1;
    expect_code("echo m > mask", CODE_PROGRAM_UNAVAILABLE, "/no/such/weights: No such file");
}

END_TEST

START_TEST(changed_weights_change_the_identity)
{
    static char folder[128], identity[65];
    char *weights[] = {folder};
    scratch_folder("models");
    scratch_folder("models/a");
    scratch_write("models/a/net", "one", 3);
    scratch_write("models/b", "two", 3);
    snprintf(folder, sizeof folder, "%s/models", scratch);
    program.weights = weights;
    program.weights_count = 1;
    char script[512];
    snprintf(script, sizeof script, "cat %s/a/net %s/b > mask && ! echo > %s/b", folder, folder, folder);
    order_of(script)->identity = identity;
    run_order();
    ck_assert_msg(outcome.end == PROGRAM_END_WELL, "%s", outcome.error.message);
    expect_text("root/programs/7/mask", "onetwo");
    memcpy(identity, outcome.identity, sizeof identity);
    run_order();
    ck_assert_int_eq(outcome.end, PROGRAM_END_WELL);
    scratch_write("models/a/net", "own", 3);
    run_order();
    ck_assert_int_eq(outcome.error.code, CODE_PROGRAM_CHANGED);
    ck_assert_str_ne(outcome.identity, identity);
    memcpy(identity, outcome.identity, sizeof identity);
    run_order();
    ck_assert_int_eq(outcome.end, PROGRAM_END_WELL);
}

END_TEST

START_TEST(a_step_that_dies_costs_the_attempt)
{
    order_of("echo m > mask")->stack = (char[]){"write crash"};
    run_order();
    ck_assert_int_eq(outcome.error.code, CODE_PROGRAM_CRASHED);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "the step that writes the input"));
    order_of("echo m > mask")->stack = (char[]){"read crash"};
    run_order();
    ck_assert_int_eq(outcome.error.code, CODE_PROGRAM_CRASHED);
    run_script("echo m > mask");
    ck_assert_int_eq(outcome.end, PROGRAM_END_WELL);
}

END_TEST

static atomic_bool stop;

static void
stop_at(void *context, const char *stage)
{
    if (strcmp(context, stage) == 0)
        atomic_store(&stop, true);
}

START_TEST(a_run_is_stopped_in_each_stage)
{
    static const char *const stages[][2] = {{"write", "write sleep"}, {"run", ""}, {"read", "read sleep"}};
    for (size_t i = 0; i < 3; i++) {
        char stack[32], stage[16];
        snprintf(stack, sizeof stack, "%s", stages[i][1]);
        snprintf(stage, sizeof stage, "%s", stages[i][0]);
        atomic_store(&stop, false);
        order_of(i == 1 ? "sleep 60" : "echo m > mask")->stack = stack;
        ck_assert_int_eq(broker_run(broker, &order, &stop, stop_at, stage, &outcome), 0);
        ck_assert_int_eq(outcome.end, PROGRAM_END_STOPPED);
        ck_assert(!scratch_has("root/programs/7.1") && !scratch_has("root/programs/7"));
        ck_assert_int_eq(count_marked(mark), 0);
    }
}

END_TEST

/* Waits until the program has started. */
static void
wait_for_marked(void)
{
    const double until = clock_seconds() + SECONDS;
    while (count_marked(mark) == 0 && clock_seconds() < until)
        usleep(5000);
    ck_assert_int_gt(count_marked(mark), 0);
}

/* Returns the child of this process with the name, or of its children if there is none. */
static pid_t
find_broker(void)
{
    char path[300], name[64];
    pid_t found = -1;
    DIR *directory = opendir("/proc");
    for (const struct dirent *entry; (entry = readdir(directory));) {
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%*d (%63[^)]) %*c %d", name, &parent) == 2 && parent == getpid() &&
            strcmp(name, "noctule-broker") == 0)
            found = atoi(entry->d_name);
        if (file)
            fclose(file);
    }
    closedir(directory);
    return found;
}

START_TEST(a_killed_broker_leaves_no_process)
{
    struct broker_answer answer;
    order_of("(setsid sleep 60 &); sleep 60");
    ck_assert_int_eq(program_order_write(&order, scratch_path("order")), 0);
    ck_assert_int_eq(broker_send(broker, BROKER_RUN, 7, scratch_path("order")), 0);
    wait_for_marked();
    const double start = clock_seconds();
    ck_assert_int_eq(kill(find_broker(), SIGKILL), 0);
    wait_for_none();
    ck_assert_double_lt(clock_seconds() - start, 2);
    int rc = 0;
    while (rc == 0)
        rc = broker_receive(broker, &answer);
    ck_assert_int_eq(rc, -EPIPE);
}

END_TEST

START_TEST(a_closed_broker_leaves_nothing)
{
    order_of("(setsid sleep 60 &); sleep 60");
    ck_assert_int_eq(program_order_write(&order, scratch_path("order")), 0);
    ck_assert_int_eq(broker_send(broker, BROKER_RUN, 7, scratch_path("order")), 0);
    wait_for_marked();
    broker_close(broker);
    broker = NULL;
    ck_assert_int_eq(count_marked(mark), 0);
    ck_assert(!scratch_has("root/programs/7.1") && !scratch_has("root/programs/7"));
}

END_TEST

START_TEST(a_bad_order_is_answered)
{
    struct broker_answer answer = {.event = BROKER_NONE};
    scratch_write("order", "noctule-program 2\n", 18);
    ck_assert_int_eq(broker_send(broker, BROKER_RUN, 9, scratch_path("order")), 0);
    while (answer.event == BROKER_NONE)
        ck_assert_int_eq(broker_receive(broker, &answer), 0);
    ck_assert_int_eq(answer.event, BROKER_ENDED);
    ck_assert_int_eq(answer.run, 9);
    ck_assert_int_eq(answer.outcome.end, PROGRAM_END_ILL);
}

END_TEST

START_TEST(a_container_is_ended_by_its_engine)
{
    static const char engine[] = "#!/bin/sh\n"
                                 "echo \"$@\" >>$LOG\n"
                                 "[ $1 = run ] || exit 0\n"
                                 "echo abc123 >$3\n"
                                 "echo m >${7%%:*}/mask\n"
                                 "exec sleep $9\n";
    char words[][128] = {"", "run", "--network=none", "-v", "{in}:/in", "{out}:/out", "", "0"}, log[128];
    char *list[] = {words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]};
    char *environments[] = {mark, log};
    scratch_write("podman", engine, sizeof engine - 1);
    ck_assert_int_eq(chmod(scratch_path("podman"), 0755), 0);
    snprintf(words[0], sizeof words[0], "%s/podman", scratch);
    snprintf(words[6], sizeof words[6], "image@sha256:%064d", 0);
    snprintf(log, sizeof log, "LOG=%s/log", scratch);
    program.command = list;
    program.command_count = 8;
    program.environment = environments;
    program.environment_count = 2;
    program.container = true;
    order_of("");
    run_order();
    ck_assert_msg(outcome.end == PROGRAM_END_WELL, "%s", outcome.error.message);
    ck_assert_str_eq(outcome.sandbox, "container");
    snprintf(words[7], sizeof words[7], "60");
    program.deadline_seconds = 1;
    order_of("");
    run_order();
    ck_assert_int_eq(outcome.error.code, CODE_PROGRAM_TOO_LONG);
    char *text = scratch_text("log");
    ck_assert_ptr_nonnull(strstr(text, "60\nkill abc123\nrm -f abc123\n"));
    ck_assert_ptr_nonnull(strstr(text, "run --cidfile "));
    free(text);
}

END_TEST

/* ---------------------------------------------------------------------------------- warm ---- */

static int attempts;

/* Runs a case in a warm program. Each has another work folder, as in the service. */
static void
run_warm(const char *script)
{
    static char work[128];
    order_of(script);
    snprintf(work, sizeof work, "%s/root/programs/7.%d", scratch, ++attempts);
    order.work = work;
    outcome = (struct program_outcome){.end = PROGRAM_END_STOPPED};
    ck_assert_int_eq(broker_run(broker, &order, NULL, NULL, NULL, &outcome), 0);
    ck_assert_int_ne(access(work, F_OK), 0);
}

static void
expect_warm(const char *script, enum code code, int starts)
{
    run_warm(script);
    ck_assert_msg(outcome.error.code == code && outcome.starts == starts, "%s: %s: %s, %d starts", script,
                  code_name(outcome.error.code), outcome.error.message, outcome.starts);
    ck_assert_int_eq(outcome.end, code == CODE_NONE ? PROGRAM_END_WELL : PROGRAM_END_ILL);
}

static void
make_warm(void)
{
    program.warm = true;
    program.command_count = 3;
    attempts = 0;
}

/* Waits for the report that the warm program has ended. */
static void
wait_for_cold(const char *name)
{
    struct broker_answer answer = {.event = BROKER_NONE};
    struct pollfd ready = {.fd = broker_fd(broker), .events = POLLIN};
    while (answer.event == BROKER_NONE) {
        ck_assert_int_eq(poll(&ready, 1, SECONDS * 1000), 1);
        ck_assert_int_eq(broker_receive(broker, &answer), 0);
    }
    ck_assert_int_eq(answer.event, BROKER_COLD);
    ck_assert_str_eq(answer.checked.name, name);
}

START_TEST(a_warm_program_takes_one_case_after_the_other)
{
    static const char script[] =
        "while read in out; do echo case; cat $in/case.nii > $out/mask; echo more >&2; : > $out/../x; "
        "echo OK; done";
    make_warm();
    for (int i = 0; i < 5; i++) {
        expect_warm(script, CODE_NONE, i == 0);
        expect_text("root/programs/7/mask", "voxels");
    }
    char *text = scratch_text("root/programs/7/output.txt");
    ck_assert_ptr_nonnull(strstr(text, "case\n"));
    free(text);
    ck_assert(scratch_has("root/programs/warm-0-test/in") && !scratch_has("root/programs/warm-0-test/out/x"));
    ck_assert_int_gt(count_marked(mark), 0);
    ck_assert_int_eq(broker_send(broker, BROKER_COOL, 0, "other"), 0);
    wait_for_cold("other");
    ck_assert_int_gt(count_marked(mark), 0);
    ck_assert_int_eq(broker_send(broker, BROKER_COOL, 0, "test"), 0);
    wait_for_cold("test");
    ck_assert(count_marked(mark) == 0 && !scratch_has("root/programs/warm-0-test"));
    expect_warm(script, CODE_NONE, 1);
}

END_TEST

START_TEST(a_warm_program_that_dies_is_started_again)
{
    static const char script[] =
        "n=0; while read in out; do n=$((n + 1)); [ $n = 3 ] && kill -9 $$; echo m > $out/mask; "
        "echo OK; done";
    make_warm();
    expect_warm(script, CODE_NONE, 1);
    expect_warm(script, CODE_NONE, 0);
    expect_warm(script, CODE_PROGRAM_CRASHED, 0);
    ck_assert(count_marked(mark) == 0 && !scratch_has("root/programs/warm-0-test"));
    expect_warm(script, CODE_NONE, 1);
}

END_TEST

START_TEST(answers_of_a_warm_program)
{
    make_warm();
    expect_warm("read in out; echo ERROR no model", CODE_PROGRAM_FAILED, 1);
    ck_assert_ptr_null(strstr(outcome.error.message, "no model")); /* it may name a patient */
    expect_text("root/programs/7/output.txt", "ERROR no model\n");
    expect_warm("read in out; exit 0", CODE_PROGRAM_FAILED, 1);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "without an answer"));
    expect_warm("exit 4", CODE_PROGRAM_FAILED, 1);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "status 4"));
    expect_warm("read in out; echo OK; sleep 1; echo m > $out/mask; sleep 60", CODE_PROGRAM_NO_OUTPUT, 1);
    expect_warm("read in out; rmdir $out; ln -s /etc $out; echo OK; sleep 60", CODE_PROGRAM_NO_OUTPUT, 1);
    expect_warm("read in out; echo m > $out/mask; head -c 5000 /dev/zero; echo; printf '%5000d\\n' 1; echo OK",
                CODE_NONE, 1);
    program.silence_seconds = 1;
    expect_warm("read in out; echo NOT OK; sleep 60", CODE_PROGRAM_SILENT, 1);
    program.silence_seconds = 0;
    program.deadline_seconds = 1;
    expect_warm("while :; do :; done", CODE_PROGRAM_TOO_LONG, 1);
    ck_assert(count_marked(mark) == 0 && !scratch_has("root/programs/warm-0-test"));
}

END_TEST

START_TEST(a_warm_program_ends_when_it_is_idle_or_differs)
{
    static const char script[] = "while read in out; do echo m > $out/mask; echo OK; done";
    static char gpu[] = "GPU-1", more[] = "MORE=1";
    char *environments[] = {mark, more};
    make_warm();
    expect_warm(script, CODE_NONE, 1);
    program.environment = environments;
    program.environment_count = 2;
    expect_warm(script, CODE_NONE, 1);
    order.gpu = gpu;
    ck_assert_int_eq(broker_run(broker, &order, NULL, NULL, NULL, &outcome), 0);
    ck_assert_int_eq(outcome.starts, 1);
    order.as = PROGRAM_AS_WHOLE;
    ck_assert_int_eq(broker_run(broker, &order, NULL, NULL, NULL, &outcome), 0);
    ck_assert(outcome.error.code == CODE_PROGRAM_FAILED || outcome.error.code == CODE_PROGRAM_NO_OUTPUT);
    ck_assert_int_eq(count_marked(mark), 0);
    program.warm_seconds = 1;
    expect_warm(script, CODE_NONE, 1);
    wait_for_cold("test");
    ck_assert_int_eq(count_marked(mark), 0);
}

END_TEST

int
main(void)
{
    log_open("test", "error");
    Suite *suite = suite_create("common_broker");
    TCase *tests = tcase_create("broker");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_program_gets_its_words_and_leaves_its_result);
    tcase_add_test(tests, each_end_has_its_code);
    tcase_add_test(tests, each_limit_ends_the_program);
    tcase_add_test(tests, the_output_is_bounded);
    tcase_add_test(tests, the_end_of_the_output_is_kept);
    tcase_add_test(tests, no_process_outlives_its_program);
    tcase_add_test(tests, folders_without_permissions_are_removed);
    tcase_add_test(tests, the_folder_of_the_service_is_hidden);
    tcase_add_test(tests, an_absent_file_is_named);
    tcase_add_test(tests, changed_weights_change_the_identity);
    tcase_add_test(tests, a_step_that_dies_costs_the_attempt);
    tcase_add_test(tests, a_run_is_stopped_in_each_stage);
    tcase_add_test(tests, a_killed_broker_leaves_no_process);
    tcase_add_test(tests, a_closed_broker_leaves_nothing);
    tcase_add_test(tests, a_bad_order_is_answered);
    tcase_add_test(tests, a_container_is_ended_by_its_engine);
    tcase_add_test(tests, a_warm_program_takes_one_case_after_the_other);
    tcase_add_test(tests, a_warm_program_that_dies_is_started_again);
    tcase_add_test(tests, answers_of_a_warm_program);
    tcase_add_test(tests, a_warm_program_ends_when_it_is_idle_or_differs);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
