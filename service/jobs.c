/*
 * jobs.c - see jobs.h.
 *
 * A lane is busy from the moment its job is chosen until the worker says DONE or is gone. What
 * ended a job is an outcome: it is recorded in the turn in which it came; when that cannot be
 * committed it stays in the list and is recorded when the database can be written again. So a
 * result is never lost to a full disk, and nothing new starts meanwhile.
 *
 *     what came                               recorded as
 *     DONE                                    DONE, or EMPTY
 *     RETRY                                   DELAYED, after the last attempt FAILED
 *     REJECT                                  FAILED
 *     STOPPED, worker ended by our order      READY again, attempt not counted
 *     worker died (signal, silence, garbage)  DELAYED and alone from now on, after the last FAILED
 *     deadline                                the same, for the job that outlived it only
 *
 * When several jobs were in a worker that died, each is a suspect: even one whose attempts are used
 * up then gets another, alone, so that it does not fail for its neighbour's fault.
 */
#include "jobs.h"

#include "clock.h"
#include "crash_point.h"
#include "job.h"
#include "layout.h"
#include "log.h"
#include "scheduler.h"
#include "spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READY_LIMIT      64 /* jobs looked at in a turn: more than lanes, so that alone ones show */
#define STOP_MILLIS      10000 /* between STOP_JOB and the end of the worker */
#define SENTENCE_BYTES   256
#define RESULT_MIN_BYTES 36u   /* of one result in a DONE frame */
#define MAX_DUE_MILLIS   60000 /* looks again at least so often: the clock may be set */
#define WORKER_NAME      "worker-0"

enum verdict { FINISHED, FOUND_NOTHING, RETRY, REJECTED, CRASHED, GIVEN_BACK, CANCELLED };

/* How a job ended; made together with its start, so that there is always room to note its end. */
struct outcome {
    struct outcome *next;
    struct jobs *jobs;
    int64_t job;
    int32_t attempts;
    enum verdict verdict;
    bool last_chance; /* with the attempts used up, that was it */
    bool in_turn;     /* written, not committed */
    const char *code, *sentence, *file_a, *file_b;
    char own_sentence[SENTENCE_BYTES];
    struct queue_figures figures;
    struct queue_result *results;
    char **paths; /* of the results; NULL from the first that could not be made */
    size_t result_count;
    uint8_t *frame; /* the DONE that the strings point into, or NULL */
};

struct lane {
    struct jobs *jobs;
    int number;
    struct outcome *running; /* NULL: idle */
    bool alone;
    bool told;      /* RUN was sent */
    bool cancelled; /* recorded so already: what the worker says of it does not matter */
    bool overdue;
    uint64_t deadline_at, stop_at; /* of the loop's clock; stop_at 0: not told to stop */
};

struct jobs {
    struct core *core;
    struct lane lanes[SCHED_MAX_LANES]; /* lane_count in use; they never move */
    size_t lane_count;
    struct outcome *outcomes; /* ended, not yet recorded */
    uv_timer_t due;           /* of the earliest DELAYED job */
    bool look;
    bool replace_worker;
};

static const char *const verdict_names[] = {
    [FINISHED] = "DONE",       [FOUND_NOTHING] = "EMPTY", [RETRY] = "RETRY",
    [REJECTED] = "REJECT",     [CRASHED] = "CRASH",       [GIVEN_BACK] = "RETURNED",
    [CANCELLED] = "CANCELLED",
};

static void blame(struct outcome *outcome, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The daemon's own word for how a job ended. */
static void
blame(struct outcome *outcome, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome->own_sentence, sizeof outcome->own_sentence, format, arguments);
    va_end(arguments);
    outcome->code = code;
    outcome->sentence = outcome->own_sentence;
    outcome->file_a = outcome->file_b = "";
}

/* ---------------------------------------------------------------------------- recording ---- */

static void
free_outcome(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->result_count; i++)
        free(outcome->paths[i]);
    free(outcome->paths);
    free(outcome->results);
    free(outcome->frame);
    free(outcome);
}

static void
remove_outcome(struct outcome *outcome)
{
    struct outcome **link = &outcome->jobs->outcomes;
    while (*link != outcome)
        link = &(*link)->next;
    *link = outcome->next;
    free_outcome(outcome);
}

static void
on_recorded(void *context, int status)
{
    struct outcome *outcome = context;
    outcome->in_turn = false;
    if (status)
        return;
    const char *root = outcome->jobs->core->root;
    spool_sweep_job(root, outcome->job);
    if (outcome->verdict == CANCELLED)
        spool_remove_output(root, outcome->job);
    /* It was held back until here, and may be READY: looked at in a turn of its own. */
    jobs_look(outcome->jobs);
    remove_outcome(outcome);
}

static int
record_retry(struct outcome *outcome)
{
    struct core *core = outcome->jobs->core;
    const struct conf_jobs *settings = &core->conf->jobs;
    int64_t now_ms = clock_unix_ms();
    if (outcome->attempts >= settings->max_attempts && outcome->last_chance)
        return queue_fail_job(core->queue, outcome->job, outcome->code, outcome->sentence,
                              outcome->file_a, outcome->file_b, now_ms);
    int64_t wait_ms = sched_retry_ms(settings, outcome->attempts, outcome->job);
    return queue_delay_job(core->queue, outcome->job, now_ms + wait_ms, outcome->verdict == CRASHED,
                           outcome->code, outcome->sentence, now_ms);
}

static int
record(struct outcome *outcome)
{
    struct queue *queue = outcome->jobs->core->queue;
    switch (outcome->verdict) {
    case FINISHED:
    case FOUND_NOTHING:
        return queue_finish_job(queue, outcome->job,
                                outcome->verdict == FINISHED ? QUEUE_DONE : QUEUE_EMPTY,
                                &outcome->figures, outcome->results,
                                outcome->verdict == FINISHED ? outcome->result_count : 0,
                                outcome->code, outcome->sentence, clock_unix_ms());
    case REJECTED:
        return queue_fail_job(queue, outcome->job, outcome->code, outcome->sentence,
                              outcome->file_a, outcome->file_b, clock_unix_ms());
    case RETRY:
    case CRASHED:
        return record_retry(outcome);
    case GIVEN_BACK:
        return queue_return_job(queue, outcome->job, outcome->sentence, clock_unix_ms());
    case CANCELLED:
        return 0; /* as the row says already */
    }
    return -EINVAL;
}

/* What the database will never take must not be tried for ever: the job fails instead. */
static int
record_somehow(struct outcome *outcome)
{
    int error = record(outcome);
    if (!error || core_is_trouble(error))
        return error;
    if (error == -EAGAIN || error == -ENOENT) {
        /* It was cancelled in the same breath; nothing refers to what it wrote. */
        log_info("job.too_late", LOG_INT("job", outcome->job), LOG_STR("code", outcome->code));
        outcome->verdict = CANCELLED;
        return 0;
    }
    blame(outcome, "RECORD_FAILED", "what the worker said cannot be recorded: %s",
          queue_reason(outcome->jobs->core->queue));
    log_error("job.record_failed", LOG_INT("job", outcome->job),
              LOG_STR("sentence", outcome->sentence));
    outcome->verdict = REJECTED;
    error = record(outcome);
    if (!error || core_is_trouble(error))
        return error;
    outcome->verdict = CANCELLED; /* its row is put right at the next start */
    return 0;
}

/* 0, or -errno and nothing of it is written. */
static int
record_in_turn(struct outcome *outcome)
{
    struct core *core = outcome->jobs->core;
    int error = record_somehow(outcome);
    crash_point("daemon_after_done_before_commit");
    outcome->in_turn = !error;
    if (!error)
        error = turn_after(core->turn, on_recorded, outcome);
    if (error) {
        turn_abort(core->turn, error);
        outcome->in_turn = false;
    }
    return error;
}

static struct outcome *
first_unrecorded(const struct jobs *jobs)
{
    struct outcome *outcome = jobs->outcomes;
    while (outcome && outcome->in_turn)
        outcome = outcome->next;
    return outcome;
}

static void
record_outcomes(struct jobs *jobs)
{
    /* Looked for anew each time: joining the turn may commit a full one, which frees outcomes. */
    while (first_unrecorded(jobs)) {
        if (!core_change(jobs->core))
            return;
        int error = record_in_turn(first_unrecorded(jobs));
        if (error) {
            core_failed(jobs->core, error, "record how a job ended");
            return;
        }
    }
}

/* ------------------------------------------------------------------------------ the end ---- */

/* Takes the job out of its lane; the outcome waits for the end of the turn. */
static struct outcome *
end_job(struct lane *lane, enum verdict verdict)
{
    struct jobs *jobs = lane->jobs;
    struct outcome *outcome = lane->running;
    outcome->verdict = lane->cancelled ? CANCELLED : verdict;
    outcome->next = jobs->outcomes;
    jobs->outcomes = outcome;
    *lane = (struct lane){.jobs = jobs, .number = lane->number};
    jobs->look = true;
    return outcome;
}

/* The job goes back as if it had not been begun. */
static void
give_back(struct lane *lane, const char *why)
{
    struct outcome *outcome = end_job(lane, GIVEN_BACK);
    blame(outcome, "RETURNED", "%s", why);
    log_info("job.returned", LOG_INT("job", outcome->job), LOG_STR("why", why));
}

static void
charge_overdue(struct lane *lane)
{
    double seconds = lane->jobs->core->conf->jobs.deadline_seconds;
    struct outcome *outcome = end_job(lane, CRASHED);
    outcome->last_chance = true;
    blame(outcome, "DEADLINE_EXCEEDED", "attempt %d took longer than jobs.deadline_seconds (%g s)",
          outcome->attempts, seconds);
    log_warn("job.overdue", LOG_INT("job", outcome->job), LOG_INT("attempt", outcome->attempts));
}

static void
charge_crash(struct lane *lane, bool only_suspect, const struct pool_gone *gone)
{
    struct outcome *outcome = end_job(lane, CRASHED);
    int attempt = outcome->attempts;
    outcome->last_chance = only_suspect;
    if (*gone->why)
        blame(outcome, "CRASHED", "the worker was ended in attempt %d: %s", attempt, gone->why);
    else if (gone->signal)
        blame(outcome, "CRASHED", "the worker died in attempt %d of signal %d (%s)", attempt,
              gone->signal, strsignal(gone->signal));
    else
        blame(outcome, "CRASHED", "the worker ended in attempt %d with status %d", attempt,
              (int)gone->exit_status);
    log_warn("job.crashed", LOG_INT("job", outcome->job), LOG_INT("attempt", attempt),
             LOG_STR("sentence", outcome->sentence));
}

static size_t
busy_lanes(const struct jobs *jobs)
{
    size_t busy = 0;
    for (size_t i = 0; i < jobs->lane_count; i++)
        busy += jobs->lanes[i].running != NULL;
    return busy;
}

/* Somebody else gave the worker cause to be ended: an overdue neighbour, or the daemon's stop. */
static bool
is_innocent(const struct jobs *jobs, const struct pool_gone *gone)
{
    if (gone->ordered || (jobs->core->draining && *gone->why))
        return true;
    for (size_t i = 0; i < jobs->lane_count; i++) {
        if (jobs->lanes[i].overdue || (jobs->lanes[i].cancelled && *gone->why))
            return true;
    }
    return false;
}

static void
set_up_lanes(struct jobs *jobs)
{
    int wanted = jobs->core->conf->compute.lanes;
    jobs->lane_count = wanted < 1 ? 1 : wanted > SCHED_MAX_LANES ? SCHED_MAX_LANES : (size_t)wanted;
    for (size_t i = 0; i < jobs->lane_count; i++)
        jobs->lanes[i] = (struct lane){.jobs = jobs, .number = (int)i};
    jobs->replace_worker = false;
}

static void
empty_lane(struct lane *lane, bool innocent, bool only_suspect, const struct pool_gone *gone)
{
    if (lane->cancelled)
        blame(end_job(lane, CANCELLED), "CANCELLED", "cancelled");
    else if (lane->overdue)
        charge_overdue(lane);
    else if (innocent || !lane->told)
        give_back(lane, "the worker was stopped");
    else
        charge_crash(lane, only_suspect, gone);
}

void
jobs_worker_gone(struct jobs *jobs, const struct pool_gone *gone)
{
    bool innocent = is_innocent(jobs, gone), alone = busy_lanes(jobs) == 1;
    for (size_t i = 0; i < jobs->lane_count; i++) {
        if (jobs->lanes[i].running)
            empty_lane(&jobs->lanes[i], innocent, alone, gone);
    }
    set_up_lanes(jobs);
}

/* --------------------------------------------------------------------------- DONE frames --- */

static struct lane *
find_lane(struct jobs *jobs, int64_t job)
{
    for (size_t i = 0; i < jobs->lane_count; i++) {
        if (jobs->lanes[i].running && jobs->lanes[i].running->job == job)
            return &jobs->lanes[i];
    }
    return NULL;
}

static void
read_figures(struct proto_reader *reader, struct queue_figures *figures)
{
    figures->read_seconds = proto_get_f64(reader);
    figures->compute_seconds = proto_get_f64(reader);
    figures->write_seconds = proto_get_f64(reader);
    figures->verify_seconds = proto_get_f64(reader);
    figures->total_seconds = proto_get_f64(reader);
    figures->voxels = proto_get_i64(reader);
    figures->segmented_voxels = proto_get_i64(reader);
    figures->peak_bytes = proto_get_i64(reader);
    figures->backend = proto_get_str(reader);
    figures->note = proto_get_str(reader);
}

static void
read_result(struct proto_reader *reader, struct outcome *outcome, size_t i)
{
    struct queue_result *result = &outcome->results[i];
    result->kind = proto_get_str(reader);
    const char *file = proto_get_str(reader);
    result->sop_class_uid = proto_get_str(reader);
    result->sop_instance_uid = proto_get_str(reader);
    result->series_uid = proto_get_str(reader);
    result->size = proto_get_i64(reader);
    result->frames = proto_get_i64(reader);
    result->path = "";
    if (!*file || strchr(file, '/'))
        reader->error = -EBADMSG;
    else if (asprintf(&outcome->paths[i], LAYOUT_OUTBOX "/%" PRId64 "/%s", outcome->job, file) < 0)
        reader->error = -ENOMEM;
    else
        result->path = outcome->paths[i];
}

static void
read_results(struct proto_reader *reader, struct outcome *outcome, size_t count)
{
    outcome->results = calloc(count + 1, sizeof *outcome->results);
    outcome->paths = calloc(count + 1, sizeof *outcome->paths);
    if (!outcome->results || !outcome->paths) {
        reader->error = -ENOMEM;
        return;
    }
    outcome->result_count = count;
    for (size_t i = 0; i < count && !reader->error; i++)
        read_result(reader, outcome, i);
}

static enum verdict
verdict_of(int64_t said, bool empty)
{
    switch ((enum proto_verdict)said) {
    case PROTO_VERDICT_DONE:
        return empty ? FOUND_NOTHING : FINISHED;
    case PROTO_VERDICT_RETRY:
        return RETRY;
    case PROTO_VERDICT_REJECT:
        return REJECTED;
    case PROTO_VERDICT_STOPPED:
        return GIVEN_BACK;
    }
    return CANCELLED; /* no such verdict */
}

/* Everything after the job's number. */
static enum verdict
read_done(struct proto_reader *reader, struct outcome *outcome)
{
    int64_t said = proto_get_i64(reader);
    outcome->code = proto_get_str(reader);
    outcome->sentence = proto_get_str(reader);
    outcome->file_a = proto_get_str(reader);
    outcome->file_b = proto_get_str(reader);
    enum verdict verdict = verdict_of(said, proto_get_i64(reader) != 0);
    read_figures(reader, &outcome->figures);
    int64_t count = proto_get_i64(reader);
    if (verdict == CANCELLED || count < (verdict == FINISHED) ||
        (uint64_t)count > reader->size / RESULT_MIN_BYTES)
        reader->error = -EBADMSG;
    else
        read_results(reader, outcome, (size_t)count);
    return verdict;
}

static void
end_as_said(struct lane *lane, enum verdict verdict)
{
    struct outcome *outcome = end_job(lane, verdict);
    outcome->last_chance = true;
    log_info("job.ended", LOG_INT("job", outcome->job), LOG_INT("attempt", outcome->attempts),
             LOG_STR("verdict", verdict_names[outcome->verdict]), LOG_STR("code", outcome->code),
             LOG_NUM("seconds", outcome->figures.total_seconds));
}

/* The strings have to outlive the frame: they are read from a copy of it. */
static void
keep_done(struct lane *lane, struct proto_reader *reader)
{
    struct outcome *outcome = lane->running;
    struct proto_reader kept = *reader;
    enum verdict verdict = RETRY;
    kept.bytes = outcome->frame = malloc(reader->size);
    kept.error = kept.bytes ? 0 : -ENOMEM;
    if (kept.bytes) {
        memcpy(kept.bytes, reader->bytes, reader->size);
        verdict = read_done(&kept, outcome);
    }
    reader->at = reader->size;
    int error = proto_end(&kept);
    if (error == -ENOMEM) {
        blame(outcome, "OUT_OF_MEMORY", "the daemon had no memory to note how the job ended");
        end_as_said(lane, RETRY);
    } else if (error) {
        reader->error = error; /* the pool ends the worker, and that ends the job */
    } else {
        end_as_said(lane, verdict);
    }
}

static void
hear_done(struct jobs *jobs, struct proto_reader *reader)
{
    struct lane *lane = find_lane(jobs, proto_get_i64(reader));
    if (!lane || !lane->told)
        reader->error = -EBADMSG; /* not a job it has */
    else
        keep_done(lane, reader);
}

static void
hear_progress(struct jobs *jobs, struct proto_reader *reader)
{
    int64_t job = proto_get_i64(reader);
    const char *stage = proto_get_str(reader);
    double fraction = proto_get_f64(reader);
    if (proto_end(reader) == 0 && find_lane(jobs, job))
        log_debug("job.progress", LOG_INT("job", job), LOG_STR("stage", stage),
                  LOG_NUM("fraction", fraction));
}

void
jobs_frame(struct jobs *jobs, struct proto_reader *reader)
{
    if (reader->type == PROTO_DONE)
        hear_done(jobs, reader);
    else if (reader->type == PROTO_PROGRESS)
        hear_progress(jobs, reader);
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
        *lane = (struct lane){.jobs = jobs, .number = lane->number};
        free_outcome(running);
        return;
    }
    crash_point("daemon_after_running_before_run");
    lane->deadline_at =
        uv_now(&jobs->core->loop) + (uint64_t)(1000 * jobs->core->conf->jobs.deadline_seconds);
    struct proto_writer writer;
    proto_start(&writer, PROTO_RUN);
    proto_put_i64(&writer, running->job);
    char *file = spool_job_file(jobs->core->root, running->job);
    proto_put_str(&writer, file);
    int error = file ? pool_send(jobs->core->pool, jobs->core->worker, &writer) : -ENOMEM;
    if (!file)
        proto_release(&writer);
    free(file);
    lane->told = error == 0;
    if (error)
        give_back(lane, "the worker could not be told");
    else
        log_info("job.started", LOG_INT("job", running->job), LOG_INT("lane", lane->number),
                 LOG_INT("attempt", running->attempts));
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
    struct outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome)
        return -ENOMEM;
    int error = write_job_file(core, job);
    if (!error)
        error = queue_start_job(core->queue, job->id, WORKER_NAME, lane->number, clock_unix_ms());
    if (error) {
        spool_sweep_job(core->root, job->id);
        free(outcome);
        return error;
    }
    outcome->jobs = lane->jobs;
    outcome->job = job->id;
    outcome->attempts = job->attempts + 1;
    lane->running = outcome;
    lane->alone = job->alone;
    error = turn_after(core->turn, send_run, lane);
    if (error) {
        turn_abort(core->turn, error);
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

/* A job that is READY again may still be in the lane that has to stop it, or have files of its last
 * attempt that are swept once its end is on disk. */
static bool
is_held(struct jobs *jobs, int64_t job)
{
    for (const struct outcome *outcome = jobs->outcomes; outcome; outcome = outcome->next) {
        if (outcome->job == job)
            return true;
    }
    return find_lane(jobs, job) != NULL;
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
        bool held = is_held(jobs, ready->jobs[i].id);
        ready->choices[i] = (struct sched_job){.id = ready->jobs[i].id,
                                               .not_before_ms = held ? INT64_MAX : 0,
                                               .alone = ready->jobs[i].alone};
    }
    return 0;
}

static void
describe_lanes(const struct jobs *jobs, struct sched_lane *lanes)
{
    bool usable = pool_ready(jobs->core->pool, jobs->core->worker) && !jobs->replace_worker;
    for (size_t i = 0; i < jobs->lane_count; i++) {
        const struct lane *lane = &jobs->lanes[i];
        lanes[i] = (struct sched_lane){.worker = jobs->core->worker,
                                       .usable = usable,
                                       .job = lane->running ? lane->running->job : 0,
                                       .alone = lane->alone};
    }
}

static void
on_due(uv_timer_t *timer)
{
    struct jobs *jobs = timer->data;
    jobs->look = true;
}

static void
wait_for_next_due(struct jobs *jobs)
{
    int64_t due_ms, now_ms = clock_unix_ms();
    uv_timer_stop(&jobs->due);
    if (queue_next_due(jobs->core->queue, &due_ms))
        return;
    int64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    uv_timer_start(&jobs->due, on_due,
                   (uint64_t)(wait_ms < MAX_DUE_MILLIS ? wait_ms : MAX_DUE_MILLIS) + 1, 0);
}

/* In the open turn. */
static int
start_ready(struct jobs *jobs)
{
    struct ready ready;
    int error = read_ready(jobs, &ready);
    if (error)
        return error;
    struct sched_lane lanes[SCHED_MAX_LANES];
    struct sched_assignment picks[SCHED_MAX_LANES];
    describe_lanes(jobs, lanes);
    size_t count = sched_pick(ready.choices, ready.count, lanes, jobs->lane_count,
                              core_closed(jobs->core), clock_unix_ms(), picks);
    for (size_t i = 0; i < count && !error; i++) {
        error = begin_job(&jobs->lanes[picks[i].lane], &ready.jobs[picks[i].job]);
        if (error == -EAGAIN)
            error = 0; /* a slice came in the same turn: its series gathers again */
    }
    free_ready(&ready);
    return error;
}

static void
start_jobs(struct jobs *jobs)
{
    struct core *core = jobs->core;
    if (!jobs->look || core_closed(core) || jobs->replace_worker ||
        !pool_ready(core->pool, core->worker) || busy_lanes(jobs) == jobs->lane_count)
        return; /* each of these looks again when it is over */
    jobs->look = false;
    if (!core_change(core))
        return;
    int error = start_ready(jobs);
    if (error)
        core_failed(core, error, "start a job");
    wait_for_next_due(jobs);
}

void
jobs_look(struct jobs *jobs)
{
    jobs->look = true;
    uv_timer_start(&jobs->due, on_due, 0, 0); /* the loop may be about to sleep */
}

void
jobs_end_turn(struct jobs *jobs)
{
    if (jobs->core->trouble && !jobs->core->probing)
        return;
    record_outcomes(jobs);
    start_jobs(jobs);
    if (jobs->replace_worker && busy_lanes(jobs) == 0)
        pool_restart(jobs->core->pool, jobs->core->worker);
}

void
jobs_worker_ready(struct jobs *jobs)
{
    jobs->look = true;
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
    proto_start(&writer, PROTO_STOP_JOB);
    proto_put_i64(&writer, lane->running->job);
    pool_send(core->pool, core->worker, &writer); /* a worker that left ends the job as well */
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
    if (order && turn_after(jobs->core->turn, on_cancelled, order))
        free(order);
}

void
jobs_stop_all(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->lane_count; i++) {
        if (jobs->lanes[i].running)
            tell_to_stop(&jobs->lanes[i]);
    }
}

void
jobs_tick(struct jobs *jobs)
{
    struct core *core = jobs->core;
    uint64_t now = uv_now(&core->loop);
    for (size_t i = 0; i < jobs->lane_count; i++) {
        struct lane *lane = &jobs->lanes[i];
        if (!lane->told)
            continue;
        if (now > lane->deadline_at) {
            lane->overdue = true;
            pool_kill(core->pool, core->worker, "a job outlived its deadline");
        } else if (lane->stop_at && now > lane->stop_at) {
            pool_kill(core->pool, core->worker, "it did not stop a job that it was told to stop");
        }
    }
}

void
jobs_replace_worker(struct jobs *jobs)
{
    jobs->replace_worker = true;
}

size_t
jobs_running(const struct jobs *jobs)
{
    return busy_lanes(jobs);
}

size_t
jobs_unrecorded(const struct jobs *jobs)
{
    size_t count = 0;
    for (const struct outcome *outcome = jobs->outcomes; outcome; outcome = outcome->next)
        count++;
    return count;
}

/* ------------------------------------------------------------------------- open, close ---- */

int
jobs_open(struct core *core, struct jobs **out)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return -ENOMEM;
    jobs->core = core;
    jobs->look = true;
    set_up_lanes(jobs);
    uv_timer_init(&core->loop, &jobs->due); /* has no way to fail */
    jobs->due.data = jobs;
    *out = jobs;
    return 0;
}

static void
free_jobs(uv_handle_t *timer)
{
    struct jobs *jobs = timer->data;
    while (jobs->outcomes)
        remove_outcome(jobs->outcomes);
    for (size_t i = 0; i < jobs->lane_count; i++) {
        if (jobs->lanes[i].running)
            free_outcome(jobs->lanes[i].running);
    }
    free(jobs);
}

void
jobs_close(struct jobs *jobs)
{
    if (jobs)
        uv_close((uv_handle_t *)&jobs->due, free_jobs);
}
