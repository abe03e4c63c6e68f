/*
 * daemon.c - the daemon's life: start, drain, stop, reload.
 *
 *     start --> running <--> paused (disk low, or the database cannot be written)
 *                  |            |
 *                  +--SIGTERM---+--> draining --grace over--> stopping jobs --> killing --> end
 *                                      |                                                    ^
 *                                      +---------- all children gone, all recorded ---------+
 *
 * jobs.c handles jobs, arrivals.c received files, and deliveries.c sending. The daemon must not block outside the loop:
 * it parses no DICOM and runs no job.
 */
#include "service/daemon/daemon.h"

#include "base/test_hook.h"
#include "db/retention_rows.h"
#include "service/common/clock.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/exit_codes.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/daemon/alert_daemon.h"

#include "service/daemon/configured.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/executor.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/jobs/uploads.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/notification.h"
#include "service/daemon/programs/programs.h"
#include "service/daemon/pull/pull_scheduler.h"
#include "service/daemon/report/report_schedule.h"
#include "service/daemon/retention/retention.h"
#include "service/daemon/series/inspection.h"
#include "service/daemon/series/known.h"
#include "service/daemon/series/series.h"
#include "service/daemon/slurm/slurm_executor.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define TICK_MILLIS      1000  /* tests may shorten it */
#define GRACE_MILLIS     25000 /* for running jobs after SIGTERM; see TimeoutStopSec in the unit */
#define STOPPING_MILLIS  3000  /* between STOP_JOB and killing the children */
#define CLOCK_MIN_MILLIS 2000  /* time daemons make smaller corrections all day */
#define EXTEND           "EXTEND_TIMEOUT_USEC=30000000" /* extends TimeoutStartSec */

struct daemon {
    struct core core;
    const struct daemon_options *options;
    char *root, *database;
    struct configured configured;
    char *files; /* files of the configuration in force, one per line */
    int locks[2];
    struct control *control;
    struct audit *audit;
    struct senders senders;
    int64_t clock_ahead_ms; /* of the steady clock, at the last check; 0: no check yet */
    uv_signal_t terminate, interrupt, hangup;
    uv_timer_t tick, watchdog, deadline;
    bool renewed;      /* a new database replaces one that was lost */
    bool recovered;    /* the state left by the last daemon is repaired */
    bool announced;    /* READY was sent to systemd */
    bool reloading;    /* RELOADING was sent since */
    bool jobs_stopped; /* the grace period of a drain is over */
    char status[640];  /* last sent to systemd */
};

/* Checks whether the wall clock was set, forward or back. Must be called before the time of day is used. */
static void
daemon_watch_clock(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    if (core->db_failed && !core->probing)
        return; /* checked again once the database accepts writes */
    const int64_t before_ms = daemon->clock_ahead_ms;
    daemon->clock_ahead_ms = clock_unix_ms() - clock_steady_ms();
    const int64_t by_ms = daemon->clock_ahead_ms - before_ms;
    char detail[96];
    if (!before_ms || llabs(by_ms) < CLOCK_MIN_MILLIS)
        return;
    snprintf(detail, sizeof detail, "the clock was set %s by %.1f s", by_ms > 0 ? "forward" : "back",
             fabs((double)by_ms) / 1000);
    log_warn("clock.set", LOG_NUM("by_seconds", (double)by_ms / 1000));
    core_note(core, "CLOCK_SET", detail);
    if (core_change(core))
        core_failed(core, queue_clock_was_set(core->queue, by_ms), "adjust times to the clock");
    deliveries_clock_was_set(core->deliveries, by_ms);
    inspections_clock_was_set(core->inspections, by_ms);
    core->windows_due_ms = 0;
    due_now(&core->jobs_due);
}

/* ------------------------------------------------------------------------------ batch ------ */

static size_t
daemon_unrecorded(const struct core *core)
{
    return jobs_unrecorded(core->jobs) + programs_unrecorded(core->programs) + deliveries_unrecorded(core->deliveries) +
           pulls_unrecorded(core->pulls);
}

static void
daemon_before_commit(void *context)
{
    struct core *core = context;
    daemon_watch_clock((struct daemon *)core);
    jobs_before_commit(core->jobs);
    programs_before_commit(core->programs);
    deliveries_before_commit(core->deliveries);
    pulls_before_commit(core->pulls);
    /* Stop after the last child is reaped and its work recorded. If it cannot be recorded now, the next start does
     * it. */
    if (core->draining && pool_living(core->pool) == 0 && (daemon_unrecorded(core) == 0 || core->db_failed))
        uv_stop(&core->loop);
}

static void
daemon_after_commit(void *context, int status)
{
    struct core *core = context;
    if (core_failed(core, status, "commit") || !core->probing)
        return;
    /* The commit of the probe succeeded: work is resumed. */
    core->probing = core->db_failed = false;
    log_info("queue.recovered", LOG_STR("root", core->root));
    arrivals_pause_or_resume(core, "");
    core->windows_due_ms = 0; /* the current windows may not have been committed */
    due_now(&core->jobs_due);
    due_now(&core->programs_due);
    due_now(&core->deliveries_due);
}

static void daemon_announce(struct daemon *daemon);

static void
daemon_on_request(void *context, int64_t client, const struct control_request *request)
{
    struct daemon *daemon = context;
    request_handle(&daemon->core, daemon->control, client, request);
    daemon_announce(daemon);
}

/* Without the socket only requests are impossible: its folder may be read-only or full, and all else continues. */
static int
daemon_open_control(struct daemon *daemon)
{
    const struct control_events events = {daemon_on_request, daemon};
    int error = control_open(&daemon->core.loop, daemon->core.root, &events, &daemon->control);
    if (!error || !core_is_transient(error))
        return error;
    log_error("control.closed", LOG_STR("error", strerror(-error)));
    return 0;
}

static int
daemon_store_configuration(struct daemon *daemon, const char *cause, const char *by, const char *files,
                           const char *reason)
{
    const struct queue_configuration is = {cause, by, files ? files : "", reason};
    return queue_set_configuration(daemon->core.queue, &is, clock_unix_ms());
}

/* Repairs the state that the last daemon left, before any work starts. */
static int
daemon_recover(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    const struct conf *conf = core->conf;
    const double max_ms = 1000 * 1.1; /* per second of a maximum, as in backoff_ms() */
    const int64_t now_ms = clock_unix_ms();
    int32_t returned = 0, runs = 0;
    int error = queue_recover(core->queue, conf->jobs.max_attempts, now_ms, &returned);
    if (!error)
        error = programs_recover(core, now_ms, &runs);
    if (!error)
        error = retention_set_aside_all(core);
    if (!error)
        error = orphans_adopt(core);
    if (!error) /* the clock may have been set back while no daemon ran */
        error = queue_bound_waits(core->queue, now_ms + (int64_t)(max_ms * conf->jobs.retry_max_seconds),
                                  now_ms + (int64_t)(max_ms * conf->delivery.retry_max_seconds));
    if (!error)
        error = windows_set(core);
    if (!error)
        error = callers_set(core);
    if (!error)
        error = queue_note(core->queue, "START", "noctuled " NOCTULE_VERSION, clock_unix_ms());
    if (!error && daemon->renewed)
        error = queue_note(core->queue, "DATABASE_RENEWED",
                           "noctuled --new-database: the database of this root was lost", clock_unix_ms());
    if (!error)
        error = daemon_store_configuration(daemon, "start", "", daemon->files, "");
    daemon->recovered = !error;
    if (!core_failed(core, error, "repair the state left by the last daemon"))
        log_info("daemon.started", LOG_STR("version", NOCTULE_VERSION), LOG_STR("root", core->root),
                 LOG_INT("pid", getpid()), LOG_INT("jobs_returned", returned), LOG_INT("runs_returned", runs),
                 LOG_INT("landlock", confine_landlock()), LOG_INT("seccomp", call_filter_possible()));
    return core->db_failed ? 0 : error; /* transient errors are retried */
}

/* Retries failed writes. */
static void
daemon_on_probe(uv_timer_t *timer)
{
    struct core *core = timer->data;
    struct daemon *daemon = (struct daemon *)core;
    int rc = queue_open_for_writing(core->queue, daemon->database);
    if (rc && rc != -EROFS) {
        log_error("database.lost", LOG_STR("error", strerror(-rc)));
        _exit(EXIT_DATABASE); /* no work is under way, and the next start repairs everything */
    }
    if (core_failed(core, rc, "open the database for writing"))
        return;
    if (!daemon->control)
        daemon_open_control(daemon);
    if (!daemon->recovered && (daemon_recover(daemon) || !daemon->recovered))
        return;
    core->probing = true;
    jobs_before_commit(core->jobs);
    if (core->probing)
        core_note(core, "DATABASE_OK", "the database can be written again");
    /* The commit that ends this batch decides whether the probe succeeded. */
}

/* ------------------------------------------------------------------------------ children ---- */

static void
daemon_child_ready(void *context, int slot)
{
    struct daemon *daemon = context;
    struct core *core = &daemon->core;
    int worker = workers_find(core->workers, slot);
    if (worker >= 0) {
        workers_ready(core->workers, (size_t)worker);
        local_executor_worker_ready(core->local, (size_t)worker);
        programs_worker_ready(core->programs, (size_t)worker);
        return;
    }
    if (workers_is_probe(core->workers, slot))
        return;
    if (slot == core->web) {
        alert_daemon_send(core);
        return;
    }
    if (slot == slurm_executor_slot(core->slurm)) {
        due_now(&core->jobs_due);
        return;
    }
    if (programs_owns(core->programs, slot)) {
        due_now(&core->programs_due);
        return;
    }
    if (slot != core->receiver) {
        due_now(&core->deliveries_due);
        return;
    }
    arrivals_receiver_ready(core);
}

/* Sends READY once the receiver accepts senders, and again when the result of a reload is known. */
static void
daemon_announce(struct daemon *daemon)
{
    const struct receiver_state *reception = &daemon->core.reception;
    const bool ready = !daemon->announced && reception->open;
    const bool reloaded = daemon->reloading && !reception->awaited && (reception->open || *reception->problem);
    if (ready || (daemon->announced && reloaded))
        notify("READY=1");
    daemon->announced = daemon->announced || ready;
    daemon->reloading = daemon->reloading && !reloaded;
    if (!daemon->reloading)
        requests_end_reload(&daemon->core);
}

static void
daemon_child_frame(void *context, int slot, struct proto_reader *reader)
{
    struct daemon *daemon = context;
    struct core *core = &daemon->core;
    int worker = workers_find(core->workers, slot);
    daemon_watch_clock(daemon);
    if (slot == core->receiver) {
        arrivals_frame(core, reader);
        if (reader->type == PROTO_RECEIVING)
            alert_daemon_send(core);
        daemon_announce(daemon);
    } else if (worker >= 0 && reader->type == PROTO_RESERVED) {
        programs_reserved(core->programs, (size_t)worker, reader);
    } else if (worker >= 0) {
        local_executor_frame(core->local, (size_t)worker, reader);
    } else if (workers_is_probe(core->workers, slot)) {
        workers_probe_frame(core->workers, reader);
    } else if (slot == core->web) {
        web_decisions_frame(core, reader);
    } else if (slot == slurm_executor_slot(core->slurm)) {
        slurm_executor_frame(core->slurm, reader);
    } else if (programs_owns(core->programs, slot)) {
        programs_frame(core->programs, slot, reader);
    } else if (reader->type == PROTO_FOUND || reader->type == PROTO_MOVED) {
        pulls_frame(core->pulls, reader);
    } else {
        deliveries_frame(core->deliveries, reader);
    }
}

static void
daemon_child_gone(void *context, int slot, const struct pool_gone *gone)
{
    struct daemon *daemon = context;
    struct core *core = &daemon->core;
    bool expected = gone->ordered || core->draining;
    int worker = workers_find(core->workers, slot);
    if (slot == core->receiver) {
        spool_sweep_incoming(core->root);
        arrivals_receiver_gone(core, gone);
        uploads_receiver_gone(core->uploads);
        if (!expected)
            core_note_death(core, "INTAKE_DIED", gone);
    } else if (worker >= 0) {
        local_executor_worker_gone(core->local, (size_t)worker, gone);
        workers_gone(core->workers, (size_t)worker, gone);
        due_now(&core->programs_due); /* its GPU may be lent now */
    } else if (workers_is_probe(core->workers, slot)) {
        workers_probe_gone(core->workers, gone);
    } else if (slot == core->web) {
        uploads_web_gone(core->uploads);
        if (!expected)
            core_note_death(core, "PAGE_DIED", gone);
    } else if (slot == slurm_executor_slot(core->slurm)) {
        slurm_executor_gone(core->slurm);
        if (!expected)
            core_note_death(core, "CLUSTER_DIED", gone);
    } else if (programs_owns(core->programs, slot)) {
        programs_gone(core->programs, slot, gone);
    } else {
        deliveries_sender_gone(core->deliveries, slot, gone);
        pulls_sender_gone(core->pulls, slot, gone);
        if (!expected)
            core_note_death(core, "COURIER_DIED", gone);
    }
}

/* --------------------------------------------------------------------------------- stop ----- */

static void
daemon_stop_jobs(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    if (daemon->jobs_stopped) {
        pool_kill_all(core->pool, "the daemon stops");
        return;
    }
    daemon->jobs_stopped = true;
    jobs_stop_all(core->jobs);
    programs_stop_all(core->programs);
    uv_timer_start(&daemon->deadline, daemon->deadline.timer_cb, STOPPING_MILLIS, 0);
}

static void
daemon_on_deadline(uv_timer_t *timer)
{
    struct core *core = timer->data;
    daemon_stop_jobs((struct daemon *)core);
}

static void
daemon_drain(struct daemon *daemon, int number)
{
    struct core *core = &daemon->core;
    log_info("daemon.draining", LOG_INT("signal", number), LOG_INT("running", jobs_running(core->jobs)),
             LOG_INT("sending", deliveries_under_way(core->deliveries, NULL)));
    core->draining = true;
    core->draining_since_ms = clock_unix_ms();
    notify("STOPPING=1");
    pool_drain(core->pool);
    uv_timer_start(&daemon->deadline, daemon->deadline.timer_cb, GRACE_MILLIS, 0);
}

static void
daemon_on_stop_signal(uv_signal_t *handle, int number)
{
    struct core *core = handle->data;
    struct daemon *daemon = (struct daemon *)core;
    if (!core->draining) {
        daemon_drain(daemon, number);
        return;
    }
    daemon->jobs_stopped = true;
    daemon_stop_jobs(daemon);
}

/* ------------------------------------------------------------------------------- reload ----- */

/* Starts, replaces or ends the web UI process: its configuration determines its port and sandbox, so a new
 * configuration needs a new process. */
static void
daemon_fill_web(struct core *core)
{
    if (conf_page_is_open(&core->conf->page))
        pool_fill(core->pool, core->web, NULL);
    else
        pool_empty(core->pool, core->web);
}

static void
daemon_note_reload(const char *part, int error)
{
    if (error)
        log_error("reload.failed", LOG_STR("what", part), LOG_STR("error", strerror(-error)));
}

/* Replaces the configuration in force. */
static void
daemon_take_config(struct daemon *daemon, struct conf *fresh)
{
    struct core *core = &daemon->core;
    struct conf *old = core->conf;
    core->conf = fresh;
    log_set_level(fresh->log_level);
    log_info("config.reloaded", LOG_STR("file", daemon->options->config_file));
    pool_set_config(core->pool, daemon->configured.file, daemon->configured.text);
    core->reception.awaited = pool_ready(core->pool, core->receiver);
    pool_reload(core->pool, core->receiver);
    workers_reload(core->workers);
    daemon_note_reload("destinations", deliveries_reload(core->deliveries));
    daemon_note_reload("sources", pulls_reload(core->pulls));
    if (core_change(core))
        core_failed(core, callers_set(core), "update the rejected callers");
    daemon_fill_web(core);
    slurm_executor_reload(core->slurm);
    programs_reload(core->programs);
    conf_free(old);
    core->windows_due_ms = 0;
    due_now(&core->jobs_due);
    windows_tick(core);
    inspections_check(core->inspections);
    retention_sweep_now(core->retention);
    notifications_reload(core->notifications);
}

/* Returns whether a destination gets de-identified copies. */
static bool
daemon_deidentifies(const struct conf *conf)
{
    bool any = false;
    for (size_t i = 0; i < conf->destination_count; i++)
        any = any || conf->destinations[i].deidentify;
    return any;
}

/* Reads the configuration again and records the outcome. Returns 0, or -errno with the reason if the old one stays in
 * force. */
static int
daemon_reload(struct daemon *daemon, const char *cause, const char *by, struct error *error)
{
    struct core *core = &daemon->core;
    char *files = NULL;
    notify_reloading();
    daemon->reloading = true;
    struct conf *fresh = NULL;
    int rc = configured_read(daemon->options->config_file, daemon->options->root, &fresh, &files, error);
    const bool is_read = rc == 0;
    if (is_read && strcmp(fresh->root, core->conf->root) != 0)
        rc = error_set(error, -EINVAL, CODE_NONE, "root cannot change while noctuled runs (%s to %s)", core->conf->root,
                       fresh->root);
    else if (is_read && core->key_changed && daemon_deidentifies(fresh))
        rc = pseudonym_refuse_key(error);
    else if (is_read && (rc = configured_write(&daemon->configured, daemon->root, fresh)))
        error_set(error, rc, CODE_NONE, "the configuration cannot be written for the child processes: %s",
                  strerror(-rc));
    if (rc && is_read) {
        log_error("config.refused", LOG_STR("reason", error->message));
        conf_free(fresh);
    }
    if (rc)
        fresh = NULL;
    if (core_change(core))
        core_failed(core, daemon_store_configuration(daemon, cause, by, files, fresh ? "" : error->message),
                    "store the outcome of a reload");
    if (fresh) {
        free(daemon->files);
        daemon->files = files;
        daemon_take_config(daemon, fresh);
    } else {
        free(files);
    }
    config_watch_loaded(&core->config_watch, fresh ? NULL : error);
    return fresh ? 0 : -EINVAL;
}

static int
daemon_on_request_to_reload(struct core *core, const char *by, struct error *error)
{
    return daemon_reload((struct daemon *)core, "command", by, error);
}

static void
daemon_on_hangup(uv_signal_t *handle, int number)
{
    (void)number;
    struct core *core = handle->data;
    struct daemon *daemon = (struct daemon *)core;
    struct error error;
    if (core->draining)
        return;
    daemon_reload(daemon, "signal", "", &error);
    daemon_announce(daemon);
}

/* --------------------------------------------------------------------------------- tick ----- */

static void
daemon_notify_status(struct daemon *daemon)
{
    const struct core *core = &daemon->core;
    char status[sizeof daemon->status];
    int64_t since_ms;
    const char *problem = workers_problem(core->workers, &since_ms);
    const char *state = core->draining             ? "draining"
                        : core->db_failed          ? "paused, the database cannot be written"
                        : core->disk_low           ? "paused, the disk is almost full"
                        : *core->reception.problem ? core->reception.problem
                        : *problem                 ? problem
                        : !core->reception.open    ? "starting"
                                                   : "working";
    snprintf(status, sizeof status, "STATUS=%s; %zu jobs running", state, jobs_running(core->jobs));
    if (!daemon->announced)
        notify(EXTEND); /* a port that is in use stops neither jobs nor deliveries */
    if (strcmp(status, daemon->status) == 0)
        return;
    memcpy(daemon->status, status, sizeof status);
    notify(status);
}

static void
daemon_on_tick(uv_timer_t *timer)
{
    struct core *core = timer->data;
    daemon_watch_clock((struct daemon *)core);
    disk_watch(core);
    config_watch_check(&core->config_watch);
    inspections_tick(core->inspections);
    windows_tick(core);
    workers_tick(core->workers);
    jobs_tick(core->jobs);
    programs_tick(core->programs);
    deliveries_tick(core->deliveries);
    pulls_tick(core->pulls);
    report_schedule_tick(core->reports, ((struct daemon *)core)->configured.file);
    reviews_tick(core);
    alert_daemon_tick(core);
    notifications_tick(core->notifications);
    pattern_blocks_tick(core);
    daemon_announce((struct daemon *)core);
    daemon_notify_status((struct daemon *)core);
}

static void
daemon_on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify("WATCHDOG=1");
}

/* ------------------------------------------------------------------------- open, close ------ */

static void
daemon_init_timer(struct daemon *daemon, uv_timer_t *timer, uv_timer_cb callback)
{
    uv_timer_init(&daemon->core.loop, timer); /* cannot fail */
    timer->data = &daemon->core;
    timer->timer_cb = callback; /* stored, so that any function can start the timer */
}

static int
daemon_catch_signal(struct daemon *daemon, uv_signal_t *handle, int number, uv_signal_cb callback)
{
    uv_signal_init(&daemon->core.loop, handle);
    handle->data = &daemon->core;
    return uv_signal_start(handle, callback, number);
}

static int
daemon_open_jobs(struct core *core)
{
    int error = local_executor_open(core, &core->local);
    if (!error)
        error = slurm_executor_open(core, &core->slurm);
    if (!error) {
        core->executors[0] = local_executor_base(core->local);
        core->executors[1] = slurm_executor_base(core->slurm);
        error = jobs_open(core, core->executors, &core->jobs);
    }
    if (!error)
        error = workers_open(core, &core->workers);
    return error ? error : programs_open(core, &core->programs);
}

/* Must be called after uv_loop_init(). After an error the caller must still call daemon_close_parts(). */
static int
daemon_open_parts(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    const struct batch_events batch_events = {daemon_before_commit, daemon_after_commit, core};
    const struct pool_options pool_options = {
        .program = "/proc/self/exe", /* this very file, even after it was replaced */
        .config_file = daemon->configured.file,
        .timing = pool_default_timing,
        .events = {daemon_child_ready, daemon_child_frame, daemon_child_gone, daemon},
    };
    daemon_init_timer(daemon, &daemon->tick, daemon_on_tick);
    daemon_init_timer(daemon, &daemon->watchdog, daemon_on_watchdog);
    daemon_init_timer(daemon, &daemon->deadline, daemon_on_deadline);
    daemon_init_timer(daemon, &core->probe, daemon_on_probe);
    core->on_db_failure = arrivals_pause_or_resume;
    core->reload = daemon_on_request_to_reload;
    due_init(&core->jobs_due, &core->loop);
    due_init(&core->programs_due, &core->loop);
    due_init(&core->deliveries_due, &core->loop);
    int signals = daemon_catch_signal(daemon, &daemon->terminate, SIGTERM, daemon_on_stop_signal) |
                  daemon_catch_signal(daemon, &daemon->interrupt, SIGINT, daemon_on_stop_signal) |
                  daemon_catch_signal(daemon, &daemon->hangup, SIGHUP, daemon_on_hangup);
    int error = signals ? -EIO : batch_open(&core->loop, core->queue, &batch_events, &core->batch);
    if (!error)
        error = inspections_open(core, &core->inspections);
    if (!error)
        error = known_open(core, &core->known);
    if (!error)
        error = daemon_open_jobs(core);
    if (!error)
        error = deliveries_open(core, &core->deliveries);
    if (!error)
        error = pulls_open(core, &core->pulls);
    if (!error)
        error = retention_open(core, &core->retention);
    if (!error)
        error = uploads_open(core, &core->uploads);
    if (!error)
        error = report_schedule_open(core, &core->reports);
    if (!error)
        error = notifications_open(core, &core->notifications);
    if (!error)
        error = pool_open(&core->loop, &pool_options, &core->pool);
    if (!error)
        error = daemon_open_control(daemon);
    return error;
}

static void
daemon_close_parts(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&daemon->tick,
        (uv_handle_t *)&daemon->watchdog,
        (uv_handle_t *)&daemon->deadline,
        (uv_handle_t *)&core->probe,
        (uv_handle_t *)&daemon->terminate,
        (uv_handle_t *)&daemon->interrupt,
        (uv_handle_t *)&daemon->hangup,
        (uv_handle_t *)&core->jobs_due.timer,
        (uv_handle_t *)&core->programs_due.timer,
        (uv_handle_t *)&core->deliveries_due.timer,
    };
    audit_stop(daemon->audit);
    batch_close(core->batch); /* runs the waiting callbacks */
    requests_end_reload(core);
    uploads_close(core->uploads);
    control_close(daemon->control);
    pool_close(core->pool);
    jobs_close(core->jobs);
    local_executor_close(core->local);
    slurm_executor_close(core->slurm);
    workers_close(core->workers);
    programs_close(core->programs);
    deliveries_close(core->deliveries);
    pulls_close(core->pulls);
    free(daemon->senders.spare);
    inspections_close(core->inspections);
    known_close(core->known);
    retention_close(core->retention);
    report_schedule_close(core->reports);
    notifications_close(core->notifications);
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
        uv_close(handles[i], NULL);
    uv_run(&core->loop, UV_RUN_DEFAULT);
}

static int
daemon_begin_work(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    spool_sweep_incoming(core->root);
    spool_sweep_jobs(core->root);
    programs_sweep(core->root, core->queue);
    int error = daemon_recover(daemon);
    if (error)
        return error;
    error = audit_start(core, &daemon->audit);
    if (error)
        log_error("audit.failed", LOG_STR("error", strerror(-error)));
    uploads_sweep(core);
    core->receiver = pool_add(core->pool, "intake", 0);
    error = core->receiver < 0 ? core->receiver : workers_start(core->workers);
    if (!error) {
        core->web = pool_reserve(core->pool, "page", 0);
        error = core->web < 0 ? core->web : 0;
    }
    if (!error)
        pool_take_handed(core->pool, core->web);
    if (!error)
        error = slurm_executor_start(core->slurm);
    if (error)
        return error;
    daemon_fill_web(core);
    programs_reload(core->programs);
    disk_watch(core);
    retention_sweep_now(core->retention);
    const char *text = test_hook_variable("NOCTULE_TICK_MS");
    const uint64_t tick = text ? strtoull(text, NULL, 10) : TICK_MILLIS;
    uv_timer_start(&daemon->tick, daemon_on_tick, tick, tick);
    uint64_t watchdog_ms = notify_watchdog_ms();
    if (watchdog_ms)
        uv_timer_start(&daemon->watchdog, daemon_on_watchdog, 0, watchdog_ms);
    return 0;
}

/* Returns the exit status of a failed start: transient errors are not faults of the configuration or the root. */
static int
daemon_status(int error, int lasting)
{
    return core_is_transient(error) ? EX_TEMPFAIL : lasting;
}

static int
daemon_run(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    int status = EX_OSERR, error = uv_loop_init(&core->loop);
    if (error) {
        log_error("daemon.failed", LOG_STR("error", strerror(-error)));
        return daemon_status(error, EX_OSERR);
    }
    error = daemon_open_parts(daemon);
    if (!error) {
        error = daemon_begin_work(daemon);
        if (error)
            daemon_drain(daemon, 0);
        uv_run(&core->loop, UV_RUN_DEFAULT);
        const size_t lost = daemon_unrecorded(core);
        core_note(core, "STOP", lost ? "with jobs or deliveries that ended without a record" : "clean");
        status = batch_commit(core->batch) || lost ? EXIT_DATABASE : EXIT_OK;
        log_info("daemon.stopped", LOG_INT("unrecorded", lost));
    }
    if (error) {
        status = daemon_status(error, EX_OSERR);
        log_error("daemon.failed", LOG_STR("error", strerror(-error)), LOG_STR("reason", queue_reason(core->queue)));
    }
    daemon_close_parts(daemon);
    uv_loop_close(&core->loop);
    return status;
}

/* ------------------------------------------------------------------------------- start ------ */

/* The functions from here on return exit statuses; each undoes its own step. */

/* Rebuilds a database older than schema version 11, once. If the disk has no room now, a later start does it. */
static void
daemon_rebuild_database(struct daemon *daemon)
{
    const struct core *core = &daemon->core;
    char extension[64];
    double free_mib = 0;
    int64_t bytes = 0;
    if (queue_rebuild_size(core->queue, &bytes) || bytes == 0)
        return;
    const double mib = (double)bytes / (1 << 20);
    int rc = spool_free_mib(daemon->root, &free_mib);
    if (!rc && free_mib < 2 * mib + core->conf->min_free_mib)
        rc = -ENOSPC;
    if (!rc) { /* extends systemd's timeout, at 4 MiB per second */
        snprintf(extension, sizeof extension, "EXTEND_TIMEOUT_USEC=%.0f", (60 + mib / 4) * 1e6);
        notify(extension);
        rc = queue_rebuild(core->queue);
    }
    if (rc)
        log_warn("database.not_rebuilt", LOG_NUM("mib", mib), LOG_NUM("free_mib", free_mib),
                 LOG_STR("error", strerror(-rc)));
    else
        log_info("database.rebuilt", LOG_NUM("mib", mib));
}

static int
daemon_refuse_key(const struct daemon *daemon)
{
    struct error error;
    const int rc = pseudonym_refuse_key(&error);
    log_error("root.refused", LOG_STR("root", daemon->root), LOG_STR("file", LAYOUT_PSEUDONYM_KEY),
              LOG_STR("code", code_name(error.code)), LOG_STR("reason", error.message));
    return rc;
}

/* Compares the key of pseudonyms with the one that the database knows. Without de-identified copies, another one is only
 * reported: hashed identifiers change with it. */
static int
daemon_check_key(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    int rc = queue_check_key(core->queue, core->key_fingerprint);
    if (rc == 0 && daemon->options->new_key &&
        queue_replace_key(core->queue, core->key_fingerprint, clock_unix_ms()) == 0)
        rc = 1;
    core->key_changed = rc == 0;
    if (rc < 0)
        log_warn("root.key_not_stored", LOG_STR("file", LAYOUT_PSEUDONYM_KEY), LOG_STR("error", strerror(-rc)));
    if (!core->key_changed)
        return 0;
    if (daemon_deidentifies(core->conf))
        return daemon_refuse_key(daemon);
    log_warn("root.key_changed", LOG_STR("root", daemon->root), LOG_STR("file", LAYOUT_PSEUDONYM_KEY),
             LOG_STR("code", code_name(CODE_IDENTIFIER_KEY_CHANGED)));
    return 0;
}

static int
daemon_run_with_queue(struct daemon *daemon)
{
    struct error error;
    const struct daemon_options *options = daemon->options;
    if (layout_lacks_database(daemon->root) || queue_is_empty(daemon->database))
        daemon->renewed = layout_had_database(daemon->root);
    if (daemon->renewed && !options->new_database && layout_refuse_database(daemon->root, &error)) {
        log_error("database.lost", LOG_STR("file", daemon->database), LOG_STR("reason", error.message));
        return EXIT_LOST;
    }
    int rc = queue_open(daemon->database, &daemon->core.queue, &error);
    if (rc) {
        log_error("database.refused", LOG_STR("file", daemon->database), LOG_STR("reason", error.message));
        return daemon_status(rc, EXIT_DATABASE);
    }
    rc = layout_mark_database(daemon->root);
    if (rc)
        log_warn("root.not_marked", LOG_STR("file", LAYOUT_DATABASE_MADE), LOG_STR("error", strerror(-rc)));
    daemon_rebuild_database(daemon);
    rc = daemon_check_key(daemon);
    int status = rc ? daemon_status(rc, EX_CANTCREAT) : daemon_run(daemon);
    queue_close(daemon->core.queue);
    return status;
}

/* Reads the key of pseudonyms, or makes it. A new key gives each patient another pseudonym. So the daemon does not replace a
 * lost one while a destination gets de-identified copies. */
static int
daemon_open_key(struct daemon *daemon)
{
    struct core *core = &daemon->core;
    const bool makes =
        daemon->options->new_key || !daemon_deidentifies(core->conf) || !layout_had_database(daemon->root);
    int rc = makes ? pseudonym_key_make(daemon->root, &core->pseudonym_key)
                   : pseudonym_key_read(daemon->root, &core->pseudonym_key);
    if (rc == -ENOENT && !makes)
        return daemon_refuse_key(daemon);
    if (!rc)
        rc = pseudonym_key_fingerprint(&core->pseudonym_key, core->key_fingerprint);
    if (rc)
        log_error("root.refused", LOG_STR("root", daemon->root), LOG_STR("file", LAYOUT_PSEUDONYM_KEY),
                  LOG_STR("reason", strerror(-rc)));
    return rc;
}

static int
daemon_run_in_root(struct daemon *daemon)
{
    struct error error = {0};
    int rc = spool_make(daemon->root, &error);
    if (!rc)
        rc = spool_lock(daemon->root, daemon->locks, &error);
    if (rc) {
        log_error("root.refused", LOG_STR("root", daemon->root), LOG_STR("reason", error.message));
        return daemon_status(rc, EX_CANTCREAT);
    }
    rc = configured_write(&daemon->configured, daemon->root, daemon->core.conf);
    if (rc)
        log_error("root.refused", LOG_STR("root", daemon->root), LOG_STR("reason", strerror(-rc)));
    else
        rc = daemon_open_key(daemon);
    int status = rc ? daemon_status(rc, EX_CANTCREAT) : daemon_run_with_queue(daemon);
    spool_unlock(daemon->locks);
    return status;
}

int
daemon_main(const struct daemon_options *options)
{
    struct error error;
    struct daemon *daemon = calloc(1, sizeof *daemon);
    if (!daemon)
        return EX_TEMPFAIL;
    struct core *core = &daemon->core;
    daemon->options = options;
    daemon->configured = configured_none;
    core->senders = &daemon->senders;
    core->receiver = core->web = -1;
    core->reception.since_ms = clock_unix_ms();
    core->started_ms = clock_steady_ms();
    log_open("daemon", "info");
    core->config_watch.file = options->config_file;
    core->config_watch.root = options->root;
    int status = EX_TEMPFAIL; /* if there is no memory */
    int rc = configured_read(options->config_file, options->root, &core->conf, &daemon->files, &error);
    if (rc) {
        status = daemon_status(rc, EXIT_CONFIG);
    } else {
        log_set_level(core->conf->log_level);
        config_watch_loaded(&core->config_watch, NULL);
        core->root = daemon->root = strdup(core->conf->root);
        if (asprintf(&daemon->database, "%s/" LAYOUT_DATABASE, core->root) < 0)
            daemon->database = NULL;
        if (daemon->root && daemon->database)
            status = daemon_run_in_root(daemon);
        configured_free(&daemon->configured);
        free(daemon->database);
        free(daemon->root);
        free(core->config_watch.paths);
        conf_free(core->conf);
    }
    free(daemon->files);
    free(daemon);
    return status;
}
