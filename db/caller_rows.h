/*
 * caller_rows.h - callers whose associations were rejected (view v_callers). As queue.h says of errors, times and threads.
 *
 * Anyone on the network can make rows, so their number is limited: CALLERS_OF_HOST per address, CALLERS_KEPT in all; the
 * caller that was rejected longest ago goes first.
 */
#ifndef NOCTULE_DB_CALLER_ROWS_H
#define NOCTULE_DB_CALLER_ROWS_H

#include "db/queue.h"

#define CALLERS_OF_HOST 16
#define CALLERS_KEPT    256

struct queue_caller {
    int64_t id; /* of queue_callers */
    char *calling_ae, *called_ae;
    char *host;        /* numeric address */
    char *certificate; /* SHA-256; "": none was shown */
    char *reason;      /* as in table `caller` */
};

/* A report of the receiver's. */
struct queue_rejection {
    const char *calling_ae, *called_ae, *host, *certificate, *reason; /* as above */
    int64_t rejected;
    bool admitted; /* by the configuration in force, which the receiver did not have yet */
};

/* Adds a report to the caller's row, or makes the row. */
int queue_add_rejection(struct queue *queue, const struct queue_rejection *rejection,
                        int64_t now_ms);

/* All rows. Free with queue_callers_free. */
int queue_callers(struct queue *queue, struct queue_caller **callers, size_t *count);
void queue_callers_free(struct queue_caller *callers, size_t count);
/* The configuration in force admits the caller from now on, or does not. */
int queue_admit_caller(struct queue *queue, int64_t id, bool admitted, int64_t now_ms);

#endif
