/*
 * correction_rows.c - corrected masks: the job under review that an annotation object corrects, and the job that measures
 * its masks.
 *
 * The earlier job stays under review until the correction is accepted, which supersedes it (queue_accept_job). No row of
 * it changes.
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The results in the series of object ?1, or to which it refers. */
#define RESULTS_OF_OBJECT                                                                                              \
    "SELECT r.id FROM object o JOIN result r ON r.series_uid = o.series_uid "                                          \
    "WHERE o.id = ?1 AND r.series_uid <> '' "                                                                          \
    "UNION SELECT r.id FROM object_reference f JOIN result r ON r.series_uid = f.uid "                                 \
    "WHERE f.object_id = ?1 AND f.kind = 'series' AND r.series_uid <> '' "                                             \
    "UNION SELECT r.id FROM object_reference f JOIN result r ON r.sop_instance_uid = f.uid "                           \
    "WHERE f.object_id = ?1 AND f.kind IN ('instance', 'predecessor') AND r.sop_instance_uid <> ''"
/* The last revision of the stack and pipeline of job j with such a result, or NULL. */
#define NAMED_REVISION                                                                                                 \
    "(SELECT max(n.revision) FROM job n JOIN result r ON r.job_id = n.id WHERE n.series_id = j.series_id "             \
    "AND n.stack = j.stack AND n.pipeline = j.pipeline AND r.id IN (" RESULTS_OF_OBJECT "))"
#define CORRECTED_FIELDS(FIELD)                                                                                        \
    FIELD(INT64, id, "j.id")                                                                                           \
    FIELD(TEXT, settings, "t.text")                                                                                    \
    FIELD(TEXT, state, "j.state")                                                                                      \
    FIELD(BOOL, named, NAMED_REVISION " NOTNULL")                                                                      \
    FIELD(BOOL, outdated, "j.revision < s.revision OR coalesce(" NAMED_REVISION ", j.revision) < j.revision")
#define CORRECTED_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_corrected, member)},

static const struct database_shape corrected_shape =
    DATABASE_SHAPE("job", struct queue_corrected, CORRECTED_FIELDS(CORRECTED_FIELD));

DATABASE_CLEAR(queue_corrected_clear, queue_corrected, corrected_shape)

int
queue_corrected_jobs(struct queue *queue, int64_t object_id, struct queue_corrected **jobs, size_t *count)
{
    return queue_list(
        queue,
        "SELECT " CORRECTED_FIELDS(
            DATABASE_COLUMN) "NULL FROM job j JOIN series s ON s.id = j.series_id "
                             "JOIN settings t ON t.id = j.settings_id "
                             "WHERE j.series_id IN (" SERIES_OF_OBJECT
                             " UNION SELECT n.series_id FROM job n JOIN result r ON r.job_id = n.id WHERE r.id IN "
                             "(" RESULTS_OF_OBJECT ")) AND j.id = (SELECT o.id FROM job o "
                             "WHERE o.series_id = j.series_id AND o.stack = j.stack AND o.pipeline = j.pipeline "
                             "AND o.state IN ('REVIEW', 'DONE', 'EMPTY', 'REJECTED') "
                             "ORDER BY o.revision DESC, o.state = 'REVIEW' DESC, o.id DESC LIMIT 1) ORDER BY j.id",
        VALUES(value_int(object_id)), &corrected_shape, jobs, count);
}

int
queue_object_is_result(struct queue *queue, int64_t object_id, int64_t *job_id)
{
    return database_get(&queue->db,
                        "SELECT r.job_id FROM object o JOIN result r ON r.sop_instance_uid = o.sop_instance_uid "
                        "WHERE o.id = ? AND r.sop_instance_uid <> '' ORDER BY r.id DESC LIMIT 1",
                        VALUES(value_int(object_id)), job_id);
}

static int
correction_drop_decision(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    const int rc = database_change(&queue->db, "DELETE FROM decision WHERE job_id = ?", VALUES(value_int(row->id)));
    return rc > 0 ? edge_note(queue, row, NULL, NULL, "DECISION_UNDONE", CODE_NONE,
                              "a corrected mask arrived before the decision took effect", now_ms)
                  : rc;
}

static int
correction_add(struct queue *queue, const struct edge_row *row, int64_t object_id, int64_t now_ms,
               int64_t *correction_id, struct queue_ids *running)
{
    char words[96];
    struct queue_job job;
    int rc = queue_get_job(queue, row->id, &job);
    if (rc)
        return rc;
    snprintf(words, sizeof words, "corrected masks of job %lld", (long long)row->id);
    const struct queue_new_job new_job = {.series_id = job.series_id,
                                          .revision = job.revision,
                                          .stack = job.stack,
                                          .pipeline = job.pipeline,
                                          .settings = job.settings,
                                          .priority = job.priority,
                                          .again = true,
                                          .asked = words,
                                          .done_by_ms = job.done_by_ms,
                                          .retry_of = job.id,
                                          .corrects = job.id,
                                          .correction = object_id};
    rc = job_add(queue, &new_job, now_ms, correction_id, running);
    if (rc == 0)
        rc = job_copy_masks(queue, job.id, *correction_id);
    queue_job_clear(&job);
    snprintf(words, sizeof words, "job %lld measures them", (long long)*correction_id);
    return rc ? rc : edge_note(queue, row, NULL, NULL, "CORRECTION", CODE_NONE, words, now_ms);
}

int
queue_correct_job(struct queue *queue, int64_t job_id, int64_t object_id, int64_t now_ms, int64_t *correction_id,
                  struct queue_ids *superseded_running)
{
    struct edge_row row;
    *superseded_running = (struct queue_ids){0};
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_REVIEW), &row);
    if (rc < 0)
        return rc;
    rc = review_expect_current(queue, &row);
    if (rc == 0)
        rc = correction_drop_decision(queue, &row, now_ms);
    if (rc == 0)
        rc = correction_add(queue, &row, object_id, now_ms, correction_id, superseded_running);
    return job_leave_added(queue, rc, superseded_running);
}

int
queue_refuse_correction(struct queue *queue, int64_t job_id, int64_t object_id, enum code code, const char *message,
                        int64_t now_ms)
{
    struct edge_row row;
    char *uid = NULL, words[480];
    int rc = edge_enter(queue, &machine_job, job_id, ~0u, &row);
    if (rc < 0)
        return rc;
    rc = queue_read_row(queue, "SELECT kind || ' ' || sop_instance_uid FROM object WHERE id = ?",
                        VALUES(value_int(object_id)), &database_string, &uid);
    snprintf(words, sizeof words, "%s: %s", uid ? uid : "", message);
    free(uid);
    return queue_leave(queue,
                       rc < 0 ? rc : edge_note(queue, &row, NULL, NULL, "CORRECTION_REFUSED", code, words, now_ms));
}
