/* Slurm's commands, simulated by scripts: their arguments, their output, and their deadlines. */
#include "service/common/slurm/slurm.h"
#include "service/common/slurm/slurm_program.h"

#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

static struct error error;
static char *former_path;

static void
setup(void)
{
    char path[4096];
    scratch_make();
    scratch_folder("bin");
    former_path = strdup(getenv("PATH"));
    snprintf(path, sizeof path, "%s:%s", scratch_path("bin"), former_path);
    setenv("PATH", path, 1);
    error = (struct error){0};
}

static void
teardown(void)
{
    setenv("PATH", former_path, 1);
    free(former_path);
    scratch_remove();
}

/* Creates a command of Slurm. */
static void
play(const char *name, const char *script)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "bin/%s", name);
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    scratch_write(path, text, strlen(text));
    ck_assert_int_eq(chmod(scratch_path(path), 0700), 0);
}

static int
submit(int64_t *id)
{
    char *arguments[] = {(char[]){"--account=a b"}, (char[]){"--mem=8G"}};
    const char *const folders[] = {"/share/job-1.1.aa", "/share/job 2;rm -rf $HOME"};
    const struct conf_slurm conf = {.partition = (char[]){"main"},
                                    .gres = (char[]){""},
                                    .program = (char[]){"/usr/bin/noctule"},
                                    .time_minutes = 7,
                                    .arguments = arguments,
                                    .argument_count = 2};
    const struct slurm_order order = {.name = "noctule-1",
                                      .comment = "aa",
                                      .exclude = "",
                                      .output = "/share/log",
                                      .script = "/root/step",
                                      .series = "/share/root/series",
                                      .folders = folders,
                                      .folder_count = 2};
    return slurm_submit(&conf, &order, id, &error);
}

START_TEST(sbatch_gets_its_exact_arguments)
{
    int64_t id = 0;
    char script[256], said[2048] = "";
    snprintf(script, sizeof script, "printf '%%s\\n' \"$@\" > '%s'; echo '4711;somewhere'", scratch_path("said"));
    play("sbatch", script);
    ck_assert_int_eq(submit(&id), 0);
    ck_assert_int_eq(id, 4711);
    FILE *file = fopen(scratch_path("said"), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(said, 1, sizeof said - 1, file), 0);
    fclose(file);
    ck_assert_str_eq(said, "--parsable\n--no-requeue\n--chdir=/\n--time=7\n"
                           "--partition=main\n--account=a b\n--mem=8G\n--job-name=noctule-1\n"
                           "--comment=aa\n--output=/share/log\n/root/step\n/usr/bin/noctule\n"
                           "run-job\n--series=/share/root/series\n/share/job-1.1.aa\n/share/job 2;rm -rf $HOME\n");
}

END_TEST

START_TEST(errors_of_sbatch_are_classified)
{
    static const struct {
        const char *script;
        enum code code;
    } cases[] = {
        {"echo 'sbatch: error: invalid partition specified: x' >&2; exit 1", CODE_SLURM_REFUSED},
        {"echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller' "
         ">&2; exit 1",
         CODE_SLURM_UNAVAILABLE},
        {"echo 'sbatch: error: If munged is up, restart with --num-threads=10' >&2;"
         "echo 'sbatch: error: Munge encode failed: no socket' >&2; exit 1",
         CODE_SLURM_UNAVAILABLE},
        {"exit 0", CODE_SLURM_UNAVAILABLE},
        {"echo -4", CODE_SLURM_UNAVAILABLE},
        {"echo 12 oranges", CODE_SLURM_UNAVAILABLE},
        {"echo 99999999999999999999", CODE_SLURM_UNAVAILABLE},
        {"kill -9 $$", CODE_SLURM_UNAVAILABLE},
    };

    int64_t id;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        play("sbatch", cases[i].script);
        ck_assert_int_lt(submit(&id), 0);
        ck_assert_msg(error.code == cases[i].code, "%s: %s", cases[i].script, error.message);
    }
}

END_TEST

START_TEST(a_missing_command_is_reported)
{
    const char *const arguments[] = {"no-such-command-of-slurm", NULL};
    struct program_output output;
    ck_assert_int_eq(program_run(arguments, 10, &output, &error), -ENOENT);
    ck_assert_int_eq(error.code, CODE_SLURM_UNAVAILABLE);
    ck_assert_ptr_null(output.text);
}

END_TEST

/* Returns whether the process still runs. An exited process that was not waited for counts as
 * ended. */
static bool
runs(int process)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    return read && !strstr(line, ") Z") && !strstr(line, ") X");
}

/* Its child processes, which hold its pipes, must be killed, too. */
START_TEST(a_hanging_command_is_killed)
{
    const char *const arguments[] = {"hang", NULL};
    struct program_output output;
    char script[256], digits[32] = "";
    snprintf(script, sizeof script, "sleep 1000 & echo $! > '%s'; wait", scratch_path("pid"));
    play("hang", script);
    ck_assert_int_eq(program_run(arguments, 1, &output, &error), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(error.message, "hang did not end within 1 seconds"));
    FILE *file = fopen(scratch_path("pid"), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(digits, sizeof digits, file));
    fclose(file);
    ck_assert_int_gt(atoi(digits), 0);
    for (int tries = 0; runs(atoi(digits)); tries++) {
        ck_assert_int_lt(tries, 1000);
        usleep(10000);
    }
}

END_TEST

START_TEST(a_command_with_too_much_output_is_killed)
{
    const char *const arguments[] = {"yes", NULL};
    struct program_output output;
    ck_assert_int_eq(program_run(arguments, 60, &output, &error), -EFBIG);
    ck_assert_ptr_null(output.text);
}

END_TEST

START_TEST(only_the_environment_of_slurm_is_inherited)
{
    const char *const arguments[] = {"env", NULL};
    struct program_output output;
    setenv("SLURM_CONF", "/there/slurm.conf", 1);
    setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
    setenv("PATHOLOGY", "1", 1);
    ck_assert_int_eq(program_run(arguments, 60, &output, &error), 0);
    ck_assert_ptr_nonnull(strstr(output.text, "SLURM_CONF=/there/slurm.conf"));
    ck_assert_ptr_null(strstr(output.text, "NOTIFY_SOCKET"));
    ck_assert_ptr_null(strstr(output.text, "PATHOLOGY"));
    free(output.text);
}

END_TEST

static char told[1024];

static void
tell(void *context, const struct slurm_job *job)
{
    const size_t used = strlen(told);
    (void)context;
    snprintf(told + used, sizeof told - used, "%lld %s %s '%s' '%s'%s;", (long long)job->id, job->comment, job->state,
             job->node, job->reason, slurm_is_alive(job->state) ? "" : " over");
}

START_TEST(all_lines_of_the_queue_are_read)
{
    *told = '\0';
    play("squeue", "[ \"$*\" = '--noheader --states=all --name=noctule-1 --format=%i|%T|%k|%N|%r' "
                   "] || exit 9\n"
                   "echo '1|PENDING|aa||Resources'\n"
                   "echo '2|RUNNING|bb|node1|None'\n"
                   "echo '3|NODE_FAIL||node[1-2]|a|b'\n"
                   "echo '4|POWER_UP_NODE|dd|node3|None'\n"
                   "echo '5|OUT_OF_MEMORY|ee|node3|OutOfMemory'");
    ck_assert_int_eq(slurm_list("noctule-1", tell, NULL, &error), 0);
    ck_assert_str_eq(told, "1 aa PENDING '' 'Resources';2 bb RUNNING 'node1' '';"
                           "3  NODE_FAIL 'node[1-2]' 'a|b' over;"
                           "4 dd POWER_UP_NODE 'node3' '';"
                           "5 ee OUT_OF_MEMORY 'node3' 'OutOfMemory' over;");
}

END_TEST

/* Jobs missing from a partial list would look finished, so the whole list must fail. */
START_TEST(an_invalid_queue_is_rejected)
{
    static const char *const scripts[] = {
        "echo '1|PENDING|aa|'", "echo 'x|PENDING|aa||'", "echo '1||aa||'", "echo '0|PENDING|aa||'",
        "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        play("squeue", scripts[i]);
        ck_assert_msg(slurm_list("noctule-1", tell, NULL, &error) < 0, "%s", scripts[i]);
        ck_assert_int_eq(error.code, CODE_SLURM_UNAVAILABLE);
    }
    play("squeue", "true");
    ck_assert_int_eq(slurm_list("noctule-1", tell, NULL, &error), 0);
}

END_TEST

START_TEST(the_settings_of_the_site_are_read)
{
    int64_t age, jobs;
    play("scontrol", "echo; echo 'MaxJobCount             = 10000'; echo 'MinJobAge               = 300 sec'");
    ck_assert_int_eq(slurm_settings(&age, &jobs, &error), 0);
    ck_assert_int_eq(age, 300);
    ck_assert_int_eq(jobs, 10000);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("slurm");
    TCase *tests = tcase_create("commands");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, sbatch_gets_its_exact_arguments);
    tcase_add_test(tests, errors_of_sbatch_are_classified);
    tcase_add_test(tests, a_missing_command_is_reported);
    tcase_add_test(tests, a_hanging_command_is_killed);
    tcase_add_test(tests, a_command_with_too_much_output_is_killed);
    tcase_add_test(tests, only_the_environment_of_slurm_is_inherited);
    tcase_add_test(tests, all_lines_of_the_queue_are_read);
    tcase_add_test(tests, an_invalid_queue_is_rejected);
    tcase_add_test(tests, the_settings_of_the_site_are_read);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
