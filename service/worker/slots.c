/*
 * slots.c - see slots.h.
 *
 * `lock` guards all members of struct slots below it. A slot's thread holds it only between jobs
 * and for a short progress report.
 */
#include "service/worker/slots.h"

#include "base/error.h"
#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/pipeline/job_lane.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define PROGRESS_SECONDS 0.2

struct task {
    STAILQ_ENTRY(task) next;
    int64_t job;
    char *file;
    struct pipeline_report report; /* set when it has ended */
};

STAILQ_HEAD(task_list, task);

struct job_slot {
    struct slots *slots;
    struct job_lane *lane;
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
    const struct task *running; /* NULL: idle */
    const char *stage;
    double fraction;
    double reported_at; /* time of the last progress report */
    bool has_news;
    bool has_memory; /* memory of earlier jobs */
};

struct slots {
    struct job_device *device;
    int64_t keep_bytes;
    double rest_seconds;
    void (*wake)(void *context);
    void *context;
    struct job_slot *items;
    int count;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task_list waiting, ended;
    bool closing;
    bool lost; /* the device has failed */

    struct {
        int64_t token, bytes, more; /* more: beyond the bytes of the last call */
        bool pending;               /* its SLOTS_RESERVED is due */
    } leave;
};

/* --------------------------------------------------------------------------------- lists ---- */

static struct task *
take_first(struct task_list *list)
{
    struct task *task = STAILQ_FIRST(list);
    if (task)
        STAILQ_REMOVE_HEAD(list, next);
    return task;
}

static void
task_free(struct task *task)
{
    pipeline_report_clear(&task->report);
    free(task->file);
    free(task);
}

/* Returns a waiting task as stopped. The caller must hold the lock. */
static void
return_task(struct slots *slots, struct task *task)
{
    STAILQ_REMOVE(&slots->waiting, task, task, next);
    task->report.verdict = PROTO_VERDICT_STOPPED;
    error_set(&task->report.error, 0, CODE_STOPPED, "the job was given back before it began");
    STAILQ_INSERT_TAIL(&slots->ended, task, next);
}

static void
return_all_tasks(struct slots *slots)
{
    while (!STAILQ_EMPTY(&slots->waiting))
        return_task(slots, STAILQ_FIRST(&slots->waiting));
}

/* ------------------------------------------------------------------------ a slot's thread -- */

static void
on_progress(void *context, const char *stage, double fraction)
{
    struct job_slot *slot = context;
    double now = clock_seconds();
    pthread_mutex_lock(&slot->slots->lock);
    bool due = stage != slot->stage || now - slot->reported_at >= PROGRESS_SECONDS;
    if (due) {
        slot->reported_at = now;
        slot->stage = stage;
        slot->fraction = fraction;
        slot->has_news = true;
    }
    pthread_mutex_unlock(&slot->slots->lock);
    if (due)
        slot->slots->wake(slot->slots->context);
}

static void
run_task(struct job_slot *slot, struct task *task)
{
    const struct pipeline_watch watch = {on_progress, slot, &slot->stop};
    struct job_spec *spec;
    struct error error;
    int rc = job_spec_read(task->file, &spec, &error);
    if (rc) {
        task->report.verdict = PROTO_VERDICT_RETRY;
        error_set(&task->report.error, rc, CODE_JOB_FILE_UNREADABLE, "%.200s: %s", task->file, error.message);
        return;
    }
    job_lane_run(slot->lane, spec, NULL, &watch, &task->report);
    job_spec_free(spec);
    crash_point("worker_before_done");
}

/* Frees the lane's memory. The caller must hold the lock. */
static void
slot_rest(struct job_slot *slot)
{
    struct slots *slots = slot->slots;
    const bool leave = slots->leave.pending;
    pthread_mutex_unlock(&slots->lock);
    job_lane_rest(slot->lane, leave);
    if (leave)
        slots->wake(slots->context);
    pthread_mutex_lock(&slots->lock);
    slot->has_memory = false;
}

/* Waits until there is a task or the slots close. The caller must hold the lock. */
static void
slot_wait(struct job_slot *slot)
{
    struct slots *slots = slot->slots;
    struct timespec rest;
    clock_gettime(CLOCK_MONOTONIC, &rest);
    const double at = (double)rest.tv_sec + 1e-9 * (double)rest.tv_nsec + slots->rest_seconds;
    rest.tv_sec = (time_t)floor(at);
    rest.tv_nsec = (long)(1e9 * (at - floor(at)));
    for (;;) {
        if (slot->has_memory && slots->leave.pending)
            slot_rest(slot);
        else if (slots->closing || (!STAILQ_EMPTY(&slots->waiting) && !slots->lost))
            return;
        else if (!slot->has_memory)
            pthread_cond_wait(&slots->changed, &slots->lock);
        else if (pthread_cond_timedwait(&slots->changed, &slots->lock, &rest) == ETIMEDOUT)
            slot_rest(slot);
    }
}

static void *
slot_main(void *argument)
{
    struct job_slot *slot = argument;
    struct slots *slots = slot->slots;
    /* Reserve memory in this thread: pinning is slow, and other slots may already have jobs. */
    const int64_t bytes = slots->keep_bytes;
    const int rc = bytes > 0 ? job_lane_keep(slot->lane, bytes) : 0;
    if (rc)
        log_warn("worker.keep", LOG_INT("bytes", bytes), LOG_STR("error", strerror(-rc)));
    for (;;) {
        pthread_mutex_lock(&slots->lock);
        slot_wait(slot);
        slot->has_memory = true;
        struct task *task = slots->closing ? NULL : take_first(&slots->waiting);
        slot->running = task;
        slot->stage = NULL;
        slot->reported_at = 0;
        atomic_store(&slot->stop, false);
        pthread_mutex_unlock(&slots->lock);
        if (!task)
            return NULL;
        run_task(slot, task);
        pthread_mutex_lock(&slots->lock);
        slot->running = NULL;
        slot->has_news = false;
        STAILQ_INSERT_TAIL(&slots->ended, task, next);
        if (task->report.device_lost) {
            slots->lost = true;
            return_all_tasks(slots);
        }
        pthread_mutex_unlock(&slots->lock);
        slots->wake(slots->context);
    }
}

/* ----------------------------------------------------------------------- opening, closing -- */

static int
open_slot(struct slots *slots, struct job_slot *slot, struct error *error)
{
    slot->slots = slots;
    int rc = job_lane_open(slots->device, &slot->lane, error);
    if (rc)
        return rc;
    rc = -pthread_create(&slot->thread, NULL, slot_main, slot);
    slot->has_thread = rc == 0;
    return rc ? error_set_system(error, rc, "start a thread") : 0;
}

int
slots_open(const struct slots_options *options, struct slots **out, struct error *error)
{
    const bool is_cpu = strcmp(options->device, "cpu") == 0;
    const struct kernels_device_options device = {
        .backend = is_cpu ? "cpu" : "cuda", .device = is_cpu ? "" : options->device, .threads = options->threads};
    struct slots *slots = calloc(1, sizeof *slots);
    if (slots)
        slots->items = calloc((size_t)options->count, sizeof *slots->items);
    if (!slots || !slots->items) {
        free(slots);
        return error_set_system(error, -ENOMEM, "open the lanes");
    }
    slots->keep_bytes = options->keep_bytes;
    slots->rest_seconds = options->rest_seconds;
    slots->wake = options->wake;
    slots->context = options->context;
    pthread_mutex_init(&slots->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&slots->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    STAILQ_INIT(&slots->waiting);
    STAILQ_INIT(&slots->ended);
    int rc = job_device_open(&device, options->max_bytes, &slots->device, error);
    while (rc == 0 && slots->count < options->count)
        rc = open_slot(slots, &slots->items[slots->count++], error);
    if (rc)
        slots_close(slots);
    else
        *out = slots;
    return rc;
}

const char *
slots_description(const struct slots *slots)
{
    return job_device_description(slots->device);
}

void
slots_close(struct slots *slots)
{
    if (!slots)
        return;
    pthread_mutex_lock(&slots->lock);
    slots->closing = true;
    for (int i = 0; i < slots->count; i++)
        atomic_store(&slots->items[i].stop, true);
    pthread_cond_broadcast(&slots->changed);
    pthread_mutex_unlock(&slots->lock);
    for (int i = 0; i < slots->count; i++)
        if (slots->items[i].has_thread)
            pthread_join(slots->items[i].thread, NULL);
    for (int i = 0; i < slots->count; i++)
        job_lane_close(slots->items[i].lane);
    job_device_close(slots->device);
    STAILQ_CONCAT(&slots->ended, &slots->waiting);
    while (!STAILQ_EMPTY(&slots->ended))
        task_free(take_first(&slots->ended));
    pthread_cond_destroy(&slots->changed);
    pthread_mutex_destroy(&slots->lock);
    free(slots->items);
    free(slots);
}

/* ------------------------------------------------------------------------------ the loop ---- */

int
slots_run(struct slots *slots, int64_t job, const char *file)
{
    struct task *task = calloc(1, sizeof *task);
    char *copy = strdup(file);
    if (!task || !copy) {
        free(task);
        free(copy);
        return -ENOMEM;
    }
    task->job = job;
    task->file = copy;
    pthread_mutex_lock(&slots->lock);
    STAILQ_INSERT_TAIL(&slots->waiting, task, next);
    if (slots->lost)
        return_all_tasks(slots);
    bool lost = slots->lost;
    pthread_cond_signal(&slots->changed);
    pthread_mutex_unlock(&slots->lock);
    if (lost)
        slots->wake(slots->context);
    return 0;
}

void
slots_stop(struct slots *slots, int64_t job)
{
    pthread_mutex_lock(&slots->lock);
    for (int i = 0; i < slots->count; i++) {
        if (slots->items[i].running && slots->items[i].running->job == job)
            atomic_store(&slots->items[i].stop, true);
    }
    for (struct task *task = STAILQ_FIRST(&slots->waiting), *next; task; task = next) {
        next = STAILQ_NEXT(task, next);
        if (task->job == job)
            return_task(slots, task);
    }
    pthread_mutex_unlock(&slots->lock);
    slots->wake(slots->context);
}

void
slots_return_queued(struct slots *slots)
{
    pthread_mutex_lock(&slots->lock);
    return_all_tasks(slots);
    pthread_mutex_unlock(&slots->lock);
    slots->wake(slots->context);
}

bool
slots_device_lost(struct slots *slots)
{
    pthread_mutex_lock(&slots->lock);
    bool lost = slots->lost;
    pthread_mutex_unlock(&slots->lock);
    return lost;
}

bool
slots_idle(struct slots *slots)
{
    pthread_mutex_lock(&slots->lock);
    bool idle = STAILQ_EMPTY(&slots->waiting) && STAILQ_EMPTY(&slots->ended);
    for (int i = 0; i < slots->count; i++)
        idle = idle && !slots->items[i].running;
    pthread_mutex_unlock(&slots->lock);
    return idle;
}

void
slots_leave(struct slots *slots, int64_t token, int64_t bytes)
{
    pthread_mutex_lock(&slots->lock);
    slots->leave.token = token;
    slots->leave.more = bytes - slots->leave.bytes;
    slots->leave.bytes = bytes;
    slots->leave.pending = true;
    kernels_device_leave(job_device_kernels(slots->device), bytes);
    pthread_cond_broadcast(&slots->changed);
    pthread_mutex_unlock(&slots->lock);
    slots->wake(slots->context);
}

/* Fills the event if enough memory is free, or can never be. The caller must hold the lock. */
static bool
take_reserved(struct slots *slots, struct slots_event *event)
{
    struct kernels_gpu_memory memory;
    const int64_t bytes = slots->leave.bytes;
    if (!slots->leave.pending)
        return false;
    *event = (struct slots_event){.kind = SLOTS_RESERVED, .token = slots->leave.token};
    const bool failed = kernels_device_memory(job_device_kernels(slots->device), &memory) != 0;
    if (!failed) {
        event->free_bytes = memory.free + memory.held;
        event->enough =
            slots->leave.more <= 0 || (memory.held + bytes <= memory.usable && memory.free >= slots->leave.more);
    }
    slots->leave.pending = !failed && !event->enough && bytes <= memory.usable;
    return !slots->leave.pending;
}

static bool
take_progress(struct slots *slots, struct slots_event *event)
{
    for (int i = 0; i < slots->count; i++) {
        struct job_slot *slot = &slots->items[i];
        if (!slot->has_news)
            continue;
        slot->has_news = false;
        *event = (struct slots_event){
            .kind = SLOTS_PROGRESS, .job = slot->running->job, .stage = slot->stage, .fraction = slot->fraction};
        return true;
    }
    return false;
}

bool
slots_next_event(struct slots *slots, struct slots_event *event)
{
    pthread_mutex_lock(&slots->lock);
    bool found = take_reserved(slots, event) || take_progress(slots, event);
    struct task *task = found ? NULL : take_first(&slots->ended);
    pthread_mutex_unlock(&slots->lock);
    if (!task)
        return found;
    *event = (struct slots_event){.kind = SLOTS_DONE, .job = task->job, .report = task->report};
    memset(&task->report, 0, sizeof task->report); /* the event owns its arrays now */
    task_free(task);
    return true;
}
