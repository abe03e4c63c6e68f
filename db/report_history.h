/*
 * report_history.h - a row a night, which stays when what it counts has gone (view v_nights), and whether its report
 * was handed over. As queue.h says of errors, times and threads.
 */
#ifndef NOCTULE_DB_REPORT_HISTORY_H
#define NOCTULE_DB_REPORT_HISTORY_H

#include "db/queue.h"

struct queue_night {
    int64_t id; /* 0: none */
    int64_t since_ms, until_ms;
};

/* When the last night ended that did so before then; where there was none, when the first event of the database
 * was. */
int queue_nights_until(struct queue *queue, int64_t before_ms, int64_t *until_ms);

/* Counts what became of what came from then on until before then, as it stands now. `name`: the date for
 * people. `reported`: its report is to be handed over. -EINVAL unless it ends after it begins. */
int queue_close_night(struct queue *queue, const char *name, int64_t since_ms, int64_t until_ms,
                      bool reported);

/* The first whose report is to be handed over. */
int queue_unreported_night(struct queue *queue, struct queue_night *night);

/* It was, or could not be: `failure`, which is an event then; "": it was. */
int queue_night_reported(struct queue *queue, int64_t id, const char *failure, int64_t now_ms);

#endif
