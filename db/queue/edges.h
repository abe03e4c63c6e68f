/*
 * edges.h - what the edges of jobs and deliveries share: the row that one leaves, the guard, the
 * event; and both as the queue gives them away. Private to db/.
 */
#ifndef NOCTULE_DB_QUEUE_EDGES_H
#define NOCTULE_DB_QUEUE_EDGES_H

#include "db/queue/queue_private.h"

/* A set of one state. */
#define IN(state) (1u << (state))

/* Whose edges they are. */
struct machine {
    const char *row_sql; /* of an id; what edge_row is read from */
    const struct database_shape *row_shape;
    const char *const *states;
};

extern const struct machine machine_job, machine_delivery;

/* What an edge needs to know of the row it leaves. */
struct edge_row {
    const struct machine *machine;
    int64_t id, job_id, series_id;
    int state; /* enum queue_job_state or queue_delivery_state */
    int32_t attempts, revision, series_revision;
    bool removed;                     /* the files of its results are */
    enum queue_commitment commitment; /* this and the next: of deliveries */
    bool has_result;                  /* has its row */
};

int edge_read_row(struct queue *queue, const struct machine *machine, int64_t id,
                  struct edge_row *row);
/* Reads the row; -EAGAIN unless its state is one of `allowed` (OR of IN). */
int edge_expect(struct queue *queue, const struct machine *machine, int64_t id, unsigned allowed,
                struct edge_row *row);
/* The same, entered: queue_leave follows, but after a failure. */
int edge_enter(struct queue *queue, const struct machine *machine, int64_t id, unsigned allowed,
               struct edge_row *row);
/* -EAGAIN, with the state in words. */
int edge_wrong_state(struct queue *queue, const struct edge_row *row);

/* The first two values of a guarded UPDATE: WHERE id = ?1 AND state = ?2. */
#define EDGE_GUARD(row) value_int((row)->id), value_text((row)->machine->states[(row)->state])

/* An event, told by a code and in words; states are NULL where none changes. */
int edge_note(struct queue *queue, const struct edge_row *row, const char *from_state,
              const char *to_state, const char *kind, enum code code, const char *words,
              int64_t now_ms);
/* Turns what the guarded UPDATE of an edge returned into 0 or -errno, and writes the event. */
int edge_taken(struct queue *queue, int changed, const struct edge_row *row, int to,
               const char *kind, enum code code, const char *words, int64_t now_ms);
/* Takes an edge of each of the rows that `sql` finds; how many into *count. */
int edge_for_each(struct queue *queue, const struct machine *machine, const char *sql,
                  const struct database_value *values, size_t value_count,
                  int (*take)(struct queue *queue, const struct edge_row *row, int64_t now_ms),
                  int64_t now_ms, int64_t *count);
/* "CODE: message", whichever part there is. */
const char *edge_words(enum code code, const char *message, char *text, size_t size);

/* Codes of jobs that wait for what somebody has to send. */
#define QUEUE_AWAITING "('OBJECT_WAITING', 'OBJECT_OPTIONAL', 'STUDY_WAITING')"

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
    FIELD(NAME(queue_job_states), state, "j.state")                                                \
    FIELD(TIME, not_before_ms, "j.not_before_at")                                                  \
    FIELD(TIME, done_by_ms, "j.done_by_at")                                                        \
    FIELD(BOOL, alone, "j.alone")                                                                  \
    FIELD(BOOL, awaits, "j.state = 'DELAYED' AND j.code IN " QUEUE_AWAITING)                       \
    FIELD(BOOL, awaits_study, "j.state = 'DELAYED' AND j.code = 'STUDY_WAITING'")                  \
    FIELD(TEXT, failed_on, "iif(j.code <> '', j.worker, '')")
#define JOB_COLUMNS_OF(source)                                                                     \
    JOB_FIELDS(DATABASE_COLUMN)                                                                    \
    "NULL FROM " source " JOIN series s ON s.id = j.series_id "                                    \
    "JOIN settings t ON t.id = j.settings_id "
#define JOB_COLUMNS JOB_COLUMNS_OF("job j")

/* What a struct queue_delivery is read from. */
#define DELIVERY_FIELDS(FIELD)                                                                     \
    FIELD(INT64, id, "id")                                                                         \
    FIELD(INT64, job_id, "job_id")                                                                 \
    FIELD(TEXT, destination, "destination")                                                        \
    FIELD(NAME(queue_delivery_states), state, "state")                                             \
    FIELD(NAME(commitments), commitment, "commitment")                                             \
    FIELD(INT32, attempts, "attempts")                                                             \
    FIELD(TIME, since_ms, "since_at")                                                              \
    FIELD(TIME, due_ms, "due_at")                                                                  \
    FIELD(TEXT, kind, "kind")                                                                      \
    FIELD(TEXT, path, "path")                                                                      \
    FIELD(TEXT, sop_class_uid, "sop_class_uid")                                                    \
    FIELD(TEXT, sop_instance_uid, "sop_instance_uid")
#define DELIVERY_COLUMNS DELIVERY_FIELDS(DATABASE_COLUMN) "NULL FROM delivery "

extern const struct database_shape job_shape, delivery_shape;

#endif
