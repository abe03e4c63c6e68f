#include "service/daemon/jobs/job_attempt.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/attempt.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/slurm/slurm_masks.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct job_attempt *
job_attempt_new(struct attempts *attempts, int64_t job, int32_t number)
{
    struct job_attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return NULL;
    attempt_add(attempts, &attempt->base, job);
    attempt->number = number;
    job_attempt_set_reason(attempt, CODE_NONE, "%s", "");
    return attempt;
}

static void
job_attempt_free(struct attempt *base)
{
    struct job_attempt *attempt = (struct job_attempt *)base;
    job_attempt_clear_report(attempt);
    free(attempt);
}

void
job_attempt_set_reason(struct job_attempt *attempt, enum code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(attempt->own_message, sizeof attempt->own_message, format, arguments);
    va_end(arguments);
    attempt->code = code;
    attempt->message = attempt->own_message;
    attempt->file_a = attempt->file_b = "";
}

void
job_attempt_end(struct job_attempt *attempt, enum job_end end, bool last_chance)
{
    static const char *const names[] = {
        [JOB_END_DONE] = "DONE",         [JOB_END_EMPTY] = "EMPTY",         [JOB_END_REVIEW] = "REVIEW",
        [JOB_END_RETRY] = "RETRY",       [JOB_END_REJECTED] = "REJECTED",   [JOB_END_CRASHED] = "CRASHED",
        [JOB_END_RETURNED] = "RETURNED", [JOB_END_CANCELLED] = "CANCELLED",
    };
    attempt_end(&attempt->base);
    attempt->end = attempt->cancelled ? JOB_END_CANCELLED : end;
    attempt->last_chance = last_chance;
    log_info("job.ended", LOG_INT("job", attempt->base.id), LOG_INT("attempt", attempt->number),
             LOG_STR("end", names[attempt->end]), LOG_STR("code", code_name(attempt->code)),
             LOG_NUM("seconds", attempt->figures.total_seconds), LOG_STR("message", attempt->message));
    due_now(&attempt->base.all->core->jobs_due);
}

double
job_attempt_deadline(const struct job_attempt *attempt)
{
    return attempt->deadline_seconds > 0 ? attempt->deadline_seconds
                                         : attempt->base.all->core->conf->jobs.deadline_seconds;
}

void
job_attempt_return(struct job_attempt *attempt, const char *why)
{
    job_attempt_set_reason(attempt, CODE_RETURNED, "%s", why);
    job_attempt_end(attempt, JOB_END_RETURNED, true);
}

static int
job_attempt_fail(struct attempt *base, enum code code, const char *message)
{
    return queue_fail_job(base->all->core->queue, base->id, code, message, "", "", clock_unix_ms());
}

static int
job_attempt_write_retry(const struct job_attempt *attempt)
{
    const struct core *core = attempt->base.all->core;
    const struct conf_jobs *settings = &core->conf->jobs;
    int64_t job = attempt->base.id, now_ms = clock_unix_ms();
    if (attempt->number >= settings->max_attempts && attempt->last_chance)
        return queue_fail_job(core->queue, job, attempt->code, attempt->message, attempt->file_a, attempt->file_b,
                              now_ms);
    int64_t wait_ms = backoff_ms(settings->retry_seconds, settings->retry_max_seconds, attempt->number, job);
    return queue_delay_job(core->queue, job, now_ms + wait_ms, attempt->end == JOB_END_CRASHED, attempt->code,
                           attempt->message, now_ms);
}

static int
job_attempt_write_finished(const struct job_attempt *attempt, enum queue_job_state state, size_t result_count)
{
    struct core *core = attempt->base.all->core;
    struct queue_figures figures = attempt->figures;
    const int rc = slurm_masks_take(core, attempt->base.id);
    if (rc)
        return rc;
    figures.features = attempt->features;
    figures.feature_count = attempt->feature_count;
    figures.histograms = attempt->histograms;
    figures.histogram_count = attempt->histogram_count;
    figures.segments = attempt->segments;
    figures.segment_count = attempt->segment_count;
    figures.breaches = attempt->breaches;
    figures.breach_count = attempt->breach_count;
    const struct queue_finish finish = {state,        &figures,      attempt->results,
                                        result_count, attempt->code, attempt->message};
    return queue_finish_job(core->queue, attempt->base.id, &finish, clock_unix_ms());
}

/* Adds deliveries of the results to the destinations that take them. */
static int
job_attempt_write_done(const struct job_attempt *attempt)
{
    struct routes routes;
    int rc = routes_find(attempt->base.all->core, attempt->base.id, &routes);
    for (size_t i = 0; i < attempt->result_count && !rc; i++) {
        struct queue_result *result = &attempt->results[i];
        result->destinations = routes.destinations;
        result->takes = routes.takes;
        result->destination_count = routes.count;
    }
    if (!rc)
        rc = job_attempt_write_finished(attempt, QUEUE_DONE, attempt->result_count);
    routes_free(&routes);
    return rc;
}

static int
job_attempt_write(struct attempt *base)
{
    const struct job_attempt *attempt = (const struct job_attempt *)base;
    struct queue *queue = base->all->core->queue;
    int rc = -EINVAL;
    switch (attempt->end) {
    case JOB_END_DONE:
        rc = job_attempt_write_done(attempt);
        break;
    case JOB_END_EMPTY:
        rc = job_attempt_write_finished(attempt, QUEUE_EMPTY, 0);
        break;
    case JOB_END_REVIEW:
        rc = job_attempt_write_finished(attempt, QUEUE_REVIEW, attempt->result_count);
        break;
    case JOB_END_REJECTED:
        rc = queue_fail_job(queue, base->id, attempt->code, attempt->message, attempt->file_a, attempt->file_b,
                            clock_unix_ms());
        break;
    case JOB_END_RETRY:
    case JOB_END_CRASHED:
        rc = job_attempt_write_retry(attempt);
        break;
    case JOB_END_RETURNED:
        rc = queue_return_job(queue, base->id, attempt->message, clock_unix_ms());
        break;
    case JOB_END_CANCELLED:
        rc = 0;
        break;
    }
    if (!rc)
        crash_point("daemon_after_done_before_commit");
    return rc;
}

static void
job_attempt_recorded(struct attempt *base)
{
    const struct job_attempt *attempt = (const struct job_attempt *)base;
    struct core *core = base->all->core;
    crash_point("daemon_after_done_after_commit");
    spool_sweep_job(core->root, base->id);
    if (attempt->end == JOB_END_CANCELLED || base->superseded)
        spool_remove_output(core->root, base->id);
    if (attempt->recorded)
        attempt->recorded(attempt);
    due_now(&core->jobs_due); /* the attempt blocked the job until here; it may be READY */
    due_now(&core->deliveries_due);
}

const struct attempt_type job_attempt_type = {
    .subject = "job",
    .child = "worker",
    .action = "record how a job ended",
    .write = job_attempt_write,
    .fail = job_attempt_fail,
    .recorded = job_attempt_recorded,
    .free = job_attempt_free,
};
