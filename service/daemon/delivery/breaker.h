/*
 * breaker.h - is a destination worth trying? A circuit breaker. Pure: no I/O, no clock.
 *
 *     closed --so many failures in a row--> open --its time is over--> one probe
 *        ^                                   ^  ^                       |     |
 *        |                                   |  +---------fails---------+     |
 *        +-------------------------------- succeeds --------------------------+
 *
 * While it is closed as many deliveries may be under way as the limit says; while it is open none,
 * and after its time one. A failure is one of the destination (no connection, out of resources);
 * what it answers about an instance, be it a refusal, shows that it is there. A zeroed one is
 * closed.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_BREAKER_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_BREAKER_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct breaker {
    int failures; /* in a row */
    bool open;
    uint64_t probe_at_ms; /* when open; of any clock that never jumps */
};

enum breaker_change { BREAKER_UNCHANGED, BREAKER_OPENED, BREAKER_CLOSED };

/* How many more may start beside those under way. */
size_t breaker_room(const struct breaker *breaker, size_t under_way, size_t limit, uint64_t now_ms);

enum breaker_change breaker_succeeded(struct breaker *breaker);
enum breaker_change breaker_failed(struct breaker *breaker, const struct conf_delivery *settings,
                                   uint64_t now_ms);
/* An open one allows its probe at once: somebody says that the destination is back. */
void breaker_hurry(struct breaker *breaker);

#endif
