/*
 * cli_status.c - `noctule status`: counts of the database, the state of the daemon, and alerts.
 * --check prints one line and sets the exit status as Nagios plugins do.
 */
#include "service/cli/cli.h"

#include "base/text.h"
#include "db/iso_time.h"
#include "db/report.h"
#include "service/cli/alert_print.h"
#include "service/cli/watch.h"
#include "service/common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status {
    const struct cli_context *context;
    struct conf *conf;
    bool json, check;
    struct watch watch;
    struct cli_alerts alerts;
    struct error refused; /* error of the file; no message if it was loaded */
};

/* ------------------------------------------------------------------------------- output ---- */

/* Leaves the object of report_status open and adds the alerts. */
static int
status_print_json(const struct status *status, struct report *report, struct error *error)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc)
        return error_set_system(error, rc, "make the text");
    rc = report ? report_status(report, text.out, true, error) : 0;
    int closed = text_close(&text);
    char *end = rc || closed ? NULL : strrchr(text.bytes, '}');
    if (end)
        fwrite(text.bytes, 1, (size_t)(end - text.bytes), stdout);
    if (!closed) {
        struct json json = {.out = stdout, .depth = end != NULL, .filled = end != NULL};
        if (!end)
            json_begin_object(&json, NULL);
        cli_alerts_to_json(&status->alerts, &json);
        json_end_object(&json);
    }
    free(text.bytes);
    return rc ? rc : closed ? error_set_system(error, closed, "make the text") : 0;
}

/* Without a database, prints only the daemon and its alerts. */
static int
status_print(const struct status *status, struct report *report, struct error *error)
{
    if (status->json)
        return status_print_json(status, report, error);
    int rc = report ? report_status(report, stdout, false, error) : 0;
    const bool runs = strcmp(status->alerts.daemon, "running") == 0;
    printf("Daemon      %s%s%s\n", cli_style(runs ? CLI_GOOD : CLI_BAD, stdout), status->alerts.daemon,
           cli_style(CLI_PLAIN, stdout));
    for (size_t i = 0; i < status->alerts.list.count; i++) {
        const struct alert *alert = &status->alerts.list.items[i];
        char since[CLI_SINCE];
        char *remedy = alert->severity == ALERT_WAITS ? NULL : cli_alert_remedy(alert);
        const enum cli_style style = alert->ack.by ? CLI_HEADING : cli_alert_words[alert->severity].style;
        char *text = iso_time_localise(alert->text);
        printf("%s%-11s%s %s%s\n", cli_style(style, stdout), cli_alert_heading(alert), cli_style(CLI_PLAIN, stdout),
               text ? text : alert->text, cli_alert_since(alert, since));
        if (remedy)
            printf("%-11s %s\n", "", remedy);
        free(remedy);
        free(text);
    }
    return rc;
}

/* Replaces bars, because a bar ends the text of a plugin. */
static void
status_print_check_text(const char *before, const char *text)
{
    fputs(before, stdout);
    for (; *text; text++)
        putchar(*text == '|' ? '/' : *text);
}

/* Prints "NOCTULE WARNING: jobs_failed: ...; known: quarantine | jobs_ready=0 ...". Returns the
 * severity as exit status. */
static int
status_print_check(const struct status *status, struct report *report)
{
    const struct alerts *alerts = &status->alerts.list;
    const enum alert_severity worst = alerts_worst(alerts);
    const char *before = " ";
    struct error error;
    printf("NOCTULE %s:", cli_alert_words[worst].verdict);
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        if (alert->severity == ALERT_WAITS || alert->ack.by)
            continue;
        char since[CLI_SINCE], *text = iso_time_localise(alert->text);
        status_print_check_text(before, alert->id);
        status_print_check_text(": ", text ? text : alert->text);
        fputs(cli_alert_since(alert, since), stdout);
        free(text);
        before = "; ";
    }
    if (worst == ALERT_WAITS)
        fputs(" no alert needs attention", stdout);
    before = "; known: ";
    for (size_t i = 0; i < alerts->count; i++)
        if (alerts->items[i].ack.by) {
            status_print_check_text(before, alerts->items[i].id);
            before = ", ";
        }
    fputs(" | ", stdout);
    if (!report || report_figures(report, stdout, &error) != 0)
        putchar('\n');
    return (int)worst;
}

static int
status_output(struct status *status)
{
    struct report *report = NULL;
    struct error error = {0};
    int level = EXIT_OK;
    int rc = cli_try_report(status->conf, &report, &error);
    if (rc)
        alerts_add(&status->alerts.list, ALERT_database, "", ALERT_BROKEN, 0, "%s", error.message);
    int collected = cli_alerts_collect(&status->alerts, status->conf, report, rc ? NULL : &error);
    if (rc == 0 && collected) {
        alerts_add(&status->alerts.list, ALERT_database, "", ALERT_BROKEN, 0, "%s", error.message);
        rc = collected;
    }
    /* Warn of an error in the given file. The daemon has an alert for its own file, but may run
     * with another one. */
    bool is_known = !*status->refused.message;
    for (size_t i = 0; i < status->alerts.list.count; i++)
        is_known |= strstr(status->alerts.list.items[i].text, status->refused.message) != NULL;
    if (!is_known)
        cli_print_error("warning: %s; using the configuration in force instead", status->refused.message);
    if (status->check)
        level = status_print_check(status, rc ? NULL : report);
    else if (rc == 0)
        rc = status_print(status, report, &error);
    else
        status_print(status, NULL, &(struct error){0});
    report_close(report);
    if (rc == 0 || status->check)
        return level;
    cli_print_error("%s", error.message);
    return EXIT_DATABASE;
}

/* With --check, prints a plugin line even without a configuration. */
static int
status_refuse(const struct status *status, const struct error *error)
{
    if (!status->check) {
        cli_print_error("%s", error->message);
        return EXIT_CONFIG;
    }
    printf("NOCTULE %s:", cli_alert_words[ALERT_BROKEN].verdict);
    status_print_check_text(" ", error->message);
    puts(" |");
    return ALERT_BROKEN;
}

static int
status_check(struct cli_call *call)
{
    const struct status *status = call->options;
    return status->json && status->check ? cli_usage_error(call->command->name, "--json and --check cannot be combined")
                                         : watch_check(call, &status->watch, status->json || status->check);
}

static int
status_draw(struct cli_call *call)
{
    struct status *status = call->options;
    const struct cli_context *context = status->context;
    status->refused = (struct error){0};
    if (conf_load_with_root(context->config_path, context->root, &status->conf, &status->refused))
        status->conf = cli_load_conf_in_force(context);
    const int rc = status->conf ? status_output(status) : status_refuse(status, &status->refused);
    conf_free(status->conf);
    status->conf = NULL;
    alerts_clear(&status->alerts.list);
    status->alerts = (struct cli_alerts){0};
    return rc;
}

static int
status_run(struct cli_call *call)
{
    struct status *status = call->options;
    struct error error;
    status->context = call->context;
    if (cli_choose_conf(call->context, &error) < 0)
        return status_refuse(status, &error);
    return status->watch.on ? watch_run(call, &status->watch, status_draw) : status_draw(call);
}

/* Loads the configuration itself, so that --check prints a line without one. */
const struct cli_command cli_status = {
    .name = "status",
    .help = "show the queue, the series and current alerts",
    .usage = {"[--json]", "--watch [--interval SECONDS]", "--check"},
    .options = (const struct cli_option[]){WATCH_OPTIONS(struct status),
                                           CLI_JSON(struct status),
                                           {"check", 0, &cli_flag, CLI_AT(struct status, check),
                                            .help = "print one line and set exit status 0, 1 or 2, for Nagios"},
                                           {0}},
    .size = sizeof(struct status),
    .without_conf = true,
    .check = status_check,
    .run = status_run};
