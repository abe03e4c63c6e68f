/*
 * deliveries.c - see deliveries.h.
 *
 * A delivery is under way from its SENDING row, which is committed before DELIVER is sent, until the sender reports
 * DELIVERED or is gone. delivery_attempt.c then records the outcome. If a sender dies
 *
 *     by itself, by silence or a broken frame   each of its deliveries is charged the attempt,
 *                                               and the destination counts one failure
 *     by order of the daemon (drain)            all its deliveries return, no attempt counts
 *
 * A sender serves one destination, so that one destination's replies cannot end deliveries to others. It is started
 * when its first delivery is due. Deliveries that were lost together get different delays, so that one which crashes
 * the sender meets the others less and less often.
 */
#include "service/daemon/delivery/deliveries.h"

#include "base/test_hook.h"
#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/log.h"

#include "service/daemon/delivery/commitments.h"
#include "service/daemon/delivery/delivery_attempt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Per destination: the next ones wait at the sender while one is being sent, so that its association is never idle
 * between them. */
#define MAX_UNDER_WAY   4
#define RETRY_MILLIS    1000 /* after a database failure */
#define PROGRESS_MILLIS 1000

struct deliveries {
    struct core *core;
    struct sender_targets targets; /* one per configured destination */
    const char **blocked;          /* room for the name of each destination */
    bool outdated;                 /* there was no memory to follow the configuration: no delivery starts */
    struct attempts attempts;
};

/* ------------------------------------------------------------------------------ targets ---- */

/* Returns the number of deliveries that have not ended, to one destination (NULL: to all). */
size_t
deliveries_under_way(const struct deliveries *deliveries, const char *destination)
{
    size_t count = 0;
    for (const struct attempt *base = deliveries->attempts.first; base; base = base->next) {
        const struct delivery_attempt *attempt = (const struct delivery_attempt *)base;
        count += !base->ended && (!destination || strcmp(attempt->delivery.destination, destination) == 0);
    }
    return count;
}

static size_t
deliveries_room(const struct deliveries *deliveries, const struct sender_target *target)
{
    if (target->slot >= 0 && !pool_ready(deliveries->core->pool, target->slot))
        return 0;
    return breaker_room(&target->breaker, deliveries_under_way(deliveries, target->name), MAX_UNDER_WAY,
                        uv_now(&deliveries->core->loop));
}

/* Collects in deliveries->blocked the destinations that cannot take a delivery now. Returns their
 * number. */
static size_t
deliveries_blocked(struct deliveries *deliveries)
{
    size_t count = 0;
    for (size_t i = 0; i < deliveries->targets.count; i++) {
        const struct sender_target *target = &deliveries->targets.at[i];
        if (deliveries_room(deliveries, target) == 0)
            deliveries->blocked[count++] = target->name;
    }
    return count;
}

static void
deliveries_note_breaker(struct core *core, const struct sender_target *target, enum breaker_change change,
                        const char *why)
{
    char detail[512];
    if (change == BREAKER_OPENED) {
        double seconds = core->conf->delivery.breaker_seconds;
        snprintf(detail, sizeof detail, "%s: %d failures in a row; it is tried every %g s; the last: %s", target->name,
                 target->breaker.failures, seconds, why);
        log_warn("destination.down", LOG_STR("destination", target->name),
                 LOG_INT("failures", target->breaker.failures), LOG_NUM("probe_seconds", seconds));
        core_note(core, "DESTINATION_DOWN", detail);
    } else if (change == BREAKER_CLOSED) {
        snprintf(detail, sizeof detail, "%s: it answers again", target->name);
        log_info("destination.up", LOG_STR("destination", target->name));
        core_note(core, "DESTINATION_UP", detail);
    }
}

static void
deliveries_target_failed(struct deliveries *deliveries, struct sender_target *target, const char *why)
{
    struct core *core = deliveries->core;
    deliveries_note_breaker(core, target, breaker_failed(&target->breaker, &core->conf->delivery, uv_now(&core->loop)),
                            why);
}

int
deliveries_reload(struct deliveries *deliveries)
{
    const struct conf *conf = deliveries->core->conf;
    const char **names = calloc(conf->destination_count + 1, sizeof *names);
    for (size_t i = 0; names && i < conf->destination_count; i++)
        names[i] = conf->destinations[i].name;
    deliveries->outdated =
        !names || senders_follow(deliveries->core, &deliveries->targets, names, conf->destination_count) != 0;
    if (deliveries->outdated) {
        free(names);
        return -ENOMEM;
    }
    free(deliveries->blocked);
    deliveries->blocked = names;
    deliveries_retry_now(deliveries);
    return 0;
}

/* ----------------------------------------------------------------------------- starting ---- */

static void
deliveries_on_commit(void *context, int status)
{
    struct delivery_attempt *attempt = context;
    const struct core *core = attempt->base.all->core;
    const struct queue_delivery *delivery = &attempt->delivery;
    if (status) {
        attempt_drop(&attempt->base);
        return;
    }
    crash_point("daemon_after_sending_before_deliver");
    struct proto_writer writer;
    char *file = core_path(core, delivery->path);
    const bool is_object = *delivery->sop_instance_uid != '\0';
    if (file)
        message_write_deliver(&writer,
                              &(struct message_deliver){.delivery = delivery->id,
                                                        .destination = delivery->destination,
                                                        .kind = delivery->kind,
                                                        .file = file,
                                                        .source = is_object ? "" : delivery->source,
                                                        .name = is_object ? "" : text_base_name(delivery->path),
                                                        .sop_class = delivery->sop_class_uid,
                                                        .sop_instance = delivery->sop_instance_uid,
                                                        .confirmed = delivery->confirmed,
                                                        .digest = delivery->confirmed_digest,
                                                        .accepted = delivery->accepted_digest,
                                                        .key = core->key_fingerprint,
                                                        .issuers = delivery->issuers});
    const int error = file ? pool_send(core->pool, attempt->sender, &writer) : -ENOMEM;
    free(file);
    if (error) {
        delivery_attempt_set_outcome(attempt, PROTO_DELIVERY_RETURNED, CODE_RETURNED,
                                     "the delivery could not be sent to the sender process");
        delivery_attempt_end(attempt);
        return;
    }
    log_debug("delivery.started", LOG_INT("delivery", delivery->id), LOG_STR("destination", delivery->destination),
              LOG_INT("attempt", delivery->attempts));
}

/* Starts a due delivery in the open batch and takes over its strings, unless it must still wait. */
static int
deliveries_start(struct deliveries *deliveries, struct queue_delivery *delivery)
{
    struct core *core = deliveries->core;
    struct sender_target *target = senders_find(&deliveries->targets, delivery->destination);
    if (!core_change(core))
        return 0; /* core.c logs this and retries */
    if (!target) {
        const struct queue_attempt attempt = {.dimse_status = -1,
                                              .code = CODE_NO_SUCH_DESTINATION,
                                              .message = "the destination is not configured any more"};
        due_now(&core->deliveries_due);
        log_warn("delivery.failed", LOG_INT("delivery", delivery->id), LOG_STR("destination", delivery->destination),
                 LOG_STR("code", code_name(attempt.code)));
        return queue_fail_delivery(core->queue, delivery->id, &attempt, clock_unix_ms());
    }
    if (target->slot < 0) { /* due deliveries are checked again when the sender is ready */
        const int slot = senders_take(core);
        target->slot = slot < 0 ? -1 : slot;
        return slot < 0 ? slot : 0;
    }
    if (deliveries_room(deliveries, target) == 0)
        return 0;
    struct delivery_attempt *attempt = delivery_attempt_new(&deliveries->attempts, delivery);
    if (!attempt)
        return -ENOMEM;
    attempt->sender = target->slot;
    int error = queue_start_delivery(core->queue, attempt->base.id, clock_unix_ms());
    if (error) {
        attempt_drop(&attempt->base);
        return error == -EAGAIN ? 0 : error; /* withdrawn in the same batch */
    }
    return batch_on_commit(core->batch, deliveries_on_commit, attempt);
}

/* -------------------------------------------------------------------------- when to look --- */

static void
deliveries_wait_for_next(struct deliveries *deliveries)
{
    const uint64_t now = uv_now(&deliveries->core->loop);
    int64_t due_ms, wait = INT64_MAX;
    for (size_t i = 0; i < deliveries->targets.count; i++) {
        const struct breaker *breaker = &deliveries->targets.at[i].breaker;
        if (breaker->open && breaker->probe_at_ms > now && (int64_t)(breaker->probe_at_ms - now) < wait)
            wait = (int64_t)(breaker->probe_at_ms - now);
    }
    size_t blocked = deliveries_blocked(deliveries);
    if (queue_next_delivery(deliveries->core->queue, deliveries->blocked, blocked, &due_ms) == 0)
        wait = due_ms - clock_unix_ms() < wait ? due_ms - clock_unix_ms() : wait;
    due_in(&deliveries->core->deliveries_due, wait);
}

void
deliveries_retry_now(struct deliveries *deliveries)
{
    for (size_t i = 0; i < deliveries->targets.count; i++)
        breaker_probe_now(&deliveries->targets.at[i].breaker);
    due_now(&deliveries->core->deliveries_due);
}

void
deliveries_before_commit(struct deliveries *deliveries)
{
    struct core *core = deliveries->core;
    struct queue_delivery *due = NULL;
    size_t count = 0;
    if (core->db_failed && !core->probing)
        return;
    attempts_write(&deliveries->attempts);
    commitments_write(deliveries->core->commitments);
    if (core->draining || core->db_failed || deliveries->outdated || !due_take(&core->deliveries_due))
        return; /* the end of each of these conditions triggers another check */
    const size_t blocked = deliveries_blocked(deliveries);
    int error =
        queue_due_deliveries(core->queue, clock_unix_ms(), MAX_UNDER_WAY, deliveries->blocked, blocked, &due, &count);
    const size_t due_count = error ? 0 : count;
    for (size_t i = 0; i < due_count && !error; i++)
        error = deliveries_start(deliveries, &due[i]);
    for (size_t i = 0; i < due_count; i++)
        queue_delivery_clear(&due[i]);
    free(due);
    if (core_failed(core, error, "start a delivery"))
        due_in(&core->deliveries_due, RETRY_MILLIS);
    else if (!core->deliveries_due.now)
        deliveries_wait_for_next(deliveries);
}

void
deliveries_clock_was_set(struct deliveries *deliveries, int64_t by_ms)
{
    for (struct attempt *base = deliveries->attempts.first; base; base = base->next)
        ((struct delivery_attempt *)base)->delivery.since_ms += by_ms;
    due_now(&deliveries->core->deliveries_due);
}

void
deliveries_tick(struct deliveries *deliveries)
{
    if (deliveries->outdated)
        (void)deliveries_reload(deliveries);
    commitments_tick(deliveries->core->commitments);
}

/* ------------------------------------------------------------------------------- frames ---- */

static void
deliveries_handle_delivered(struct deliveries *deliveries, struct proto_reader *reader)
{
    struct core *core = deliveries->core;
    struct message_delivered message;
    if (message_read_delivered(reader, &message))
        return;
    struct attempt *base = attempts_find(&deliveries->attempts, message.delivery);
    struct delivery_attempt *attempt = (struct delivery_attempt *)base;
    if (!base || base->ended) {
        reader->error = -EBADMSG; /* not a delivery of this sender */
        return;
    }
    int error = delivery_attempt_read(attempt, reader, &message);
    if (error && error != -ENOMEM) {
        reader->error = error; /* the pool then kills the sender, which ends the delivery */
        return;
    }
    struct sender_target *target = senders_find(&deliveries->targets, attempt->delivery.destination);
    if (error)
        delivery_attempt_set_outcome(attempt, PROTO_DELIVERY_TRANSIENT, CODE_OUT_OF_MEMORY,
                                     "the daemon had no memory to note how the delivery ended");
    else if (target && attempt->end == PROTO_DELIVERY_TRANSIENT)
        deliveries_target_failed(deliveries, target, attempt->answer.message);
    else if (target && attempt->end != PROTO_DELIVERY_RETURNED)
        deliveries_note_breaker(core, target, breaker_succeeded(&target->breaker), "");
    /* The sender does not know the destination, for example if it could not read the new configuration. Retry later and
     * count the attempt. */
    if (attempt->end == PROTO_DELIVERY_RETURNED && !core->draining)
        attempt->end = PROTO_DELIVERY_TRANSIENT;
    delivery_attempt_end(attempt);
    due_now(&core->deliveries_due);
}

/* The number is stored with the outcome of the attempt, and before that at most once per second, in case the daemon dies. */
static void
deliveries_handle_images(struct deliveries *deliveries, struct proto_reader *reader)
{
    struct core *core = deliveries->core;
    struct message_images message;
    if (message_read_images(reader, &message))
        return;
    struct attempt *base = attempts_find(&deliveries->attempts, message.delivery);
    struct delivery_attempt *attempt = (struct delivery_attempt *)base;
    if (!base || base->ended || message.confirmed <= 0 || strlen(message.digest) != sizeof attempt->digest - 1) {
        reader->error = -EBADMSG;
        return;
    }
    attempt->confirmed = message.confirmed;
    memcpy(attempt->digest, message.digest, sizeof attempt->digest);
    const uint64_t now = uv_now(&core->loop);
    if (now < attempt->stored_ms + PROGRESS_MILLIS || !core_change(core))
        return;
    attempt->stored_ms = now;
    core_failed(core, queue_confirm_images(core->queue, base->id, attempt->confirmed, attempt->digest),
                "note which images a destination has");
}

void
deliveries_frame(struct deliveries *deliveries, struct proto_reader *reader)
{
    if (reader->type == PROTO_IMAGES)
        deliveries_handle_images(deliveries, reader);
    else if (reader->type == PROTO_DELIVERED)
        deliveries_handle_delivered(deliveries, reader);
    else if (reader->type == PROTO_COMMITTED)
        commitments_handle(deliveries->core->commitments, reader, false);
    else
        reader->error = -EBADMSG;
}

void
deliveries_sender_gone(struct deliveries *deliveries, int slot, const struct pool_gone *gone)
{
    bool returned = gone->ordered || deliveries->core->draining;
    struct sender_target *guilty = NULL;
    for (struct attempt *base = deliveries->attempts.first; base; base = base->next) {
        struct delivery_attempt *attempt = (struct delivery_attempt *)base;
        if (base->ended || attempt->sender != slot)
            continue;
        if (returned) {
            delivery_attempt_set_outcome(attempt, PROTO_DELIVERY_RETURNED, CODE_RETURNED, "the courier was stopped");
        } else {
            guilty = senders_find(&deliveries->targets, attempt->delivery.destination);
            delivery_attempt_set_outcome(attempt, PROTO_DELIVERY_TRANSIENT, CODE_COURIER_DIED,
                                         "the courier died while it had this delivery");
        }
        delivery_attempt_end(attempt);
    }
    if (guilty)
        deliveries_target_failed(deliveries, guilty, "its courier died");
    due_now(&deliveries->core->deliveries_due);
}

const char *
deliveries_served_from(const struct deliveries *deliveries, int slot)
{
    return senders_served_from(&deliveries->targets, slot);
}

size_t
deliveries_unrecorded(const struct deliveries *deliveries)
{
    return attempts_count(&deliveries->attempts);
}

/* -------------------------------------------------------------------------- open, close ---- */

void
deliveries_close(struct deliveries *deliveries)
{
    if (!deliveries)
        return;
    commitments_close(deliveries->core->commitments);
    attempts_free(&deliveries->attempts);
    senders_free(&deliveries->targets);
    free(deliveries->blocked);
    free(deliveries);
}

int
deliveries_open(struct core *core, struct deliveries **out)
{
    struct deliveries *deliveries = calloc(1, sizeof *deliveries);
    if (!deliveries)
        return -ENOMEM;
    deliveries->core = core;
    deliveries->attempts = (struct attempts){.core = core, .type = &delivery_attempt_type};
    int error = commitments_open(core, &deliveries->attempts, &core->commitments);
    if (!error)
        error = deliveries_reload(deliveries);
    if (error) {
        deliveries_close(deliveries);
        return error;
    }
    *out = deliveries;
    return 0;
}
