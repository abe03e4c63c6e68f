/*
 * senders.c - pool slots for sender processes: one per destination or source that has had work. The
 * slot of a removed name is reused. Loop thread only. Declared in deliveries.h.
 */
#include "service/daemon/delivery/deliveries.h"

#include <errno.h>
#include <stdlib.h>

int
senders_take(struct core *core)
{
    struct senders *senders = core->senders;
    if (senders->spare_count > 0) {
        const int slot = senders->spare[--senders->spare_count];
        pool_fill(core->pool, slot, NULL);
        return slot;
    }
    int *spare = reallocarray(senders->spare, (size_t)senders->made + 1, sizeof *spare);
    if (!spare)
        return -ENOMEM;
    senders->spare = spare;
    const int slot = pool_add(core->pool, "courier", senders->made);
    senders->made += slot >= 0;
    return slot;
}

void
senders_release(struct core *core, int slot)
{
    if (slot < 0)
        return;
    pool_empty(core->pool, slot);
    core->senders->spare[core->senders->spare_count++] = slot;
}
