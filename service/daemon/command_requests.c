/* command_requests.c - carries out operators' requests (control.h). Declared in daemon.h. */
#include "service/daemon/daemon.h"

#include "base/test_hook.h"
#include "base/text.h"
#include "db/retention_rows.h"
#include "service/common/clock.h"
#include "service/common/decisions/decisions.h"
#include "service/common/json.h"
#include "service/common/log.h"
#include "service/daemon/alert_daemon.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/programs/program_plan.h"
#include "service/daemon/pull/pull_scheduler.h"
#include "service/daemon/retention/retention.h"
#include "service/daemon/series/inspection.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUEST_NAME 128
#define USER_NAME    (REQUEST_NAME / 2)

struct answer {
    struct core *core;
    struct control *control; /* NULL: the web UI asked, and client is the token of its DECIDE */
    int64_t client;
    char by[REQUEST_NAME]; /* the person, as request_name() formats it */
    bool moves_files;      /* marked files must be moved away before the reply */
    int status;
    char message[512];
    char *body;          /* allocated; NULL: no body */
    struct answer *next; /* in core.reloading */
};

/* Sets the message of a reply. If it stays empty, the reply carries the queue's reason. */
static void __attribute__((format(printf, 2, 3))) answer_set(struct answer *answer, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(answer->message, sizeof answer->message, format, values);
    va_end(values);
}

static void
answer_send(void *context, int status)
{
    struct answer *answer = context;
    if (status)
        answer_set(answer, "the database cannot be written (%s); no change was made", strerror(-status));
    const struct message_answer message = {
        .status = status ? status : answer->status, .message = answer->message, .body = answer->body};
    crash_point("daemon_before_answer");
    if (answer->control) {
        control_answer(answer->control, answer->client, &message);
    } else {
        struct proto_writer writer;
        message_write_decided(
            &writer,
            &(struct message_decided){.token = answer->client, .status = message.status, .message = message.message});
        pool_send(answer->core->pool, answer->core->web, &writer); /* -EPIPE: its browser gets no reply */
    }
    free(answer->body);
    free(answer);
}

static int
handle_retry(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_retry *message = &request->message.retry;
    char *settings = NULL; /* of the job's pipeline as configured now */
    struct queue_ids running;
    int64_t job;
    int error = 0;
    log_info("control.retry", LOG_INT("job", message->job), LOG_INT("current", message->current),
             LOG_INT("again", message->again));
    if (message->current) {
        struct queue_job before;
        error = queue_get_job(core->queue, message->job, &before);
        if (error)
            return error;
        const struct conf_pipeline *pipeline = conf_find_pipeline(core->conf, before.pipeline);
        settings = pipeline ? conf_pipeline_to_text(pipeline) : NULL;
        if (!pipeline)
            answer_set(answer, "the configuration has no pipeline %s", before.pipeline);
        queue_job_clear(&before);
        if (!settings)
            return pipeline ? -ENOMEM : -EINVAL;
    }
    const struct queue_retry retry = {message->job, settings, message->again || message->program};
    error = queue_retry_job(core->queue, &retry, clock_unix_ms(), &job, &running);
    free(settings);
    jobs_stop_superseded(core->jobs, &running);
    if (!error)
        error = message->program ? programs_again(core, job, "retry --program") : programs_plan(core, job, true);
    if (error == -EEXIST)
        answer_set(answer, "%s; --force runs it again", queue_reason(core->queue));
    if (error)
        return error;
    if (message->program)
        retention_sweep_now(core->retention); /* removes the masks that are replaced */
    due_now(&core->jobs_due);
    if (job == message->job)
        answer_set(answer, "job %" PRId64 " is ready to run again", job);
    else
        answer_set(answer, "job %" PRId64 " will replace job %" PRId64 ", whose results stay until then", job,
                   message->job);
    return 0;
}

static int
handle_cancel(struct core *core, const struct control_request *request, struct answer *answer)
{
    const int64_t job = request->message.cancel.job;
    bool was_running = false;
    log_info("control.cancel", LOG_INT("job", job));
    int error = queue_cancel_job(core->queue, job, clock_unix_ms(), &was_running);
    if (error)
        return error;
    if (was_running)
        jobs_stop(core->jobs, job);
    answer_set(answer, "job %" PRId64 " is cancelled%s", job, was_running ? "; its worker stops it" : "");
    return 0;
}

/* Formats "root (jane)": the requesting user, and the login user if that is another; or the person of the web UI. */
static void
request_name(const struct control_request *request, const char *login, char name[REQUEST_NAME])
{
    char user[USER_NAME], text[4096];
    struct passwd entry, *found = NULL;
    if (request->person) {
        snprintf(name, REQUEST_NAME, "%s", request->person->name);
        return;
    }
    if (getpwuid_r(request->user, &entry, text, sizeof text, &found) == 0 && found)
        snprintf(user, sizeof user, "%s", found->pw_name);
    else
        snprintf(user, sizeof user, "user %ju", (uintmax_t)request->user);
    const bool other = *login && strcmp(login, user) != 0;
    snprintf(name, REQUEST_NAME, other ? "%s (%.*s)" : "%s", user, USER_NAME - 4, login);
}

static int
handle_complete(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_complete *message = &request->message.complete;
    const struct queue_complete complete = {message->series_uid, message->accept_missing != 0, answer->by};
    log_info("control.complete", LOG_STR("series", message->series_uid),
             LOG_INT("accept_missing", complete.accept_missing), LOG_STR("by", answer->by));
    int error = queue_request_complete(core->queue, &complete, clock_unix_ms());
    if (error)
        return error;
    inspections_check(core->inspections);
    answer_set(answer, "series %s is taken as %s", message->series_uid,
               complete.accept_missing ? "complete without the missing instances" : "complete");
    return 0;
}

static int
handle_submit(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_submit *message = &request->message.submit;
    log_info("control.submit", LOG_STR("series", message->series_uid), LOG_STR("pipeline", message->pipeline),
             LOG_STR("stacks", message->stacks), LOG_INT("again", message->again), LOG_INT("dry_run", message->dry_run),
             LOG_STR("by", answer->by));
    return submit_series(core, message, answer->by, &answer->body);
}

static int
handle_hold(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_hold *message = &request->message.hold;
    const bool holds = request->type == PROTO_HOLD;
    log_info(holds ? "control.hold" : "control.release", LOG_STR("kind", message->kind), LOG_STR("name", message->name),
             LOG_STR("by", answer->by));
    const struct queue_hold hold = {message->kind, message->name, answer->by, message->reason};
    const bool pipeline = strcmp(message->kind, "pipeline") == 0;
    const bool destination = strcmp(message->kind, "destination") == 0;
    if (holds && ((pipeline && !conf_find_pipeline(core->conf, message->name)) ||
                  (destination && !conf_find_destination(core->conf, message->name)))) {
        answer_set(answer, "%s: the configuration has no %s %s",
                   code_name(pipeline ? CODE_NO_SUCH_PIPELINE : CODE_NO_SUCH_DESTINATION), message->kind,
                   message->name);
        return -EINVAL;
    }
    int error = (holds ? queue_hold : queue_release)(core->queue, &hold, clock_unix_ms());
    if (error)
        return error;
    due_now(&core->jobs_due);
    due_now(&core->deliveries_due);
    const size_t running = jobs_running(core->jobs);
    if (strcmp(message->kind, "jobs") != 0)
        answer_set(answer, "%s%s%s is %s", message->kind, *message->name ? " " : "", message->name,
                   holds ? "held" : "released");
    else if (holds)
        answer_set(answer,
                   "no job starts until noctule resume; %zu running job%s will finish; receiving and sending continue",
                   running, running == 1 ? "" : "s");
    else
        answer_set(answer, "jobs start again");
    return 0;
}

static int
handle_priority(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_priority *message = &request->message.priority;
    log_info("control.priority", LOG_INT("job", message->job), LOG_INT("priority", message->priority),
             LOG_STR("by", answer->by));
    if (message->priority < CONF_MIN_PRIORITY || message->priority > CONF_MAX_PRIORITY) {
        answer_set(answer, "a priority must be from %d to %d", CONF_MIN_PRIORITY, CONF_MAX_PRIORITY);
        return -EINVAL;
    }
    int error = queue_set_priority(core->queue, message->job, (int32_t)message->priority, answer->by, clock_unix_ms());
    if (error)
        return error;
    due_now(&core->jobs_due);
    answer_set(answer, "job %" PRId64 " has priority %" PRId64, message->job, message->priority);
    return 0;
}

/* A decision of the web UI takes effect later, so that it can be undone. */
static int
review_decide(struct core *core, const struct control_request *request, int64_t job, const char *reason,
              struct answer *answer)
{
    const bool accepts = request->type == PROTO_ACCEPT;
    const int64_t undo_ms = (int64_t)(1000 * core->conf->page.undo_seconds), now_ms = clock_unix_ms();
    int error = accepts ? reviews_check_pipeline(core, job, answer->message, sizeof answer->message) : 0;
    if (!error)
        error = queue_decide(core->queue, job, accepts, request->person->name, reason, now_ms + undo_ms, now_ms);
    if (!error)
        answer_set(answer, "job %" PRId64 " is %s; this can be undone for %g s", job, accepts ? "accepted" : "rejected",
                   core->conf->page.undo_seconds);
    return error;
}

static bool
review_waits(const struct core *core, const struct control_request *request)
{
    return request->person && core->conf->page.undo_seconds > 0;
}

/* Releases a delivery under review, or rejects it for a reason. A rejected one can be sent again, a released one not be
 * called back: both are final. */
static int
delivery_decide(struct core *core, int64_t id, const char *seen, const char *reason, struct answer *answer)
{
    const int64_t now_ms = clock_unix_ms();
    const int error = reason ? queue_reject_delivery(core->queue, id, seen, reason, answer->by, now_ms)
                             : queue_accept_delivery(core->queue, id, seen, answer->by, now_ms);
    if (error)
        return error;
    due_now(&core->deliveries_due);
    answer_set(answer, "delivery %" PRId64 " is %s", id, reason ? "rejected; its files are not sent" : "released");
    return 0;
}

static int
handle_accept(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_accept *message = &request->message.accept;
    log_info("control.accept", LOG_INT("job", message->job), LOG_INT("delivery", message->delivery),
             LOG_STR("by", answer->by));
    const char *seen = request->person ? request->person->seen : "";
    if (message->delivery)
        return delivery_decide(core, message->delivery, seen, NULL, answer);
    const int error = queue_check_review(core->queue, message->job, seen);
    if (error)
        return error;
    return review_waits(core, request)
               ? review_decide(core, request, message->job, message->reason, answer)
               : reviews_accept(core, message->job, answer->by, answer->message, sizeof answer->message);
}

static int
handle_reject(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_reject *message = &request->message.reject;
    const char *seen = request->person ? request->person->seen : "";
    log_info("control.reject", LOG_INT("job", message->job), LOG_INT("delivery", message->delivery),
             LOG_STR("by", answer->by));
    if (!*message->reason) {
        answer_set(answer, "a rejection must have a reason");
        return -EINVAL;
    }
    if (message->delivery)
        return delivery_decide(core, message->delivery, seen, message->reason, answer);
    int error = queue_check_review(core->queue, message->job, seen);
    if (!error && review_waits(core, request))
        return review_decide(core, request, message->job, message->reason, answer);
    if (!error)
        error = queue_reject_job(core->queue, message->job, message->reason, answer->by, clock_unix_ms());
    if (!error)
        answer_set(answer, "job %" PRId64 " is rejected; its results are not delivered", message->job);
    return error;
}

static int
handle_undo(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_undo *message = &request->message.undo;
    log_info("control.undo", LOG_INT("job", message->job), LOG_STR("by", answer->by));
    const int error = queue_undo_decision(core->queue, message->job, answer->by, clock_unix_ms());
    if (!error)
        answer_set(answer, "job %" PRId64 " is under review again", message->job);
    return error;
}

static int
handle_resend(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_resend *resend = &request->message.resend;
    const struct queue_resend which = {
        .delivery_id = resend->delivery,
        .job_id = resend->job,
        .destination = *resend->destination ? resend->destination : NULL,
        .not_arrived = resend->not_arrived != 0,
    };
    int64_t count = 0;
    log_info("control.resend", LOG_INT("delivery", resend->delivery), LOG_INT("job", resend->job),
             LOG_STR("destination", resend->destination));
    int error = queue_resend(core->queue, &which, clock_unix_ms(), &count);
    if (error)
        return error;
    deliveries_retry_now(core->deliveries);
    answer_set(answer, count == 1 ? "%" PRId64 " delivery is sent again" : "%" PRId64 " deliveries are sent again",
               count);
    return 0;
}

static int
purge_describe(const struct message_purge *message, const struct queue_purged *purged, int error, const char *refusal,
               struct answer *answer)
{
    struct text_stream text;
    if (!message->json || error == -ENOENT)
        return 0;
    if (text_open(&text))
        return -ENOMEM;
    struct json json = {.out = text.out};
    json_begin_object(&json, NULL);
    json_string(&json, "series_uid", message->series_uid);
    json_integer(&json, "images", purged->images);
    json_integer(&json, "objects", purged->objects);
    json_integer(&json, "results", purged->results);
    json_integer(&json, "quarantined", purged->quarantined);
    json_integer(&json, "bytes", purged->bytes);
    json_integer(&json, "undelivered", purged->undelivered);
    json_integer(&json, "originals", purged->originals);
    json_boolean(&json, "removed", !error && !message->dry_run);
    json_string(&json, "refused", error ? refusal : "");
    json_end_object(&json);
    int rc = text_close(&text);
    answer->body = text.bytes;
    return rc;
}

/* Commits the removal marks and moves the marked files away, before the operator gets the reply. */
static int
purge_now(struct core *core)
{
    int error = batch_commit(core->batch);
    if (!error)
        error = retention_set_aside_all(core);
    retention_sweep_now(core->retention);
    return error;
}

/* Formats "1 image", "7 images". */
static const char *
purge_format_count(int64_t count, const char *noun, char text[48])
{
    snprintf(text, 48, "%" PRId64 " %s%s", count, noun, count == 1 ? "" : "s");
    return text;
}

static int
handle_purge(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_purge *message = &request->message.purge;
    log_info("control.purge", LOG_STR("series", message->series_uid), LOG_INT("undelivered", message->undelivered),
             LOG_INT("dry_run", message->dry_run), LOG_STR("by", answer->by));
    const struct queue_purge purge = {message->series_uid, message->before, message->dry_run != 0,
                                      message->undelivered != 0, answer->by};
    struct queue_purged purged;
    int error = queue_purge(core->queue, &purge, clock_unix_ms(), &purged);
    const int described = purge_describe(message, &purged, error, queue_reason(core->queue), answer);
    if (!error)
        error = described;
    if (!error && !message->dry_run)
        error = purge_now(core);
    if (!error) {
        const char *done = message->dry_run ? "would be removed" : "removed";
        char stay[120] = "", counts[4][48];
        if (purged.originals > 0)
            snprintf(stay, sizeof stay, "; kept in their inbox and not received again: %s",
                     purge_format_count(purged.originals, "original", counts[0]));
        if (!*message->series_uid)
            answer_set(answer, "%s in quarantine without a known series: %s",
                       purge_format_count(purged.quarantined, "file", counts[0]), done);
        else
            answer_set(answer, "series %s: %s, %s, %s, %s in quarantine, %.1f MiB: %s%s", message->series_uid,
                       purge_format_count(purged.images, "image", counts[0]),
                       purge_format_count(purged.objects, "object", counts[1]),
                       purge_format_count(purged.results, "result", counts[2]),
                       purge_format_count(purged.quarantined, "file", counts[3]), (double)purged.bytes / (1 << 20),
                       done, stay);
    }
    return error;
}

static int
handle_pull(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_pull *message = &request->message.pull;
    log_info("control.pull", LOG_STR("source", message->source), LOG_STR("by", answer->by));
    return pull_order(core, message, answer->by, answer->message, sizeof answer->message);
}

static int
handle_cancel_pull(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_cancel_pull *message = &request->message.cancel_pull;
    log_info("control.cancel_pull", LOG_INT("batch", message->batch), LOG_STR("by", answer->by));
    return pulls_cancel(core->pulls, message->batch, answer->by, answer->message, sizeof answer->message);
}

/* The reply waits until the ports are open, unless the configuration is rejected. */
static int
handle_reload(struct core *core, const struct control_request *request, struct answer *answer)
{
    struct error error = {0};
    (void)request;
    log_info("control.reload", LOG_STR("by", answer->by));
    if (core->draining) {
        answer_set(answer, "noctuled is stopping");
        return -ECANCELED;
    }
    const int rc = core->reload(core, answer->by, &error);
    if (rc)
        answer_set(answer, "%s: %.400s; the previous configuration stays in force", code_name(CODE_CONFIG_REFUSED),
                   error.message);
    return rc;
}

void
requests_end_reload(struct core *core)
{
    while (core->reloading) {
        struct answer *answer = core->reloading;
        core->reloading = answer->next;
        const char *problem = core->reception.problem;
        answer->status = *problem ? -EINPROGRESS : 0;
        answer_set(answer, "the configuration is loaded%s%.400s", *problem ? ", but " : "", problem);
        answer_send(answer, 0);
    }
}

static int
handle_ack(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_ack *message = &request->message.ack;
    struct error error = {0};
    log_info("control.ack", LOG_STR("alert", message->alert), LOG_INT("undo", message->undo),
             LOG_STR("by", answer->by));
    const int rc = alert_daemon_acknowledge(core, message, answer->by, &error);
    if (rc)
        answer_set(answer, "%s", error.message);
    else
        answer_set(answer, message->undo ? "%s is no longer acknowledged" : "%s is acknowledged", message->alert);
    return rc;
}

static int
handle_validated(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_validated *message = &request->message.validated;
    const int rc = queue_add_validation(core->queue, message->record, answer->by, clock_unix_ms());
    log_info("control.validated", LOG_STR("by", answer->by), LOG_INT("error", rc));
    answer_set(answer, rc ? "the validation is not stored: %s" : "the validation is stored", strerror(-rc));
    return rc;
}

static int
handle_quarantine(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_quarantine *message = &request->message.quarantine;
    const bool forgets = strcmp(message->action, "forget") == 0;
    struct queue_released file;
    bool stays = false;
    int error;
    log_info("control.quarantine", LOG_STR("action", message->action), LOG_INT("file", message->number),
             LOG_STR("by", answer->by));
    if (!forgets && strcmp(message->action, "release") != 0)
        return -EINVAL;
    if (forgets) {
        error = queue_find_released(core->queue, message->number, &file);
        stays = !error && *file.original_path == '/' && access(file.original_path, F_OK) == 0;
        queue_released_clear(&file);
        if (!error)
            error = queue_forget_quarantine(core->queue, message->number, answer->by, clock_unix_ms());
    } else {
        error = quarantine_release_link(core, message->number, answer->by);
    }
    if (error)
        return error;
    answer_set(answer, "file %" PRId64 " is %s%s", message->number, forgets ? "forgotten" : "received again",
               stays ? "; its original is still in the inbox: delete it, or it is quarantined again at the next start"
                     : "");
    answer->moves_files = true;
    return 0;
}

/* Only the web UI sends it: a filter has a person. */
static int
handle_filter(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct message_decide *decide = &request->message.decide;
    const char *subject;
    char list[DECISION_LIST];
    const bool saves = strcmp(decide->action, "save") == 0;
    const char *name = request->person && decision_find(decide->action, decide->subject, &subject)
                           ? decision_split_filter(subject, list)
                           : NULL;
    if (!name || (saves && !decision_is_filter(decide->reason))) {
        answer_set(answer,
                   "a saved filter has a list (work, deliveries), a name of at most %d bytes, and a query of at "
                   "most %d without `text`",
                   DECISION_FILTER_NAME, DECISION_REASON);
        return -EINVAL;
    }
    const struct queue_filter filter = {request->person->name, list, name, decide->reason};
    const int error =
        saves ? queue_save_filter(core->queue, &filter, clock_unix_ms()) : queue_delete_filter(core->queue, &filter);
    if (!error)
        answer_set(answer, "the filter is %s", saves ? "saved" : "deleted");
    return error;
}

/* Stores the person only (request_audit): the command searches the database. */
static int
handle_identity(struct core *core, const struct control_request *request, struct answer *answer)
{
    (void)core;
    (void)request;
    answer_set(answer, "the audit notes this request");
    return 0;
}

static int
handle_ping(struct core *core, const struct control_request *request, struct answer *answer)
{
    (void)request;
    struct alerts alerts = {0};
    config_watch_check(&core->config_watch);
    alert_daemon_add(core, &alerts);
    answer->body = alerts_to_lines(&alerts);
    alerts_clear(&alerts);
    const struct receiver_state *reception = &core->reception;
    if (reception->awaited)
        answer_set(answer, "noctuled runs and loads its configuration");
    else if (reception->open)
        answer_set(answer, "noctuled " NOCTULE_VERSION);
    else
        answer_set(answer, "noctuled runs, but receives no data: %.400s",
                   *reception->problem ? reception->problem : "it is starting");
    return reception->open && !reception->awaited ? 0 : -EINPROGRESS;
}

#define LOGIN(message_) offsetof(union message_any, message_.login)

/* The requests of operators. A request that changes data is answered once the change is on disk, a reload once its
 * ports are open. */
static const struct request {
    enum proto_type type;
    bool changes;
    size_t login; /* offset of the login name in the message; 0: it has none */
    int (*handle)(struct core *core, const struct control_request *request, struct answer *answer);
} requests[] = {
    {PROTO_RETRY, true, 0, handle_retry},
    {PROTO_CANCEL, true, 0, handle_cancel},
    {PROTO_COMPLETE, true, LOGIN(complete), handle_complete},
    {PROTO_RESEND, true, 0, handle_resend},
    {PROTO_SUBMIT, true, LOGIN(submit), handle_submit},
    {PROTO_PURGE, true, LOGIN(purge), handle_purge},
    {PROTO_HOLD, true, LOGIN(hold), handle_hold},
    {PROTO_RELEASE, true, LOGIN(hold), handle_hold},
    {PROTO_PRIORITY, true, LOGIN(priority), handle_priority},
    {PROTO_ACCEPT, true, LOGIN(accept), handle_accept},
    {PROTO_REJECT, true, LOGIN(reject), handle_reject},
    {PROTO_UNDO, true, LOGIN(undo), handle_undo},
    {PROTO_PULL, true, LOGIN(pull), handle_pull},
    {PROTO_CANCEL_PULL, true, LOGIN(cancel_pull), handle_cancel_pull},
    {PROTO_ACK, true, LOGIN(ack), handle_ack},
    {PROTO_VALIDATED, true, LOGIN(validated), handle_validated},
    {PROTO_QUARANTINE, true, LOGIN(quarantine), handle_quarantine},
    {PROTO_IDENTITY, true, LOGIN(identity), handle_identity},
    {PROTO_DECIDE, true, 0, handle_filter},
    {PROTO_RELOAD_CONFIG, false, LOGIN(reload_config), handle_reload},
    {PROTO_PING, false, 0, handle_ping},
};

/* Fills an empty reply with the queue's reason, which is the most specific one. */
static void
request_explain(struct core *core, int error, struct answer *answer)
{
    const char *reason = queue_reason(core->queue);
    if (!*answer->message)
        answer_set(answer, "%s", reason && *reason ? reason : strerror(-error));
    if (core_is_transient(error))
        core_failed(core, error, "carry out a request");
}

/* A decision and its audit row must be stored together. */
static int
request_store_audit(struct core *core, const struct control_request *request, const struct answer *answer)
{
    const int error = request_audit(core, request, answer->by);
    crash_point("daemon_before_decision_commit");
    if (error)
        batch_abort(core->batch, error);
    return error || !answer->moves_files ? error : purge_now(core);
}

static void
request_refuse(struct core *core, struct control *control, int64_t client, int status)
{
    struct answer *answer = calloc(1, sizeof *answer);
    if (answer) {
        *answer = (struct answer){.core = core, .control = control, .client = client, .status = status};
        answer_send(answer, 0);
    } else if (control) {
        const struct message_answer refusal = {.status = status};
        control_answer(control, client, &refusal); /* the CLI prints the error number */
    }
}

void
request_handle(struct core *core, struct control *control, int64_t client, const struct control_request *message)
{
    const struct request *request = NULL;
    for (size_t i = 0; i < sizeof requests / sizeof *requests && !request; i++)
        request = requests[i].type == message->type ? &requests[i] : NULL;
    struct answer *answer = request ? calloc(1, sizeof *answer) : NULL;
    if (!answer) {
        request_refuse(core, control, client, request ? -ENOMEM : -ENOSYS);
        return;
    }
    *answer = (struct answer){.core = core, .control = control, .client = client};
    if (request->changes && !core_change(core)) {
        answer_send(answer, -EIO);
        return;
    }
    if (request->changes || request->login) {
        const char *const *login = (const void *)((const char *)&message->message + request->login);
        request_name(message, request->login ? *login : "", answer->by);
    }
    answer->status = request->handle(core, message, answer);
    if (!answer->status && request->changes)
        answer->status = request_store_audit(core, message, answer);
    if (answer->status && !answer->body)
        request_explain(core, answer->status, answer);
    const bool is_reload = request->type == PROTO_RELOAD_CONFIG;
    if (is_reload && !answer->status) {
        answer->next = core->reloading;
        core->reloading = answer;
    } else if (request->changes || is_reload) { /* a refused reload has a row, too */
        batch_on_commit(core->batch, answer_send, answer);
    } else {
        answer_send(answer, 0);
    }
}
