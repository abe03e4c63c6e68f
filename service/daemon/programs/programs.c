/*
 * programs.c - see programs.h.
 *
 * An attempt is created with its run's RUNNING row, and its order is written to a file. When the row is committed, the
 * process gets PROGRAM_RUN. program_attempt.c records the outcome. If a process dies
 *
 *     by itself, by silence or a broken frame   its run is charged the attempt
 *     after the deadline of its run             the same, with PROGRAM_TOO_LONG
 *     by order of the daemon (drain)            its run returns, no attempt counts
 */
#include "service/daemon/programs/programs.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/daemon/jobs/job_inputs.h"
#include "service/daemon/programs/program_attempt.h"
#include "service/daemon/programs/program_checks.h"
#include "service/daemon/programs/program_gpu.h"
#include "service/daemon/programs/program_plan.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS_MAX    16    /* processes */
#define CHOICES         64    /* runs to choose from */
#define WAITING_SIZE    16384 /* of the kinds of runs that wait, of all programs */
#define RESPONSE_MILLIS 30000 /* of a process, after the deadline of a program or a request to stop */

struct program_slot {
    int pool;       /* slot in the pool */
    bool is_filled; /* has a process, or will get one */
    char last[65];  /* program of its last run: its warm process may be there */
};

struct programs {
    struct core *core;
    struct attempts attempts;
    struct program_slot slots[PROGRAMS_MAX];
    size_t slot_count;
    struct program_checks checks;
    struct program_gpus gpus;
};

/* Returns the next attempt that has not ended, of one process; NULL after the last. */
static struct program_attempt *
programs_next(const struct programs *programs, size_t slot, const struct program_attempt *after)
{
    struct attempt *base = after ? after->base.next : programs->attempts.first;
    while (base && (base->ended || ((const struct program_attempt *)base)->slot != slot))
        base = base->next;
    return (struct program_attempt *)base;
}

static struct program_attempt *
programs_find_started(const struct programs *programs, size_t slot, int64_t run)
{
    struct program_attempt *attempt = programs_next(programs, slot, NULL);
    return attempt && attempt->started && attempt->base.id == run ? attempt : NULL;
}

static size_t
programs_find_slot(const struct programs *programs, int pool_slot)
{
    size_t slot = 0;
    while (slot < programs->slot_count && programs->slots[slot].pool != pool_slot)
        slot++;
    return slot;
}

bool
programs_owns(const struct programs *programs, int slot)
{
    return programs_find_slot(programs, slot) < programs->slot_count;
}

/* ----------------------------------------------------------------------------- starting ---- */

/* Drops an attempt that has not begun. */
static void
programs_give_up(struct program_attempt *attempt)
{
    program_gpu_end(&attempt->base.all->core->programs->gpus, attempt->base.id, false);
    program_attempt_remove(attempt, PROGRAM_ORDER);
    attempt_drop(&attempt->base);
}

static void
programs_on_begun(void *context, int status)
{
    struct program_attempt *attempt = context;
    struct core *core = attempt->base.all->core;
    if (attempt->base.ended)
        return; /* its process ended meanwhile */
    if (status) {
        programs_give_up(attempt);
        return;
    }
    if (attempt->refused) {
        program_attempt_end(attempt, PROGRAM_ATTEMPT_ILL, attempt->refused,
                            attempt->refused == CODE_PROGRAM_UNAVAILABLE ? "no GPU of this machine can be used"
                                                                         : "no GPU has gpu_memory_mib free");
        program_gpu_end(&core->programs->gpus, attempt->base.id, false);
        return;
    }
    crash_point("daemon_before_program_run");
    struct proto_writer writer;
    char *order = program_attempt_path(attempt, PROGRAM_ORDER);
    int rc = order ? 0 : -ENOMEM;
    if (!rc) {
        message_write_program_run(&writer, &(struct message_program_run){.run = attempt->base.id, .order = order});
        rc = pool_send(core->pool, core->programs->slots[attempt->slot].pool, &writer);
    }
    free(order);
    attempt->started = rc == 0;
    attempt->deadline_at = uv_now(&core->loop) + (uint64_t)(1000 * core->conf->jobs.deadline_seconds);
    if (rc) {
        program_attempt_end(attempt, PROGRAM_ATTEMPT_RETURNED, CODE_RETURNED, "it could not be sent to the process");
        program_gpu_end(&core->programs->gpus, attempt->base.id, false);
    } else {
        log_info("program.started", LOG_INT("run", attempt->base.id), LOG_STR("program", attempt->run.program),
                 LOG_INT("slot", attempt->slot), LOG_INT("attempt", attempt->run.attempts),
                 LOG_STR("gpu", attempt->place.uuid));
    }
}

static int
program_write_order(struct program_attempt *attempt, const struct conf_program *program)
{
    struct core *core = attempt->base.all->core;
    const struct queue_run *run = &attempt->run;
    struct job_spec files = {0};
    char *path = program_attempt_path(attempt, PROGRAM_ORDER);
    struct program_order order = {.run = run->id,
                                  .attempt = run->attempts,
                                  .program = conf_program_to_text(program),
                                  .identity = run->identity,
                                  .pipeline = run->pipeline,
                                  .stack = run->stack,
                                  .work = program_attempt_path(attempt, PROGRAM_WORK),
                                  .result = program_attempt_path(attempt, PROGRAM_RESULT),
                                  .gpu = attempt->place.uuid,
                                  .as = attempt->place.as,
                                  .slot = (int)attempt->slot,
                                  .threads = core->conf->compute.threads};
    int rc = path && order.program && order.work && order.result ? 0 : -ENOMEM;
    if (!rc)
        rc = conf_accepted_labels(core->conf, program, &order.accepted, &order.accepted_count);
    if (!rc)
        rc = job_inputs_find(core, run->series_id, &files);
    order.inputs = files.inputs;
    order.input_count = files.input_count;
    order.sha256 = files.sha256;
    if (!rc)
        rc = program_order_write(&order, path);
    job_inputs_free(&files);
    free(order.accepted);
    free(order.result);
    free(order.work);
    free(order.program);
    free(path);
    return rc;
}

/* Starts a run. Returns 0, or -errno if it is still READY. Takes over the run's strings. */
static int
programs_begin(struct programs *programs, struct queue_run *run, const struct conf_program *program, size_t slot,
               const struct program_place *place, enum code refused)
{
    struct core *core = programs->core;
    struct program_attempt *attempt = program_attempt_new(&programs->attempts, run);
    if (!attempt)
        return -ENOMEM;
    attempt->slot = slot;
    attempt->place = *place;
    attempt->refused = refused;
    attempt->is_warm = program->warm;
    attempt->max_attempts = program->max_attempts;
    attempt->has_cpu_command = program->cpu_command_count > 0;
    attempt->deadline_seconds = program->deadline_seconds;
    snprintf(programs->slots[slot].last, sizeof programs->slots[slot].last, "%s", program->name);
    program_attempt_remove(attempt, PROGRAM_RESULT); /* the output of an earlier attempt */
    int rc = program_write_order(attempt, program);
    if (!rc)
        rc = queue_start_run(core->queue, attempt->base.id, (int)slot, place->uuid, program_place_name(place),
                             clock_unix_ms());
    if (rc) {
        programs_give_up(attempt);
        return rc;
    }
    crash_point("daemon_after_run_row");
    return batch_on_commit(core->batch, programs_on_begun, attempt);
}

static bool
programs_is_idle(const struct programs *programs, size_t slot)
{
    return pool_ready(programs->core->pool, programs->slots[slot].pool) && !programs_next(programs, slot, NULL);
}

static bool
programs_have_idle(const struct programs *programs)
{
    size_t slot = 0;
    while (slot < programs->slot_count && !programs_is_idle(programs, slot))
        slot++;
    return slot < programs->slot_count;
}

/* Returns an idle process, or slot_count. One that ran this program last is preferred, since it may hold it warm. */
static size_t
programs_idle_slot(const struct programs *programs, int64_t run, const char *program)
{
    size_t found = programs->slot_count;
    for (size_t i = programs->slot_count; i-- > 0;) {
        const struct program_slot *slot = &programs->slots[i];
        if (!programs_is_idle(programs, i) || program_gpu_holds(&programs->gpus, slot->pool, run))
            continue;
        if (strcmp(slot->last, program) == 0)
            return i;
        found = i;
    }
    return found;
}

/* Returns where the next attempt computes: as configured, or as the last one that ran out of GPU memory decided. */
static struct program_place
programs_place(const struct queue_run *run, const struct conf_program *program)
{
    struct program_place place = {.gpu = program->gpu};
    if (place.gpu == CONF_GPU_NONE)
        return place;
    if (strcmp(run->ran_as, "cpu") == 0 && program->cpu_command_count > 0) {
        place.as = PROGRAM_AS_CPU;
        place.gpu = CONF_GPU_NONE;
    } else if (strcmp(run->ran_as, "whole") == 0) {
        place.as = PROGRAM_AS_WHOLE;
        place.gpu = CONF_GPU_WHOLE;
    }
    return place;
}

/* Starts a READY run if a process and its GPU are free. Sets *waits if they are not. */
static int
programs_consider(struct programs *programs, struct queue_run *run, bool *waits)
{
    struct core *core = programs->core;
    const struct conf_program *program = conf_find_program(core->conf, run->program);
    const struct queue_program *check = program_checks_find(&programs->checks, run->program);
    const size_t slot = programs_idle_slot(programs, run->id, run->program);
    *waits = false;
    if (!program)
        return programs_replan(core, run->id, run->program, "the configuration has no such program");
    *waits = !check || !*check->identity || slot == programs->slot_count || attempts_find(&programs->attempts, run->id);
    if (*waits)
        return 0;
    if (strcmp(check->identity, run->identity) != 0)
        return programs_replan(core, run->id, run->program, "the program or its weights changed");
    struct program_place place = programs_place(run, program);
    const int rc = place.gpu == CONF_GPU_NONE
                       ? 1
                       : program_gpu_take(&programs->gpus, run->id, program, programs->slots[slot].pool, &place);
    *waits = rc == 0;
    if (*waits)
        return 0;
    return programs_begin(programs, run, program, slot, &place,
                          rc == -ENODEV   ? CODE_PROGRAM_UNAVAILABLE
                          : rc == -ENOMEM ? CODE_PROGRAM_GPU_OUT_OF_MEMORY
                                          : CODE_NONE);
}

static int
programs_find_ready(const struct programs *programs, const char *except, struct queue_run **runs, size_t *count)
{
    const struct core *core = programs->core;
    return queue_ready_runs(core->queue, clock_unix_ms(), core_ageing_ms(core), CHOICES, except, runs, count);
}

/* Leaves a run to another carrier that waits for it, after its carrier in Slurm failed. */
static int
programs_leave_to_carriers(const struct programs *programs, struct queue_run **runs, size_t *count)
{
    bool was_begun = false;
    for (size_t i = 0; i < *count; i++)
        was_begun = was_begun || (*runs)[i].attempts > 0;
    if (!was_begun || !conf_uses_slurm(programs->core->conf))
        return 0;
    queue_runs_free(*runs, *count);
    *runs = NULL;
    *count = 0;
    const int rc = programs_plan_waiting(programs->core, NULL);
    return rc ? rc : programs_find_ready(programs, "", runs, count);
}

/* Starts each of the first runs that can start, except the kinds in `waiting`, and adds kinds that must wait. Returns
 * whether other kinds may follow, or -errno. */
static int
programs_start_first(struct programs *programs, char waiting[WAITING_SIZE])
{
    struct queue_run *runs = NULL;
    size_t count = 0;
    int added = 0;
    int rc = programs_find_ready(programs, waiting, &runs, &count);
    if (!rc && !*waiting)
        rc = programs_leave_to_carriers(programs, &runs, &count);
    for (size_t i = 0; i < count && !rc; i++) {
        bool waits;
        rc = programs_consider(programs, &runs[i], &waits);
        rc = rc == -EAGAIN ? 0 : rc; /* it changed in the same batch */
        char line[160];              /* the kind of a run: its program, and where its next attempt computes */
        const int length = snprintf(line, sizeof line, "\n%s %s\n", runs[i].program, runs[i].ran_as);
        const size_t used = strlen(waiting);
        if (!waits || strstr(waiting, line) || length < 0 || used + (size_t)length >= WAITING_SIZE)
            continue;
        memcpy(waiting + used, line, (size_t)length + 1);
        added++;
    }
    queue_runs_free(runs, count);
    return rc ? rc : added > 0;
}

static int
programs_start_ready(struct programs *programs)
{
    struct core *core = programs->core;
    char waiting[WAITING_SIZE] = "";
    int64_t due_ms = 0;
    int rc = 1;
    program_gpu_search_begin(&programs->gpus);
    if (!programs_have_idle(programs))
        return 0; /* the end of its run triggers another search */
    while (rc > 0 && programs_have_idle(programs))
        rc = programs_start_first(programs, waiting);
    program_gpu_search_end(&programs->gpus);
    if (rc >= 0)
        rc = queue_next_run_due(core->queue, &due_ms);
    if (!rc && due_ms)
        due_in(&core->programs_due, due_ms - clock_unix_ms());
    return rc;
}

/* -------------------------------------------------------------------------------- checks --- */

static void
programs_on_checks_committed(void *context, int status)
{
    struct programs *programs = context;
    if (status)
        programs->checks.is_recorded = false;
}

void
programs_before_commit(struct programs *programs)
{
    struct core *core = programs->core;
    struct program_checks *checks = &programs->checks;
    int rc = 0;
    if (core->db_failed && !core->probing)
        return;
    attempts_write(&programs->attempts);
    if (!core_closed(core) && due_take(&core->programs_due) && core_change(core)) {
        if (!checks->is_recorded) { /* stores the last checks, and plans the jobs that waited for them */
            rc = queue_set_programs(core->queue, checks->at, checks->count, clock_unix_ms());
            if (!rc)
                rc = programs_plan_waiting(core, NULL);
            checks->is_recorded = !rc;
            rc = rc ? rc : batch_on_commit(core->batch, programs_on_checks_committed, programs);
        }
        if (!rc)
            rc = programs_start_ready(programs);
        core_failed(core, rc, "start a program");
    }
}

/* ------------------------------------------------------------------------------- stopping -- */

static void
programs_stop(struct program_attempt *attempt)
{
    struct core *core = attempt->base.all->core;
    struct proto_writer writer;
    if (!attempt->started || attempt->base.ended || attempt->stopping)
        return;
    attempt->stopping = true;
    attempt->deadline_at = uv_now(&core->loop) + RESPONSE_MILLIS;
    message_write_program_stop(&writer, &(struct message_program_stop){.run = attempt->base.id});
    pool_send(core->pool, core->programs->slots[attempt->slot].pool, &writer); /* the end of a process ends its run */
}

void
programs_stop_all(struct programs *programs)
{
    for (struct attempt *base = programs->attempts.first; base; base = base->next)
        programs_stop((struct program_attempt *)base);
}

void
programs_tick(struct programs *programs)
{
    struct core *core = programs->core;
    const uint64_t now = uv_now(&core->loop);
    for (struct attempt *base = programs->attempts.first; base; base = base->next) {
        struct program_attempt *attempt = (struct program_attempt *)base;
        if (base->ended || !attempt->started || now <= attempt->deadline_at)
            continue;
        attempt->overdue = true;
        pool_kill(core->pool, programs->slots[attempt->slot].pool, "it did not end a program in time");
    }
    program_gpu_tick(&programs->gpus);
    if (core->db_failed || programs->slot_count == 0)
        return;
    struct queue_ids runs = {.at = NULL}; /* that no job needs any more */
    if (programs->attempts.first)
        core_failed(core, queue_runs_to_stop(core->queue, &runs), "find programs to stop");
    for (size_t i = 0; i < runs.count; i++) {
        struct program_attempt *attempt = (struct program_attempt *)attempts_find(&programs->attempts, runs.at[i]);
        if (!attempt)
            continue;
        attempt->unwanted = true;
        programs_stop(attempt);
    }
    free(runs.at);
    due_now(&core->programs_due); /* a window may have opened, or a hold have ended */
}

size_t
programs_unrecorded(const struct programs *programs)
{
    return attempts_count(&programs->attempts);
}

/* --------------------------------------------------------------------------------- events -- */

static void
programs_handle_stage(const struct programs *programs, size_t slot, struct proto_reader *reader)
{
    struct message_program_stage message;
    if (message_read_program_stage(reader, &message))
        return;
    struct program_attempt *attempt = programs_find_started(programs, slot, message.run);
    if (!attempt) {
        reader->error = -EBADMSG;
        return;
    }
    const bool runs = strcmp(message.stage, "run") == 0;
    const double seconds = runs ? attempt->deadline_seconds : programs->core->conf->jobs.deadline_seconds;
    if (!attempt->stopping)
        attempt->deadline_at = uv_now(&programs->core->loop) + (uint64_t)(1000 * seconds) + RESPONSE_MILLIS;
}

static void
programs_handle_ended(struct programs *programs, size_t slot, struct proto_reader *reader)
{
    struct message_program_ended message;
    if (message_read_program_ended(reader, &message))
        return;
    struct program_attempt *attempt = programs_find_started(programs, slot, message.run);
    const int rc = attempt ? program_attempt_read(attempt, reader, &message) : -EBADMSG;
    if (rc) {
        reader->error = rc; /* the pool then kills the process, which ends its run */
        return;
    }
    program_gpu_end(&programs->gpus, message.run, attempt->is_warm);
    if (message.code != CODE_PROGRAM_CHANGED)
        return;
    /* The process checks it again by itself. */
    program_checks_expire(&programs->checks, programs->core->conf, attempt->run.program);
}

void
programs_frame(struct programs *programs, int pool_slot, struct proto_reader *reader)
{
    const size_t slot = programs_find_slot(programs, pool_slot);
    struct message_program_cold cold;
    if (reader->type == PROTO_PROGRAMS)
        program_checks_read(&programs->checks, reader);
    else if (reader->type == PROTO_PROGRAM_STAGE)
        programs_handle_stage(programs, slot, reader);
    else if (reader->type == PROTO_PROGRAM_ENDED)
        programs_handle_ended(programs, slot, reader);
    else if (reader->type == PROTO_PROGRAM_COLD && message_read_program_cold(reader, &cold) == 0)
        program_gpu_cold(&programs->gpus, pool_slot, cold.program);
    else
        reader->error = -EBADMSG;
    due_now(&programs->core->programs_due);
}

void
programs_reserved(struct programs *programs, size_t worker, struct proto_reader *reader)
{
    struct message_reserved message;
    if (message_read_reserved(reader, &message) == 0)
        program_gpu_reserved(&programs->gpus, worker, &message);
}

void
programs_worker_ready(struct programs *programs, size_t worker)
{
    if (programs->slot_count > 0)
        program_gpu_worker_ready(&programs->gpus, worker);
    due_now(&programs->core->programs_due);
}

void
programs_gone(struct programs *programs, int pool_slot, const struct pool_gone *gone)
{
    const size_t slot = programs_find_slot(programs, pool_slot);
    struct core *core = programs->core;
    const bool ordered = gone->ordered || core->draining;
    for (struct program_attempt *attempt = NULL; (attempt = programs_next(programs, slot, attempt));) {
        if (attempt->unwanted)
            program_attempt_end(attempt, PROGRAM_ATTEMPT_OUTDATED, CODE_NONE, "no job waits for it");
        else if (attempt->overdue && !attempt->stopping)
            program_attempt_end(attempt, PROGRAM_ATTEMPT_ILL, CODE_PROGRAM_TOO_LONG,
                                "its process did not respond within its deadline");
        else if (ordered || !attempt->started || attempt->stopping)
            program_attempt_end(attempt, PROGRAM_ATTEMPT_RETURNED, CODE_RETURNED, "its process was stopped");
        else
            program_attempt_end(attempt, PROGRAM_ATTEMPT_ILL, CODE_CRASHED,
                                "its process died: %s%sstatus %d, signal %d", gone->why, *gone->why ? ", " : "",
                                (int)gone->exit_status, gone->signal);
    }
    program_gpu_cold(&programs->gpus, pool_slot, NULL);
    programs->slots[slot].last[0] = '\0';
    if (!ordered)
        core_note_death(core, "PROGRAM_DIED", gone);
    due_now(&core->programs_due);
}

/* ------------------------------------------------------------------------- open, close ----- */

void
programs_reload(struct programs *programs)
{
    struct core *core = programs->core;
    const struct conf *conf = core->conf;
    const size_t wanted = conf->program_count == 0 ? 0 : (size_t)conf->compute.programs;
    program_checks_expire(&programs->checks, conf, NULL);
    for (size_t i = programs->slot_count; i < wanted && i < PROGRAMS_MAX; i++) {
        const int slot = pool_reserve(core->pool, "program", (int)i);
        if (slot < 0) {
            log_error("program.slot", LOG_STR("error", strerror(-slot)));
            break;
        }
        programs->slots[programs->slot_count++] = (struct program_slot){.pool = slot};
    }
    for (size_t i = 0; i < programs->slot_count; i++) {
        struct program_slot *slot = &programs->slots[i];
        if (i >= wanted)
            pool_empty(core->pool, slot->pool);
        else if (slot->is_filled)
            pool_reload(core->pool, slot->pool);
        else
            pool_fill(core->pool, slot->pool, NULL);
        slot->is_filled = i < wanted;
    }
    due_now(&core->programs_due);
}

int
programs_recover(struct core *core, int64_t now_ms, int *returned)
{
    const struct conf *conf = core->conf;
    struct queue_run_limit *limits = calloc(conf->program_count + 1, sizeof *limits);
    if (!limits)
        return -ENOMEM;
    for (size_t i = 0; i < conf->program_count; i++)
        limits[i] = (struct queue_run_limit){conf->programs[i].name, conf->programs[i].max_attempts};
    const int rc = queue_recover_runs(core->queue, limits, conf->program_count, now_ms, returned);
    free(limits);
    return rc;
}

void
programs_sweep(const char *root, struct queue *queue)
{
    char *path;
    if (asprintf(&path, "%s/" LAYOUT_PROGRAMS, root) < 0)
        return;
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        const char *name = entry->d_name;
        char *end;
        const int64_t run = strtoll(name, &end, 10);
        if (*name == '.' || (run > 0 && *end == '\0' && queue_run_has_files(queue, run) != 0))
            continue; /* the folder of a run that has files remains */
        const int rc = file_remove(dirfd(directory), name, NULL);
        log_write(rc ? LOG_WARN : LOG_INFO, "program.leftover",
                  LOG_FIELDS(LOG_STR("folder", name), LOG_STR("error", rc ? strerror(-rc) : "")));
    }
    if (directory)
        closedir(directory);
    free(path);
}

int
programs_open(struct core *core, struct programs **out)
{
    struct programs *programs = calloc(1, sizeof *programs);
    if (!programs)
        return -ENOMEM;
    programs->core = core;
    programs->checks.is_recorded = true;
    programs->gpus.core = core;
    core->program_checks = &programs->checks;
    programs->attempts = (struct attempts){.core = core, .type = &program_attempt_type};
    *out = programs;
    return 0;
}

void
programs_close(struct programs *programs)
{
    if (!programs)
        return;
    attempts_free(&programs->attempts);
    program_checks_clear(&programs->checks);
    free(programs);
}
