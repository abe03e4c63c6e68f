/*
 * slurm_executor.c - the executor's interface for jobs.c, and the life of its process; see
 * slurm_executor.h.
 */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/slurm/slurm_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit of a poll; after this the role's process counts as hung on the share. */
#define ANSWER_MS  300000
#define GROUP_MOST 256 /* attempts per task */
#define PLACE_NAME "slurm"

static struct cluster *
cluster_of(struct executor *base)
{
    return (struct cluster *)base;
}

/* Returns whether the role's process is needed. */
static bool
cluster_is_configured(const struct cluster *cluster)
{
    return cluster->base.core->conf->compute.slurm.share != NULL &&
           (conf_uses_slurm(cluster->base.core->conf) || cluster->tasks.count > 0);
}

/* ------------------------------------------------------------------------------- picking ---- */

static bool
cluster_takes(const struct executor *base, const struct conf_pipeline *pipeline)
{
    if (pipeline->executor == CONF_ANYWHERE)
        return base->core->conf->compute.executor != CONF_EXECUTOR_LOCAL;
    return pipeline->executor == CONF_ON_SLURM;
}

static size_t
cluster_left_to_others(const struct conf *conf)
{
    return conf->compute.executor == CONF_EXECUTOR_BOTH ? (size_t)conf->compute.slurm.backlog_jobs
                                                        : 0;
}

static size_t
cluster_room(const struct executor *base)
{
    const struct cluster *cluster = (const struct cluster *)base;
    const struct conf *conf = base->core->conf;
    if (!conf_uses_slurm(conf) || !cluster_hears(cluster) || cluster->hold_until || cluster->away ||
        cluster->tasks.count >= (size_t)conf->compute.slurm.max_submitted)
        return 0;
    return EXECUTOR_MAX_PICKS + cluster_left_to_others(conf);
}

/* Returns whether a waiting job may go to Slurm; *left counts jobs left to this machine. */
static bool
cluster_wants(const struct conf *conf, const struct queue_job *job, size_t *left)
{
    const struct conf_pipeline *pipeline = conf_find_pipeline(conf, job->pipeline);
    if (job->not_before_ms)
        return false;
    if (*left == 0 || (pipeline && pipeline->executor == CONF_ON_SLURM))
        return true;
    --*left;
    return false;
}

/* Marks the slots that an attempt uses; they need not be contiguous. */
struct cluster_slots {
    bool *taken;
    size_t room, next;
};

/* Finds as many free slots as may be picked. Returns 0 or -ENOMEM. */
static int
cluster_find_slots(const struct cluster *cluster, struct cluster_slots *slots)
{
    *slots =
        (struct cluster_slots){.room = attempts_count(cluster->base.attempts) + EXECUTOR_MAX_PICKS};
    slots->taken = calloc(slots->room, sizeof *slots->taken);
    if (!slots->taken)
        return -ENOMEM;
    for (const struct attempt *base = cluster->base.attempts->first; base; base = base->next) {
        const struct job_attempt *attempt = (const struct job_attempt *)base;
        if (attempt->executor == &cluster->base && (size_t)attempt->place.slot < slots->room)
            slots->taken[attempt->place.slot] = true;
    }
    return 0;
}

static int32_t
cluster_next_slot(struct cluster_slots *slots)
{
    while (slots->taken[slots->next])
        slots->next++;
    return (int32_t)slots->next++;
}

/* A task while it is being filled. */
struct cluster_group {
    struct cluster_task *task;
    size_t count;
    double seconds;
    bool closed;
    const char *pipeline; /* of the known mean */
    double mean;
};

/* Returns the mean seconds of a pipeline's jobs; 0 without a measurement. Such a job gets a task of
 * its own and is measured. */
static double
cluster_mean(const struct cluster *cluster, struct cluster_group *group, const char *pipeline)
{
    if (!group->pipeline || strcmp(group->pipeline, pipeline) != 0) {
        group->pipeline = pipeline;
        if (queue_mean_seconds(cluster->base.core->queue, pipeline, &group->mean))
            group->mean = 0;
    }
    return group->mean;
}

/* Returns the task for the job; NULL: the limit of tasks is reached. */
static struct cluster_task *
cluster_task_for(struct cluster *cluster, const struct queue_job *job, struct cluster_group *group)
{
    const struct conf_slurm *conf = &cluster->base.core->conf->compute.slurm;
    const double mean = cluster_mean(cluster, group, job->pipeline);
    const bool alone = job->alone || mean <= 0;
    char nonce[ATTEMPT_NONCE_SIZE];
    if (group->task && !group->closed && !alone && group->count < GROUP_MOST &&
        group->seconds + mean <= conf->batch_seconds) {
        group->count++;
        group->seconds += mean;
        return group->task;
    }
    if (cluster->tasks.count >= (size_t)conf->max_submitted || slurm_nonce_make(nonce))
        return NULL;
    group->task = tasks_add(&cluster->tasks, nonce, TASK_PICKED);
    group->count = 1;
    group->seconds = mean;
    group->closed = alone;
    return group->task;
}

static size_t
cluster_pick(struct executor *base, const struct queue_job *jobs, size_t count,
             struct executor_pick *picks)
{
    struct cluster *cluster = cluster_of(base);
    struct cluster_group group = {0};
    struct cluster_slots slots;
    size_t picked = 0, left = cluster_left_to_others(base->core->conf);
    if (cluster_find_slots(cluster, &slots))
        return 0;
    for (size_t i = 0; i < count && picked < EXECUTOR_MAX_PICKS; i++) {
        if (!cluster_wants(base->core->conf, &jobs[i], &left))
            continue;
        const struct cluster_task *task = cluster_task_for(cluster, &jobs[i], &group);
        if (!task)
            break;
        struct job_place *place = &picks[picked].place;
        picks[picked++].job = i;
        *place = (struct job_place){.name = PLACE_NAME, .slot = cluster_next_slot(&slots)};
        snprintf(place->nonce, sizeof place->nonce, "%s", task->nonce);
    }
    free(slots.taken);
    return picked;
}

/* ------------------------------------------------------------------------------ starting ---- */

static void
cluster_recorded(const struct job_attempt *attempt)
{
    const enum job_end end = attempt->end;
    cluster_dismiss(cluster_of(attempt->executor), attempt,
                    end == JOB_END_DONE || end == JOB_END_EMPTY || end == JOB_END_REVIEW);
}

/* Starts an attempt whose row is committed. The tick submits its task when all its attempts are
 * started. */
static int
cluster_start_attempt(struct executor *base, struct job_attempt *attempt)
{
    struct cluster_task *task = tasks_find(&cluster_of(base)->tasks, attempt->place.nonce);
    if (!task || task->phase != TASK_PICKED)
        return -ENOENT;
    attempt->recorded = cluster_recorded;
    task_join(task, attempt);
    return 0;
}

/* Stops a cancelled attempt. When the daemon stops, tasks in Slurm continue. */
static void
cluster_stop(struct executor *base, struct job_attempt *attempt)
{
    struct cluster *cluster = cluster_of(base);
    struct cluster_task *task = attempt->task;
    if (!attempt->cancelled || !task)
        return;
    if (!task->attempts->next_of_task) {
        task->cancelled = true;
        if (task->slurm_id > 0)
            cluster_cancel(cluster, task->slurm_id);
    }
    if (!attempt->collecting) /* else its results are being fetched */
        cluster_end(cluster, attempt, JOB_END_CANCELLED, true);
}

static bool
cluster_may_poll(const struct cluster *cluster, uint64_t now)
{
    if (cluster->polling || now < cluster->poll_due)
        return false;
    if (cluster->away)
        return true;
    for (const struct cluster_task *task = cluster->tasks.first; task; task = task->next) {
        if (task->phase == TASK_SUBMITTED || task->phase == TASK_UNSURE)
            return true;
    }
    return false;
}

static void
cluster_tick(struct executor *base)
{
    struct cluster *cluster = cluster_of(base);
    struct core *core = base->core;
    const uint64_t now = uv_now(&core->loop);
    if (cluster->hold_until && now >= cluster->hold_until) {
        cluster->hold_until = 0;
        due_now(&core->jobs_due);
    }
    if (!cluster_hears(cluster))
        return;
    cluster_submit_picked(cluster);
    if (cluster_may_poll(cluster, now))
        cluster_poll(cluster);
    else if (cluster->polling && now > cluster->polled_at + ANSWER_MS)
        pool_kill(core->pool, cluster->slot, "it does not come back: the share hangs, perhaps");
}

/* ---------------------------------------------------------------------------- the process ---- */

/* Handles the end of the role's process. The next one repeats incomplete reports. */
void
cluster_gone(struct cluster *cluster)
{
    struct cluster_task *next_task;
    cluster->polling = false;
    cluster->poll_due = 0;
    cluster->collecting = 0;
    cluster->reported = NULL;
    for (struct cluster_task *task = cluster->tasks.first; task; task = next_task) {
        struct job_attempt *next;
        next_task = task->next;
        if (task->phase == TASK_SENT) {
            task->phase = TASK_UNSURE;
            task->first_poll = cluster->polls + 1;
        }
        for (struct job_attempt *attempt = task->attempts; attempt; attempt = next) {
            next = attempt->next_of_task;
            attempt->collecting = false;
            if (attempt->cancelled)
                cluster_end(cluster, attempt, JOB_END_CANCELLED, true);
        }
    }
}

int
cluster_slot(const struct cluster *cluster)
{
    return cluster->slot;
}

static int
cluster_adopt_one(struct cluster *cluster, const struct queue_elsewhere *row)
{
    struct job_attempt *attempt =
        job_attempt_new(cluster->base.attempts, row->job_id, row->attempts);
    struct cluster_task *task = tasks_find(&cluster->tasks, row->nonce);
    if (!task)
        task = tasks_add(&cluster->tasks, row->nonce,
                         row->slurm_id > 0 ? TASK_SUBMITTED : TASK_UNSURE);
    if (!attempt || !task)
        return -ENOMEM;
    attempt->executor = &cluster->base;
    attempt->recorded = cluster_recorded;
    attempt->alone = row->alone;
    attempt->started = true;
    attempt->place = (struct job_place){.name = PLACE_NAME, .slot = row->lane};
    snprintf(attempt->place.nonce, sizeof attempt->place.nonce, "%s", row->nonce);
    task->slurm_id = row->slurm_id;
    task->first_poll = 1;
    snprintf(task->node, sizeof task->node, "%s", row->node);
    snprintf(task->reason, sizeof task->reason, "%s", row->reason);
    task_join(task, attempt);
    return 0;
}

static int
cluster_adopt(struct cluster *cluster)
{
    struct queue_elsewhere *rows;
    size_t count;
    int rc = queue_elsewhere(cluster->base.core->queue, &rows, &count);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (!rc)
            rc = cluster_adopt_one(cluster, &rows[i]);
        queue_elsewhere_clear(&rows[i]);
    }
    free(rows);
    if (count > 0)
        log_info("slurm.adopted", LOG_INT("jobs", count), LOG_INT("tasks", cluster->tasks.count));
    return rc;
}

/* Returns all attempts: without a share their results cannot be found. */
static void
cluster_give_all_back(struct cluster *cluster)
{
    struct cluster_task *next_task;
    for (struct cluster_task *task = cluster->tasks.first; task; task = next_task) {
        struct job_attempt *next;
        next_task = task->next;
        task->over = true;
        for (struct job_attempt *attempt = task->attempts; attempt; attempt = next) {
            next = attempt->next_of_task;
            cluster_give_back(cluster, attempt, "compute.slurm.share is not configured any more");
        }
    }
}

void
cluster_reload(struct cluster *cluster)
{
    struct core *core = cluster->base.core;
    cluster->hold_until = 0; /* the cause of a rejection may have been corrected */
    if (!core->conf->compute.slurm.share)
        cluster_give_all_back(cluster);
    if (cluster_is_configured(cluster)) {
        pool_fill(core->pool, cluster->slot, NULL);
    } else {
        cluster_tell_trouble(cluster, CODE_NONE, "");
        pool_empty(core->pool, cluster->slot);
    }
}

int
cluster_start(struct cluster *cluster)
{
    cluster->slot = pool_reserve(cluster->base.core->pool, "cluster", 0);
    int rc = cluster->slot < 0 ? cluster->slot : cluster_adopt(cluster);
    if (!rc)
        cluster_reload(cluster);
    return rc;
}

const char *
cluster_trouble(const struct cluster *cluster)
{
    return cluster->trouble;
}

int64_t
cluster_trouble_since(const struct cluster *cluster)
{
    return *cluster->trouble ? cluster->trouble_since_ms : 0;
}

int
cluster_open(struct core *core, struct cluster **out)
{
    static const struct executor_ops ops = {cluster_takes,         cluster_room, cluster_pick,
                                            cluster_start_attempt, cluster_stop, cluster_tick};
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return -ENOMEM;
    cluster->base = (struct executor){.ops = &ops, .name = "slurm", .outlives = true, .core = core};
    cluster->slot = -1;
    *out = cluster;
    return 0;
}

void
cluster_close(struct cluster *cluster)
{
    if (!cluster)
        return;
    tasks_free(&cluster->tasks);
    nodes_free(&cluster->nodes);
    free(cluster);
}

struct executor *
cluster_base(struct cluster *cluster)
{
    return &cluster->base;
}
