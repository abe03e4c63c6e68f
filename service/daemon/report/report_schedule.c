/* report_schedule.c - see report_schedule.h. */
#include "service/daemon/report/report_schedule.h"

#include "base/calendar/time_window.h"
#include "db/iso_time.h"
#include "db/report_history.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/report/report_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_SECONDS 3600
/* Longest period; noctule report accepts a year. */
#define MOST_MS (365LL * 24 * HOUR_SECONDS * 1000)

struct nights {
    struct core *core;
    int64_t until_ms; /* end of the last period, if known */
    bool known;
    bool waiting; /* a period's report may be waiting for the command */
    struct sending *sending;
    int64_t id; /* of its period */
};

/* ------------------------------------------------------------------------------ calendar ---- */

int64_t
nights_last_end(const struct time_window *moments, int64_t after_ms, int64_t now_ms)
{
    int64_t last = 0, next = after_ms;
    while ((next = time_window_starts(moments, next)) <= now_ms)
        last = next;
    return last;
}

/* ------------------------------------------------------------------------------- the rows ---- */

/* Finds the end of the last period. Ignores an end in the future: it was written with a wrong
 * clock. */
static bool
nights_find_last(struct nights *nights, int64_t now_ms)
{
    struct core *core = nights->core;
    const int64_t before_ms = now_ms + HOUR_SECONDS * 1000LL;
    if (!nights->known || nights->until_ms > before_ms)
        nights->known =
            !core_failed(core, queue_nights_until(core->queue, before_ms, &nights->until_ms),
                         "find the last report period");
    return nights->known;
}

static void
nights_close_last(struct nights *nights, int64_t now_ms)
{
    struct core *core = nights->core;
    const struct conf_report *conf = &core->conf->report;
    const int64_t least_ms = now_ms - MOST_MS;
    const int64_t begin_ms = nights->until_ms > least_ms ? nights->until_ms : least_ms;
    const int64_t end_ms = nights_last_end(conf->at->times, begin_ms, now_ms);
    const time_t end = (time_t)(end_ms / 1000);
    struct tm day;
    char name[16];
    if (!end_ms || !core_change(core))
        return;
    strftime(name, sizeof name, "%Y-%m-%d", localtime_r(&end, &day));
    if (core_failed(core,
                    queue_close_night(core->queue, name, begin_ms, end_ms, conf->command != NULL),
                    "add a report period"))
        return;
    log_info("night.ended", LOG_STR("night", name));
    nights->until_ms = end_ms;
    nights->waiting = true;
}

/* ------------------------------------------------------------------------------ the command -- */

static void
nights_note_report(struct nights *nights, const char *failure)
{
    struct core *core = nights->core;
    if (*failure)
        log_error("report.failed", LOG_STR("reason", failure));
    else
        log_info("report.sent", LOG_INT("night", nights->id));
    /* If the row cannot be written now, the report is passed to the command again. */
    if (core_change(core))
        core_failed(core, queue_night_reported(core->queue, nights->id, failure, clock_unix_ms()),
                    "record the outcome of a report");
}

static void
nights_on_handed_over(void *context, const char *failure)
{
    struct nights *nights = context;
    nights->sending = NULL;
    nights->waiting = true; /* for the next period */
    nights_note_report(nights, failure);
}

static void
nights_hand_over(struct nights *nights, const struct queue_night *night, char *config_file)
{
    struct core *core = nights->core;
    char since[ISO_TIME_SIZE], until[ISO_TIME_SIZE];
    const struct sending_order order = {
        .config_file = config_file,
        .since = since,
        .until = until,
        .timeout_ms = (uint64_t)(1000 * core->conf->report.timeout_seconds),
        .done = nights_on_handed_over,
        .context = nights,
    };
    nights->id = night->id;
    /* the command was configured at the end of the period */
    int rc = core->conf->report.command ? 0 : -ENOEXEC;
    if (!rc)
        rc = iso_time_from_ms(night->since_ms, since);
    if (!rc)
        rc = iso_time_from_ms(night->until_ms, until);
    if (!rc)
        rc = sending_start(&core->loop, &order, &nights->sending);
    if (rc)
        nights_note_report(nights,
                           rc == -ENOEXEC ? "there is no report.command any more" : strerror(-rc));
}

static void
nights_report(struct nights *nights, char *config_file)
{
    struct core *core = nights->core;
    struct queue_night night;
    if (core_failed(core, queue_unreported_night(core->queue, &night), "find an unsent report"))
        return;
    nights->waiting = night.id != 0;
    if (nights->waiting)
        nights_hand_over(nights, &night, config_file);
}

void
nights_tick(struct nights *nights, char *config_file)
{
    struct core *core = nights->core;
    const int64_t now_ms = clock_unix_ms();
    if (core_closed(core) || !nights_find_last(nights, now_ms))
        return;
    nights_close_last(nights, now_ms);
    if (nights->waiting && !nights->sending)
        nights_report(nights, config_file);
}

/* ------------------------------------------------------------------------------ open, close -- */

int
nights_open(struct core *core, struct nights **nights)
{
    *nights = calloc(1, sizeof **nights);
    if (!*nights)
        return -ENOMEM;
    (*nights)->core = core;
    (*nights)->waiting = true; /* an earlier period may be waiting */
    return 0;
}

void
nights_close(struct nights *nights)
{
    if (nights)
        sending_cancel(nights->sending);
    free(nights);
}
