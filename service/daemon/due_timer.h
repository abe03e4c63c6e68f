/*
 * due_timer.h - the next time at which a part of the daemon checks for due work: before the batch is committed if work
 * may have arrived, and when the earliest waiting item is due. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DUE_TIMER_H
#define NOCTULE_SERVICE_DAEMON_DUE_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct due {
    uv_timer_t timer;
    bool now;
};

/* Initialises the timer. The caller must close it. */
void due_init(struct due *due, uv_loop_t *loop);

/* Requests a check now. */
void due_now(struct due *due);
/* Requests a check in `millis` milliseconds; negative: now. Replaces the last request, unless
 * that was for now. */
void due_in(struct due *due, int64_t millis);
/* Returns whether a check is due. If so, the caller must check, and then call due_in() for the next one. */
bool due_take(struct due *due);

#endif
