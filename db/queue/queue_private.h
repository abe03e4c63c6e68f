/*
 * queue_private.h - shared by the parts of the queue: transaction.c (opening, transactions, events,
 * invariants), the edges (series_rows.c, quarantine_rows.c, job_rows.c, review_rows.c,
 * delivery_rows.c, program_rows.c), holds.c, feature_rows.c. Private to db/.
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
 * Encloses each call that changes rows: rc = queue_enter(); work; return queue_leave(queue, rc).
 * Leaving with an error undoes the changes since entering, and only these.
 */
int queue_enter(struct queue *queue);
int queue_leave(struct queue *queue, int rc);
/* Runs one statement so enclosed. Returns 0 for any number of changed rows. */
int queue_change(struct queue *queue, const char *sql, const struct database_value *values, size_t count);

struct queue_event {
    const char *kind;
    int64_t series_id, job_id, delivery_id, run_id; /* 0: unset */
    const char *from_state, *to_state;              /* NULL: no change of state */
    const char *detail;
};

int queue_add_event(struct queue *queue, const struct queue_event *event, int64_t now_ms);

/* Reads the first row. Returns 1 if there is no row. */
int queue_read_row(struct queue *queue, const char *sql, const struct database_value *values, size_t count,
                   const struct database_shape *shape, void *row);

/* A growing array of structs of that shape. */
struct queue_rows {
    const struct database_shape *shape;
    void *at;
    size_t count, capacity;
};

int queue_append_rows(struct queue *queue, const char *sql, const struct database_value *values, size_t count,
                      struct queue_rows *rows);
/* Returns rc. Moves the rows into *array (a pointer to a pointer) and *count; after an error there are no rows. */
int queue_settle_rows(struct queue_rows *rows, int rc, void *array, size_t *count);
/* Both read all rows. */
int queue_list(struct queue *queue, const char *sql, const struct database_value *values, size_t value_count,
               const struct database_shape *shape, void *array, size_t *count);
/* Finds the row of a text in `settings`, or adds it. */
int queue_settings_row(struct queue *queue, const char *text, int64_t *id);
/* For LIMIT. */
struct database_value queue_row_limit(size_t limit);

/* A series by its UID (series_rows.c). */
struct series_row {
    int64_t id;
    int32_t revision;
    enum series_state state;
    bool removed; /* its files are removed */
};

/* Returns 1 if there is no such series. */
int queue_read_series(struct queue *queue, const char *series_uid, struct series_row *row);
/*
 * SETTLED | REFUSED -> GATHERING, revision + 1: its instances changed, or it must be inspected
 * again. A series whose files are removed begins without instances. `kind` is the kind of the
 * event.
 */
int queue_reopen_series(struct queue *queue, struct series_row *row, const char *kind, const char *why, int64_t now_ms);

/* Returns -ESTALE with a reason: the files are removed. */
int queue_refuse_removed(struct queue *queue, const char *series_uid);

/* Notes that the file from `source` is stored at `path` and that its inbox keeps the original (inbox_files.c). */
int queue_keep_in_mind(struct queue *queue, const char *source, const struct queue_kept *kept, const char *path);

/* Records that a good file of this instance of the series arrived: the series does not lack it any more
 * (quarantine_rows.c). */
int queue_cure(struct queue *queue, const char *series_uid, const char *sop_instance_uid);

/* Reads the annotation objects that refer to a series, or lie in its folder, with files (object_rows.c). */
int queue_series_objects(struct queue *queue, int64_t series_id, struct queue_ids *objects);
/* Adds an event of each stored series that it refers to. */
int queue_object_note(struct queue *queue, const char *kind, int64_t object_id, const char *detail, int64_t now_ms);
/* Notes that the file of an annotation object is missing; returns 1 if no object has that path. */
int queue_object_missing(struct queue *queue, const char *path, int64_t now_ms);

/*
 * REVIEW -> REJECTED (SUPERSEDED) for all jobs that this job superseded (review_rows.c). Call
 * within queue_enter() and queue_leave().
 */
int queue_close_reviews(struct queue *queue, int64_t job_id, int64_t now_ms);
/*
 * Call when a job ended well or was accepted: earlier jobs of the same revision that ended well are
 * superseded, and their unsent deliveries withdrawn (job_rows.c).
 */
int queue_job_stands(struct queue *queue, int64_t job_id, int64_t now_ms);

/* Stores the features of a job that ended well (feature_rows.c). Call within queue_enter() and queue_leave(). */
int queue_add_features(struct queue *queue, int64_t job_id, const struct queue_figures *figures);

/*
 * Deliveries, as the edges of jobs change them (delivery_rows.c). Call within queue_enter() and
 * queue_leave(). Creates the deliveries of a result.
 */
int queue_add_deliveries(struct queue *queue, int64_t result_id, const struct queue_result *result, int64_t now_ms);
/* Adds the result "images" of a job, and its deliveries, if a destination takes it. A destination gets the images of a
 * revision of a series once. */
int queue_add_images(struct queue *queue, int64_t job_id, const struct queue_result *routes, int64_t now_ms);
/* Withdraws the unsent deliveries of jobs that this job superseded. */
int queue_withdraw_superseded(struct queue *queue, int64_t job_id, int64_t now_ms);
/* Ends the deliveries of a purged series that have not arrived, with code PURGED. */
int queue_withdraw_purged(struct queue *queue, int64_t series_id, int64_t now_ms);
int queue_recover_deliveries(struct queue *queue, int64_t now_ms);
/* FINDING | MOVING -> WAITING after a restart (pull_queue.c). */
int queue_recover_pulls(struct queue *queue, int64_t now_ms);
/*
 * Subtracts the time since `since_ms` from the age of waiting deliveries to the destination (NULL:
 * to all). Deliveries that are SENDING keep their age.
 */
int queue_count_out(struct queue *queue, const char *destination, int64_t since_ms, int64_t now_ms);

/* The ids of the series that object ?1 refers to. */
#define SERIES_OF_OBJECT                                                                                               \
    "SELECT s.id FROM object_reference r CROSS JOIN series s ON s.series_uid = r.uid "                                 \
    "WHERE r.object_id = ?1 AND r.kind = 'series' "                                                                    \
    "UNION SELECT i.series_id FROM object_reference r "                                                                \
    "CROSS JOIN instance i ON i.sop_instance_uid = r.uid "                                                             \
    "WHERE r.object_id = ?1 AND r.kind = 'instance' "                                                                  \
    "UNION SELECT s.id FROM object_reference r "                                                                       \
    "CROSS JOIN series s ON s.frame_of_reference = r.uid AND s.frame_of_reference <> '' "                              \
    "WHERE r.object_id = ?1 AND r.kind = 'frame'"

#endif
