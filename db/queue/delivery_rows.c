/*
 * delivery_rows.c - the edges of a delivery, which sends one result to one destination.
 *
 *                 +---------+ --start_delivery, attempts+1--> +---------+
 *   -finish_job-> | PENDING | <-return_delivery, attempts-1-- | SENDING | --fail_delivery--> FAILED
 *   -redirect---> |         | <-recover---------------------- |         | --redirect-------> FAILED
 *                 +---------+                                 |         |
 *                 +---------+ --start_delivery, when due----> |         |
 *                 |         | <-delay_delivery--------------- +---------+
 *                 | DELAYED |                                      | delivery_sent
 *                 |         |                                 +---------+
 *                 |         | <-delay_delivery, when not ---- |  SENT   | --fail_delivery--> FAILED
 *                 +---------+     committed                   +---------+     (likewise)
 *
 *     PENDING, DELAYED --fail_delivery---------------------------> FAILED
 *     SENDING --hold_delivery------------------------------------> REVIEW
 *     REVIEW --accept_delivery-----------------------------------> PENDING, attempts 0
 *     REVIEW --reject_delivery-----------------------------------> CANCELLED (REVIEW_REJECTED)
 *     PENDING, DELAYED, REVIEW --purge---------------------------> CANCELLED (PURGED)
 *     SENT, when not committed --purge---------------------------> FAILED (PURGED)
 *     PENDING, DELAYED, REVIEW --finish_job, of a newer revision-> CANCELLED (SUPERSEDED)
 *     PENDING, DELAYED, REVIEW --finish_job, of a job run anew---> CANCELLED (RETRIED)
 *     -finish_job, of an object that the destination has---------> SENT
 *     SENT, DELAYED, FAILED --resend-----------------------------> PENDING, attempts 0
 *     CANCELLED --resend, by its number only---------------------> PENDING, attempts 0
 *
 * Storage commitment has its own states. REQUESTED and COMMITTED exist in SENT only; a delivery that
 * leaves SENT without commitment keeps FAILED until its next attempt.
 *
 *     NONE      --delivery_sent, with a transaction--> REQUESTED
 *     REQUESTED --delivery_committed-----------------> COMMITTED or FAILED
 *
 * Each edge is one UPDATE guarded by the state it leaves and one event row, in one transaction. transaction.c has the
 * invariants, delivery_due.c the choice of the next delivery, commitment_rows.c the edges of storage commitment.
 *
 * Rules:
 *   - A job that ends well (DONE or EMPTY) withdraws the unsent deliveries of the jobs that it
 *     supersedes: an archive must not get a replaced result afterwards. Until then the older result
 *     is valid and is delivered. A delivery that is being sent continues, with further attempts.
 *   - A job that runs again with the same program and pipeline makes the same objects with the same
 *     UIDs. Deliveries of objects that a destination has are SENT at once; only an operator can send
 *     them again (resend). Objects with other UIDs are new.
 *   - Rows are never deleted. A row without a result comes from a version that deleted results when
 *     their job was retried. It cannot be sent.
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ adding - */

/*
 * Adds no row if this result has a delivery to the destination. The state is SENT if an earlier job
 * sent the same object there and no answer is outstanding. Files that are not DICOM have no UID to compare.
 */
static int
add_delivery(struct queue *queue, int64_t result_id, const char *destination, int64_t now_ms)
{
    if (!destination || !destination[0])
        return database_refuse(&queue->db, -EINVAL, "a destination has no name");
    int rc =
        database_change(&queue->db,
                        "INSERT INTO delivery (job_id, result_id, destination, kind, path, sop_class_uid, "
                        "sop_instance_uid, state, due_at, created_at, since_at, sent_at, commitment, requested_at, "
                        "committed_at, sent_sop_class_uid, sent_transfer_syntax_uid, sent_sop_instance_uid) "
                        "SELECT r.job_id, r.id, ?2, r.kind, r.path, r.sop_class_uid, r.sop_instance_uid, "
                        "coalesce(o.state, 'PENDING'), ?3, ?3, ?3, o.sent_at, coalesce(o.commitment, 'NONE'), "
                        "o.requested_at, o.committed_at, coalesce(o.sent_sop_class_uid, ''), "
                        "coalesce(o.sent_transfer_syntax_uid, ''), coalesce(o.sent_sop_instance_uid, '') FROM result r "
                        "LEFT JOIN delivery o ON o.id = "
                        "(SELECT d.id FROM job n JOIN job p ON p.series_id = n.series_id "
                        " AND p.revision = n.revision AND p.stack = n.stack AND p.pipeline = n.pipeline "
                        " AND p.id < n.id "
                        " JOIN delivery d ON d.job_id = p.id AND d.destination = ?2 "
                        " AND d.sop_instance_uid = r.sop_instance_uid AND r.sop_instance_uid <> '' "
                        " AND +d.state = 'SENT' "
                        " AND d.commitment IN ('NONE', 'COMMITTED') WHERE n.id = r.job_id LIMIT 1) "
                        "WHERE r.id = ?1 ON CONFLICT DO NOTHING",
                        VALUES(value_int(result_id), value_text(destination), value_time(now_ms)));
    if (rc <= 0)
        return rc;
    struct edge_row row;
    rc = edge_read_row(queue, &machine_delivery, sqlite3_last_insert_rowid(queue->db.handle), &row);
    return rc < 0 ? rc
                  : edge_note(queue, &row, NULL, queue_delivery_states[row.state], "DELIVERY_ADDED", CODE_NONE,
                              row.state == QUEUE_DELIVERY_SENT ? "it has the same object already" : "", now_ms);
}

/* Returns 1 if a destination takes the result, or 0 after adding its name to not_taken_by of a kind that it does not
 * take. `takes`: as of struct queue_result. */
static int
result_is_taken(struct queue *queue, int64_t result_id, const char *destination, const char *takes)
{
    int64_t taken;
    int rc = database_get(&queue->db,
                          "SELECT iif(?2 = '', sop_instance_uid <> '', instr(?2, ' ' || kind || ' ') > 0) FROM result "
                          "WHERE id = ?1",
                          VALUES(value_int(result_id), value_text(takes)), &taken);
    if (rc < 0 || taken)
        return rc < 0 ? rc : 1;
    return database_run(&queue->db,
                        "UPDATE result SET not_taken_by = not_taken_by || iif(not_taken_by = '', '', ', ') || ?2 "
                        "WHERE id = ?1 AND ?3 <> '' AND instr(', ' || not_taken_by || ',', ', ' || ?2 || ',') = 0",
                        VALUES(value_int(result_id), value_text(destination), value_text(takes)));
}

int
queue_add_deliveries(struct queue *queue, int64_t result_id, const struct queue_result *result, int64_t now_ms)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < result->destination_count; i++) {
        const char *destination = result->destinations[i];
        rc = result_is_taken(queue, result_id, destination, result->takes ? result->takes[i] : "");
        if (rc == 1)
            rc = add_delivery(queue, result_id, destination, now_ms);
    }
    return rc;
}

int
queue_add_images(struct queue *queue, int64_t job_id, const struct queue_result *routes, int64_t now_ms)
{
    int64_t result_id = 0;
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < routes->destination_count; i++) {
        int64_t found;
        if (!routes->takes || !strstr(routes->takes[i], " images "))
            continue;
        /* Not if a job has delivered them there, or if one that will not be superseded by this one is going to, or if a
         * person decided that they must not leave. */
        rc = database_get(&queue->db,
                          "SELECT 1 FROM job n JOIN job o ON o.series_id = n.series_id AND o.revision = n.revision "
                          "AND o.id < n.id JOIN delivery d ON d.job_id = o.id AND d.kind = 'images' "
                          "AND d.destination = ?2 WHERE n.id = ?1 AND (d.state IN ('SENT', 'SENDING') "
                          "OR d.code = 'REVIEW_REJECTED' "
                          "OR d.state IN ('PENDING', 'DELAYED', 'REVIEW') "
                          "  AND (o.pipeline <> n.pipeline OR o.stack <> n.stack)) "
                          "LIMIT 1",
                          VALUES(value_int(job_id), value_text(routes->destinations[i])), &found);
        if (rc == 0 && result_id == 0) {
            rc = database_run(&queue->db,
                              "INSERT INTO result (job_id, kind, path, sop_class_uid, sop_instance_uid, series_uid, "
                              "size_bytes, frames, created_at, replaces) SELECT j.id, 'images', "
                              "'series/' || s.series_uid, '', '', '', 0, s.frames, ?2, '' "
                              "FROM job j JOIN series s ON s.id = j.series_id WHERE j.id = ?1",
                              VALUES(value_int(job_id), value_time(now_ms)));
            result_id = sqlite3_last_insert_rowid(queue->db.handle);
        } else if (rc == 1) {
            continue;
        }
        if (rc == 0)
            rc = add_delivery(queue, result_id, routes->destinations[i], now_ms);
    }
    return rc < 0 ? rc : 0;
}

/* ------------------------------------------------------------------------- not wanted any more */

/*
 * PENDING | DELAYED | REVIEW -> CANCELLED. "+state" below: SQLite must read the few rows of a job, not all
 * waiting ones.
 */
static int
withdraw(struct queue *queue, const struct edge_row *row, enum code code, const char *message, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'CANCELLED', code = ?3, message = ?4 "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_text(code_name(code)), value_text(message)));
    return edge_taken(queue, changed, row, QUEUE_DELIVERY_CANCELLED, "DELIVERY_CANCELLED", code, message, now_ms);
}

static int
withdraw_superseded(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return withdraw(queue, row, CODE_SUPERSEDED,
                    "late or replaced slices arrived, and the series was processed again before this was sent", now_ms);
}

static int
withdraw_retried(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return withdraw(queue, row, CODE_RETRIED,
                    "its job was run again before this was sent, and the new result goes instead", now_ms);
}

#define WITHDRAWN(relation)                                                                                            \
    "SELECT d.id FROM job n JOIN job o ON o.series_id = n.series_id AND o.stack = n.stack "                            \
    "AND o.pipeline = n.pipeline AND " relation " "                                                                    \
    "JOIN delivery d ON d.job_id = o.id AND +d.state IN ('PENDING', 'DELAYED', 'REVIEW') "                             \
    "WHERE n.id = ? ORDER BY d.id"

int
queue_withdraw_superseded(struct queue *queue, int64_t job_id, int64_t now_ms)
{
    int64_t count;
    int rc = edge_for_each(queue, &machine_delivery, WITHDRAWN("o.revision < n.revision"), VALUES(value_int(job_id)),
                           withdraw_superseded, now_ms, &count);
    return rc < 0 ? rc
                  : edge_for_each(queue, &machine_delivery, WITHDRAWN("o.revision = n.revision AND o.id < n.id"),
                                  VALUES(value_int(job_id)), withdraw_retried, now_ms, &count);
}

/* ---------------------------------------------------------------------------------- sending -- */

/* "attempt 2, status 0xA700, CODE: message"; absent parts are left out. */
static int
attempt_ended(struct queue *queue, int changed, const struct edge_row *row, int to, const char *kind,
              const struct queue_attempt *attempt, int64_t now_ms)
{
    char status[32] = "", why[512], words[640];
    const char *reason = edge_words(attempt->code, attempt->message, why, sizeof why);
    if (attempt->dimse_status >= 0)
        snprintf(status, sizeof status, ", status 0x%04X", (unsigned)attempt->dimse_status);
    snprintf(words, sizeof words, "attempt %d%s%s%s", row->attempts, status, reason[0] ? ", " : "", reason);
    return edge_taken(queue, changed, row, to, kind, CODE_NONE, words, now_ms);
}

int
queue_start_delivery(struct queue *queue, int64_t delivery_id, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_PENDING) | IN(QUEUE_DELIVERY_DELAYED),
                        &row);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'SENDING', attempts = attempts + 1, started_at = ?3, "
                                  "dimse_status = NULL, code = '', message = '', commitment = 'NONE', "
                                  "transaction_uid = '', requested_at = NULL "
                                  "WHERE id = ?1 AND state = ?2 AND due_at <= ?3",
                                  VALUES(EDGE_GUARD(&row), value_time(now_ms)));
    if (changed == 0)
        changed = database_refuse(&queue->db, -EAGAIN, "delivery %lld is not due yet", (long long)delivery_id);
    char words[32];
    snprintf(words, sizeof words, "attempt %d", row.attempts + 1);
    return queue_leave(
        queue, edge_taken(queue, changed, &row, QUEUE_DELIVERY_SENDING, "DELIVERY_STARTED", CODE_NONE, words, now_ms));
}

static const char *
given(const char *text)
{
    return text ? text : "";
}

int
queue_delivery_sent(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt,
                    const char *transaction_uid, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_SENDING), &row);
    if (rc < 0)
        return rc;
    int changed =
        database_change(&queue->db,
                        "UPDATE delivery SET state = 'SENT', sent_at = ?3, dimse_status = ?4, "
                        "code = ?5, message = ?6, sent_sop_class_uid = ?7, sent_transfer_syntax_uid = ?8, "
                        "sent_sop_instance_uid = ?9, confirmed = 0, confirmed_digest = '' WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(&row), value_time(now_ms), value_known(attempt->dimse_status),
                               value_text(code_name(attempt->code)), value_text(attempt->message),
                               value_text(given(attempt->sent_class)), value_text(given(attempt->sent_syntax)),
                               value_text(given(attempt->sent_instance))));
    rc = attempt_ended(queue, changed, &row, QUEUE_DELIVERY_SENT, "DELIVERY_SENT", attempt, now_ms);
    if (rc == 0 && transaction_uid && transaction_uid[0]) {
        /* SENT; commitment NONE -> REQUESTED: the attempt that just ended requested it. */
        rc = database_run(&queue->db,
                          "UPDATE delivery SET commitment = 'REQUESTED', transaction_uid = ?2, requested_at = ?3 "
                          "WHERE id = ?1 AND state = 'SENT' AND commitment = 'NONE'",
                          VALUES(value_int(row.id), value_text(transaction_uid), value_time(now_ms)));
        if (rc >= 0)
            rc = edge_note(queue, &row, NULL, NULL, "COMMITMENT_REQUESTED", CODE_NONE, transaction_uid, now_ms);
    }
    return queue_leave(queue, rc);
}

/* Reads the row. Only a SENT delivery without the requested commitment may leave that state. */
static int
enter_unsettled(struct queue *queue, int64_t delivery_id, unsigned allowed, struct edge_row *row)
{
    int rc = edge_enter(queue, &machine_delivery, delivery_id, allowed | IN(QUEUE_DELIVERY_SENT), row);
    if (rc == 0 && row->state == QUEUE_DELIVERY_SENT && row->commitment != QUEUE_COMMITMENT_REQUESTED &&
        row->commitment != QUEUE_COMMITMENT_FAILED)
        rc = queue_leave(queue, edge_wrong_state(queue, row));
    return rc;
}

int
queue_delay_delivery(struct queue *queue, int64_t delivery_id, int64_t not_before_ms,
                     const struct queue_attempt *attempt, int64_t now_ms)
{
    struct edge_row row;
    int rc = enter_unsettled(queue, delivery_id, IN(QUEUE_DELIVERY_SENDING), &row);
    if (rc < 0)
        return rc;
    int changed =
        database_change(&queue->db,
                        "UPDATE delivery SET state = 'DELAYED', due_at = ?3, dimse_status = ?4, code = ?5, "
                        "message = ?6, commitment = iif(commitment = 'REQUESTED', 'FAILED', commitment) "
                        "WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(&row), value_time(not_before_ms), value_known(attempt->dimse_status),
                               value_text(code_name(attempt->code)), value_text(attempt->message)));
    return queue_leave(
        queue, attempt_ended(queue, changed, &row, QUEUE_DELIVERY_DELAYED, "DELIVERY_DELAYED", attempt, now_ms));
}

int
queue_confirm_images(struct queue *queue, int64_t delivery_id, int64_t confirmed, const char *digest)
{
    return queue_change(queue,
                        "UPDATE delivery SET confirmed = ?2, confirmed_digest = ?3 WHERE id = ?1 AND state = 'SENDING'",
                        VALUES(value_int(delivery_id), value_int(confirmed), value_text(digest)));
}

static int
delivery_fail(struct queue *queue, const struct edge_row *row, const struct queue_attempt *attempt, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'FAILED', dimse_status = ?3, code = ?4, message = ?5, "
                                  "commitment = iif(commitment = 'REQUESTED', 'FAILED', commitment) "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_known(attempt->dimse_status),
                                         value_text(code_name(attempt->code)), value_text(attempt->message)));
    return attempt_ended(queue, changed, row, QUEUE_DELIVERY_FAILED, "DELIVERY_FAILED", attempt, now_ms);
}

int
queue_fail_delivery(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt, int64_t now_ms)
{
    struct edge_row row;
    int rc = enter_unsettled(
        queue, delivery_id, IN(QUEUE_DELIVERY_PENDING) | IN(QUEUE_DELIVERY_SENDING) | IN(QUEUE_DELIVERY_DELAYED), &row);
    return rc < 0 ? rc : queue_leave(queue, delivery_fail(queue, &row, attempt, now_ms));
}

int
queue_redirect_delivery(struct queue *queue, int64_t delivery_id, const char *destination,
                        const struct queue_attempt *attempt, int64_t now_ms)
{
    struct edge_row row;
    int64_t result_id;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_SENDING), &row);
    if (rc < 0)
        return rc;
    rc = delivery_fail(queue, &row, attempt, now_ms);
    if (rc == 0)
        rc =
            database_run(&queue->db, "UPDATE delivery SET redirected = 1 WHERE id = ?", VALUES(value_int(delivery_id)));
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT result_id FROM delivery WHERE id = ?", VALUES(value_int(delivery_id)),
                          &result_id);
    if (rc >= 0)
        rc = add_delivery(queue, result_id, destination, now_ms);
    return queue_leave(queue, rc);
}

int
queue_return_delivery(struct queue *queue, int64_t delivery_id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_SENDING), &row);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'PENDING', due_at = ?3, "
                                  "attempts = attempts - 1 WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_time(now_ms)));
    return queue_leave(
        queue, edge_taken(queue, changed, &row, QUEUE_DELIVERY_PENDING, "DELIVERY_RETURNED", CODE_NONE, why, now_ms));
}

static int
recover_as_pending(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int changed =
        database_change(&queue->db, "UPDATE delivery SET state = 'PENDING', due_at = ?3 WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_DELIVERY_PENDING, "DELIVERY_RECOVERED", CODE_NONE,
                      "it was being sent when the daemon ended", now_ms);
}

/* No delivery was tried between the last event before this start and now. */
int
queue_recover_deliveries(struct queue *queue, int64_t now_ms)
{
    int64_t count, last_ms = now_ms;
    int rc =
        queue_read_row(queue, "SELECT at FROM event ORDER BY id DESC LIMIT 1", NO_VALUES, &database_time, &last_ms);
    if (rc >= 0)
        rc = edge_for_each(queue, &machine_delivery, "SELECT id FROM delivery WHERE state = 'SENDING' ORDER BY id",
                           NO_VALUES, recover_as_pending, now_ms, &count);
    return rc < 0 ? rc : queue_count_out(queue, NULL, last_ms, now_ms);
}

/* ------------------------------------------------------------------------------------ review - */

int
queue_hold_delivery(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_SENDING), &row);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'REVIEW', code = ?3, message = ?4, held_digest = ?5, "
                                  "accepted = 0, reviewed_at = NULL, reviewed_by = '' WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_text(code_name(attempt->code)),
                                         value_text(attempt->message), value_text(attempt->held_digest)));
    return queue_leave(queue,
                       attempt_ended(queue, changed, &row, QUEUE_DELIVERY_REVIEW, "DELIVERY_HELD", attempt, now_ms));
}

/* edge_enter() for a delivery under review of which the person has seen the present reason. */
static int
enter_held(struct queue *queue, int64_t delivery_id, const char *seen, struct edge_row *row)
{
    char *by = NULL;
    int64_t same;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_REVIEW), row);
    if (rc == -EAGAIN && queue_read_row(queue, "SELECT reviewed_by FROM delivery WHERE id = ? AND reviewed_by <> ''",
                                        VALUES(value_int(delivery_id)), &database_string, &by) == 0)
        database_refuse(&queue->db, rc, "delivery %lld is %s: %s decided on it", (long long)delivery_id,
                        queue_delivery_states[row->state], by);
    free(by);
    if (rc)
        return rc;
    rc = database_get(&queue->db, "SELECT 1 FROM v_deliveries WHERE delivery = ?1 AND ?2 IN ('', version)",
                      VALUES(value_int(delivery_id), value_text(seen)), &same);
    if (rc == 0)
        rc = database_refuse(&queue->db, -ESTALE,
                             "the files of delivery %lld have changed since it was shown: look at it again",
                             (long long)delivery_id);
    return rc < 0 ? queue_leave(queue, rc) : 0;
}

int
queue_accept_delivery(struct queue *queue, int64_t delivery_id, const char *seen, const char *by, int64_t now_ms)
{
    char words[160];
    struct edge_row row;
    int rc = enter_held(queue, delivery_id, seen, &row);
    if (rc)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'PENDING', attempts = 0, due_at = ?3, since_at = ?3, "
                                  "accepted = 1, reviewed_at = ?3, reviewed_by = ?4 WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_time(now_ms), value_text(by)));
    snprintf(words, sizeof words, "by %s", by);
    return queue_leave(
        queue, edge_taken(queue, changed, &row, QUEUE_DELIVERY_PENDING, "DELIVERY_ACCEPTED", CODE_NONE, words, now_ms));
}

int
queue_reject_delivery(struct queue *queue, int64_t delivery_id, const char *seen, const char *reason, const char *by,
                      int64_t now_ms)
{
    char words[480];
    struct edge_row row;
    int rc = enter_held(queue, delivery_id, seen, &row);
    if (rc)
        return rc;
    snprintf(words, sizeof words, "by %s: %s", by, reason);
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'CANCELLED', reviewed_at = ?3, reviewed_by = ?4, "
                                  "code = ?5, message = ?6 || ' (' || message || ')' WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_time(now_ms), value_text(by),
                                         value_text(code_name(CODE_REVIEW_REJECTED)), value_text(words)));
    return queue_leave(queue, edge_taken(queue, changed, &row, QUEUE_DELIVERY_CANCELLED, "DELIVERY_REJECTED",
                                         CODE_REVIEW_REJECTED, words, now_ms));
}

/* ------------------------------------------------------------------------------------ purge -- */

static int
withdraw_purged(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    static const char why[] = "an operator purged its series before it had arrived";
    const struct queue_attempt attempt = {.dimse_status = -1, .code = CODE_PURGED, .message = why};
    return row->state == QUEUE_DELIVERY_SENT ? delivery_fail(queue, row, &attempt, now_ms)
                                             : withdraw(queue, row, CODE_PURGED, why, now_ms);
}

int
queue_withdraw_purged(struct queue *queue, int64_t series_id, int64_t now_ms)
{
    int64_t count;
    return edge_for_each(queue, &machine_delivery,
                         "SELECT d.id FROM job j JOIN delivery d ON d.job_id = j.id "
                         "WHERE j.series_id = ? AND (+d.state IN ('PENDING', 'DELAYED', 'REVIEW') "
                         "OR +d.state = 'SENT' AND d.commitment IN ('REQUESTED', 'FAILED')) ORDER BY d.id",
                         VALUES(value_int(series_id)), withdraw_purged, now_ms, &count);
}

/* ------------------------------------------------------------------------------------ resend - */

/* -> PENDING, as if new, due at once. */
static int
delivery_resend(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'PENDING', attempts = 0, due_at = ?3, since_at = ?3, "
                                  "dimse_status = NULL, code = '', message = '', commitment = 'NONE', "
                                  "transaction_uid = '', requested_at = NULL, committed_at = NULL, redirected = 0, "
                                  "confirmed = 0, confirmed_digest = '' "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_DELIVERY_PENDING, "DELIVERY_RESENT", CODE_NONE, "an operator's resend",
                      now_ms);
}

static int
resend_one(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count)
{
    unsigned allowed = IN(QUEUE_DELIVERY_FAILED) | IN(QUEUE_DELIVERY_DELAYED) |
                       (which->not_arrived ? 0 : IN(QUEUE_DELIVERY_SENT) | IN(QUEUE_DELIVERY_CANCELLED));
    struct edge_row row;
    int rc = edge_expect(queue, &machine_delivery, which->delivery_id, allowed, &row);
    if (rc == 0 && row.removed)
        rc = database_refuse(&queue->db, -ESTALE,
                             "%s: the results of job %lld are removed; where its series is stored, "
                             "noctule retry makes them again",
                             code_name(CODE_RESULTS_REMOVED), (long long)row.job_id);
    if (rc == 0 && !row.has_result)
        rc = database_refuse(&queue->db, -ESTALE,
                             "delivery %lld: its job was retried, and the result is not there any more",
                             (long long)row.id);
    if (rc == 0)
        rc = delivery_resend(queue, &row, now_ms);
    *count = rc == 0;
    return rc;
}

/*
 * Resends the deliveries of a job or to a destination. Skips results that a newer revision
 * replaced: a destination must not get them only because it was unreachable.
 */
static int
resend_many(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count)
{
    int64_t found;
    int rc = database_get(&queue->db,
                          "SELECT 1 WHERE EXISTS (SELECT 1 FROM job WHERE id = ?1) "
                          "OR EXISTS (SELECT 1 FROM delivery WHERE destination = ?2)",
                          VALUES(value_id(which->job_id), value_optional(which->destination)), &found);
    if (rc == 0 && which->job_id)
        rc = database_refuse(&queue->db, -ENOENT, "there is no job %lld", (long long)which->job_id);
    else if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "there is no delivery to %s", which->destination);
    if (rc < 0)
        return rc;
    return edge_for_each(
        queue, &machine_delivery,
        "SELECT d.id FROM delivery d JOIN job j ON j.id = d.job_id "
        "WHERE (d.job_id = ?1 OR d.destination = ?2 AND j.superseded_by IS NULL) "
        "AND d.result_id IS NOT NULL AND j.removed_at IS NULL "
        "AND (d.state IN ('FAILED', 'DELAYED') OR d.state = 'SENT' AND NOT ?3) ORDER BY d.id",
        VALUES(value_id(which->job_id), value_optional(which->destination), value_int(which->not_arrived)),
        delivery_resend, now_ms, count);
}

int
queue_resend(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count)
{
    *count = 0;
    if ((which->delivery_id != 0) + (which->job_id != 0) + (which->destination != NULL) != 1)
        return database_refuse(&queue->db, -EINVAL, "a resend names a delivery, or a job, or a destination");
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = which->delivery_id ? resend_one(queue, which, now_ms, count) : resend_many(queue, which, now_ms, count);
    rc = queue_leave(queue, rc);
    if (rc < 0)
        *count = 0;
    return rc;
}
