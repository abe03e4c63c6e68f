/*
 * review_rows.c - the end of a REVIEW: a person accepts or rejects it, or another job replaces it.
 * transaction.c has the diagram.
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int
review_enter(struct queue *queue, int64_t job_id, struct edge_row *row)
{
    char *by = NULL;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_REVIEW), row);
    if (rc == -EAGAIN && queue_read_row(queue, "SELECT reviewed_by FROM job WHERE id = ? AND reviewed_by <> ''",
                                        VALUES(value_int(job_id)), &database_string, &by) == 0)
        database_refuse(&queue->db, rc, "job %lld is %s: %s %s it", (long long)job_id, queue_job_states[row->state], by,
                        row->state == QUEUE_REJECTED ? "rejected" : "accepted");
    free(by);
    int64_t correction;
    if (rc)
        return rc;
    rc = database_get(&queue->db,
                      "SELECT max(id) FROM job WHERE corrects = ? "
                      "AND state IN ('READY', 'RUNNING', 'DELAYED', 'REVIEW') HAVING max(id)",
                      VALUES(value_int(job_id)), &correction);
    if (rc == 1)
        rc =
            database_refuse(&queue->db, -ESTALE,
                            "job %lld measures a correction of job %lld: accept or reject that one; a rejection leaves "
                            "this one under review",
                            (long long)correction, (long long)job_id);
    return rc ? queue_leave(queue, rc) : 0;
}

int
review_expect_current(struct queue *queue, const struct edge_row *row)
{
    if (row->revision == row->series_revision)
        return 0;
    return database_refuse(&queue->db, -ESTALE,
                           "job %lld is for revision %d, its series is at %d by now: the job of that "
                           "one takes its place",
                           (long long)row->id, row->revision, row->series_revision);
}

/* ---------------------------------------------------------------------------------- accepted -- */

int
queue_accept_job(struct queue *queue, int64_t job_id, const char *const *destinations, const char *const *takes,
                 size_t destination_count, const char *by, int64_t now_ms)
{
    struct edge_row row;
    int rc = review_enter(queue, job_id, &row);
    if (rc < 0)
        return rc;
    rc = review_expect_current(queue, &row);
    int64_t found;
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT 1 FROM result WHERE job_id = ? LIMIT 1", VALUES(value_int(job_id)),
                          &found);
    if (rc >= 0) {
        /* The broken expectation stays in the row, although the job was accepted. */
        char words[160];
        const enum queue_job_state to = rc == 1 ? QUEUE_DONE : QUEUE_EMPTY;
        int changed = database_change(
            &queue->db,
            "UPDATE job SET state = ?3, reviewed_at = ?4, reviewed_by = ?5 "
            "WHERE id = ?1 AND state = ?2",
            VALUES(EDGE_GUARD(&row), value_text(queue_job_state_name(to)), value_time(now_ms), value_text(by)));
        snprintf(words, sizeof words, "by %s", by);
        rc = edge_taken(queue, changed, &row, (int)to, "JOB_ACCEPTED", CODE_NONE, words, now_ms);
    }
    if (rc == 0) {
        struct queue_ids results;
        const struct queue_result routes = {
            .destinations = destinations, .takes = takes, .destination_count = destination_count};
        rc = queue_list(queue, "SELECT id FROM result WHERE job_id = ? ORDER BY id", VALUES(value_int(job_id)),
                        &database_id, &results.at, &results.count);
        for (size_t i = 0; rc == 0 && i < results.count; i++)
            rc = queue_add_deliveries(queue, results.at[i], &routes, now_ms);
        if (rc == 0 && results.count > 0)
            rc = queue_add_images(queue, job_id, &routes, now_ms);
        free(results.at);
    }
    if (rc == 0)
        rc = queue_job_stands(queue, job_id, now_ms);
    return queue_leave(queue, rc);
}

/* ---------------------------------------------------------------------------------- rejected -- */

int
queue_reject_job(struct queue *queue, int64_t job_id, const char *reason, const char *by, int64_t now_ms)
{
    struct edge_row row;
    char words[480];
    int rc = review_enter(queue, job_id, &row);
    if (rc < 0)
        return rc;
    snprintf(words, sizeof words, "by %s: %s", by, reason);
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'REJECTED', reviewed_at = ?3, reviewed_by = ?4, code = ?5, "
                                  "message = ?6 || ' (' || message || ')' WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_time(now_ms), value_text(by),
                                         value_text(code_name(CODE_REVIEW_REJECTED)), value_text(words)));
    return queue_leave(
        queue, edge_taken(queue, changed, &row, QUEUE_REJECTED, "JOB_REJECTED", CODE_REVIEW_REJECTED, words, now_ms));
}

/* -------------------------------------------------------------------------------- superseded -- */

static int
review_supersede(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    static const char why[] = "another job replaced it before a decision";
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'REJECTED', code = ?3, "
                                  "message = ?4 || ' (' || message || ')' WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_text(code_name(CODE_SUPERSEDED)), value_text(why)));
    return edge_taken(queue, changed, row, QUEUE_REJECTED, "JOB_SUPERSEDED", CODE_SUPERSEDED, why, now_ms);
}

int
queue_close_reviews(struct queue *queue, int64_t job_id, int64_t now_ms)
{
    int64_t count;
    return edge_for_each(queue, &machine_job,
                         "SELECT id FROM job WHERE superseded_by = ? AND +state = 'REVIEW' ORDER BY id",
                         VALUES(value_int(job_id)), review_supersede, now_ms, &count);
}
