/* run_job.c - `noctule run-job`: attempts of jobs that a daemon left on a shared folder (step.h). */
#include "service/cli/cli.h"

#include "service/cli/step/step.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>

struct run_job_options {
    const char *scratch;
};

static atomic_bool run_job_terminated;
static volatile sig_atomic_t run_job_signal;

static void
run_job_on_signal(int number)
{
    run_job_signal = number;
    atomic_store(&run_job_terminated, true);
    step_interrupt();
}

static void
run_job_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = run_job_on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an errno, not a death */
}

static void
run_job_tell(const char *folder, enum step_end end, const struct error *error)
{
    static const char *const words[] = {
        [STEP_TOLD] = "has a manifest", [STEP_VOID] = "was given up", [STEP_LEFT] = "was left"};
    if (error->code == CODE_NONE && end != STEP_LEFT)
        printf("%s: %s\n", folder, words[end]);
    else
        cli_complain("%s: %s: %s: %s", folder, words[end], code_name(error->code), error->message);
}

static int
run_job_run(struct cli_call *call)
{
    const struct run_job_options *options = call->options;
    const char *scratch = options->scratch ? options->scratch : getenv("TMPDIR");
    struct job_step step;
    int status = EXIT_OK;
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_job_catch_signals();
    dicom_init();
    step_init(&step, scratch && *scratch ? scratch : "/tmp", &run_job_terminated);
    for (int i = 0; i < call->count; i++) {
        struct error error;
        const enum step_end end = step_run(&step, call->arguments[i], &error);
        run_job_tell(call->arguments[i], end, &error);
        status = end == STEP_LEFT ? EXIT_PARTIAL : status;
    }
    step_release(&step);
    return atomic_load(&run_job_terminated) ? 128 + (int)run_job_signal : status;
}

const struct cli_command cli_run_job = {
    .name = "run-job",
    .help = "compute attempts of jobs that the daemon left on a shared folder",
    .usage = {"[--scratch DIR] FOLDER..."},
    .more = "A scheduler runs it on a node; it asks neither the configuration nor the daemon.",
    .options =
        (const struct cli_option[]){
            {"scratch", 0, &cli_folder, CLI_AT(struct run_job_options, scratch),
             .help = "a folder of this machine to compute in, in place of $TMPDIR or /tmp"},
            {0}},
    .size = sizeof(struct run_job_options),
    .kind = &cli_folder,
    .least = 1,
    .most = INT_MAX,
    .needs = "the folders of attempts",
    .without_conf = true,
    .run = run_job_run};
