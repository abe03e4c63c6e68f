/*
 * edges.h - shared by the edges of jobs, deliveries and pulls: the row that an edge leaves, the
 * guard, the event. Private to db/.
 */
#ifndef NOCTULE_DB_QUEUE_EDGES_H
#define NOCTULE_DB_QUEUE_EDGES_H

#include "db/queue/queue_private.h"

/* A set of one state. */
#define IN(state) (1u << (state))

/* The table to which the edges belong. */
struct machine {
    const char *row_sql; /* with the id as parameter; reads an edge_row */
    const struct database_shape *row_shape;
    const char *const *states;
};

extern const struct machine machine_job, machine_delivery;

/* The row that an edge leaves. */
struct edge_row {
    const struct machine *machine;
    int64_t id, job_id, series_id;
    int state; /* enum queue_job_state or queue_delivery_state */
    int32_t attempts, revision, series_revision;
    bool removed;                     /* the files of its results are removed */
    enum queue_commitment commitment; /* deliveries only, as is the next */
    bool has_result;                  /* the row of its result exists */
};

int edge_read_row(struct queue *queue, const struct machine *machine, int64_t id, struct edge_row *row);
/* Reads the row. Returns -EAGAIN unless its state is one of `allowed` (IN() joined by OR). */
int edge_expect(struct queue *queue, const struct machine *machine, int64_t id, unsigned allowed, struct edge_row *row);
/* Reads the row in a savepoint of its own: queue_leave() must follow unless this fails. */
int edge_enter(struct queue *queue, const struct machine *machine, int64_t id, unsigned allowed, struct edge_row *row);
/* Returns -EAGAIN with the state in the reason. */
int edge_wrong_state(struct queue *queue, const struct edge_row *row);

/* The first two values of a guarded UPDATE: WHERE id = ?1 AND state = ?2. */
#define EDGE_GUARD(row) value_int((row)->id), value_text((row)->machine->states[(row)->state])

/* Adds an event with a code and a message; states are NULL if none changes. */
int edge_note(struct queue *queue, const struct edge_row *row, const char *from_state, const char *to_state,
              const char *kind, enum code code, const char *words, int64_t now_ms);
/* Converts the result of an edge's guarded UPDATE to 0 or -errno, and adds the event. */
int edge_taken(struct queue *queue, int changed, const struct edge_row *row, int to, const char *kind, enum code code,
               const char *words, int64_t now_ms);
/* Takes an edge of each row that `sql` finds; sets *count. */
int edge_for_each(struct queue *queue, const struct machine *machine, const char *sql,
                  const struct database_value *values, size_t value_count,
                  int (*take)(struct queue *queue, const struct edge_row *row, int64_t now_ms), int64_t now_ms,
                  int64_t *count);
/* Formats "CODE: message"; absent parts are left out. */
const char *edge_words(enum code code, const char *message, char *text, size_t size);

/* Codes of jobs that wait for annotation objects or other series. */
#define QUEUE_AWAITING "('OBJECT_WAITING', 'OBJECT_OPTIONAL', 'STUDY_WAITING')"

/* The members of a struct queue_job. */
#define JOB_FIELDS(FIELD)                                                                                              \
    FIELD(INT64, id, "j.id")                                                                                           \
    FIELD(INT64, series_id, "j.series_id")                                                                             \
    FIELD(INT32, revision, "j.revision")                                                                               \
    FIELD(TEXT, series_uid, "s.series_uid")                                                                            \
    FIELD(TEXT, stack, "j.stack")                                                                                      \
    FIELD(TEXT, pipeline, "j.pipeline")                                                                                \
    FIELD(TEXT, settings, "t.text")                                                                                    \
    FIELD(INT32, priority, "j.priority")                                                                               \
    FIELD(INT32, attempts, "j.attempts")                                                                               \
    FIELD(NAME(queue_job_states), state, "j.state")                                                                    \
    FIELD(TIME, not_before_ms, "j.not_before_at")                                                                      \
    FIELD(TIME, done_by_ms, "j.done_by_at")                                                                            \
    FIELD(BOOL, alone, "j.alone")                                                                                      \
    FIELD(BOOL, awaits, "j.state = 'DELAYED' AND j.code IN " QUEUE_AWAITING)                                           \
    FIELD(BOOL, awaits_study, "j.state = 'DELAYED' AND j.code = 'STUDY_WAITING'")                                      \
    FIELD(TEXT, failed_on, "iif(j.code <> '', j.worker, '')")
#define JOB_COLUMNS_OF(source)                                                                                         \
    JOB_FIELDS(DATABASE_COLUMN)                                                                                        \
    "NULL FROM " source " JOIN series s ON s.id = j.series_id "                                                        \
    "JOIN settings t ON t.id = j.settings_id "
#define JOB_COLUMNS JOB_COLUMNS_OF("job j")

/* The members of a struct queue_delivery. */
#define DELIVERY_FIELDS(FIELD)                                                                                         \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(INT64, job_id, "job_id")                                                                                     \
    FIELD(TEXT, destination, "destination")                                                                            \
    FIELD(NAME(queue_delivery_states), state, "state")                                                                 \
    FIELD(NAME(commitments), commitment, "commitment")                                                                 \
    FIELD(INT32, attempts, "attempts")                                                                                 \
    FIELD(TIME, since_ms, "since_at")                                                                                  \
    FIELD(TIME, due_ms, "due_at")                                                                                      \
    FIELD(TEXT, kind, "kind")                                                                                          \
    FIELD(TEXT, path, "path")                                                                                          \
    FIELD(TEXT, sop_class_uid, "sop_class_uid")                                                                        \
    FIELD(TEXT, sop_instance_uid, "sop_instance_uid")
#define DELIVERY_COLUMNS DELIVERY_FIELDS(DATABASE_COLUMN) "NULL FROM delivery "

extern const struct database_shape job_shape, delivery_shape;

#endif
