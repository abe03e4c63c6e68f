/*
 * retention_marks.h - marks rows for removal: shared by retention (retention_rows.c) and purge.
 * Call within queue_enter() and queue_leave(). Functions return 0 or -errno.
 */
#ifndef NOCTULE_DB_QUEUE_RETENTION_MARKS_H
#define NOCTULE_DB_QUEUE_RETENTION_MARKS_H

#include "db/queue/queue_private.h"
#include "db/retention_rows.h"

/* Of a delivery d: it has not ended, or an operator may want to send it again. */
#define NOT_ARRIVED                                                                                                    \
    "NOT (d.state = 'CANCELLED' OR d.state = 'FAILED' AND d.redirected "                                               \
    "  OR d.state = 'SENT' AND d.commitment IN ('NONE', 'COMMITTED'))"

/* The events name sweep->why. */
int stock_mark_series(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms);
int stock_mark_results(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms);
int stock_mark_quarantine(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms);
int stock_mark_object(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms);

/* Lists annotation objects that are removed with a series; free objects->at. */
int stock_objects_with(struct queue *queue, const struct queue_sweep *sweep, int64_t series_id,
                       struct queue_ids *objects);

/* Runs each statement with the id as its only value. */
int stock_run(struct queue *queue, const char *const *statements, size_t count, int64_t id);

#endif
