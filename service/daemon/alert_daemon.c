/*
 * alert_daemon.c - see alert_daemon.h. To raise an alert, add a row to service/common/alert/alert_list.def and a call
 * of alerts_add() to alerts_add_own() or alerts_add_reception(). The text may be logged, so it must not name a file or
 * a sending system.
 */
#include "service/daemon/alert_daemon.h"

#include "base/text.h"
#include "db/notification_rows.h"
#include "db/report.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/wire/messages.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/pull/pull_scheduler.h"
#include "service/daemon/slurm/slurm_executor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* after a start, before an alert that is not raised counts as cleared */
#define ALERTS_START_MS 60000

/* -------------------------------------------------------------------------------- raised ---- */

struct alerts_raising {
    const struct core *core;
    struct alerts *alerts;
};

static void
alerts_add_child(void *context, const struct pool_alert *child)
{
    const struct alerts_raising *raising = context;
    const struct core *core = raising->core;
    const enum alert_kind kind = alert_find_kind(child->role);
    /* One of several workers needs attention only; of the other roles each process is required. */
    bool is_spare = child->works || kind == ALERT_page || kind == ALERT_probe || kind == ALERT_program;
    for (size_t i = 0; kind == ALERT_worker && i < workers_count(core->workers); i++)
        is_spare |= workers_usable(core->workers, i) && pool_works(core->pool, workers_slot(core->workers, i));
    const char *destination = deliveries_served_from(core->deliveries, child->slot);
    const char *peer = *destination ? destination : pulls_served_from(core->pulls, child->slot);
    char number[16] = "";
    if (kind == ALERT_worker)
        snprintf(number, sizeof number, "%d", child->number);
    alerts_add(raising->alerts, kind, *number ? number : peer, is_spare ? ALERT_ATTENTION : ALERT_BROKEN,
               child->since_ms, "the %s%s%s%s%s %s", child->role, *number ? " " : "", number, *peer ? " for " : "",
               peer, child->text);
}

static void
alerts_add_own(const struct core *core, struct alerts *alerts)
{
    if (core->draining)
        alerts_add(alerts, ALERT_stopping, "", ALERT_BROKEN, core->draining_since_ms, "noctuled is stopping");
    if (core->db_failed)
        alerts_add(alerts, ALERT_database, "", ALERT_BROKEN, core->db_failed_since_ms,
                   "the database cannot be written: %s; senders must retry, jobs wait", core->db_failure);
    if (core->disk_low)
        alerts_add(alerts, ALERT_disk, "", ALERT_BROKEN, core->disk_low_since_ms,
                   "less than min_free_mib (%g MiB) is free; senders must retry%s", core->conf->min_free_mib,
                   core->disk_spent ? ", jobs wait" : "");
    const struct receiver_state *reception = &core->reception;
    if (*reception->problem) {
        char id[] = "reception", text[sizeof reception->problem];
        memcpy(text, reception->problem, sizeof text);
        int64_t parts = 1; /* of the receiver's text; "; " separates them */
        for (const char *at = text; (at = strstr(at, "; ")) != NULL; at += 2)
            parts++;
        alerts_append(
            alerts,
            &(struct alert){
                .id = id, .severity = ALERT_BROKEN, .since_ms = reception->since_ms, .size = parts, .text = text});
    } else if (!reception->open) {
        alerts_add(alerts, ALERT_starting, "", ALERT_BROKEN, reception->since_ms, "no data is received yet");
    }
    pool_each_alert(core->pool, alerts_add_child, &(struct alerts_raising){core, alerts});
    int64_t since_ms;
    const char *problem = slurm_executor_problem(core->slurm, &since_ms);
    if (*problem)
        alerts_add(alerts, ALERT_slurm, "", ALERT_ATTENTION, since_ms, "jobs wait for Slurm: %s", problem);
    const char *fault = config_watch_fault(&core->config_watch);
    if (fault)
        alerts_add(alerts, ALERT_config_file, "", ALERT_ATTENTION, core->config_watch.since_ms,
                   "%s; noctuled keeps the configuration in force, but would not start with this "
                   "file: correct it (noctule check-config)",
                   fault);
    problem = workers_problem(core->workers, &since_ms);
    if (*problem)
        alerts_add(alerts, ALERT_compute, "", ALERT_BROKEN, since_ms, "no job can run: %s", problem);
}

void
alert_daemon_add(const struct core *core, struct alerts *alerts)
{
    struct queue_job *ready = NULL;
    size_t count = 0;
    int64_t since_ms;
    alerts_add_own(core, alerts);
    if (*workers_problem(core->workers, &since_ms) || core_closed(core) ||
        queue_ready(core->queue, clock_unix_ms(), core_ageing_ms(core), 1, "", &ready, &count))
        return;
    for (size_t i = 0; i < count; i++)
        queue_job_clear(&ready[i]);
    free(ready);
    if (count > 0)
        alerts_add(alerts, ALERT_jobs_ready, "", ALERT_WAITS, 0, "ready jobs wait for a lane: %zu run",
                   jobs_running(core->jobs));
}

/* ---------------------------------------------------------------------- acknowledgements ---- */

/* Ends acknowledgements of alerts that are not in the list. */
static void
alerts_end_acks(struct core *core, const struct alerts *alerts, bool from_daemon)
{
    char alert[QUEUE_ALERT];
    struct text_stream raised; /* the ids of all alerts with a newline before and after each */
    if (text_open(&raised))
        return;
    fputc('\n', raised.out);
    for (size_t i = 0; i < alerts->count; i++)
        fprintf(raised.out, "%s\n", alerts->items[i].id);
    if (text_close(&raised))
        return;
    while (queue_find_cleared_ack(core->queue, raised.bytes, from_daemon, alert) == 1) {
        if (!core_change(core) ||
            core_failed(core, queue_end_ack(core->queue, alert, "noctuled", "the alert has cleared", clock_unix_ms()),
                        "end an acknowledgement"))
            break;
    }
    free(raised.bytes);
}

/* Collects the complete list, as every other program does. */
static int
alerts_collect_all(const struct core *core, struct alerts *alerts, struct error *error)
{
    struct report *report;
    char *path = core_path(core, LAYOUT_DATABASE);
    int rc = path ? report_open(path, &report, error) : error_set_system(error, -ENOMEM, "list the alerts");
    free(path);
    if (rc)
        return rc;
    alert_daemon_add(core, alerts);
    rc = alerts_collect(alerts, core->conf, report, clock_unix_ms(), error);
    report_close(report);
    return rc;
}

static int
alerts_store_ack(struct core *core, const struct alerts *alerts, const struct message_ack *request, const char *by,
                 struct error *error)
{
    const struct alert *alert = alerts_find(alerts, request->alert);
    if (!alert)
        return error_set(error, -ENOENT, CODE_NONE, "there is no current alert %s; noctule status lists the alerts",
                         request->alert);
    if (!alert_row(alert->kind)->may_acknowledge)
        return error_set(error, -EPERM, CODE_NONE, "%s cannot be acknowledged: %s%s%s", alert->id,
                         alert->severity == ALERT_WAITS ? "it is no fault" : "the service does not work",
                         *alert_row(alert->kind)->remedy ? "; " : "", alert_row(alert->kind)->remedy);
    const struct queue_ack ack = {.alert = alert->id,
                                  .by = by,
                                  .reason = request->reason,
                                  .severity = (int)alert->severity,
                                  .changed_ms = alert->changed_ms,
                                  .size = alert->size,
                                  .until_ms = request->until_ms,
                                  .from_daemon = alert_row(alert->kind)->from_daemon};
    alerts_end_acks(core, alerts, false); /* first: it may commit, and an audit row must be with this one */
    const int rc = queue_acknowledge(core->queue, &ack, clock_unix_ms());
    return rc ? error_set(error, rc, CODE_NONE, "%s", queue_reason(core->queue)) : 0;
}

int
alert_daemon_acknowledge(struct core *core, const struct message_ack *request, const char *by, struct error *error)
{
    struct alerts alerts = {0};
    int rc;
    if (request->undo) {
        rc = queue_end_ack(core->queue, request->alert, by, request->reason, clock_unix_ms());
        return rc ? error_set(error, rc, CODE_NONE, "%s", queue_reason(core->queue)) : 0;
    }
    rc = alerts_collect_all(core, &alerts, error);
    if (rc == 0)
        rc = alerts_store_ack(core, &alerts, request, by, error);
    alerts_clear(&alerts);
    return rc;
}

/* ------------------------------------------------------------------- beginnings and ends ---- */

static bool
alert_is_notified(const struct alert *alert)
{
    return alert->severity != ALERT_WAITS && alert->kind != ALERT_starting && alert->kind != ALERT_stopping;
}

static void
alerts_record_beginnings(struct core *core, const struct alerts *alerts, const struct queue_raised *raised,
                         size_t count)
{
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        size_t at = 0;
        while (at < count && strcmp(raised[at].alert, alert->id) != 0)
            at++;
        if (!alert_is_notified(alert) || (at < count && raised[at].severity >= (int)alert->severity))
            continue;
        if (!core_change(core) || core_failed(core,
                                              queue_begin_alert(core->queue, alert->id, (int)alert->severity,
                                                                alert_words[alert->severity], clock_unix_ms()),
                                              "store the beginning of an alert"))
            break;
    }
}

void
alert_daemon_record(struct core *core)
{
    struct alerts alerts = {0};
    struct error error;
    struct queue_raised *raised = NULL;
    size_t count = 0;
    if (clock_steady_ms() - core->started_ms <= ALERTS_START_MS)
        return;
    if (alerts_collect_all(core, &alerts, &error))
        log_warn("alerts.unknown", LOG_STR("reason", error.message));
    else if (!core_failed(core, queue_raised(core->queue, &raised, &count), "list raised alerts")) {
        alerts_record_beginnings(core, &alerts, raised, count);
        for (size_t i = 0; i < count; i++) {
            const struct alert *alert = alerts_find(&alerts, raised[i].alert);
            if (alert && alert_is_notified(alert))
                continue;
            if (!core_change(core) || core_failed(core, queue_end_alert(core->queue, raised[i].alert, clock_unix_ms()),
                                                  "store the end of an alert"))
                break;
        }
    }
    queue_raised_free(raised, count);
    alerts_clear(&alerts);
}

/* ---------------------------------------------------------------------------------- tick ---- */

static void
alerts_send(const struct core *core, const struct alerts *alerts)
{
    struct proto_writer writer;
    if (core->web < 0 || !pool_ready(core->pool, core->web))
        return;
    char *lines = alerts_to_lines(alerts);
    if (!lines)
        return;
    message_write_alerts(&writer, &(struct message_alerts){.lines = lines});
    pool_send(core->pool, core->web, &writer); /* -EPIPE: the next web UI process gets the alerts when it is ready */
    free(lines);
}

void
alert_daemon_send(const struct core *core)
{
    struct alerts alerts = {0};
    alerts_add_own(core, &alerts);
    alerts_send(core, &alerts);
    alerts_clear(&alerts);
}

void
alert_daemon_tick(struct core *core)
{
    struct alerts alerts = {0};
    alerts_add_own(core, &alerts);
    alerts_send(core, &alerts);
    if (!core->db_failed && !core->draining && clock_steady_ms() - core->started_ms > ALERTS_START_MS)
        alerts_end_acks(core, &alerts, true);
    alerts_clear(&alerts);
}
