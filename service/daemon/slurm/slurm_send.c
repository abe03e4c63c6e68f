/*
 * slurm_send.c - sends the requests to the Slurm role; see slurm_executor.h. Requests that it does not receive are
 * repeated later.
 */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "service/common/slurm/slurm.h"
#include "service/daemon/spool.h"

#include <stdlib.h>

bool
slurm_is_ready(const struct slurm_executor *slurm)
{
    return slurm->slot >= 0 && pool_ready(slurm->base.core->pool, slurm->slot);
}

static void
slurm_send_task(struct slurm_executor *slurm, struct slurm_task *task)
{
    const struct core *core = slurm->base.core;
    struct proto_writer writer;
    char *exclude = nodes_excluded(&slurm->nodes, uv_now(&core->loop));
    bool whole = exclude != NULL;
    message_write_submit_task(&writer, &(struct message_submit_task){.nonce = task->nonce, .exclude = exclude});
    for (const struct job_attempt *attempt = task->attempts; attempt && whole; attempt = attempt->next_of_task) {
        char *file = spool_job_file(core->root, attempt->base.id);
        const struct message_task_job row = {.job = attempt->base.id,
                                             .number = attempt->number,
                                             .job_file = file,
                                             .deadline_seconds = job_attempt_deadline(attempt)};
        whole = file != NULL;
        if (whole)
            message_add_task_job(&writer, &row);
        free(file);
    }
    free(exclude);
    if (!whole)
        proto_release(&writer); /* no memory: the next tick tries again */
    else if (pool_send(slurm->base.core->pool, slurm->slot, &writer) == 0)
        task->phase = TASK_SENT;
}

void
slurm_submit_picked(struct slurm_executor *slurm)
{
    const bool not_now = slurm->unreachable || slurm->hold_until;
    struct slurm_task *next;
    size_t sent = 0;
    if (slurm->base.core->draining || !slurm_is_ready(slurm))
        return;
    for (struct slurm_task *task = slurm->tasks.first; task && sent < SLURM_SUBMITS; task = next) {
        next = task->next;
        if (task->phase == TASK_SENT) {
            sent++;
        } else if (task->phase == TASK_PICKED && !task->attempts) {
            tasks_remove(&slurm->tasks, task); /* the batch was lost, or all were cancelled */
        } else if (task->phase == TASK_PICKED && not_now) {
            slurm_return_task(slurm, task, "Slurm accepts no jobs now");
        } else if (task->phase == TASK_PICKED) {
            slurm_send_task(slurm, task);
            sent += task->phase == TASK_SENT;
        }
    }
}

void
slurm_send_poll(struct slurm_executor *slurm)
{
    struct proto_writer writer;
    message_write_poll(&writer, &(struct message_poll){.number = slurm->polls + 1});
    if (pool_send(slurm->base.core->pool, slurm->slot, &writer))
        return;
    slurm->polls++;
    slurm->polling = true;
    slurm->polled_at = uv_now(&slurm->base.core->loop);
}

void
slurm_collect(struct slurm_executor *slurm)
{
    for (struct slurm_task *task = slurm->tasks.first; task; task = task->next) {
        struct job_attempt *attempt = task->to_collect ? task->attempts : NULL;
        for (; attempt; attempt = attempt->next_of_task) {
            struct proto_writer writer;
            if (attempt->collecting || attempt->requested_poll == slurm->complete_poll)
                continue;
            if (slurm->collecting >= SLURM_MAX_COLLECTS)
                return;
            message_write_collect(
                &writer,
                &(struct message_collect){.job = attempt->base.id, .number = attempt->number, .nonce = task->nonce});
            if (pool_send(slurm->base.core->pool, slurm->slot, &writer))
                return;
            attempt->collecting = true;
            attempt->requested_at = uv_now(&slurm->base.core->loop);
            attempt->requested_poll = slurm->complete_poll;
            slurm->collecting++;
        }
        task->to_collect = false;
    }
}

void
slurm_send_cancel(const struct slurm_executor *slurm, int64_t slurm_id)
{
    struct proto_writer writer;
    message_write_cancel_task(&writer, &(struct message_cancel_task){.slurm_id = slurm_id});
    pool_send(slurm->base.core->pool, slurm->slot,
              &writer); /* on failure, the next poll shows the task and repeats this */
}

void
slurm_send_dismiss(const struct slurm_executor *slurm, const struct job_attempt *attempt, bool well)
{
    struct proto_writer writer;
    message_write_dismiss(&writer, &(struct message_dismiss){});
    message_add_dismissed(
        &writer, &(struct message_dismissed){
                     .job = attempt->base.id, .number = attempt->number, .nonce = attempt->place.nonce, .well = well});
    pool_send(slurm->base.core->pool, slurm->slot, &writer); /* on failure, the next process lists the folder again */
}
