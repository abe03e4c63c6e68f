/*
 * edges.h - shared by the edges of jobs, deliveries, pulls and runs of programs: the row that an
 * edge leaves, the guard, the event. Private to db/.
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

extern const struct machine machine_job, machine_delivery, machine_run;

/* The row that an edge leaves. */
struct edge_row {
    const struct machine *machine;
    int64_t id, job_id, series_id;
    int state; /* enum queue_job_state, queue_delivery_state or queue_run_state */
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
/* Returns -ENOENT; the shape names the kind of row. */
int edge_no_such(struct queue *queue, const struct database_shape *shape, int64_t id);
/* Returns -EAGAIN with the state in the reason. */
int edge_wrong_state(struct queue *queue, const struct edge_row *row);

/* The first two values of a guarded UPDATE: WHERE id = ?1 AND state = ?2. */
#define EDGE_GUARD(row) value_int((row)->id), value_text((row)->machine->states[(row)->state])

/* Adds an event with a code and a message; states are NULL if none changes. */
int edge_note(struct queue *queue, const struct edge_row *row, const char *from_state, const char *to_state,
              const char *kind, enum code code, const char *words, int64_t now_ms);
/* Converts the result of an edge's guarded UPDATE to 0 or -errno, and adds the event. The edge of a job releases its
 * runs of programs. */
int edge_taken(struct queue *queue, int changed, const struct edge_row *row, int to, const char *kind, enum code code,
               const char *words, int64_t now_ms);
/* Takes an edge of each row that `sql` finds; sets *count. */
int edge_for_each(struct queue *queue, const struct machine *machine, const char *sql,
                  const struct database_value *values, size_t value_count,
                  int (*take)(struct queue *queue, const struct edge_row *row, int64_t now_ms), int64_t now_ms,
                  int64_t *count);
/* Formats "CODE: message"; absent parts are left out. */
const char *edge_words(enum code code, const char *message, char *text, size_t size);

/*
 * Part of each edge of a job. READY and DELAYED runs that no unfinished job needs are cancelled. A RUNNING one that the job
 * carries becomes READY, unless the job runs. Files of superseded masks are removed if no RUNNING job uses them.
 */
int job_release_runs(struct queue *queue, int64_t job_id, int64_t now_ms);

/* queue_add_job() within a transaction. */
int job_add(struct queue *queue, const struct queue_new_job *job, int64_t now_ms, int64_t *job_id,
            struct queue_ids *running);
/* Leaves the transaction of job_add(). Keeps the ids of running jobs only if it holds. */
int job_leave_added(struct queue *queue, int rc, struct queue_ids *running);
/* Gives a job the stored masks of programs that another one used. */
int job_copy_masks(struct queue *queue, int64_t from, int64_t to);

/* Edges of jobs that also other files take. READY -> DELAYED: an input is missing. */
int job_await(struct queue *queue, const struct edge_row *row, enum code code, const char *lacks, int64_t until_ms,
              int64_t now_ms);
/* DELAYED -> READY: the input has come. */
int job_resume(struct queue *queue, const struct edge_row *row, const char *kind, int64_t now_ms);
/* DELAYED -> FAILED without a run: the awaited input did not arrive. */
int job_give_up(struct queue *queue, const struct edge_row *row, enum code code, const char *words, int64_t now_ms);
/* -> CANCELLED, because another job replaces it. */
int job_supersede(struct queue *queue, const struct edge_row *row, int64_t now_ms);

/* The READY runs for which jobs wait, in the order in which queue_ready() would start these; a run once per job. Jobs of an
 * older revision are superseded. */
int job_first_runs(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit, const char *except,
                   struct queue_ids *runs);

/* edge_enter() for a job under review. Otherwise returns -EAGAIN and names the person who decided (review_rows.c), or
 * -ESTALE if a correction of the job waits for its measurement or a decision. */
int review_enter(struct queue *queue, int64_t job_id, struct edge_row *row);
/* Returns -ESTALE after late slices: the reviewed result is not of the present series. */
int review_expect_current(struct queue *queue, const struct edge_row *row);

/* Codes of jobs that wait for annotation objects, other series, programs or an earlier study. */
#define QUEUE_AWAITING "('OBJECT_WAITING', 'OBJECT_OPTIONAL', 'STUDY_WAITING', 'PROGRAM_WAITING', 'PRIOR_WAITING')"
/* Condition of program_run r: its mask can be read. A superseded mask stays only for jobs that read it before. */
#define RUN_HAS_MASK "r.state = 'DONE' AND r.superseded_by IS NULL AND r.removed_at IS NULL"
/* The not_before_at of a job that waits for a program: a run has limits of its own. */
#define QUEUE_NO_LIMIT "9999-12-31T23:59:59.999Z"

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
    FIELD(BOOL, awaits_program, "j.state = 'DELAYED' AND j.code = 'PROGRAM_WAITING'")                                  \
    FIELD(TEXT, failed_on, "iif(j.code <> '', j.worker, '')")                                                          \
    FIELD(INT64, corrects, "coalesce(j.corrects, 0)")                                                                  \
    FIELD(TEXT, correction, "coalesce((SELECT path FROM object WHERE id = j.correction), '')")
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
    FIELD(TEXT, sop_instance_uid, "sop_instance_uid")                                                                  \
    FIELD(INT64, confirmed, "confirmed")                                                                               \
    FIELD(TEXT, confirmed_digest, "confirmed_digest")                                                                  \
    FIELD(TEXT, accepted_digest, "iif(accepted, held_digest, '')")                                                     \
    FIELD(INT64, issuers,                                                                                              \
          "(SELECT count(DISTINCT o.patient_issuer) FROM job j JOIN series s ON s.id = j.series_id "                   \
          "JOIN series o ON o.patient_id = s.patient_id AND o.patient_id <> '' "                                       \
          "WHERE j.id = job_id AND o.patient_issuer <> '')")                                                           \
    FIELD(TEXT, source,                                                                                                \
          "(SELECT s.series_uid || '.' || j.pipeline || '.' || j.id "                                                  \
          "FROM job j JOIN series s ON s.id = j.series_id WHERE j.id = job_id)")
#define DELIVERY_COLUMNS DELIVERY_FIELDS(DATABASE_COLUMN) "NULL FROM delivery "

extern const struct database_shape job_shape, delivery_shape;

#endif
