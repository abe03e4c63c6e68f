/*
 * due_timer.h - when a part of the daemon looks again at what is due: before the batch is committed once
 * something may have come, and when the earliest of what waits is due. One thread: the loop's.
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

/* The timer is the caller's to close. */
void due_init(struct due *due, uv_loop_t *loop);

/* Something may have become due. */
void due_now(struct due *due);
/* The earliest is due in so many milliseconds, or long ago. Replaces what was said before. */
void due_in(struct due *due, int64_t millis);
/* Is it time to look? Whoever is told so looks, and says when to look again. */
bool due_take(struct due *due);

#endif
