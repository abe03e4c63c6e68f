/*
 * alert_acknowledgements.c - acknowledgements of alerts: user, time, reason, end, and the alert as
 * it was then. service/common/alert decides whether an acknowledgement still covers its alert.
 */
#include "db/queue/queue_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
ack_note(struct queue *queue, const char *kind, const char *alert, const char *by, const char *reason, int64_t now_ms)
{
    char words[512];
    snprintf(words, sizeof words, "%s, by %s%s%s", alert, by, *reason ? ": " : "", reason);
    const struct queue_event event = {.kind = kind, .detail = words};
    return queue_add_event(queue, &event, now_ms);
}

int
queue_acknowledge(struct queue *queue, const struct queue_ack *ack, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db, "INSERT OR REPLACE INTO acknowledgement VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      VALUES(value_text(ack->alert), value_time(now_ms), value_text(ack->by), value_text(ack->reason),
                             value_optional_time(ack->until_ms), value_int(ack->severity),
                             value_optional_time(ack->changed_ms), value_int(ack->size), value_int(ack->from_daemon)));
    if (rc == 0)
        rc = ack_note(queue, "ALERT_ACKNOWLEDGED", ack->alert, ack->by, ack->reason, now_ms);
    return queue_leave(queue, rc);
}

int
queue_end_ack(struct queue *queue, const char *alert, const char *by, const char *reason, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db, "DELETE FROM acknowledgement WHERE alert = ?", VALUES(value_text(alert)));
    if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "%s is not acknowledged", alert);
    else if (rc > 0)
        rc = ack_note(queue, "ACKNOWLEDGEMENT_ENDED", alert, by, reason, now_ms);
    return queue_leave(queue, rc);
}

int
queue_find_cleared_ack(struct queue *queue, const char *raised, bool from_daemon, char alert[QUEUE_ALERT])
{
    sqlite3_stmt *row;
    int rc = database_start(&queue->db,
                            "SELECT alert FROM acknowledgement WHERE (?2 = 0 OR from_daemon = 1) "
                            "AND instr(?1, char(10) || alert || char(10)) = 0 LIMIT 1",
                            VALUES(value_text(raised), value_int(from_daemon)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&queue->db, row);
    if (rc == 1)
        snprintf(alert, QUEUE_ALERT, "%s", (const char *)sqlite3_column_text(row, 0));
    database_end(row);
    return rc;
}
