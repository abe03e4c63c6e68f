/*
 * deliveries.h - runs the sender processes, one per destination: sends them the due deliveries, a
 * few at a time, and records the outcomes. A destination that keeps failing is paused by its
 * circuit breaker. Neither that nor the crash of its sender affects other destinations.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERIES_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERIES_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

int deliveries_open(struct core *core, struct deliveries **deliveries);
/* NULL is allowed. */
void deliveries_close(struct deliveries *deliveries);

/* Events of a sender's slot. An unknown or invalid frame sets the reader's error. */
void deliveries_sender_ready(struct deliveries *deliveries);
void deliveries_sender_gone(struct deliveries *deliveries, int slot, const struct pool_gone *gone);
void deliveries_frame(struct deliveries *deliveries, struct proto_reader *reader);

/* Handles the receiver's COMMITTED, and the end of the receiver, which also ends the peer's
 * association. */
void deliveries_committed(struct deliveries *deliveries, struct proto_reader *reader);
void deliveries_receiver_gone(struct deliveries *deliveries);

/* Sets core->deliveries_due to now and allows the probe of each open circuit breaker. */
void deliveries_retry_now(struct deliveries *deliveries);
/* Records finished deliveries and starts due ones. Must be called before a commit. */
void deliveries_before_commit(struct deliveries *deliveries);
/* Shifts the start times of running deliveries after the clock was set. */
void deliveries_clock_was_set(struct deliveries *deliveries, int64_t by_ms);
/* Checks for overdue commitments, and retries a reload that failed for lack of memory. */
void deliveries_tick(struct deliveries *deliveries);

/* Follows a change of destinations. Returns 0, or -ENOMEM: then no delivery starts until a tick has
 * succeeded. */
int deliveries_reload(struct deliveries *deliveries);

/* Returns the destination that the sender in this slot serves, or "". */
const char *deliveries_served_from(const struct deliveries *deliveries, int slot);
size_t deliveries_under_way(const struct deliveries *deliveries);
/* Returns the number of deliveries that are under way, or ended and not recorded. */
size_t deliveries_unrecorded(const struct deliveries *deliveries);

/* ------------------------------------------------------------------------------ senders.c ---- */

struct senders {
    int *spare; /* has room for all slots */
    int spare_count, made;
};

/* Returns a slot that is being filled, or -errno. */
int senders_take(struct core *core);
/* Ends the slot's sender and frees the slot; -1 is allowed. */
void senders_release(struct core *core, int slot);

#endif
