/*
 * slurm_attempts.c - attempts on other machines. Their jobs are RUNNING like those of a local worker.
 * A second table has the nonce of the attempt and the number that Slurm gave it:
 *
 *     READY --start_at, nonce--> RUNNING, no slurm_id --submitted--> RUNNING, slurm_id --> as in transaction.c
 *                                (SUBMITTING)                        (SUBMITTED)
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>

#define ELSEWHERE_FIELDS(FIELD)                                                                                        \
    FIELD(INT64, job_id, "id")                                                                                         \
    FIELD(INT32, attempts, "attempts")                                                                                 \
    FIELD(INT32, lane, "lane")                                                                                         \
    FIELD(BOOL, alone, "alone")                                                                                        \
    FIELD(INT64, slurm_id, "coalesce(slurm_id, 0)")                                                                    \
    FIELD(TIME, submitted_ms, "submitted_at")                                                                          \
    FIELD(TEXT, nonce, "nonce")                                                                                        \
    FIELD(TEXT, node, "node")                                                                                          \
    FIELD(TEXT, reason, "slurm_reason")                                                                                \
    FIELD(TEXT, pipeline, "pipeline")
#define ELSEWHERE_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_elsewhere, member)},

static const struct database_shape elsewhere_shape =
    DATABASE_SHAPE("attempt", struct queue_elsewhere, ELSEWHERE_FIELDS(ELSEWHERE_FIELD));

int
queue_elsewhere(struct queue *queue, struct queue_elsewhere **attempts, size_t *count)
{
    return queue_list(
        queue,
        "SELECT " ELSEWHERE_FIELDS(DATABASE_COLUMN) "NULL FROM job INDEXED BY job_elsewhere WHERE state = 'RUNNING' "
                                                    "AND executor <> 'local' ORDER BY id",
        NO_VALUES, &elsewhere_shape, attempts, count);
}

DATABASE_CLEAR(queue_elsewhere_clear, queue_elsewhere, elsewhere_shape)

/* Returns -EAGAIN: this attempt no longer runs. */
static int
elsewhere_is_void(struct queue *queue, int64_t job_id)
{
    return database_refuse(&queue->db, -EAGAIN, "job %lld has no such attempt any more", (long long)job_id);
}

int
queue_submitted(struct queue *queue, int64_t job_id, const char *nonce, int64_t slurm_id, int64_t now_ms)
{
    struct edge_row row;
    char words[64];
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_RUNNING), &row);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db,
                         "UPDATE job SET slurm_id = ?4, submitted_at = ?5 "
                         "WHERE id = ?1 AND state = ?2 AND nonce = ?3",
                         VALUES(EDGE_GUARD(&row), value_text(nonce), value_int(slurm_id), value_time(now_ms)));
    snprintf(words, sizeof words, "Slurm job %lld", (long long)slurm_id);
    if (rc == 1)
        rc = edge_note(queue, &row, NULL, NULL, "JOB_SUBMITTED", CODE_NONE, words, now_ms);
    else if (rc == 0)
        rc = elsewhere_is_void(queue, job_id);
    return queue_leave(queue, rc);
}

int
queue_placed(struct queue *queue, int64_t job_id, const char *nonce, const char *node, const char *reason)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db,
                         "UPDATE job SET node = ?3, slurm_reason = ?4 "
                         "WHERE id = ?1 AND state = 'RUNNING' AND nonce = ?2",
                         VALUES(value_int(job_id), value_text(nonce), value_text(node), value_text(reason)));
    return queue_leave(queue, rc < 0 ? rc : rc == 1 ? 0 : elsewhere_is_void(queue, job_id));
}

/* Reads the jobs that ended last, in any state: the index is by end. */
int
queue_mean_seconds(struct queue *queue, const char *pipeline, double *seconds)
{
    int64_t micros = 0;
    int rc = database_get(&queue->db,
                          "SELECT CAST(coalesce(avg(total_seconds), 0) * 1e6 AS INTEGER) FROM (SELECT pipeline, "
                          "total_seconds, state FROM job INDEXED BY job_ended WHERE ended_at IS NOT NULL "
                          "ORDER BY ended_at DESC LIMIT 500) WHERE pipeline = ? AND state IN ('DONE', 'EMPTY')",
                          VALUES(value_text(pipeline)), &micros);
    *seconds = (double)micros / 1e6;
    return rc < 0 ? rc : 0;
}
