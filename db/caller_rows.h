/*
 * caller_rows.h - callers with rejected associations (view v_callers). Errors, times and threads: see queue.h.
 *
 * Any host on the network can add rows, so their number is limited: CALLERS_OF_HOST per address,
 * CALLERS_KEPT in total. The row with the oldest rejection is removed first.
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
    char *certificate; /* SHA-256; "": the caller showed none */
    char *reason;      /* as in table `caller` */
};

/* A rejection that the receiver reports. */
struct queue_rejection {
    const char *calling_ae, *called_ae, *host, *certificate, *reason; /* as above */
    int64_t rejected;
    bool admitted; /* admitted by the configuration in force, which the receiver did not have yet */
};

/* Adds the rejection to the row of its caller, or adds a row. */
int queue_add_rejection(struct queue *queue, const struct queue_rejection *rejection, int64_t now_ms);

/* Reads all rows. Free with queue_callers_free(). */
int queue_callers(struct queue *queue, struct queue_caller **callers, size_t *count);
void queue_callers_free(struct queue_caller *callers, size_t count);
/* Notes whether the configuration in force admits the caller. */
int queue_admit_caller(struct queue *queue, int64_t id, bool admitted, int64_t now_ms);

#endif
