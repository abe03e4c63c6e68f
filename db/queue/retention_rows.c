/* retention_rows.c - see db/retention_rows.h. service/common/layout.h defines the places of files. */
#include "db/retention_rows.h"

#include "db/queue/edges.h"
#include "db/queue/retention_marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_PER_MARK 8 /* rows to read per row to mark */
#define DISK_DAYS      14

/* ------------------------------------------------------------------------------ what may go -- */

/* Each returns 1 if the row may be removed, 0 if it stays. */

/* Returns 1 if the statement finds a row with the id whose original stays in one of the inboxes. */
static int
stock_is_kept(struct queue *queue, const struct queue_sweep *sweep, const char *sql, int64_t id)
{
    int64_t found;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sweep->source_count; i++)
        rc = database_get(&queue->db, sql, VALUES(value_int(id), value_text(sweep->sources[i])), &found);
    return rc;
}

static int
stock_series_may_go(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t before_ms)
{
    int64_t found;
    int rc = database_get(&queue->db,
                          "SELECT 1 FROM job j WHERE j.series_id = ?1 AND ("
                          "  j.state NOT IN ('DONE', 'EMPTY', 'REJECTED', 'FAILED', 'CANCELLED') "
                          "  OR coalesce(j.reviewed_at, j.ended_at) >= ?2 OR ?3 AND j.state = 'FAILED' "
                          "  OR EXISTS (SELECT 1 FROM delivery d WHERE d.job_id = j.id AND " NOT_ARRIVED ")) "
                          "UNION ALL SELECT 1 FROM series WHERE id = ?1 AND ?3 AND state = 'REFUSED' "
                          "UNION ALL SELECT 1 FROM program_run WHERE series_id = ?1 AND state = 'RUNNING' LIMIT 1",
                          VALUES(value_int(id), value_time(before_ms), value_int(sweep->for_space)), &found);
    if (rc == 0)
        rc = stock_is_kept(queue, sweep,
                           "SELECT 1 FROM instance WHERE series_id = ? AND source = ? "
                           "AND original_path = '' LIMIT 1",
                           id);
    return rc < 0 ? rc : rc == 0;
}

/* Superseded results stay until those that supersede them have arrived. */
static int
stock_results_may_go(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t before_ms)
{
    int64_t may = 0;
    (void)sweep;
    int rc = database_get(&queue->db,
                          "SELECT NOT EXISTS (SELECT 1 FROM delivery d WHERE d.job_id = j.superseded_by "
                          "  AND " NOT_ARRIVED ") "
                          "AND count(*) FILTER (WHERE d.state = 'SENT' OR j.superseded_by IS NOT NULL) > 0 "
                          "AND count(*) FILTER (WHERE " NOT_ARRIVED
                          " OR coalesce(max(d.sent_at, d.since_at), d.since_at) >= ?2) = 0 "
                          "FROM job j JOIN delivery d ON d.job_id = j.id WHERE j.id = ?1",
                          VALUES(value_int(id), value_time(before_ms)), &may);
    return rc < 0 ? rc : may != 0;
}

static int
stock_rows_may_go(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t before_ms)
{
    int64_t found;
    (void)sweep;
    int rc = database_get(&queue->db,
                          "SELECT 1 WHERE EXISTS (SELECT 1 FROM event WHERE series_id = ?1 AND at >= ?2) "
                          "OR EXISTS (SELECT 1 FROM job WHERE series_id = ?1 AND state = 'DONE' "
                          "  AND removed_at IS NULL) "
                          "OR EXISTS (SELECT 1 FROM quarantine q JOIN series s ON s.series_uid = q.series_uid "
                          "  WHERE s.id = ?1 AND q.path <> '' AND q.removed_at IS NULL)",
                          VALUES(value_int(id), value_time(before_ms)), &found);
    return rc < 0 ? rc : rc == 0;
}

/* The inbox would bring back an object whose original stays. */
static const char kept_object_sql[] = "SELECT 1 FROM object WHERE id = ? AND source = ? AND original_path = ''";

/* Returns 1 if another stored series is among its references. */
static int
stock_object_is_used(struct queue *queue, int64_t id, int64_t but_series_id)
{
    struct queue_ids series;
    int64_t found;
    int rc = queue_object_series(queue, id, &series);
    for (size_t i = 0; rc == 0 && i < series.count; i++)
        if (series.at[i] != but_series_id)
            rc = database_get(&queue->db, "SELECT 1 FROM series WHERE id = ? AND removed_at IS NULL",
                              VALUES(value_int(series.at[i])), &found);
    free(series.at);
    return rc;
}

static int
stock_object_may_go(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t before_ms)
{
    (void)before_ms;
    int rc = stock_is_kept(queue, sweep, kept_object_sql, id);
    if (rc == 0)
        rc = stock_object_is_used(queue, id, 0);
    return rc < 0 ? rc : rc == 0;
}

/* --------------------------------------------------------------------------------- marking -- */

/* Each returns 0, or 1 if more of the same row must be removed. */

static int
stock_note(struct queue *queue, const struct queue_event *about, const char *what, int64_t count, int64_t bytes,
           const char *why, int64_t now_ms)
{
    char detail[160];
    struct queue_event event = *about;
    snprintf(detail, sizeof detail, "%lld %s%s, %.1f MiB: %s", (long long)count, what, count == 1 ? "" : "s",
             (double)bytes / (1 << 20), why);
    event.detail = detail;
    return queue_add_event(queue, &event, now_ms);
}

/* Its label and file name may name a patient; its row stays without them. */
int
stock_mark_object(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms)
{
    static const char *const files[] = {
        "INSERT INTO removal (path, size_bytes, taken_at) SELECT original_path, size_bytes, received_at FROM object "
        "WHERE id = ? AND original_path <> '' ON CONFLICT DO NOTHING",
        "INSERT INTO removal (path) SELECT path FROM object WHERE id = ?1 "
        "UNION ALL SELECT 'series/' || series_uid || '/' || sop_instance_uid || '.dcm' FROM object "
        "WHERE id = ?1 AND replaced > 0 ON CONFLICT DO NOTHING",
    };
    int rc = queue_object_note(queue, "OBJECT_REMOVED", id, sweep->why, now_ms);
    if (rc == 0)
        rc = stock_run(queue, files, sizeof files / sizeof *files, id);
    return rc < 0 ? rc
                  : database_run(&queue->db,
                                 "UPDATE object SET removed_at = ?2, label = '', "
                                 "description = '', original_path = '' WHERE id = ?1",
                                 VALUES(value_int(id), value_time(now_ms)));
}

int
stock_objects_with(struct queue *queue, const struct queue_sweep *sweep, int64_t series_id, struct queue_ids *objects)
{
    size_t count = 0;
    int rc = queue_series_objects(queue, series_id, objects);
    for (size_t i = 0; rc >= 0 && i < objects->count; i++) {
        const int64_t id = objects->at[i];
        int64_t found;
        rc = database_get(&queue->db,
                          "SELECT 1 FROM object o JOIN series s ON s.series_uid = o.series_uid "
                          "WHERE o.id = ? AND s.id = ?",
                          VALUES(value_int(id), value_int(series_id)), &found);
        const bool in_its_folder = rc == 1;
        if (rc == 0)
            rc = stock_object_is_used(queue, id, series_id);
        if (rc == 0)
            rc = stock_is_kept(queue, sweep, kept_object_sql, id);
        if (in_its_folder || rc == 0)
            objects->at[count++] = id;
    }
    objects->count = count;
    if (rc < 0) {
        free(objects->at);
        objects->at = NULL;
    }
    return rc < 0 ? rc : 0;
}

int
stock_mark_series(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms)
{
    /* The third finds the preview and the record of jobs without results, and results of rejected jobs: never delivered.
     * The fourth finds masks, which are patient data as images are. */
    static const char *const files[] = {
        "INSERT INTO removal (path, size_bytes, taken_at) SELECT original_path, size_bytes, received_at FROM instance "
        "WHERE series_id = ? AND original_path <> '' ON CONFLICT DO NOTHING",
        "INSERT INTO removal (path) SELECT 'series/' || series_uid FROM series WHERE id = ? ON CONFLICT DO NOTHING",
        "INSERT INTO removal (path) SELECT 'outbox/' || id FROM job "
        "WHERE series_id = ? AND state <> 'DONE' AND removed_at IS NULL ON CONFLICT DO NOTHING",
        "INSERT INTO removal (path) SELECT 'programs/' || id FROM program_run "
        "WHERE series_id = ? AND removed_at IS NULL ON CONFLICT DO NOTHING",
    };
    int64_t bytes = 0, instances = 0;
    struct queue_ids objects = {0};
    int rc = database_get(&queue->db, "SELECT count(*) FROM instance WHERE series_id = ?", VALUES(value_int(id)),
                          &instances);
    if (rc >= 0)
        rc = database_get(&queue->db, "SELECT sum(size_bytes) FROM instance WHERE series_id = ?", VALUES(value_int(id)),
                          &bytes);
    if (rc >= 0)
        rc = stock_run(queue, files, sizeof files / sizeof *files, id);
    if (rc == 0)
        rc = database_run(
            &queue->db,
            "UPDATE job SET removed_at = ?2 WHERE series_id = ?1 AND state <> 'DONE' AND removed_at IS NULL",
            VALUES(value_int(id), value_time(now_ms)));
    if (rc == 0)
        rc = database_run(&queue->db,
                          "UPDATE program_run SET removed_at = ?2 WHERE series_id = ?1 AND removed_at IS NULL",
                          VALUES(value_int(id), value_time(now_ms)));
    if (rc == 0) /* while its instances still identify them */
        rc = stock_objects_with(queue, sweep, id, &objects);
    for (size_t i = 0; rc == 0 && i < objects.count; i++)
        rc = stock_mark_object(queue, sweep, objects.at[i], now_ms);
    free(objects.at);
    if (rc == 0)
        rc = database_run(&queue->db, "DELETE FROM instance WHERE series_id = ?", VALUES(value_int(id)));
    if (rc == 0)
        rc = database_run(&queue->db, "UPDATE series SET removed_at = ?2 WHERE id = ?1",
                          VALUES(value_int(id), value_time(now_ms)));
    const struct queue_event about = {.kind = "SERIES_REMOVED", .series_id = id};
    return rc < 0 ? rc : stock_note(queue, &about, "image", instances, bytes, sweep->why, now_ms);
}

int
stock_mark_results(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms)
{
    struct edge_row row;
    int64_t bytes = 0, results = 0;
    int rc = edge_read_row(queue, &machine_job, id, &row);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT count(*) FROM result WHERE job_id = ?", VALUES(value_int(id)), &results);
    if (rc >= 0)
        rc = database_get(&queue->db, "SELECT sum(size_bytes) FROM result WHERE job_id = ?", VALUES(value_int(id)),
                          &bytes);
    if (rc >= 0)
        rc = database_run(&queue->db,
                          "INSERT INTO removal (path) VALUES ('outbox/' || ?) "
                          "ON CONFLICT DO NOTHING",
                          VALUES(value_int(id)));
    if (rc == 0)
        rc = database_run(&queue->db, "UPDATE job SET removed_at = ?2 WHERE id = ?1",
                          VALUES(value_int(id), value_time(now_ms)));
    const struct queue_event about = {.kind = "RESULTS_REMOVED", .series_id = row.series_id, .job_id = id};
    return rc < 0 ? rc : stock_note(queue, &about, "result", results, bytes, sweep->why, now_ms);
}

/* Makes no event: the row itself is the record, and a flood of bad files must not fill the events. */
int
stock_mark_quarantine(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms)
{
    (void)sweep;
    int rc = database_run(&queue->db,
                          "INSERT INTO removal (path) "
                          "SELECT path || suffix FROM quarantine "
                          "JOIN (SELECT '' AS suffix UNION ALL SELECT '.reason.json') "
                          "WHERE id = ? ON CONFLICT DO NOTHING",
                          VALUES(value_int(id)));
    if (rc == 0)
        rc = database_run(&queue->db, "UPDATE quarantine SET removed_at = ?2 WHERE id = ?1",
                          VALUES(value_int(id), value_time(now_ms)));
    return rc;
}

int
stock_run(struct queue *queue, const char *const *statements, size_t count, int64_t id)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = database_run(&queue->db, statements[i], VALUES(value_int(id)));
    return rc;
}

static int
horizon_set(struct queue *queue, int64_t before_ms)
{
    return database_run(&queue->db, "UPDATE horizon SET events_before = ?1 WHERE events_before < ?1",
                        VALUES(value_time(before_ms)));
}

/* Deletes the oldest job, whose features may be many; or the series, when it has no job left. */
static int
stock_drop_rows(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms)
{
    static const char *const of_job[] = {
        "DELETE FROM feature WHERE job_id = ?", "DELETE FROM pattern_histogram WHERE job_id = ?",
        "DELETE FROM segment WHERE job_id = ?", "DELETE FROM breach WHERE job_id = ?",
        "DELETE FROM event WHERE job_id = ?",   "DELETE FROM delivery WHERE job_id = ?",
        "DELETE FROM result WHERE job_id = ?",  "DELETE FROM job_mask WHERE job_id = ?",
        "DELETE FROM job WHERE id = ?",
    };
    static const char *const of_series[] = {
        "DELETE FROM quarantine WHERE series_uid = (SELECT series_uid FROM series WHERE id = ?)",
        "DELETE FROM event WHERE series_id = ?",
        "DELETE FROM program_run WHERE series_id = ?",
        "DELETE FROM stack WHERE series_id = ?",
        "DELETE FROM series WHERE id = ?",
    };
    int64_t job = 0;
    (void)now_ms;
    int rc = horizon_set(queue, sweep->before_ms[QUEUE_STOCK_ROWS]);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT min(id) FROM job WHERE series_id = ? HAVING min(id)",
                          VALUES(value_int(id)), &job);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return stock_run(queue, of_series, sizeof of_series / sizeof *of_series, id);
    rc = stock_run(queue, of_job, sizeof of_job / sizeof *of_job, job);
    return rc < 0 ? rc : 1;
}

static int
stock_drop_object(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms)
{
    (void)sweep;
    (void)now_ms;
    return database_run(&queue->db, "DELETE FROM object WHERE id = ?", VALUES(value_int(id)));
}

/* -------------------------------------------------------------------------------- sweeping -- */

/* ?1, ?2: after this time and id; ?3: before this time. */
#define NEXT_OF(table, time, condition)                                                                                \
    "SELECT id, " time " FROM " table " WHERE " condition " AND (" time ", id) > (?1, ?2) "                            \
    "AND " time " < ?3 ORDER BY " time ", id LIMIT 1"

static const struct stock {
    const char *next;
    /* NULL: age is enough */
    int (*may_go)(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t before_ms);
    int (*take)(struct queue *queue, const struct queue_sweep *sweep, int64_t id, int64_t now_ms);
} stocks[QUEUE_STOCKS] = {
    [QUEUE_STOCK_SERIES] = {NEXT_OF("series", "settled_at", "removed_at IS NULL AND settled_at IS NOT NULL"),
                            stock_series_may_go, stock_mark_series},
    [QUEUE_STOCK_RESULTS] = {NEXT_OF("job", "ended_at", "state = 'DONE' AND removed_at IS NULL"), stock_results_may_go,
                             stock_mark_results},
    [QUEUE_STOCK_QUARANTINE] = {NEXT_OF("quarantine", "quarantined_at", "removed_at IS NULL AND path <> ''"), NULL,
                                stock_mark_quarantine},
    [QUEUE_STOCK_OBJECTS] = {NEXT_OF("object", "received_at", "removed_at IS NULL"), stock_object_may_go,
                             stock_mark_object},
    [QUEUE_STOCK_ROWS] = {NEXT_OF("series", "removed_at", "removed_at IS NOT NULL"), stock_rows_may_go,
                          stock_drop_rows},
    [QUEUE_STOCK_OBJECT_ROWS] = {NEXT_OF("object", "removed_at", "removed_at IS NOT NULL"), NULL, stock_drop_object},
};

static const struct database_shape place_shape =
    DATABASE_SHAPE("stock", struct queue_place, {DATABASE_INT64, offsetof(struct queue_place, id)},
                   {DATABASE_TIME, offsetof(struct queue_place, at_ms)});

/* Finds the stock with the oldest row; QUEUE_STOCKS: there is no row. */
static int
sweep_next(struct queue *queue, const struct queue_sweep *sweep, struct queue_place *place)
{
    int oldest = QUEUE_STOCKS;
    for (int i = 0; i < QUEUE_STOCKS; i++) {
        struct queue_place found;
        const struct queue_place *after = &sweep->after[i];
        if (sweep->before_ms[i] <= 0)
            continue;
        int rc = queue_read_row(queue, stocks[i].next,
                                VALUES(value_time(after->at_ms), value_int(after->id), value_time(sweep->before_ms[i])),
                                &place_shape, &found);
        if (rc < 0)
            return rc;
        if (rc == 1 || (oldest < QUEUE_STOCKS && found.at_ms >= place->at_ms))
            continue;
        oldest = i;
        *place = found;
    }
    return oldest;
}

int
queue_sweep(struct queue *queue, struct queue_sweep *sweep, size_t limit, int64_t now_ms, size_t *count)
{
    const struct queue_sweep before = *sweep;
    *count = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    for (size_t looks = 0; rc >= 0 && looks < LOOKS_PER_MARK * limit && *count < limit; looks++) {
        struct queue_place place;
        const int i = sweep_next(queue, sweep, &place);
        sweep->over = i == QUEUE_STOCKS;
        rc = i < 0 ? i : 0;
        if (i < 0 || sweep->over)
            break;
        const struct stock *stock = &stocks[i];
        const int may = stock->may_go ? stock->may_go(queue, sweep, place.id, sweep->before_ms[i]) : 1;
        rc = may == 1 ? stock->take(queue, sweep, place.id, now_ms) : may;
        if (rc == 0) /* 1: more of the row must be removed */
            sweep->after[i] = place;
        *count += rc >= 0 && may == 1;
    }
    rc = queue_leave(queue, rc < 0 ? rc : 0);
    if (rc < 0) {
        *sweep = before;
        *count = 0;
    }
    return rc;
}

/* -------------------------------------------------------------------------- the daemon's own -- */

/* The rows that no series takes with it. The last of these events stay: v_destinations and v_night need them. */
static const char *const own_rows_sql[] = {
    "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE series_id IS NULL AND at < ?1 "
    "AND (kind NOT IN ('START', 'DESTINATION_DOWN', 'DESTINATION_UP', 'COMPUTE_WAITING', "
    "'COMPUTE_READY') OR id < (SELECT max(id) FROM event INDEXED BY event_destination "
    "  WHERE kind IN ('START', 'DESTINATION_DOWN', 'DESTINATION_UP') AND kind = 'START')) ORDER BY at LIMIT ?2)",
    "DELETE FROM quarantine WHERE id IN (SELECT id FROM quarantine q "
    "WHERE quarantined_at < ?1 AND (path = '' OR removed_at < ?1) "
    "AND NOT EXISTS (SELECT 1 FROM series s WHERE s.series_uid = q.series_uid) LIMIT ?2)",
    "DELETE FROM pull WHERE id IN (SELECT id FROM pull WHERE ended_at < ?1 LIMIT ?2)",
    "DELETE FROM caller WHERE id IN (SELECT id FROM caller WHERE last_at < ?1 LIMIT ?2)",
};

int
queue_sweep_events(struct queue *queue, int64_t before_ms, size_t limit, size_t *count)
{
    *count = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    size_t removed = 0;
    rc = horizon_set(queue, before_ms);
    for (size_t i = 0; rc >= 0 && i < sizeof own_rows_sql / sizeof *own_rows_sql; i++) {
        rc = database_change(&queue->db, own_rows_sql[i], VALUES(value_time(before_ms), queue_row_limit(limit)));
        removed += rc > 0 ? (size_t)rc : 0;
    }
    rc = queue_leave(queue, rc < 0 ? rc : 0);
    if (rc == 0)
        *count = removed;
    return rc;
}

/* -------------------------------------------------------------------------------- the files -- */

#define REMOVAL_FIELDS(FIELD)                                                                                          \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(TEXT, path, "path")                                                                                          \
    FIELD(INT64, size, "coalesce(size_bytes, 0)")                                                                      \
    FIELD(TIME, taken_ms, "taken_at")
#define REMOVAL_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_removal, member)},

static const struct database_shape removal_shape =
    DATABASE_SHAPE("removal", struct queue_removal, REMOVAL_FIELDS(REMOVAL_FIELD));

int
queue_removals(struct queue *queue, int64_t after, size_t limit, struct queue_removal **removals, size_t *count)
{
    return queue_list(queue,
                      "SELECT " REMOVAL_FIELDS(DATABASE_COLUMN) "NULL FROM removal WHERE id > ? ORDER BY id LIMIT ?",
                      VALUES(value_int(after), queue_row_limit(limit)), &removal_shape, removals, count);
}

DATABASE_CLEAR(queue_removal_clear, queue_removal, removal_shape)

int
queue_removed(struct queue *queue, int64_t id)
{
    return queue_change(queue, "DELETE FROM removal WHERE id = ?", VALUES(value_int(id)));
}

/* ---------------------------------------------------------------------------- disk, upkeep -- */

int
queue_measure_disk(struct queue *queue, double free_mib, int64_t now_ms)
{
    return queue_change(queue, "INSERT OR REPLACE INTO disk_now VALUES (1, ?, ?)",
                        VALUES(value_time(now_ms), value_real(free_mib)));
}

int
queue_note_disk(struct queue *queue, double free_mib, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db, "INSERT INTO disk VALUES (?, ?) ON CONFLICT DO NOTHING",
                      VALUES(value_time(now_ms), value_real(free_mib)));
    if (rc == 0)
        rc = database_run(&queue->db, "DELETE FROM disk WHERE at < ?",
                          VALUES(value_time(now_ms - INT64_C(86400000) * DISK_DAYS)));
    return queue_leave(queue, rc);
}

int
queue_last_disk(struct queue *queue, int64_t *at_ms)
{
    *at_ms = 0;
    int rc = queue_read_row(queue, "SELECT at FROM disk ORDER BY at DESC LIMIT 1", NO_VALUES, &database_time, at_ms);
    return rc < 0 ? rc : 0;
}

/* Does not wait for readers; the next call cuts the log then. */
static void
retention_cut_log(struct queue *queue)
{
    sqlite3_busy_timeout(queue->db.handle, 0);
    sqlite3_wal_checkpoint_v2(queue->db.handle, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(queue->db.handle, DATABASE_BUSY_MILLIS);
}

int
queue_rebuild_size(struct queue *queue, int64_t *bytes)
{
    int64_t shrinks = 0;
    int rc = database_get(&queue->db, "PRAGMA auto_vacuum", NO_VALUES, &shrinks);
    *bytes = 0;
    if (rc >= 0 && !shrinks)
        rc = database_get(&queue->db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                          NO_VALUES, bytes);
    return rc < 0 ? rc : 0;
}

/*
 * Copies in a temporary file next to the database: the copy is as large as the database, too large
 * for memory, and no other disk was checked.
 */
int
queue_rebuild(struct queue *queue)
{
    const char *file = sqlite3_db_filename(queue->db.handle, "main");
    const char *slash = strrchr(file, '/');
    sqlite3_temp_directory = slash ? sqlite3_mprintf("%.*s", (int)(slash - file), file) : NULL;
    int rc = database_script(&queue->db, "PRAGMA temp_store = FILE;"
                                         "PRAGMA auto_vacuum = INCREMENTAL;"
                                         "VACUUM");
    database_quietly(&queue->db, "PRAGMA temp_store = MEMORY");
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = NULL;
    retention_cut_log(queue);
    return rc;
}

int
queue_tidy(struct queue *queue, int pages)
{
    char *sql = sqlite3_mprintf("PRAGMA analysis_limit = 400; PRAGMA optimize; "
                                "PRAGMA incremental_vacuum(%d)",
                                pages);
    int rc = sql ? database_script(&queue->db, sql) : database_refuse(&queue->db, -ENOMEM, "out of memory");
    sqlite3_free(sql);
    if (rc < 0)
        return rc;
    retention_cut_log(queue);
    return 0;
}
