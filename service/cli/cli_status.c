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
#include <getopt.h>
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
    bool json, check;
    const char *daemon; /* "running" */
    struct status_trouble *troubles;
    size_t count, room;
};

/* enum trouble_level: as a line begins, in JSON, and for --check. */
static const struct {
    const char *heading, *word, *verdict;
} status_levels[] = {[TROUBLE_JOBS_WAIT] = {"Waits", "waits", "OK"},
                     [TROUBLE_ATTENTION] = {"Attention", "attention", "WARNING"},
                     [TROUBLE_BROKEN] = {"Broken", "broken", "CRITICAL"}};

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

static int
status_ask_daemon(struct status *status)
{
    char *message, *lines;
    const char *root = status->context->conf->root;
    int rc = cli_ask_daemon(root, &message, &lines);
    status->daemon = rc == 0 ? "running" : rc == -EINPROGRESS ? "starting" : "not running";
    int taken = status_take_lines(status, lines);
    if (rc < 0 && rc != -EINPROGRESS && taken == 0) {
        char text[128];
        snprintf(text, sizeof text, "noctuled does not run, or does not answer (%s)",
                 strerror(-rc));
        taken = status_take(status, TROUBLE_BROKEN, 0, text);
    }
    free(message);
    free(lines);
    return taken;
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
            printf("%-11s %s%s%s%s\n", status_levels[level].heading, trouble->text,
                   *since ? " (since " : "", since, *since ? ")" : "");
        }
    }
}

static void
status_print_json_troubles(const struct status *status)
{
    struct json json = {.out = stdout, .depth = 1, .filled = true};
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
    putchar('\n');
}

/* The night's object stays open for what is not of the database. */
static int
status_print_json(const struct status *status, struct report *report, struct error *error)
{
    struct text_stream night;
    int rc = text_open(&night);
    if (rc)
        return error_set_system(error, rc, "make the text");
    rc = report_status(report, night.out, true, error);
    int closed = text_close(&night);
    char *end = rc || closed ? NULL : strrchr(night.bytes, '}');
    if (end) {
        fwrite(night.bytes, 1, (size_t)(end - night.bytes), stdout);
        status_print_json_troubles(status);
    }
    free(night.bytes);
    return rc ? rc : closed ? error_set_system(error, closed, "make the text") : 0;
}

static int
status_print(const struct status *status, struct report *report, struct error *error)
{
    if (status->json)
        return status_print_json(status, report, error);
    int rc = report_status(report, stdout, false, error);
    if (rc == 0) {
        printf("Daemon      %s\n", status->daemon);
        status_print_troubles(status);
    }
    return rc;
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
        printf(" %s", unreadable);
        before = "; ";
    }
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_ATTENTION; level--) {
        for (size_t i = 0; i < status->count; i++) {
            const struct status_trouble *trouble = &status->troubles[i];
            if (trouble->level != level)
                continue;
            printf("%s%s", before, trouble->text);
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
    int opened = cli_open_report(status->context->conf, &report);
    if (opened != EXIT_OK && !status->check)
        return opened;
    int rc = status_ask_daemon(status);
    if (rc == 0 && report)
        rc = report_each_trouble(report, status_take, status, &error);
    int level = TROUBLE_JOBS_WAIT;
    if (status->check)
        level = status_print_check(status, report,
                                   opened != EXIT_OK || rc ? "the database cannot be read" : NULL);
    else if (rc == 0)
        rc = status_print(status, report, &error);
    report_close(report);
    if (rc == 0 || status->check)
        return level;
    cli_complain("%s", error.message[0] ? error.message : strerror(-rc));
    return EXIT_DATABASE;
}

int
cli_status(const struct cli_context *context, int argc, char **argv)
{
    struct status status = {.context = context};
    const struct cli_option options[] = {
        {"json", .flag = &status.json}, {"check", .flag = &status.check}, {.name = NULL}};
    int rc = cli_parse_options(argc, argv, options);
    if (rc != EXIT_OK)
        return rc;
    if (optind < argc)
        return cli_usage_error(argv[0], "\"%s\" is one argument too many", argv[optind]);
    if (status.json && status.check)
        return cli_usage_error(argv[0], "--json and --check exclude each other");
    rc = status_tell(&status);
    for (size_t i = 0; i < status.count; i++)
        free(status.troubles[i].text);
    free(status.troubles);
    return rc;
}
