/* outcome.c - see outcome.h. */
#include "service/daemon/jobs/outcome_private.h"

#include "service/common/clock.h"
#include "service/common/crash_point.h"
#include "service/common/log.h"
#include "service/daemon/delivery/routes.h"
#include "service/daemon/jobs/backoff.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct outcomes {
    struct core *core;
    struct outcome *first; /* ended, not yet recorded */
};

const char *
outcome_end_name(enum outcome_end end)
{
    switch (end) {
    case OUTCOME_DONE:
        return "DONE";
    case OUTCOME_EMPTY:
        return "EMPTY";
    case OUTCOME_RETRY:
        return "RETRY";
    case OUTCOME_REJECTED:
        return "REJECTED";
    case OUTCOME_CRASHED:
        return "CRASHED";
    case OUTCOME_RETURNED:
        return "RETURNED";
    case OUTCOME_CANCELLED:
        return "CANCELLED";
    }
    return "UNKNOWN";
}

/* -------------------------------------------------------------------------- one outcome ---- */

struct outcome *
outcome_new(struct outcomes *outcomes, int64_t job, int32_t attempts)
{
    struct outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome)
        return NULL;
    outcome->outcomes = outcomes;
    outcome->job = job;
    outcome->attempts = attempts;
    outcome_blame(outcome, "", "%s", "");
    return outcome;
}

void
outcome_free(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->result_count; i++)
        free(outcome->paths[i]);
    free(outcome->paths);
    free(outcome->results);
    free(outcome->features);
    free(outcome->histograms);
    outcome_free_frames(outcome);
    free(outcome);
}

int64_t
outcome_job(const struct outcome *outcome)
{
    return outcome->job;
}

const char *
outcome_code(const struct outcome *outcome)
{
    return outcome->code;
}

int32_t
outcome_attempts(const struct outcome *outcome)
{
    return outcome->attempts;
}

void
outcome_blame(struct outcome *outcome, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome->own_sentence, sizeof outcome->own_sentence, format, arguments);
    va_end(arguments);
    outcome->code = code;
    outcome->sentence = outcome->own_sentence;
    outcome->file_a = outcome->file_b = "";
}

void
outcome_end(struct outcome *outcome, enum outcome_end end, bool last_chance)
{
    outcome->end = end;
    outcome->last_chance = last_chance;
    outcome->next = outcome->outcomes->first;
    outcome->outcomes->first = outcome;
    log_info("job.ended", LOG_INT("job", outcome->job), LOG_INT("attempt", outcome->attempts),
             LOG_STR("end", outcome_end_name(end)), LOG_STR("code", outcome->code),
             LOG_NUM("seconds", outcome->figures.total_seconds),
             LOG_STR("sentence", outcome->sentence));
}

/* ---------------------------------------------------------------------------- recording ---- */

static void
remove_outcome(struct outcome *outcome)
{
    struct outcome **link = &outcome->outcomes->first;
    while (*link != outcome)
        link = &(*link)->next;
    *link = outcome->next;
    outcome_free(outcome);
}

static void
on_recorded(void *context, int status)
{
    struct outcome *outcome = context;
    struct core *core = outcome->outcomes->core;
    outcome->in_batch = false;
    if (status)
        return;
    crash_point("daemon_after_done_after_commit");
    spool_sweep_job(core->root, outcome->job);
    if (outcome->end == OUTCOME_CANCELLED || outcome->moot)
        spool_remove_output(core->root, outcome->job);
    remove_outcome(outcome);
    due_now(&core->jobs_due); /* it was held back until here, and may be READY */
    due_now(&core->deliveries_due);
}

static int
record_retry(const struct outcome *outcome)
{
    const struct core *core = outcome->outcomes->core;
    const struct conf_jobs *settings = &core->conf->jobs;
    int64_t now_ms = clock_unix_ms();
    if (outcome->attempts >= settings->max_attempts && outcome->last_chance)
        return queue_fail_job(core->queue, outcome->job, outcome->code, outcome->sentence,
                              outcome->file_a, outcome->file_b, now_ms);
    int64_t wait_ms = backoff_ms(settings->retry_seconds, settings->retry_max_seconds,
                                 outcome->attempts, outcome->job);
    return queue_delay_job(core->queue, outcome->job, now_ms + wait_ms,
                           outcome->end == OUTCOME_CRASHED, outcome->code, outcome->sentence,
                           now_ms);
}

static struct queue_figures
with_features(const struct outcome *outcome)
{
    struct queue_figures figures = outcome->figures;
    figures.features = outcome->features;
    figures.feature_count = outcome->feature_count;
    figures.histograms = outcome->histograms;
    figures.histogram_count = outcome->histogram_count;
    return figures;
}

/* With the deliveries of all results that are DICOM objects. */
static int
record_done(const struct outcome *outcome)
{
    const struct queue_figures figures = with_features(outcome);
    struct core *core = outcome->outcomes->core;
    struct routes routes;
    int error = routes_find(core, outcome->job, &routes);
    for (size_t i = 0; i < outcome->result_count && !error; i++) {
        struct queue_result *result = &outcome->results[i];
        bool is_object = *result->sop_instance_uid != 0;
        result->destinations = is_object ? routes.destinations : NULL;
        result->destination_count = is_object ? routes.count : 0;
    }
    if (!error)
        error = queue_finish_job(core->queue, outcome->job, QUEUE_DONE, &figures, outcome->results,
                                 outcome->result_count, outcome->code, outcome->sentence,
                                 clock_unix_ms());
    routes_free(&routes);
    return error;
}

static int
record_empty(const struct outcome *outcome)
{
    const struct queue_figures figures = with_features(outcome);
    return queue_finish_job(outcome->outcomes->core->queue, outcome->job, QUEUE_EMPTY, &figures,
                            NULL, 0, outcome->code, outcome->sentence, clock_unix_ms());
}

static int
record_as_ended(const struct outcome *outcome)
{
    struct queue *queue = outcome->outcomes->core->queue;
    switch (outcome->end) {
    case OUTCOME_DONE:
        return record_done(outcome);
    case OUTCOME_EMPTY:
        return record_empty(outcome);
    case OUTCOME_REJECTED:
        return queue_fail_job(queue, outcome->job, outcome->code, outcome->sentence,
                              outcome->file_a, outcome->file_b, clock_unix_ms());
    case OUTCOME_RETRY:
    case OUTCOME_CRASHED:
        return record_retry(outcome);
    case OUTCOME_RETURNED:
        return queue_return_job(queue, outcome->job, outcome->sentence, clock_unix_ms());
    case OUTCOME_CANCELLED:
        return 0;
    }
    return -EINVAL;
}

/* What the database will never take must not be tried for ever: the job fails instead. */
static int
record_refused(const struct outcome *outcome)
{
    struct queue *queue = outcome->outcomes->core->queue;
    char sentence[2 * OUTCOME_SENTENCE];
    snprintf(sentence, sizeof sentence, "what the worker said cannot be recorded: %s",
             queue_reason(queue));
    log_error("job.record_failed", LOG_INT("job", outcome->job), LOG_STR("sentence", sentence));
    return queue_fail_job(queue, outcome->job, "RECORD_FAILED", sentence, "", "", clock_unix_ms());
}

/* 0, or -errno: nothing of it is written, and it is tried again. */
static int
record(struct outcome *outcome)
{
    int error = record_as_ended(outcome);
    outcome->moot = error == -EAGAIN || error == -ENOENT; /* cancelled in the same breath */
    if (!error || outcome->moot)
        return 0;
    if (!core_is_trouble(error))
        error = record_refused(outcome);
    /* A row that takes neither is put right by the next start. */
    return core_is_trouble(error) ? error : 0;
}

static int
record_in_batch(struct outcome *outcome)
{
    struct core *core = outcome->outcomes->core;
    int error = record(outcome);
    if (error)
        return error;
    crash_point("daemon_after_done_before_commit");
    outcome->in_batch = true;
    error = batch_on_commit(core->batch, on_recorded, outcome);
    if (error) {
        outcome->in_batch = false;
        batch_abort(core->batch, error);
    }
    return error;
}

static struct outcome *
first_unrecorded(const struct outcomes *outcomes)
{
    struct outcome *outcome = outcomes->first;
    while (outcome && outcome->in_batch)
        outcome = outcome->next;
    return outcome;
}

void
outcomes_record(struct outcomes *outcomes)
{
    /* Looked for anew each time: joining the batch may commit a full one, which frees outcomes. */
    while (first_unrecorded(outcomes)) {
        if (!core_change(outcomes->core))
            return;
        int error = record_in_batch(first_unrecorded(outcomes));
        if (error) {
            core_failed(outcomes->core, error, "record how a job ended");
            return;
        }
    }
}

/* ------------------------------------------------------------------------------ the list --- */

bool
outcomes_hold(const struct outcomes *outcomes, int64_t job)
{
    const struct outcome *outcome = outcomes->first;
    while (outcome && outcome->job != job)
        outcome = outcome->next;
    return outcome != NULL;
}

size_t
outcomes_count(const struct outcomes *outcomes)
{
    size_t count = 0;
    for (const struct outcome *outcome = outcomes->first; outcome; outcome = outcome->next)
        count++;
    return count;
}

int
outcomes_open(struct core *core, struct outcomes **out)
{
    struct outcomes *outcomes = calloc(1, sizeof *outcomes);
    if (!outcomes)
        return -ENOMEM;
    outcomes->core = core;
    *out = outcomes;
    return 0;
}

void
outcomes_close(struct outcomes *outcomes)
{
    if (!outcomes)
        return;
    struct outcome *next;
    for (struct outcome *outcome = outcomes->first; outcome; outcome = next) {
        next = outcome->next;
        outcome_free(outcome);
    }
    free(outcomes);
}
