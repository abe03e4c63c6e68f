/* deadline_alerts.c - pipelines that cannot finish their jobs by their deadline, whatever else is
 * queued. Their window does not open before the deadline, or is shorter than one job takes by
 * v_measured. The alert comes before any job is late. */
#include "service/common/alert/alert_list.h"

#include "base/calendar/time_window.h"
#include "config/config.h"
#include "db/iso_time.h"
#include "db/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define DAYS_MS (INT64_C(15) * 24 * 3600 * 1000) /* one week, twice */

/* Jobs created after `after_ms` whose deadline is `by_ms`. */
struct deadline_span {
    int64_t after_ms, by_ms;
    /* From the start of the last open window before the deadline to the deadline. */
    int64_t room_ms;
};

/* Returns the next time at which jobs may start; at once without a window. */
static int64_t
deadline_opens(const struct conf_pipeline *pipeline, int64_t from_ms)
{
    return pipeline->window ? time_window_opens(pipeline->window->times, from_ms) : from_ms;
}

static int64_t
deadline_closes(const struct conf_pipeline *pipeline, int64_t at_ms)
{
    return pipeline->window ? time_window_closes(pipeline->window->times, at_ms) : TIME_WINDOW_NEVER;
}

/* Finds the coming deadline with the least room. Returns false if there is none. */
static bool
deadline_narrowest(const struct conf_pipeline *pipeline, int64_t now_ms, struct deadline_span *min)
{
    const struct time_window *deadlines = pipeline->done_by->times;
    struct deadline_span span = {.after_ms = time_window_starts(deadlines, now_ms)};
    bool found = false;
    while (span.after_ms < now_ms + DAYS_MS &&
           (span.by_ms = time_window_starts(deadlines, span.after_ms)) != TIME_WINDOW_NEVER) {
        /* The start of the last open window in which a job created then may start. */
        int64_t opens_ms = TIME_WINDOW_NEVER, at_ms = deadline_opens(pipeline, span.after_ms);
        while (at_ms < span.by_ms) {
            const int64_t closes_ms = deadline_closes(pipeline, at_ms);
            opens_ms = at_ms;
            at_ms = closes_ms < span.by_ms ? deadline_opens(pipeline, closes_ms) : span.by_ms;
        }
        span.room_ms = opens_ms < span.by_ms ? span.by_ms - opens_ms : 0;
        if (!found || span.room_ms < min->room_ms)
            *min = span;
        found = true;
        span.after_ms = span.by_ms;
    }
    return found;
}

/* Returns the seconds during which jobs may run until the deadline: the window's open time, plus
 * the part of a job that runs on after it has closed. */
static double
deadline_open_seconds(const struct conf_pipeline *pipeline, int64_t now_ms, int64_t by_ms, double mean_seconds)
{
    int64_t open_ms = 0, closed_ms = now_ms;
    int64_t at_ms = deadline_opens(pipeline, now_ms);
    while (at_ms < by_ms) {
        const int64_t closes_ms = deadline_closes(pipeline, at_ms);
        closed_ms = closes_ms < by_ms ? closes_ms : by_ms;
        open_ms += closed_ms - at_ms;
        at_ms = closes_ms < by_ms ? deadline_opens(pipeline, closes_ms) : by_ms;
    }
    return (double)open_ms / 1000 + (open_ms > 0 ? fmin(mean_seconds, (double)(by_ms - closed_ms) / 1000) : 0);
}

enum { WORDS = 32 };

static int
deadline_local(int64_t ms, char local[LOCAL_TIME_SIZE])
{
    char utc[ISO_TIME_SIZE];
    const int rc = iso_time_from_ms(ms, utc);
    return rc ? rc : iso_time_to_local(utc, local);
}

/* Writes "45 s", "12 min" or "17 h 52 min". */
static const char *
deadline_format_duration(double seconds, char words[WORDS])
{
    const long whole = lround(seconds);
    if (whole < 60)
        snprintf(words, WORDS, "%ld s", whole);
    else if (whole < 3600)
        snprintf(words, WORDS, "%ld min", whole / 60);
    else
        snprintf(words, WORDS, "%ld h %ld min", whole / 3600, whole % 3600 / 60);
    return words;
}

static void
deadline_describe_span(const struct conf_pipeline *pipeline, const struct deadline_span *span, double mean_seconds,
                       char *text, size_t size)
{
    char after[LOCAL_TIME_SIZE], by[LOCAL_TIME_SIZE];
    if (deadline_local(span->after_ms, after) != 0 || deadline_local(span->by_ms, by) != 0)
        return;
    if (span->room_ms == 0)
        snprintf(text, size,
                 "pipeline %s: jobs created after %s have the deadline %s (done_by), but its window (%s) "
                 "does not open between them",
                 pipeline->name, after, by, pipeline->window->text);
    else if (mean_seconds * 1000 > (double)span->room_ms)
        snprintf(text, size,
                 "pipeline %s: one job takes about %s, but its window leaves %s before "
                 "the deadline %s; change its window or done_by",
                 pipeline->name, deadline_format_duration(mean_seconds, (char[WORDS]){0}),
                 deadline_format_duration((double)span->room_ms / 1000, (char[WORDS]){0}), by);
}

static int
deadline_describe_queue(const struct conf_pipeline *pipeline, struct report *report, int64_t now_ms,
                        const struct report_pace *pace, char *text, size_t size)
{
    const int64_t by_ms = time_window_starts(pipeline->done_by->times, now_ms);
    char by[LOCAL_TIME_SIZE];
    int64_t jobs;
    struct error error;
    if (by_ms == TIME_WINDOW_NEVER || deadline_local(by_ms, by) != 0)
        return 0;
    int rc = report_wanted(report, pipeline->name, by_ms, &jobs, &error);
    const double needed = (double)jobs * pace->mean_seconds / (double)pace->lanes,
                 open = deadline_open_seconds(pipeline, now_ms, by_ms, pace->mean_seconds);
    if (rc == 0 && needed > open)
        snprintf(text, size,
                 "pipeline %s: the deadline %s (done_by) of %" PRId64
                 " queued %s requires about %s, but the window leaves %s until then",
                 pipeline->name, by, jobs, jobs == 1 ? "job" : "jobs",
                 deadline_format_duration(needed, (char[WORDS]){0}), deadline_format_duration(open, (char[WORDS]){0}));
    return rc;
}

int
deadline_alerts_each(const struct conf *conf, struct report *report, bool queued, int64_t now_ms,
                     int (*take)(void *context, const char *pipeline, const char *text), void *context)
{
    char text[1024];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < conf->pipeline_count; i++) {
        const struct conf_pipeline *pipeline = &conf->pipelines[i];
        struct report_pace pace = {0};
        struct deadline_span span;
        struct error error;
        if (!pipeline->done_by)
            continue;
        *text = '\0';
        /* Values that cannot be read count as not measured. */
        if (report && report_pace(report, pipeline->name, &pace, &error) != 0)
            pace = (struct report_pace){0};
        if (deadline_narrowest(pipeline, now_ms, &span))
            deadline_describe_span(pipeline, &span, pace.mean_seconds, text, sizeof text);
        if (!*text && queued && pace.lanes > 0 &&
            deadline_describe_queue(pipeline, report, now_ms, &pace, text, sizeof text) != 0)
            *text = '\0';
        if (*text)
            rc = take(context, pipeline->name, text);
    }
    return rc;
}
