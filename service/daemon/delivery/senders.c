/* senders.c - see senders.h. */
#include "service/daemon/delivery/senders.h"

#include <errno.h>
#include <stdlib.h>

int
couriers_take(struct core *core)
{
    struct couriers *couriers = core->couriers;
    if (couriers->spare_count > 0) {
        const int slot = couriers->spare[--couriers->spare_count];
        pool_fill(core->pool, slot, NULL);
        return slot;
    }
    int *spare = reallocarray(couriers->spare, (size_t)couriers->made + 1, sizeof *spare);
    if (!spare)
        return -ENOMEM;
    couriers->spare = spare;
    const int slot = pool_add(core->pool, "courier", couriers->made);
    couriers->made += slot >= 0;
    return slot;
}

void
couriers_give(struct core *core, int slot)
{
    if (slot < 0)
        return;
    pool_empty(core->pool, slot);
    core->couriers->spare[core->couriers->spare_count++] = slot;
}
