/*
 * queue_private.h - what the parts of the queue share: queue.c (life, transactions, events,
 * invariants), queue_series.c and queue_jobs.c (the edges). Private to db/.
 */
#ifndef NOCTULE_QUEUE_PRIVATE_H
#define NOCTULE_QUEUE_PRIVATE_H

#include "database.h"
#include "queue.h"

struct queue {
    struct database db;

    enum {
        QUEUE_ALONE,     /* each call is a transaction */
        QUEUE_GROUPED,   /* each call is a savepoint in the open transaction */
        QUEUE_GROUP_LOST /* SQLite rolled the open transaction back; `lost` says why */
    } group;

    int lost;
};

/*
 * Every call that changes rows: rc = queue_enter(); work; return queue_leave(queue, rc). Leaving
 * with an error undoes what was done since entering, and nothing else.
 */
int queue_enter(struct queue *queue);
int queue_leave(struct queue *queue, int rc);

struct queue_event {
    const char *kind;
    int64_t series_id, job_id;         /* 0: none */
    const char *from_state, *to_state; /* NULL: no change of state */
    const char *detail;
};

int queue_add_event(struct queue *queue, const struct queue_event *event, int64_t now_ms);

/* A growing array of `size`-byte elements; *capacity belongs to it. Makes room for one more. */
int queue_grow(struct queue *queue, void **array, size_t count, size_t *capacity, size_t size);

#endif
