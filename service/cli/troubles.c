/* troubles.c - see troubles.h. */
#include "service/cli/troubles.h"

#include "base/array.h"
#include "db/report.h"
#include "service/cli/cli.h"
#include "service/cli/done_by.h"
#include "service/common/clock.h"
#include "service/common/troubles.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_trouble_level cli_trouble_levels[] = {
    [TROUBLE_JOBS_WAIT] = {"Waits", "waits", "OK", CLI_HEADING},
    [TROUBLE_ATTENTION] = {"Attention", "attention", "WARNING", CLI_DOUBTFUL},
    [TROUBLE_BROKEN] = {"Broken", "broken", "CRITICAL", CLI_BAD}};

static int
trouble_take(void *context, int level, int64_t since_ms, const char *text)
{
    struct cli_troubles *troubles = context;
    struct cli_trouble *grown =
        array_grow(troubles->items, &troubles->room, troubles->count + 1, sizeof *grown);
    char *copy = grown ? strdup(text) : NULL;
    if (grown)
        troubles->items = grown;
    if (!copy)
        return -ENOMEM;
    if (level < 0 || level > TROUBLE_BROKEN)
        level = TROUBLE_ATTENTION;
    troubles->items[troubles->count++] = (struct cli_trouble){level, since_ms, copy};
    return 0;
}

/* Of a daemon that does not run, what the database has of its end. */
static void
trouble_describe_end(struct report *report, char *text, size_t size, int64_t *since_ms)
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
trouble_ask_daemon(struct cli_troubles *troubles, const char *root, struct report *report)
{
    char *message, *lines, why[PATH_MAX + 64], end[256] = "", text[sizeof why + sizeof end];
    int64_t since_ms = 0;
    int rc = cli_ask_daemon(root, CLI_DAEMON_SECONDS, &message, &lines);
    int taken = cli_each_trouble(lines, trouble_take, troubles);
    free(message);
    free(lines);
    troubles->daemon = rc == 0 ? "running" : "starting";
    if (rc == 0 || rc == -EINPROGRESS || taken != 0)
        return taken;
    troubles->daemon = cli_no_answer(root, CLI_DAEMON_SECONDS, rc, why, sizeof why);
    if (strcmp(troubles->daemon, "not running") == 0)
        trouble_describe_end(report, end, sizeof end, &since_ms);
    snprintf(text, sizeof text, "%s%s", why, end);
    return trouble_take(troubles, TROUBLE_BROKEN, since_ms, text);
}

int
cli_troubles_gather(struct cli_troubles *troubles, const struct conf *conf, struct report *report,
                    struct error *error)
{
    int rc = trouble_ask_daemon(troubles, conf->root, report);
    if (rc == 0)
        rc = done_by_each_doubt(conf, report, false, clock_unix_ms(), trouble_take, troubles);
    if (rc)
        return error_set_system(error, rc, "tell what is not well");
    return report ? report_each_trouble(report, trouble_take, troubles, error) : 0;
}

int
cli_troubles_worst(const struct cli_troubles *troubles)
{
    int worst = TROUBLE_JOBS_WAIT;
    for (size_t i = 0; i < troubles->count; i++)
        worst = troubles->items[i].level > worst ? troubles->items[i].level : worst;
    return worst;
}

void
cli_troubles_clear(struct cli_troubles *troubles)
{
    for (size_t i = 0; i < troubles->count; i++)
        free(troubles->items[i].text);
    free(troubles->items);
    *troubles = (struct cli_troubles){0};
}

void
cli_trouble_since(const struct cli_trouble *trouble, char text[ISO_TIME_SIZE])
{
    if (trouble->since_ms <= 0 || iso_time_from_ms(trouble->since_ms, text) != 0)
        *text = '\0';
}

void
cli_troubles_to_json(const struct cli_troubles *troubles, struct json *json)
{
    json_string(json, "daemon", troubles->daemon);
    json_begin_array(json, "troubles");
    for (size_t i = 0; i < troubles->count; i++) {
        char since[ISO_TIME_SIZE];
        const struct cli_trouble *trouble = &troubles->items[i];
        cli_trouble_since(trouble, since);
        json_begin_object(json, NULL);
        json_string(json, "level", cli_trouble_levels[trouble->level].word);
        if (*since)
            json_string(json, "since", since);
        else
            json_null(json, "since");
        json_string(json, "text", trouble->text);
        json_end_object(json);
    }
    json_end_array(json);
}
