#include "service/daemon/jobs/workers.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/role.h"
#include "service/common/wire/messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define MAX_GPUS      64
#define PROBE_MILLIS  30000 /* longest time to wait for a probe */
#define AGAIN_MILLIS  30000 /* between two probes if a GPU is required and missing */
#define LEND_MILLIS   1000  /* before a worker that has started may be lent */
#define PROBLEM_BYTES 256
#define DETAIL_BYTES  4096 /* of an event that lists all devices */
#define CPU           "cpu"

/* A worker's compute device. */
struct workers_device {
    char name[KERNELS_UUID]; /* CPU, or a UUID; "": the slot must stay empty */
    int share;               /* number of workers on its processors */
};

struct workers_item {
    int slot;
    struct workers_device device;
    int failures;      /* of its device, in a row */
    bool lost;         /* the child accepts no more jobs */
    bool is_lent;      /* its GPU belongs to a program: the slot must stay empty */
    bool is_away;      /* a lent one has ended */
    uint64_t ready_at; /* in the loop's clock */
};

/* Settings of the workers at their start, apart from the devices. */
struct workers_settings {
    int threads, lanes;
    int memory_mib, keep_mib;
};

struct workers_found {
    struct kernels_gpu gpus[MAX_GPUS];
    size_t count;
};

static const struct workers_device no_device = {.name = ""};
static const struct workers_device processors = {CPU, 1};

struct workers {
    struct core *core;
    struct workers_item items[WORKERS_MAX];
    size_t count;
    struct workers_settings settings;
    int probe;
    struct workers_found found; /* by the latest successful probe */
    bool probing;               /* a probe is running or will start */
    bool stale;                 /* another probe must follow it */
    bool answered;              /* the probe has reported */
    uint64_t probe_overdue_at;  /* in the loop's clock; 0: not waited for */
    uint64_t probe_again_at;    /* 0: not needed */
    char problem[PROBLEM_BYTES];
    int64_t problem_since_ms;    /* Unix time; 0: no problem */
    char notified[DETAIL_BYTES]; /* text of the last event */
};

static bool
workers_is_backend(const struct workers *workers, const char *name)
{
    return strcmp(workers->core->conf->compute.backend, name) == 0;
}

/* ------------------------------------------------------------------------------ reporting --- */

/* Describes the problem if every device has failed too often to wait for; "" otherwise. */
static void
workers_describe_problem(const struct workers *workers, char *problem, size_t size)
{
    *problem = '\0';
    size_t wanted = 0, failing = 0;
    for (size_t i = 0; i < workers->count; i++) {
        wanted += *workers->items[i].device.name != 0;
        failing += workers->items[i].failures >= WORKERS_MAX_FAILURES && !workers_usable(workers, i);
    }
    if (wanted == 0)
        snprintf(problem, size,
                 workers->core->conf->compute.device_count ? "backend = \"cuda\", and none of compute.devices was found"
                                                           : "backend = \"cuda\", and no GPU was found");
    else if (failing == wanted)
        snprintf(problem, size, "backend = \"cuda\", and every GPU fails");
}

static void
workers_notify(struct workers *workers)
{
    char detail[DETAIL_BYTES] = "";
    size_t length = 0;
    workers_describe_problem(workers, workers->problem, sizeof workers->problem);
    bool waiting = *workers->problem;
    if (waiting != (workers->problem_since_ms > 0))
        workers->problem_since_ms = waiting ? clock_unix_ms() : 0;
    if (waiting)
        snprintf(detail, sizeof detail, "%s", workers->problem);
    for (size_t i = 0; i < workers->count && !waiting && length < sizeof detail; i++) {
        const char *name = workers->items[i].device.name;
        if (*name)
            length += (size_t)snprintf(detail + length, sizeof detail - length, "%s%s", length ? ", " : "", name);
    }
    if (strcmp(detail, workers->notified) == 0)
        return;
    snprintf(workers->notified, sizeof workers->notified, "%s", detail);
    core_note(workers->core, waiting ? "COMPUTE_WAITING" : "COMPUTE_READY", detail);
    if (waiting)
        log_error("compute.waiting", LOG_STR("why", detail));
    else
        log_info("compute.ready", LOG_STR("devices", detail));
}

/* -------------------------------------------------------------------------------- filling -- */

static int
workers_fill(struct workers *workers, size_t number, const struct workers_device *device, bool renew)
{
    struct core *core = workers->core;
    struct workers_item *worker = &workers->items[number];
    if (number >= workers->count) {
        int slot = pool_reserve(core->pool, "worker", (int)number);
        if (slot < 0)
            return slot;
        *worker = (struct workers_item){.slot = slot};
        workers->count = number + 1;
    }
    if (!renew && strcmp(worker->device.name, device->name) == 0 && worker->device.share == device->share)
        return 0;
    worker->device = *device;
    worker->failures = 0;
    if (worker->is_lent)
        return 0;
    if (*device->name)
        pool_fill(core->pool, worker->slot, &(struct pool_device){device->name, device->share});
    else
        pool_empty(core->pool, worker->slot);
    return 0;
}

/* Changes the workers to match these devices. */
static int
workers_apply(struct workers *workers, const struct workers_device *devices, size_t count)
{
    const struct conf_compute *compute = &workers->core->conf->compute;
    const struct workers_settings settings = {compute->threads, compute->lanes,
                                              (int)workers->core->conf->jobs.memory_mib, (int)compute->keep_mib};
    bool renew = memcmp(&settings, &workers->settings, sizeof settings) != 0;
    int error = 0;
    workers->settings = settings;
    for (size_t i = 0; i < count && !error; i++)
        error = workers_fill(workers, i, &devices[i], renew);
    for (size_t i = count; i < workers->count; i++)
        workers_fill(workers, i, &no_device, false);
    if (error)
        log_error("worker.slot", LOG_STR("error", strerror(-error)));
    workers_notify(workers);
    return error;
}

/* Applies the GPUs found by the last successful probe. A GPU that is gone may block the driver for each new process,
 * including the probe, while running workers on other GPUs are not affected. */
static void
workers_apply_found(struct workers *workers)
{
    const struct conf_compute *compute = &workers->core->conf->compute;
    struct devices_choice choice;
    struct workers_device devices[DEVICES_MAX];
    char detail[PROBLEM_BYTES];
    devices_choose(workers->found.gpus, workers->found.count, compute->devices, compute->device_count, &choice);
    for (size_t i = 0; i < choice.chosen_count; i++) {
        devices[i].share = (int)choice.chosen_count;
        memcpy(devices[i].name, workers->found.gpus[choice.chosen[i]].uuid, sizeof devices[i].name);
    }
    for (size_t i = 0; i < choice.missing_count; i++) {
        const char *name = compute->devices[choice.missing[i]];
        log_error("device.missing", LOG_STR("device", name), LOG_INT("found", workers->found.count));
        snprintf(detail, sizeof detail, "%s is in compute.devices, and not in this machine", name);
        if (!*workers->problem) /* else the waiting event was already added */
            core_note(workers->core, "DEVICE_MISSING", detail);
    }
    if (choice.chosen_count == 0 && workers_is_backend(workers, "cuda")) {
        workers->probe_again_at = uv_now(&workers->core->loop) + AGAIN_MILLIS;
        log_warn("compute.no_gpu", LOG_INT("found", workers->found.count), LOG_INT("again_ms", AGAIN_MILLIS));
    }
    if (choice.chosen_count > 0 || workers_is_backend(workers, "cuda"))
        workers_apply(workers, devices, choice.chosen_count);
    else
        workers_apply(workers, &processors, 1);
}

/* --------------------------------------------------------------------------------- probe --- */

static void
workers_start_probe(struct workers *workers)
{
    workers->probe_again_at = 0;
    workers->probe_overdue_at = uv_now(&workers->core->loop) + PROBE_MILLIS;
    workers->stale = workers->probing;
    if (workers->probing)
        return;
    workers->probing = true;
    workers->answered = false;
    pool_fill(workers->core->pool, workers->probe, NULL);
}

static int
workers_begin(struct workers *workers)
{
    if (workers_is_backend(workers, CPU)) {
        pool_empty(workers->core->pool, workers->probe);
        workers->probe_overdue_at = workers->probe_again_at = 0;
        return workers_apply(workers, &processors, 1);
    }
    workers_start_probe(workers);
    return 0;
}

void
workers_probe_frame(struct workers *workers, struct proto_reader *reader)
{
    struct workers_found found = {.count = 0};
    struct message_device message;
    bool is_sound = message_read_devices(reader, NULL) == 0 && reader->rows <= MAX_GPUS;
    while (is_sound && message_next_device(reader, &message)) {
        struct kernels_gpu *gpu = &found.gpus[found.count++];
        *gpu = (struct kernels_gpu){.index = (int)message.index, .memory_bytes = message.memory_bytes};
        snprintf(gpu->uuid, sizeof gpu->uuid, "%s", message.uuid);
        snprintf(gpu->name, sizeof gpu->name, "%s", message.name);
        is_sound = message.index >= 0 && message.index <= INT32_MAX && *message.uuid &&
                   strlen(message.uuid) < sizeof gpu->uuid;
    }
    if (!is_sound)
        reader->error = -EBADMSG;
    workers->answered = !reader->error;
    pool_empty(workers->core->pool, workers->probe);
    if (reader->error)
        return;
    workers->found = found;
    for (size_t i = 0; i < found.count; i++)
        log_info("device.found", LOG_INT("index", found.gpus[i].index), LOG_STR("uuid", found.gpus[i].uuid),
                 LOG_STR("name", found.gpus[i].name), LOG_INT("memory_mib", found.gpus[i].memory_bytes >> 20));
}

/* The report is applied after the probe's end, so that it never shares a GPU with a worker. */
void
workers_probe_gone(struct workers *workers, const struct pool_gone *gone)
{
    bool answered = workers->answered, waited_for = workers->probe_overdue_at != 0;
    workers->probing = workers->answered = false;
    pool_empty(workers->core->pool, workers->probe);
    if (workers->core->draining || workers_is_backend(workers, CPU))
        return;
    if (workers->stale) {
        workers_start_probe(workers);
        return;
    }
    workers->probe_overdue_at = 0;
    if (!answered && !waited_for)
        return; /* the workers run without it */
    if (!answered)
        log_error("probe.failed", LOG_INT("status", gone->exit_status), LOG_INT("signal", gone->signal),
                  LOG_INT("known", workers->found.count));
    workers_apply_found(workers);
}

void
workers_tick(struct workers *workers)
{
    uint64_t at = uv_now(&workers->core->loop);
    if (workers->core->draining)
        return;
    if (workers->probe_overdue_at && at > workers->probe_overdue_at) {
        workers->probe_overdue_at = 0;
        log_error("probe.silent", LOG_INT("seconds", PROBE_MILLIS / 1000), LOG_INT("known", workers->found.count));
        pool_empty(workers->core->pool, workers->probe);
        pool_kill(workers->core->pool, workers->probe, "it did not report the GPUs");
        workers_apply_found(workers);
    } else if (workers->probe_again_at && at > workers->probe_again_at) {
        workers_start_probe(workers);
    }
}

/* --------------------------------------------------------------------------------- events -- */

void
workers_ready(struct workers *workers, size_t number)
{
    workers->items[number].lost = false;
    workers->items[number].ready_at = uv_now(&workers->core->loop);
    workers_notify(workers);
}

void
workers_device_lost(struct workers *workers, size_t number, const char *why)
{
    struct workers_item *worker = &workers->items[number];
    char detail[PROBLEM_BYTES];
    worker->lost = true;
    log_error("device.lost", LOG_INT("number", number), LOG_STR("device", worker->device.name), LOG_STR("what", why));
    snprintf(detail, sizeof detail, "%s (%s)", worker->device.name, why);
    core_note(workers->core, "DEVICE_LOST", detail);
}

void
workers_proven(struct workers *workers, size_t number)
{
    workers->items[number].failures = 0;
    workers_notify(workers);
}

static void
workers_disable(struct workers *workers, size_t number)
{
    struct workers_item *worker = &workers->items[number];
    bool others = false;
    char detail[PROBLEM_BYTES];
    for (size_t i = 0; i < workers->count; i++)
        others |= i != number && *workers->items[i].device.name;
    snprintf(detail, sizeof detail, "%s failed %d times in a row; until the next reload %s", worker->device.name,
             worker->failures, others ? "the others work without it" : "jobs run on the CPUs");
    log_error("device.given_up", LOG_INT("number", number), LOG_STR("what", detail));
    core_note(workers->core, "DEVICE_GIVEN_UP", detail);
    workers_fill(workers, number, others ? &no_device : &processors, false);
}

void
workers_gone(struct workers *workers, size_t number, const struct pool_gone *gone)
{
    struct workers_item *worker = &workers->items[number];
    worker->lost = false;
    worker->is_away = worker->is_lent;
    if (workers->core->draining)
        return;
    /* The device is the cause if the worker reported it, or did not become ready, for another reason than a lack of
     * resources. */
    const bool is_gpu = *worker->device.name && strcmp(worker->device.name, CPU) != 0;
    const bool failed =
        is_gpu && !gone->ordered &&
        (gone->exit_status == ROLE_EXIT_DEVICE || (!gone->was_ready && gone->exit_status != EX_TEMPFAIL));
    worker->failures += failed;
    /* A device that is retried forever must not add an event each time. */
    if (!gone->ordered && worker->failures <= WORKERS_MAX_FAILURES)
        core_note_death(workers->core, "WORKER_DIED", gone);
    if (!failed)
        return;
    log_error("device.failed", LOG_INT("number", number), LOG_STR("device", worker->device.name),
              LOG_INT("in_a_row", worker->failures));
    if (worker->failures == WORKERS_MAX_FAILURES && workers_is_backend(workers, "auto"))
        workers_disable(workers, number);
    workers_notify(workers);
}

/* -------------------------------------------------------------------------------- lending -- */

int
workers_device(const struct workers *workers, size_t number, char uuid[KERNELS_UUID], int64_t *memory_bytes)
{
    const char *name = workers->items[number].device.name;
    if (strcmp(name, CPU) == 0)
        return -ENODEV;
    for (size_t i = 0; i < workers->found.count; i++) {
        const struct kernels_gpu *gpu = &workers->found.gpus[i];
        if (strcmp(gpu->uuid, name) != 0)
            continue;
        memcpy(uuid, gpu->uuid, KERNELS_UUID);
        *memory_bytes = gpu->memory_bytes;
        return 0;
    }
    return -EAGAIN;
}

/* A worker that were lent at once would return the jobs that it has just got, again and again. */
bool
workers_may_lend(const struct workers *workers, size_t number)
{
    return workers_usable(workers, number) &&
           uv_now(&workers->core->loop) >= workers->items[number].ready_at + LEND_MILLIS;
}

void
workers_lend(struct workers *workers, size_t number)
{
    struct workers_item *worker = &workers->items[number];
    worker->is_lent = true;
    worker->is_away = false;
    pool_empty(workers->core->pool, worker->slot);
    log_info("gpu.lent", LOG_INT("number", number), LOG_STR("gpu", worker->device.name));
    core_note(workers->core, "GPU_LENT", worker->device.name);
}

bool
workers_lent(const struct workers *workers, size_t number)
{
    return workers->items[number].is_lent && workers->items[number].is_away;
}

void
workers_return(struct workers *workers, size_t number)
{
    struct workers_item *worker = &workers->items[number];
    worker->is_lent = worker->is_away = false;
    log_info("gpu.returned", LOG_INT("number", number), LOG_STR("gpu", worker->device.name));
    core_note(workers->core, "GPU_RETURNED", worker->device.name);
    if (*worker->device.name)
        pool_fill(workers->core->pool, worker->slot, &(struct pool_device){worker->device.name, worker->device.share});
}

/* -------------------------------------------------------------------------------- queries -- */

size_t
workers_count(const struct workers *workers)
{
    return workers->count;
}

int
workers_slot(const struct workers *workers, size_t number)
{
    return workers->items[number].slot;
}

bool
workers_usable(const struct workers *workers, size_t number)
{
    const struct workers_item *worker = &workers->items[number];
    return !worker->lost && !worker->is_lent && pool_ready(workers->core->pool, worker->slot);
}

int
workers_find(const struct workers *workers, int slot)
{
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->items[i].slot == slot)
            return (int)i;
    }
    return -1;
}

bool
workers_is_probe(const struct workers *workers, int slot)
{
    return workers->probe == slot;
}

const char *
workers_problem(const struct workers *workers, int64_t *since_ms)
{
    *since_ms = workers->problem_since_ms;
    return workers->problem;
}

/* --------------------------------------------------------------------- reload, open, close --- */

void
workers_reload(struct workers *workers)
{
    for (size_t i = 0; i < workers->count; i++)
        pool_reload(workers->core->pool, workers->items[i].slot);
    workers_begin(workers);
}

int
workers_start(struct workers *workers)
{
    workers->probe = pool_reserve(workers->core->pool, "probe", 0);
    return workers->probe < 0 ? workers->probe : workers_begin(workers);
}

int
workers_open(struct core *core, struct workers **out)
{
    struct workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return -ENOMEM;
    workers->core = core;
    workers->probe = -1;
    *out = workers;
    return 0;
}

void
workers_close(struct workers *workers)
{
    free(workers);
}
