#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

const char *const queue_job_states[] = {
    [QUEUE_READY] = "READY",     [QUEUE_RUNNING] = "RUNNING", [QUEUE_DONE] = "DONE",
    [QUEUE_EMPTY] = "EMPTY",     [QUEUE_REVIEW] = "REVIEW",   [QUEUE_REJECTED] = "REJECTED",
    [QUEUE_DELAYED] = "DELAYED", [QUEUE_FAILED] = "FAILED",   [QUEUE_CANCELLED] = "CANCELLED",
};

const char *const queue_delivery_states[] = {
    [QUEUE_DELIVERY_PENDING] = "PENDING",     [QUEUE_DELIVERY_SENDING] = "SENDING", [QUEUE_DELIVERY_SENT] = "SENT",
    [QUEUE_DELIVERY_DELAYED] = "DELAYED",     [QUEUE_DELIVERY_FAILED] = "FAILED",   [QUEUE_DELIVERY_REVIEW] = "REVIEW",
    [QUEUE_DELIVERY_CANCELLED] = "CANCELLED",
};

static const char *const commitments[] = {
    [QUEUE_COMMITMENT_NONE] = "NONE",
    [QUEUE_COMMITMENT_REQUESTED] = "REQUESTED",
    [QUEUE_COMMITMENT_COMMITTED] = "COMMITTED",
    [QUEUE_COMMITMENT_FAILED] = "FAILED",
};

const char *
queue_job_state_name(enum queue_job_state state)
{
    return (size_t)state < COUNT_OF(queue_job_states) ? queue_job_states[state] : "UNKNOWN";
}

/* --------------------------------------------------------------------------------- the row --- */

#define EDGE_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct edge_row, member)},

#define JOB_ROW(FIELD)                                                                                                 \
    FIELD(INT64, id, "j.id")                                                                                           \
    FIELD(INT64, job_id, "j.id")                                                                                       \
    FIELD(INT64, series_id, "s.id")                                                                                    \
    FIELD(NAME(queue_job_states), state, "j.state")                                                                    \
    FIELD(INT32, attempts, "j.attempts")                                                                               \
    FIELD(INT32, revision, "j.revision")                                                                               \
    FIELD(INT32, series_revision, "s.revision")                                                                        \
    FIELD(BOOL, removed, "j.removed_at IS NOT NULL")

#define DELIVERY_ROW(FIELD)                                                                                            \
    FIELD(INT64, id, "d.id")                                                                                           \
    FIELD(INT64, job_id, "j.id")                                                                                       \
    FIELD(INT64, series_id, "j.series_id")                                                                             \
    FIELD(NAME(queue_delivery_states), state, "d.state")                                                               \
    FIELD(INT32, attempts, "d.attempts")                                                                               \
    FIELD(NAME(commitments), commitment, "d.commitment")                                                               \
    FIELD(BOOL, has_result, "d.result_id IS NOT NULL")                                                                 \
    FIELD(BOOL, removed, "j.removed_at IS NOT NULL")

static const struct database_shape job_row_shape = DATABASE_SHAPE("job", struct edge_row, JOB_ROW(EDGE_FIELD));
const struct machine machine_job = {
    "SELECT " JOB_ROW(DATABASE_COLUMN) "NULL FROM job j JOIN series s ON s.id = j.series_id "
                                       "WHERE j.id = ?",
    &job_row_shape, queue_job_states};

static const struct database_shape delivery_row_shape =
    DATABASE_SHAPE("delivery", struct edge_row, DELIVERY_ROW(EDGE_FIELD));
const struct machine machine_delivery = {
    "SELECT " DELIVERY_ROW(DATABASE_COLUMN) "NULL FROM delivery d JOIN job j ON j.id = d.job_id "
                                            "WHERE d.id = ?",
    &delivery_row_shape, queue_delivery_states};

int
edge_no_such(struct queue *queue, const struct database_shape *shape, int64_t id)
{
    return database_refuse(&queue->db, -ENOENT, "there is no %s %lld", shape->what, (long long)id);
}

int
edge_read_row(struct queue *queue, const struct machine *machine, int64_t id, struct edge_row *row)
{
    int rc = queue_read_row(queue, machine->row_sql, VALUES(value_int(id)), machine->row_shape, row);
    row->machine = machine;
    return rc == 1 ? edge_no_such(queue, machine->row_shape, id) : rc;
}

int
edge_wrong_state(struct queue *queue, const struct edge_row *row)
{
    const char *way = row->machine == &machine_job && row->state == QUEUE_REVIEW ? ": noctule accept or reject it"
                      : row->machine == &machine_delivery && row->state == QUEUE_DELIVERY_REVIEW
                          ? ": noctule accept --delivery or reject --delivery"
                          : "";
    return database_refuse(&queue->db, -EAGAIN, "%s %lld is %s%s", row->machine->row_shape->what, (long long)row->id,
                           row->machine->states[row->state], way);
}

int
edge_expect(struct queue *queue, const struct machine *machine, int64_t id, unsigned allowed, struct edge_row *row)
{
    int rc = edge_read_row(queue, machine, id, row);
    return rc == 0 && !(allowed & IN(row->state)) ? edge_wrong_state(queue, row) : rc;
}

int
edge_enter(struct queue *queue, const struct machine *machine, int64_t id, unsigned allowed, struct edge_row *row)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = edge_expect(queue, machine, id, allowed, row);
    return rc < 0 ? queue_leave(queue, rc) : 0;
}

/* -------------------------------------------------------------------------------- its event -- */

const char *
edge_words(enum code code, const char *message, char *text, size_t size)
{
    if (code == CODE_NONE)
        return message ? message : "";
    snprintf(text, size, "%s%s%s", code_name(code), message && message[0] ? ": " : "", message ? message : "");
    return text;
}

int
edge_note(struct queue *queue, const struct edge_row *row, const char *from_state, const char *to_state,
          const char *kind, enum code code, const char *words, int64_t now_ms)
{
    char detail[512];
    struct queue_event event = {.kind = kind,
                                .series_id = row->series_id,
                                .job_id = row->job_id,
                                .delivery_id = row->machine == &machine_delivery ? row->id : 0,
                                .run_id = row->machine == &machine_run ? row->id : 0,
                                .from_state = from_state,
                                .to_state = to_state,
                                .detail = edge_words(code, words, detail, sizeof detail)};
    return queue_add_event(queue, &event, now_ms);
}

int
edge_taken(struct queue *queue, int changed, const struct edge_row *row, int to, const char *kind, enum code code,
           const char *words, int64_t now_ms)
{
    const char *const *states = row->machine->states;
    if (changed <= 0)
        return changed < 0 ? changed : edge_wrong_state(queue, row);
    int rc = edge_note(queue, row, states[row->state], states[to], kind, code, words, now_ms);
    return rc == 0 && row->machine == &machine_job ? job_release_runs(queue, row->id, now_ms) : rc;
}

int
edge_for_each(struct queue *queue, const struct machine *machine, const char *sql, const struct database_value *values,
              size_t value_count, int (*take)(struct queue *queue, const struct edge_row *row, int64_t now_ms),
              int64_t now_ms, int64_t *count)
{
    struct queue_ids ids;
    int rc = queue_list(queue, sql, values, value_count, &database_id, &ids.at, &ids.count);
    for (size_t i = 0; rc == 0 && i < ids.count; i++) {
        struct edge_row row;
        rc = edge_read_row(queue, machine, ids.at[i], &row);
        if (rc == 0)
            rc = take(queue, &row, now_ms);
    }
    *count = (int64_t)ids.count;
    free(ids.at);
    return rc;
}

/* ----------------------------------------------------------------------------------- reading - */

#define JOB_FIELD(kind, member, sql)      {DATABASE_##kind, offsetof(struct queue_job, member)},
#define DELIVERY_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_delivery, member)},

const struct database_shape job_shape = DATABASE_SHAPE("job", struct queue_job, JOB_FIELDS(JOB_FIELD));
const struct database_shape delivery_shape =
    DATABASE_SHAPE("delivery", struct queue_delivery, DELIVERY_FIELDS(DELIVERY_FIELD));

DATABASE_CLEAR(queue_job_clear, queue_job, job_shape)

DATABASE_CLEAR(queue_delivery_clear, queue_delivery, delivery_shape)

int
queue_get_job(struct queue *queue, int64_t job_id, struct queue_job *job)
{
    int rc = queue_read_row(queue, "SELECT " JOB_COLUMNS "WHERE j.id = ?", VALUES(value_int(job_id)), &job_shape, job);
    return rc == 1 ? edge_no_such(queue, &job_shape, job_id) : rc;
}

int
queue_get_delivery(struct queue *queue, int64_t delivery_id, struct queue_delivery *delivery)
{
    int rc = queue_read_row(queue, "SELECT " DELIVERY_COLUMNS "WHERE id = ?", VALUES(value_int(delivery_id)),
                            &delivery_shape, delivery);
    return rc == 1 ? edge_no_such(queue, &delivery_shape, delivery_id) : rc;
}
