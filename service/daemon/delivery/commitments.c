/*
 * commitments.c - see commitments.h.
 *
 * A report may overtake the courier's own word that the object was sent, as when it comes by way of
 * the intake. As long as the delivery of an instance it names is under way, it is held back.
 */
#include "service/daemon/delivery/commitments.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/messages.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVERDUE_AT_ONCE 64

struct item {
    const char *sop_instance_uid;
    bool committed;
    int64_t reason; /* (0008,1197) Failure Reason */
};

struct report {
    struct report *next;
    struct commitments *commitments;
    int64_t token;
    bool unanswered; /* nobody waits: it is the courier's, or the intake that did is gone */
    bool in_batch;   /* written, not committed */
    void *frame;     /* the COMMITTED that the strings point into */
    const char *transaction_uid;
    struct item *items;
    size_t count;
};

struct commitments {
    struct core *core;
    const struct flights *flights;
    struct report *first;
    uint64_t look_at; /* of the loop's clock: when to look for overdue ones */
};

/* -------------------------------------------------------------------------- one report ----- */

static void
free_report(struct report *report)
{
    free(report->items);
    free(report->frame);
    free(report);
}

static void
drop_report(struct report *report)
{
    struct report **link = &report->commitments->first;
    while (*link != report)
        link = &(*link)->next;
    *link = report->next;
    free_report(report);
}

static int
read_references(struct proto_reader *reader, struct report *report)
{
    struct message_reference told;
    report->items = calloc((size_t)reader->rows + 1, sizeof *report->items);
    if (!report->items)
        return -ENOMEM;
    while (message_next_reference(reader, &told))
        report->items[report->count++] = (struct item){.sop_instance_uid = told.sop_instance,
                                                       .committed = told.ok != 0,
                                                       .reason = told.failure_reason};
    return 0;
}

static struct report *
read_report(struct proto_reader *reader)
{
    struct message_committed told;
    struct report *report =
        message_read_committed(reader, &told) ? NULL : calloc(1, sizeof *report);
    if (!report)
        return NULL;
    report->frame = message_keep_committed(reader, &told);
    if (!report->frame || read_references(reader, report) != 0) {
        free_report(report);
        return NULL;
    }
    report->token = told.token;
    report->transaction_uid = told.transaction_uid;
    return report;
}

void
commitments_hear(struct commitments *commitments, struct proto_reader *reader, bool by_intake)
{
    struct report *report = read_report(reader);
    if (!report)
        return; /* a broken frame, or no memory: then the peer is left without an answer */
    report->commitments = commitments;
    report->unanswered = !by_intake;
    report->next = commitments->first;
    commitments->first = report;
}

void
commitments_intake_gone(struct commitments *commitments)
{
    for (struct report *report = commitments->first; report; report = report->next)
        report->unanswered = true;
}

/* ---------------------------------------------------------------------------- recording ---- */

static void
on_recorded(void *context, int status)
{
    struct report *report = context;
    struct core *core = report->commitments->core;
    report->in_batch = false;
    if (status)
        return;
    if (!report->unanswered) {
        struct proto_writer writer;
        message_write_stored(&writer, &(struct message_stored){.token = report->token});
        pool_send(core->pool, core->intake, &writer); /* one that left waits for nothing */
    }
    drop_report(report);
}

/* The destination does not keep what it took: it gets it once more. */
static int
record_refusal(struct core *core, const struct report *report, const struct item *item)
{
    struct queue_delivery delivery;
    int error = queue_find_commitment(core->queue, report->transaction_uid, item->sop_instance_uid,
                                      &delivery);
    if (error)
        return error;
    char sentence[128];
    snprintf(sentence, sizeof sentence,
             "the destination does not commit to the object: failure reason 0x%04" PRIX64,
             (uint64_t)item->reason & UINT16_MAX);
    const struct queue_attempt attempt = {-1, "COMMITMENT_FAILED", sentence};
    error = queue_delivery_committed(core->queue, report->transaction_uid, item->sop_instance_uid,
                                     false, attempt.code, sentence, clock_unix_ms());
    if (!error)
        error = flight_try_later(core, &delivery, &attempt);
    due_now(&core->deliveries_due);
    queue_delivery_clear(&delivery);
    return error;
}

static int
record_item(struct core *core, const struct report *report, const struct item *item)
{
    int error = item->committed ? queue_delivery_committed(core->queue, report->transaction_uid,
                                                           item->sop_instance_uid, true, "", "",
                                                           clock_unix_ms())
                                : record_refusal(core, report, item);
    log_write(error || !item->committed ? LOG_WARN : LOG_INFO, "commitment.reported",
              LOG_FIELDS(LOG_STR("transaction", report->transaction_uid),
                         LOG_STR("sop", item->sop_instance_uid),
                         LOG_INT("committed", item->committed), LOG_INT("reason", item->reason),
                         LOG_STR("error", error ? strerror(-error) : "")));
    return core_is_trouble(error) ? error : 0;
}

static bool
is_known(struct core *core, const struct report *report, const struct item *item)
{
    struct queue_delivery delivery;
    if (queue_find_commitment(core->queue, report->transaction_uid, item->sop_instance_uid,
                              &delivery))
        return false;
    queue_delivery_clear(&delivery);
    return true;
}

static bool
is_early(const struct commitments *commitments, const struct report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct item *item = &report->items[i];
        if (flights_carry(commitments->flights, item->sop_instance_uid) &&
            !is_known(commitments->core, report, item))
            return true;
    }
    return false;
}

/* In the open batch; 0 or -errno. */
static int
record(struct core *core, struct report *report)
{
    int error = 0;
    for (size_t i = 0; i < report->count && !error; i++)
        error = record_item(core, report, &report->items[i]);
    if (error)
        return error;
    report->in_batch = true;
    error = batch_on_commit(core->batch, on_recorded, report);
    if (error) {
        report->in_batch = false;
        batch_abort(core->batch, error);
    }
    return error;
}

static struct report *
first_unrecorded(const struct commitments *commitments)
{
    struct report *report = commitments->first;
    while (report && (report->in_batch || is_early(commitments, report)))
        report = report->next;
    return report;
}

void
commitments_record(struct commitments *commitments)
{
    struct core *core = commitments->core;
    /* Looked for anew each time: joining the batch may commit a full one, which frees reports. */
    while (first_unrecorded(commitments)) {
        if (!core_change(core))
            return;
        int error = record(core, first_unrecorded(commitments));
        if (error) {
            core_failed(core, error, "record a storage commitment");
            return;
        }
    }
}

/* ------------------------------------------------------------------------------ overdue ---- */

static int
give_up_waiting(struct core *core, const struct conf_destination *destination,
                const struct queue_delivery *delivery)
{
    char sentence[128];
    snprintf(sentence, sizeof sentence, "no storage commitment came within %g s",
             destination->commit_seconds);
    log_warn("commitment.overdue", LOG_INT("delivery", delivery->id),
             LOG_STR("destination", delivery->destination));
    const struct queue_attempt attempt = {-1, "COMMITMENT_TIMEOUT", sentence};
    int error = flight_try_later(core, delivery, &attempt);
    due_now(&core->deliveries_due);
    return error == -EAGAIN ? 0 : error; /* the report came in the same turn */
}

static int
find_overdue(struct core *core, const struct conf_destination *destination)
{
    struct queue_delivery *overdue;
    size_t count;
    int64_t before_ms = clock_unix_ms() - (int64_t)(1000 * destination->commit_seconds);
    int error = queue_overdue_commitments(core->queue, destination->name, before_ms,
                                          OVERDUE_AT_ONCE, &overdue, &count);
    if (error)
        return error;
    for (size_t i = 0; i < count && !error && core_change(core); i++)
        error = give_up_waiting(core, destination, &overdue[i]);
    for (size_t i = 0; i < count; i++)
        queue_delivery_clear(&overdue[i]);
    free(overdue);
    return error;
}

/* A quarter of the shortest patience, within a second and a minute. */
static uint64_t
look_again_ms(const struct conf *conf)
{
    double seconds = 240;
    for (size_t i = 0; i < conf->destination_count; i++) {
        if (conf->destinations[i].commit)
            seconds = fmin(seconds, conf->destinations[i].commit_seconds);
    }
    return (uint64_t)(1000 * fmax(1, seconds / 4));
}

void
commitments_tick(struct commitments *commitments)
{
    struct core *core = commitments->core;
    const struct conf *conf = core->conf;
    uint64_t now = uv_now(&core->loop);
    if (now < commitments->look_at || core->trouble || core->draining)
        return;
    commitments->look_at = now + look_again_ms(conf);
    for (size_t i = 0; i < conf->destination_count; i++) {
        if (!conf->destinations[i].commit)
            continue;
        int error = find_overdue(core, &conf->destinations[i]);
        if (error)
            core_failed(core, error, "look for overdue commitments");
    }
}

/* -------------------------------------------------------------------------- open, close ---- */

int
commitments_open(struct core *core, const struct flights *flights, struct commitments **out)
{
    struct commitments *commitments = calloc(1, sizeof *commitments);
    if (!commitments)
        return -ENOMEM;
    commitments->core = core;
    commitments->flights = flights;
    *out = commitments;
    return 0;
}

void
commitments_close(struct commitments *commitments)
{
    if (!commitments)
        return;
    struct report *next;
    for (struct report *report = commitments->first; report; report = next) {
        next = report->next;
        free_report(report);
    }
    free(commitments);
}
