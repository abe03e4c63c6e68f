/* slurm_ends.c - ends attempts in Slurm; see slurm_executor.h. */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "service/common/clock.h"
#include "service/common/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HOLD_FIRST_SECONDS 5.0
#define HOLD_MAX_MS        300000

void
slurm_end(struct slurm_executor *slurm, struct job_attempt *attempt, enum job_end end, bool last_chance)
{
    struct slurm_task *task = attempt->task;
    task_leave(attempt);
    job_attempt_end(attempt, end, last_chance);
    slurm_drop_if_done(slurm, task);
}

void
slurm_return(struct slurm_executor *slurm, struct job_attempt *attempt, const char *why)
{
    job_attempt_set_reason(attempt, CODE_RETURNED, "%s", why);
    slurm_end(slurm, attempt, JOB_END_RETURNED, true);
}

/* Maps a Slurm state to the outcome of an attempt that left no manifest. */
struct slurm_outcome {
    const char *state;
    enum code code;
    enum job_end end;
    bool node; /* counts against the node */
};

/* Ends a lost attempt. As with the jobs of a worker that dies, each of several in one task may be the cause. */
void
slurm_lose(struct slurm_executor *slurm, struct job_attempt *attempt)
{
    static const struct slurm_outcome fates[] = {
        {"NODE_FAIL", CODE_SLURM_NODE_FAILED, JOB_END_CRASHED, true},
        {"BOOT_FAIL", CODE_SLURM_NODE_FAILED, JOB_END_CRASHED, true},
        {"TIMEOUT", CODE_SLURM_TIMEOUT, JOB_END_CRASHED, false},
        {"DEADLINE", CODE_SLURM_TIMEOUT, JOB_END_CRASHED, false},
        {"OUT_OF_MEMORY", CODE_SLURM_OUT_OF_MEMORY, JOB_END_CRASHED, false},
        {"CANCELLED", CODE_SLURM_CANCELLED, JOB_END_RETRY, false},
        {"PREEMPTED", CODE_RETURNED, JOB_END_RETURNED, false},
        {"", CODE_SLURM_LOST, JOB_END_CRASHED, true},
    };

    const struct slurm_task *task = attempt->task;
    const struct slurm_outcome *fate = fates;
    struct core *core = slurm->base.core;
    while (*fate->state && strcmp(fate->state, task->state) != 0)
        fate++;
    if (task->slurm_id == 0) {
        slurm_return(slurm, attempt, "Slurm does not have it");
        return;
    }
    if (fate->end == JOB_END_RETURNED)
        job_attempt_set_reason(attempt, fate->code, "Slurm ended it for another job (%s)", task->state);
    else
        job_attempt_set_reason(attempt, fate->code,
                               "attempt %d left no manifest: Slurm job %lld%s%s ended as %s; its output is in "
                               "task-%s.log of the shared folder",
                               attempt->number, (long long)task->slurm_id, *task->node ? " on " : "", task->node,
                               *task->state ? task->state : "unknown, no longer known to Slurm", task->nonce);
    if (fate->node && nodes_lost(&slurm->nodes, task->node, uv_now(&core->loop))) {
        char detail[160];
        snprintf(detail, sizeof detail, "%s lost %d jobs in a row, and gets none for an hour", task->node,
                 NODES_LOST_MAX);
        log_warn("node.excluded", LOG_STR("node", task->node));
        core_note(core, code_name(CODE_NODE_EXCLUDED), detail);
    }
    slurm_end(slurm, attempt, fate->end, task->size == 1);
}

void
slurm_drop_if_done(struct slurm_executor *slurm, struct slurm_task *task)
{
    const bool known_to_slurm = task->slurm_id > 0 || task->phase == TASK_SENT || task->phase == TASK_UNSURE;
    if (task->attempts || (known_to_slurm && !task->over))
        return;
    tasks_remove(&slurm->tasks, task);
    due_now(&slurm->base.core->jobs_due); /* there is room for another task */
}

void
slurm_report_problem(struct slurm_executor *slurm, enum code code, const char *message)
{
    struct core *core = slurm->base.core;
    if (code == CODE_NONE && *slurm->problem) {
        log_info("slurm.answers", LOG_STR("root", core->root));
        core_note(core, "SLURM_ANSWERS", "Slurm answers again");
    } else if (code != CODE_NONE && !*slurm->problem) {
        log_error("slurm.trouble", LOG_STR("code", code_name(code)), LOG_STR("message", message));
        core_note(core, code_name(code), message);
        slurm->problem_since_ms = clock_unix_ms();
    }
    if (code == CODE_NONE)
        *slurm->problem = '\0';
    else
        snprintf(slurm->problem, sizeof slurm->problem, "%s: %s", code_name(code), message);
}

/* Holds submissions for 5 s, or for the interval between two polls if that is shorter. The time doubles with each
 * rejection in a row, up to five minutes. */
static void
slurm_hold(struct slurm_executor *slurm)
{
    const struct core *core = slurm->base.core;
    uint64_t wait = (uint64_t)(1000 * fmin(HOLD_FIRST_SECONDS, core->conf->compute.slurm.poll_seconds));
    for (int i = 0; i < slurm->refusals && wait < HOLD_MAX_MS; i++)
        wait *= 2;
    slurm->refusals++;
    slurm->hold_until = uv_now(&core->loop) + (wait < HOLD_MAX_MS ? wait : HOLD_MAX_MS);
}

void
slurm_postpone(struct slurm_executor *slurm, struct job_attempt *attempt, enum code code, const char *message)
{
    if (code != CODE_NONE)
        slurm_report_problem(slurm, code, message);
    if (!slurm->hold_until)
        slurm_hold(slurm);
    slurm_return(slurm, attempt, message);
}

void
slurm_return_task(struct slurm_executor *slurm, struct slurm_task *task, const char *why)
{
    struct job_attempt *next;
    task->over = true;
    for (struct job_attempt *attempt = task->attempts; attempt; attempt = next) {
        next = attempt->next_of_task;
        const bool last = !next;
        slurm_return(slurm, attempt, why); /* the last one also frees the task */
        if (last)
            return;
    }
    slurm_drop_if_done(slurm, task);
}

void
slurm_reject_task(struct slurm_executor *slurm, struct slurm_task *task, enum code code, const char *message)
{
    slurm_report_problem(slurm, code, message);
    slurm_hold(slurm);
    slurm_return_task(slurm, task, message);
}
