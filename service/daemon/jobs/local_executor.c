/*
 * local_executor.c - see executor.h.
 *
 * A slot is taken from the moment its job is picked until the worker sends DONE or is gone. job_attempt.c then records
 * the outcome. If a worker dies
 *
 *     by itself, by silence or a broken frame           each of its jobs is charged the attempt
 *     because one job exceeded its deadline             that job is charged, the others return
 *       and did not stop after STOP_JOB
 *     by order of the daemon (drain, replacement)       all its jobs return, no attempt counts
 *     after it lost its device                          its jobs return: finished ones are reported
 *
 * If several jobs were in a worker that died by itself or lost its device, each that did not end well may be the cause.
 * Even a job whose attempts are used up then gets one more attempt, alone, so that it does not fail because of a
 * neighbour.
 */
#include "service/daemon/jobs/executor.h"

#include "service/common/clock.h"
#include "service/common/role.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_MILLIS 10000 /* between STOP_JOB and the end of the worker */
#define MAX_SLOTS   (SCHED_MAX_SLOTS / WORKERS_MAX)
#define WORKER_NAME "worker-%d" /* in the database; with its number */

struct worker_slots {
    size_t count;
    size_t lost_together; /* jobs that were running when its device was lost; 0: it was not lost */
};

struct local_executor {
    struct executor base;
    struct worker_slots workers[WORKERS_MAX]; /* indexed by the worker's number */
};

/* Returns the worker's next running attempt, or NULL after the last. Ended attempts stay in the list. */
static struct job_attempt *
local_next(const struct local_executor *local, size_t worker, const struct job_attempt *after)
{
    struct attempt *base = after ? after->base.next : local->base.attempts->first;
    for (; base; base = base->next) {
        struct job_attempt *attempt = (struct job_attempt *)base;
        if (!base->ended && attempt->executor == &local->base && attempt->place.worker == worker)
            return attempt;
    }
    return NULL;
}

static size_t
local_busy(const struct local_executor *local, size_t worker)
{
    size_t busy = 0;
    for (const struct job_attempt *attempt = NULL; (attempt = local_next(local, worker, attempt));)
        busy++;
    return busy;
}

/* Returns the attempt that the worker was sent, or NULL. */
static struct job_attempt *
local_find(const struct local_executor *local, size_t worker, int64_t job)
{
    struct job_attempt *attempt = NULL;
    while ((attempt = local_next(local, worker, attempt)) && attempt->base.id != job)
        ;
    return attempt && attempt->started ? attempt : NULL;
}

static int
local_pool_slot(const struct local_executor *local, const struct job_attempt *attempt)
{
    return workers_slot(local->base.core->workers, attempt->place.worker);
}

/* ------------------------------------------------------------------------ a worker's end ---- */

static void
local_charge_overdue(struct job_attempt *attempt)
{
    job_attempt_set_reason(attempt, CODE_DEADLINE_EXCEEDED, "attempt %d took longer than %s (%g s)", attempt->number,
                           attempt->deadline_seconds > 0 ? "its pipeline's deadline_seconds" : "jobs.deadline_seconds",
                           job_attempt_deadline(attempt));
    job_attempt_end(attempt, JOB_END_CRASHED, true);
}

/* Returns whether the worker ended because of another job, or was ended by the daemon. */
static bool
local_is_innocent(const struct local_executor *local, size_t worker, const struct pool_gone *gone)
{
    if (gone->ordered || (local->base.core->draining && *gone->why) || gone->exit_status == ROLE_EXIT_DEVICE)
        return true;
    for (const struct job_attempt *attempt = NULL; (attempt = local_next(local, worker, attempt));) {
        if ((attempt->overdue || attempt->cancelled) && *gone->why)
            return true;
    }
    return false;
}

void
local_executor_worker_gone(struct local_executor *local, size_t worker, const struct pool_gone *gone)
{
    bool innocent = local_is_innocent(local, worker, gone);
    bool alone = local_busy(local, worker) == 1;
    for (struct job_attempt *attempt = NULL; (attempt = local_next(local, worker, attempt));) {
        if (attempt->cancelled)
            job_attempt_end(attempt, JOB_END_CANCELLED, true);
        else if (attempt->overdue)
            local_charge_overdue(attempt);
        else if (innocent || !attempt->started)
            job_attempt_return(attempt, "the worker was stopped");
        else {
            if (*gone->why)
                job_attempt_set_reason(attempt, CODE_CRASHED, "the worker was ended in attempt %d: %s", attempt->number,
                                       gone->why);
            else if (gone->signal)
                job_attempt_set_reason(attempt, CODE_CRASHED, "the worker died in attempt %d of signal %d (%s)",
                                       attempt->number, gone->signal, strsignal(gone->signal));
            else
                job_attempt_set_reason(attempt, CODE_CRASHED, "the worker ended in attempt %d with status %d",
                                       attempt->number, (int)gone->exit_status);
            job_attempt_end(attempt, JOB_END_CRASHED, alone);
        }
    }
    local->workers[worker].lost_together = 0;
}

/* The worker has read compute.lanes (its slots) by now and runs no job yet. */
void
local_executor_worker_ready(struct local_executor *local, size_t worker)
{
    int wanted = local->base.core->conf->compute.lanes;
    local->workers[worker].count = wanted < 1 ? 1 : wanted > MAX_SLOTS ? MAX_SLOTS : (size_t)wanted;
    due_now(&local->base.core->jobs_due);
}

/* ------------------------------------------------------------------------------- frames ---- */

static void
local_handle_done(struct local_executor *local, size_t worker, struct proto_reader *reader,
                  struct message_done *message)
{
    enum job_end end;
    struct job_attempt *attempt = local_find(local, worker, message->job);
    int error = attempt ? job_attempt_on_done(attempt, reader, message, &end) : -EBADMSG;
    if (error) {
        reader->error = error; /* the pool then kills the worker, which ends its jobs */
        return;
    }
    const size_t together = local->workers[worker].lost_together;
    const bool well = end == JOB_END_DONE || end == JOB_END_EMPTY || end == JOB_END_REVIEW;
    if (well)
        workers_proven(local->base.core->workers, worker);
    if (attempt->overdue && !well)
        local_charge_overdue(attempt);
    else if (together && end == JOB_END_RETRY && attempt->code == CODE_COMPUTE_DEVICE_LOST)
        job_attempt_end(attempt, JOB_END_CRASHED, together == 1);
    else
        job_attempt_end(attempt, end, true);
}

void
local_executor_frame(struct local_executor *local, size_t worker, struct proto_reader *reader)
{
    union message_any message;
    const enum proto_type type = reader->type;
    if (type != PROTO_DONE && type != PROTO_PROGRESS && type != PROTO_DEVICE_LOST && !message_is_measurement(type)) {
        reader->error = -EBADMSG;
    } else if (message_read(reader, type, &message)) {
        return; /* the reader keeps the error */
    } else if (type == PROTO_DONE) {
        local_handle_done(local, worker, reader, &message.done);
    } else if (type == PROTO_PROGRESS) {
        struct job_attempt *attempt = local_find(local, worker, message.progress.job);
        reader->error = attempt ? job_attempt_on_progress(attempt, &message.progress) : -EBADMSG;
    } else if (type == PROTO_DEVICE_LOST) {
        local->workers[worker].lost_together = local_busy(local, worker);
        workers_device_lost(local->base.core->workers, worker, message.device_lost.why);
    } else {
        reader->error =
            job_attempt_read_measurements(local_find(local, worker, message.features.job), reader, &message);
    }
}

/* --------------------------------------------------------------------- executor interface ---- */

static bool
local_takes(const struct executor *base, const struct conf_pipeline *pipeline)
{
    if (pipeline->executor == CONF_ANYWHERE)
        return base->core->conf->compute.executor != CONF_EXECUTOR_SLURM;
    return pipeline->executor == CONF_HERE;
}

static size_t
local_room(const struct executor *base)
{
    const struct local_executor *local = (const struct local_executor *)base;
    size_t idle = 0;
    for (size_t i = 0; i < workers_count(base->core->workers); i++) {
        if (workers_usable(base->core->workers, i))
            idle += local->workers[i].count - local_busy(local, i);
    }
    return idle < EXECUTOR_MAX_JOBS ? idle : EXECUTOR_MAX_JOBS;
}

static size_t
local_pick(struct executor *base, const struct queue_job *jobs, size_t count, struct executor_pick *picks)
{
    const struct local_executor *local = (const struct local_executor *)base;
    struct sched_slot slots[SCHED_MAX_SLOTS];
    struct sched_job choices[EXECUTOR_MAX_JOBS];
    struct sched_assignment chosen[SCHED_MAX_SLOTS];
    size_t slot_count = 0, first[WORKERS_MAX];
    for (size_t i = 0; i < workers_count(base->core->workers); i++) {
        struct sched_slot *own = &slots[slot_count];
        const bool usable = workers_usable(base->core->workers, i);
        first[i] = slot_count;
        slot_count += local->workers[i].count;
        for (size_t k = 0; k < local->workers[i].count; k++)
            own[k] = (struct sched_slot){.worker = (int)i, .usable = usable};
        for (const struct job_attempt *attempt = NULL; (attempt = local_next(local, i, attempt));) {
            own[attempt->place.slot].job = attempt->base.id;
            own[attempt->place.slot].alone = attempt->alone;
        }
    }
    for (size_t i = 0; i < count; i++) {
        choices[i] =
            (struct sched_job){.id = jobs[i].id, .not_before_ms = jobs[i].not_before_ms, .alone = jobs[i].alone};
        if (sscanf(jobs[i].failed_on, WORKER_NAME, &choices[i].avoid) != 1)
            choices[i].avoid = -1;
    }
    size_t picked = sched_pick(choices, count, slots, slot_count, core_closed(base->core), clock_unix_ms(), chosen);
    for (size_t i = 0; i < picked; i++) {
        size_t worker = (size_t)slots[chosen[i].slot].worker;
        struct job_place *place = &picks[i].place;
        picks[i].job = chosen[i].job;
        place->worker = worker;
        place->slot = (int32_t)(chosen[i].slot - first[worker]);
        snprintf(place->name, sizeof place->name, WORKER_NAME, (int)worker);
    }
    return picked;
}

static int
local_start(struct executor *base, struct job_attempt *attempt)
{
    struct core *core = base->core;
    char *file = spool_job_file(core->root, attempt->base.id);
    if (!file)
        return -ENOMEM;
    struct proto_writer writer;
    message_write_run(&writer, &(struct message_run){.job = attempt->base.id, .job_file = file});
    free(file);
    const struct local_executor *local = (struct local_executor *)base;
    attempt->deadline_at = uv_now(&core->loop) + (uint64_t)(1000 * job_attempt_deadline(attempt));
    return pool_send(core->pool, local_pool_slot(local, attempt), &writer);
}

static void
local_stop(struct executor *base, struct job_attempt *attempt)
{
    struct core *core = base->core;
    if (attempt->stop_at)
        return;
    attempt->stop_at = uv_now(&core->loop) + STOP_MILLIS;
    struct proto_writer writer;
    message_write_stop_job(&writer, &(struct message_stop_job){.job = attempt->base.id});
    /* The end of a worker also ends the job. */
    pool_send(core->pool, local_pool_slot((struct local_executor *)base, attempt), &writer);
}

static void
local_tick(struct executor *base)
{
    const struct local_executor *local = (const struct local_executor *)base;
    const uint64_t now = uv_now(&base->core->loop);
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        for (struct job_attempt *attempt = NULL; (attempt = local_next(local, i, attempt));) {
            if (!attempt->started)
                continue;
            if (now > attempt->deadline_at && !attempt->stop_at) {
                attempt->overdue = true;
                local_stop(base, attempt);
            } else if (attempt->stop_at && now > attempt->stop_at) {
                pool_kill(base->core->pool, local_pool_slot(local, attempt), "it did not stop a job in time");
            }
        }
    }
}

/* -------------------------------------------------------------------------- open, close ---- */

int
local_executor_open(struct core *core, struct local_executor **out)
{
    static const struct executor_ops ops = {local_takes, local_room, local_pick, local_start, local_stop, local_tick};
    struct local_executor *local = calloc(1, sizeof *local);
    if (!local)
        return -ENOMEM;
    local->base = (struct executor){.ops = &ops, .name = "local", .core = core};
    *out = local;
    return 0;
}

void
local_executor_close(struct local_executor *local)
{
    free(local);
}

struct executor *
local_executor_base(struct local_executor *local)
{
    return &local->base;
}
