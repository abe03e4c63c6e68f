/*
 * deliveries.h - runs the sender processes, one per destination: sends them the due deliveries, a few at a time, and
 * records the outcomes. A destination that keeps failing is paused by its circuit breaker. Neither that nor the crash
 * of its sender affects other destinations.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERIES_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERIES_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"
#include "service/daemon/delivery/breaker.h"

int deliveries_open(struct core *core, struct deliveries **deliveries);
/* NULL is allowed. */
void deliveries_close(struct deliveries *deliveries);

/* Events of a sender's slot. An unknown or invalid frame sets the reader's error. */
void deliveries_sender_gone(struct deliveries *deliveries, int slot, const struct pool_gone *gone);
void deliveries_frame(struct deliveries *deliveries, struct proto_reader *reader);

/* Sets core->deliveries_due to now and allows the probe of each open circuit breaker. */
void deliveries_retry_now(struct deliveries *deliveries);
/* Records finished deliveries and starts due ones. Must be called before a commit. */
void deliveries_before_commit(struct deliveries *deliveries);
/* Shifts the start times of running deliveries after the clock was set. */
void deliveries_clock_was_set(struct deliveries *deliveries, int64_t by_ms);
/* Checks for overdue commitments, and retries a reload that failed for lack of memory. */
void deliveries_tick(struct deliveries *deliveries);

/* Follows a change of destinations. Returns 0, or -ENOMEM: then no delivery starts until a tick has succeeded. */
int deliveries_reload(struct deliveries *deliveries);

/* Returns the destination that the sender in this slot serves, or "". */
const char *deliveries_served_from(const struct deliveries *deliveries, int slot);
/* Returns the number of deliveries that have not ended, to one destination (NULL: to all). */
size_t deliveries_under_way(const struct deliveries *deliveries, const char *destination);
/* Returns the number of deliveries that are under way, or ended and not recorded. */
size_t deliveries_unrecorded(const struct deliveries *deliveries);

/* ------------------------------------------------------------------------------ senders.c ---- */

struct senders {
    int *spare; /* has room for all slots */
    int spare_count, made;
};

/* Returns a slot that is being filled, or -errno. */
int senders_take(struct core *core);

/* A configured destination or source. */
struct sender_target {
    char *name;
    int slot; /* of its sender; -1: no work was due yet */
    struct breaker breaker;
};

struct sender_targets {
    struct sender_target *at;
    size_t count;
};

/* Follows a change of the configuration to these names. Targets that stay keep their senders, which get RELOAD, and the
 * probe of an open breaker is allowed at once. Returns 0, or -ENOMEM without a change. */
int senders_follow(struct core *core, struct sender_targets *targets, const char *const *names, size_t count);
/* Returns NULL if there is none. */
struct sender_target *senders_find(const struct sender_targets *targets, const char *name);
/* Returns the name that the sender in this slot serves, or "". */
const char *senders_served_from(const struct sender_targets *targets, int slot);
void senders_free(struct sender_targets *targets);

/* ---------------------------------------------------------------------- delivery_routes.c ---- */

/* Destinations, valid as long as the configuration in force, and the kinds that each takes (conf_takes). */
struct routes {
    const char **destinations, **takes;
    size_t count;
    char (*texts)[CONF_TAKES]; /* the storage of `takes` */
};

/* Finds the destinations under `deliver` of the job's pipeline in the configuration in force. If the sending AE is not
 * a destination, adds an event in the open transaction and no route. The caller must call routes_free() also after a
 * failure. */
int routes_find(struct core *core, int64_t job, struct routes *routes);
void routes_free(struct routes *routes);

#endif
