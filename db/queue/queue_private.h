/*
 * queue_private.h - what the parts of the queue share: transaction.c (life, transactions, events,
 * invariants), series_rows.c, quarantine_rows.c, job_rows.c, review_rows.c and delivery_rows.c (the edges), holds.c,
 * feature_rows.c.
 * Private to db/.
 */
#ifndef NOCTULE_DB_QUEUE_QUEUE_PRIVATE_H
#define NOCTULE_DB_QUEUE_QUEUE_PRIVATE_H

#include "db/database.h"
#include "db/queue.h"

/* Names of states. */
extern const char *const queue_job_states[QUEUE_CANCELLED + 1];
extern const char *const queue_delivery_states[QUEUE_DELIVERY_CANCELLED + 1];
extern const char *const queue_pull_states[]; /* enum queue_pull_state */

enum series_state { SERIES_GATHERING, SERIES_SETTLED, SERIES_REFUSED };

extern const char *const queue_series_states[SERIES_REFUSED + 1];

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
    int64_t series_id, job_id, delivery_id; /* 0: none */
    const char *from_state, *to_state;      /* NULL: no change of state */
    const char *detail;
};

int queue_add_event(struct queue *queue, const struct queue_event *event, int64_t now_ms);

/* The first row; 1 when there is none. */
int queue_read_row(struct queue *queue, const char *sql, const struct database_value *values,
                   size_t count, const struct database_shape *shape, void *row);

/* A growing array of structs of that shape. */
struct queue_rows {
    const struct database_shape *shape;
    void *at;
    size_t count, capacity;
};

int queue_append_rows(struct queue *queue, const char *sql, const struct database_value *values,
                      size_t count, struct queue_rows *rows);
/* Returns rc. The rows go into *array (a pointer to a pointer) and *count; after a failure: none. */
int queue_settle_rows(struct queue_rows *rows, int rc, void *array, size_t *count);
/* Both: all that there are. */
int queue_list(struct queue *queue, const char *sql, const struct database_value *values,
               size_t value_count, const struct database_shape *shape, void *array, size_t *count);
/* For LIMIT. */
struct database_value queue_row_limit(size_t limit);

/* A series by its UID (series_rows.c). */
struct series_row {
    int64_t id;
    int32_t revision;
    enum series_state state;
    bool removed; /* its files are */
};

/* 1 when the series is not there. */
int queue_read_series(struct queue *queue, const char *series_uid, struct series_row *row);
/* -ENOENT likewise. */
int queue_expect_series(struct queue *queue, const char *series_uid, struct series_row *row);
/* SETTLED | REFUSED -> GATHERING, revision + 1: what it is made of has changed, or is judged
 * otherwise; one whose files are removed begins with none. The event is of this kind. */
int queue_reopen_series(struct queue *queue, struct series_row *row, const char *kind,
                        const char *why, int64_t now_ms);

/* -ESTALE, in words: there is nothing to work on any more. */
int queue_refuse_removed(struct queue *queue, const char *series_uid);

/* What came from `source` lies at `path`, and its inbox keeps the original (inbox_files.c). */
int queue_keep_in_mind(struct queue *queue, const char *source, const struct queue_kept *kept,
                       const char *path);

/* Records that a good file of this instance of the series arrived: the series does not lack it any more (quarantine_rows.c). */
int queue_cure(struct queue *queue, const char *series_uid, const char *sop_instance_uid);

/* The objects that are of a series, or lie in its folder, and whose files are not removed (object_rows.c). */
int queue_series_objects(struct queue *queue, int64_t series_id, struct queue_ids *objects);
/* An event of each series that it is of; of none, when none is there. */
int queue_object_note(struct queue *queue, const char *kind, int64_t object_id, const char *detail,
                      int64_t now_ms);
/* The file of an object is gone; 1: there is none at that path. */
int queue_object_missing(struct queue *queue, const char *path, int64_t now_ms);

/* What a job that takes the place of others is told to do with those under review (review_rows.c): REVIEW ->
 * REJECTED (SUPERSEDED), of all that it has superseded; within queue_enter and queue_leave. */
int queue_close_reviews(struct queue *queue, int64_t job_id, int64_t now_ms);
/* The job has ended well, or was accepted: what did so before it, of the same revision, is not
 * current any more, and what it has not sent yet is not wanted (job_rows.c). */
int queue_job_stands(struct queue *queue, int64_t job_id, int64_t now_ms);

/* Features of a job that ends well (feature_rows.c); within queue_enter and queue_leave. */
int queue_add_features(struct queue *queue, int64_t job_id, const struct queue_figures *figures);

/*
 * Deliveries, as the edges of jobs move them (delivery_rows.c); called within queue_enter and
 * queue_leave. A result was written: its deliveries are made.
 */
int queue_add_deliveries(struct queue *queue, int64_t result_id, const struct queue_result *result,
                         int64_t now_ms);
/* The job ended well: what those before it have not sent yet is not wanted any more. */
int queue_withdraw_superseded(struct queue *queue, int64_t job_id, int64_t now_ms);
/* The series is purged: what has not arrived ends, PURGED. */
int queue_withdraw_purged(struct queue *queue, int64_t series_id, int64_t now_ms);
int queue_recover_deliveries(struct queue *queue, int64_t now_ms);
/* What was FINDING or MOVING is to be asked for anew (pull_queue.c). */
int queue_recover_pulls(struct queue *queue, int64_t now_ms);
/* What waits for the destination (NULL: for any) was not tried from then until now: that time does not
 * count as patience with it. What is SENDING is tried. */
int queue_count_out(struct queue *queue, const char *destination, int64_t since_ms, int64_t now_ms);

#endif
