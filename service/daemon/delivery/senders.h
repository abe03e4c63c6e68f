/*
 * senders.h - the pool's slots for couriers: one for each destination and each source that had something to do. A slot whose
 * name was taken away is for the next. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_SENDERS_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_SENDERS_H

#include "service/daemon/core.h"

struct couriers {
    int *spare; /* room for all that were made */
    int spare_count, made;
};

/* A slot, which is being filled, or -errno. */
int couriers_take(struct core *core);
/* Its courier ends; -1 is allowed. */
void couriers_give(struct core *core, int slot);

#endif
