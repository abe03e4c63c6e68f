/*
 * senders.c - pool slots for sender processes: one per destination or source that has had work. The slot of a removed
 * name is reused. Loop thread only. Declared in deliveries.h.
 */
#include "service/daemon/delivery/deliveries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

struct sender_target *
senders_find(const struct sender_targets *targets, const char *name)
{
    for (size_t i = 0; i < targets->count; i++)
        if (strcmp(targets->at[i].name, name) == 0)
            return &targets->at[i];
    return NULL;
}

const char *
senders_served_from(const struct sender_targets *targets, int slot)
{
    for (size_t i = 0; i < targets->count; i++)
        if (targets->at[i].slot == slot)
            return targets->at[i].name;
    return "";
}

void
senders_free(struct sender_targets *targets)
{
    for (size_t i = 0; i < targets->count; i++)
        free(targets->at[i].name);
    free(targets->at);
}

int
senders_follow(struct core *core, struct sender_targets *targets, const char *const *names, size_t count)
{
    struct sender_targets now = {.at = calloc(count + 1, sizeof *now.at)};
    bool complete = now.at != NULL;
    for (; now.count < count && complete; now.count++) {
        const struct sender_target *before = senders_find(targets, names[now.count]);
        struct sender_target *target = &now.at[now.count];
        *target = before ? *before : (struct sender_target){.slot = -1};
        breaker_probe_now(&target->breaker);
        target->name = strdup(names[now.count]);
        complete = target->name != NULL;
    }
    if (!complete) {
        senders_free(&now);
        return -ENOMEM;
    }
    for (size_t i = 0; i < targets->count; i++) {
        const int slot = targets->at[i].slot;
        if (slot >= 0 && senders_find(&now, targets->at[i].name)) {
            pool_reload(core->pool, slot);
        } else if (slot >= 0) {
            pool_empty(core->pool, slot);
            core->senders->spare[core->senders->spare_count++] = slot;
        }
    }
    senders_free(targets);
    *targets = now;
    return 0;
}
