#include "db/notification_rows.h"

#include "db/queue/queue_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct database_shape notification_shape = DATABASE_SHAPE(
    "notification", struct queue_notification, {DATABASE_INT64, offsetof(struct queue_notification, event_id)},
    {DATABASE_TIME, offsetof(struct queue_notification, ended_ms)},
    {DATABASE_INT32, offsetof(struct queue_notification, failures)});

#define NOTIFIED_FIELDS(FIELD)                                                                                         \
    FIELD(INT64, id, "e.id")                                                                                           \
    FIELD(TIME, at_ms, "e.at")                                                                                         \
    FIELD(INT64, job_id, "coalesce(e.job_id, 0)")                                                                      \
    FIELD(TEXT, kind, "e.kind")                                                                                        \
    FIELD(TEXT, state, "coalesce(e.to_state, e.from_state)")                                                           \
    FIELD(TEXT, alert, "iif(e.kind IN ('ALERT_BEGAN', 'ALERT_ENDED'), e.detail, '')")                                  \
    FIELD(TEXT, pipeline, "j.pipeline")                                                                                \
    FIELD(TEXT, series_uid, "s.series_uid")                                                                            \
    FIELD(TEXT, code,                                                                                                  \
          "coalesce(j.code, nullif(s.code, ''), (SELECT code FROM stack WHERE series_id = s.id "                       \
          "AND revision = s.revision AND NOT accepted ORDER BY passed_over, id LIMIT 1))")
#define NOTIFIED_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_notified, member)},

static const struct database_shape notified_shape =
    DATABASE_SHAPE("event", struct queue_notified, NOTIFIED_FIELDS(NOTIFIED_FIELD));

/* ------------------------------------------------------------------------------ commands ---- */

int
queue_set_notifications(struct queue *queue, const char *const *names, size_t count)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    char **stored;
    size_t stored_count;
    rc = queue_list(queue, "SELECT name FROM notification", NO_VALUES, &database_string, &stored, &stored_count);
    for (size_t i = 0; rc == 0 && i < stored_count; i++) {
        bool is_wanted = false;
        for (size_t k = 0; k < count; k++)
            is_wanted |= strcmp(names[k], stored[i]) == 0;
        if (!is_wanted)
            rc = database_run(&queue->db, "DELETE FROM notification WHERE name = ?", VALUES(value_text(stored[i])));
    }
    database_free_rows(&database_string, stored, stored_count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = database_run(&queue->db,
                          "INSERT INTO notification (name, event_id, failures, message) "
                          "VALUES (?, coalesce((SELECT max(id) FROM event), 0), 0, '') "
                          "ON CONFLICT DO NOTHING",
                          VALUES(value_text(names[i])));
    return queue_leave(queue, rc);
}

int
queue_read_notification(struct queue *queue, const char *name, struct queue_notification *notification)
{
    const int rc = queue_read_row(queue, "SELECT event_id, ended_at, failures FROM notification WHERE name = ?",
                                  VALUES(value_text(name)), &notification_shape, notification);
    return rc == 1 ? database_refuse(&queue->db, -ENOENT, "there is no notification %s", name) : rc;
}

int
queue_list_notified(struct queue *queue, int64_t after, const char *kinds, size_t limit, struct queue_notified **events,
                    size_t *count, int64_t *last)
{
    *last = after;
    int rc = database_get(&queue->db, "SELECT coalesce(max(id), 0) FROM event", NO_VALUES, last);
    if (rc >= 0)
        rc = queue_list(
            queue,
            "SELECT " NOTIFIED_FIELDS(DATABASE_COLUMN) "NULL FROM event e "
                                                       "LEFT JOIN job j ON j.id = e.job_id "
                                                       "LEFT JOIN series s ON s.id = e.series_id "
                                                       "WHERE e.id > ?1 AND instr(?2, ' ' || e.kind || ' ') > 0 "
                                                       "ORDER BY e.id LIMIT ?3",
            VALUES(value_int(after), value_text(kinds), queue_row_limit(limit)), &notified_shape, events, count);
    if (rc == 0 && *count == limit)
        *last = (*events)[limit - 1].id;
    return rc;
}

DATABASE_FREE(queue_notified_free, queue_notified, notified_shape)

int
queue_end_notification(struct queue *queue, const char *name, int64_t event_id, const char *failure, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    if (*failure) {
        rc = database_change(&queue->db,
                             "UPDATE notification SET ended_at = ?2, failures = failures + 1, "
                             "failing_since_at = coalesce(failing_since_at, ?2), message = ?3 WHERE name = ?1",
                             VALUES(value_text(name), value_time(now_ms), value_text(failure)));
        if (rc > 0) {
            char *detail = sqlite3_mprintf("%s: %s", name, failure);
            rc = detail ? queue_add_event(queue, &(struct queue_event){.kind = "NOTIFICATION_FAILED", .detail = detail},
                                          now_ms)
                        : database_refuse(&queue->db, -ENOMEM, "out of memory");
            sqlite3_free(detail);
        }
    } else
        rc = database_run(&queue->db,
                          "UPDATE notification SET event_id = max(event_id, ?2), ended_at = ?3, "
                          "failures = 0, failing_since_at = NULL, message = '' WHERE name = ?1",
                          VALUES(value_text(name), value_int(event_id), value_time(now_ms)));
    return queue_leave(queue, rc);
}

int
queue_skip_notified(struct queue *queue, const char *name, int64_t event_id)
{
    return queue_change(queue, "UPDATE notification SET event_id = max(event_id, ?2) WHERE name = ?1",
                        VALUES(value_text(name), value_int(event_id)));
}

/* -------------------------------------------------------------------------------- alerts ---- */

static const struct database_shape raised_shape =
    DATABASE_SHAPE("alert", struct queue_raised, {DATABASE_TEXT, offsetof(struct queue_raised, alert)},
                   {DATABASE_INT32, offsetof(struct queue_raised, severity)});

int
queue_raised(struct queue *queue, struct queue_raised **raised, size_t *count)
{
    return queue_list(queue, "SELECT alert, severity FROM alert_raised", NO_VALUES, &raised_shape, raised, count);
}

DATABASE_FREE(queue_raised_free, queue_raised, raised_shape)

int
queue_begin_alert(struct queue *queue, const char *alert, int severity, const char *word, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db, "INSERT OR REPLACE INTO alert_raised VALUES (?, ?, ?)",
                      VALUES(value_text(alert), value_int(severity), value_time(now_ms)));
    const struct queue_event event = {.kind = "ALERT_BEGAN", .to_state = word, .detail = alert};
    if (rc == 0)
        rc = queue_add_event(queue, &event, now_ms);
    return queue_leave(queue, rc);
}

int
queue_end_alert(struct queue *queue, const char *alert, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db, "DELETE FROM alert_raised WHERE alert = ?", VALUES(value_text(alert)));
    const struct queue_event event = {.kind = "ALERT_ENDED", .detail = alert};
    if (rc > 0)
        rc = queue_add_event(queue, &event, now_ms);
    return queue_leave(queue, rc < 0 ? rc : 0);
}
