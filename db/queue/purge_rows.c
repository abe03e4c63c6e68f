/* purge_rows.c - purge by an operator; see db/retention_rows.h. */
#include "db/queue/retention_marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct database_shape purged_shape =
    DATABASE_SHAPE("series", struct queue_purged, {DATABASE_INT64, offsetof(struct queue_purged, images)},
                   {DATABASE_INT64, offsetof(struct queue_purged, results)},
                   {DATABASE_INT64, offsetof(struct queue_purged, quarantined)},
                   {DATABASE_INT64, offsetof(struct queue_purged, bytes)},
                   {DATABASE_INT64, offsetof(struct queue_purged, undelivered)},
                   {DATABASE_INT64, offsetof(struct queue_purged, originals)});

static int
purge_count_objects(struct queue *queue, const struct queue_ids *objects, struct queue_purged *purged)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < objects->count; i++) {
        int64_t bytes = 0, originals = 0;
        rc = database_get(&queue->db, "SELECT size_bytes FROM object WHERE id = ?", VALUES(value_int(objects->at[i])),
                          &bytes);
        if (rc >= 0)
            rc = database_get(&queue->db,
                              "SELECT count(*) FROM kept k JOIN object o ON o.id = k.object_id "
                              "WHERE o.id = ? AND o.original_path = ''",
                              VALUES(value_int(objects->at[i])), &originals);
        purged->objects++;
        purged->bytes += bytes;
        purged->originals += originals;
    }
    return rc < 0 ? rc : 0;
}

static int
purge_count(struct queue *queue, const struct queue_purge *purge, int64_t id, struct queue_purged *purged)
{
    struct queue_ids objects = {0};
    int rc = queue_read_row(queue,
                            "SELECT (SELECT count(*) FROM instance WHERE series_id = ?1), "
                            "(SELECT count(*) FROM result r JOIN job j ON j.id = r.job_id "
                            "  WHERE j.series_id = ?1 AND j.removed_at IS NULL), "
                            "(SELECT count(*) FROM quarantine WHERE series_uid = ?2 AND removed_at IS NULL "
                            "  AND path <> ''), "
                            "(SELECT coalesce(sum(size_bytes), 0) FROM instance WHERE series_id = ?1) + "
                            "(SELECT coalesce(sum(r.size_bytes), 0) FROM result r JOIN job j ON j.id = r.job_id "
                            "  WHERE j.series_id = ?1 AND j.removed_at IS NULL) + "
                            "(SELECT coalesce(sum(size_bytes), 0) FROM program_run "
                            "  WHERE series_id = ?1 AND removed_at IS NULL), "
                            "(SELECT count(*) FROM job j JOIN delivery d ON d.job_id = j.id "
                            "  WHERE j.series_id = ?1 AND j.removed_at IS NULL AND " NOT_ARRIVED "), "
                            "(SELECT count(*) FROM kept k JOIN instance i ON i.id = k.instance_id "
                            "  WHERE i.series_id = ?1 AND i.original_path = '')",
                            VALUES(value_int(id), value_text(purge->series_uid)), &purged_shape, purged);
    if (rc == 0)
        rc = stock_objects_with(queue, &(struct queue_sweep){0}, id, &objects);
    if (rc < 0)
        return rc;
    rc = purge_count_objects(queue, &objects, purged);
    free(objects.at);
    return rc;
}

/* Checks that no job is about to read the files. */
static int
purge_expect_no_job(struct queue *queue, int64_t series_id)
{
    int64_t busy = 0;
    int rc = database_get(&queue->db,
                          "SELECT id FROM job WHERE series_id = ? "
                          "AND state IN ('READY', 'RUNNING', 'DELAYED') LIMIT 1",
                          VALUES(value_int(series_id)), &busy);
    return rc == 1
               ? database_refuse(&queue->db, -EAGAIN,
                                 "job %lld of the series waits or runs: wait, or noctule cancel it", (long long)busy)
               : rc;
}

/* Checks that no job and no delivery uses the series. */
static int
purge_expect_idle(struct queue *queue, const struct series_row *row)
{
    int64_t busy = 0;
    if (row->state == SERIES_GATHERING)
        return database_refuse(&queue->db, -EAGAIN, "the series gathers: wait, or noctule complete it");
    int rc = database_get(&queue->db, "SELECT id FROM job WHERE series_id = ? AND state = 'REVIEW' LIMIT 1",
                          VALUES(value_int(row->id)), &busy);
    if (rc == 1)
        return database_refuse(&queue->db, -EAGAIN,
                               "job %lld of the series is under review: noctule accept or reject it", (long long)busy);
    if (rc == 0)
        rc = purge_expect_no_job(queue, row->id);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT id FROM program_run WHERE series_id = ? AND state = 'RUNNING' LIMIT 1",
                          VALUES(value_int(row->id)), &busy);
    if (rc == 1)
        return database_refuse(&queue->db, -EAGAIN, "run %lld of a program on the series ends: wait", (long long)busy);
    if (rc == 0)
        rc = database_get(&queue->db,
                          "SELECT d.id FROM job j JOIN delivery d ON d.job_id = j.id "
                          "WHERE j.series_id = ? AND +d.state = 'SENDING' LIMIT 1",
                          VALUES(value_int(row->id)), &busy);
    return rc == 1 ? database_refuse(&queue->db, -EAGAIN, "delivery %lld is being sent: wait", (long long)busy) : rc;
}

typedef int stock_mark(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms);

/* Marks all rows that the statement finds. */
static int
purge_mark(struct queue *queue, const struct queue_sweep *sweep, stock_mark *mark, const char *sql,
           const struct database_value *values, size_t value_count, int64_t now_ms)
{
    struct queue_ids ids;
    int rc = queue_list(queue, sql, values, value_count, &database_id, &ids.at, &ids.count);
    for (size_t i = 0; rc == 0 && i < ids.count; i++)
        rc = mark(queue, sweep, ids.at[i], now_ms);
    free(ids.at);
    return rc;
}

#define PURGE_WHY 160

static const char *
purge_why(const struct queue_purge *purge, char why[PURGE_WHY])
{
    snprintf(why, PURGE_WHY, "purged by %s", purge->by && *purge->by ? purge->by : "an operator");
    return why;
}

static int
purge_all(struct queue *queue, const struct queue_purge *purge, const struct series_row *row, int64_t now_ms)
{
    char why[PURGE_WHY];
    const struct queue_sweep sweep = {.why = purge_why(purge, why)};
    int rc = queue_withdraw_purged(queue, row->id, now_ms);
    if (rc == 0)
        rc = purge_mark(queue, &sweep, stock_mark_results,
                        "SELECT id FROM job WHERE series_id = ? AND state = 'DONE' "
                        "AND removed_at IS NULL ORDER BY id",
                        VALUES(value_int(row->id)), now_ms);
    if (rc == 0)
        rc = purge_mark(queue, &sweep, stock_mark_quarantine,
                        "SELECT id FROM quarantine WHERE series_uid = ? AND removed_at IS NULL "
                        "AND path <> '' ORDER BY id",
                        VALUES(value_text(purge->series_uid)), now_ms);
    if (rc == 0) /* also if it was removed before: the event names the user */
        rc = stock_mark_series(queue, &sweep, row->id, now_ms);
    /* Clears names. The number of the row stays where the schema needs distinct names. */
    if (rc < 0)
        return rc;
    static const char *const statements[] = {
        "UPDATE event SET detail = 'purged' WHERE kind = 'QUARANTINED' AND id IN ("
        "  SELECT id FROM event WHERE series_id = ?1 "
        "  UNION SELECT e.id FROM event e JOIN quarantine q ON e.at = q.quarantined_at "
        "  JOIN series s ON s.series_uid = q.series_uid WHERE s.id = ?1 AND e.series_id IS NULL)",
        "UPDATE quarantine SET original_path = 'purged ' || id, message = '', "
        "path = iif(path = '', '', 'purged') WHERE series_uid = "
        "(SELECT series_uid FROM series WHERE id = ?1)",
        "UPDATE stack SET file_a = '', file_b = '', "
        "message = iif(code = 'INCOMPLETE_SERIES', '', message) WHERE series_id = ?1",
        "UPDATE series SET description = '', message = '' WHERE id = ?1",
        "UPDATE event SET detail = 'purged' WHERE kind = 'JOB_REJECTED' AND series_id = ?1",
        "UPDATE job SET message = '' WHERE code = 'REVIEW_REJECTED' AND series_id = ?1",
    };
    return stock_run(queue, statements, sizeof statements / sizeof *statements, row->id);
}

/* ?1: before this time. */
#define PURGE_STRAYS                                                                                                   \
    "quarantined_at < ?1 AND NOT EXISTS (SELECT 1 FROM series s "                                                      \
    "WHERE s.series_uid = quarantine.series_uid)"
#define PURGE_STRAY_FILES PURGE_STRAYS " AND removed_at IS NULL AND path <> ''"

static int
purge_strays(struct queue *queue, const struct queue_purge *purge, int64_t now_ms, struct queue_purged *purged)
{
    const struct queue_sweep sweep = {0};
    char detail[PURGE_WHY + 60], why[PURGE_WHY];
    int rc = database_get(&queue->db, "SELECT count(*) FROM quarantine WHERE " PURGE_STRAY_FILES,
                          VALUES(value_text(purge->before)), &purged->quarantined);
    if (rc < 0 || purge->dry_run)
        return rc < 0 ? rc : 0;
    rc = purge_mark(queue, &sweep, stock_mark_quarantine,
                    "SELECT id FROM quarantine WHERE " PURGE_STRAY_FILES " ORDER BY id",
                    VALUES(value_text(purge->before)), now_ms);
    if (rc == 0) {
        rc = database_run(&queue->db,
                          "UPDATE event SET detail = 'purged' WHERE kind = 'QUARANTINED' "
                          "AND series_id IS NULL AND at IN "
                          "(SELECT quarantined_at FROM quarantine WHERE " PURGE_STRAYS ")",
                          VALUES(value_text(purge->before)));
        if (rc == 0)
            rc = database_run(&queue->db,
                              "UPDATE quarantine SET original_path = 'purged ' || id, "
                              "message = '', path = iif(path = '', '', 'purged') "
                              "WHERE " PURGE_STRAYS,
                              VALUES(value_text(purge->before)));
    }
    snprintf(detail, sizeof detail, "%lld of no known series: %s", (long long)purged->quarantined,
             purge_why(purge, why));
    const struct queue_event event = {.kind = "QUARANTINE_REMOVED", .detail = detail};
    return rc < 0 ? rc : queue_add_event(queue, &event, now_ms);
}

/* ---------------------------------------------------------------- objects, by their own series -- */

#define PURGE_OWN       "FROM quarantine WHERE series_uid = ?1"
#define PURGE_OWN_FILES PURGE_OWN " AND removed_at IS NULL AND path <> ''"

static int
purge_all_objects(struct queue *queue, const struct queue_purge *purge, const struct queue_ids *objects, int64_t now_ms)
{
    char why[PURGE_WHY];
    const struct queue_sweep sweep = {.why = purge_why(purge, why)};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < objects->count; i++)
        rc = stock_mark_object(queue, &sweep, objects->at[i], now_ms);
    if (rc == 0)
        rc = purge_mark(queue, &sweep, stock_mark_quarantine, "SELECT id " PURGE_OWN_FILES " ORDER BY id",
                        VALUES(value_text(purge->series_uid)), now_ms);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db,
                      "UPDATE event SET detail = 'purged' WHERE kind = 'QUARANTINED' "
                      "AND series_id IS NULL AND at IN (SELECT quarantined_at " PURGE_OWN ")",
                      VALUES(value_text(purge->series_uid)));
    return rc < 0 ? rc
                  : database_run(&queue->db,
                                 "UPDATE quarantine SET original_path = 'purged ' || id, "
                                 "message = '', path = iif(path = '', '', 'purged') "
                                 "WHERE series_uid = ?1",
                                 VALUES(value_text(purge->series_uid)));
}

static int
purge_objects(struct queue *queue, const struct queue_purge *purge, int64_t now_ms, struct queue_purged *purged)
{
    struct queue_ids objects;
    int rc = queue_list(queue, "SELECT id FROM object WHERE series_uid = ? AND removed_at IS NULL ORDER BY id",
                        VALUES(value_text(purge->series_uid)), &database_id, &objects.at, &objects.count);
    if (rc == 0 && objects.count == 0)
        rc = database_refuse(&queue->db, -ENOENT, "there is no series %s", purge->series_uid);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT count(*) " PURGE_OWN_FILES, VALUES(value_text(purge->series_uid)),
                          &purged->quarantined);
    if (rc >= 0)
        rc = purge_count_objects(queue, &objects, purged);
    if (rc == 0) {
        /* Checks that no job uses the annotation objects, or is about to. */
        for (size_t i = 0; rc == 0 && i < objects.count; i++) {
            struct queue_ids series;
            rc = queue_object_series(queue, objects.at[i], &series);
            for (size_t k = 0; rc == 0 && k < series.count; k++)
                rc = purge_expect_no_job(queue, series.at[k]);
            free(series.at);
        }
    }
    if (rc == 0 && !purge->dry_run)
        rc = purge_all_objects(queue, purge, &objects, now_ms);
    free(objects.at);
    return rc;
}

int
queue_purge(struct queue *queue, const struct queue_purge *purge, int64_t now_ms, struct queue_purged *purged)
{
    struct series_row row;
    *purged = (struct queue_purged){0};
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    if (!*purge->series_uid)
        return queue_leave(queue, purge_strays(queue, purge, now_ms, purged));
    rc = queue_read_series(queue, purge->series_uid, &row);
    if (rc == 1)
        return queue_leave(queue, purge_objects(queue, purge, now_ms, purged));
    if (rc == 0)
        rc = purge_count(queue, purge, row.id, purged);
    if (rc == 0)
        rc = purge_expect_idle(queue, &row);
    if (rc == 0 && purged->undelivered > 0 && !purge->undelivered)
        rc = database_refuse(&queue->db, -EPERM,
                             "%lld deliver%s not arrived: --undelivered removes the series all the same",
                             (long long)purged->undelivered, purged->undelivered == 1 ? "y has" : "ies have");
    if (rc == 0 && !purge->dry_run)
        rc = purge_all(queue, purge, &row, now_ms);
    return queue_leave(queue, rc);
}
