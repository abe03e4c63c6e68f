/*
 * batch.h - group commit: what one turn of the loop changes in the database is one transaction, and
 * what follows from it happens only when it is on disk.
 *
 * Callbacks call batch_begin before they write and batch_on_commit for what must wait (answers,
 * RUN, STORED). The transaction is committed before the loop sleeps, so a thousand files cost a few
 * syncs and not a thousand.
 */
#ifndef NOCTULE_SERVICE_DAEMON_BATCH_H
#define NOCTULE_SERVICE_DAEMON_BATCH_H

#include "db/queue.h"

#include <uv.h>

struct batch;

struct batch_events {
    /* The batch is about to be committed; the last occasion for changes. */
    void (*before_commit)(void *context);
    /* How the commit went: 0 or -errno, after all batch_on_commit calls; not for an empty batch. */
    void (*after_commit)(void *context, int status);
    void *context;
};

int batch_open(uv_loop_t *loop, struct queue *queue, const struct batch_events *events,
               struct batch **batch);
/* Commits what is open; the two loop handles are closed asynchronously. NULL is allowed. */
void batch_close(struct batch *batch);

/* Begins the transaction unless it has begun. 0 or -errno: then nothing may be written. */
int batch_begin(struct batch *batch);

/*
 * Calls back when the open transaction is on disk (0) or lost (-errno), in the order of these
 * calls; at the end of the turn of the loop when none is open. Without memory for that the batch is
 * aborted, and -ENOMEM told here and there. Neither such a call nor the after_commit event may change the database: the loop may sleep before
 * the next commit.
 */
int batch_on_commit(struct batch *batch, void (*call)(void *context, int status), void *context);

/* Ends the batch now: 0, or -errno when its changes are lost. */
int batch_commit(struct batch *batch);
/* Undoes everything in the batch; who waits is given `error`. */
void batch_abort(struct batch *batch, int error);

#endif
