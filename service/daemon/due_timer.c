#include "service/daemon/due_timer.h"

#define MAX_WAIT_MILLIS 60000 /* longest time between checks: the clock may be set */

static void
due_on_timer(uv_timer_t *timer)
{
    struct due *due = timer->data;
    due->now = true;
}

void
due_init(struct due *due, uv_loop_t *loop)
{
    uv_timer_init(loop, &due->timer); /* cannot fail */
    due->timer.data = due;
    due->now = false;
}

void
due_now(struct due *due)
{
    due->now = true;
    uv_timer_start(&due->timer, due_on_timer, 0, 0); /* the loop may be about to sleep */
}

void
due_in(struct due *due, int64_t millis)
{
    if (due->now)
        return;
    uint64_t wait = (uint64_t)(millis < 0 ? 0 : millis > MAX_WAIT_MILLIS ? MAX_WAIT_MILLIS : millis);
    uv_timer_start(&due->timer, due_on_timer, wait + 1, 0);
}

bool
due_take(struct due *due)
{
    bool now = due->now;
    due->now = false;
    if (now)
        uv_timer_stop(&due->timer);
    return now;
}
