/*
 * clock_watch.h - detects that the wall clock was set. Pure: no I/O, no clock of its own.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CLOCK_WATCH_H
#define NOCTULE_SERVICE_DAEMON_CLOCK_WATCH_H

#include <stdint.h>

#define CLOCK_WATCH_MIN_MS 2000 /* time daemons make smaller corrections all day */

/* How far the wall clock was ahead of the steady clock at the last check. Zeroed: no check yet. */
struct clock_watch {
    int64_t ahead_ms;
};

/* Returns by how many milliseconds the clock was set since the last check, forward or (negative)
 * back. 0: it was not set. */
static inline int64_t
clock_watch_check(struct clock_watch *watch, int64_t wall_ms, int64_t steady_ms)
{
    const int64_t before_ms = watch->ahead_ms;
    watch->ahead_ms = wall_ms - steady_ms;
    const int64_t by_ms = before_ms ? watch->ahead_ms - before_ms : 0;
    return by_ms >= CLOCK_WATCH_MIN_MS || by_ms <= -CLOCK_WATCH_MIN_MS ? by_ms : 0;
}

#endif
