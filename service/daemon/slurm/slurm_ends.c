/*
 * slurm_ends.c - ends attempts in Slurm; see slurm_executor.h.
 */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "service/common/clock.h"
#include "service/common/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HOLD_FIRST_SECONDS 5.0
#define HOLD_MOST_MS       300000

/* ------------------------------------------------------------------------------ attempts ---- */

void
cluster_end(struct cluster *cluster, struct job_attempt *attempt, enum job_end end,
            bool last_chance)
{
    struct cluster_task *task = attempt->task;
    task_leave(attempt);
    job_attempt_end(attempt, end, last_chance);
    cluster_drop_if_done(cluster, task);
}

void
cluster_give_back(struct cluster *cluster, struct job_attempt *attempt, const char *why)
{
    job_attempt_blame(attempt, CODE_RETURNED, "%s", why);
    cluster_end(cluster, attempt, JOB_END_RETURNED, true);
}

/* Maps a Slurm state to the outcome of an attempt that left no manifest. */
struct cluster_fate {
    const char *state;
    enum code code;
    enum job_end end;
    bool node; /* counts against the node */
};

static const struct cluster_fate *
cluster_fate_of(const char *state)
{
    static const struct cluster_fate fates[] = {
        {"NODE_FAIL", CODE_SLURM_NODE_FAILED, JOB_END_CRASHED, true},
        {"BOOT_FAIL", CODE_SLURM_NODE_FAILED, JOB_END_CRASHED, true},
        {"TIMEOUT", CODE_SLURM_TIMEOUT, JOB_END_CRASHED, false},
        {"DEADLINE", CODE_SLURM_TIMEOUT, JOB_END_CRASHED, false},
        {"OUT_OF_MEMORY", CODE_SLURM_OUT_OF_MEMORY, JOB_END_CRASHED, false},
        {"CANCELLED", CODE_SLURM_CANCELLED, JOB_END_RETRY, false},
        {"PREEMPTED", CODE_RETURNED, JOB_END_RETURNED, false},
        {"", CODE_SLURM_LOST, JOB_END_CRASHED, true},
    };
    const struct cluster_fate *fate = fates;
    while (*fate->state && strcmp(fate->state, state) != 0)
        fate++;
    return fate;
}

static void
cluster_count_loss(struct cluster *cluster, const char *node)
{
    struct core *core = cluster->base.core;
    char detail[160];
    if (!nodes_lost(&cluster->nodes, node, uv_now(&core->loop)))
        return;
    snprintf(detail, sizeof detail, "%s lost %d jobs in a row, and gets none for an hour", node,
             NODES_LOST_MOST);
    log_warn("node.excluded", LOG_STR("node", node));
    core_note(core, code_name(CODE_NODE_EXCLUDED), detail);
}

/* Ends a lost attempt. As with the jobs of a worker that dies, each of several in one task may be
 * the cause. */
void
cluster_lose(struct cluster *cluster, struct job_attempt *attempt)
{
    const struct cluster_task *task = attempt->task;
    const struct cluster_fate *fate = cluster_fate_of(task->state);
    if (task->slurm_id == 0) {
        cluster_give_back(cluster, attempt, "Slurm does not have it");
        return;
    }
    if (fate->end == JOB_END_RETURNED)
        job_attempt_blame(attempt, fate->code, "Slurm ended it for another job (%s)", task->state);
    else
        job_attempt_blame(
            attempt, fate->code,
            "attempt %d left no manifest: Slurm job %lld%s%s ended as %s; what it wrote is in "
            "task-%s.log of the shared folder",
            attempt->number, (long long)task->slurm_id, *task->node ? " on " : "", task->node,
            *task->state ? task->state : "one that Slurm does not know any more", task->nonce);
    if (fate->node)
        cluster_count_loss(cluster, task->node);
    cluster_end(cluster, attempt, fate->end, task->size == 1);
}

/* --------------------------------------------------------------------------------- tasks ---- */

void
cluster_drop_if_done(struct cluster *cluster, struct cluster_task *task)
{
    const bool known_to_slurm =
        task->slurm_id > 0 || task->phase == TASK_SENT || task->phase == TASK_UNSURE;
    if (task->attempts || (known_to_slurm && !task->over))
        return;
    tasks_remove(&cluster->tasks, task);
    due_now(&cluster->base.core->jobs_due); /* there is room for another task */
}

void
cluster_tell_trouble(struct cluster *cluster, enum code code, const char *message)
{
    struct core *core = cluster->base.core;
    if (code == CODE_NONE && *cluster->trouble) {
        log_info("slurm.answers", LOG_STR("root", core->root));
        core_note(core, "SLURM_ANSWERS", "Slurm can be asked again");
    } else if (code != CODE_NONE && !*cluster->trouble) {
        log_error("slurm.trouble", LOG_STR("code", code_name(code)), LOG_STR("message", message));
        core_note(core, code_name(code), message);
        cluster->trouble_since_ms = clock_unix_ms();
    }
    if (code == CODE_NONE)
        *cluster->trouble = '\0';
    else
        snprintf(cluster->trouble, sizeof cluster->trouble, "%s: %s", code_name(code), message);
}

/* Holds submissions for 5 s, or for the interval between two polls if that is shorter. The time
 * doubles with each rejection in a row, up to five minutes. */
static void
cluster_hold(struct cluster *cluster)
{
    const struct core *core = cluster->base.core;
    uint64_t wait =
        (uint64_t)(1000 * fmin(HOLD_FIRST_SECONDS, core->conf->compute.slurm.poll_seconds));
    for (int i = 0; i < cluster->refusals && wait < HOLD_MOST_MS; i++)
        wait *= 2;
    cluster->refusals++;
    cluster->hold_until = uv_now(&core->loop) + (wait < HOLD_MOST_MS ? wait : HOLD_MOST_MS);
}

void
cluster_put_off(struct cluster *cluster, struct job_attempt *attempt, enum code code,
                const char *message)
{
    if (code != CODE_NONE)
        cluster_tell_trouble(cluster, code, message);
    if (!cluster->hold_until)
        cluster_hold(cluster);
    cluster_give_back(cluster, attempt, message);
}

void
cluster_give_task_back(struct cluster *cluster, struct cluster_task *task, const char *why)
{
    struct job_attempt *next;
    task->over = true;
    for (struct job_attempt *attempt = task->attempts; attempt; attempt = next) {
        next = attempt->next_of_task;
        const bool last = !next;
        cluster_give_back(cluster, attempt, why); /* the last one also frees the task */
        if (last)
            return;
    }
    cluster_drop_if_done(cluster, task);
}

void
cluster_refused(struct cluster *cluster, struct cluster_task *task, enum code code,
                const char *message)
{
    cluster_tell_trouble(cluster, code, message);
    cluster_hold(cluster);
    cluster_give_task_back(cluster, task, message);
}
