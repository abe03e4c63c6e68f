#include "service/daemon/notification.h"

#include "base/text.h"
#include "db/iso_time.h"
#include "db/notification_rows.h"
#include "service/common/clock.h"
#include "service/common/json.h"
#include "service/common/log.h"
#include "service/daemon/alert_daemon.h"
#include "service/daemon/attempt.h"
#include "service/daemon/site_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_MAX        100   /* per run */
#define LOOK_MS           10000 /* between two looks at the list of alerts */
#define RETRY_SECONDS     10.0  /* after the first failure, doubled by each further one */
#define RETRY_MAX_SECONDS 3600.0
#define SKIPPED_MAX       10000 /* events that may be considered again after a restart */
#define NAME_SIZE         65

struct notifications {
    struct core *core;
    int64_t *considered;      /* per row of notify: the last event that was; 0: not known */
    size_t next;              /* the row that may run next */
    bool is_set;              /* the database has the rows of the configuration in force */
    int64_t look_ms;          /* of clock_steady_ms, when the alerts are looked at again */
    struct site_command *run; /* NULL: no command runs */
    char name[NAME_SIZE];
    int64_t event_id; /* the last event that the run passes */
};

static void
notification_write_event(struct json *json, const struct queue_notified *event)
{
    char at[ISO_TIME_SIZE] = "";
    iso_time_from_ms(event->at_ms, at);
    json_begin_object(json, NULL);
    json_integer(json, "event", event->id);
    json_string(json, "at", at);
    json_string(json, "kind", event->kind);
    if (*event->alert) {
        const struct alert_row *row = alert_row(alert_find_kind(event->alert));
        json_string(json, "alert", event->alert);
        if (*event->state)
            json_string(json, "severity", event->state);
        json_string(json, "message", row->message);
        json_string(json, "remedy", row->remedy);
    } else {
        if (event->job_id)
            json_integer(json, "job", event->job_id);
        if (*event->pipeline)
            json_string(json, "pipeline", event->pipeline);
        json_string(json, "series_uid", event->series_uid);
        json_string(json, "code", event->code);
    }
    json_end_object(json);
}

/* malloc'd; NULL: no memory. */
static char *
notification_to_json(const struct conf_notify *row, const struct queue_notified *events, size_t count)
{
    struct text_stream stream;
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    if (text_open(&stream))
        return NULL;
    struct json json = {.out = stream.out};
    json_begin_object(&json, NULL);
    json_string(&json, "noctule", NOCTULE_VERSION);
    json_string(&json, "host", host);
    json_string(&json, "notify", row->name);
    json_boolean(&json, "more", count == EVENTS_MAX);
    json_begin_array(&json, "events");
    for (size_t i = 0; i < count; i++)
        notification_write_event(&json, &events[i]);
    json_end_array(&json);
    json_end_object(&json);
    return text_close(&stream) ? NULL : stream.bytes;
}

static void
notification_record(struct notifications *notifications, const char *failure)
{
    struct core *core = notifications->core;
    if (*failure)
        log_error("notification.failed", LOG_STR("name", notifications->name), LOG_STR("reason", failure));
    else
        log_info("notification.sent", LOG_STR("name", notifications->name), LOG_INT("event", notifications->event_id));
    /* If the database cannot be written, the command receives the events again. */
    if (core_change(core))
        core_failed(
            core,
            queue_end_notification(core->queue, notifications->name, notifications->event_id, failure, clock_unix_ms()),
            "store the end of a notification");
}

static void
notification_on_end(void *context, const char *failure)
{
    struct notifications *notifications = context;
    notifications->run = NULL;
    notification_record(notifications, failure);
}

static void
notification_run(struct notifications *notifications, const struct conf_notify *row,
                 const struct queue_notified *events, size_t count)
{
    char shell[] = "/bin/sh", option[] = "-c";
    char *arguments[] = {shell, option, row->command, NULL};
    char *json = notification_to_json(row, events, count);
    const struct site_command_options order = {
        .arguments = arguments,
        .input = json,
        .limit = "timeout_seconds of notify",
        .timeout_ms = (uint64_t)(1000 * row->timeout_seconds),
        .done = notification_on_end,
        .context = notifications,
    };
    snprintf(notifications->name, NAME_SIZE, "%s", row->name);
    notifications->event_id = events[count - 1].id;
    const int rc = json ? site_command_start(&notifications->core->loop, &order, &notifications->run) : -ENOMEM;
    free(json);
    if (rc)
        notification_record(notifications, strerror(-rc));
}

/* The time of the next run, as Unix time. A clock that was set back must not stop the runs. */
static int64_t
notification_due_ms(const struct conf_notify *row, const struct queue_notification *stored, int64_t now_ms)
{
    int64_t wait_ms = (int64_t)(1000 * row->interval_seconds);
    if (stored->failures > 0) {
        const int64_t retry_ms = backoff_ms(RETRY_SECONDS, RETRY_MAX_SECONDS, stored->failures, stored->event_id);
        wait_ms = retry_ms > wait_ms ? retry_ms : wait_ms;
    }
    return stored->ended_ms > now_ms ? now_ms : stored->ended_ms + wait_ms;
}

/* Starts the command of a row, if it is due and there are events for it. */
static void
notification_look(struct notifications *notifications, size_t i)
{
    struct core *core = notifications->core;
    const struct conf_notify *row = &core->conf->notify[i];
    struct queue_notification stored;
    struct queue_notified *events = NULL;
    size_t count = 0;
    int64_t last;
    char kinds[128]; /* " KIND KIND ", as queue_list_notified takes them */
    if (core_failed(core, queue_read_notification(core->queue, row->name, &stored), "read a notification") ||
        notification_due_ms(row, &stored, clock_unix_ms()) > clock_unix_ms())
        return;
    int64_t *considered = &notifications->considered[i];
    snprintf(kinds, sizeof kinds, " %s%s%s%s", row->events & CONF_NOTIFY_ALERT ? "ALERT_BEGAN ALERT_ENDED " : "",
             row->events & CONF_NOTIFY_JOB_FAILED ? "JOB_FAILED " : "",
             row->events & CONF_NOTIFY_JOB_REVIEW ? "JOB_REVIEW " : "",
             row->events & CONF_NOTIFY_SERIES_REFUSED ? "SERIES_REFUSED " : "");
    if (core_failed(core,
                    queue_list_notified(core->queue, *considered > stored.event_id ? *considered : stored.event_id,
                                        kinds, EVENTS_MAX, &events, &count, &last),
                    "look for events to notify"))
        return;
    if (count > 0)
        notification_run(notifications, row, events, count);
    else
        *considered = last;
    if (count == 0 && last - stored.event_id > SKIPPED_MAX && core_change(core))
        core_failed(core, queue_skip_notified(core->queue, row->name, last),
                    "store the events that a notification skips");
    queue_notified_free(events, count);
}

/* Stores the rows of the configuration in force. Returns whether that is done. */
static bool
notifications_set(struct notifications *notifications)
{
    struct core *core = notifications->core;
    const size_t count = core->conf->notify_count;
    const char **names = calloc(count + 1, sizeof *names);
    int64_t *considered = calloc(count + 1, sizeof *considered);
    for (size_t i = 0; names && i < count; i++)
        names[i] = core->conf->notify[i].name;
    notifications->is_set =
        names && considered && core_change(core) &&
        !core_failed(core, queue_set_notifications(core->queue, names, count), "store the rows of notify");
    free(names);
    if (!notifications->is_set) {
        free(considered);
        return false;
    }
    free(notifications->considered);
    notifications->considered = considered;
    notifications->next = 0;
    return true;
}

void
notifications_tick(struct notifications *notifications)
{
    struct core *core = notifications->core;
    if (core->draining || core->db_failed || (!notifications->is_set && !notifications_set(notifications)))
        return;
    const size_t count = core->conf->notify_count;
    unsigned events = 0;
    for (size_t i = 0; i < count; i++)
        events |= core->conf->notify[i].events;
    if ((events & CONF_NOTIFY_ALERT) && clock_steady_ms() >= notifications->look_ms) {
        notifications->look_ms = clock_steady_ms() + LOOK_MS;
        alert_daemon_record(core);
    }
    /* A command must not receive an event that is not committed. */
    if (count == 0 || notifications->run || batch_commit(core->batch))
        return;
    for (size_t i = 0; i < count && !notifications->run && !core->db_failed; i++) {
        const size_t row = notifications->next++ % count;
        notification_look(notifications, row);
    }
}

void
notifications_reload(struct notifications *notifications)
{
    notifications->is_set = false;
}

int
notifications_open(struct core *core, struct notifications **notifications)
{
    *notifications = calloc(1, sizeof **notifications);
    if (!*notifications)
        return -ENOMEM;
    (*notifications)->core = core;
    return 0;
}

void
notifications_close(struct notifications *notifications)
{
    if (!notifications)
        return;
    site_command_cancel(notifications->run);
    free(notifications->considered);
    free(notifications);
}
