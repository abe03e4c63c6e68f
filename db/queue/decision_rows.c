/*
 * decision_rows.c - the audit of decisions, and decisions on results under review that can still be undone.
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
queue_add_audit(struct queue *queue, const struct queue_audit *audit, int64_t now_ms)
{
    return queue_change(
        queue,
        "INSERT INTO audit (at, action, subject, job_id, revision, reason, actor, how, role, address, "
        "seen) VALUES (?1, ?2, ?3, ?4, (SELECT revision FROM job WHERE id = ?4), ?5, ?6, ?7, ?8, ?9, ?10)",
        VALUES(value_time(now_ms), value_text(audit->action), value_text(audit->subject), value_id(audit->job_id),
               value_text(audit->reason), value_text(audit->actor), value_text(audit->how), value_text(audit->role),
               value_text(audit->address), value_text(audit->seen)));
}

int
queue_add_look(struct queue *queue, const struct queue_audit *audit, int64_t now_ms)
{
    return queue_change(
        queue,
        "INSERT INTO audit (at, action, subject, job_id, revision, reason, actor, how, role, address, seen) "
        "SELECT ?1, 'looked', 'job ' || id, id, revision, '', ?3, ?4, ?5, ?6, '' FROM job WHERE id = ?2 "
        "ON CONFLICT (actor, job_id, substr(at, 1, 13)) WHERE action = 'looked' DO NOTHING",
        VALUES(value_time(now_ms), value_int(audit->job_id), value_text(audit->actor), value_text(audit->how),
               value_text(audit->role), value_text(audit->address)));
}

/* ----------------------------------------------------------------------------------- pending -- */

struct review_row {
    char *version, *decision, *by;
};

static const struct database_shape review_shape = DATABASE_SHAPE(
    "review", struct review_row, {DATABASE_TEXT, offsetof(struct review_row, version)},
    {DATABASE_TEXT, offsetof(struct review_row, decision)}, {DATABASE_TEXT, offsetof(struct review_row, by)});

int
queue_check_review(struct queue *queue, int64_t job_id, const char *seen)
{
    struct review_row row;
    int rc = queue_read_row(queue, "SELECT version, decision, decided_by FROM v_review WHERE job = ?",
                            VALUES(value_int(job_id)), &review_shape, &row);
    if (rc)
        return rc < 0 ? rc : 0;
    if (*seen && strcmp(seen, row.version) != 0)
        rc = database_refuse(&queue->db, -ESTALE,
                             "the result of job %lld has changed since it was shown: look at it again",
                             (long long)job_id);
    else if (*row.decision)
        rc = database_refuse(&queue->db, -EAGAIN, "job %lld is decided: %s %sed it", (long long)job_id, row.by,
                             row.decision);
    database_clear_row(&review_shape, &row);
    return rc;
}

#define DECISION_FIELDS(FIELD)                                                                                         \
    FIELD(INT64, job_id, "job_id")                                                                                     \
    FIELD(BOOL, accepts, "accepts")                                                                                    \
    FIELD(TEXT, by, "by")                                                                                              \
    FIELD(TEXT, reason, "reason")                                                                                      \
    FIELD(TIME, due_ms, "due_at")
#define DECISION_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_decision, member)},

static const struct database_shape decision_shape =
    DATABASE_SHAPE("decision", struct queue_decision, DECISION_FIELDS(DECISION_FIELD));

DATABASE_CLEAR(queue_decision_clear, queue_decision, decision_shape)

int
queue_decide(struct queue *queue, int64_t job_id, bool accepts, const char *by, const char *reason, int64_t due_ms,
             int64_t now_ms)
{
    struct edge_row row;
    int rc = review_enter(queue, job_id, &row);
    if (rc < 0)
        return rc;
    rc = accepts ? review_expect_current(queue, &row) : 0;
    if (rc == 0)
        rc = database_run(&queue->db, "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?)",
                          VALUES(value_int(job_id), value_int(accepts), value_text(by), value_text(reason),
                                 value_time(now_ms), value_time(due_ms)));
    return queue_leave(queue, rc);
}

int
queue_drop_decision(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_REVIEW), &row);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db, "DELETE FROM decision WHERE job_id = ?", VALUES(value_int(job_id)));
    if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "there is no decision on job %lld", (long long)job_id);
    else if (rc > 0)
        rc = edge_note(queue, &row, NULL, NULL, "DECISION_UNDONE", CODE_NONE, why, now_ms);
    return queue_leave(queue, rc);
}

int
queue_undo_decision(struct queue *queue, int64_t job_id, const char *by, int64_t now_ms)
{
    char words[160];
    struct edge_row row;
    int64_t pending = 0;
    int rc = edge_read_row(queue, &machine_job, job_id, &row);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT due_at > ? FROM decision WHERE job_id = ?",
                          VALUES(value_time(now_ms), value_int(job_id)), &pending);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return database_refuse(&queue->db, -EAGAIN,
                               "there is no decision on job %lld to undo; one that took effect is final",
                               (long long)job_id);
    if (!pending)
        return database_refuse(&queue->db, -EAGAIN, "the decision on job %lld is final: the time to undo it is over",
                               (long long)job_id);
    snprintf(words, sizeof words, "by %s", by);
    return queue_drop_decision(queue, job_id, words, now_ms);
}

int
queue_due_decision(struct queue *queue, int64_t now_ms, struct queue_decision *decision)
{
    return queue_read_row(queue,
                          "SELECT " DECISION_FIELDS(DATABASE_COLUMN) "NULL FROM decision WHERE due_at <= ? "
                                                                     "ORDER BY due_at, job_id LIMIT 1",
                          VALUES(value_time(now_ms)), &decision_shape, decision);
}
