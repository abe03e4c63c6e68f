/* workers.c - see workers.h. */
#include "service/daemon/jobs/workers.h"

#include "service/common/log.h"
#include "service/common/role.h"
#include "service/common/wire/messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define MOST_GPUS     64
#define PROBE_MILLIS  30000 /* a probe that takes longer is not waited for */
#define AGAIN_MILLIS  30000 /* between two probes when there must be a GPU and is none */
#define TROUBLE_BYTES 256
#define CPU           "cpu"

struct workers_item {
    int slot;
    char device[KERNELS_UUID]; /* CPU, or a UUID; "": none, the slot is to stay empty */
    int failures;              /* of its device, in a row */
    bool lost;                 /* the child there takes no job any more */
};

/* What the workers were started with, beside their devices. */
struct workers_settings {
    int threads, lanes, share;
    int memory_mib;
};

struct workers {
    struct core *core;
    struct workers_item items[WORKERS_MAX];
    size_t count;
    struct workers_settings settings;
    int probe;
    struct kernels_gpu found[MOST_GPUS]; /* by the latest probe */
    size_t found_count;
    bool probing;              /* a probe is to come, or lives */
    bool stale;                /* and what it finds is asked for once more */
    bool answered;             /* it has told all it has to tell */
    uint64_t probe_overdue_at; /* of the loop's clock; 0: nobody waits for it */
    uint64_t probe_again_at;   /* 0: not needed */
    char trouble[TROUBLE_BYTES];
    char notified[TROUBLE_BYTES]; /* what the last event said */
};

static bool
workers_is_backend(const struct workers *workers, const char *name)
{
    return strcmp(workers->core->conf->compute.backend, name) == 0;
}

static bool
worker_is_gpu(const struct workers_item *worker)
{
    return *worker->device && strcmp(worker->device, CPU) != 0;
}

static uint64_t
workers_now(const struct workers *workers)
{
    return uv_now(&workers->core->loop);
}

/* ------------------------------------------------------------------------------- telling --- */

static void
workers_describe(const struct workers *workers, char *text, size_t size)
{
    size_t length = 0;
    *text = '\0';
    for (size_t i = 0; i < workers->count && length < size; i++) {
        if (*workers->items[i].device)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "",
                                       workers->items[i].device);
    }
}

/* Every device has failed so often that nobody should wait for it; "" otherwise. */
static void
workers_judge(const struct workers *workers, char *trouble, size_t size)
{
    *trouble = '\0';
    size_t wanted = 0, failing = 0;
    for (size_t i = 0; i < workers->count; i++) {
        wanted += *workers->items[i].device != 0;
        failing += workers->items[i].failures >= WORKERS_GIVE_UP && !workers_usable(workers, i);
    }
    if (wanted == 0)
        snprintf(trouble, size,
                 workers->core->conf->compute.device_count
                     ? "backend = \"cuda\", and none of compute.devices was found"
                     : "backend = \"cuda\", and no GPU was found");
    else if (failing == wanted)
        snprintf(trouble, size, "backend = \"cuda\", and every GPU fails");
}

static void
workers_notify(struct workers *workers)
{
    char detail[TROUBLE_BYTES];
    workers_judge(workers, workers->trouble, sizeof workers->trouble);
    bool waiting = *workers->trouble;
    if (waiting)
        memcpy(detail, workers->trouble, sizeof detail);
    else
        workers_describe(workers, detail, sizeof detail);
    if (strcmp(detail, workers->notified) == 0)
        return;
    memcpy(workers->notified, detail, sizeof detail);
    core_note(workers->core, waiting ? "COMPUTE_WAITING" : "COMPUTE_READY", detail);
    if (waiting)
        log_error("compute.waiting", LOG_STR("why", detail));
    else
        log_info("compute.ready", LOG_STR("devices", detail));
}

/* -------------------------------------------------------------------------------- filling -- */

static int
workers_fill(struct workers *workers, size_t number, const char *device, bool renew)
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
    if (!renew && strcmp(worker->device, device) == 0)
        return 0;
    snprintf(worker->device, sizeof worker->device, "%s", device);
    worker->failures = 0;
    if (*device)
        pool_fill(core->pool, worker->slot, device, workers->settings.share);
    else
        pool_empty(core->pool, worker->slot);
    return 0;
}

/* Makes the workers be those of these devices. */
static int
workers_apply(struct workers *workers, const char *const *devices, size_t count)
{
    const struct conf_compute *compute = &workers->core->conf->compute;
    const struct workers_settings settings = {compute->threads, compute->lanes,
                                              count ? (int)count : 1,
                                              (int)workers->core->conf->jobs.memory_mib};
    bool renew = memcmp(&settings, &workers->settings, sizeof settings) != 0;
    int error = 0;
    workers->settings = settings;
    for (size_t i = 0; i < count && !error; i++)
        error = workers_fill(workers, i, devices[i], renew);
    for (size_t i = count; i < workers->count; i++)
        workers_fill(workers, i, "", false);
    if (error)
        log_error("worker.slot", LOG_STR("error", strerror(-error)));
    workers_notify(workers);
    return error;
}

static int
workers_apply_cpu(struct workers *workers)
{
    return workers_apply(workers, (const char *const[]){CPU}, 1);
}

static void
workers_report_missing(struct workers *workers, const struct devices_choice *choice)
{
    char detail[TROUBLE_BYTES];
    for (size_t i = 0; i < choice->missing_count; i++) {
        const char *name = workers->core->conf->compute.devices[choice->missing[i]];
        log_error("device.missing", LOG_STR("device", name),
                  LOG_INT("found", workers->found_count));
        snprintf(detail, sizeof detail, "%s is in compute.devices, and not in this machine", name);
        if (!*workers->trouble) /* while it is waited for it has been said */
            core_note(workers->core, "DEVICE_MISSING", detail);
    }
}

/* What was found, or none when the probe failed. */
static void
workers_apply_found(struct workers *workers)
{
    const struct conf_compute *compute = &workers->core->conf->compute;
    struct devices_choice choice;
    const char *devices[DEVICES_MAX];
    devices_choose(workers->found, workers->found_count, compute->devices, compute->device_count,
                   &choice);
    for (size_t i = 0; i < choice.chosen_count; i++)
        devices[i] = workers->found[choice.chosen[i]].uuid;
    workers_report_missing(workers, &choice);
    if (choice.chosen_count == 0 && workers_is_backend(workers, "cuda")) {
        workers->probe_again_at = workers_now(workers) + AGAIN_MILLIS;
        log_warn("compute.no_gpu", LOG_INT("found", workers->found_count),
                 LOG_INT("again_ms", AGAIN_MILLIS));
    }
    if (choice.chosen_count > 0 || workers_is_backend(workers, "cuda"))
        workers_apply(workers, devices, choice.chosen_count);
    else
        workers_apply_cpu(workers);
}

/* --------------------------------------------------------------------------------- probe --- */

static void
workers_start_probe(struct workers *workers)
{
    workers->probe_again_at = 0;
    workers->probe_overdue_at = workers_now(workers) + PROBE_MILLIS;
    workers->stale = workers->probing;
    if (workers->probing)
        return;
    workers->probing = true;
    workers->answered = false;
    pool_fill(workers->core->pool, workers->probe, "", 0);
}

static int
workers_begin(struct workers *workers)
{
    if (workers_is_backend(workers, CPU)) {
        pool_empty(workers->core->pool, workers->probe);
        workers->probe_overdue_at = workers->probe_again_at = 0;
        return workers_apply_cpu(workers);
    }
    workers_start_probe(workers);
    return 0;
}

static bool
workers_take_gpu(struct kernels_gpu *gpu, const struct message_device *told)
{
    if (told->index < 0 || told->index > INT32_MAX || !*told->uuid ||
        strlen(told->uuid) >= sizeof gpu->uuid)
        return false;
    *gpu = (struct kernels_gpu){.index = (int)told->index, .memory_bytes = told->memory_bytes};
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", told->uuid);
    snprintf(gpu->name, sizeof gpu->name, "%s", told->name);
    return true;
}

void
workers_probe_frame(struct workers *workers, struct proto_reader *reader)
{
    struct message_device told;
    if (message_read_devices(reader, NULL) || reader->rows > MOST_GPUS) {
        reader->error = -EBADMSG;
        return;
    }
    workers->found_count = 0;
    while (message_next_device(reader, &told)) {
        if (!workers_take_gpu(&workers->found[workers->found_count++], &told))
            reader->error = -EBADMSG;
    }
    workers->answered = !reader->error;
    if (reader->error)
        workers->found_count = 0;
    for (size_t i = 0; i < workers->found_count && workers->answered; i++)
        log_info("device.found", LOG_INT("index", workers->found[i].index),
                 LOG_STR("uuid", workers->found[i].uuid), LOG_STR("name", workers->found[i].name),
                 LOG_INT("memory_mib", workers->found[i].memory_bytes >> 20));
    pool_empty(workers->core->pool, workers->probe);
}

/* Its answer is acted upon once it is gone, so that it never shares a GPU with a worker. */
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
        return; /* it has been done without */
    if (!answered) {
        workers->found_count = 0;
        log_error("probe.failed", LOG_INT("status", gone->exit_status),
                  LOG_INT("signal", gone->signal));
    }
    workers_apply_found(workers);
}

void
workers_tick(struct workers *workers)
{
    uint64_t at = workers_now(workers);
    if (workers->core->draining)
        return;
    if (workers->probe_overdue_at && at > workers->probe_overdue_at) {
        workers->probe_overdue_at = 0;
        workers->found_count = 0;
        log_error("probe.silent", LOG_INT("seconds", PROBE_MILLIS / 1000));
        pool_empty(workers->core->pool, workers->probe);
        pool_kill(workers->core->pool, workers->probe, "it did not tell which GPUs there are");
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
    workers_notify(workers);
}

void
workers_device_lost(struct workers *workers, size_t number, const char *why)
{
    struct workers_item *worker = &workers->items[number];
    char detail[TROUBLE_BYTES];
    worker->lost = true;
    log_error("device.lost", LOG_INT("number", number), LOG_STR("device", worker->device),
              LOG_STR("what", why));
    snprintf(detail, sizeof detail, "%s (%s)", worker->device, why);
    core_note(workers->core, "DEVICE_LOST", detail);
}

void
workers_proven(struct workers *workers, size_t number)
{
    workers->items[number].failures = 0;
    workers_notify(workers);
}

static bool
workers_others_serve(const struct workers *workers, size_t number)
{
    for (size_t i = 0; i < workers->count; i++) {
        if (i != number && *workers->items[i].device)
            return true;
    }
    return false;
}

static void
workers_give_up(struct workers *workers, size_t number)
{
    struct workers_item *worker = &workers->items[number];
    bool others = workers_others_serve(workers, number);
    char detail[TROUBLE_BYTES];
    snprintf(detail, sizeof detail, "%s failed %d times in a row; until the next reload %s",
             worker->device, worker->failures,
             others ? "the others work without it" : "jobs run on the CPUs");
    log_error("device.given_up", LOG_INT("number", number), LOG_STR("what", detail));
    core_note(workers->core, "DEVICE_GIVEN_UP", detail);
    if (others) {
        workers_fill(workers, number, "", false);
    } else {
        workers->settings.share = 1;
        workers_fill(workers, number, CPU, false);
    }
}

/* Was it the device? Its worker says so, or does not even come to life with it, and not for what it was short of. */
static bool
worker_device_failed(const struct workers_item *worker, const struct pool_gone *gone)
{
    return worker_is_gpu(worker) && !gone->ordered &&
           (gone->exit_status == ROLE_EXIT_DEVICE ||
            (!gone->was_ready && gone->exit_status != EX_TEMPFAIL));
}

void
workers_gone(struct workers *workers, size_t number, const struct pool_gone *gone)
{
    struct workers_item *worker = &workers->items[number];
    worker->lost = false;
    if (workers->core->draining)
        return;
    bool failed = worker_device_failed(worker, gone);
    worker->failures += failed;
    /* One that is tried for ever is not an event each time. */
    if (!gone->ordered && worker->failures <= WORKERS_GIVE_UP)
        core_note_death(workers->core, "WORKER_DIED", gone);
    if (!failed)
        return;
    log_error("device.failed", LOG_INT("number", number), LOG_STR("device", worker->device),
              LOG_INT("in_a_row", worker->failures));
    if (worker->failures == WORKERS_GIVE_UP && workers_is_backend(workers, "auto"))
        workers_give_up(workers, number);
    workers_notify(workers);
}

/* ---------------------------------------------------------------------------- asked about -- */

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
    return !worker->lost && pool_ready(workers->core->pool, worker->slot);
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
workers_trouble(const struct workers *workers)
{
    return workers->trouble;
}

/* ----------------------------------------------------------------------------- the whole --- */

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
