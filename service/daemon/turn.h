/*
 * turn.h - group commit: what one turn of the loop changes in the database is one transaction, and
 * what follows from it happens only when it is on disk.
 *
 * Callbacks call turn_change before they write and turn_after for what must wait (answers, RUN,
 * STORED). The transaction is committed before the loop sleeps, so a thousand files cost a few
 * syncs and not a thousand.
 */
#ifndef NOCTULE_TURN_H
#define NOCTULE_TURN_H

#include "db/queue.h"

#include <uv.h>

struct turn;

struct turn_events {
    /* The turn is about to end; the last occasion for changes. */
    void (*ending)(void *context);
    /* How the commit went: 0 or -errno, after every turn_after call. Not told of empty turns. */
    void (*ended)(void *context, int status);
    void *context;
};

int turn_open(uv_loop_t *loop, struct queue *queue, const struct turn_events *events,
              struct turn **turn);
/* Commits what is open; the two loop handles are closed asynchronously. NULL is allowed. */
void turn_close(struct turn *turn);

/* Begins the transaction unless it has begun. 0 or -errno: then nothing may be written. */
int turn_change(struct turn *turn);

/*
 * Calls back when the open transaction is on disk (0) or lost (-errno), in the order of these
 * calls; at the end of the turn when none is open. -ENOMEM: it will not be called. Neither such a
 * call nor the `ended` event may change the database: the loop may sleep before the next commit.
 */
int turn_after(struct turn *turn, void (*call)(void *context, int status), void *context);

/* Ends the turn now: 0, or -errno when its changes are lost. */
int turn_commit(struct turn *turn);
/* Undoes everything the turn changed; who waited is told `error`. */
void turn_abort(struct turn *turn, int error);

#endif
