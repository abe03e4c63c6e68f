/*
 * deliveries.h - the daemon's dealings with the couriers, one for each destination: deliveries that
 * are due are handed to them, a few at a time, and what they say of them becomes a state. A
 * destination that keeps failing is left alone for a while; the others do not notice, nor do they
 * when a courier dies of it.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERIES_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERIES_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

int deliveries_open(struct core *core, struct deliveries **deliveries);
/* NULL is allowed. */
void deliveries_close(struct deliveries *deliveries);

/* A courier's slot. An unknown or impossible frame is latched as an error in the reader. */
void deliveries_courier_ready(struct deliveries *deliveries);
void deliveries_courier_gone(struct deliveries *deliveries, int slot, const struct pool_gone *gone);
void deliveries_frame(struct deliveries *deliveries, struct proto_reader *reader);

/* A peer reports on a commitment: the intake's frame and its death, which takes the peer with it.
 */
void deliveries_committed(struct deliveries *deliveries, struct proto_reader *reader);
void deliveries_intake_gone(struct deliveries *deliveries);

/* core->deliveries_due now, and destinations that are left alone are tried at once. */
void deliveries_hurry(struct deliveries *deliveries);
/* The last changes of a batch: records what ended, starts what is due. */
void deliveries_before_commit(struct deliveries *deliveries);
/* The clock was set: what is under way counts its age as before. */
void deliveries_clock_was_set(struct deliveries *deliveries, int64_t by_ms);
/* Now and then: commitments that do not come, a configuration that there was no memory to follow. */
void deliveries_tick(struct deliveries *deliveries);

/* The destinations may be others now. 0, or -ENOMEM: nothing begins until a tick has done it. */
int deliveries_reload(struct deliveries *deliveries);

/* Whose courier is in this slot; "" for none. */
const char *deliveries_served_from(const struct deliveries *deliveries, int slot);
size_t deliveries_under_way(const struct deliveries *deliveries);
/* Ended or under way, and not recorded. */
size_t deliveries_unrecorded(const struct deliveries *deliveries);

#endif
