/* commands.c - the table of commands, in the order of the help. */
#include "service/cli/cli.h"

static int
version_run(struct cli_call *call)
{
    (void)call;
    puts("noctule " NOCTULE_VERSION);
    return EXIT_OK;
}

static int
help_run(struct cli_call *call)
{
    const struct cli_command *command = call->count > 0 ? cli_find_command(call->arguments[0]) : NULL;
    if (call->count > 0 && !command)
        return cli_no_command(call->arguments[0]);
    if (command)
        cli_print_command(command, stdout);
    else
        cli_print_help(stdout);
    return EXIT_OK;
}

const struct cli_command cli_version = {
    .name = "version", .help = "print the version", .without_conf = true, .run = version_run};

const struct cli_command cli_help = {.name = "help",
                                     .help = "print this list, or the help of a command",
                                     .usage = {"[COMMAND]"},
                                     .kind = &cli_command_name,
                                     .max_arguments = 1,
                                     .needs = "at most one command",
                                     .without_conf = true,
                                     .run = help_run};

static const struct cli_command *const processing[] = {&cli_run,      &cli_explain, &cli_compare,
                                                       &cli_validate, &cli_run_job, NULL};
static const struct cli_command *const reading[] = {&cli_status,       &cli_report,     &cli_list,     &cli_jobs,
                                                    &cli_review,       &cli_show,       &cli_features, &cli_cohort,
                                                    &cli_similar,      &cli_series,     &cli_programs, &cli_validations,
                                                    &cli_destinations, &cli_deliveries, NULL};
static const struct cli_command *const steering[] = {
    &cli_retry, &cli_submit,     &cli_cancel,   &cli_accept,   &cli_reject,   &cli_undo, &cli_hold,   &cli_release_held,
    &cli_pause, &cli_resume,     &cli_drain,    &cli_priority, &cli_complete, &cli_ack,  &cli_resend, &cli_purge,
    &cli_pull,  &cli_quarantine, &cli_identity, &cli_reload,   &cli_ping,     NULL};
static const struct cli_command *const checking[] = {&cli_check_config, &cli_doctor,  &cli_echo, &cli_presets,
                                                     &cli_profiles,     &cli_version, &cli_help, NULL};

const struct cli_group cli_groups[] = {{"Processing without the daemon", processing},
                                       {"Status and results", reading},
                                       {"Control (the daemon must run)", steering},
                                       {"Checks and information", checking},
                                       {0}};
