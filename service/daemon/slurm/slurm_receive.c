/*
 * slurm_receive.c - handles the Slurm role's replies; see slurm_executor.h.
 */
#include "service/daemon/slurm/slurm_executor_private.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GRACE_MS 60000 /* for a manifest, after Slurm reported COMPLETED */

/* Returns the running attempt with that nonce; NULL: the nonce is void. */
static struct job_attempt *
cluster_attempt(const struct cluster *cluster, int64_t job, const char *nonce)
{
    struct job_attempt *attempt = (struct job_attempt *)attempts_find(cluster->base.attempts, job);
    const bool is_it = attempt && attempt->executor == &cluster->base && attempt->task &&
                       strcmp(attempt->place.nonce, nonce) == 0;
    return is_it ? attempt : NULL;
}

/* ----------------------------------------------------------------------------- submitted ---- */

/* Stores the Slurm job's number in each row. A row that cannot be written now is written at a later
 * poll, and must not stop the others. */
static void
cluster_record_submitted(struct cluster *cluster, const struct cluster_task *task)
{
    struct core *core = cluster->base.core;
    crash_point("daemon_before_submitted");
    if (!core_change(core))
        return;
    for (const struct job_attempt *attempt = task->attempts; attempt;
         attempt = attempt->next_of_task) {
        const int rc = queue_submitted(core->queue, attempt->base.id, task->nonce, task->slurm_id,
                                       clock_unix_ms());
        if (rc != -EAGAIN && rc != -ENOENT &&
            core_failed(core, rc, "store the number of a Slurm job"))
            return;
    }
}

static void
cluster_found(struct cluster *cluster, struct cluster_task *task, int64_t slurm_id)
{
    task->phase = TASK_SUBMITTED;
    task->slurm_id = slurm_id;
    task->first_poll = cluster->polls + 1;
    log_info("slurm.submitted", LOG_INT("slurm_id", slurm_id), LOG_STR("nonce", task->nonce),
             LOG_INT("jobs", task->size));
    cluster_record_submitted(cluster, task);
    if (!task->attempts)
        task->cancelled = true;
    if (task->cancelled)
        cluster_cancel(cluster, slurm_id);
}

/* Sets whether Slurm is unreachable. Meanwhile no job is picked for it: queued jobs may run
 * here. */
static void
cluster_set_away(struct cluster *cluster, bool away)
{
    if (cluster->away && !away)
        due_now(&cluster->base.core->jobs_due);
    cluster->away = away;
}

static void
cluster_handle_submitted(struct cluster *cluster, struct proto_reader *reader)
{
    struct message_submitted told;
    if (message_read_submitted(reader, &told))
        return;
    struct cluster_task *task = tasks_find(&cluster->tasks, told.nonce);
    if (!task || task->phase != TASK_SENT) {
        reader->error = -EBADMSG; /* it was not requested */
    } else if (told.slurm_id > 0) {
        cluster->refusals = 0;
        cluster_tell_trouble(cluster, CODE_NONE, "");
        cluster_found(cluster, task, told.slurm_id);
    } else if (told.unsure) {
        cluster_tell_trouble(cluster, told.code, told.message);
        cluster_set_away(cluster, true);
        task->phase = TASK_UNSURE;
        task->first_poll = cluster->polls + 1;
    } else if (told.code != CODE_NONE) {
        cluster_refused(cluster, task, told.code, told.message);
    } else { /* its attempts had no folder */
        task->over = true;
        cluster_drop_if_done(cluster, task);
    }
    cluster_submit_picked(cluster);
}

/* Returns whether the share or this machine failed, not the job. NONE: the role was ordered to end
 * meanwhile. */
static bool
cluster_is_system(enum code code)
{
    return code == CODE_NONE || code == CODE_DISK_FULL || code == CODE_IO_ERROR ||
           code == CODE_OUT_OF_MEMORY || code == CODE_OUTPUT_UNWRITABLE;
}

/* Charges the job an attempt for an unreadable input, as a worker does: the file may become
 * readable. */
static void
cluster_handle_unfit(struct cluster *cluster, struct proto_reader *reader)
{
    struct message_unfit told;
    if (message_read_unfit(reader, &told))
        return;
    struct job_attempt *attempt = cluster_attempt(cluster, told.job, told.nonce);
    if (!attempt)
        return; /* cancelled meanwhile */
    if (cluster_is_system(told.code)) {
        cluster_put_off(cluster, attempt, told.code, told.message);
        return;
    }
    job_attempt_blame(attempt, told.code, "it could not be handed to Slurm: %s", told.message);
    cluster_end(cluster, attempt, JOB_END_RETRY, true);
}

/* ------------------------------------------------------------------------------- polling ---- */

static void
cluster_place(struct cluster *cluster, struct cluster_task *task, const struct message_task *row)
{
    struct core *core = cluster->base.core;
    const char *node = *row->node ? row->node : task->node; /* the node it had before */
    const char *reason = strcmp(row->state, "PENDING") == 0 ? row->reason : "";
    if ((strcmp(task->node, node) == 0 && strcmp(task->reason, reason) == 0) || !core_change(core))
        return;
    snprintf(task->reason, sizeof task->reason, "%s", reason);
    if (node != task->node)
        snprintf(task->node, sizeof task->node, "%s", node);
    for (const struct job_attempt *attempt = task->attempts; attempt;
         attempt = attempt->next_of_task) {
        const int rc =
            queue_placed(core->queue, attempt->base.id, task->nonce, task->node, task->reason);
        if (rc != -EAGAIN && rc != -ENOENT && core_failed(core, rc, "store the node of a job"))
            return;
    }
}

static void
cluster_mark_over(struct cluster *cluster, struct cluster_task *task, const char *state)
{
    snprintf(task->state, sizeof task->state, "%s", state);
    if (!task->over)
        task->over_at = uv_now(&cluster->base.core->loop);
    task->over = true;
}

static void
cluster_see(struct cluster *cluster, const struct message_task *row, int64_t poll)
{
    struct cluster_task *task = tasks_find(&cluster->tasks, row->nonce);
    if (!task) {
        if (row->lives) /* its attempts were returned: its results are not used */
            cluster_cancel(cluster, row->slurm_id);
        return;
    }
    task->seen_poll = poll;
    if (task->phase == TASK_UNSURE)
        cluster_found(cluster, task, row->slurm_id);
    snprintf(task->state, sizeof task->state, "%s", row->state);
    cluster_place(cluster, task, row);
    if (!row->lives)
        cluster_mark_over(cluster, task, row->state);
    else if (task->cancelled)
        cluster_cancel(cluster, task->slurm_id);
}

/* Handles a complete poll: tasks missing from it do not exist in Slurm. Collects all attempts that
 * may have ended. */
static void
cluster_look(struct cluster *cluster)
{
    struct cluster_task *next;
    for (struct cluster_task *task = cluster->tasks.first; task; task = next) {
        next = task->next;
        const bool could_be_known = (task->phase == TASK_UNSURE || task->phase == TASK_SUBMITTED) &&
                                    task->first_poll <= cluster->polls;
        if (could_be_known && task->seen_poll != cluster->polls)
            cluster_mark_over(cluster, task, "");
        task->to_collect = task->over || (*task->state && strcmp(task->state, "PENDING") != 0);
        cluster_drop_if_done(cluster, task);
    }
    cluster_collect(cluster);
}

/* Collects submitted attempts while Slurm is unreachable: they may continue and write manifests. */
static void
cluster_look_without_slurm(struct cluster *cluster)
{
    for (struct cluster_task *task = cluster->tasks.first; task; task = task->next)
        task->to_collect = task->phase == TASK_SUBMITTED;
    cluster_collect(cluster);
}

static void
cluster_handle_tasks(struct cluster *cluster, struct proto_reader *reader)
{
    const struct core *core = cluster->base.core;
    struct message_tasks told;
    struct message_task row;
    if (message_read_tasks(reader, &told))
        return;
    if (!cluster->polling || told.number != cluster->polls) {
        reader->error = -EBADMSG;
        return;
    }
    while (message_next_task(reader, &row))
        cluster_see(cluster, &row, told.number);
    if (!told.last)
        return;
    cluster->polling = false;
    cluster->looked = told.number;
    cluster->poll_due =
        uv_now(&core->loop) + (uint64_t)(1000 * core->conf->compute.slurm.poll_seconds);
    cluster_set_away(cluster, told.code != CODE_NONE);
    if (cluster->away) {
        cluster_tell_trouble(cluster, told.code, told.message);
        cluster_look_without_slurm(cluster);
        return;
    }
    if (!cluster->hold_until) /* the last rejection must stay visible */
        cluster_tell_trouble(cluster, CODE_NONE, "");
    cluster_look(cluster);
}

/* ---------------------------------------------------------------------------- collecting ---- */

/* Handles an attempt without a visible manifest. */
static void
cluster_miss(struct cluster *cluster, struct job_attempt *attempt)
{
    const struct cluster_task *task = attempt->task;
    const uint64_t now = uv_now(&cluster->base.core->loop);
    const bool completed = strcmp(task->state, "COMPLETED") == 0;
    if (!task->over || attempt->asked_at < task->over_at ||
        (completed && now < task->over_at + GRACE_MS))
        return; /* the next poll checks again */
    cluster_lose(cluster, attempt);
}

static void
cluster_handle_collected(struct cluster *cluster, struct proto_reader *reader)
{
    struct message_collected told;
    if (message_read_collected(reader, &told))
        return;
    struct job_attempt *attempt = cluster_attempt(cluster, told.job, told.nonce);
    if (!attempt || !attempt->collecting || cluster->reported) {
        reader->error = -EBADMSG; /* it was not requested */
        return;
    }
    attempt->collecting = false;
    if (--cluster->collecting == CLUSTER_COLLECTS / 2)
        cluster_collect(cluster);
    if (told.has_ended) {
        job_attempt_forget_report(attempt); /* of a process that died while it sent the report */
        cluster->reported = attempt;
    } else if (attempt->cancelled) {
        cluster_end(cluster, attempt, JOB_END_CANCELLED, true);
    } else {
        if (told.code != CODE_NONE)
            log_warn("attempt.unreadable", LOG_INT("job", told.job),
                     LOG_STR("code", code_name(told.code)), LOG_STR("message", told.message));
        cluster_miss(cluster, attempt);
    }
}

static void
cluster_handle_done(struct cluster *cluster, struct proto_reader *reader)
{
    struct job_attempt *attempt = cluster->reported;
    struct message_done told;
    enum job_end end;
    if (message_read_done(reader, &told))
        return;
    int error = attempt && told.job == attempt->base.id
                    ? job_attempt_hear_done(attempt, reader, &told, &end)
                    : -EBADMSG;
    if (error) {
        reader->error = error;
        return;
    }
    cluster->reported = NULL;
    if (end == JOB_END_DONE || end == JOB_END_EMPTY || end == JOB_END_REVIEW)
        nodes_well(&cluster->nodes, attempt->task->node);
    cluster_end(cluster, attempt, end, true);
}

static void
cluster_handle_measurements(struct cluster *cluster, struct proto_reader *reader)
{
    union message_any told;
    if (message_read(reader, reader->type, &told) == 0)
        reader->error = job_attempt_read_measurements(cluster->reported, reader, &told);
}

/* ------------------------------------------------------------------------------- folders ---- */

/* Returns whether the folder's attempt is running, or its outcome not on disk yet. */
static bool
cluster_needs(const struct cluster *cluster, const struct message_folder *row)
{
    const struct job_attempt *attempt =
        (const struct job_attempt *)attempts_find(cluster->base.attempts, row->job);
    return attempt && strcmp(attempt->place.nonce, row->nonce) == 0;
}

static void
cluster_handle_folders(struct cluster *cluster, struct proto_reader *reader)
{
    struct message_folders told;
    struct message_folder row;
    if (message_read_folders(reader, &told))
        return;
    while (message_next_folder(reader, &row)) {
        struct job_attempt left = {.number = (int32_t)row.number};
        if (cluster_needs(cluster, &row))
            continue;
        left.base.id = row.job;
        snprintf(left.place.nonce, sizeof left.place.nonce, "%s", row.nonce);
        cluster_dismiss(cluster, &left, false);
    }
}

void
cluster_frame(struct cluster *cluster, struct proto_reader *reader)
{
    switch ((int)reader->type) {
    case PROTO_SUBMITTED:
        cluster_handle_submitted(cluster, reader);
        break;
    case PROTO_UNFIT:
        cluster_handle_unfit(cluster, reader);
        break;
    case PROTO_TASKS:
        cluster_handle_tasks(cluster, reader);
        break;
    case PROTO_COLLECTED:
        cluster_handle_collected(cluster, reader);
        break;
    case PROTO_DONE:
        cluster_handle_done(cluster, reader);
        break;
    case PROTO_FEATURES:
    case PROTO_HISTOGRAM:
    case PROTO_SEGMENTS:
    case PROTO_BREACHES:
        cluster_handle_measurements(cluster, reader);
        break;
    case PROTO_FOLDERS:
        cluster_handle_folders(cluster, reader);
        break;
    default:
        reader->error = -EBADMSG;
    }
}
