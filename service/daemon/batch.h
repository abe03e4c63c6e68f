/*
 * batch.h - group commit: all database changes of one turn of the event loop form one transaction, and actions that
 * depend on them run after the commit.
 *
 * Callbacks call batch_begin() before they write, and batch_on_commit() for actions that must wait (replies, RUN,
 * STORED). The transaction is committed before the loop sleeps. A thousand files therefore cost a few syncs instead of
 * a thousand.
 */
#ifndef NOCTULE_SERVICE_DAEMON_BATCH_H
#define NOCTULE_SERVICE_DAEMON_BATCH_H

#include "db/queue.h"

#include <uv.h>

struct batch;

struct batch_events {
    /* Called before a commit; the last chance to add changes. */
    void (*before_commit)(void *context);
    /* Called after all batch_on_commit() callbacks with 0 or -errno; not called for an empty batch. */
    void (*after_commit)(void *context, int status);
    void *context;
};

int batch_open(uv_loop_t *loop, struct queue *queue, const struct batch_events *events, struct batch **batch);
/* Commits the open transaction and closes the two loop handles asynchronously. NULL is allowed. */
void batch_close(struct batch *batch);

/* Begins the transaction unless one is open. Returns 0, or -errno if the caller must not write. */
int batch_begin(struct batch *batch);

/* Calls back with 0 when the open transaction is on disk, or with -errno when it is lost, in the order of these calls.
 * If no transaction is open, calls back at the end of the turn of the loop. Returns 0, or -ENOMEM after the batch was
 * aborted and `call` was called with -ENOMEM. Neither `call` nor the after_commit event may change the database: the
 * loop may sleep before the next commit. */
int batch_on_commit(struct batch *batch, void (*call)(void *context, int status), void *context);

/* Commits the batch now. Returns 0, or -errno if its changes are lost. */
int batch_commit(struct batch *batch);
/* Rolls the batch back and passes `error` to all waiting callbacks. */
void batch_abort(struct batch *batch, int error);

#endif
