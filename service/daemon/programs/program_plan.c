#include "service/daemon/programs/program_plan.h"

#include "service/common/clock.h"
#include "service/daemon/jobs/executor.h"
#include "service/daemon/programs/program_checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The runs of a job, and the reason why it cannot start. */
struct program_plan {
    struct core *core;
    const struct queue_job *job;
    const struct conf_pipeline *pipeline;
    bool revive, carries;   /* carries: see programs_carry() */
    struct queue_run *runs; /* at most one per program */
    size_t count;
    enum code code; /* CODE_NONE: all masks are there */
    char text[256];
};

/* Returns whether jobs of this pipeline run on other machines only. */
static bool
program_plan_is_elsewhere(const struct core *core, const char *pipeline)
{
    const struct conf_pipeline *now = conf_find_pipeline(core->conf, pipeline);
    bool elsewhere = false;
    for (size_t i = 0; now && i < EXECUTOR_COUNT; i++) {
        const struct executor *executor = core->executors[i];
        if (!executor || !executor->ops->takes(executor, now))
            continue;
        if (!executor->outlives)
            return false;
        elsewhere = true;
    }
    return elsewhere;
}

/* Sets the reason unless a more serious one is set: a failure, or the first that the job waits for. */
static void __attribute__((format(printf, 3, 4)))
program_plan_lacks(struct program_plan *plan, enum code code, const char *format, ...)
{
    va_list values;
    if (plan->code != CODE_NONE && (plan->code != CODE_PROGRAM_WAITING || code == CODE_PROGRAM_WAITING))
        return;
    plan->code = code;
    va_start(values, format);
    vsnprintf(plan->text, sizeof plan->text, format, values);
    va_end(values);
}

static bool
program_run_has_mask(const struct queue_run *run)
{
    return run->state == QUEUE_RUN_DONE && *run->path;
}

static struct queue_run *
program_plan_find(const struct program_plan *plan, const char *program)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->runs[i].program, program) == 0)
            return &plan->runs[i];
    return NULL;
}

/* Takes the run over in place of the job's former one of this program, and ties the job to it. */
static int
program_plan_take(struct program_plan *plan, struct queue_run *fresh)
{
    struct queue_run *run = program_plan_find(plan, fresh->program);
    int rc = 0;
    if (!run || run->id != fresh->id)
        rc = queue_tie_run(plan->core->queue, plan->job->id, fresh->id, clock_unix_ms());
    if (run)
        queue_run_clear(run);
    else
        run = &plan->runs[plan->count++];
    *run = *fresh;
    if (run->state == QUEUE_RUN_FAILED)
        program_plan_lacks(plan, run->code, "%.250s", run->message);
    else if (!program_run_has_mask(run) && !(plan->carries && run->state == QUEUE_RUN_READY))
        program_plan_lacks(plan, CODE_PROGRAM_WAITING, "It waits for run %" PRId64 " of program %s.", run->id,
                           run->program);
    return rc;
}

/* Finds the run of one program. */
static int
program_plan_add(struct program_plan *plan, const char *name)
{
    const struct queue_run *run = program_plan_find(plan, name);
    if (run && program_run_has_mask(run))
        return 0;
    const struct conf_program *program = conf_find_program(plan->core->conf, name);
    const struct queue_program *check = program_checks_find(plan->core->program_checks, name);
    if (!program) {
        program_plan_lacks(plan, CODE_PROGRAM_UNKNOWN, "The configuration has no program %s.", name);
        return 0;
    }
    /* A retry before the check revives the former run. If the check finds another identity, a new run replaces it. */
    const char *identity = check && *check->identity ? check->identity : run && plan->revive ? run->identity : NULL;
    if (!identity) {
        program_plan_lacks(plan, CODE_PROGRAM_WAITING, "It waits for program %s: %.150s", name,
                           check && *check->message ? check->message : "it is being checked.");
        return 0;
    }
    /* Finds or adds the run of the program with this identity. */
    struct queue_run fresh;
    const struct queue_job *job = plan->job;
    char *settings = conf_program_to_text(program), *grid = conf_grid_text(plan->pipeline);
    const struct queue_need need = {.series_id = job->series_id,
                                    .revision = job->revision,
                                    .stack = job->stack,
                                    .program = program->name,
                                    .settings = settings,
                                    .pipeline = job->settings,
                                    .grid = grid,
                                    .identity = identity};
    const int rc =
        settings && grid ? queue_need_run(plan->core->queue, &need, plan->revive, clock_unix_ms(), &fresh) : -ENOMEM;
    free(settings);
    free(grid);
    return rc ? rc : program_plan_take(plan, &fresh);
}

/* Finds, or adds, a run for each program that the pipeline names. The caller must free the runs. */
static int
program_plan_make(struct program_plan *plan)
{
    const struct conf_pipeline *pipeline = plan->pipeline;
    plan->carries = program_plan_is_elsewhere(plan->core, plan->job->pipeline);
    int rc = queue_job_runs(plan->core->queue, plan->job->id, &plan->runs, &plan->count);
    struct queue_run *grown =
        rc ? NULL : reallocarray(plan->runs, plan->count + pipeline->segment_count + 1, sizeof *grown);
    if (!grown)
        return rc ? rc : -ENOMEM;
    plan->runs = grown;
    for (size_t i = 0; i < pipeline->segment_count && !rc; i++)
        if (pipeline->segments[i].program)
            rc = program_plan_add(plan, pipeline->segments[i].program);
    due_now(&plan->core->programs_due);
    return rc;
}

/* Records that the job waits, or that it cannot start at all. */
static int
program_plan_record(const struct program_plan *plan)
{
    struct queue *queue = plan->core->queue;
    const int64_t job = plan->job->id, now_ms = clock_unix_ms();
    int rc = plan->job->state == QUEUE_READY ? queue_job_awaits_programs(queue, job, plan->text, now_ms)
                                             : queue_job_lacks(queue, job, CODE_PROGRAM_WAITING, plan->text, now_ms);
    if (!rc && plan->code != CODE_PROGRAM_WAITING)
        rc = queue_fail_waiting(queue, job, plan->code, plan->text, now_ms);
    return rc;
}

/* Reads a job and its pipeline. *pipeline is NULL if it names no program, or is of another version: the worker reports
 * that. */
static int
program_job_open(struct core *core, int64_t job_id, struct queue_job *job, struct conf_pipeline **pipeline)
{
    *pipeline = NULL;
    const int rc = queue_get_job(core->queue, job_id, job);
    if (rc || conf_pipeline_from_text(job->settings, pipeline, NULL) != 0)
        return rc;
    if (!conf_pipeline_names_program(*pipeline, NULL)) {
        conf_pipeline_free(*pipeline);
        *pipeline = NULL;
    }
    return 0;
}

static void
program_job_close(struct queue_job *job, struct conf_pipeline *pipeline)
{
    if (pipeline)
        conf_pipeline_free(pipeline);
    queue_job_clear(job);
}

int
programs_plan(struct core *core, int64_t job_id, bool revive)
{
    struct queue_job job;
    struct conf_pipeline *pipeline;
    int rc = program_job_open(core, job_id, &job, &pipeline);
    if (rc)
        return rc;
    if (pipeline && (job.state == QUEUE_READY || job.awaits_program)) {
        struct program_plan plan = {.core = core, .job = &job, .pipeline = pipeline, .revive = revive};
        rc = program_plan_make(&plan);
        if (!rc && plan.code != CODE_NONE)
            rc = program_plan_record(&plan);
        else if (!rc && job.state == QUEUE_DELAYED)
            rc = queue_job_lacks(core->queue, job_id, CODE_NONE, NULL, clock_unix_ms());
        queue_runs_free(plan.runs, plan.count);
    }
    program_job_close(&job, pipeline);
    return rc;
}

int
programs_again(struct core *core, int64_t job_id, const char *by)
{
    struct queue_job job;
    struct conf_pipeline *pipeline;
    int64_t again;
    int rc = program_job_open(core, job_id, &job, &pipeline);
    if (rc)
        return rc;
    struct program_plan plan = {.core = core, .job = &job, .pipeline = pipeline, .revive = true};
    if (pipeline)
        rc = program_plan_make(&plan);
    for (size_t i = 0; i < plan.count && !rc; i++) {
        const struct queue_run *run = &plan.runs[i];
        if (!program_run_has_mask(run) || !conf_pipeline_names_program(pipeline, run->program))
            continue;
        rc = queue_again_run(core->queue, run->id, by, clock_unix_ms(), &again);
        if (!rc)
            rc = queue_tie_run(core->queue, job_id, again, clock_unix_ms());
    }
    queue_runs_free(plan.runs, plan.count);
    program_job_close(&job, pipeline);
    return rc ? rc : programs_plan(core, job_id, true);
}

int
programs_plan_waiting(struct core *core, const char *program)
{
    struct queue_ids jobs;
    int rc = queue_jobs_without_run(core->queue, program, &jobs);
    for (size_t i = 0; i < jobs.count && !rc; i++)
        rc = programs_plan(core, jobs.at[i], false);
    if (jobs.count > 0)
        due_now(&core->jobs_due);
    free(jobs.at);
    return rc;
}

int
programs_replan(struct core *core, int64_t run_id, const char *program, const char *why)
{
    const int rc = queue_cancel_run(core->queue, run_id, why, clock_unix_ms());
    return rc ? rc : programs_plan_waiting(core, program);
}

/* --------------------------------------------------------------------------------- masks ---- */

/* Takes the strings over from the run. The mask has no path if the job makes it. */
static int
program_mask_from(const struct core *core, struct queue_run *run, struct job_mask *mask)
{
    *mask = (struct job_mask){.program = run->settings, .sha256 = run->sha256, .identity = run->identity};
    run->settings = run->sha256 = run->identity = NULL;
    if (!program_run_has_mask(run)) {
        const struct conf_program *program = conf_find_program(core->conf, run->program);
        mask->path = strdup("");
        return mask->path && program ? conf_accepted_labels(core->conf, program, &mask->accepted, &mask->accepted_count)
                                     : -ENOMEM;
    }
    return asprintf(&mask->path, "%s/%s/mask", core->root, run->path) < 0 ? -ENOMEM : 0;
}

int
programs_masks(struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline,
               struct job_mask **masks, size_t *count)
{
    struct program_plan plan = {.core = core, .job = job, .pipeline = pipeline};
    *masks = NULL;
    *count = 0;
    if (!conf_pipeline_names_program(pipeline, NULL))
        return 0;
    int rc = program_plan_make(&plan);
    if (!rc && plan.code != CODE_NONE) {
        rc = program_plan_record(&plan);
        rc = rc ? rc : -ENODATA;
    } else if (!rc) {
        *masks = calloc(plan.count + 1, sizeof **masks);
        rc = *masks ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < plan.count && !rc; i++)
        if (conf_pipeline_names_program(pipeline, plan.runs[i].program))
            rc = program_mask_from(core, &plan.runs[i], &(*masks)[(*count)++]);
    queue_runs_free(plan.runs, plan.count);
    return rc;
}

int
programs_carry(struct core *core, int64_t job_id)
{
    struct queue_run *runs;
    size_t count;
    int rc = queue_job_runs(core->queue, job_id, &runs, &count);
    for (size_t i = 0; i < count && !rc; i++)
        if (runs[i].state == QUEUE_RUN_READY)
            rc = queue_carry_run(core->queue, runs[i].id, job_id, clock_unix_ms());
    queue_runs_free(runs, count);
    return rc;
}
