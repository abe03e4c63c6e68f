/*
 * breaker.h - circuit breaker: limits the deliveries to a destination that keeps failing. Pure: no I/O, no clock.
 *
 *     closed --breaker_failures in a row--> open --breaker_seconds--> one probe
 *        ^                                   ^  ^                       |    |
 *        |                                   |  +---------fails---------+    |
 *        +-------------------------------- succeeds -------------------------+
 *
 * A closed breaker allows as many deliveries at a time as the limit, an open one none, and one probe after
 * breaker_seconds. Only a failure of the destination counts (no connection, out of resources). A reply about an
 * instance counts as success, even a rejection, because the destination is reachable. A zeroed breaker is closed.
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

/* Returns how many more deliveries may start, given those under way. */
size_t breaker_room(const struct breaker *breaker, size_t under_way, size_t limit, uint64_t now_ms);

enum breaker_change breaker_succeeded(struct breaker *breaker);
enum breaker_change breaker_failed(struct breaker *breaker, const struct conf_delivery *settings, uint64_t now_ms);
/* Allows the probe of an open breaker at once: an operator or a reload requests another try. */
void breaker_probe_now(struct breaker *breaker);

#endif
