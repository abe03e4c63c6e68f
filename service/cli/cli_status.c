/*
 * cli_status.c - how the night goes: what the database counts, what the daemon says of itself, and
 * what is not well. --check says it in one line, and with an exit status, as monitoring systems
 * that follow Nagios' plugins expect.
 */
#include "service/cli/cli.h"

#include "base/text.h"
#include "db/iso_time.h"
#include "db/report.h"
#include "service/cli/troubles.h"
#include "service/cli/watch.h"
#include "service/common/json.h"
#include "service/common/troubles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status {
    const struct cli_context *context;
    struct conf *conf;
    bool json, check;
    struct watch watch;
    struct cli_troubles troubles;
};

/* ---------------------------------------------------------------------------- telling ------ */

static void
status_print_troubles(const struct status *status)
{
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_JOBS_WAIT; level--) {
        for (size_t i = 0; i < status->troubles.count; i++) {
            char since[ISO_TIME_SIZE];
            const struct cli_trouble *trouble = &status->troubles.items[i];
            if (trouble->level != level)
                continue;
            cli_trouble_since(trouble, since);
            printf("%s%-11s%s %s%s%s%s\n", cli_style(cli_trouble_levels[level].style, stdout),
                   cli_trouble_levels[level].heading, cli_style(CLI_PLAIN, stdout), trouble->text,
                   *since ? " (since " : "", since, *since ? ")" : "");
        }
    }
}

static void
status_print_json_troubles(const struct status *status, bool after_night)
{
    struct json json = {.out = stdout, .depth = after_night, .filled = after_night};
    if (!after_night)
        json_begin_object(&json, NULL);
    cli_troubles_to_json(&status->troubles, &json);
    json_end_object(&json);
}

/* The night's object stays open for what is not of the database. */
static int
status_print_json(const struct status *status, struct report *report, struct error *error)
{
    struct text_stream night;
    int rc = text_open(&night);
    if (rc)
        return error_set_system(error, rc, "make the text");
    rc = report ? report_status(report, night.out, true, error) : 0;
    int closed = text_close(&night);
    char *end = rc || closed ? NULL : strrchr(night.bytes, '}');
    if (end)
        fwrite(night.bytes, 1, (size_t)(end - night.bytes), stdout);
    if (!closed)
        status_print_json_troubles(status, end != NULL);
    free(night.bytes);
    return rc ? rc : closed ? error_set_system(error, closed, "make the text") : 0;
}

/* Without a report what the daemon says, which it may all the same. */
static int
status_print(const struct status *status, struct report *report, struct error *error)
{
    if (status->json)
        return status_print_json(status, report, error);
    int rc = report ? report_status(report, stdout, false, error) : 0;
    const bool runs = strcmp(status->troubles.daemon, "running") == 0;
    printf("Daemon      %s%s%s\n", cli_style(runs ? CLI_GOOD : CLI_BAD, stdout),
           status->troubles.daemon, cli_style(CLI_PLAIN, stdout));
    status_print_troubles(status);
    return rc;
}

/* A bar ends the text: figures follow. */
static void
status_print_check_text(const char *before, const char *text)
{
    fputs(before, stdout);
    for (; *text; text++)
        putchar(*text == '|' ? '/' : *text);
}

/* "NOCTULE WARNING: ... | jobs_ready=0 ..."; returns the level, which is the exit status. */
static int
status_print_check(const struct status *status, struct report *report, const char *unreadable)
{
    const int worst = unreadable ? TROUBLE_BROKEN : cli_troubles_worst(&status->troubles);
    printf("NOCTULE %s:", cli_trouble_levels[worst].verdict);
    const char *before = " ";
    if (unreadable) {
        status_print_check_text(before, unreadable);
        before = "; ";
    }
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_ATTENTION; level--) {
        for (size_t i = 0; i < status->troubles.count; i++) {
            char since[ISO_TIME_SIZE];
            const struct cli_trouble *trouble = &status->troubles.items[i];
            if (trouble->level != level)
                continue;
            status_print_check_text(before, trouble->text);
            cli_trouble_since(trouble, since);
            printf("%s%s%s", *since ? " (since " : "", since, *since ? ")" : "");
            before = "; ";
        }
    }
    if (worst == TROUBLE_JOBS_WAIT)
        fputs(" all is well", stdout);
    fputs(" | ", stdout);
    struct error error;
    if (!report || report_figures(report, stdout, &error) != 0)
        putchar('\n');
    return worst;
}

static int
status_tell(struct status *status)
{
    struct report *report = NULL;
    struct error error = {0};
    int level = EXIT_OK;
    int rc = cli_try_report(status->conf, &report, &error);
    int asked = cli_troubles_gather(&status->troubles, status->conf, report, rc ? NULL : &error);
    if (rc == 0)
        rc = asked;
    if (status->check)
        level = status_print_check(status, report, rc ? error.message : NULL);
    else if (rc == 0)
        rc = status_print(status, report, &error);
    else
        status_print(status, NULL, &(struct error){0});
    report_close(report);
    if (rc == 0 || status->check)
        return level;
    cli_complain("%s", error.message);
    return EXIT_DATABASE;
}

/* --check answers as any plugin does, also where there is no configuration to go by. */
static int
status_refuse(const struct status *status, const struct error *error)
{
    if (!status->check) {
        cli_complain("%s", error->message);
        return EXIT_CONFIG;
    }
    printf("NOCTULE %s:", cli_trouble_levels[TROUBLE_BROKEN].verdict);
    status_print_check_text(" ", error->message);
    puts(" |");
    return TROUBLE_BROKEN;
}

static int
status_load(struct status *status)
{
    struct error error;
    const struct cli_context *context = status->context;
    int rc = conf_load_with_root(context->config_path, context->root, &status->conf, &error);
    return rc == 0 ? EXIT_OK : status_refuse(status, &error);
}

static int
status_check(struct cli_call *call)
{
    const struct status *status = call->options;
    return status->json && status->check
               ? cli_usage_error(call->command->name, "--json and --check exclude each other")
               : watch_check(call, &status->watch, status->json || status->check);
}

static int
status_draw(struct cli_call *call)
{
    struct status *status = call->options;
    int rc = status_load(status);
    if (rc == EXIT_OK)
        rc = status_tell(status);
    conf_free(status->conf);
    status->conf = NULL;
    cli_troubles_clear(&status->troubles);
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

/* It reads the configuration itself: --check answers without one, too. */
const struct cli_command cli_status = {
    .name = "status",
    .help = "how the night goes: jobs, series, what is not well",
    .usage = {"[--json]", "--watch [--interval SECONDS]", "--check"},
    .options =
        (const struct cli_option[]){
            WATCH_OPTIONS(struct status),
            CLI_JSON(struct status),
            {"check", 0, &cli_flag, CLI_AT(struct status, check),
             .help = "one line and the status 0, 1 or 2, for monitoring systems (Nagios)"},
            {0}},
    .size = sizeof(struct status),
    .without_conf = true,
    .check = status_check,
    .run = status_run};
