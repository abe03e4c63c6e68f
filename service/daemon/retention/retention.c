#include "service/daemon/retention/retention.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/daemon/retention/remover.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARKS            8 /* rows per transaction */
#define EVENTS           500
#define FILES            64 /* files or folders per deletion in the thread */
#define NOTE_MILLIS      3600000
#define MEASURE_MILLIS   30000
#define REST_MILLIS      3600000 /* longest pause between two sweeps */
#define REST_MIN_MILLIS  1000
#define REST_SOON_MILLIS 60000 /* while the disk is full: a delivery may have ended meanwhile */
#define AGE_PART         10    /* a sweep may be late by this part of an age */
#define STEP_MILLIS      2
#define STEP_LOW_MILLIS  100 /* file systems report freed space late */
#define DAY_MILLIS       86400000.0
#define LEAP_MILLIS      (7 * DAY_MILLIS) /* a larger difference means that the clock was set */
#define VACUUM_PAGES     1024

struct retention {
    struct core *core;
    uv_timer_t timer;
    uv_work_t work;
    atomic_bool stop;
    bool working, closed, timer_gone;
    bool low;      /* less than low_mib was free, and high_mib is not reached yet */
    bool again;    /* a sweep was requested while one was running */
    bool walking;  /* a sweep is under way */
    bool stuck;    /* the event that no file can be removed was added */
    size_t marked; /* by this sweep */
    uint64_t ends; /* core->ends when it began */
    struct queue_sweep sweep;
    char **sources;
    int64_t after; /* last removal in this sweep */
    int64_t noted_ms, measured_ms;
    uint64_t trusted_at; /* in the loop's clock: until then age removes no file; 0: no limit */
    struct remover_item items[FILES];
    size_t count;
};

static void
retention_wait(struct retention *retention, int64_t millis)
{
    if (!retention->closed)
        uv_timer_start(&retention->timer, retention->timer.timer_cb, (uint64_t)millis, 0);
}

int64_t
retention_rest_ms(const struct conf_retention *conf)
{
    const double days[] = {conf->series_days, conf->results_days, conf->quarantine_days, conf->events_days};
    double rest = REST_MILLIS;
    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++)
        if (days[i] > 0)
            rest = fmin(rest, days[i] * DAY_MILLIS / AGE_PART);
    return (int64_t)fmax(rest, REST_MIN_MILLIS);
}

/* ---------------------------------------------------------------------------------- a sweep -- */

static void
retention_free_sources(struct retention *retention)
{
    for (size_t i = 0; i < retention->sweep.source_count; i++)
        free(retention->sources[i]);
    free(retention->sources);
    retention->sources = NULL;
    retention->sweep.source_count = 0;
}

static bool
retention_add_source(struct retention *retention, const char *folder)
{
    char *source = folder ? layout_inbox_source(folder) : strdup(QUEUE_SOURCE_RECOVERED);
    if (!source)
        return false;
    retention->sources[retention->sweep.source_count++] = source;
    return true;
}

/* Lists the inboxes that keep their files, and the source of recovered files. */
static bool
retention_list_sources(struct retention *retention)
{
    const struct conf *conf = retention->core->conf;
    retention_free_sources(retention);
    retention->sources = calloc(conf->inbox_count + 1, sizeof *retention->sources);
    if (!retention->sources)
        return false;
    for (size_t i = 0; i < conf->inbox_count; i++) {
        if (conf->inboxes[i].after != CONF_KEEP)
            continue;
        if ((retention->sweep.source_count == 0 && !retention_add_source(retention, NULL)) ||
            !retention_add_source(retention, conf->inboxes[i].path))
            return false;
    }
    return true;
}

static bool
retention_begin(struct retention *retention)
{
    const struct conf_retention *conf = &retention->core->conf->retention;
    const int64_t now_ms = clock_unix_ms();
    const double days[QUEUE_STOCKS] = {
        [QUEUE_STOCK_SERIES] = conf->series_days,         [QUEUE_STOCK_RESULTS] = conf->results_days,
        [QUEUE_STOCK_QUARANTINE] = conf->quarantine_days, [QUEUE_STOCK_OBJECTS] = conf->series_days,
        [QUEUE_STOCK_ROWS] = conf->events_days,           [QUEUE_STOCK_OBJECT_ROWS] = conf->events_days};
    if (!retention_list_sources(retention)) {
        retention_free_sources(retention);
        return false;
    }
    retention->sweep = (struct queue_sweep){
        .for_space = retention->low,
        .why = retention->low ? "removed before its time, for want of space" : "older than the retention",
        .sources = (const char *const *)retention->sources,
        .source_count = retention->sweep.source_count,
    };
    for (int i = 0; i < QUEUE_STOCKS; i++) {
        const bool files = i != QUEUE_STOCK_ROWS && i != QUEUE_STOCK_OBJECT_ROWS;
        if (retention->low && files)
            retention->sweep.before_ms[i] = now_ms - (int64_t)(conf->min_days * DAY_MILLIS);
        else if (!retention->trusted_at && days[i] > 0)
            retention->sweep.before_ms[i] = now_ms - (int64_t)(days[i] * DAY_MILLIS);
    }
    retention->walking = true;
    retention->marked = 0;
    retention->ends = retention->core->ends;
    retention->after = 0;
    return true;
}

static void
retention_end(struct retention *retention)
{
    struct core *core = retention->core;
    const bool for_space = retention->sweep.for_space;
    retention->walking = false;
    if (for_space && retention->low && retention->marked == 0 && !retention->stuck) {
        retention->stuck = true; /* the files that are found must stay */
        log_warn("retention.stuck", LOG_NUM("high_mib", core->conf->retention.high_mib));
        core_note(core, "RETENTION_STUCK",
                  "disk space is low, and all removable data waits for a job or a delivery, or is too new");
    }
    if (retention->marked > 0)
        log_info("retention.swept", LOG_INT("marked", retention->marked), LOG_INT("for_space", for_space));
    if (batch_commit(core->batch) == 0 && !core->db_failed)
        core_failed(core, queue_tidy(core->queue, VACUUM_PAGES), "tidy the database");
    const int64_t rest = retention_rest_ms(&core->conf->retention);
    const bool soon = (retention->low || core->db_failed) && rest > REST_SOON_MILLIS;
    retention_wait(retention, soon ? REST_SOON_MILLIS : rest);
}

/* ---------------------------------------------------------------------------------- a step --- */

/* Marks rows. The marks are on disk on return. */
static bool
retention_mark(struct retention *retention)
{
    struct core *core = retention->core;
    struct queue_sweep *sweep = &retention->sweep;
    const int64_t rows_before = sweep->before_ms[QUEUE_STOCK_ROWS];
    size_t marked = 0, events = 0;
    if (!core_change(core) ||
        core_failed(core, queue_sweep(core->queue, sweep, MARKS, clock_unix_ms(), &marked), "mark rows for removal"))
        return false;
    if (sweep->over && rows_before > 0) {
        if (core_failed(core, queue_sweep_events(core->queue, rows_before, EVENTS, &events), "delete old events"))
            return false;
        sweep->over = events == 0;
    }
    retention->marked += marked;
    if (core_failed(core, batch_commit(core->batch), "commit the removals"))
        return false;
    crash_point("retention_after_mark");
    return true;
}

static bool
retention_set_aside(struct retention *retention)
{
    struct core *core = retention->core;
    struct queue_removal *removals;
    if (core_failed(core, queue_removals(core->queue, retention->after, FILES, &removals, &retention->count),
                    "read the removals"))
        return false;
    for (size_t i = 0; i < retention->count; i++) {
        remover_take(&retention->items[i], &removals[i], core->conf);
        remover_set_aside(core->root, &retention->items[i]);
        retention->after = removals[i].id;
    }
    free(removals);
    crash_point("retention_after_set_aside");
    return true;
}

static void
retention_delete(uv_work_t *work)
{
    struct retention *retention = work->data;
    remover_delete(retention->core->root, retention->items, retention->count, &retention->stop);
    crash_point("retention_after_delete");
}

static void
retention_on_deleted(uv_work_t *work, int status)
{
    struct retention *retention = work->data;
    struct core *core = retention->core;
    (void)status;
    retention->working = false;
    for (size_t i = 0; i < retention->count; i++) {
        struct remover_item *item = &retention->items[i];
        if (item->gone && !retention->closed && core_change(core))
            core_failed(core, queue_removed(core->queue, item->removal.id), "delete a removal");
        else if (item->error && !retention->closed)
            log_error("retention.failed", LOG_INT("removal", item->removal.id),
                      LOG_STR("error", strerror(-item->error)));
        remover_release(item);
    }
    retention->count = 0;
    if (retention->timer_gone) {
        retention_free_sources(retention);
        free(retention);
    } else
        retention_wait(retention, retention->low ? STEP_LOW_MILLIS : STEP_MILLIS);
}

/* Returns whether there is more to do. */
static bool
retention_step(struct retention *retention)
{
    /* A sweep of the other kind would free space too late, or for no reason. */
    const bool is_needed = retention->walking && !retention->again && retention->sweep.for_space == retention->low;
    if (!is_needed && !retention_begin(retention))
        return false;
    retention->again = false;
    if ((!retention->sweep.over && !retention_mark(retention)) || !retention_set_aside(retention))
        return false;
    return retention->count > 0 || !retention->sweep.over;
}

static void
retention_on_timer(uv_timer_t *timer)
{
    struct retention *retention = timer->data;
    struct core *core = retention->core;
    double free_mib;
    if (retention->working || core->draining)
        return;
    if (core->auditing)
        return; /* the end of the audit starts a sweep */
    if (core->db_failed) {
        retention_wait(retention, 1000);
        return;
    }
    if (retention->low && spool_free_mib(core->root, &free_mib) == 0)
        retention_disk(retention, free_mib);
    if (!retention_step(retention)) {
        retention_end(retention);
        return;
    }
    if (retention->count == 0) {
        retention_wait(retention, STEP_MILLIS);
        return;
    }
    retention->work.data = retention;
    retention->working = true;
    if (uv_queue_work(&core->loop, &retention->work, retention_delete, retention_on_deleted) != 0)
        retention_on_deleted(&retention->work, UV_ECANCELED);
}

/* ------------------------------------------------------------------------------ operations -- */

int
retention_set_aside_all(struct core *core)
{
    struct queue_removal *removals;
    size_t count = 0;
    int64_t after = 0;
    do {
        int error = queue_removals(core->queue, after, FILES, &removals, &count);
        if (error)
            return error;
        for (size_t i = 0; i < count; i++) {
            struct remover_item item;
            after = removals[i].id;
            remover_take(&item, &removals[i], core->conf);
            remover_set_aside(core->root, &item);
            remover_release(&item);
        }
        free(removals);
    } while (count > 0);
    return 0;
}

void
retention_sweep_now(struct retention *retention)
{
    retention->again = true;
    if (!retention->working)
        retention_wait(retention, STEP_MILLIS);
}

/* With a wrong clock all files may seem old. A new time must last a day without a restart before age removes files.
 * Until then no time is stored that a restart would trust. */
static bool
retention_trusts_clock(struct retention *retention, int64_t now_ms)
{
    struct core *core = retention->core;
    char detail[128];
    if (retention->trusted_at) {
        if (uv_now(&core->loop) < retention->trusted_at)
            return false;
        retention->trusted_at = 0;
        return true;
    }
    if (retention->noted_ms == 0 &&
        core_failed(core, queue_last_disk(core->queue, &retention->noted_ms), "read the last note"))
        return false;
    const double leap = (double)(now_ms - retention->noted_ms);
    if (retention->noted_ms == 0 || fabs(leap) < LEAP_MILLIS)
        return true;
    retention->trusted_at = uv_now(&core->loop) + (uint64_t)DAY_MILLIS;
    log_warn("retention.clock", LOG_NUM("days", leap / DAY_MILLIS));
    snprintf(detail, sizeof detail, "the clock is %.1f days off its last value: no data is removed by age for a day",
             leap / DAY_MILLIS);
    core_note(core, "CLOCK_LEAPT", detail);
    return false;
}

/* Stores the free space: for v_disk, so that the figure is never older than a minute, and once per hour for v_night. */
static void
retention_store_space(struct retention *retention, double free_mib)
{
    struct core *core = retention->core;
    const int64_t now_ms = clock_unix_ms();
    if (llabs(now_ms - retention->measured_ms) >= MEASURE_MILLIS && !core->db_failed && core_change(core)) {
        retention->measured_ms = now_ms;
        core_failed(core, queue_measure_disk(core->queue, free_mib, now_ms), "store the free space");
    }
    if (llabs(now_ms - retention->noted_ms) >= NOTE_MILLIS && !core->db_failed &&
        retention_trusts_clock(retention, now_ms) && core_change(core)) {
        retention->noted_ms = now_ms;
        core_failed(core, queue_note_disk(core->queue, free_mib, now_ms), "note the free space");
    }
}

void
retention_disk(struct retention *retention, double free_mib)
{
    struct core *core = retention->core;
    const struct conf_retention *conf = &core->conf->retention;
    const bool low = free_mib < (retention->low ? conf->high_mib : conf->low_mib);
    retention_store_space(retention, free_mib);
    if (low && !retention->walking && !retention->working && retention->ends != core->ends)
        retention_wait(retention, STEP_MILLIS);
    if (low == retention->low)
        return;
    retention->low = low;
    retention->stuck = false;
    log_info(low ? "retention.low" : "retention.enough", LOG_NUM("free_mib", floor(free_mib)));
    if (low && !retention->working)
        retention_wait(retention, STEP_MILLIS);
}

int
retention_open(struct core *core, struct retention **out)
{
    struct retention *retention = calloc(1, sizeof *retention);
    if (!retention)
        return -ENOMEM;
    retention->core = core;
    uv_timer_init(&core->loop, &retention->timer); /* cannot fail */
    retention->timer.data = retention;
    retention->timer.timer_cb = retention_on_timer;
    *out = retention;
    return 0;
}

static void
retention_on_closed(uv_handle_t *handle)
{
    struct retention *retention = handle->data;
    retention->timer_gone = true;
    if (!retention->working) {
        retention_free_sources(retention);
        free(retention);
    }
}

void
retention_close(struct retention *retention)
{
    if (!retention)
        return;
    atomic_store(&retention->stop, true);
    retention->closed = true;
    uv_close((uv_handle_t *)&retention->timer, retention_on_closed);
}
