/* job_rows.c - see job_rows.h. */
#include "db/queue/job_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [QUEUE_READY] = "READY",         [QUEUE_RUNNING] = "RUNNING", [QUEUE_DONE] = "DONE",
    [QUEUE_EMPTY] = "EMPTY",         [QUEUE_DELAYED] = "DELAYED", [QUEUE_FAILED] = "FAILED",
    [QUEUE_CANCELLED] = "CANCELLED",
};

#define STATE_COUNT (sizeof state_names / sizeof *state_names)

const char *
queue_job_state_name(enum queue_job_state state)
{
    return (size_t)state < STATE_COUNT ? state_names[state] : "UNKNOWN";
}

/* ------------------------------------------------------------------------- what edges share -- */

static int
no_such_job(struct queue *queue, int64_t job_id)
{
    return database_refuse(&queue->db, -ENOENT, "there is no job %lld", (long long)job_id);
}

int
job_read_row(struct queue *queue, int64_t job_id, struct job_row *row)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db,
                            "SELECT j.series_id, j.state, j.revision, s.revision, j.attempts "
                            "FROM job j JOIN series s ON s.id = j.series_id WHERE j.id = ?",
                            VALUES(value_int(job_id)), &statement);
    if (rc < 0)
        return rc;
    rc = database_step(&queue->db, statement);
    if (rc == 1) {
        *row = (struct job_row){
            .id = job_id,
            .series_id = sqlite3_column_int64(statement, 0),
            .revision = sqlite3_column_int(statement, 2),
            .series_revision = sqlite3_column_int(statement, 3),
            .attempts = sqlite3_column_int(statement, 4),
        };
        int state = database_find_name(state_names, STATE_COUNT, sqlite3_column_text(statement, 1));
        row->state = (enum queue_job_state)state;
        rc = state < 0 ? state : 0;
    } else if (rc == 0) {
        rc = no_such_job(queue, job_id);
    }
    database_end(statement);
    return rc;
}

static int
wrong_state(struct queue *queue, const struct job_row *row)
{
    return database_refuse(&queue->db, -EAGAIN, "job %lld is %s", (long long)row->id,
                           state_names[row->state]);
}

int
job_expect_row(struct queue *queue, int64_t job_id, unsigned allowed, struct job_row *row)
{
    int rc = job_read_row(queue, job_id, row);
    if (rc == 0 && !(allowed & JOB_IN(row->state)))
        rc = wrong_state(queue, row);
    return rc;
}

int
job_moved(struct queue *queue, int changed, const struct job_row *row, enum queue_job_state to,
          const char *kind, const char *detail, int64_t now_ms)
{
    if (changed < 0)
        return changed;
    if (changed == 0)
        return wrong_state(queue, row);
    struct queue_event event = {.kind = kind,
                                .series_id = row->series_id,
                                .job_id = row->id,
                                .from_state = state_names[row->state],
                                .to_state = state_names[to],
                                .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

int
job_cancel(struct queue *queue, const struct job_row *row, const char *kind, enum code code,
           const char *why, int64_t superseded_by, int64_t now_ms)
{
    int changed = database_change(
        &queue->db,
        "UPDATE job SET state = 'CANCELLED', ended_at = ?3, not_before_at = NULL, code = ?4, "
        "sentence = ?5, file_a = '', file_b = '', superseded_by = ?6 WHERE id = ?1 AND state = ?2",
        VALUES(value_int(row->id), value_text(state_names[row->state]), value_time(now_ms),
               value_text(code_name(code)), value_text(why),
               superseded_by ? value_int(superseded_by) : value_null()));
    char detail[512];
    return job_moved(queue, changed, row, QUEUE_CANCELLED, kind,
                     queue_code_and_sentence(code, why, detail, sizeof detail), now_ms);
}

int
job_supersede(struct queue *queue, const struct job_row *row, int64_t superseded_by, int64_t now_ms)
{
    char why[128];
    snprintf(why, sizeof why, "late slices came: revision %d of the series takes its place",
             row->series_revision);
    return job_cancel(queue, row, "JOB_SUPERSEDED", CODE_SUPERSEDED, why, superseded_by, now_ms);
}

int
job_for_each(struct queue *queue, const char *sql, const struct database_value *values,
             size_t count,
             int (*edge)(struct queue *queue, const struct job_row *row, int64_t now_ms),
             int64_t now_ms)
{
    struct queue_ids ids;
    int rc = queue_read_ids(queue, sql, values, count, &ids);
    for (size_t i = 0; rc == 0 && i < ids.count; i++) {
        struct job_row row;
        rc = job_read_row(queue, ids.at[i], &row);
        if (rc == 0)
            rc = edge(queue, &row, now_ms);
    }
    free(ids.at);
    return rc;
}

/* ----------------------------------------------------------------------------------- reading - */

#define JOB_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_job, member)},

static const struct database_field job_fields[] = {JOB_FIELDS(JOB_FIELD)};
const struct database_shape job_shape = {"job", sizeof(struct queue_job), job_fields,
                                         sizeof job_fields / sizeof *job_fields};

void
queue_job_clear(struct queue_job *job)
{
    database_clear_row(&job_shape, job);
}

int
queue_get_job(struct queue *queue, int64_t job_id, struct queue_job *job)
{
    int rc = queue_read_row(queue, "SELECT " JOB_COLUMNS "WHERE j.id = ?",
                            VALUES(value_int(job_id)), &job_shape, job);
    return rc == 1 ? no_such_job(queue, job_id) : rc;
}
