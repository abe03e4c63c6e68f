/*
 * cli_status.c - how the night goes: what the database counts, what the daemon says of itself, and
 * what is not well. --check says it in one line, and with an exit status, as monitoring systems
 * that follow Nagios' plugins expect.
 */
#include "service/cli/cli.h"

#include "base/array.h"
#include "base/text.h"
#include "db/iso_time.h"
#include "db/report.h"
#include "service/common/json.h"
#include "service/common/troubles.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status_trouble {
    int level; /* enum trouble_level */
    int64_t since_ms;
    char *text;
};

struct status {
    const struct cli_context *context;
    struct conf *conf;
    bool json, check;
    const char *daemon; /* "running" */
    struct status_trouble *troubles;
    size_t count, room;
};

/* enum trouble_level: as a line begins, in JSON, and for --check. */
static const struct {
    const char *heading, *word, *verdict;
    enum cli_style style;
} status_levels[] = {[TROUBLE_JOBS_WAIT] = {"Waits", "waits", "OK", CLI_HEADING},
                     [TROUBLE_ATTENTION] = {"Attention", "attention", "WARNING", CLI_DOUBTFUL},
                     [TROUBLE_BROKEN] = {"Broken", "broken", "CRITICAL", CLI_BAD}};

/* -------------------------------------------------------------------------- gathering ------ */

static int
status_take(void *context, int level, int64_t since_ms, const char *text)
{
    struct status *status = context;
    struct status_trouble *grown =
        array_grow(status->troubles, &status->room, status->count + 1, sizeof *grown);
    char *copy = grown ? strdup(text) : NULL;
    if (grown)
        status->troubles = grown;
    if (!copy)
        return -ENOMEM;
    if (level < 0 || level > TROUBLE_BROKEN)
        level = TROUBLE_ATTENTION;
    status->troubles[status->count++] = (struct status_trouble){level, since_ms, copy};
    return 0;
}

/* Of lines "level<tab>since<tab>text". */
static int
status_take_lines(struct status *status, char *lines)
{
    int rc = 0;
    char *rest = NULL;
    for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line && rc == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        char *end;
        const long level = strtol(line, &end, 10);
        const int64_t since_ms = strtoll(end, &end, 10);
        rc = status_take(status, (int)level, since_ms, *end ? end + 1 : end);
    }
    return rc;
}

/* Of a daemon that does not run, what the database has of its end. */
static void
status_describe_end(struct report *report, char *text, size_t size, int64_t *since_ms)
{
    struct report_life life;
    struct error error;
    char last[ISO_TIME_SIZE], jobs[96] = "";
    if (!report || report_last_life(report, &life, &error) != 0 || life.last_ms == 0 ||
        iso_time_from_ms(life.last_ms, last) != 0)
        return;
    if (life.jobs_running > 0)
        snprintf(jobs, sizeof jobs, "; jobs that it was at, which the next start returns: %" PRId64,
                 life.jobs_running);
    if (life.stopped)
        snprintf(text, size, ": it was stopped");
    else
        snprintf(text, size,
                 ": it ended without being stopped, and its log may say why; "
                 "the last that it recorded is of %s%s",
                 last, jobs);
    *since_ms = life.stopped ? life.last_ms : 0;
}

static int
status_ask_daemon(struct status *status, struct report *report)
{
    char *message, *lines, why[PATH_MAX + 64], end[256] = "", text[sizeof why + sizeof end];
    const char *root = status->conf->root;
    int64_t since_ms = 0;
    int rc = cli_ask_daemon(root, &message, &lines);
    int taken = status_take_lines(status, lines);
    free(message);
    free(lines);
    status->daemon = rc == 0 ? "running" : "starting";
    if (rc == 0 || rc == -EINPROGRESS || taken != 0)
        return taken;
    status->daemon = cli_no_answer(root, rc, why, sizeof why);
    if (strcmp(status->daemon, "not running") == 0)
        status_describe_end(report, end, sizeof end, &since_ms);
    snprintf(text, sizeof text, "%s%s", why, end);
    return status_take(status, TROUBLE_BROKEN, since_ms, text);
}

/* ---------------------------------------------------------------------------- telling ------ */

static void
status_since(const struct status_trouble *trouble, char text[ISO_TIME_SIZE])
{
    if (trouble->since_ms <= 0 || iso_time_from_ms(trouble->since_ms, text) != 0)
        *text = '\0';
}

static void
status_print_troubles(const struct status *status)
{
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_JOBS_WAIT; level--) {
        for (size_t i = 0; i < status->count; i++) {
            char since[ISO_TIME_SIZE];
            const struct status_trouble *trouble = &status->troubles[i];
            if (trouble->level != level)
                continue;
            status_since(trouble, since);
            printf("%s%-11s%s %s%s%s%s\n", cli_style(status_levels[level].style, stdout),
                   status_levels[level].heading, cli_style(CLI_PLAIN, stdout), trouble->text,
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
    json_string(&json, "daemon", status->daemon);
    json_begin_array(&json, "troubles");
    for (size_t i = 0; i < status->count; i++) {
        char since[ISO_TIME_SIZE];
        const struct status_trouble *trouble = &status->troubles[i];
        status_since(trouble, since);
        json_begin_object(&json, NULL);
        json_string(&json, "level", status_levels[trouble->level].word);
        if (*since)
            json_string(&json, "since", since);
        else
            json_null(&json, "since");
        json_string(&json, "text", trouble->text);
        json_end_object(&json);
    }
    json_end_array(&json);
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
    const bool runs = strcmp(status->daemon, "running") == 0;
    printf("Daemon      %s%s%s\n", cli_style(runs ? CLI_GOOD : CLI_BAD, stdout), status->daemon,
           cli_style(CLI_PLAIN, stdout));
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
    int worst = unreadable ? TROUBLE_BROKEN : TROUBLE_JOBS_WAIT;
    for (size_t i = 0; i < status->count; i++)
        worst = status->troubles[i].level > worst ? status->troubles[i].level : worst;
    printf("NOCTULE %s:", status_levels[worst].verdict);
    const char *before = " ";
    if (unreadable) {
        status_print_check_text(before, unreadable);
        before = "; ";
    }
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_ATTENTION; level--) {
        for (size_t i = 0; i < status->count; i++) {
            char since[ISO_TIME_SIZE];
            const struct status_trouble *trouble = &status->troubles[i];
            if (trouble->level != level)
                continue;
            status_print_check_text(before, trouble->text);
            status_since(trouble, since);
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
    int asked = status_ask_daemon(status, report);
    if (asked)
        rc = error_set_system(&error, asked, "tell what is not well");
    if (rc == 0)
        rc = report_each_trouble(report, status_take, status, &error);
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
status_load(struct status *status)
{
    struct error error;
    const struct cli_context *context = status->context;
    int rc = conf_load_with_root(context->config_path, context->root, &status->conf, &error);
    if (rc == 0)
        return EXIT_OK;
    if (!status->check) {
        cli_complain("%s", error.message);
        return EXIT_CONFIG;
    }
    printf("NOCTULE %s:", status_levels[TROUBLE_BROKEN].verdict);
    status_print_check_text(" ", error.message);
    puts(" |");
    return TROUBLE_BROKEN;
}

static int
status_check(struct cli_call *call)
{
    const struct status *status = call->options;
    return status->json && status->check
               ? cli_usage_error(call->command->name, "--json and --check exclude each other")
               : EXIT_OK;
}

static int
status_run(struct cli_call *call)
{
    struct status *status = call->options;
    status->context = call->context;
    int rc = status_load(status);
    if (rc == EXIT_OK)
        rc = status_tell(status);
    conf_free(status->conf);
    for (size_t i = 0; i < status->count; i++)
        free(status->troubles[i].text);
    free(status->troubles);
    return rc;
}

/* It reads the configuration itself: --check answers without one, too. */
const struct cli_command cli_status = {
    .name = "status",
    .help = "how the night goes: jobs, series, what is not well",
    .usage = {"[--json]", "--check"},
    .options =
        (const struct cli_option[]){
            CLI_JSON(struct status),
            {"check", 0, &cli_flag, CLI_AT(struct status, check),
             .help = "one line and the status 0, 1 or 2, for monitoring systems (Nagios)"},
            {0}},
    .size = sizeof(struct status),
    .without_conf = true,
    .check = status_check,
    .run = status_run};
