/* cli.c - `noctule`: global options, then one command from the table. */
#include "service/cli/cli.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONFIG "/etc/noctule/noctule.conf"

static int
cli_version(const struct cli_context *context, int argc, char **argv)
{
    (void)context;
    if (argc > 1)
        return cli_usage_error(argv[0], "takes no arguments");
    puts("noctule " NOCTULE_VERSION);
    return EXIT_OK;
}

static int cli_help(const struct cli_context *context, int argc, char **argv);

static const struct cli_command commands[] = {
    {"run", true, cli_run, "--pipeline NAME --output DIR [--object FILE]... INPUT...",
     "process files or folders now, without the daemon; --object: what was drawn on them"},
    {"explain", true, cli_explain, "[--pipeline NAME] [--json] FILE... | FOLDER... | SERIES_UID",
     "what would become of it and why, without running anything"},
    {"status", false, cli_status, "[--json] | --check",
     "how the night goes; --check: one line and an exit status, for monitoring systems"},
    {"jobs", true, cli_report,
     "[--state STATE] [--pipeline NAME] [--series UID] [--code CODE] [--since WHEN] [--limit N] "
     "[--json]",
     "list jobs, newest first"},
    {"review", true, cli_report, "[--pipeline NAME] [--series UID] [--limit N] [--json]",
     "results that are not as expected and wait for accept or reject, oldest first"},
    {"show", true, cli_report, "JOB [--json]", "one job with its results and events"},
    {"features", true, cli_report, "JOB [--segment N] [--json | --csv]",
     "what a job measured; segment 0: the whole volume"},
    {"series", true, cli_report,
     "[--state STATE] [--series UID] [--since WHEN] [--limit N] [--json]",
     "list series, newest first"},
    {"destinations", true, cli_report, "[--json]", "where results go, and how it stands with each"},
    {"deliveries", true, cli_report,
     "[--state STATE] [--destination NAME] [--job JOB] [--limit N] [--json]",
     "list deliveries, newest first"},
    {"echo", true, cli_echo, "DESTINATION", "ask a destination whether it is there (C-ECHO)"},
    {"check-config", false, cli_check_config, "[--print] [FILE]", "check a configuration file"},
    {"presets", false, cli_presets, "[--json] [NAME]",
     "what is shipped, what it rests on and its limits; NAME: one as it is written"},
    {"version", false, cli_version, "", "print the version"},
    {"help", false, cli_help, "", "print this"},
    {0},
};

static const struct cli_command *const tables[] = {commands, cli_control_commands};

#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

static void
print_help(FILE *out)
{
    fputs("usage: noctule [--config FILE] [--root DIR] COMMAND ...\n\n", out);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct cli_command *command = tables[i]; command->name; command++)
            fprintf(out, "  %s%s%s\n        %s\n", command->name, command->arguments[0] ? " " : "",
                    command->arguments, command->help);
    fputs("\nThe configuration is --config, else $NOCTULE_CONFIG, else " DEFAULT_CONFIG ".\n"
          "--root replaces its root folder. Exit codes and more: man noctule.\n",
          out);
}

static int
cli_help(const struct cli_context *context, int argc, char **argv)
{
    (void)context;
    if (argc > 1)
        return cli_usage_error(argv[0], "takes no arguments");
    print_help(stdout);
    return EXIT_OK;
}

static const struct cli_command *
find_command(const char *name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct cli_command *command = tables[i]; command->name; command++)
            if (strcmp(command->name, name) == 0)
                return command;
    return NULL;
}

static int
run_with_conf(const struct cli_command *command, struct cli_context *context, int argc, char **argv)
{
    struct conf *conf = cli_load_conf(context, context->config_path, false);
    if (!conf)
        return EXIT_CONFIG;
    context->conf = conf;
    int status = command->run(context, argc, argv);
    context->conf = NULL;
    conf_free(conf);
    return status;
}

/* What was printed has to have arrived: a full disk is no success. */
static int
flush_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_complain("standard output cannot be written");
    return status == EXIT_OK ? EXIT_PARTIAL : status;
}

static int
dispatch(struct cli_context *context, int argc, char **argv)
{
    if (argc == 0) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const struct cli_command *command = find_command(argv[0]);
    if (!command)
        return cli_usage_error(NULL, "there is no command \"%s\"", argv[0]);
    optind = 0; /* getopt starts again, with the command's own options */
    int status = command->needs_conf ? run_with_conf(command, context, argc, argv)
                                     : command->run(context, argc, argv);
    return flush_output(status);
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"root", required_argument, NULL, 'r'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    const char *from_environment = getenv("NOCTULE_CONFIG");
    struct cli_context context = {
        .config_path = from_environment && from_environment[0] ? from_environment : DEFAULT_CONFIG};
    int option;
    while ((option = getopt_long(argc, argv, "+c:r:hV", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            context.config_path = optarg;
            break;
        case 'r':
            context.root = optarg;
            break;
        case 'h':
            print_help(stdout);
            return flush_output(EXIT_OK);
        case 'V':
            puts("noctule " NOCTULE_VERSION);
            return flush_output(EXIT_OK);
        default:
            return cli_usage_error(NULL, "wrong options");
        }
    }
    if (context.root && !context.root[0])
        return cli_usage_error(NULL, "--root needs a folder");
    return dispatch(&context, argc - optind, argv + optind);
}
