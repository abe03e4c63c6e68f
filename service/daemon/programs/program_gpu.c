#include "service/daemon/programs/program_gpu.h"

#include "service/common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RESERVE_MILLIS 600000              /* for lanes to leave the memory */
#define KEPT_BYTES     (INT64_C(64) << 20) /* a smaller difference is not reported */

static struct program_grant *
program_gpu_find(struct program_gpus *gpus, int64_t run)
{
    for (size_t i = 0; i < gpus->count; i++)
        if (gpus->grants[i].run == run && !gpus->grants[i].is_ended)
            return &gpus->grants[i];
    return NULL;
}

/* Returns the bytes of all shares of a worker's GPU. */
static int64_t
program_gpu_shares(const struct program_gpus *gpus, size_t worker)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < gpus->count; i++)
        bytes += gpus->grants[i].worker == worker ? gpus->grants[i].bytes : 0;
    return bytes;
}

/* Returns the share of this worker's GPU that was asked for and not given yet, or NULL. */
static struct program_grant *
program_gpu_asked(struct program_gpus *gpus, size_t worker)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct program_grant *grant = &gpus->grants[i];
        if (grant->worker == worker && !grant->whole && grant->state == PROGRAM_GRANT_ASKED)
            return grant;
    }
    return NULL;
}

/* Sends the worker the bytes of all shares. The answer concerns the share that was asked for last, or is compared with
 * `before`. */
static void
program_gpu_reserve(struct program_gpus *gpus, size_t worker, int64_t before, const char *program)
{
    struct program_grant *asked = program_gpu_asked(gpus, worker);
    struct program_probe *probe = &gpus->probes[worker];
    struct proto_writer writer;
    const struct message_reserve message = {++gpus->token, program_gpu_shares(gpus, worker)};
    if (asked) {
        asked->token = message.token;
    } else {
        *probe = (struct program_probe){.token = message.token, .before = before};
        snprintf(probe->program, sizeof probe->program, "%s", program);
    }
    message_write_reserve(&writer, &message);
    pool_send(gpus->core->pool, workers_slot(gpus->core->workers, worker), &writer); /* or when it is ready */
}

static void
program_gpu_return(struct program_gpus *gpus, struct program_grant *grant)
{
    const struct program_grant was = *grant;
    *grant = gpus->grants[--gpus->count];
    if (was.whole) {
        if (was.is_used)
            snprintf(gpus->lent_for[was.worker], sizeof gpus->lent_for[was.worker], "%s", was.program);
        workers_return(gpus->core->workers, was.worker);
    } else {
        const bool was_alone = program_gpu_shares(gpus, was.worker) == 0;
        program_gpu_reserve(gpus, was.worker, was.is_used && was_alone ? was.free_before : 0, was.program);
    }
    due_now(&gpus->core->programs_due);
}

/* ------------------------------------------------------------------------------- asking ---- */

/* Chooses the GPU with the most bytes left. whole: without shares. Returns 0, -EAGAIN if none is free now, -ENOMEM if no
 * GPU is large enough, or -ENODEV. */
static int
program_gpu_choose(struct program_gpus *gpus, bool whole, int64_t bytes, size_t *chosen)
{
    struct workers *workers = gpus->core->workers;
    int64_t most = -1, largest = -1, memory;
    char uuid[KERNELS_UUID];
    int none = -EAGAIN;
    for (size_t i = 0; i < workers_count(workers); i++) {
        const int rc = workers_device(workers, i, uuid, &memory);
        const int64_t shares = program_gpu_shares(gpus, i);
        if (rc == -ENODEV)
            none = rc; /* the processors compute, since there is no GPU */
        if (rc)
            continue;
        largest = memory > largest ? memory : largest;
        if (!(whole ? workers_may_lend(workers, i) && shares == 0 : workers_usable(workers, i)) ||
            program_gpu_asked(gpus, i) || memory - shares < bytes || memory - shares <= most)
            continue;
        most = memory - shares;
        *chosen = i;
    }
    return most >= 0 ? 0 : largest < 0 ? none : largest < bytes ? -ENOMEM : -EAGAIN;
}

/* Asks a GPU's worker for the GPU, or for memory. */
static int
program_gpu_ask(struct program_gpus *gpus, int64_t run, const struct conf_program *program, bool whole, int slot)
{
    const int64_t bytes = whole ? 0 : (int64_t)(program->gpu_memory_mib * (1 << 20));
    size_t worker;
    bool is_taken = gpus->count == PROGRAM_GRANTS;
    for (size_t i = 0; i < gpus->count; i++)
        is_taken = is_taken || (whole && gpus->grants[i].whole);
    if (is_taken)
        return 0;
    const int rc = program_gpu_choose(gpus, whole, bytes, &worker);
    /* Without room, ends warm processes that have no run, so that their shares return. */
    for (size_t i = 0; i < gpus->count && rc == -EAGAIN; i++) {
        struct program_grant *grant = &gpus->grants[i];
        struct proto_writer writer;
        if (grant->run || grant->is_ended || grant->is_cooling)
            continue;
        grant->is_cooling = true;
        message_write_program_cool(&writer, &(struct message_program_cool){.program = grant->program});
        pool_send(gpus->core->pool, grant->slot, &writer);
    }
    if (rc)
        return rc == -EAGAIN ? 0 : rc;
    struct program_grant *grant = &gpus->grants[gpus->count++];
    *grant = (struct program_grant){.run = run,
                                    .slot = slot,
                                    .worker = worker,
                                    .whole = whole,
                                    .bytes = bytes,
                                    .is_wanted = true,
                                    .asked_at = uv_now(&gpus->core->loop)};
    snprintf(grant->program, sizeof grant->program, "%s", program->name);
    if (whole)
        workers_lend(gpus->core->workers, worker);
    else
        program_gpu_reserve(gpus, worker, 0, "");
    return 0;
}

/* Returns the share that the warm process of a program keeps, or NULL. */
static struct program_grant *
program_gpu_find_warm(struct program_gpus *gpus, int slot, const char *program)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct program_grant *grant = &gpus->grants[i];
        if (!grant->run && !grant->is_ended && !grant->is_cooling && grant->slot == slot &&
            strcmp(grant->program, program) == 0)
            return grant;
    }
    return NULL;
}

int
program_gpu_take(struct program_gpus *gpus, int64_t run, const struct conf_program *program, int slot,
                 struct program_place *place)
{
    struct program_grant *grant = program_gpu_find(gpus, run);
    const bool whole = place->gpu == CONF_GPU_WHOLE;
    int64_t memory;
    if (!grant && !whole)
        grant = program_gpu_find_warm(gpus, slot, program->name);
    if (!grant)
        return program_gpu_ask(gpus, run, program, whole, slot);
    grant->run = run;
    grant->slot = slot;
    grant->is_wanted = true;
    if (grant->whole && workers_lent(gpus->core->workers, grant->worker))
        grant->state = PROGRAM_GRANT_GIVEN;
    if (grant->state == PROGRAM_GRANT_ASKED)
        return 0;
    const bool is_impossible = grant->state == PROGRAM_GRANT_IMPOSSIBLE;
    if (is_impossible || workers_device(gpus->core->workers, grant->worker, place->uuid, &memory)) {
        program_gpu_return(gpus, grant);
        return is_impossible ? -ENOMEM : 0; /* it has lost its GPU: asks for another one */
    }
    grant->is_used = true;
    return 1;
}

bool
program_gpu_holds(const struct program_gpus *gpus, int slot, int64_t run)
{
    for (size_t i = 0; i < gpus->count; i++) {
        const struct program_grant *grant = &gpus->grants[i];
        if (grant->slot == slot && grant->run && grant->run != run)
            return true;
    }
    return false;
}

/* ----------------------------------------------------------------------------- returning --- */

void
program_gpu_end(struct program_gpus *gpus, int64_t run, bool stays_warm)
{
    struct program_grant *grant = program_gpu_find(gpus, run);
    if (grant && stays_warm && !grant->whole && !grant->is_cold)
        grant->run = 0;
    else if (grant) {
        grant->run = 0;
        grant->is_ended = true;
    }
}

void
program_gpu_cold(struct program_gpus *gpus, int slot, const char *program)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct program_grant *grant = &gpus->grants[i];
        if (grant->slot != slot || (program && strcmp(grant->program, program) != 0))
            continue;
        grant->is_cold = true;
        if (!program || !grant->run) {
            grant->run = 0;
            grant->is_ended = true;
        }
    }
    due_now(&gpus->core->programs_due);
}

void
program_gpu_search_begin(struct program_gpus *gpus)
{
    for (size_t i = gpus->count; i-- > 0;) {
        struct program_grant *grant = &gpus->grants[i];
        grant->is_wanted = grant->is_used;
        if (grant->is_ended)
            program_gpu_return(gpus, grant);
    }
}

void
program_gpu_search_end(struct program_gpus *gpus)
{
    for (size_t i = gpus->count; i-- > 0;)
        if (!gpus->grants[i].is_wanted)
            program_gpu_return(gpus, &gpus->grants[i]);
}

/* ------------------------------------------------------------------------------- events ---- */

void
program_gpu_reserved(struct program_gpus *gpus, size_t worker, const struct message_reserved *message)
{
    struct program_grant *grant = program_gpu_asked(gpus, worker);
    const struct program_probe probe = gpus->probes[worker];
    const int64_t kept = probe.before - message->free_bytes;
    if (grant && grant->token == message->token) {
        grant->state = message->enough ? PROGRAM_GRANT_GIVEN : PROGRAM_GRANT_IMPOSSIBLE;
        grant->free_before = message->free_bytes;
        due_now(&gpus->core->programs_due);
    } else if (probe.token == message->token) {
        gpus->probes[worker] = (struct program_probe){0};
        if (*probe.program && probe.before && kept >= KEPT_BYTES) { /* not free again after the program */
            char uuid[KERNELS_UUID] = "", detail[192];
            int64_t memory;
            workers_device(gpus->core->workers, worker, uuid, &memory);
            snprintf(detail, sizeof detail, "%s: %" PRId64 " MiB less are free than before program %s", uuid,
                     kept >> 20, probe.program);
            log_warn("gpu.memory_kept", LOG_STR("gpu", uuid), LOG_STR("program", probe.program),
                     LOG_INT("mib", kept >> 20));
            core_note(gpus->core, "GPU_MEMORY_KEPT", detail);
        }
        if (probe.is_fresh)
            gpus->fresh[worker] = message->free_bytes;
    }
}

void
program_gpu_worker_ready(struct program_gpus *gpus, size_t worker)
{
    char uuid[KERNELS_UUID];
    int64_t memory;
    if (workers_device(gpus->core->workers, worker, uuid, &memory))
        return;
    program_gpu_reserve(gpus, worker, gpus->fresh[worker], gpus->lent_for[worker]);
    gpus->probes[worker].is_fresh = program_gpu_shares(gpus, worker) == 0;
    gpus->lent_for[worker][0] = '\0';
}

void
program_gpu_tick(struct program_gpus *gpus)
{
    const uint64_t now = uv_now(&gpus->core->loop);
    for (size_t i = 0; i < gpus->count; i++) {
        struct program_grant *grant = &gpus->grants[i];
        if (!grant->whole && grant->state == PROGRAM_GRANT_ASKED && now > grant->asked_at + RESERVE_MILLIS)
            grant->state = PROGRAM_GRANT_IMPOSSIBLE;
    }
}
