/*
 * slurm_send.c - sends the requests to the Slurm role; see slurm_executor.h. Requests that it does
 * not receive are repeated later.
 */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "service/common/slurm/slurm.h"
#include "service/daemon/spool.h"

#include <stdlib.h>

bool
cluster_hears(const struct cluster *cluster)
{
    return cluster->slot >= 0 && pool_ready(cluster->base.core->pool, cluster->slot);
}

static int
cluster_send(const struct cluster *cluster, struct proto_writer *writer)
{
    return pool_send(cluster->base.core->pool, cluster->slot, writer);
}

static double
cluster_deadline_seconds(const struct core *core, const struct job_attempt *attempt)
{
    return attempt->deadline_seconds > 0 ? attempt->deadline_seconds
                                         : core->conf->jobs.deadline_seconds;
}

/* Adds a job to a frame. Returns false if there is no memory for its file name. */
static bool
cluster_add_job(const struct core *core, const struct job_attempt *attempt,
                struct proto_writer *writer)
{
    char *file = spool_job_file(core->root, attempt->base.id);
    const struct message_task_job row = {
        .job = attempt->base.id,
        .number = attempt->number,
        .job_file = file,
        .deadline_seconds = cluster_deadline_seconds(core, attempt),
    };
    if (file)
        message_add_task_job(writer, &row);
    free(file);
    return file != NULL;
}

static void
cluster_submit(struct cluster *cluster, struct cluster_task *task)
{
    const struct core *core = cluster->base.core;
    struct proto_writer writer;
    char *exclude = nodes_excluded(&cluster->nodes, uv_now(&core->loop));
    bool whole = exclude != NULL;
    message_write_submit_task(
        &writer, &(struct message_submit_task){.nonce = task->nonce, .exclude = exclude});
    for (const struct job_attempt *attempt = task->attempts; attempt && whole;
         attempt = attempt->next_of_task)
        whole = cluster_add_job(core, attempt, &writer);
    free(exclude);
    if (!whole)
        proto_release(&writer); /* the next tick tries again */
    else if (cluster_send(cluster, &writer) == 0)
        task->phase = TASK_SENT;
}

void
cluster_submit_picked(struct cluster *cluster)
{
    const bool not_now = cluster->away || cluster->hold_until;
    struct cluster_task *next;
    size_t sent = 0;
    if (cluster->base.core->draining || !cluster_hears(cluster))
        return;
    for (struct cluster_task *task = cluster->tasks.first; task && sent < SLURM_SUBMITS;
         task = next) {
        next = task->next;
        if (task->phase == TASK_SENT) {
            sent++;
        } else if (task->phase == TASK_PICKED && !task->attempts) {
            tasks_remove(&cluster->tasks, task); /* the batch was lost, or all were cancelled */
        } else if (task->phase == TASK_PICKED && not_now) {
            cluster_give_task_back(cluster, task, "Slurm takes nothing now");
        } else if (task->phase == TASK_PICKED) {
            cluster_submit(cluster, task);
            sent += task->phase == TASK_SENT;
        }
    }
}

void
cluster_poll(struct cluster *cluster)
{
    struct proto_writer writer;
    message_write_poll(&writer, &(struct message_poll){.number = cluster->polls + 1});
    if (cluster_send(cluster, &writer))
        return;
    cluster->polls++;
    cluster->polling = true;
    cluster->polled_at = uv_now(&cluster->base.core->loop);
}

static bool
cluster_ask_for(struct cluster *cluster, struct job_attempt *attempt)
{
    struct proto_writer writer;
    message_write_collect(&writer, &(struct message_collect){.job = attempt->base.id,
                                                             .number = attempt->number,
                                                             .nonce = attempt->task->nonce});
    if (cluster_send(cluster, &writer))
        return false;
    attempt->collecting = true;
    attempt->asked_at = uv_now(&cluster->base.core->loop);
    attempt->asked_poll = cluster->looked;
    cluster->collecting++;
    return true;
}

/* Sends COLLECT for a task. Returns false if the limit is reached. */
static bool
cluster_collect_task(struct cluster *cluster, struct cluster_task *task)
{
    for (struct job_attempt *attempt = task->attempts; attempt; attempt = attempt->next_of_task) {
        if (attempt->collecting || attempt->asked_poll == cluster->looked)
            continue;
        if (cluster->collecting >= CLUSTER_COLLECTS || !cluster_ask_for(cluster, attempt))
            return false;
    }
    task->to_collect = false;
    return true;
}

void
cluster_collect(struct cluster *cluster)
{
    for (struct cluster_task *task = cluster->tasks.first; task; task = task->next) {
        if (task->to_collect && !cluster_collect_task(cluster, task))
            return;
    }
}

void
cluster_cancel(const struct cluster *cluster, int64_t slurm_id)
{
    struct proto_writer writer;
    message_write_cancel_task(&writer, &(struct message_cancel_task){.slurm_id = slurm_id});
    cluster_send(cluster, &writer); /* on failure, the next poll shows the task and repeats this */
}

void
cluster_dismiss(const struct cluster *cluster, const struct job_attempt *attempt, bool well)
{
    struct proto_writer writer;
    message_write_dismiss(&writer, &(struct message_dismiss){});
    message_add_dismissed(&writer, &(struct message_dismissed){.job = attempt->base.id,
                                                               .number = attempt->number,
                                                               .nonce = attempt->place.nonce,
                                                               .well = well});
    cluster_send(cluster, &writer); /* on failure, the next process lists the folder again */
}
