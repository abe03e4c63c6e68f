/*
 * jobs.c - see jobs.h.
 *
 * A lane is busy from the moment its job is chosen until the worker says DONE or is gone; what then
 * becomes of the job is outcome.c's. When a worker dies
 *
 *     by itself, for its silence or for a broken frame   each job in it is charged the attempt
 *     because one job outlived its deadline              that one is charged, the others go back
 *     by our order (drain, replacement)                  all go back, no attempt counts
 *     after it lost its device                           all go back: what it ran it has told
 *
 * When several jobs were in a worker that died by itself, or lost its device, each that did not end
 * well is a suspect: even one whose attempts are used up then gets another, alone, so that it does
 * not fail for its neighbour's fault.
 */
#include "service/daemon/jobs/jobs.h"

#include "service/common/clock.h"
#include "service/common/crash_point.h"
#include "service/common/job.h"
#include "service/common/log.h"
#include "service/common/messages.h"
#include "service/common/role.h"
#include "service/daemon/jobs/outcome.h"
#include "service/daemon/jobs/scheduler.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READY_LIMIT 64    /* jobs looked at in a batch: more than lanes, so that alone ones show */
#define STOP_MILLIS 10000 /* between STOP_JOB and the end of the worker */
#define MAX_LANES   (SCHED_MAX_LANES / WORKERS_MAX)
#define DEVICE_LOST "COMPUTE_DEVICE_LOST" /* the worker's code */
#define WORKER_NAME "worker-%d"           /* in the database: its number */

struct lane {
    struct jobs *jobs;
    size_t worker; /* its number */
    int number;
    struct outcome *running; /* NULL: idle */
    bool alone;
    bool told;      /* RUN was sent */
    bool cancelled; /* recorded so already: what the worker says of it does not matter */
    bool overdue;
    uint64_t deadline_at, stop_at; /* of the loop's clock; stop_at 0: not told to stop */
};

/* The lanes of one worker: lane_count in use. */
struct crew {
    struct lane lanes[MAX_LANES];
    size_t lane_count;
    size_t suspects; /* jobs that were there when its device was lost; 0: it was not */
};

struct jobs {
    struct core *core;
    struct crew crews[WORKERS_MAX]; /* by the worker's number; they never move */
    struct outcomes *outcomes;
};

static struct lane
idle_lane(struct jobs *jobs, size_t worker, int number)
{
    return (struct lane){.jobs = jobs, .worker = worker, .number = number};
}

/* ------------------------------------------------------------------------------ the end ---- */

/* Takes the job out of its lane. */
static void
end_job(struct lane *lane, enum outcome_end end, bool last_chance)
{
    struct jobs *jobs = lane->jobs;
    outcome_end(lane->running, lane->cancelled ? OUTCOME_CANCELLED : end, last_chance);
    *lane = idle_lane(jobs, lane->worker, lane->number);
    due_now(&jobs->core->jobs_due);
}

/* The job goes back as if it had not been begun. */
static void
give_back(struct lane *lane, const char *why)
{
    outcome_blame(lane->running, "RETURNED", "%s", why);
    end_job(lane, OUTCOME_RETURNED, true);
}

static void
charge_overdue(struct lane *lane)
{
    outcome_blame(lane->running, "DEADLINE_EXCEEDED",
                  "attempt %d took longer than jobs.deadline_seconds (%g s)",
                  outcome_attempts(lane->running), lane->jobs->core->conf->jobs.deadline_seconds);
    end_job(lane, OUTCOME_CRASHED, true);
}

static void
charge_crash(struct lane *lane, bool only_suspect, const struct pool_gone *gone)
{
    struct outcome *outcome = lane->running;
    int attempt = outcome_attempts(outcome);
    if (*gone->why)
        outcome_blame(outcome, "CRASHED", "the worker was ended in attempt %d: %s", attempt,
                      gone->why);
    else if (gone->signal)
        outcome_blame(outcome, "CRASHED", "the worker died in attempt %d of signal %d (%s)",
                      attempt, gone->signal, strsignal(gone->signal));
    else
        outcome_blame(outcome, "CRASHED", "the worker ended in attempt %d with status %d", attempt,
                      (int)gone->exit_status);
    end_job(lane, OUTCOME_CRASHED, only_suspect);
}

static size_t
busy_lanes(const struct crew *crew)
{
    size_t busy = 0;
    for (size_t i = 0; i < crew->lane_count; i++)
        busy += crew->lanes[i].running != NULL;
    return busy;
}

/* Somebody else gave the worker cause to be ended: an overdue neighbour, or the daemon's stop. */
static bool
is_innocent(const struct core *core, const struct crew *crew, const struct pool_gone *gone)
{
    if (gone->ordered || (core->draining && *gone->why) || gone->exit_status == ROLE_EXIT_DEVICE)
        return true;
    for (size_t i = 0; i < crew->lane_count; i++) {
        if (crew->lanes[i].overdue || (crew->lanes[i].cancelled && *gone->why))
            return true;
    }
    return false;
}

static void
empty_lane(struct lane *lane, bool innocent, bool only_suspect, const struct pool_gone *gone)
{
    if (lane->cancelled)
        end_job(lane, OUTCOME_CANCELLED, true);
    else if (lane->overdue)
        charge_overdue(lane);
    else if (innocent || !lane->told)
        give_back(lane, "the worker was stopped");
    else
        charge_crash(lane, only_suspect, gone);
}

void
jobs_worker_gone(struct jobs *jobs, size_t worker, const struct pool_gone *gone)
{
    struct crew *crew = &jobs->crews[worker];
    bool innocent = is_innocent(jobs->core, crew, gone), alone = busy_lanes(crew) == 1;
    for (size_t i = 0; i < crew->lane_count; i++) {
        if (crew->lanes[i].running)
            empty_lane(&crew->lanes[i], innocent, alone, gone);
    }
    crew->suspects = 0;
}

/* It has read what the configuration says of lanes by now, and runs nothing yet. */
void
jobs_worker_ready(struct jobs *jobs, size_t worker)
{
    struct crew *crew = &jobs->crews[worker];
    int wanted = jobs->core->conf->compute.lanes;
    crew->lane_count = wanted < 1 ? 1 : wanted > MAX_LANES ? MAX_LANES : (size_t)wanted;
    for (size_t i = 0; i < crew->lane_count; i++)
        crew->lanes[i] = idle_lane(jobs, worker, (int)i);
    due_now(&jobs->core->jobs_due);
}

/* ------------------------------------------------------------------------------- frames ---- */

static struct lane *
find_in_crew(struct crew *crew, int64_t job)
{
    for (size_t i = 0; i < crew->lane_count; i++) {
        if (crew->lanes[i].running && outcome_job(crew->lanes[i].running) == job)
            return &crew->lanes[i];
    }
    return NULL;
}

static struct lane *
find_lane(struct jobs *jobs, int64_t job)
{
    struct lane *lane = NULL;
    for (size_t i = 0; i < WORKERS_MAX && !lane; i++)
        lane = find_in_crew(&jobs->crews[i], job);
    return lane;
}

/* Its word for it is known: the job ends so. */
static void
end_as_told(struct lane *lane, enum outcome_end end)
{
    const struct crew *crew = &lane->jobs->crews[lane->worker];
    if (end == OUTCOME_DONE || end == OUTCOME_EMPTY)
        workers_proven(lane->jobs->core->workers, lane->worker);
    if (crew->suspects && end == OUTCOME_RETRY &&
        strcmp(outcome_code(lane->running), DEVICE_LOST) == 0)
        end_job(lane, OUTCOME_CRASHED, crew->suspects == 1);
    else
        end_job(lane, end, true);
}

static void
hear_done(struct jobs *jobs, size_t worker, struct proto_reader *reader)
{
    struct message_done told;
    if (message_read_done(reader, &told))
        return;
    struct lane *lane = find_in_crew(&jobs->crews[worker], told.job);
    if (!lane || !lane->told) {
        reader->error = -EBADMSG; /* not a job it has */
        return;
    }
    enum outcome_end end = OUTCOME_RETRY;
    int error = outcome_read(lane->running, reader, &told, &end);
    if (error == -ENOMEM) {
        outcome_blame(lane->running, "OUT_OF_MEMORY",
                      "the daemon had no memory to note how the job ended");
        end_job(lane, OUTCOME_RETRY, true);
    } else if (error) {
        reader->error = error; /* the pool ends the worker, and that ends the job */
    } else {
        end_as_told(lane, end);
    }
}

static void
hear_features(struct jobs *jobs, size_t worker, struct proto_reader *reader)
{
    struct message_features told;
    if (message_read_features(reader, &told))
        return;
    struct lane *lane = find_in_crew(&jobs->crews[worker], told.job);
    if (!lane || !lane->told)
        reader->error = -EBADMSG; /* not a job it has */
    else
        reader->error = outcome_read_features(lane->running, reader, &told);
}

static void
hear_histogram(struct jobs *jobs, size_t worker, struct proto_reader *reader)
{
    struct message_histogram told;
    if (message_read_histogram(reader, &told))
        return;
    struct lane *lane = find_in_crew(&jobs->crews[worker], told.job);
    if (!lane || !lane->told)
        reader->error = -EBADMSG; /* not a job it has */
    else
        reader->error = outcome_read_histogram(lane->running, reader, &told);
}

static void
hear_device_lost(struct jobs *jobs, size_t worker, struct proto_reader *reader)
{
    struct message_device_lost told;
    if (message_read_device_lost(reader, &told))
        return;
    jobs->crews[worker].suspects = busy_lanes(&jobs->crews[worker]);
    workers_device_lost(jobs->core->workers, worker, told.why);
}

static void
hear_progress(struct jobs *jobs, size_t worker, struct proto_reader *reader)
{
    struct message_progress told;
    if (message_read_progress(reader, &told) == 0 && find_in_crew(&jobs->crews[worker], told.job))
        log_debug("job.progress", LOG_INT("job", told.job), LOG_STR("stage", told.stage),
                  LOG_NUM("fraction", told.fraction));
}

void
jobs_frame(struct jobs *jobs, size_t worker, struct proto_reader *reader)
{
    if (reader->type == PROTO_DONE)
        hear_done(jobs, worker, reader);
    else if (reader->type == PROTO_PROGRESS)
        hear_progress(jobs, worker, reader);
    else if (reader->type == PROTO_FEATURES)
        hear_features(jobs, worker, reader);
    else if (reader->type == PROTO_HISTOGRAM)
        hear_histogram(jobs, worker, reader);
    else if (reader->type == PROTO_DEVICE_LOST)
        hear_device_lost(jobs, worker, reader);
    else
        reader->error = -EBADMSG;
}

/* ----------------------------------------------------------------------------- starting ---- */

static void
send_run(void *context, int status)
{
    struct lane *lane = context;
    struct jobs *jobs = lane->jobs;
    struct outcome *running = lane->running;
    if (!running || lane->told)
        return; /* the worker went meanwhile; what runs here now was told by its own call */
    if (status) {
        *lane = idle_lane(jobs, lane->worker, lane->number);
        outcome_free(running);
        return;
    }
    crash_point("daemon_after_running_before_run");
    lane->deadline_at =
        uv_now(&jobs->core->loop) + (uint64_t)(1000 * jobs->core->conf->jobs.deadline_seconds);
    struct proto_writer writer;
    char *file = spool_job_file(jobs->core->root, outcome_job(running));
    const struct message_run run = {.job = outcome_job(running), .job_file = file};
    message_write_run(&writer, &run);
    int slot = workers_slot(jobs->core->workers, lane->worker);
    int error = file ? pool_send(jobs->core->pool, slot, &writer) : -ENOMEM;
    if (!file)
        proto_release(&writer);
    free(file);
    lane->told = error == 0;
    if (error)
        give_back(lane, "the worker could not be told");
    else
        log_info("job.started", LOG_INT("job", outcome_job(running)),
                 LOG_INT("worker", lane->worker), LOG_INT("lane", lane->number),
                 LOG_INT("attempt", outcome_attempts(running)));
}

static int
write_job_file(struct core *core, const struct queue_job *job)
{
    struct job_spec spec = {.id = job->id,
                            .stack = job->stack,
                            .settings = job->settings,
                            .output = spool_output_folder(core->root, job->id),
                            .device_serial_number = core->conf->device_serial_number};
    char *file = spool_job_file(core->root, job->id);
    int error = queue_series_paths(core->queue, job->series_id, &spec.inputs, &spec.input_count);
    for (size_t i = 0; i < spec.input_count; i++) {
        char *path = core_path(core, spec.inputs[i]);
        free(spec.inputs[i]);
        spec.inputs[i] = path;
        error = path ? error : -ENOMEM;
    }
    if (!error)
        error = file && spec.output ? job_spec_write(&spec, file) : -ENOMEM;
    for (size_t i = 0; i < spec.input_count; i++)
        free(spec.inputs[i]);
    free(spec.inputs);
    free(spec.output);
    free(file);
    return error;
}

/* 0, or -errno and the job is READY as before. */
static int
begin_job(struct lane *lane, const struct queue_job *job)
{
    struct core *core = lane->jobs->core;
    char worker[24];
    struct outcome *outcome = outcome_new(lane->jobs->outcomes, job->id, job->attempts + 1);
    if (!outcome)
        return -ENOMEM;
    snprintf(worker, sizeof worker, WORKER_NAME, (int)lane->worker);
    int error = write_job_file(core, job);
    if (!error)
        error = queue_start_job(core->queue, job->id, worker, lane->number, clock_unix_ms());
    if (error) {
        spool_sweep_job(core->root, job->id);
        outcome_free(outcome);
        return error;
    }
    lane->running = outcome;
    lane->alone = job->alone;
    error = batch_on_commit(core->batch, send_run, lane);
    if (error) {
        batch_abort(core->batch, error);
        send_run(lane, error);
    }
    return error;
}

struct ready {
    struct queue_job *jobs;
    struct sched_job *choices; /* the same, for the scheduler */
    size_t count;
};

static void
free_ready(struct ready *ready)
{
    for (size_t i = 0; i < ready->count; i++)
        queue_job_clear(&ready->jobs[i]);
    free(ready->jobs);
    free(ready->choices);
}

/* Its number; -1: the name is nobody's. */
static int
worker_named(const char *name)
{
    int number;
    return sscanf(name, WORKER_NAME, &number) == 1 ? number : -1;
}

static int
read_ready(struct jobs *jobs, struct ready *ready)
{
    *ready = (struct ready){0};
    int error =
        queue_ready(jobs->core->queue, clock_unix_ms(), READY_LIMIT, &ready->jobs, &ready->count);
    if (error)
        return error;
    ready->choices = calloc(ready->count + 1, sizeof *ready->choices);
    if (!ready->choices) {
        free_ready(ready);
        return -ENOMEM;
    }
    for (size_t i = 0; i < ready->count; i++) {
        int64_t job = ready->jobs[i].id;
        /* READY again, but still in the lane that has to stop it, or not yet swept. */
        bool held = find_lane(jobs, job) || outcomes_hold(jobs->outcomes, job);
        ready->choices[i] = (struct sched_job){.id = job,
                                               .not_before_ms = held ? INT64_MAX : 0,
                                               .alone = ready->jobs[i].alone,
                                               .avoid = worker_named(ready->jobs[i].failed_on)};
    }
    return 0;
}

/* What the scheduler sees, and which lane each of these is. */
struct floor {
    struct sched_lane seen[SCHED_MAX_LANES];
    struct lane *lanes[SCHED_MAX_LANES];
    size_t count;
};

static void
describe_crew(struct jobs *jobs, size_t worker, struct floor *floor)
{
    struct crew *crew = &jobs->crews[worker];
    bool usable = workers_usable(jobs->core->workers, worker);
    for (size_t i = 0; i < crew->lane_count; i++) {
        struct lane *lane = &crew->lanes[i];
        floor->seen[floor->count] =
            (struct sched_lane){.worker = (int)worker,
                                .usable = usable,
                                .job = lane->running ? outcome_job(lane->running) : 0,
                                .alone = lane->alone};
        floor->lanes[floor->count++] = lane;
    }
}

static void
describe_floor(struct jobs *jobs, struct floor *floor)
{
    floor->count = 0;
    for (size_t i = 0; i < workers_count(jobs->core->workers); i++)
        describe_crew(jobs, i, floor);
}

static bool
has_room(const struct jobs *jobs)
{
    for (size_t i = 0; i < workers_count(jobs->core->workers); i++) {
        const struct crew *crew = &jobs->crews[i];
        if (workers_usable(jobs->core->workers, i) && busy_lanes(crew) < crew->lane_count)
            return true;
    }
    return false;
}

/* In the open batch. */
static int
start_ready(struct jobs *jobs)
{
    struct ready ready;
    int error = read_ready(jobs, &ready);
    if (error)
        return error;
    struct floor floor;
    struct sched_assignment picks[SCHED_MAX_LANES];
    describe_floor(jobs, &floor);
    size_t count = sched_pick(ready.choices, ready.count, floor.seen, floor.count,
                              core_closed(jobs->core), clock_unix_ms(), picks);
    for (size_t i = 0; i < count && !error; i++) {
        error = begin_job(floor.lanes[picks[i].lane], &ready.jobs[picks[i].job]);
        if (error == -EAGAIN)
            error = 0; /* a slice came in the same batch: its series gathers again */
    }
    free_ready(&ready);
    return error;
}

static void
start_jobs(struct jobs *jobs)
{
    struct core *core = jobs->core;
    if (core_closed(core) || !has_room(jobs) || !due_take(&core->jobs_due))
        return; /* each of these looks again when it is over */
    if (!core_change(core))
        return;
    int error = start_ready(jobs);
    if (error)
        core_failed(core, error, "start a job");
    int64_t due_ms;
    if (queue_next_due(core->queue, &due_ms) == 0)
        due_in(&core->jobs_due, due_ms - clock_unix_ms());
}

void
jobs_before_commit(struct jobs *jobs)
{
    if (jobs->core->trouble && !jobs->core->probing)
        return;
    outcomes_record(jobs->outcomes);
    start_jobs(jobs);
}

/* ----------------------------------------------------------------------------- stopping ---- */

static void
tell_to_stop(struct lane *lane)
{
    struct core *core = lane->jobs->core;
    if (!lane->told || lane->stop_at)
        return;
    lane->stop_at = uv_now(&core->loop) + STOP_MILLIS;
    struct proto_writer writer;
    message_write_stop_job(&writer, &(struct message_stop_job){.job = outcome_job(lane->running)});
    /* A worker that left ends the job as well. */
    pool_send(core->pool, workers_slot(core->workers, lane->worker), &writer);
}

struct stop_order {
    struct jobs *jobs;
    int64_t job;
};

static void
on_cancelled(void *context, int status)
{
    struct stop_order *order = context;
    struct lane *lane = status ? NULL : find_lane(order->jobs, order->job);
    if (lane) {
        lane->cancelled = true;
        tell_to_stop(lane);
    }
    free(order);
}

void
jobs_stop(struct jobs *jobs, int64_t job)
{
    struct stop_order *order = malloc(sizeof *order);
    if (order)
        *order = (struct stop_order){jobs, job};
    /* Without memory it runs to its end, and its outcome comes too late to be recorded. */
    if (order && batch_on_commit(jobs->core->batch, on_cancelled, order))
        free(order);
}

void
jobs_stop_all(struct jobs *jobs)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        struct crew *crew = &jobs->crews[i];
        for (size_t k = 0; k < crew->lane_count; k++) {
            if (crew->lanes[k].running)
                tell_to_stop(&crew->lanes[k]);
        }
    }
}

static void
watch_lane(struct lane *lane, uint64_t now)
{
    struct core *core = lane->jobs->core;
    if (!lane->told)
        return;
    int slot = workers_slot(core->workers, lane->worker);
    if (now > lane->deadline_at) {
        lane->overdue = true;
        pool_kill(core->pool, slot, "a job outlived its deadline");
    } else if (lane->stop_at && now > lane->stop_at) {
        pool_kill(core->pool, slot, "it did not stop a job that it was told to stop");
    }
}

void
jobs_tick(struct jobs *jobs)
{
    uint64_t now = uv_now(&jobs->core->loop);
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        for (size_t k = 0; k < jobs->crews[i].lane_count; k++)
            watch_lane(&jobs->crews[i].lanes[k], now);
    }
}

size_t
jobs_running(const struct jobs *jobs)
{
    size_t running = 0;
    for (size_t i = 0; i < WORKERS_MAX; i++)
        running += busy_lanes(&jobs->crews[i]);
    return running;
}

size_t
jobs_unrecorded(const struct jobs *jobs)
{
    return outcomes_count(jobs->outcomes);
}

/* ------------------------------------------------------------------------- open, close ---- */

int
jobs_open(struct core *core, struct jobs **out)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return -ENOMEM;
    int error = outcomes_open(core, &jobs->outcomes);
    if (error) {
        free(jobs);
        return error;
    }
    jobs->core = core;
    due_now(&core->jobs_due);
    *out = jobs;
    return 0;
}

void
jobs_close(struct jobs *jobs)
{
    if (!jobs)
        return;
    outcomes_close(jobs->outcomes);
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        struct crew *crew = &jobs->crews[i];
        for (size_t k = 0; k < crew->lane_count; k++) {
            if (crew->lanes[k].running)
                outcome_free(crew->lanes[k].running);
        }
    }
    free(jobs);
}
