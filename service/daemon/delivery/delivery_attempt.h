/*
 * delivery_attempt.h - one try of a delivery: what the courier tells of it, and what becomes of it.
 *
 *     the courier says    recorded as
 *     SENT                SENT, its commitment REQUESTED if it was
 *     TRANSIENT           DELAYED; tried for delivery.give_up_seconds: FAILED
 *     PERMANENT           FAILED; without a presentation context: to the fallback, if there is one
 *     RETURNED            PENDING, the attempt not counted
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ATTEMPT_H

#include "service/common/wire/messages.h"
#include "service/daemon/attempt.h"

struct delivery_attempt {
    struct attempt base;            /* its id is the delivery's */
    struct queue_delivery delivery; /* as it is once started */
    enum proto_delivery end;
    struct queue_attempt answer;
    const char *transaction_uid; /* of the commitment asked for; "": none */
    int courier;                 /* the slot of who has it */
    bool commitment_refused;     /* it was asked for, and none will come */
    void *frame;                 /* the DELIVERED that the strings point into, or NULL */
};

extern const struct attempt_type delivery_attempt_type;

/* For a delivery that is being started: takes its strings over. NULL: no memory, nothing taken. */
struct delivery_attempt *delivery_attempt_new(struct attempts *attempts,
                                              struct queue_delivery *delivery);

/* Fills it from a DELIVERED that was read: 0, or -EBADMSG for what cannot be, -ENOMEM. */
int delivery_attempt_read(struct delivery_attempt *attempt, struct proto_reader *reader,
                          struct message_delivered *told);
/* The daemon's own word for it instead; both texts are literals. */
void delivery_attempt_blame(struct delivery_attempt *attempt, enum proto_delivery end,
                            enum code code, const char *message);
/* It ended so, as far as the daemon is concerned: see attempt.h. */
void delivery_attempt_end(struct delivery_attempt *attempt);

/* Is the end of a delivery of this instance still to be heard of or recorded? */
bool delivery_attempts_carry(const struct attempts *attempts, const char *sop_instance_uid);

/*
 * In the open batch: DELAYED for a while that grows with the attempts, or FAILED when it was tried
 * for delivery.give_up_seconds (since_ms, queue.h). Also for one that was SENT and whose commitment
 * failed.
 */
int delivery_try_later(struct core *core, const struct queue_delivery *delivery,
                       const struct queue_attempt *answer);

#endif
