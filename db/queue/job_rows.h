/*
 * job_rows.h - what is shared by all that moves or reads jobs: the row that an edge leaves, its
 * event, and rows as the queue gives them away. Private to db/: jobs.c and ready.c.
 */
#ifndef NOCTULE_JOB_ROWS_H
#define NOCTULE_JOB_ROWS_H

#include "db/queue/queue_private.h"

/* A set of one state. */
#define JOB_IN(state) (1u << (state))

/* What an edge needs to know of the row it leaves. */
struct job_row {
    int64_t id, series_id;
    enum queue_job_state state;
    int32_t revision, series_revision, attempts;
};

int job_read_row(struct queue *queue, int64_t job_id, struct job_row *row);
/* Reads the row; -EAGAIN unless its state is one of `allowed` (OR of JOB_IN). */
int job_expect_row(struct queue *queue, int64_t job_id, unsigned allowed, struct job_row *row);
/* Turns what the guarded UPDATE of an edge returned into 0 or -errno, and writes the event. */
int job_moved(struct queue *queue, int changed, const struct job_row *row, enum queue_job_state to,
              const char *kind, const char *detail, int64_t now_ms);
/* Applies an edge to each of the jobs that `sql` finds. */
int job_for_each(struct queue *queue, const char *sql, const struct database_value *values,
                 size_t count,
                 int (*edge)(struct queue *queue, const struct job_row *row, int64_t now_ms),
                 int64_t now_ms);

/* -> CANCELLED, from any state that is not an end. superseded_by: 0 when not known (yet). */
int job_cancel(struct queue *queue, const struct job_row *row, const char *kind, enum code code,
               const char *why, int64_t superseded_by, int64_t now_ms);
/* The same, for a newer revision. */
int job_supersede(struct queue *queue, const struct job_row *row, int64_t superseded_by,
                  int64_t now_ms);

/* What a struct queue_job is read from. */
#define JOB_FIELDS(FIELD)                                                                          \
    FIELD(INT64, id, "j.id")                                                                       \
    FIELD(INT64, series_id, "j.series_id")                                                         \
    FIELD(INT32, revision, "j.revision")                                                           \
    FIELD(TEXT, series_uid, "s.series_uid")                                                        \
    FIELD(TEXT, stack, "j.stack")                                                                  \
    FIELD(TEXT, pipeline, "j.pipeline")                                                            \
    FIELD(TEXT, settings, "t.text")                                                                \
    FIELD(INT32, priority, "j.priority")                                                           \
    FIELD(INT32, attempts, "j.attempts")                                                           \
    FIELD(NAME(state_names), state, "j.state")                                                     \
    FIELD(TIME, not_before_ms, "j.not_before_at")                                                  \
    FIELD(BOOL, alone, "j.alone")                                                                  \
    FIELD(TEXT, failed_on, "iif(j.code <> '', j.worker, '')")
#define JOB_COLUMNS                                                                                \
    JOB_FIELDS(DATABASE_COLUMN)                                                                    \
    "NULL FROM job j JOIN series s ON s.id = j.series_id JOIN settings t ON t.id = j.settings_id "

extern const struct database_shape job_shape;

#endif
