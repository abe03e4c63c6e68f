/* flight.c - see flight.h. */
#include "service/daemon/delivery/flight.h"

#include "service/common/clock.h"
#include "service/common/crash_point.h"
#include "service/common/log.h"
#include "service/daemon/jobs/backoff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_BYTES 512
#define NO_CONTEXT     "NO_PRESENTATION_CONTEXT" /* the code that sends it to the fallback */

struct flight {
    struct flight *next;
    struct flights *flights;
    struct queue_delivery delivery; /* as it is once started */
    bool ended;
    bool in_batch; /* written, not committed */
    enum proto_delivery outcome;
    struct queue_attempt attempt;
    const char *transaction_uid; /* of the commitment asked for; "": none */
    void *frame;                 /* the DELIVERED that the strings point into, or NULL */
};

struct flights {
    struct core *core;
    struct flight *first;
};

static const char *
outcome_name(enum proto_delivery outcome)
{
    switch (outcome) {
    case PROTO_DELIVERY_SENT:
        return "SENT";
    case PROTO_DELIVERY_TRANSIENT:
        return "TRANSIENT";
    case PROTO_DELIVERY_PERMANENT:
        return "PERMANENT";
    case PROTO_DELIVERY_RETURNED:
        return "RETURNED";
    }
    return "UNKNOWN";
}

/* --------------------------------------------------------------------------- one flight ---- */

struct flight *
flight_new(struct flights *flights, struct queue_delivery *delivery)
{
    struct flight *flight = calloc(1, sizeof *flight);
    if (!flight)
        return NULL;
    flight->flights = flights;
    flight->delivery = *delivery;
    flight->delivery.attempts++;
    *delivery = (struct queue_delivery){0};
    flight->next = flights->first;
    flights->first = flight;
    return flight;
}

static void
free_flight(struct flight *flight)
{
    queue_delivery_clear(&flight->delivery);
    free(flight->frame);
    free(flight);
}

void
flight_drop(struct flight *flight)
{
    struct flight **link = &flight->flights->first;
    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
    free_flight(flight);
}

const struct queue_delivery *
flight_delivery(const struct flight *flight)
{
    return &flight->delivery;
}

enum proto_delivery
flight_outcome(const struct flight *flight)
{
    return flight->outcome;
}

void
flight_blame(struct flight *flight, enum proto_delivery outcome, const char *code,
             const char *sentence)
{
    flight->outcome = outcome;
    flight->attempt = (struct queue_attempt){-1, code, sentence};
    flight->transaction_uid = "";
}

void
flight_put_off(struct flight *flight)
{
    flight->outcome = PROTO_DELIVERY_TRANSIENT;
}

void
flight_end(struct flight *flight)
{
    const struct queue_delivery *delivery = &flight->delivery;
    flight->ended = true;
    log_write(flight->outcome == PROTO_DELIVERY_SENT ? LOG_INFO : LOG_WARN, "delivery.ended",
              LOG_FIELDS(LOG_INT("delivery", delivery->id), LOG_INT("job", delivery->job_id),
                         LOG_STR("destination", delivery->destination),
                         LOG_INT("attempt", delivery->attempts),
                         LOG_STR("outcome", outcome_name(flight->outcome)),
                         LOG_INT("dimse_status", flight->attempt.dimse_status),
                         LOG_STR("code", flight->attempt.code),
                         LOG_STR("sentence", flight->attempt.sentence)));
}

/* ------------------------------------------------------------------------------ reading ---- */

int
flight_read(struct flight *flight, struct proto_reader *reader, struct message_delivered *told)
{
    const bool asked = told->commitment == PROTO_COMMITMENT_REQUESTED;
    if (told->outcome < PROTO_DELIVERY_SENT || told->outcome > PROTO_DELIVERY_RETURNED ||
        told->dimse_status < -1 || told->dimse_status > UINT16_MAX ||
        (!asked && told->commitment != PROTO_COMMITMENT_NONE) ||
        asked != (*told->transaction_uid != 0))
        return -EBADMSG;
    flight->frame = message_keep_delivered(reader, told);
    if (!flight->frame)
        return -ENOMEM;
    flight->outcome = (enum proto_delivery)told->outcome;
    flight->attempt.dimse_status = (int32_t)told->dimse_status;
    flight->attempt.code = told->code;
    flight->attempt.sentence = told->sentence;
    flight->transaction_uid = told->transaction_uid;
    return 0;
}

/* ---------------------------------------------------------------------------- recording ---- */

int
flight_try_later(struct core *core, const struct queue_delivery *delivery,
                 const struct queue_attempt *attempt)
{
    const struct conf_delivery *settings = &core->conf->delivery;
    int64_t now_ms = clock_unix_ms();
    double age_seconds = (double)(now_ms - delivery->since_ms) / 1000;
    if (age_seconds >= settings->give_up_seconds) {
        char sentence[SENTENCE_BYTES];
        snprintf(sentence, sizeof sentence, "%s%sgiven up after %.1f hours", attempt->sentence,
                 *attempt->sentence ? "; " : "", age_seconds / 3600);
        const struct queue_attempt last = {attempt->dimse_status, attempt->code, sentence};
        return queue_fail_delivery(core->queue, delivery->id, &last, now_ms);
    }
    int64_t wait_ms = backoff_ms(settings->retry_seconds, settings->retry_max_seconds,
                                 delivery->attempts, delivery->id);
    return queue_delay_delivery(core->queue, delivery->id, now_ms + wait_ms, attempt, now_ms);
}

static int
record_permanent(const struct flight *flight)
{
    const struct core *core = flight->flights->core;
    const struct queue_delivery *delivery = &flight->delivery;
    const struct conf_destination *destination =
        conf_find_destination(core->conf, delivery->destination);
    if (strcmp(flight->attempt.code, NO_CONTEXT) != 0 || !destination || !destination->fallback)
        return queue_fail_delivery(core->queue, delivery->id, &flight->attempt, clock_unix_ms());
    log_info("delivery.redirected", LOG_INT("delivery", delivery->id),
             LOG_STR("destination", delivery->destination),
             LOG_STR("fallback", destination->fallback));
    return queue_redirect_delivery(core->queue, delivery->id, destination->fallback,
                                   &flight->attempt, clock_unix_ms());
}

static int
record_as_ended(const struct flight *flight)
{
    struct core *core = flight->flights->core;
    switch (flight->outcome) {
    case PROTO_DELIVERY_SENT:
        return queue_delivery_sent(core->queue, flight->delivery.id, &flight->attempt,
                                   flight->transaction_uid, clock_unix_ms());
    case PROTO_DELIVERY_TRANSIENT:
        return flight_try_later(core, &flight->delivery, &flight->attempt);
    case PROTO_DELIVERY_PERMANENT:
        return record_permanent(flight);
    case PROTO_DELIVERY_RETURNED:
        return queue_return_delivery(core->queue, flight->delivery.id, flight->attempt.sentence,
                                     clock_unix_ms());
    }
    return -EINVAL;
}

/* What the database will never take must not be tried for ever: the delivery fails instead. */
static int
record_refused(const struct flight *flight)
{
    struct queue *queue = flight->flights->core->queue;
    char sentence[SENTENCE_BYTES];
    snprintf(sentence, sizeof sentence, "what the courier said cannot be recorded: %s",
             queue_reason(queue));
    log_error("delivery.record_failed", LOG_INT("delivery", flight->delivery.id),
              LOG_STR("sentence", sentence));
    const struct queue_attempt attempt = {-1, "RECORD_FAILED", sentence};
    return queue_fail_delivery(queue, flight->delivery.id, &attempt, clock_unix_ms());
}

/* 0, or -errno: nothing of it is written, and it is tried again. */
static int
record(const struct flight *flight)
{
    int error = record_as_ended(flight);
    if (!error || error == -EAGAIN || error == -ENOENT)
        return 0; /* or its row has gone another way meanwhile */
    if (!core_is_trouble(error))
        error = record_refused(flight);
    /* A row that takes neither is put right by the next start. */
    return core_is_trouble(error) ? error : 0;
}

static void
on_recorded(void *context, int status)
{
    struct flight *flight = context;
    struct core *core = flight->flights->core;
    flight->in_batch = false;
    if (status)
        return;
    flight_drop(flight);
    due_now(&core->deliveries_due);
}

static int
record_in_batch(struct flight *flight)
{
    struct core *core = flight->flights->core;
    int error = record(flight);
    if (error)
        return error;
    crash_point("daemon_after_delivered_before_commit");
    flight->in_batch = true;
    error = batch_on_commit(core->batch, on_recorded, flight);
    if (error) {
        flight->in_batch = false;
        batch_abort(core->batch, error);
    }
    return error;
}

static struct flight *
first_unrecorded(const struct flights *flights)
{
    struct flight *flight = flights->first;
    while (flight && (!flight->ended || flight->in_batch))
        flight = flight->next;
    return flight;
}

void
flights_record(struct flights *flights)
{
    /* Looked for anew each time: joining the batch may commit a full one, which frees flights. */
    while (first_unrecorded(flights)) {
        if (!core_change(flights->core))
            return;
        int error = record_in_batch(first_unrecorded(flights));
        if (error) {
            core_failed(flights->core, error, "record how a delivery ended");
            return;
        }
    }
}

/* ----------------------------------------------------------------------------- the list ---- */

struct flight *
flights_find(const struct flights *flights, int64_t delivery)
{
    struct flight *flight = flights->first;
    while (flight && (flight->ended || flight->delivery.id != delivery))
        flight = flight->next;
    return flight;
}

size_t
flights_under_way(const struct flights *flights, const char *destination)
{
    size_t count = 0;
    for (const struct flight *flight = flights->first; flight; flight = flight->next)
        count += !flight->ended &&
                 (!destination || strcmp(flight->delivery.destination, destination) == 0);
    return count;
}

size_t
flights_count(const struct flights *flights)
{
    size_t count = 0;
    for (const struct flight *flight = flights->first; flight; flight = flight->next)
        count++;
    return count;
}

bool
flights_carry(const struct flights *flights, const char *sop_instance_uid)
{
    const struct flight *flight = flights->first;
    while (flight && strcmp(flight->delivery.sop_instance_uid, sop_instance_uid) != 0)
        flight = flight->next;
    return flight != NULL;
}

void
flights_end_all(struct flights *flights, enum proto_delivery outcome, const char *code,
                const char *sentence)
{
    for (struct flight *flight = flights->first; flight; flight = flight->next) {
        if (flight->ended)
            continue;
        flight_blame(flight, outcome, code, sentence);
        flight_end(flight);
    }
}

int
flights_open(struct core *core, struct flights **out)
{
    struct flights *flights = calloc(1, sizeof *flights);
    if (!flights)
        return -ENOMEM;
    flights->core = core;
    *out = flights;
    return 0;
}

void
flights_close(struct flights *flights)
{
    if (!flights)
        return;
    struct flight *next;
    for (struct flight *flight = flights->first; flight; flight = next) {
        next = flight->next;
        free_flight(flight);
    }
    free(flights);
}
