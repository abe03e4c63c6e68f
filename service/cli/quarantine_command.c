/*
 * quarantine_command.c - `noctule quarantine`: lists, shows, releases or forgets files that could
 * not be received.
 */
#include "service/cli/control_requests.h"

#include "db/report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct quarantine {
    struct report_filter filter;
    bool json;
};

static bool
quarantine_is(const struct cli_call *call, const char *verb)
{
    return strcmp(call->arguments[0], verb) == 0;
}

static bool
quarantine_lists(const struct cli_call *call)
{
    return call->count == 0 || quarantine_is(call, "list");
}

static int
quarantine_check(struct cli_call *call)
{
    static const char *const verbs[] = {"show", "release", "forget"};
    const struct quarantine *options = call->options;
    const char *name = call->command->name;
    int64_t number;
    bool known = false;
    if (quarantine_lists(call))
        return call->count > 1 ? cli_usage_error(name, "list takes no file number") : EXIT_OK;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        known |= quarantine_is(call, verbs[i]);
    if (!known)
        return cli_usage_error(name, "\"%s\" is not list, show, release or forget", call->arguments[0]);
    if (call->count < 2)
        return cli_usage_error(name, "%s needs one or more file numbers", call->arguments[0]);
    for (int i = 1; i < call->count; i++)
        if (cli_parse_number(call->arguments[i], &number))
            return cli_usage_error(name, "\"%s\" is not a file number", call->arguments[i]);
    if (options->filter.code || options->filter.since || options->filter.limit)
        return cli_usage_error(name, "--code, --since and --limit need list");
    if (options->json && !quarantine_is(call, "show"))
        return cli_usage_error(name, "--json needs list or show");
    return EXIT_OK;
}

static void
write_quarantine(struct proto_writer *writer, enum proto_type type, const char *argument, const void *options)
{
    char login[256];
    const struct cli_call *call = options;
    struct message_quarantine message = {.action = call->arguments[0], .login = control_login(login, sizeof(login))};
    cli_parse_number(argument, &message.number);
    message_write(writer, type, &message);
}

static int
quarantine_run(struct cli_call *call)
{
    static const struct cli_request request = {PROTO_QUARANTINE, "file", write_quarantine, false};
    const struct quarantine *options = call->options;
    if (quarantine_lists(call) || quarantine_is(call, "show")) {
        struct report *report;
        struct error error = {0};
        int status = cli_open_report(call->context->conf, &report);
        if (status != EXIT_OK)
            return status;
        int rc = 0;
        if (quarantine_lists(call))
            rc = report_list(report, &report_quarantine, &options->filter, stdout, options->json, &error);
        for (int i = 1; i < call->count && rc == 0 && !quarantine_lists(call); i++) {
            int64_t number = 0;
            if (i > 1 && !options->json)
                putchar('\n');
            cli_parse_number(call->arguments[i], &number);
            rc = report_quarantined(report, number, stdout, options->json, &error);
        }
        report_close(report);
        if (rc == 0)
            return EXIT_OK;
        cli_print_error("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    return control_request_all(call->context->conf->root, &request, call->arguments + 1, call->count - 1, call);
}

const struct cli_command cli_quarantine = {
    .name = "quarantine",
    .help = "list, show, release or forget files that could not be received",
    .usage = {"[list] [OPTION]...", "show [--json] FILE...", "release FILE...", "forget FILE..."},
    .more = "FILE is the number in the list. release receives the file again, like a new file. "
            "forget deletes the file and its row; an event records the user.",
    .options = (const struct cli_option[]){{"code", 0, &cli_text, CLI_AT(struct quarantine, filter.code),
                                            .noun = "CODE", .help = "list: only this code"},
                                           {"since", 0, &cli_when, CLI_AT(struct quarantine, filter.since),
                                            .help = "list: only files received since: 2026-01-31, or 36h ago"},
                                           {"limit", 0, &cli_count, CLI_AT(struct quarantine, filter.limit),
                                            .help = "list: max number of rows; default 50"},
                                           CLI_JSON(struct quarantine),
                                           {0}},
    .size = sizeof(struct quarantine),
    .kind = &cli_text,
    .max_arguments = INT_MAX,
    .check = quarantine_check,
    .run = quarantine_run};
