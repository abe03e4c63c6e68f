/*
 * jobs.c - see jobs.h.
 *
 * An attempt is created with its job's RUNNING row. When that is committed, the executor runs it. job_attempt.c records
 * the outcome.
 */
#include "service/daemon/jobs/jobs.h"

#include "base/test_hook.h"
#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/jobs/job_file.h"
#include "service/common/log.h"
#include "service/common/trust.h"
#include "service/daemon/jobs/awaited.h"
#include "service/daemon/jobs/job_inputs.h"
#include "service/daemon/programs/program_plan.h"
#include "service/daemon/programs/programs.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jobs {
    struct core *core;
    struct executor *const *executors; /* EXECUTOR_COUNT */
    struct attempts attempts;
    bool drained; /* jobs are paused, no job runs, and this was reported */
};

/* ----------------------------------------------------------------------------- starting ---- */

static void
jobs_run(void *context, int status)
{
    struct job_attempt *attempt = context;
    if (attempt->base.ended)
        return; /* the worker ended meanwhile */
    if (status) {
        attempt_drop(&attempt->base);
        return;
    }
    crash_point("daemon_after_running_before_run");
    attempt->started = attempt->executor->ops->start(attempt->executor, attempt) == 0;
    if (attempt->started)
        log_info("job.started", LOG_INT("job", attempt->base.id), LOG_STR("executor", attempt->executor->name),
                 LOG_INT("worker", attempt->place.worker), LOG_INT("lane", attempt->place.slot),
                 LOG_INT("attempt", attempt->number));
    else
        job_attempt_return(attempt, "the job could not be sent to the worker");
}

/* Adds the object with corrected masks as the last one. */
static int
jobs_add_correction(const struct core *core, const struct queue_job *job, struct job_spec *spec)
{
    char *path = core_path(core, job->correction);
    char **grown = reallocarray(spec->objects, spec->object_count + 1, sizeof *grown);
    if (grown)
        spec->objects = grown;
    if (!grown || !path) {
        free(path);
        return -ENOMEM;
    }
    size_t kept = 0; /* it may be input, too */
    for (size_t i = 0; i < spec->object_count; i++) {
        if (strcmp(grown[i], path) != 0)
            grown[kept++] = grown[i];
        else
            free(grown[i]);
    }
    grown[kept] = path;
    spec->object_count = kept + 1;
    spec->corrects = job->corrects;
    return 0;
}

/* Sets whether an earlier result was made with the settings that have this digest, and by the same programs. */
static int
jobs_prior_is_same(const struct queue_prior *prior, const char *digest, bool *same)
{
    char theirs[TRUST_DIGEST] = "";
    struct conf_pipeline *earlier = NULL;
    int rc = 0;
    if (conf_pipeline_from_text(prior->settings, &earlier, NULL) == 0)
        rc = trust_digest(earlier, theirs);
    conf_pipeline_free(earlier);
    *same = prior->same_programs && strcmp(digest, theirs) == 0;
    return rc;
}

/* Adds the values of a segment that has a Tracking UID. */
static int
jobs_add_tracked_values(const struct queue_tracked *tracked, bool same, const struct queue_prior_value *values,
                        size_t count, struct job_spec *spec)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(values[i].label, tracked->label) != 0)
            continue;
        char **grown = realloc(spec->tracked, (spec->tracked_count + 1) * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        spec->tracked = grown;
        if (asprintf(&grown[spec->tracked_count], "%s\t%" PRId64 "\t%d\t%s\t%s\t%s\t%s\t%.17g", tracked->uid,
                     tracked->prior.job, tracked->prior.days, same ? "same" : "other", tracked->label, values[i].name,
                     values[i].unit, values[i].value) < 0)
            return -ENOMEM;
        spec->tracked_count++;
    }
    return 0;
}

/* Returns whether a later study has the same Tracking UID. The job's own earlier result always counts, because its Tracking
 * UIDs show which of its segments are other findings. */
static bool
jobs_is_outdated(const struct queue_tracked *segments, size_t place, int64_t prior)
{
    if (segments[place].prior.job == prior)
        return false;
    for (size_t i = 0; i < place; i++)
        if (segments[i].prior.job != segments[place].prior.job && strcmp(segments[i].uid, segments[place].uid) == 0)
            return true;
    return false;
}

/* Adds the values of segments with a Tracking UID, of earlier studies of the patient. */
static int
jobs_add_tracked(const struct core *core, const struct queue_job *job, const char *digest, int64_t prior,
                 struct job_spec *spec)
{
    struct queue_tracked *segments = NULL;
    size_t count = 0;
    int rc = queue_tracked_segments(core->queue, job->id, &segments, &count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct queue_prior_value *values = NULL;
        size_t value_count = 0;
        bool same = false;
        if (jobs_is_outdated(segments, i, prior))
            continue;
        rc = jobs_prior_is_same(&segments[i].prior, digest, &same);
        if (rc == 0)
            rc = queue_prior_values(core->queue, segments[i].prior.job, &values, &value_count);
        if (rc == 0)
            rc = jobs_add_tracked_values(&segments[i], same, values, value_count, spec);
        queue_free_prior_values(values, value_count);
    }
    queue_free_tracked(segments, count);
    return rc;
}

/* Lets a job wait for its earlier study from an archive: -ENODATA. Sets whether the job runs without it. */
static int
jobs_await_prior(const struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline,
                 bool *missed)
{
    enum queue_prior_state state = QUEUE_PRIOR_READY;
    *missed = false;
    if (pipeline->changes != CONF_CHANGES_PULL)
        return 0;
    int rc = awaited_order_prior(core, job->id, pipeline);
    if (rc == 0)
        rc = queue_await_prior(core->queue, job->id, (int64_t)(1000 * pipeline->prior_wait_seconds), clock_unix_ms(),
                               &state);
    *missed = state == QUEUE_PRIOR_MISSED;
    return rc == 0 && state == QUEUE_PRIOR_AWAITED ? -ENODATA : rc;
}

/* Adds the values of the latest earlier study of the patient. */
static int
jobs_add_prior(const struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline,
               const char *digest, struct job_spec *spec)
{
    struct queue_prior prior = {0};
    struct queue_prior_value *values = NULL;
    size_t count = 0;
    bool same = false, missed;
    int rc = jobs_await_prior(core, job, pipeline, &missed);
    if (rc == 0)
        rc = queue_find_prior(core->queue, job->id, missed, &prior);
    if (rc == 0 && missed)
        return (spec->prior = strdup(JOB_PRIOR_MISSED)) ? 0 : -ENOMEM;
    if (rc == 0)
        rc = jobs_add_tracked(core, job, digest, prior.job, spec);
    if (rc == 0 && prior.job)
        rc = queue_prior_values(core->queue, prior.job, &values, &count);
    if (rc == 0 && prior.job)
        rc = jobs_prior_is_same(&prior, digest, &same);
    if (rc == 0 && prior.job) {
        spec->prior_values = calloc(count + 1, sizeof *spec->prior_values);
        if (!spec->prior_values || asprintf(&spec->prior, "%" PRId64 " %d %s %s", prior.job, prior.days,
                                            prior.study_date, same ? "same" : "other") < 0)
            rc = -ENOMEM;
    }
    for (size_t i = 0; rc == 0 && i < count; i++, spec->prior_value_count++)
        if (asprintf(&spec->prior_values[i], "%s\t%s\t%s\t%.17g", values[i].label, values[i].name, values[i].unit,
                     values[i].value) < 0)
            rc = -ENOMEM;
    queue_free_prior_values(values, count);
    queue_prior_clear(&prior);
    return rc;
}

/* Writes the job's file. Returns -ENODATA if it lacks a mask or its earlier study: then it waits, or has failed. `pipeline`:
 * the job's own, NULL: unreadable settings, which the worker reports. */
static int
jobs_write_file(struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline)
{
    struct job_spec spec = {.id = job->id,
                            .stack = job->stack,
                            .settings = job->settings,
                            .output = spool_output_folder(core->root, job->id),
                            .device_serial_number = core->conf->device_serial_number,
                            .slices = core->conf->page.slices ? JOB_SLICES_ALL : JOB_SLICES_REVIEW};
    char *file = spool_job_file(core->root, job->id), digest[TRUST_DIGEST];
    int error = pipeline ? programs_masks(core, job, pipeline, &spec.masks, &spec.mask_count) : 0;
    if (!error)
        error = job_inputs_find(core, job->series_id, &spec);
    if (!error && pipeline)
        error = awaited_paths(core, job->series_id, pipeline, &spec.objects, &spec.object_count);
    if (!error && job->corrects)
        error = jobs_add_correction(core, job, &spec);
    if (!error)
        error = queue_earlier_results(core->queue, job->id, &spec.earlier, &spec.earlier_count);
    if (!error && pipeline)
        error = trust_digest(pipeline, digest);
    if (!error && pipeline)
        error = queue_validated(core->queue, digest, &spec.validated);
    if (!error && pipeline && pipeline->changes)
        error = jobs_add_prior(core, job, pipeline, digest, &spec);
    if (!error)
        error = file && spec.output ? job_spec_write(&spec, file) : -ENOMEM;
    job_inputs_free(&spec);
    job_masks_free(spec.masks, spec.mask_count);
    for (size_t i = 0; i < spec.object_count; i++)
        free(spec.objects[i]);
    for (size_t i = 0; i < spec.earlier_count; i++)
        free(spec.earlier[i]);
    free(spec.earlier);
    for (size_t i = 0; i < spec.prior_value_count; i++)
        free(spec.prior_values[i]);
    free(spec.prior_values);
    for (size_t i = 0; i < spec.tracked_count; i++)
        free(spec.tracked[i]);
    free(spec.tracked);
    free(spec.prior);
    free(spec.validated);
    free(spec.objects);
    free(spec.output);
    free(file);
    return error;
}

/* Starts a job, unless a mask or its earlier study is missing. Returns 0, or -errno if the job is still READY. */
static int
jobs_begin(struct jobs *jobs, struct executor *executor, const struct queue_job *job, const struct job_place *place)
{
    struct core *core = jobs->core;
    const struct queue_lane lane = {place->name, place->slot, executor->name, place->nonce};
    struct conf_pipeline *pipeline;
    struct job_attempt *attempt = job_attempt_new(&jobs->attempts, job->id, job->attempts + 1);
    if (!attempt)
        return -ENOMEM;
    if (conf_pipeline_from_text(job->settings, &pipeline, NULL) != 0)
        pipeline = NULL;
    attempt->executor = executor;
    attempt->place = *place;
    attempt->alone = job->alone;
    attempt->deadline_seconds = pipeline ? pipeline->deadline_seconds : 0;
    int error = jobs_write_file(core, job, pipeline);
    conf_pipeline_free(pipeline);
    if (!error)
        error = queue_start_at(core->queue, job->id, &lane, clock_unix_ms());
    if (!error && executor->outlives)
        error = programs_carry(core, job->id);
    if (error) {
        spool_sweep_job(core->root, job->id);
        attempt_drop(&attempt->base);
        if (error != -ENODATA)
            return error;
        due_now(&core->jobs_due); /* it waits, or has failed: another job may start in its place */
        return 0;
    }
    return batch_on_commit(core->batch, jobs_run, attempt);
}

/* The first ready jobs, and those chosen to start. */
struct jobs_choice {
    struct queue_job *ready;
    size_t count, picked;
    struct executor_pick picks[EXECUTOR_MAX_PICKS];
};

static void
jobs_choice_clear(struct jobs_choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        queue_job_clear(&choice->ready[i]);
    free(choice->ready);
    *choice = (struct jobs_choice){0};
}

static int
jobs_choose(struct jobs *jobs, struct executor *executor, size_t limit, const char *except, struct jobs_choice *choice)
{
    /* Jobs of a removed pipeline run where pipelines without an `executor` run. */
    static const struct conf_pipeline gone = {.executor = CONF_ANYWHERE};
    int error = queue_ready(jobs->core->queue, clock_unix_ms(), core_ageing_ms(jobs->core), limit, except,
                            &choice->ready, &choice->count);
    if (error)
        return error;
    /* Skip a READY job that its old slot is still stopping, or that is not swept yet. */
    for (size_t i = 0; i < choice->count; i++) {
        struct queue_job *job = &choice->ready[i];
        const struct conf_pipeline *pipeline = conf_find_pipeline(jobs->core->conf, job->pipeline);
        const bool may_start =
            executor->ops->takes(executor, pipeline ? pipeline : &gone) && !attempts_find(&jobs->attempts, job->id);
        job->not_before_ms = may_start ? 0 : INT64_MAX;
    }
    choice->picked = executor->ops->pick(executor, choice->ready, choice->count, choice->picks);
    return 0;
}

/* Starts ready jobs in the open batch. Reads only as many first jobs as there is room for, because each end of a job
 * calls this and the queue may be long. Reads more only if some of these do not fit, for example a job that must run
 * alone or elsewhere. */
static int
jobs_start_ready(struct jobs *jobs, struct executor *executor)
{
    const struct conf *conf = jobs->core->conf;
    struct jobs_choice choice = {0};
    struct text_stream except; /* pipelines that do not run here, as queue_ready() takes them */
    const size_t room = executor->ops->room(executor);
    if (room == 0)
        return 0;
    if (text_open(&except))
        return -ENOMEM;
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        if (!executor->ops->takes(executor, &conf->pipelines[i]))
            fprintf(except.out, "\n%s\n", conf->pipelines[i].name);
    }
    if (text_close(&except))
        return -ENOMEM;
    int error = jobs_choose(jobs, executor, room, except.bytes, &choice);
    if (!error && choice.picked < room && choice.count == room && room < EXECUTOR_MAX_JOBS) {
        jobs_choice_clear(&choice);
        error = jobs_choose(jobs, executor, EXECUTOR_MAX_JOBS, except.bytes, &choice);
    }
    free(except.bytes);
    for (size_t i = 0; i < choice.picked && !error; i++) {
        const struct executor_pick *pick = &choice.picks[i];
        error = jobs_begin(jobs, executor, &choice.ready[pick->job], &pick->place);
        if (error == -EAGAIN)
            error = 0; /* a slice came in the same batch: its series is being received again */
    }
    if (choice.picked == EXECUTOR_MAX_PICKS)
        due_now(&jobs->core->jobs_due); /* there may be more jobs for it */
    jobs_choice_clear(&choice);
    return error;
}

void
jobs_before_commit(struct jobs *jobs)
{
    struct core *core = jobs->core;
    int64_t due_ms;
    int error = 0;
    if (core->db_failed && !core->probing)
        return;
    attempts_write(&jobs->attempts);
    size_t room = 0;
    for (size_t i = 0; i < EXECUTOR_COUNT; i++)
        room += jobs->executors[i]->ops->room(jobs->executors[i]);
    if (core_closed(core) || room == 0 || !due_take(&core->jobs_due))
        return; /* the end of each of these conditions triggers another check */
    if (!core_change(core))
        return;
    for (size_t i = 0; i < EXECUTOR_COUNT && !error; i++)
        error = jobs_start_ready(jobs, jobs->executors[i]);
    core_failed(core, error, "start a job");
    /* Report once that no job runs while jobs are paused, also after a start within a pause. */
    const bool drained = attempts_count(&jobs->attempts) == 0 && programs_unrecorded(core->programs) == 0 &&
                         queue_starts_no_job(core->queue) == 1;
    if (drained && !jobs->drained) {
        log_info("jobs.drained", LOG_STR("root", core->root));
        core_note(core, "DRAINED", "no job runs, and none starts");
    }
    jobs->drained = drained;
    if (queue_next_due(core->queue, &due_ms) == 0)
        due_in(&core->jobs_due, due_ms - clock_unix_ms());
}

/* ------------------------------------------------------------------------------- stages ---- */

/* Makes jobs READY that waited for an earlier study from an archive, which is here now, or does not come. */
static void
jobs_resume_priors(struct core *core)
{
    struct queue_ids ready = {0};
    int rc = core->db_failed ? 0 : queue_priors_ready(core->queue, &ready);
    if (rc == 0 && ready.count > 0 && core_change(core)) {
        rc = queue_resume_priors(core->queue, &ready, clock_unix_ms());
        due_now(&core->jobs_due);
    }
    free(ready.at);
    core_failed(core, rc, "resume a job that waits for an earlier study");
}

/* Marks stages as not stored if their batch was lost. */
static void
jobs_on_stages(void *context, int status)
{
    const struct jobs *jobs = context;
    for (struct attempt *base = jobs->attempts.first; status && base; base = base->next)
        ((struct job_attempt *)base)->stage_noted = false;
}

/* ----------------------------------------------------------------------------- stopping ---- */

struct stop_order {
    struct jobs *jobs;
    int64_t job;
};

static void
jobs_stop_attempt(struct job_attempt *attempt)
{
    if (attempt->started && !attempt->base.ended)
        attempt->executor->ops->stop(attempt->executor, attempt);
}

static void
jobs_on_cancelled(void *context, int status)
{
    struct stop_order *order = context;
    struct attempt *base = status ? NULL : attempts_find(&order->jobs->attempts, order->job);
    if (base && !base->ended) {
        struct job_attempt *attempt = (struct job_attempt *)base;
        attempt->cancelled = true;
        jobs_stop_attempt(attempt);
    }
    free(order);
}

void
jobs_stop(struct jobs *jobs, int64_t job)
{
    struct stop_order *order = malloc(sizeof *order);
    if (!order)
        return; /* the job runs to its end, which comes too late to be recorded */
    *order = (struct stop_order){jobs, job};
    batch_on_commit(jobs->core->batch, jobs_on_cancelled, order);
}

void
jobs_stop_superseded(struct jobs *jobs, struct queue_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        jobs_stop(jobs, ids->at[i]);
    free(ids->at);
    *ids = (struct queue_ids){0};
}

void
jobs_stop_all(struct jobs *jobs)
{
    for (struct attempt *base = jobs->attempts.first; base; base = base->next)
        jobs_stop_attempt((struct job_attempt *)base);
}

void
jobs_tick(struct jobs *jobs)
{
    for (size_t i = 0; i < EXECUTOR_COUNT; i++)
        jobs->executors[i]->ops->tick(jobs->executors[i]);
    /* Store stages once per tick instead of once per change, so that a job of a fraction of a second costs only its end. */
    struct core *core = jobs->core;
    bool begun = false;
    if (core->db_failed && !core->probing)
        return;
    jobs_resume_priors(core);
    for (struct attempt *base = jobs->attempts.first; base; base = base->next) {
        struct job_attempt *attempt = (struct job_attempt *)base;
        if (base->ended || !*attempt->stage || attempt->stage_noted)
            continue;
        if (!begun && !core_change(core))
            return;
        if (!begun)
            batch_on_commit(core->batch, jobs_on_stages, jobs);
        begun = true;
        int error = queue_set_stage(core->queue, base->id, attempt->stage, attempt->stage_ms);
        if (core_failed(core, error, "store the stage of a job"))
            return;
        attempt->stage_noted = true;
    }
}

size_t
jobs_running(const struct jobs *jobs)
{
    size_t running = 0;
    for (const struct attempt *base = jobs->attempts.first; base; base = base->next)
        running += !base->ended;
    return running;
}

size_t
jobs_unrecorded(const struct jobs *jobs)
{
    size_t count = 0;
    for (const struct attempt *base = jobs->attempts.first; base; base = base->next)
        count += base->ended || !((const struct job_attempt *)base)->executor->outlives;
    return count;
}

/* ------------------------------------------------------------------------- open, close ---- */

int
jobs_open(struct core *core, struct executor *const executors[EXECUTOR_COUNT], struct jobs **out)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return -ENOMEM;
    jobs->core = core;
    jobs->executors = executors;
    jobs->attempts.core = core;
    jobs->attempts.type = &job_attempt_type;
    for (size_t i = 0; i < EXECUTOR_COUNT; i++)
        executors[i]->attempts = &jobs->attempts;
    due_now(&core->jobs_due);
    *out = jobs;
    return 0;
}

void
jobs_close(struct jobs *jobs)
{
    if (!jobs)
        return;
    attempts_free(&jobs->attempts);
    free(jobs);
}
