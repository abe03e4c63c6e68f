/*
 * delivery_attempt.h - one attempt of a delivery: the sender's report, and the state that it leads to.
 *
 *     reported     recorded as
 *     SENT         SENT, with its commitment REQUESTED if one was requested
 *     TRANSIENT    DELAYED; after delivery.give_up_seconds: FAILED
 *     PERMANENT    FAILED; without a presentation context: sent to the fallback, if there is one; if a person must
 *                  decide (BURNED_IN_TEXT, ISSUERS_DIFFER): REVIEW
 *     RETURNED     PENDING, the attempt not counted
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ATTEMPT_H

#include "service/common/wire/messages.h"
#include "service/daemon/attempt.h"

struct delivery_attempt {
    struct attempt base;            /* its id is the delivery's */
    struct queue_delivery delivery; /* as of its start */
    enum proto_delivery end;
    struct queue_attempt answer;
    const char *transaction_uid; /* of the requested commitment; "": not requested */
    int sender;                  /* slot of its sender */
    bool commitment_refused;     /* the peer refused the commitment request */
    void *frame;                 /* the DELIVERED frame that holds the strings, or NULL */
    int64_t confirmed;           /* images that the destination has by this attempt; 0: not known */
    char digest[65];             /* of their files, as in IMAGES */
    uint64_t stored_ms;          /* when that was last stored, by the loop's clock */
};

extern const struct attempt_type delivery_attempt_type;

/* Creates the attempt of a delivery that is being started, and takes over the delivery's strings. Returns NULL without
 * memory; the caller then still owns them. */
struct delivery_attempt *delivery_attempt_new(struct attempts *attempts, struct queue_delivery *delivery);

/* Fills the attempt from a DELIVERED message. Returns 0, -EBADMSG for impossible values, or -ENOMEM. */
int delivery_attempt_read(struct delivery_attempt *attempt, struct proto_reader *reader,
                          struct message_delivered *message);
/* Sets the outcome that the daemon found itself. `message` must be a literal. */
void delivery_attempt_set_outcome(struct delivery_attempt *attempt, enum proto_delivery end, enum code code,
                                  const char *message);
/* Ends the attempt with its current outcome: see attempt.h. */
void delivery_attempt_end(struct delivery_attempt *attempt);

/* Sets the delivery to DELAYED in the open batch, with a delay that grows with the attempts, or to FAILED after
 * delivery.give_up_seconds since since_ms (queue.h). Also used for a SENT delivery whose commitment failed. */
int delivery_try_later(struct core *core, const struct queue_delivery *delivery, const struct queue_attempt *answer);

#endif
