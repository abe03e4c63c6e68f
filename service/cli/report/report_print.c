/*
 * report_print.c - `noctule report`: results and alerts of a period, for example of the last night.
 */
#include "service/cli/report/report_print.h"

#include "base/durable.h"
#include "base/text.h"
#include "db/report.h"
#include "service/cli/cli.h"
#include "service/common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_PERIOD_MS (24 * 3600 * 1000LL) /* default period */

struct report_print_request {
    const char *since, *until, *html;
    bool json, send;
};

static int
report_print_check(struct cli_call *call)
{
    const struct report_print_request *request = call->options;
    int64_t ms;
    if (request->send && (request->json || request->html))
        return cli_usage_error(call->command->name, "--send cannot be combined with --json or --html");
    for (int i = 0; i < 2; i++) {
        const char *text = i ? request->until : request->since;
        if (text && cli_time_to_ms(text, &ms) != 0)
            return cli_usage_error(call->command->name, "\"%s\" is not a time: use 2026-01-31 or 36h", text);
    }
    return EXIT_OK;
}

/* Replaces the file as a whole, so that readers never see half a page. */
int
report_save(const struct report_content *report, const char *path)
{
    struct text_stream page;
    int rc = text_open(&page);
    if (rc == 0) {
        report_write_html(report, page.out);
        rc = text_close(&page);
    }
    if (rc == 0) {
        rc = durable_write(AT_FDCWD, path, page.bytes, page.size, 0644, DURABLE_REPLACE);
        free(page.bytes);
    }
    if (rc == 0)
        return EXIT_OK;
    cli_print_error("%s: cannot write the page: %s", path, strerror(-rc));
    return EXIT_PARTIAL;
}

static int
report_print_output(const struct report_content *report, const struct cli_call *call)
{
    const struct report_print_request *request = call->options;
    if (request->send)
        return report_send(report, call->context->conf->report.command);
    if (request->json)
        report_write_json(report, stdout);
    else if (!request->html)
        report_write_text(report, stdout);
    const int status = request->html ? report_save(report, request->html) : EXIT_OK;
    return status == EXIT_OK && report->attention ? EXIT_PARTIAL : status;
}

/* Returns whether an operator must act. Acknowledged alerts do not count, but only in a recent
 * period. */
static bool
report_needs_attention(const struct report_period *period, const struct alerts *alerts, bool is_recent)
{
    static const struct {
        enum report_list_name table;
        enum alert_kind kind;
    } tables[] = {{PERIOD_FAILED, ALERT_jobs_failed},      {PERIOD_REVIEW, ALERT_review},
                  {PERIOD_UNDELIVERED, ALERT_undelivered}, {PERIOD_UNPULLED, ALERT_unpulled},
                  {PERIOD_CALLERS, ALERT_caller},          {PERIOD_QUARANTINED, ALERT_quarantine}};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (period->tables[tables[i].table].row_count > 0 &&
            !(is_recent && alerts_is_acknowledged(alerts, tables[i].kind)))
            return true;
    return alerts_worst(alerts) >= ALERT_ATTENTION;
}

static int
report_print_make(struct cli_call *call, struct report *database, int64_t since_ms, int64_t until_ms)
{
    const char *root = call->context->conf->root;
    struct cli_alerts alerts = {0};
    struct report_period *period = NULL;
    struct error error = {0};
    int status = EXIT_DATABASE;
    int rc = cli_alerts_collect(&alerts, call->context->conf, database, &error);
    if (rc == 0)
        rc = report_period_read(database, since_ms, until_ms, &period, &error);
    if (rc == 0) {
        const bool is_recent = clock_unix_ms() - until_ms < REPORT_PERIOD_MS;
        const struct report_content report = {period, &alerts, root,
                                              report_needs_attention(period, &alerts.list, is_recent)};
        status = report_print_output(&report, call);
    } else {
        cli_print_error("%s", error.message);
        status = rc == -EINVAL ? EXIT_USAGE : EXIT_DATABASE;
    }
    report_period_free(period);
    alerts_clear(&alerts.list);
    return status;
}

static int
report_print_run(struct cli_call *call)
{
    const struct report_print_request *request = call->options;
    struct report *database;
    if (request->send && call->context->is_in_force) {
        cli_print_error("--send runs report.command, so it needs a configuration file without errors");
        return EXIT_CONFIG;
    }
    if (request->send && !call->context->conf->report.command) {
        cli_print_error("--send needs report.command in the configuration");
        return EXIT_CONFIG;
    }
    int64_t until_ms = clock_unix_ms();
    if (request->until)
        cli_time_to_ms(request->until, &until_ms);
    int64_t since_ms = until_ms - REPORT_PERIOD_MS;
    if (request->since)
        cli_time_to_ms(request->since, &since_ms);
    int status = cli_open_report(call->context->conf, &database);
    if (status != EXIT_OK)
        return status;
    status = report_print_make(call, database, since_ms, until_ms);
    report_close(database);
    return status;
}

#define WHEN(name_, help_)                                                                                             \
    {                                                                                                                  \
#name_, 0, &cli_when, CLI_AT(struct report_print_request, name_), .help = (help_)                              \
    }

const struct cli_command cli_report = {
    .name = "report",
    .help = "report received series, results and open tasks of a period, by default 24 hours",
    .usage = {"[--since WHEN] [--until WHEN] [--json] [--html FILE]", "[--since WHEN] [--until WHEN] --send"},
    .more = "Exit status 1 if an operator must act: alerts, failed jobs, results under review, "
            "undelivered results or quarantined files.",
    .options =
        (const struct cli_option[]){
            WHEN(since, "start of the period: yesterday, 2026-01-31, or 36h ago; default: 24 h before the end"),
            WHEN(until, "end of the period; default: now"),
            CLI_JSON(struct report_print_request),
            {"html", 0, &cli_file, CLI_AT(struct report_print_request, html),
             .help = "write an HTML page to this file instead of text"},
            {"send", 0, &cli_flag, CLI_AT(struct report_print_request, send),
             .help = "pass it to report.command of the configuration; exit status 1 if that fails"},
            {0}},
    .size = sizeof(struct report_print_request),
    .check = report_print_check,
    .run = report_print_run};
