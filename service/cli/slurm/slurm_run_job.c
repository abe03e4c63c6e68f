/*
 * slurm_run_job.c - `noctule run-job`: runs attempts of jobs that a daemon left in a shared folder
 * (slurm_step.h).
 */
#include "service/cli/cli.h"

#include "service/cli/slurm/slurm_step.h"
#include "service/common/log.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>

struct run_job_options {
    const char *scratch, *series;
    bool programs;
};

static atomic_bool run_job_terminated;
static volatile sig_atomic_t run_job_signal;

static void
run_job_on_signal(int number)
{
    run_job_signal = number;
    atomic_store(&run_job_terminated, true);
    slurm_step_interrupt();
}

static int
run_job_run(struct cli_call *call)
{
    const struct run_job_options *options = call->options;
    const struct step_task task = {.where = scratch_where(options->scratch),
                                   .series = options->series,
                                   .programs = options->programs,
                                   .folders = call->arguments,
                                   .folder_count = (size_t)call->count};
    const struct sigaction action = {.sa_handler = run_job_on_signal, .sa_flags = SA_RESTART};
    static const char *const words[] = {
        [STEP_PUBLISHED] = "has a manifest", [STEP_VOID] = "was voided", [STEP_LEFT] = "was left unfinished"};

    struct job_step step;
    struct error error;
    int status = EXIT_PARTIAL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    log_open("run-job", "warn");
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit must be an error, not a signal */
    dicom_init();
    const bool is_open = slurm_step_open(&step, &task, &run_job_terminated) == 0;
    if (is_open)
        status = EXIT_OK;
    for (int i = 0; i < call->count && is_open; i++) {
        const enum step_end end = slurm_step_run(&step, task.folders[i], &error);
        if (error.code == CODE_NONE && end != STEP_LEFT)
            printf("%s: %s\n", task.folders[i], words[end]);
        else
            cli_print_error("%s: %s: %s: %s", task.folders[i], words[end], code_name(error.code), error.message);
        status = end == STEP_LEFT ? EXIT_PARTIAL : status;
    }
    slurm_step_close(&step);
    return atomic_load(&run_job_terminated) ? 128 + (int)run_job_signal : status;
}

const struct cli_command cli_run_job = {
    .name = "run-job",
    .help = "run job attempts that the daemon left in a shared folder",
    .usage = {"[--scratch DIR] [--series DIR] [--programs] FOLDER..."},
    .more = "A scheduler runs it on a node. It uses neither the configuration nor the daemon.",
    .options = (const struct cli_option[]){{"scratch", 0, &cli_folder, CLI_AT(struct run_job_options, scratch),
                                            .help = "local folder for computations; default: $TMPDIR, else /tmp"},
                                           {"series", 0, &cli_folder, CLI_AT(struct run_job_options, series),
                                            .help = "folder of images that were not copied"},
                                           {"programs", 0, &cli_flag, CLI_AT(struct run_job_options, programs),
                                            .help = "run the programs of the site that attempts name"},
                                           {0}},
    .size = sizeof(struct run_job_options),
    .kind = &cli_folder,
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .needs = "one or more folders of attempts",
    .without_conf = true,
    .run = run_job_run};
