/*
 * notification_rows.h - the events that each command of `notify` has received (view v_notifications), and the events at
 * which alerts begin and end. Errors, times and threads are those of queue.h.
 */
#ifndef NOCTULE_DB_NOTIFICATION_ROWS_H
#define NOCTULE_DB_NOTIFICATION_ROWS_H

#include "db/queue.h"

struct queue_notification {
    int64_t event_id; /* the last event that the command has received */
    int64_t ended_ms; /* of the last run; 0: none yet */
    int32_t failures; /* since the last success */
};

/* An event as a command receives it; texts are "" if they do not apply. */
struct queue_notified {
    int64_t id, at_ms, job_id;
    char *kind, *state, *alert, *pipeline, *series_uid, *code;
};

/* Adds the rows that are missing, which begin after the last event, and removes the rows of other names. */
int queue_set_notifications(struct queue *queue, const char *const *names, size_t count);
/* Returns -ENOENT if there is no row of that name. */
int queue_read_notification(struct queue *queue, const char *name, struct queue_notification *notification);
/*
 * Lists up to `limit` events after `after` whose kinds are in `kinds`, " KIND KIND " with a space around each. *last:
 * the event up to which all were considered. Free with queue_notified_free.
 */
int queue_list_notified(struct queue *queue, int64_t after, const char *kinds, size_t limit,
                        struct queue_notified **events, size_t *count, int64_t *last);
void queue_notified_free(struct queue_notified *events, size_t count);
/* Records the end of a run that passed the events up to event_id. `failure`: "" if the command has received them. Does
 * not add a row if there is none of that name. */
int queue_end_notification(struct queue *queue, const char *name, int64_t event_id, const char *failure,
                           int64_t now_ms);
/* Records that no event up to event_id concerns the command. */
int queue_skip_notified(struct queue *queue, const char *name, int64_t event_id);

struct queue_raised {
    char *alert;
    int32_t severity;
};

/* Lists the alerts that have begun and not ended. Free with queue_raised_free. */
int queue_raised(struct queue *queue, struct queue_raised **raised, size_t *count);
void queue_raised_free(struct queue_raised *raised, size_t count);
/* An alert begins, or becomes worse; the event has the severity as its new state. */
int queue_begin_alert(struct queue *queue, const char *alert, int severity, const char *word, int64_t now_ms);
int queue_end_alert(struct queue *queue, const char *alert, int64_t now_ms);

#endif
