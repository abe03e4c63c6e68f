/*
 * batch.c - see batch.h.
 *
 * Two hooks end a turn: the check hook after I/O, and the prepare hook for changes made by timers before the loop
 * sleeps again.
 */
#include "service/daemon/batch.h"

#include "base/array.h"
#include "base/test_hook.h"

#include <errno.h>
#include <stdlib.h>

/* Longer batches are split, so that the write-ahead log of one commit stays small. */
#define MAX_CHANGES 512

struct batch_call {
    void (*call)(void *context, int status);
    void *context;
};

struct batch {
    uv_prepare_t prepare;
    uv_check_t check;
    struct queue *queue;
    struct batch_events events;
    bool open; /* whether a transaction is open */
    size_t changes;
    struct batch_call *waiting;
    size_t count, capacity;
    int handles;
};

/* Finishes the transaction, committed or lost. */
static void
batch_over(struct batch *batch, int status)
{
    const bool had_changes = batch->open;
    struct batch_call *calls = batch->waiting;
    const size_t count = batch->count;
    batch->open = false;
    batch->changes = 0;
    batch->waiting = NULL;
    batch->count = batch->capacity = 0;
    for (size_t i = 0; i < count; i++)
        calls[i].call(calls[i].context, status);
    free(calls);
    if (had_changes && batch->events.after_commit)
        batch->events.after_commit(batch->events.context, status);
}

int
batch_commit(struct batch *batch)
{
    int status = 0;
    if (batch->open) {
        crash_point("daemon_before_commit");
        status = queue_commit(batch->queue);
        if (status == 0)
            crash_point("daemon_after_commit_before_reply");
    }
    batch_over(batch, status);
    return status;
}

void
batch_abort(struct batch *batch, int error)
{
    if (batch->open)
        queue_rollback(batch->queue);
    batch_over(batch, error);
}

int
batch_begin(struct batch *batch)
{
    if (batch->open && ++batch->changes > MAX_CHANGES)
        batch_commit(batch);
    if (batch->open)
        return 0;
    int error = queue_begin(batch->queue);
    batch->open = error == 0;
    return error;
}

int
batch_on_commit(struct batch *batch, void (*call)(void *context, int status), void *context)
{
    struct batch_call *grown = array_grow(batch->waiting, &batch->capacity, batch->count + 1, sizeof *grown);
    if (!grown) {
        batch_abort(batch, -ENOMEM);
        call(context, -ENOMEM);
        return -ENOMEM;
    }
    batch->waiting = grown;
    batch->waiting[batch->count++] = (struct batch_call){call, context};
    return 0;
}

static void
batch_end(struct batch *batch)
{
    if (batch->events.before_commit)
        batch->events.before_commit(batch->events.context);
    batch_commit(batch);
}

static void
batch_on_prepare(uv_prepare_t *prepare)
{
    batch_end(prepare->data);
}

static void
batch_on_check(uv_check_t *check)
{
    batch_end(check->data);
}

int
batch_open(uv_loop_t *loop, struct queue *queue, const struct batch_events *events, struct batch **out)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return -ENOMEM;
    batch->queue = queue;
    batch->events = *events;
    /* These four calls cannot fail for a running loop and a callback. */
    uv_prepare_init(loop, &batch->prepare);
    uv_check_init(loop, &batch->check);
    uv_prepare_start(&batch->prepare, batch_on_prepare);
    uv_check_start(&batch->check, batch_on_check);
    batch->prepare.data = batch->check.data = batch;
    batch->handles = 2;
    *out = batch;
    return 0;
}

static void
batch_on_closed(uv_handle_t *handle)
{
    struct batch *batch = handle->data;
    if (--batch->handles == 0)
        free(batch);
}

void
batch_close(struct batch *batch)
{
    if (!batch)
        return;
    batch->events = (struct batch_events){0};
    batch_commit(batch);
    uv_close((uv_handle_t *)&batch->prepare, batch_on_closed);
    uv_close((uv_handle_t *)&batch->check, batch_on_closed);
}
