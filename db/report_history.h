/*
 * report_history.h - one row per report period (view v_nights) and whether its report was sent. A
 * row stays when the data that it counts is removed. Errors, times and threads: see queue.h.
 */
#ifndef NOCTULE_DB_REPORT_HISTORY_H
#define NOCTULE_DB_REPORT_HISTORY_H

#include "db/queue.h"

struct queue_night {
    int64_t id; /* 0: unset */
    int64_t since_ms, until_ms;
};

/*
 * Reads the end of the last report period that ended before `before_ms`; without one, the time of
 * the first event of the database.
 */
int queue_nights_until(struct queue *queue, int64_t before_ms, int64_t *until_ms);

/*
 * Counts all that arrived from `since_ms` on until before `until_ms`, in its present state. `name`: the date for
 * people. `reported`: the report must be sent. Returns -EINVAL unless the period ends after it begins.
 */
int queue_close_night(struct queue *queue, const char *name, int64_t since_ms, int64_t until_ms, bool reported);

/* Reads the first row whose report must be sent. */
int queue_unreported_night(struct queue *queue, struct queue_night *night);

/* Notes that a report was sent (`failure` is ""), or that sending failed, which makes an event. */
int queue_night_reported(struct queue *queue, int64_t id, const char *failure, int64_t now_ms);

#endif
