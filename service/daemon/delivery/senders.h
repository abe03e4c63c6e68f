/*
 * senders.h - pool slots for sender processes: one per destination or source that has had work. The
 * slot of a removed name is reused. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_SENDERS_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_SENDERS_H

#include "service/daemon/core.h"

struct senders {
    int *spare; /* has room for all slots */
    int spare_count, made;
};

/* Returns a slot that is being filled, or -errno. */
int senders_take(struct core *core);
/* Ends the slot's sender and frees the slot; -1 is allowed. */
void senders_release(struct core *core, int slot);

#endif
