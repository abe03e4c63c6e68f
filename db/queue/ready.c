/* ready.c - what can run next, and when to look again. */
#include "db/queue/job_rows.h"

#include <errno.h>

int
queue_next_due(struct queue *queue, int64_t *due_ms)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db,
                            "SELECT not_before_at FROM job WHERE state = 'DELAYED' "
                            "AND not_before_at IS NOT NULL ORDER BY not_before_at LIMIT 1",
                            NO_VALUES, &statement);
    if (rc < 0)
        return rc;
    rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = database_column_time(statement, 0, due_ms);
    else if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "no job is delayed");
    database_end(statement);
    return rc;
}

static int
make_due(struct queue *queue, const struct job_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'READY', ready_at = ?, "
                                  "not_before_at = NULL, started_at = NULL "
                                  "WHERE id = ? AND state = 'DELAYED'",
                                  VALUES(value_time(now_ms), value_int(row->id)));
    return job_moved(queue, changed, row, QUEUE_READY, "JOB_DUE", "", now_ms);
}

static int
make_stale(struct queue *queue, const struct job_row *row, int64_t now_ms)
{
    return job_supersede(queue, row, 0, now_ms);
}

int
queue_ready(struct queue *queue, int64_t now_ms, size_t limit, struct queue_job **jobs,
            size_t *count)
{
    struct queue_rows rows = {.shape = &job_shape};
    *jobs = NULL;
    *count = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = job_for_each(queue,
                      "SELECT id FROM job WHERE state = 'DELAYED' AND not_before_at <= ? "
                      "ORDER BY not_before_at, id",
                      VALUES(value_time(now_ms)), make_due, now_ms);
    if (rc == 0)
        rc = job_for_each(queue,
                          "SELECT j.id FROM job j JOIN series s ON s.id = j.series_id "
                          "WHERE j.state = 'READY' AND j.revision < s.revision "
                          "AND s.state <> 'GATHERING' ORDER BY j.id",
                          NO_VALUES, make_stale, now_ms);
    if (rc == 0)
        rc = queue_append_rows(queue,
                               "SELECT " JOB_COLUMNS
                               "WHERE j.state = 'READY' AND j.revision = s.revision "
                               "ORDER BY j.priority DESC, j.id LIMIT ?",
                               VALUES(queue_row_limit(limit)), &rows);
    rc = queue_settle_rows(&rows, queue_leave(queue, rc));
    *jobs = rows.at;
    *count = rows.count;
    return rc;
}
