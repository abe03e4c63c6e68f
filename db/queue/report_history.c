#include "db/report_history.h"

#include "db/queue/queue_private.h"

#include <errno.h>

int
queue_nights_until(struct queue *queue, int64_t before_ms, int64_t *until_ms)
{
    *until_ms = 0;
    int rc = queue_read_row(queue,
                            "SELECT coalesce((SELECT max(until_at) FROM night WHERE until_at < ?), "
                            "(SELECT at FROM event WHERE id = (SELECT min(id) FROM event)))",
                            VALUES(value_time(before_ms)), &database_time, until_ms);
    return rc < 0 ? rc : 0;
}

int
queue_close_night(struct queue *queue, const char *name, int64_t since_ms, int64_t until_ms, bool reported)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    if (since_ms >= until_ms)
        rc = database_refuse(&queue->db, -EINVAL, "a night ends after it begins");
    if (rc == 0)
        rc = database_run(&queue->db,
                          "INSERT INTO night (name, since_at, until_at, series_settled, series_refused, "
                          "series_without_rule, instances, bytes, jobs_done, jobs_empty, jobs_review, "
                          "jobs_rejected, jobs_failed, jobs_cancelled, busy_seconds, compute_seconds, "
                          "result_bytes, delivered, undelivered, waiting, quarantined, free_mib, report) "
                          "SELECT ?1, ?2, ?3, s.*, j.*, "
                          "(SELECT count(*) FROM delivery WHERE state = 'SENT' AND sent_at >= ?2 "
                          "  AND sent_at < ?3), "
                          "(SELECT count(*) FROM delivery INDEXED BY delivery_state WHERE state = 'FAILED' "
                          "  AND coalesce(started_at, created_at) >= ?2 "
                          "  AND coalesce(started_at, created_at) < ?3), "
                          "(SELECT count(*) FROM delivery WHERE state IN ('PENDING', 'SENDING', 'DELAYED')), "
                          "(SELECT count(*) FROM quarantine WHERE quarantined_at >= ?2 "
                          "  AND quarantined_at < ?3), "
                          "(SELECT free_mib FROM disk WHERE at < ?3 ORDER BY at DESC LIMIT 1), ?4 "
                          "FROM (SELECT count(*) FILTER (WHERE state = 'SETTLED'), "
                          "  count(*) FILTER (WHERE state = 'REFUSED'), "
                          "  count(*) FILTER (WHERE state = 'SETTLED' AND code = 'NO_RULE' AND NOT EXISTS "
                          "    (SELECT 1 FROM job WHERE series_id = s.id AND revision = s.revision)), "
                          "  coalesce(sum(instances), 0), coalesce(sum((SELECT sum(size_bytes) FROM instance "
                          "    WHERE series_id = s.id)), 0) "
                          "  FROM series s WHERE settled_at >= ?2 AND settled_at < ?3) s, "
                          "(SELECT count(*) FILTER (WHERE state = 'DONE'), "
                          "  count(*) FILTER (WHERE state = 'EMPTY'), "
                          "  count(*) FILTER (WHERE state = 'REVIEW'), "
                          "  count(*) FILTER (WHERE state = 'REJECTED'), "
                          "  count(*) FILTER (WHERE state = 'FAILED'), "
                          "  count(*) FILTER (WHERE state = 'CANCELLED'), total(total_seconds), "
                          "  total(compute_seconds), coalesce(sum((SELECT sum(size_bytes) FROM result "
                          "    WHERE job_id = j.id)), 0) "
                          "  FROM job j WHERE ended_at >= ?2 AND ended_at < ?3) j",
                          VALUES(value_text(name), value_time(since_ms), value_time(until_ms),
                                 value_text(reported ? "PENDING" : "")));
    return queue_leave(queue, rc);
}

static const struct database_shape night_shape = DATABASE_SHAPE(
    "night", struct queue_night, {DATABASE_INT64, offsetof(struct queue_night, id)},
    {DATABASE_TIME, offsetof(struct queue_night, since_ms)}, {DATABASE_TIME, offsetof(struct queue_night, until_ms)});

int
queue_unreported_night(struct queue *queue, struct queue_night *night)
{
    *night = (struct queue_night){0};
    int rc =
        queue_read_row(queue, "SELECT id, since_at, until_at FROM night WHERE report = 'PENDING' ORDER BY id LIMIT 1",
                       NO_VALUES, &night_shape, night);
    return rc < 0 ? rc : 0;
}

int
queue_night_reported(struct queue *queue, int64_t id, const char *failure, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db,
                         "UPDATE night SET report = iif(?2 = '', 'DONE', 'FAILED'), "
                         "report_message = ?2, report_at = ?3 WHERE id = ?1 AND report = 'PENDING'",
                         VALUES(value_int(id), value_text(failure), value_time(now_ms)));
    if (rc == 0)
        rc = database_refuse(&queue->db, -EAGAIN, "no report of that night is to be handed over");
    if (rc > 0 && *failure)
        rc = queue_add_event(queue, &(struct queue_event){.kind = "REPORT_FAILED", .detail = failure}, now_ms);
    return queue_leave(queue, rc < 0 ? rc : 0);
}
