#include "service/cli/alert_print.h"

#include "base/text.h"
#include "db/iso_time.h"
#include "db/report.h"
#include "service/cli/cli.h"
#include "service/common/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_alert_word cli_alert_words[] = {[ALERT_WAITS] = {"Waits", "OK", CLI_HEADING},
                                                 [ALERT_ATTENTION] = {"Attention", "WARNING", CLI_DOUBTFUL},
                                                 [ALERT_BROKEN] = {"Broken", "CRITICAL", CLI_BAD}};

/* Describes from the database how a stopped daemon ended. Writes no text if the database has no
 * record of it. */
static void
alert_describe_end(struct report *report, char *text, size_t size, int64_t *since_ms)
{
    struct report_life life;
    struct error error;
    char last[ISO_TIME_SIZE], jobs[96] = "";
    if (!report || report_last_life(report, &life, &error) != 0 || life.last_ms == 0 ||
        iso_time_from_ms(life.last_ms, last) != 0)
        return;
    if (life.jobs_running > 0)
        snprintf(jobs, sizeof jobs, "; running jobs, which the next start queues again: %" PRId64, life.jobs_running);
    if (life.stopped)
        snprintf(text, size, ": it was stopped");
    else
        snprintf(text, size,
                 ": it ended unexpectedly, see its log (journalctl -u noctule); its last record is from %s%s", last,
                 jobs);
    *since_ms = life.stopped ? life.last_ms : 0;
}

int
cli_alerts_collect(struct cli_alerts *alerts, const struct conf *conf, struct report *report, struct error *error)
{
    char *message, *lines, why[PATH_MAX + 64], end[256] = "";
    int64_t since_ms = 0;
    const int rc = cli_ping_daemon(conf->root, CLI_DAEMON_SECONDS, &message, &lines);
    if (lines)
        alerts_from_lines(&alerts->list, lines);
    free(message);
    free(lines);
    alerts->daemon = rc == 0 ? "running" : "starting";
    if (rc != 0 && rc != -EINPROGRESS) {
        alerts->daemon = cli_no_answer(conf->root, CLI_DAEMON_SECONDS, rc, why, sizeof why);
        if (strcmp(alerts->daemon, "not running") == 0)
            alert_describe_end(report, end, sizeof end, &since_ms);
        alerts_add(&alerts->list, ALERT_daemon, "", ALERT_BROKEN, since_ms, "%s%s", why, end);
    }
    return alerts_collect(&alerts->list, conf, report, clock_unix_ms(), error);
}

const char *
cli_alert_heading(const struct alert *alert)
{
    return alert->ack.by ? "Known" : cli_alert_words[alert->severity].heading;
}

static const char *
alert_time(int64_t ms, char text[LOCAL_TIME_SIZE])
{
    char utc[ISO_TIME_SIZE];
    if (ms <= 0 || iso_time_from_ms(ms, utc) != 0 || iso_time_to_local(utc, text) != 0)
        *text = '\0';
    return text;
}

const char *
cli_alert_since(const struct alert *alert, char text[CLI_SINCE])
{
    char since[LOCAL_TIME_SIZE];
    alert_time(alert->since_ms, since);
    snprintf(text, CLI_SINCE, "%s%s%s", *since ? " (since " : "", since, *since ? ")" : "");
    return text;
}

char *
cli_alert_remedy(const struct alert *alert)
{
    struct text_stream stream;
    char until[LOCAL_TIME_SIZE], at[LOCAL_TIME_SIZE];
    const struct alert_row *row = alert_row(alert->kind);
    if (text_open(&stream))
        return NULL;
    fprintf(stream.out, "%s: ", alert->id);
    if (alert->ack.by) {
        alert_time(alert->ack.until_ms, until);
        fprintf(stream.out, "acknowledged by %s at %s%s%s%s%s; noctule ack --undo %s", alert->ack.by,
                alert_time(alert->ack.at_ms, at), *until ? ", until " : "", until, *alert->ack.reason ? ": " : "",
                alert->ack.reason, alert->id);
    } else {
        fputs(row->remedy, stream.out);
        if (row->may_acknowledge)
            fprintf(stream.out, "; to acknowledge it, noctule ack %s", alert->id);
    }
    return text_close(&stream) ? NULL : stream.bytes;
}

void
cli_alerts_to_json(const struct cli_alerts *alerts, struct json *json)
{
    json_string(json, "daemon", alerts->daemon);
    alerts_to_json(&alerts->list, "alerts", json);
    json_begin_array(json, "troubles"); /* earlier versions; their readers cannot recognise acknowledged alerts */
    for (size_t i = 0; i < alerts->list.count; i++) {
        const struct alert *alert = &alerts->list.items[i];
        if (alert->ack.by)
            continue;
        json_begin_object(json, NULL);
        json_string(json, "level", alert_words[alert->severity]);
        json_time(json, "since", alert->since_ms);
        json_string(json, "text", alert->text);
        json_end_object(json);
    }
    json_end_array(json);
}
