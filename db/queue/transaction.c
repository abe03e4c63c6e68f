/*
 * transaction.c - opening and closing the queue, transactions, events and invariants. The edges of a
 * series are in series_rows.c, those of a job in job_rows.c, features in feature_rows.c; deliveries,
 * with their own diagram, are in delivery_rows.c, runs of programs in program_rows.h.
 *
 * A series:
 *
 *                       +-----------+ ----settle, a stack accepted---> +---------+
 *     --add_instance--> | GATHERING | <---add_instance, revision + 1-- | SETTLED |
 *                       |           |                                  +---------+
 *                       |           | ----settle, none accepted------> +---------+
 *                       |           | <---add_instance, revision + 1-- | REFUSED |
 *                       +-----------+                                  +---------+
 *
 * add_quarantine of a damaged instance (SETTLED only), and request_complete if a new inspection may
 * end differently, take the same edges as add_instance.
 *
 * A job:
 *
 *                  +-------+ ---start_job, attempts+1---> +---------+ -finish_job-> DONE, EMPTY, REVIEW
 *     --add_job--> | READY | <--return_job, attempts-1--- | RUNNING | -fail_job---> FAILED
 *                  |       | <--recover------------------ |         | -recover----> FAILED
 *                  +-------+                              |         |
 *                      ^      +---------+                 |         |
 *                      +-ready| DELAYED | <--delay_job--- |         |
 *                             +---------+                 +---------+
 *
 *     READY, DELAYED, RUNNING --cancel_job---------------------------> CANCELLED
 *     READY, DELAYED, RUNNING --add_job, of a newer revision, or of
 *                               this one and of other settings-------> CANCELLED (SUPERSEDED)
 *     READY                   --ready, its series has settled anew---> CANCELLED (SUPERSEDED)
 *
 *     FAILED, CANCELLED, DELAYED --retry_job, attempts 0-------------> READY
 *
 * A result that breaks an expectation of its pipeline waits for a person's decision. It is not
 * delivered before (review_rows.c):
 *
 *     REVIEW                  --accept_job---------------------------> DONE, EMPTY (no results)
 *     REVIEW                  --reject_job---------------------------> REJECTED (REVIEW_REJECTED)
 *     REVIEW                  --add_job, of a newer revision---------> REJECTED (SUPERSEDED)
 *     REVIEW                  --finish_job or accept_job, of a later
 *                               one that is DONE or EMPTY then-------> REJECTED (SUPERSEDED)
 *
 * DONE, EMPTY and REJECTED are final: the results exist. The job is run again as another job of the
 * same (series, revision, stack, pipeline), whose end decides which of the two is current:
 *
 *     DONE, EMPTY, current    --finish_job, of a later one that is
 *                               DONE or EMPTY; accept_job of it------> the same, superseded_by
 *     FAILED, CANCELLED,
 *     REJECTED                --add_job, of a later one--------------> the same, superseded_by
 *
 * Each edge is one UPDATE guarded by the state it leaves and one event row, in one transaction.
 *
 * Invariants (queue_check; without NDEBUG after every commit):
 *   1. The counters of a series equal the sums over its instance rows, until its files are removed.
 *      Then there are no rows, and the counters keep the last sums.
 *   2. A SETTLED series has an accepted stack in its revision, a REFUSED one has none.
 *   3. A job's revision is not newer than its series, and its stack was accepted.
 *   4. DONE jobs have results. Jobs that are or were under review may have some, others must not.
 *   5. Jobs that are not DONE, EMPTY, REVIEW or REJECTED have no features.
 *   6. A job under review is not superseded and has no deliveries. superseded_by names a job of the
 *      same series, stack and pipeline, of a newer revision or a later one of the same revision.
 *      Within a revision, a job that ended well is superseded only by one that ended well.
 *   7. The last event that changed a state names the state of the row.
 *   8. A delivery repeats the values of its result's row, while that exists.
 *   9. Instances that a series lacks are not among its instances.
 *  10. Removed files are neither received, nor read by a job, nor sent.
 *  11. A job that waits for programs is tied to no run that has ended without a mask.
 * The schema itself ensures: states agree with their times; one job per lane; one READY, DELAYED or
 * RUNNING job per (series, revision, stack, pipeline); one row per (series, SOP instance), (result,
 * destination) and (job, segment, definition of a feature).
 *
 * A job of an older revision must not start: the files of a series are those of its newest revision. It waits while the
 * series is being received, and is cancelled (SUPERSEDED) when the series is complete again.
 *
 * When a commit fails (full disk, I/O), all of it is rolled back. One case cannot be excluded: the
 * sync of the log failed after its bytes were written, and the machine loses power before the next
 * commit. Then the transaction may exist after the restart. Callers must repeat calls that were not
 * confirmed. That is safe: each call finds the rows that exist already.
 */
#include "db/queue/queue_private.h"

#include "db/filesystem.h"
#include "db/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Statements that undo failures: prepared before they are needed. */
static const char begin_sql[] = "BEGIN IMMEDIATE";
static const char commit_sql[] = "COMMIT";
static const char rollback_sql[] = "ROLLBACK";
static const char savepoint_sql[] = "SAVEPOINT step";
static const char release_sql[] = "RELEASE step";
static const char undo_sql[] = "ROLLBACK TO step";

/* ------------------------------------------------------------------------------- open, close - */

/*
 * synchronous=FULL syncs the log at each commit, so a reply may follow it. SQLite moves the log into the database file
 * at about 4 MiB. A reader with a long transaction delays that; afterwards the log is cut to 16 MiB. PERSIST_WAL keeps
 * the (empty) log and its index when the daemon stops: users who may read but not write the folder can still query.
 */
static int
configure(struct database *db, bool is_new)
{
    static const char settings[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA wal_autocheckpoint = 1000;"
                                   "PRAGMA journal_size_limit = 16777216;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA cache_size = -16384;"
                                   /* purged data must not remain in free pages */
                                   "PRAGMA secure_delete = FAST;"
                                   "PRAGMA trusted_schema = OFF;";
    char mode[16];
    /* Only for a new database: elsewhere it would be a write, and the disk may be full. */
    int rc = is_new ? database_script(db, "PRAGMA auto_vacuum = INCREMENTAL") : 0;
    if (rc == 0)
        rc = database_text(db, "PRAGMA journal_mode = WAL", mode, sizeof mode);
    if (rc == 0 && strcmp(mode, "wal") != 0)
        rc = database_refuse(db, -EIO, "the write-ahead log cannot be used here (mode %s)", mode);
    int persist = 1;
    if (rc == 0)
        sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
    return rc == 0 ? database_script(db, settings) : rc;
}

/*
 * Identifies the database before any change. Turns foreign keys on last: a migration may have to
 * rebuild a table that others refer to.
 */
static int
set_up(struct database *db)
{
    int version;
    sqlite3_busy_timeout(db->handle, DATABASE_BUSY_MILLIS);
    int rc = migrate_identify(db, &version);
    if (rc == 0)
        rc = configure(db, version == 0);
    if (rc == 0)
        rc = migrate(db);
    if (rc == 0)
        rc = database_script(db, "PRAGMA foreign_keys = ON");
    const char *const statements[] = {begin_sql, commit_sql, rollback_sql, savepoint_sql, release_sql, undo_sql};
    for (size_t i = 0; rc == 0 && i < sizeof statements / sizeof *statements; i++)
        rc = database_prepare(db, statements[i]);
    return rc;
}

int
queue_open(const char *path, struct queue **queue, struct error *error)
{
    const char *system;
    int rc = filesystem_check(path, &system);
    if (rc == -EREMOTE)
        error_set(error, rc, CODE_NONE,
                  "%s lies on a network file system (%s), where SQLite databases get damaged; put "
                  "the root on a local disk",
                  path, system);
    else if (rc < 0)
        error_set(error, rc, CODE_NONE, "%s: %s", path, strerror(-rc));
    if (rc < 0)
        return rc;

    struct queue *q = calloc(1, sizeof *q);
    if (!q) {
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    rc = database_open(&q->db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (rc == 0)
        rc = set_up(&q->db);
    if (rc < 0) {
        error_set(error, rc, CODE_NONE, "%s: %s", path, q->db.reason);
        database_close(&q->db);
        free(q);
        return rc;
    }
    *queue = q;
    return 0;
}

bool
queue_is_empty(const char *path)
{
    struct database db = {0};
    int version = 1;
    int rc = database_open(&db, path, SQLITE_OPEN_READWRITE);
    if (rc == 0)
        rc = migrate_identify(&db, &version);
    database_close(&db);
    return rc == 0 && version == 0;
}

void
queue_close(struct queue *queue)
{
    if (!queue)
        return;
    queue_rollback(queue);
    database_close(&queue->db);
    free(queue);
}

int
queue_open_for_writing(struct queue *queue, const char *path)
{
    struct queue *fresh;
    struct error error;
    if (!queue->db.damaged && !sqlite3_db_readonly(queue->db.handle, "main"))
        return 0;
    if (access(path, W_OK) != 0)
        return -errno;
    /* Connections of one process share the state that decides whether the -shm file can be written. */
    database_close(&queue->db);
    int rc = queue_open(path, &fresh, &error);
    if (rc == 0) {
        *queue = *fresh;
        free(fresh);
    }
    return rc;
}

const char *
queue_reason(const struct queue *queue)
{
    return queue->db.reason;
}

/* ------------------------------------------------------------------------------ transactions - */

/* Ends the open transaction: the whole of it is on disk, or it is undone. */
static int
queue_commit_outermost(struct queue *queue)
{
    int rc = database_change(&queue->db, commit_sql, NO_VALUES);
    if (rc < 0) {
        if (!sqlite3_get_autocommit(queue->db.handle))
            database_quietly(&queue->db, rollback_sql);
        return rc;
    }
#ifndef NDEBUG
    struct error error;
    /* Damage that SQLite finds is not a broken invariant. */
    if (queue_check(queue, &error) == -EUCLEAN && sqlite3_errcode(queue->db.handle) != SQLITE_CORRUPT) {
        fprintf(stderr, "queue_check: %s\n", error.message);
        abort();
    }
#endif
    return 0;
}

static int
say_lost(struct queue *queue)
{
    return database_refuse(&queue->db, queue->lost, "the open transaction was rolled back after an earlier failure: %s",
                           strerror(-queue->lost));
}

int
queue_begin(struct queue *queue)
{
    if (queue->group != QUEUE_ALONE)
        return database_refuse(&queue->db, -EALREADY, "a transaction is open already");
    int rc = database_change(&queue->db, begin_sql, NO_VALUES);
    if (rc < 0)
        return rc;
    queue->group = QUEUE_GROUPED;
    return 0;
}

int
queue_commit(struct queue *queue)
{
    if (queue->group == QUEUE_ALONE)
        return database_refuse(&queue->db, -EINVAL, "no transaction is open");
    int rc = queue->group == QUEUE_GROUP_LOST ? say_lost(queue) : queue_commit_outermost(queue);
    queue->group = QUEUE_ALONE;
    return rc;
}

void
queue_rollback(struct queue *queue)
{
    if (!sqlite3_get_autocommit(queue->db.handle))
        database_quietly(&queue->db, rollback_sql);
    queue->group = QUEUE_ALONE;
}

int
queue_enter(struct queue *queue)
{
    if (queue->group == QUEUE_GROUP_LOST)
        return say_lost(queue);
    return database_run(&queue->db, queue->group == QUEUE_GROUPED ? savepoint_sql : begin_sql, NO_VALUES);
}

int
queue_leave(struct queue *queue, int rc)
{
    if (rc == 0 && queue->group == QUEUE_ALONE)
        return queue_commit_outermost(queue);
    if (rc == 0) {
        rc = database_change(&queue->db, release_sql, NO_VALUES);
        if (rc >= 0)
            return 0;
    }
    const bool is_open = !sqlite3_get_autocommit(queue->db.handle);
    if (queue->group != QUEUE_GROUPED) {
        if (is_open)
            database_quietly(&queue->db, rollback_sql);
    } else if (!is_open || !database_quietly(&queue->db, undo_sql) || !database_quietly(&queue->db, release_sql)) {
        /*
         * SQLite may have rolled back more than the step. The results of earlier steps are then
         * void, and the commit must fail.
         */
        queue_rollback(queue);
        queue->group = QUEUE_GROUP_LOST;
        queue->lost = rc;
    }
    return rc;
}

int
queue_change(struct queue *queue, const char *sql, const struct database_value *values, size_t count)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, database_run(&queue->db, sql, values, count));
}

/* -------------------------------------------------------------------------------------- rows - */

int
queue_read_row(struct queue *queue, const char *sql, const struct database_value *values, size_t count,
               const struct database_shape *shape, void *row)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db, sql, values, count, &statement);
    if (rc < 0)
        return rc;
    rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = database_read_row(&queue->db, statement, shape, row);
    else if (rc == 0)
        rc = 1;
    database_end(statement);
    return rc;
}

int
queue_append_rows(struct queue *queue, const char *sql, const struct database_value *values, size_t count,
                  struct queue_rows *rows)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db, sql, values, count, &statement);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&queue->db, statement)) == 1) {
        if (rows->count == rows->capacity) {
            size_t capacity = rows->capacity ? 2 * rows->capacity : 16;
            void *grown = realloc(rows->at, capacity * rows->shape->size);
            if (!grown) {
                rc = database_refuse(&queue->db, -ENOMEM, "out of memory");
                break;
            }
            rows->at = grown;
            rows->capacity = capacity;
        }
        rc = database_read_row(&queue->db, statement, rows->shape, (char *)rows->at + rows->count * rows->shape->size);
        if (rc < 0)
            break;
        rows->count++;
    }
    database_end(statement);
    return rc;
}

int
queue_settle_rows(struct queue_rows *rows, int rc, void *array, size_t *count)
{
    if (rc < 0) {
        database_free_rows(rows->shape, rows->at, rows->count);
        rows->at = NULL;
        rows->count = 0;
    }
    memcpy(array, &rows->at, sizeof rows->at);
    *count = rows->count;
    return rc;
}

int
queue_list(struct queue *queue, const char *sql, const struct database_value *values, size_t value_count,
           const struct database_shape *shape, void *array, size_t *count)
{
    struct queue_rows rows = {.shape = shape};
    int rc = queue_append_rows(queue, sql, values, value_count, &rows);
    return queue_settle_rows(&rows, rc, array, count);
}

struct database_value
queue_row_limit(size_t limit)
{
    return value_int(limit > INT32_MAX ? INT32_MAX : (int64_t)limit);
}

/* ------------------------------------------------------------------------------------ events - */

/* The detail of a delivery's event begins with its destination. */
int
queue_add_event(struct queue *queue, const struct queue_event *event, int64_t now_ms)
{
    return database_run(&queue->db,
                        "INSERT INTO event (at, kind, series_id, job_id, delivery_id, from_state, to_state, "
                        "detail, program_run_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce((SELECT destination || "
                        "iif(?8 = '', '', ', ') FROM delivery WHERE id = ?5), '') || ?8, ?9)",
                        VALUES(value_time(now_ms), value_text(event->kind), value_id(event->series_id),
                               value_id(event->job_id), value_id(event->delivery_id), value_optional(event->from_state),
                               value_optional(event->to_state), value_text(event->detail), value_id(event->run_id)));
}

int
queue_note(struct queue *queue, const char *kind, const char *detail, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    struct queue_event event = {.kind = kind, .detail = detail};
    return queue_leave(queue, queue_add_event(queue, &event, now_ms));
}

/* -------------------------------------------------------------------------------- invariants - */

/* Each query returns the ids of rows that break an invariant; none in a sound database. */
static const struct {
    const char *thing, *offence, *offenders;
} rules[] = {
    {"series", "its counters differ from the sums over its instances",
     "SELECT s.id FROM series s "
     "LEFT JOIN (SELECT series_id, count(*) AS n, sum(frames) AS f, sum(missing) AS m "
     "           FROM instance GROUP BY series_id) i ON i.series_id = s.id "
     "WHERE iif(s.removed_at IS NULL, s.instances <> coalesce(i.n, 0) "
     "   OR s.frames <> coalesce(i.f, 0) OR s.missing_files <> coalesce(i.m, 0), i.n > 0)"},
    {"series", "its files are removed, and it gathers or has a job to do",
     "SELECT s.id FROM series s WHERE s.removed_at IS NOT NULL AND (s.state = 'GATHERING' "
     "OR EXISTS (SELECT 1 FROM job WHERE series_id = s.id "
     "   AND state IN ('READY', 'RUNNING', 'DELAYED')))"},
    {"delivery", "its result is removed, and it is to be sent",
     "SELECT d.id FROM delivery d JOIN job j ON j.id = d.job_id WHERE j.removed_at IS NOT NULL "
     "AND d.state IN ('PENDING', 'SENDING', 'DELAYED', 'REVIEW')"},
    {"series", "its state does not follow from its stacks",
     "SELECT id FROM series s WHERE state <> 'GATHERING' AND (state = 'SETTLED') <> "
     "EXISTS (SELECT 1 FROM stack WHERE series_id = s.id AND revision = s.revision AND accepted)"},
    {"job", "it is ahead of its series, or its stack was refused",
     "SELECT j.id FROM job j JOIN series s ON s.id = j.series_id "
     "JOIN stack k ON k.series_id = j.series_id AND k.revision = j.revision AND k.name = j.stack "
     "WHERE j.revision > s.revision OR NOT k.accepted"},
    {"job", "it has results and is not DONE, or is DONE and has none",
     "SELECT id FROM job j WHERE state NOT IN ('REVIEW', 'REJECTED') AND (state = 'DONE') <> "
     "EXISTS (SELECT 1 FROM result WHERE job_id = j.id)"},
    {"job", "it is under review, or was rejected, and is delivered, or is superseded meanwhile",
     "SELECT id FROM job j WHERE state = 'REVIEW' AND superseded_by IS NOT NULL "
     "OR state IN ('REVIEW', 'REJECTED') AND EXISTS (SELECT 1 FROM delivery WHERE job_id = j.id)"},
    {"job", "it has features or segments and has not ended well",
     "SELECT id FROM job j WHERE state NOT IN ('DONE', 'EMPTY', 'REVIEW', 'REJECTED') "
     "AND (EXISTS (SELECT 1 FROM feature WHERE job_id = j.id) "
     "  OR EXISTS (SELECT 1 FROM pattern_histogram WHERE job_id = j.id) "
     "  OR EXISTS (SELECT 1 FROM segment WHERE job_id = j.id) "
     "  OR EXISTS (SELECT 1 FROM breach WHERE job_id = j.id))"},
    {"job", "it is superseded by one that does not succeed it",
     "SELECT j.id FROM job j JOIN job n ON n.id = j.superseded_by "
     "WHERE n.series_id <> j.series_id OR n.stack <> j.stack OR n.pipeline <> j.pipeline "
     "   OR n.revision < j.revision OR n.revision = j.revision AND (n.id <= j.id "
     "   OR j.state IN ('DONE', 'EMPTY') AND n.state NOT IN ('DONE', 'EMPTY'))"},
    {"job", "its last event names another state",
     "SELECT id FROM job j WHERE state IS NOT "
     "(SELECT to_state FROM event WHERE job_id = j.id AND delivery_id IS NULL "
     " AND to_state IS NOT NULL ORDER BY id DESC LIMIT 1)"},
    {"series", "its last event names another state",
     "SELECT id FROM series s WHERE state IS NOT "
     "(SELECT to_state FROM event WHERE series_id = s.id AND job_id IS NULL "
     " AND program_run_id IS NULL AND to_state IS NOT NULL ORDER BY id DESC LIMIT 1)"},
    {"delivery", "it is not of the result that it names",
     "SELECT d.id FROM delivery d JOIN result r ON r.id = d.result_id "
     "WHERE r.job_id <> d.job_id OR r.path <> d.path OR r.sop_instance_uid <> d.sop_instance_uid "
     "   OR r.sop_class_uid <> d.sop_class_uid OR r.kind <> d.kind"},
    {"quarantine", "its series has the instance that it lacks",
     "SELECT q.id FROM quarantine q JOIN series s ON s.series_uid = q.series_uid "
     "JOIN instance i ON i.series_id = s.id AND i.sop_instance_uid = q.sop_instance_uid WHERE q.lacking"},
    {"job", "it waits for a run that has ended without a mask",
     "SELECT j.id FROM job j JOIN job_mask m ON m.job_id = j.id JOIN program_run r ON r.id = m.run_id "
     "WHERE j.state = 'DELAYED' AND j.code = 'PROGRAM_WAITING' "
     "AND (r.state IN ('FAILED', 'CANCELLED') OR r.superseded_by IS NOT NULL)"},
    {"run", "its series is removed, and its files are not, or it runs",
     "SELECT r.id FROM program_run r JOIN series s ON s.id = r.series_id WHERE s.removed_at IS NOT NULL "
     "AND (r.removed_at IS NULL OR r.state = 'RUNNING')"},
    {"run", "its last event names another state",
     "SELECT id FROM program_run r WHERE state IS NOT "
     "(SELECT to_state FROM event WHERE program_run_id = r.id AND to_state IS NOT NULL "
     " ORDER BY id DESC LIMIT 1)"},
    {"delivery", "its last event names another state",
     "SELECT id FROM delivery d WHERE state IS NOT "
     "(SELECT to_state FROM event WHERE delivery_id = d.id AND to_state IS NOT NULL "
     " ORDER BY id DESC LIMIT 1)"},
};

int
queue_check(struct queue *queue, struct error *error)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        int64_t id;
        int rc = database_get(&queue->db, rules[i].offenders, NO_VALUES, &id);
        if (rc < 0) {
            return error_set(error, rc, CODE_NONE, "%s", queue->db.reason);
        }
        if (rc == 1) {
            return error_set(error, -EUCLEAN, CODE_NONE, "%s %lld: %s", rules[i].thing, (long long)id,
                             rules[i].offence);
        }
    }
    return 0;
}
