/* slurm_receive.c - handles the Slurm role's replies; see slurm_executor.h. */
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
slurm_find_attempt(const struct slurm_executor *slurm, int64_t job, const char *nonce)
{
    struct job_attempt *attempt = (struct job_attempt *)attempts_find(slurm->base.attempts, job);
    const bool is_it =
        attempt && attempt->executor == &slurm->base && attempt->task && strcmp(attempt->place.nonce, nonce) == 0;
    return is_it ? attempt : NULL;
}

/* Stores the Slurm job's number in each row. A row that cannot be written now is written at a later poll, and must not
 * stop the others. */
static void
slurm_set_submitted(struct slurm_executor *slurm, struct slurm_task *task, int64_t slurm_id)
{
    struct core *core = slurm->base.core;
    task->phase = TASK_SUBMITTED;
    task->slurm_id = slurm_id;
    task->first_poll = slurm->polls + 1;
    log_info("slurm.submitted", LOG_INT("slurm_id", slurm_id), LOG_STR("nonce", task->nonce),
             LOG_INT("jobs", task->size));
    crash_point("daemon_before_submitted");
    const struct job_attempt *attempt = core_change(core) ? task->attempts : NULL;
    for (; attempt; attempt = attempt->next_of_task) {
        const int rc = queue_submitted(core->queue, attempt->base.id, task->nonce, slurm_id, clock_unix_ms());
        if (rc != -EAGAIN && rc != -ENOENT && core_failed(core, rc, "store the number of a Slurm job"))
            break;
    }
    if (!task->attempts)
        task->cancelled = true;
    if (task->cancelled)
        slurm_send_cancel(slurm, slurm_id);
}

static void
slurm_handle_submitted(struct slurm_executor *slurm, struct proto_reader *reader)
{
    struct message_submitted message;
    if (message_read_submitted(reader, &message))
        return;
    struct slurm_task *task = tasks_find(&slurm->tasks, message.nonce);
    if (!task || task->phase != TASK_SENT) {
        reader->error = -EBADMSG; /* it was not requested */
    } else if (message.slurm_id > 0) {
        slurm->refusals = 0;
        slurm_report_problem(slurm, CODE_NONE, "");
        slurm_set_submitted(slurm, task, message.slurm_id);
    } else if (message.unsure) {
        slurm_report_problem(slurm, message.code, message.message);
        slurm->unreachable = true;
        task->phase = TASK_UNSURE;
        task->first_poll = slurm->polls + 1;
    } else if (message.code != CODE_NONE) {
        slurm_reject_task(slurm, task, message.code, message.message);
    } else { /* its attempts had no folder */
        task->over = true;
        slurm_drop_if_done(slurm, task);
    }
    slurm_submit_picked(slurm);
}

/* Charges the job an attempt for an unreadable input, as a worker does: the file may become readable. */
static void
slurm_handle_unfit(struct slurm_executor *slurm, struct proto_reader *reader)
{
    struct message_unfit message;
    if (message_read_unfit(reader, &message))
        return;
    struct job_attempt *attempt = slurm_find_attempt(slurm, message.job, message.nonce);
    if (!attempt)
        return; /* cancelled meanwhile */
    /* NONE: the role was ordered to end meanwhile. */
    const bool is_of_system = message.code == CODE_NONE || message.code == CODE_DISK_FULL ||
                              message.code == CODE_IO_ERROR || message.code == CODE_OUT_OF_MEMORY ||
                              message.code == CODE_OUTPUT_UNWRITABLE;
    if (is_of_system) { /* the share or this machine failed, not the job */
        slurm_postpone(slurm, attempt, message.code, message.message);
        return;
    }
    job_attempt_set_reason(attempt, message.code, "it could not be handed to Slurm: %s", message.message);
    slurm_end(slurm, attempt, JOB_END_RETRY, true);
}

static void
slurm_set_node(struct slurm_executor *slurm, struct slurm_task *task, const struct message_task *row)
{
    struct core *core = slurm->base.core;
    const char *node = *row->node ? row->node : task->node; /* the node it had before */
    const char *reason = strcmp(row->state, "PENDING") == 0 ? row->reason : "";
    if ((strcmp(task->node, node) == 0 && strcmp(task->reason, reason) == 0) || !core_change(core))
        return;
    snprintf(task->reason, sizeof task->reason, "%s", reason);
    if (node != task->node)
        snprintf(task->node, sizeof task->node, "%s", node);
    for (const struct job_attempt *attempt = task->attempts; attempt; attempt = attempt->next_of_task) {
        const int rc = queue_placed(core->queue, attempt->base.id, task->nonce, task->node, task->reason);
        if (rc != -EAGAIN && rc != -ENOENT && core_failed(core, rc, "store the node of a job"))
            return;
    }
}

static void
slurm_mark_over(struct slurm_executor *slurm, struct slurm_task *task, const char *state)
{
    snprintf(task->state, sizeof task->state, "%s", state);
    if (!task->over)
        task->over_at = uv_now(&slurm->base.core->loop);
    task->over = true;
}

static void
slurm_on_listed(struct slurm_executor *slurm, const struct message_task *row, int64_t poll)
{
    struct slurm_task *task = tasks_find(&slurm->tasks, row->nonce);
    if (!task) {
        if (row->lives) /* its attempts were returned: its results are not used */
            slurm_send_cancel(slurm, row->slurm_id);
        return;
    }
    task->seen_poll = poll;
    if (task->phase == TASK_UNSURE)
        slurm_set_submitted(slurm, task, row->slurm_id);
    snprintf(task->state, sizeof task->state, "%s", row->state);
    slurm_set_node(slurm, task, row);
    if (!row->lives)
        slurm_mark_over(slurm, task, row->state);
    else if (task->cancelled)
        slurm_send_cancel(slurm, task->slurm_id);
}

/* Handles a complete poll: tasks missing from it do not exist in Slurm. Collects all attempts that may have ended. */
static void
slurm_on_complete_poll(struct slurm_executor *slurm)
{
    struct slurm_task *next;
    for (struct slurm_task *task = slurm->tasks.first; task; task = next) {
        next = task->next;
        const bool could_be_known =
            (task->phase == TASK_UNSURE || task->phase == TASK_SUBMITTED) && task->first_poll <= slurm->polls;
        if (could_be_known && task->seen_poll != slurm->polls)
            slurm_mark_over(slurm, task, "");
        task->to_collect = task->over || (*task->state && strcmp(task->state, "PENDING") != 0);
        slurm_drop_if_done(slurm, task);
    }
    slurm_collect(slurm);
}

static void
slurm_handle_tasks(struct slurm_executor *slurm, struct proto_reader *reader)
{
    const struct core *core = slurm->base.core;
    struct message_tasks message;
    struct message_task row;
    if (message_read_tasks(reader, &message))
        return;
    if (!slurm->polling || message.number != slurm->polls) {
        reader->error = -EBADMSG;
        return;
    }
    while (message_next_task(reader, &row))
        slurm_on_listed(slurm, &row, message.number);
    if (!message.last)
        return;
    slurm->polling = false;
    slurm->complete_poll = message.number;
    slurm->poll_due = uv_now(&core->loop) + (uint64_t)(1000 * core->conf->compute.slurm.poll_seconds);
    const bool was_unreachable = slurm->unreachable;
    slurm->unreachable = message.code != CODE_NONE;
    if (slurm->unreachable) {
        slurm_report_problem(slurm, message.code, message.message);
        /* submitted attempts may continue and write manifests meanwhile */
        for (struct slurm_task *task = slurm->tasks.first; task; task = task->next)
            task->to_collect = task->phase == TASK_SUBMITTED;
        slurm_collect(slurm);
        return;
    }
    if (was_unreachable)
        due_now(&slurm->base.core->jobs_due);
    if (!slurm->hold_until) /* the last rejection must stay visible */
        slurm_report_problem(slurm, CODE_NONE, "");
    slurm_on_complete_poll(slurm);
}

static void
slurm_handle_collected(struct slurm_executor *slurm, struct proto_reader *reader)
{
    struct message_collected message;
    if (message_read_collected(reader, &message))
        return;
    struct job_attempt *attempt = slurm_find_attempt(slurm, message.job, message.nonce);
    if (!attempt || !attempt->collecting || slurm->reported) {
        reader->error = -EBADMSG; /* it was not requested */
        return;
    }
    attempt->collecting = false;
    if (--slurm->collecting == SLURM_MAX_COLLECTS / 2)
        slurm_collect(slurm);
    if (message.has_ended) {
        job_attempt_clear_report(attempt); /* of a process that died while it sent the report */
        slurm->reported = attempt;
    } else if (attempt->cancelled) {
        slurm_end(slurm, attempt, JOB_END_CANCELLED, true);
    } else {
        const struct slurm_task *task = attempt->task;
        const bool late =
            strcmp(task->state, "COMPLETED") == 0 && uv_now(&slurm->base.core->loop) < task->over_at + GRACE_MS;
        if (message.code != CODE_NONE)
            log_warn("attempt.unreadable", LOG_INT("job", message.job), LOG_STR("code", code_name(message.code)),
                     LOG_STR("message", message.message));
        /* No manifest is visible. Until the attempt is lost, the next poll checks again. */
        if (task->over && attempt->requested_at >= task->over_at && !late)
            slurm_lose(slurm, attempt);
    }
}

static void
slurm_handle_done(struct slurm_executor *slurm, struct proto_reader *reader)
{
    struct job_attempt *attempt = slurm->reported;
    struct message_done message;
    enum job_end end;
    if (message_read_done(reader, &message))
        return;
    int error =
        attempt && message.job == attempt->base.id ? job_attempt_on_done(attempt, reader, &message, &end) : -EBADMSG;
    if (error) {
        reader->error = error;
        return;
    }
    slurm->reported = NULL;
    if (end == JOB_END_DONE || end == JOB_END_EMPTY || end == JOB_END_REVIEW)
        nodes_well(&slurm->nodes, attempt->task->node);
    slurm_end(slurm, attempt, end, true);
}

static void
slurm_handle_folders(struct slurm_executor *slurm, struct proto_reader *reader)
{
    struct message_folders message;
    struct message_folder row;
    if (message_read_folders(reader, &message))
        return;
    while (message_next_folder(reader, &row)) {
        const struct job_attempt *attempt = (const struct job_attempt *)attempts_find(slurm->base.attempts, row.job);
        struct job_attempt left = {.number = (int32_t)row.number};
        if (attempt && strcmp(attempt->place.nonce, row.nonce) == 0)
            continue; /* it is running, or its outcome is not on disk yet */
        left.base.id = row.job;
        snprintf(left.place.nonce, sizeof left.place.nonce, "%s", row.nonce);
        slurm_send_dismiss(slurm, &left, false);
    }
}

void
slurm_executor_frame(struct slurm_executor *slurm, struct proto_reader *reader)
{
    union message_any message;
    switch ((int)reader->type) {
    case PROTO_SUBMITTED:
        slurm_handle_submitted(slurm, reader);
        break;
    case PROTO_UNFIT:
        slurm_handle_unfit(slurm, reader);
        break;
    case PROTO_TASKS:
        slurm_handle_tasks(slurm, reader);
        break;
    case PROTO_COLLECTED:
        slurm_handle_collected(slurm, reader);
        break;
    case PROTO_DONE:
        slurm_handle_done(slurm, reader);
        break;
    case PROTO_FOLDERS:
        slurm_handle_folders(slurm, reader);
        break;
    default:
        if (!message_is_measurement(reader->type))
            reader->error = -EBADMSG;
        else if (message_read(reader, reader->type, &message) == 0)
            reader->error = job_attempt_read_measurements(slurm->reported, reader, &message);
    }
}
