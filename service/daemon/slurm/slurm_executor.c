/* slurm_executor.c - the executor's interface for jobs.c, and the life of its process; see slurm_executor.h. */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "service/common/log.h"
#include "service/common/slurm/slurm_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit of a poll; after this the role's process counts as hung on the share. */
#define ANSWER_MS  300000
#define GROUP_MAX  256 /* attempts per task */
#define PLACE_NAME "slurm"

/* ------------------------------------------------------------------------------- picking ---- */

static bool
slurm_takes(const struct executor *base, const struct conf_pipeline *pipeline)
{
    if (pipeline->executor == CONF_ANYWHERE)
        return base->core->conf->compute.executor != CONF_EXECUTOR_LOCAL;
    return pipeline->executor == CONF_ON_SLURM;
}

/* Returns whether jobs of this pipeline run programs on the node (programs_carry). */
static bool
slurm_runs_programs(const struct conf *conf, const char *name)
{
    const struct conf_pipeline *pipeline = conf_find_pipeline(conf, name);
    if (!pipeline || !conf_pipeline_names_program(pipeline, NULL))
        return false;
    return pipeline->executor == CONF_ON_SLURM ||
           (pipeline->executor == CONF_ANYWHERE && conf->compute.executor == CONF_EXECUTOR_SLURM);
}

static size_t
slurm_backlog(const struct conf *conf)
{
    return conf->compute.executor == CONF_EXECUTOR_BOTH ? (size_t)conf->compute.slurm.backlog_jobs : 0;
}

static size_t
slurm_room(const struct executor *base)
{
    const struct slurm_executor *slurm = (const struct slurm_executor *)base;
    const struct conf *conf = base->core->conf;
    if (!conf_uses_slurm(conf) || !slurm_is_ready(slurm) || slurm->hold_until || slurm->unreachable ||
        slurm->tasks.count >= (size_t)conf->compute.slurm.max_submitted)
        return 0;
    return EXECUTOR_MAX_PICKS + slurm_backlog(conf);
}

/* A task while it is being filled. */
struct slurm_group {
    struct slurm_task *task;
    size_t count;
    double seconds;
    bool closed;
    const char *pipeline; /* of the known mean */
    double mean;          /* seconds of its jobs; 0: no measurement */
    bool runs_programs;   /* on the node: their time is not in the mean */
};

/* Returns the task for the job; NULL: the limit of tasks is reached. */
static struct slurm_task *
slurm_task_for(struct slurm_executor *slurm, const struct queue_job *job, struct slurm_group *group)
{
    const struct conf_slurm *conf = &slurm->base.core->conf->compute.slurm;
    char nonce[ATTEMPT_NONCE_SIZE];
    if (!group->pipeline || strcmp(group->pipeline, job->pipeline) != 0) {
        group->pipeline = job->pipeline;
        if (queue_mean_seconds(slurm->base.core->queue, job->pipeline, &group->mean))
            group->mean = 0;
        group->runs_programs = slurm_runs_programs(slurm->base.core->conf, job->pipeline);
    }
    /* A job without a measurement gets a task of its own and is measured. */
    const bool alone = job->alone || group->mean <= 0 || group->runs_programs;
    if (group->task && !group->closed && !alone && group->count < GROUP_MAX &&
        group->seconds + group->mean <= conf->batch_seconds) {
        group->count++;
        group->seconds += group->mean;
        return group->task;
    }
    if (slurm->tasks.count >= (size_t)conf->max_submitted || slurm_nonce_make(nonce))
        return NULL;
    group->task = tasks_add(&slurm->tasks, nonce, TASK_PICKED);
    group->count = 1;
    group->seconds = group->mean;
    group->closed = alone;
    return group->task;
}

static size_t
slurm_pick(struct executor *base, const struct queue_job *jobs, size_t count, struct executor_pick *picks)
{
    struct slurm_executor *slurm = (struct slurm_executor *)base;
    const struct conf *conf = base->core->conf;
    struct slurm_group group = {0};
    size_t picked = 0, slot = 0;
    size_t left = slurm_backlog(conf); /* jobs that are left to this machine */
    /* Free slots need not be contiguous. There is room for as many as may be picked. */
    const size_t slot_count = attempts_count(base->attempts) + EXECUTOR_MAX_PICKS;
    bool *taken = calloc(slot_count, sizeof *taken);
    if (!taken)
        return 0;
    for (const struct attempt *at = base->attempts->first; at; at = at->next) {
        const struct job_attempt *attempt = (const struct job_attempt *)at;
        if (attempt->executor == base && (size_t)attempt->place.slot < slot_count)
            taken[attempt->place.slot] = true;
    }
    for (size_t i = 0; i < count && picked < EXECUTOR_MAX_PICKS; i++) {
        const struct conf_pipeline *pipeline = conf_find_pipeline(conf, jobs[i].pipeline);
        if (jobs[i].not_before_ms)
            continue;
        if (left > 0 && !(pipeline && pipeline->executor == CONF_ON_SLURM)) {
            left--;
            continue;
        }
        const struct slurm_task *task = slurm_task_for(slurm, &jobs[i], &group);
        if (!task)
            break;
        struct job_place *place = &picks[picked].place;
        picks[picked++].job = i;
        while (taken[slot])
            slot++;
        taken[slot] = true;
        *place = (struct job_place){.name = PLACE_NAME, .slot = (int32_t)slot};
        snprintf(place->nonce, sizeof place->nonce, "%s", task->nonce);
    }
    free(taken);
    return picked;
}

/* ------------------------------------------------------------------------------ starting ---- */

static void
slurm_recorded(const struct job_attempt *attempt)
{
    const enum job_end end = attempt->end;
    slurm_send_dismiss((struct slurm_executor *)attempt->executor, attempt,
                       end == JOB_END_DONE || end == JOB_END_EMPTY || end == JOB_END_REVIEW);
}

/* Starts an attempt after its row is committed. The tick submits its task when all its attempts are started. */
static int
slurm_start_attempt(struct executor *base, struct job_attempt *attempt)
{
    const struct slurm_executor *slurm = (const struct slurm_executor *)base;
    struct slurm_task *task = tasks_find(&slurm->tasks, attempt->place.nonce);
    if (!task || task->phase != TASK_PICKED)
        return -ENOENT;
    attempt->recorded = slurm_recorded;
    task_join(task, attempt);
    return 0;
}

/* Stops a cancelled attempt. When the daemon stops, tasks in Slurm continue. */
static void
slurm_stop(struct executor *base, struct job_attempt *attempt)
{
    struct slurm_executor *slurm = (struct slurm_executor *)base;
    struct slurm_task *task = attempt->task;
    if (!attempt->cancelled || !task)
        return;
    if (!task->attempts->next_of_task) {
        task->cancelled = true;
        if (task->slurm_id > 0)
            slurm_send_cancel(slurm, task->slurm_id);
    }
    if (!attempt->collecting) /* else its results are being fetched */
        slurm_end(slurm, attempt, JOB_END_CANCELLED, true);
}

static void
slurm_tick(struct executor *base)
{
    struct slurm_executor *slurm = (struct slurm_executor *)base;
    struct core *core = base->core;
    const uint64_t now = uv_now(&core->loop);
    if (slurm->hold_until && now >= slurm->hold_until) {
        slurm->hold_until = 0;
        due_now(&core->jobs_due);
    }
    if (!slurm_is_ready(slurm))
        return;
    slurm_submit_picked(slurm);
    bool has_news = slurm->unreachable; /* a poll may change the state of a task, or show that Slurm works again */
    for (const struct slurm_task *task = slurm->tasks.first; task && !has_news; task = task->next)
        has_news = task->phase == TASK_SUBMITTED || task->phase == TASK_UNSURE;
    if (has_news && !slurm->polling && now >= slurm->poll_due)
        slurm_send_poll(slurm);
    else if (slurm->polling && now > slurm->polled_at + ANSWER_MS)
        pool_kill(core->pool, slurm->slot, "it does not come back: the share hangs, perhaps");
}

/* ---------------------------------------------------------------------------- the process ---- */

/* Handles the end of the role's process. The next one repeats incomplete reports. */
void
slurm_executor_gone(struct slurm_executor *slurm)
{
    struct slurm_task *next_task;
    slurm->polling = false;
    slurm->poll_due = 0;
    slurm->collecting = 0;
    slurm->reported = NULL;
    for (struct slurm_task *task = slurm->tasks.first; task; task = next_task) {
        struct job_attempt *next;
        next_task = task->next;
        if (task->phase == TASK_SENT) {
            task->phase = TASK_UNSURE;
            task->first_poll = slurm->polls + 1;
        }
        for (struct job_attempt *attempt = task->attempts; attempt; attempt = next) {
            next = attempt->next_of_task;
            attempt->collecting = false;
            if (attempt->cancelled)
                slurm_end(slurm, attempt, JOB_END_CANCELLED, true);
        }
    }
}

int
slurm_executor_slot(const struct slurm_executor *slurm)
{
    return slurm->slot;
}

static int
slurm_adopt(struct slurm_executor *slurm)
{
    struct queue_elsewhere *rows;
    size_t count;
    int rc = queue_elsewhere(slurm->base.core->queue, &rows, &count);
    if (rc)
        return rc;
    for (size_t i = 0; i < count && !rc; i++) {
        const struct queue_elsewhere *row = &rows[i];
        struct slurm_task *task = tasks_find(&slurm->tasks, row->nonce);
        if (!task)
            task = tasks_add(&slurm->tasks, row->nonce, row->slurm_id > 0 ? TASK_SUBMITTED : TASK_UNSURE);
        /* Every attempt has a task and an executor, also when the daemon stops after a failure. */
        struct job_attempt *attempt = task ? job_attempt_new(slurm->base.attempts, row->job_id, row->attempts) : NULL;
        if (!attempt) {
            rc = -ENOMEM;
            break;
        }
        attempt->executor = &slurm->base;
        attempt->recorded = slurm_recorded;
        attempt->alone = row->alone;
        attempt->started = true;
        attempt->place = (struct job_place){.name = PLACE_NAME, .slot = row->lane};
        snprintf(attempt->place.nonce, sizeof attempt->place.nonce, "%s", row->nonce);
        task->slurm_id = row->slurm_id;
        task->first_poll = 1;
        snprintf(task->node, sizeof task->node, "%s", row->node);
        snprintf(task->reason, sizeof task->reason, "%s", row->reason);
        task_join(task, attempt);
    }
    for (size_t i = 0; i < count; i++)
        queue_elsewhere_clear(&rows[i]);
    free(rows);
    if (count > 0 && !rc)
        log_info("slurm.adopted", LOG_INT("jobs", count), LOG_INT("tasks", slurm->tasks.count));
    return rc;
}

void
slurm_executor_reload(struct slurm_executor *slurm)
{
    struct core *core = slurm->base.core;
    slurm->hold_until = 0; /* the cause of a rejection may have been corrected */
    struct slurm_task *task = core->conf->compute.slurm.share ? NULL : slurm->tasks.first;
    while (task) { /* without a share the results cannot be found */
        struct slurm_task *next_task = task->next;
        struct job_attempt *next;
        task->over = true;
        for (struct job_attempt *attempt = task->attempts; attempt; attempt = next) {
            next = attempt->next_of_task;
            slurm_return(slurm, attempt, "compute.slurm.share is not configured any more");
        }
        task = next_task;
    }
    if (core->conf->compute.slurm.share && (conf_uses_slurm(core->conf) || slurm->tasks.count)) {
        pool_fill(core->pool, slurm->slot, NULL);
    } else {
        slurm_report_problem(slurm, CODE_NONE, "");
        pool_empty(core->pool, slurm->slot);
    }
}

int
slurm_executor_start(struct slurm_executor *slurm)
{
    slurm->slot = pool_reserve(slurm->base.core->pool, "cluster", 0);
    int rc = slurm->slot < 0 ? slurm->slot : slurm_adopt(slurm);
    if (!rc)
        slurm_executor_reload(slurm);
    return rc;
}

const char *
slurm_executor_problem(const struct slurm_executor *slurm, int64_t *since_ms)
{
    *since_ms = slurm->problem_since_ms;
    return slurm->problem;
}

int
slurm_executor_open(struct core *core, struct slurm_executor **out)
{
    static const struct executor_ops ops = {slurm_takes,         slurm_room, slurm_pick,
                                            slurm_start_attempt, slurm_stop, slurm_tick};
    struct slurm_executor *slurm = calloc(1, sizeof *slurm);
    if (!slurm)
        return -ENOMEM;
    slurm->base = (struct executor){.ops = &ops, .name = "slurm", .outlives = true, .core = core};
    slurm->slot = -1;
    *out = slurm;
    return 0;
}

void
slurm_executor_close(struct slurm_executor *slurm)
{
    if (!slurm)
        return;
    while (slurm->tasks.first)
        tasks_remove(&slurm->tasks, slurm->tasks.first);
    nodes_free(&slurm->nodes);
    free(slurm);
}

struct executor *
slurm_executor_base(struct slurm_executor *slurm)
{
    return &slurm->base;
}
