/*
 * job_windows.c - time windows of the pipelines: updates the open windows in the queue whenever one opens or closes,
 * the configuration changes or the clock is set. Loop thread only. Declared in jobs.h.
 */
#include "service/daemon/jobs/jobs.h"

#include "service/common/clock.h"

#include <errno.h>
#include <stdlib.h>

#define SHARE_MS (INT64_C(14) * 24 * 3600 * 1000) /* two weeks contain each weekday twice */

static struct queue_window
window_at(const struct conf_pipeline *pipeline, int64_t now_ms)
{
    const struct time_window *times = pipeline->window->times;
    const int64_t opens_ms = time_window_opens(times, now_ms);
    const int64_t closes_ms = opens_ms == TIME_WINDOW_NEVER ? TIME_WINDOW_NEVER : time_window_closes(times, opens_ms);
    const bool is_open = opens_ms == now_ms;
    /* The open share of the next two weeks, for estimates that exceed one window. */
    const int64_t until_ms = now_ms + SHARE_MS;
    int64_t open_ms = 0;
    for (int64_t at_ms = opens_ms; at_ms < until_ms;) {
        const int64_t end_ms = time_window_closes(times, at_ms);
        open_ms += (end_ms < until_ms ? end_ms : until_ms) - at_ms;
        at_ms = end_ms < until_ms ? time_window_opens(times, end_ms) : until_ms;
    }
    return (struct queue_window){
        .pipeline = pipeline->name,
        .text = pipeline->window->text,
        .is_open = is_open,
        .opens_ms = is_open || opens_ms == TIME_WINDOW_NEVER ? 0 : opens_ms,
        .closes_ms = closes_ms == TIME_WINDOW_NEVER ? 0 : closes_ms,
        .open_share = (double)open_ms / (double)SHARE_MS,
    };
}

int
windows_set(struct core *core)
{
    const struct conf *conf = core->conf;
    const int64_t now_ms = clock_unix_ms();
    size_t count = 0;
    int64_t due_ms = INT64_MAX;
    struct queue_window *windows = calloc(conf->pipeline_count + 1, sizeof *windows);
    if (!windows)
        return -ENOMEM;
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        if (!conf->pipelines[i].window)
            continue;
        windows[count] = window_at(&conf->pipelines[i], now_ms);
        const struct queue_window *window = &windows[count++];
        const int64_t change_ms = window->is_open ? window->closes_ms : window->opens_ms;
        due_ms = change_ms && change_ms < due_ms ? change_ms : due_ms; /* 0: it never changes */
    }
    const int error = queue_set_windows(core->queue, windows, count, now_ms);
    if (!error)
        core->windows_due_ms = due_ms;
    free(windows);
    return error;
}

void
windows_tick(struct core *core)
{
    if (clock_unix_ms() < core->windows_due_ms || (core->db_failed && !core->probing) || !core_change(core))
        return;
    core_failed(core, windows_set(core), "set the windows");
    due_now(&core->jobs_due);
}

int64_t
windows_deadline(const struct conf_pipeline *pipeline, int64_t now_ms)
{
    const int64_t at_ms = pipeline->done_by ? time_window_starts(pipeline->done_by->times, now_ms) : TIME_WINDOW_NEVER;
    return at_ms == TIME_WINDOW_NEVER ? 0 : at_ms;
}
