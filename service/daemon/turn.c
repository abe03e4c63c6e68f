/*
 * turn.c - see turn.h.
 *
 * Two hooks end a turn: the check hook right after I/O, the prepare hook for what timers changed
 * before the loop sleeps again.
 */
#include "service/daemon/turn.h"

#include "service/common/crash_point.h"

#include <errno.h>
#include <stdlib.h>

/* A turn that brings more is cut in pieces, so that the log of one commit stays small. */
#define MAX_CHANGES 512

struct waiting {
    void (*call)(void *context, int status);
    void *context;
};

struct turn {
    uv_prepare_t prepare;
    uv_check_t check;
    struct queue *queue;
    struct turn_events events;
    bool open; /* a transaction is */
    size_t changes;
    struct waiting *waiting;
    size_t count, capacity;
    int handles;
};

static void
make_calls(struct turn *turn, int status)
{
    struct waiting *calls = turn->waiting;
    size_t count = turn->count;
    turn->waiting = NULL;
    turn->count = turn->capacity = 0;
    for (size_t i = 0; i < count; i++)
        calls[i].call(calls[i].context, status);
    free(calls);
}

/* The transaction is over, well or not. */
static void
tell(struct turn *turn, int status)
{
    bool had_changes = turn->open;
    turn->open = false;
    turn->changes = 0;
    make_calls(turn, status);
    if (had_changes && turn->events.ended)
        turn->events.ended(turn->events.context, status);
}

int
turn_commit(struct turn *turn)
{
    int status = 0;
    if (turn->open) {
        crash_point("daemon_before_commit");
        status = queue_commit(turn->queue);
        if (status == 0)
            crash_point("daemon_after_commit_before_reply");
    }
    tell(turn, status);
    return status;
}

void
turn_abort(struct turn *turn, int error)
{
    if (turn->open)
        queue_rollback(turn->queue);
    tell(turn, error);
}

int
turn_change(struct turn *turn)
{
    if (turn->open && ++turn->changes > MAX_CHANGES)
        turn_commit(turn);
    if (turn->open)
        return 0;
    int error = queue_begin(turn->queue);
    turn->open = error == 0;
    return error;
}

int
turn_after(struct turn *turn, void (*call)(void *context, int status), void *context)
{
    if (turn->count == turn->capacity) {
        size_t capacity = turn->capacity ? 2 * turn->capacity : 64;
        struct waiting *grown = realloc(turn->waiting, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        turn->waiting = grown;
        turn->capacity = capacity;
    }
    turn->waiting[turn->count++] = (struct waiting){call, context};
    return 0;
}

static void
end_turn(struct turn *turn)
{
    if (turn->events.ending)
        turn->events.ending(turn->events.context);
    turn_commit(turn);
}

static void
on_prepare(uv_prepare_t *prepare)
{
    end_turn(prepare->data);
}

static void
on_check(uv_check_t *check)
{
    end_turn(check->data);
}

int
turn_open(uv_loop_t *loop, struct queue *queue, const struct turn_events *events, struct turn **out)
{
    struct turn *turn = calloc(1, sizeof *turn);
    if (!turn)
        return -ENOMEM;
    turn->queue = queue;
    turn->events = *events;
    /* None of these four can fail for a live loop and a callback. */
    uv_prepare_init(loop, &turn->prepare);
    uv_check_init(loop, &turn->check);
    uv_prepare_start(&turn->prepare, on_prepare);
    uv_check_start(&turn->check, on_check);
    turn->prepare.data = turn->check.data = turn;
    turn->handles = 2;
    *out = turn;
    return 0;
}

static void
on_closed(uv_handle_t *handle)
{
    struct turn *turn = handle->data;
    if (--turn->handles == 0)
        free(turn);
}

void
turn_close(struct turn *turn)
{
    if (!turn)
        return;
    turn->events = (struct turn_events){0};
    turn_commit(turn);
    uv_close((uv_handle_t *)&turn->prepare, on_closed);
    uv_close((uv_handle_t *)&turn->check, on_closed);
}
