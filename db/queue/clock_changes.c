/*
 * clock_changes.c - waiting times when the clock is set, and the age of deliveries.
 *
 * Rows hold wall clock times, which people can read and restarts keep. A wait must not change when
 * the clock is set. The age of a delivery must not include time in which nothing could be sent.
 */
#include "db/queue/edges.h"

#include <stdio.h>
#include <string.h>

#define MOVED(column) "coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', " column ", ?1), " column ")"

int
queue_clock_was_set(struct queue *queue, int64_t by_ms)
{
    static const char *const statements[] = {
        "UPDATE job SET not_before_at = " MOVED(
            "not_before_at") " WHERE state = 'DELAYED' AND code <> 'PROGRAM_WAITING'",
        "UPDATE job SET prior_until_at = " MOVED(
            "prior_until_at") " WHERE prior_until_at IS NOT NULL AND state IN ('READY', 'DELAYED', 'RUNNING')",
        "UPDATE program_run SET not_before_at = " MOVED("not_before_at") " WHERE state = 'DELAYED'",
        "UPDATE delivery SET due_at = " MOVED("due_at") ", since_at = " MOVED(
            "since_at") " WHERE state IN ('PENDING', 'SENDING', 'DELAYED')",
        "UPDATE delivery SET since_at = " MOVED("since_at") ", requested_at = " MOVED(
            "requested_at") " WHERE state = 'SENT' AND commitment = 'REQUESTED'",
        "UPDATE hold SET held_at = " MOVED("held_at"),
        "UPDATE pull SET due_at = " MOVED("due_at") ", since_at = " MOVED("since_at") ", moved_at = " MOVED(
            "moved_at") " WHERE ended_at IS NULL",
        "UPDATE series SET last_seen_at = " MOVED("last_seen_at") " WHERE state = 'GATHERING'"};
    char by[40];
    snprintf(by, sizeof by, "%+.3f seconds", (double)by_ms / 1000);
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc >= 0 && i < sizeof statements / sizeof *statements; i++)
        rc = database_change(&queue->db, statements[i], VALUES(value_text(by)));
    return queue_leave(queue, rc < 0 ? rc : 0);
}

/*
 * Keeps the age that a delivery had when the pause began; a delivery created since then is new. If
 * another hold continues, its end subtracts the time since that hold began.
 */
int
queue_count_out(struct queue *queue, const char *destination, int64_t since_ms, int64_t now_ms)
{
    int changed =
        database_change(&queue->db,
                        "WITH waiting AS MATERIALIZED (SELECT d.id, min(?3, coalesce((SELECT min(h.held_at) "
                        "  FROM hold h WHERE h.kind = 'queue' OR h.kind = 'destination' AND h.name = d.destination), "
                        "  ?3)) AS until_at FROM delivery d WHERE (?1 IS NULL OR d.destination = ?1) "
                        "AND (d.state IN ('PENDING', 'DELAYED') OR d.state = 'SENT' AND d.commitment = 'REQUESTED')) "
                        "UPDATE delivery SET since_at = strftime('%Y-%m-%dT%H:%M:%fZ', w.until_at, "
                        "  printf('-%.3f seconds', max(0, 86400 * (julianday(?2) - julianday(since_at))))) "
                        "FROM waiting w WHERE w.id = delivery.id AND w.until_at > ?2 AND w.until_at > since_at",
                        VALUES(value_optional(destination), value_time(since_ms), value_time(now_ms)));
    return changed < 0 ? changed : 0;
}

int
queue_bound_waits(struct queue *queue, int64_t job_latest_ms, int64_t delivery_latest_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db,
                         "UPDATE job SET not_before_at = ?1 "
                         "WHERE state = 'DELAYED' AND not_before_at > ?1 "
                         "AND code NOT IN " QUEUE_AWAITING,
                         VALUES(value_time(job_latest_ms)));
    if (rc >= 0)
        rc = database_change(&queue->db,
                             "UPDATE program_run SET not_before_at = ?1 WHERE state = 'DELAYED' AND not_before_at > ?1",
                             VALUES(value_time(job_latest_ms)));
    if (rc >= 0)
        rc = database_change(&queue->db,
                             "UPDATE delivery SET due_at = ?1 "
                             "WHERE state IN ('PENDING', 'DELAYED') AND due_at > ?1",
                             VALUES(value_time(delivery_latest_ms)));
    if (rc >= 0)
        rc = database_change(&queue->db, "UPDATE pull SET due_at = ?1 WHERE state = 'WAITING' AND due_at > ?1",
                             VALUES(value_time(delivery_latest_ms)));
    return queue_leave(queue, rc < 0 ? rc : 0);
}
