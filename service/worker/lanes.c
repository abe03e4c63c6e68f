/*
 * lanes.c - see lanes.h.
 *
 * Everything in struct lanes below `lock` is guarded by it. A lane's thread holds the lock only
 * between jobs and for the few words of a progress report.
 */
#include "service/worker/lanes.h"

#include "base/error.h"
#include "service/common/clock.h"
#include "service/common/crash_point.h"
#include "service/common/parallel.h"
#include "service/worker/fake_gpus.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_SECONDS 0.2

struct task {
    struct task *next;
    int64_t job;
    char *file;
    struct pipeline_report report; /* once it has ended */
};

struct task_list {
    struct task *first, **end;
};

struct lane {
    struct lanes *lanes;
    struct kernels_lane *compute;
    struct kernels_lane *fallback; /* NULL until a job needs it */
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
    const struct task *running; /* NULL: idle */
    const char *stage;
    double fraction;
    double told; /* when progress was last offered */
    bool has_news;
};

struct lanes {
    struct kernels_device *device;
    struct kernels_device *fallback; /* NULL until a job needs it */
    struct fake_gpu *fake;           /* NULL but in tests */
    int threads;
    void (*wake)(void *context);
    void *context;
    struct lane *items;
    int count;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task_list waiting, ended;
    bool closing;
    bool lost; /* the device has failed */
};

/* --------------------------------------------------------------------------------- lists ---- */

static void
list_init(struct task_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void
list_append(struct task_list *list, struct task *task)
{
    task->next = NULL;
    *list->end = task;
    list->end = &task->next;
}

static struct task *
list_take_at(struct task_list *list, struct task **at)
{
    struct task *task = *at;
    *at = task->next;
    if (!task->next)
        list->end = at;
    return task;
}

static struct task *
list_take(struct task_list *list)
{
    return list->first ? list_take_at(list, &list->first) : NULL;
}

static void
task_free(struct task *task)
{
    if (!task)
        return;
    pipeline_report_clear(&task->report);
    free(task->file);
    free(task);
}

/* With the lock held: takes the waiting task at *at out as one that was told to stop. */
static void
give_back(struct lanes *lanes, struct task **at)
{
    struct task *task = list_take_at(&lanes->waiting, at);
    task->report.verdict = PROTO_VERDICT_STOPPED;
    error_set(&task->report.error, 0, CODE_STOPPED, "the job was given back before it began");
    list_append(&lanes->ended, task);
}

static void
give_back_all(struct lanes *lanes)
{
    while (lanes->waiting.first)
        give_back(lanes, &lanes->waiting.first);
}

/* ------------------------------------------------------------------------ a lane's thread -- */

static void
on_progress(void *context, const char *stage, double fraction)
{
    struct lane *lane = context;
    double now = clock_seconds();
    pthread_mutex_lock(&lane->lanes->lock);
    bool due = now - lane->told >= PROGRESS_SECONDS;
    if (due) {
        lane->told = now;
        lane->stage = stage;
        lane->fraction = fraction;
        lane->has_news = true;
    }
    pthread_mutex_unlock(&lane->lanes->lock);
    if (due)
        lane->lanes->wake(lane->lanes->context);
}

/* As a job whose device fails, for tests. */
static void
fail_as_lost(struct task *task)
{
    task->report.verdict = PROTO_VERDICT_RETRY;
    task->report.device_lost = true;
    error_set(&task->report.error, -EIO, CODE_COMPUTE_DEVICE_LOST,
              "the compute backend: the device has failed");
}

/* The CPUs behind a GPU, for what does not fit into its memory: theirs is not spent before. */
static bool
open_fallback(struct lane *lane)
{
    struct lanes *lanes = lane->lanes;
    const struct kernels_device_options options = {.backend = "cpu", .threads = lanes->threads};
    pthread_mutex_lock(&lanes->lock);
    if (!lanes->fallback)
        kernels_device_open(&options, &lanes->fallback, NULL);
    if (lanes->fallback && !lane->fallback)
        kernels_lane_open(lanes->fallback, &lane->fallback, NULL);
    pthread_mutex_unlock(&lanes->lock);
    return lane->fallback != NULL;
}

static bool
may_fall_back(const struct lane *lane, const struct pipeline_report *report)
{
    return !lane->fallback && report->verdict == PROTO_VERDICT_RETRY &&
           report->error.code == CODE_OUT_OF_MEMORY &&
           strcmp(kernels_device_backend(lane->lanes->device), "cpu") != 0;
}

static void
compute_task(struct lane *lane, const struct job_spec *spec, const struct pipeline_watch *watch,
             struct pipeline_report *report)
{
    struct pipeline_compute compute = {.device = lane->lanes->device,
                                       .lane = lane->compute,
                                       .threads = lane->lanes->threads,
                                       .fallback_device =
                                           lane->fallback ? lane->lanes->fallback : NULL,
                                       .fallback_lane = lane->fallback};
    pipeline_run(spec, &compute, watch, report);
    if (!may_fall_back(lane, report) || !open_fallback(lane))
        return;
    compute.fallback_device = lane->lanes->fallback;
    compute.fallback_lane = lane->fallback;
    pipeline_report_clear(report);
    pipeline_run(spec, &compute, watch, report);
}

static void
run_task(struct lane *lane, struct task *task)
{
    const struct pipeline_watch watch = {on_progress, lane, &lane->stop};
    struct job_spec *spec;
    struct error error;
    int rc = job_spec_read(task->file, &spec, &error);
    if (rc) {
        task->report.verdict = PROTO_VERDICT_RETRY;
        error_set(&task->report.error, rc, CODE_JOB_FILE_UNREADABLE, "%.200s: %s", task->file,
                  error.message);
        return;
    }
    if (lane->lanes->fake && fake_gpu_fails(lane->lanes->fake))
        fail_as_lost(task);
    else
        compute_task(lane, spec, &watch, &task->report);
    job_spec_free(spec);
    crash_point("worker_before_done");
}

/* Waits for a job; NULL when the lanes close. */
static struct task *
begin_task(struct lane *lane)
{
    struct lanes *lanes = lane->lanes;
    pthread_mutex_lock(&lanes->lock);
    while ((!lanes->waiting.first || lanes->lost) && !lanes->closing)
        pthread_cond_wait(&lanes->changed, &lanes->lock);
    struct task *task = lanes->closing ? NULL : list_take(&lanes->waiting);
    lane->running = task;
    lane->told = 0;
    atomic_store(&lane->stop, false);
    pthread_mutex_unlock(&lanes->lock);
    return task;
}

static void
end_task(struct lane *lane, struct task *task)
{
    struct lanes *lanes = lane->lanes;
    pthread_mutex_lock(&lanes->lock);
    lane->running = NULL;
    lane->has_news = false;
    list_append(&lanes->ended, task);
    if (task->report.device_lost) {
        lanes->lost = true;
        give_back_all(lanes);
    }
    pthread_mutex_unlock(&lanes->lock);
    lanes->wake(lanes->context);
}

static void *
lane_main(void *argument)
{
    struct lane *lane = argument;
    for (struct task *task; (task = begin_task(lane)) != NULL;) {
        run_task(lane, task);
        end_task(lane, task);
    }
    return NULL;
}

/* ----------------------------------------------------------------------- opening, closing -- */

static int
open_lane(struct lanes *lanes, struct lane *lane, struct error *error)
{
    lane->lanes = lanes;
    int rc = kernels_lane_open(lanes->device, &lane->compute, error);
    if (rc)
        return rc;
    rc = -pthread_create(&lane->thread, NULL, lane_main, lane);
    lane->has_thread = rc == 0;
    return rc ? error_set_system(error, rc, "start a thread") : 0;
}

/* A GPU that a test made up computes on the CPUs. */
static int
open_device(struct lanes *lanes, const char *name, struct error *error)
{
    bool is_cpu = strcmp(name, "cpu") == 0;
    struct kernels_device_options options = {.backend = is_cpu ? "cpu" : "cuda",
                                             .device = is_cpu ? "" : name,
                                             .threads = lanes->threads};
    if (!is_cpu && fake_gpus_in_use()) {
        int rc = fake_gpu_open(name, &lanes->fake, error);
        if (rc)
            return rc;
        options.backend = "cpu";
        options.device = "";
    }
    return kernels_device_open(&options, &lanes->device, error);
}

int
lanes_open(const struct lanes_options *options, struct lanes **out, struct error *error)
{
    struct lanes *lanes = calloc(1, sizeof *lanes);
    if (lanes)
        lanes->items = calloc((size_t)options->count, sizeof *lanes->items);
    if (!lanes || !lanes->items) {
        free(lanes);
        return error_set_system(error, -ENOMEM, "open the lanes");
    }
    lanes->threads = options->threads > 0 ? options->threads : parallel_processors();
    lanes->wake = options->wake;
    lanes->context = options->context;
    pthread_mutex_init(&lanes->lock, NULL);
    pthread_cond_init(&lanes->changed, NULL);
    list_init(&lanes->waiting);
    list_init(&lanes->ended);
    int rc = open_device(lanes, options->device, error);
    while (rc == 0 && lanes->count < options->count)
        rc = open_lane(lanes, &lanes->items[lanes->count++], error);
    if (rc)
        lanes_close(lanes);
    else
        *out = lanes;
    return rc;
}

const char *
lanes_description(const struct lanes *lanes)
{
    return kernels_device_description(lanes->device);
}

static void
stop_threads(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    lanes->closing = true;
    for (int i = 0; i < lanes->count; i++)
        atomic_store(&lanes->items[i].stop, true);
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->lock);
    for (int i = 0; i < lanes->count; i++) {
        if (lanes->items[i].has_thread)
            pthread_join(lanes->items[i].thread, NULL);
    }
}

void
lanes_close(struct lanes *lanes)
{
    if (!lanes)
        return;
    stop_threads(lanes);
    for (int i = 0; i < lanes->count; i++) {
        if (lanes->items[i].compute)
            kernels_lane_close(lanes->items[i].compute);
        if (lanes->items[i].fallback)
            kernels_lane_close(lanes->items[i].fallback);
    }
    if (lanes->fallback)
        kernels_device_close(lanes->fallback);
    if (lanes->device)
        kernels_device_close(lanes->device);
    while (lanes->waiting.first)
        task_free(list_take(&lanes->waiting));
    while (lanes->ended.first)
        task_free(list_take(&lanes->ended));
    fake_gpu_close(lanes->fake);
    pthread_cond_destroy(&lanes->changed);
    pthread_mutex_destroy(&lanes->lock);
    free(lanes->items);
    free(lanes);
}

/* ------------------------------------------------------------------------------ the loop ---- */

int
lanes_run(struct lanes *lanes, int64_t job, const char *file)
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
    pthread_mutex_lock(&lanes->lock);
    list_append(&lanes->waiting, task);
    if (lanes->lost)
        give_back_all(lanes);
    bool lost = lanes->lost;
    pthread_cond_signal(&lanes->changed);
    pthread_mutex_unlock(&lanes->lock);
    if (lost)
        lanes->wake(lanes->context);
    return 0;
}

void
lanes_stop(struct lanes *lanes, int64_t job)
{
    pthread_mutex_lock(&lanes->lock);
    for (int i = 0; i < lanes->count; i++) {
        if (lanes->items[i].running && lanes->items[i].running->job == job)
            atomic_store(&lanes->items[i].stop, true);
    }
    struct task **at = &lanes->waiting.first;
    while (*at) {
        if ((*at)->job == job)
            give_back(lanes, at);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&lanes->lock);
    lanes->wake(lanes->context);
}

void
lanes_give_back(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    give_back_all(lanes);
    pthread_mutex_unlock(&lanes->lock);
    lanes->wake(lanes->context);
}

bool
lanes_lost(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    bool lost = lanes->lost;
    pthread_mutex_unlock(&lanes->lock);
    return lost;
}

bool
lanes_idle(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    bool idle = !lanes->waiting.first && !lanes->ended.first;
    for (int i = 0; i < lanes->count; i++)
        idle = idle && !lanes->items[i].running;
    pthread_mutex_unlock(&lanes->lock);
    return idle;
}

static bool
take_progress(struct lanes *lanes, struct lanes_event *event)
{
    for (int i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->items[i];
        if (!lane->has_news)
            continue;
        lane->has_news = false;
        *event = (struct lanes_event){.kind = LANES_PROGRESS,
                                      .job = lane->running->job,
                                      .stage = lane->stage,
                                      .fraction = lane->fraction};
        return true;
    }
    return false;
}

bool
lanes_next_event(struct lanes *lanes, struct lanes_event *event)
{
    pthread_mutex_lock(&lanes->lock);
    bool found = take_progress(lanes, event);
    struct task *task = found ? NULL : list_take(&lanes->ended);
    pthread_mutex_unlock(&lanes->lock);
    if (!task)
        return found;
    *event = (struct lanes_event){.kind = LANES_DONE, .job = task->job, .report = task->report};
    memset(&task->report, 0, sizeof task->report); /* its arrays are the event's now */
    task_free(task);
    return true;
}
