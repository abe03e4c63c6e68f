/*
 * commitments.c - see commitments.h.
 *
 * A report may arrive before the sender's own DELIVERED, for example through the receiver. A report is therefore held
 * back while the delivery of an instance in it is under way.
 */
#include "service/daemon/delivery/commitments.h"

#include "dicom/objects/seg/seg.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/wire/messages.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVERDUE_AT_ONCE 64

struct commitment_item {
    const char *sop_instance_uid;
    bool committed;
    int64_t reason; /* (0008,1197) Failure Reason */
};

struct commitment_report {
    struct attempt base; /* its id is the token of its frame; ends on arrival */
    struct commitments *commitments;
    bool unanswered; /* no reply: it is from a sender, or the receiver that waited is gone */
    void *frame;     /* the COMMITTED frame that holds the strings */
    /* the reporting peer; destination "": on an association of its own */
    const char *ae_title, *destination;
    const char *transaction_uid;
    struct commitment_item *items;
    size_t count;
};

struct commitments {
    struct core *core;
    const struct attempts *deliveries;
    struct attempts reports;
    uint64_t check_at; /* in the loop's clock: time of the next search for overdue ones */
};

static void
commitment_report_free(struct attempt *base)
{
    struct commitment_report *report = (struct commitment_report *)base;
    free(report->items);
    free(report->frame);
    free(report);
}

void
commitments_handle(struct commitments *commitments, struct proto_reader *reader, bool by_receiver)
{
    struct message_committed message;
    struct message_reference item;
    struct commitment_report *report = message_read_committed(reader, &message) ? NULL : calloc(1, sizeof *report);
    if (!report)
        return; /* a broken frame, or no memory: the peer gets no reply */
    attempt_add(&commitments->reports, &report->base, message.token);
    attempt_end(&report->base);
    report->commitments = commitments;
    report->unanswered = !by_receiver;
    report->frame = message_keep_committed(reader, &message);
    report->ae_title = message.ae_title;
    report->destination = message.destination;
    report->transaction_uid = message.transaction_uid;
    report->items = calloc((size_t)reader->rows + 1, sizeof *report->items);
    if (!report->frame || !report->items) {
        attempt_drop(&report->base);
        return;
    }
    while (message_next_reference(reader, &item))
        report->items[report->count++] = (struct commitment_item){
            .sop_instance_uid = item.sop_instance, .committed = item.ok != 0, .reason = item.failure_reason};
}

void
commitments_receiver_gone(struct commitments *commitments)
{
    for (struct attempt *base = commitments->reports.first; base; base = base->next)
        ((struct commitment_report *)base)->unanswered = true;
}

/* Queues the object again: the destination does not keep it. */
static int
commitment_report_write_refusal(struct core *core, const struct commitment_report *report,
                                const struct commitment_item *item)
{
    struct queue_delivery delivery;
    int error = queue_find_commitment(core->queue, report->transaction_uid, item->sop_instance_uid, &delivery);
    if (error)
        return error;
    char message[128];
    snprintf(message, sizeof message, "the destination does not commit to the object: failure reason 0x%04" PRIX64,
             (uint64_t)item->reason & UINT16_MAX);
    const struct queue_attempt attempt = {.dimse_status = -1, .code = CODE_COMMITMENT_FAILED, .message = message};
    error = queue_delivery_committed(core->queue, report->transaction_uid, item->sop_instance_uid, false, attempt.code,
                                     message, clock_unix_ms());
    if (!error)
        error = delivery_try_later(core, &delivery, &attempt);
    due_now(&core->deliveries_due);
    queue_delivery_clear(&delivery);
    return error;
}

/* Returns whether the report comes from the destination itself. */
static bool
commitment_report_is_trusted(struct core *core, const struct commitment_report *report,
                             const struct commitment_item *item)
{
    struct queue_delivery delivery;
    if (queue_find_commitment(core->queue, report->transaction_uid, item->sop_instance_uid, &delivery))
        return true; /* an unknown transaction, ignored later */
    const struct conf_destination *destination = conf_find_destination(core->conf, delivery.destination);
    const bool trusted = *report->destination ? strcmp(report->destination, delivery.destination) == 0
                                              : destination && destination->ae_title &&
                                                    strcmp(report->ae_title, destination->ae_title) == 0;
    if (!trusted)
        log_warn("commitment.disbelieved", LOG_STR("transaction", report->transaction_uid),
                 LOG_STR("sop", item->sop_instance_uid), LOG_STR("calling", report->ae_title),
                 LOG_STR("destination", delivery.destination));
    queue_delivery_clear(&delivery);
    return trusted;
}

/* Returns whether a delivery sends this instance. A LABELMAP may be sent as a BINARY segmentation with a UID of its own.
 */
static bool
delivery_may_send(const struct queue_delivery *delivery, const char *instance)
{
    return strcmp(delivery->sop_instance_uid, instance) == 0 ||
           strcmp(delivery->sop_class_uid, SEG_LABELMAP_SOP_CLASS_UID) == 0;
}

/* Returns false while the delivery of an instance in the report is under way. */
static bool
commitment_report_may_write(const struct attempt *base)
{
    const struct commitment_report *report = (const struct commitment_report *)base;
    struct queue_delivery delivery;
    for (size_t i = 0; i < report->count; i++) {
        const char *instance = report->items[i].sop_instance_uid;
        /* the outcome of a delivery of this instance is still open or unrecorded */
        const struct attempt *other = report->commitments->deliveries->first;
        while (other && !delivery_may_send(&((const struct delivery_attempt *)other)->delivery, instance))
            other = other->next;
        if (!other)
            continue;
        if (queue_find_commitment(base->all->core->queue, report->transaction_uid, instance, &delivery))
            return false;
        queue_delivery_clear(&delivery);
    }
    return true;
}

static int
commitment_report_write(struct attempt *base)
{
    const struct commitment_report *report = (const struct commitment_report *)base;
    struct core *core = base->all->core;
    int error = 0;
    for (size_t i = 0; i < report->count && !core_is_transient(error); i++) {
        const struct commitment_item *item = &report->items[i];
        if (!commitment_report_is_trusted(core, report, item))
            continue;
        error = item->committed ? queue_delivery_committed(core->queue, report->transaction_uid, item->sop_instance_uid,
                                                           true, CODE_NONE, "", clock_unix_ms())
                                : commitment_report_write_refusal(core, report, item);
        core->ends++;
        log_write(error || !item->committed ? LOG_WARN : LOG_INFO, "commitment.reported",
                  LOG_FIELDS(LOG_STR("transaction", report->transaction_uid), LOG_STR("sop", item->sop_instance_uid),
                             LOG_INT("committed", item->committed), LOG_INT("reason", item->reason),
                             LOG_STR("error", error ? strerror(-error) : "")));
    }
    return core_is_transient(error) ? error : 0;
}

static void
commitment_report_recorded(struct attempt *base)
{
    const struct core *core = base->all->core;
    if (((const struct commitment_report *)base)->unanswered)
        return;
    struct proto_writer writer;
    message_write_stored(&writer, &(struct message_stored){.token = base->id});
    pool_send(core->pool, core->receiver, &writer); /* a receiver that ended needs no reply */
}

static const struct attempt_type commitment_report_type = {
    .action = "record a storage commitment",
    .may_write = commitment_report_may_write,
    .write = commitment_report_write, /* permanent errors are logged per item */
    .recorded = commitment_report_recorded,
    .free = commitment_report_free,
};

void
commitments_write(struct commitments *commitments)
{
    attempts_write(&commitments->reports);
}

static int
commitments_find_overdue(struct core *core, const struct conf_destination *destination)
{
    struct queue_delivery *overdue;
    size_t count;
    char message[128];
    int64_t before_ms = clock_unix_ms() - (int64_t)(1000 * destination->commit_seconds);
    int error = queue_overdue_commitments(core->queue, destination->name, before_ms, OVERDUE_AT_ONCE, &overdue, &count);
    if (error)
        return error;
    snprintf(message, sizeof message, "no storage commitment within %g s", destination->commit_seconds);
    const struct queue_attempt attempt = {.dimse_status = -1, .code = CODE_COMMITMENT_TIMEOUT, .message = message};
    for (size_t i = 0; i < count && !error && core_change(core); i++) {
        log_warn("commitment.overdue", LOG_INT("delivery", overdue[i].id),
                 LOG_STR("destination", overdue[i].destination));
        error = delivery_try_later(core, &overdue[i], &attempt);
        if (error == -EAGAIN)
            error = 0; /* the report came in the same turn */
        due_now(&core->deliveries_due);
    }
    for (size_t i = 0; i < count; i++)
        queue_delivery_clear(&overdue[i]);
    free(overdue);
    return error;
}

void
commitments_tick(struct commitments *commitments)
{
    struct core *core = commitments->core;
    const struct conf *conf = core->conf;
    uint64_t now = uv_now(&core->loop);
    double seconds = 240; /* a quarter of the shortest commit_seconds, from 1 s to 1 min */
    if (now < commitments->check_at || core->db_failed || core->draining)
        return;
    for (size_t i = 0; i < conf->destination_count; i++) {
        if (!conf->destinations[i].commit)
            continue;
        seconds = fmin(seconds, conf->destinations[i].commit_seconds);
        core_failed(core, commitments_find_overdue(core, &conf->destinations[i]), "find overdue commitments");
    }
    commitments->check_at = now + (uint64_t)(1000 * fmax(1, seconds / 4));
}

int
commitments_open(struct core *core, const struct attempts *deliveries, struct commitments **out)
{
    struct commitments *commitments = calloc(1, sizeof *commitments);
    if (!commitments)
        return -ENOMEM;
    *commitments =
        (struct commitments){.core = core, .deliveries = deliveries, .reports = {core, &commitment_report_type, NULL}};
    *out = commitments;
    return 0;
}

void
commitments_close(struct commitments *commitments)
{
    if (!commitments)
        return;
    attempts_free(&commitments->reports);
    free(commitments);
}
