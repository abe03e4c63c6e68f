#include "service/daemon/report/report_schedule.h"

#include "base/calendar/time_window.h"
#include "db/iso_time.h"
#include "db/report_history.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/site_command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOUR_SECONDS 3600
/* Longest period; noctule report accepts a year. */
#define MAX_PERIOD_MS (365LL * 24 * HOUR_SECONDS * 1000)

struct report_schedule {
    struct core *core;
    int64_t until_ms; /* end of the last period, if known */
    bool known;
    bool waiting; /* a period's report may be waiting for the command */
    struct site_command *command;
    int64_t id; /* of its period */
};

int64_t
report_schedule_last_end(const struct time_window *moments, int64_t after_ms, int64_t now_ms)
{
    int64_t last = 0, next = after_ms;
    while ((next = time_window_starts(moments, next)) <= now_ms)
        last = next;
    return last;
}

static void
report_schedule_end_period(struct report_schedule *schedule, int64_t now_ms)
{
    struct core *core = schedule->core;
    const struct conf_report *conf = &core->conf->report;
    const int64_t least_ms = now_ms - MAX_PERIOD_MS;
    const int64_t begin_ms = schedule->until_ms > least_ms ? schedule->until_ms : least_ms;
    const int64_t end_ms = report_schedule_last_end(conf->at->times, begin_ms, now_ms);
    const time_t end = (time_t)(end_ms / 1000);
    struct tm day;
    char name[16];
    if (!end_ms || !core_change(core))
        return;
    strftime(name, sizeof name, "%Y-%m-%d", localtime_r(&end, &day));
    if (core_failed(core, queue_close_night(core->queue, name, begin_ms, end_ms, conf->command != NULL),
                    "add a report period"))
        return;
    log_info("night.ended", LOG_STR("night", name));
    schedule->until_ms = end_ms;
    schedule->waiting = true;
}

static void
report_schedule_note_outcome(struct report_schedule *schedule, const char *failure)
{
    struct core *core = schedule->core;
    if (*failure)
        log_error("report.failed", LOG_STR("reason", failure));
    else
        log_info("report.sent", LOG_INT("night", schedule->id));
    /* If the row cannot be written now, the report is passed to the command again. */
    if (core_change(core))
        core_failed(core, queue_night_reported(core->queue, schedule->id, failure, clock_unix_ms()),
                    "record the outcome of a report");
}

static void
report_schedule_on_done(void *context, const char *failure)
{
    struct report_schedule *schedule = context;
    schedule->command = NULL;
    schedule->waiting = true; /* for the next period */
    report_schedule_note_outcome(schedule, failure);
}

static void
report_schedule_start_command(struct report_schedule *schedule, const struct queue_night *period, char *config_file)
{
    struct core *core = schedule->core;
    char since[ISO_TIME_SIZE], until[ISO_TIME_SIZE];
    char program[PATH_MAX], config[] = "--config", report[] = "report", send[] = "--send";
    char from[] = "--since", to[] = "--until";
    char *arguments[] = {program, config, config_file, report, send, from, since, to, until, NULL};
    const struct site_command_options order = {
        .arguments = arguments,
        .limit = "report.timeout_seconds",
        .timeout_ms = (uint64_t)(1000 * core->conf->report.timeout_seconds),
        .done = report_schedule_on_done,
        .context = schedule,
    };
    schedule->id = period->id;
    /* the command was configured at the end of the period */
    int rc = core->conf->report.command ? 0 : -ENOEXEC;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!rc && length < 0)
        rc = -errno;
    if (!rc) { /* noctule is in the daemon's own folder */
        program[length] = '\0';
        char *name = strrchr(program, '/') + 1;
        if (name + sizeof "noctule" > program + sizeof program)
            rc = -ENAMETOOLONG;
        else
            strcpy(name, "noctule");
    }
    if (!rc)
        rc = iso_time_from_ms(period->since_ms, since);
    if (!rc)
        rc = iso_time_from_ms(period->until_ms, until);
    if (!rc)
        rc = site_command_start(&core->loop, &order, &schedule->command);
    if (rc)
        report_schedule_note_outcome(schedule, rc == -ENOEXEC ? "there is no report.command any more" : strerror(-rc));
}

void
report_schedule_tick(struct report_schedule *schedule, char *config_file)
{
    struct core *core = schedule->core;
    const int64_t now_ms = clock_unix_ms();
    const int64_t before_ms = now_ms + HOUR_SECONDS * 1000LL;
    struct queue_night period;
    if (core_closed(core))
        return;
    /* The end of the last period. An end in the future was written with a wrong clock. */
    if (!schedule->known || schedule->until_ms > before_ms)
        schedule->known = !core_failed(core, queue_nights_until(core->queue, before_ms, &schedule->until_ms),
                                       "find the last report period");
    if (!schedule->known)
        return;
    report_schedule_end_period(schedule, now_ms);
    if (!schedule->waiting || schedule->command ||
        core_failed(core, queue_unreported_night(core->queue, &period), "find an unsent report"))
        return;
    schedule->waiting = period.id != 0;
    if (schedule->waiting)
        report_schedule_start_command(schedule, &period, config_file);
}

int
report_schedule_open(struct core *core, struct report_schedule **schedule)
{
    *schedule = calloc(1, sizeof **schedule);
    if (!*schedule)
        return -ENOMEM;
    (*schedule)->core = core;
    (*schedule)->waiting = true; /* an earlier period may be waiting */
    return 0;
}

void
report_schedule_close(struct report_schedule *schedule)
{
    if (schedule)
        site_command_cancel(schedule->command);
    free(schedule);
}
