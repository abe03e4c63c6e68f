/*
 * quarantine_rows.c - quarantined files, and the instances that their series lack.
 *
 * A row is `lacking` from the arrival of a damaged file of a series until a good file of the same
 * SOP instance arrives. A complete series without it is inspected again.
 */
#include "db/queue/retention_marks.h"

#include <errno.h>
#include <stdio.h>

/*
 * Returns whether the code stands for an instance that the series must have. Other files are of
 * another kind, are stored already, or cannot be identified.
 */
static bool
is_damage(enum code code)
{
    switch (code) {
    case CODE_FILE_UNREADABLE:
    case CODE_FILE_TRUNCATED:
    case CODE_TAG_MISSING:
    case CODE_TAG_INVALID:
    case CODE_UID_INVALID:
    case CODE_TRANSFER_SYNTAX_UNSUPPORTED:
    case CODE_PIXELS_UNDECODABLE:
    case CODE_SIZE_IMPLAUSIBLE:
    case CODE_COMMAND_MISMATCH:
    case CODE_NOT_RECEIVED:
        return true;
    default:
        return false;
    }
}

/* Returns 1 if its series lacks it. */
static int
is_lacking(struct queue *queue, const struct queue_quarantine *file, const struct series_row *row)
{
    int64_t there = 0;
    if (!file->series_uid || !*file->series_uid || !is_damage(file->code))
        return 0;
    int rc = database_get(&queue->db, "SELECT 1 FROM instance WHERE series_id = ? AND sop_instance_uid = ?",
                          VALUES(value_int(row->id), value_text(file->sop_instance_uid)), &there);
    return rc < 0 ? rc : !there;
}

static int
quarantine_store(struct queue *queue, const struct queue_quarantine *file, int lacking, int64_t now_ms)
{
    int64_t id = 0;
    int rc = 0;
    if (file->released != 0)
        rc = database_get(&queue->db, "SELECT id FROM quarantine WHERE id = ?", VALUES(value_int(file->released)), &id);
    if (rc < 0)
        return rc;
    if (rc == 1) /* released and refused again. Returns 0 if it was reported before */
        return database_change(&queue->db,
                               "UPDATE quarantine SET path = ?2, series_uid = ?3, sop_instance_uid = ?4, code = ?5, "
                               "message = ?6, lacking = ?7, quarantined_at = ?8, removed_at = NULL WHERE id = ?1 "
                               "AND (removed_at IS NOT NULL OR path <> ?2)",
                               VALUES(value_int(file->released), value_text(file->path), value_text(file->series_uid),
                                      value_text(file->sop_instance_uid), value_text(code_name(file->code)),
                                      value_text(file->message), value_int(lacking), value_time(now_ms)));
    return database_change(&queue->db,
                           "INSERT INTO quarantine (path, original_path, series_uid, sop_instance_uid, code, message, "
                           "lacking, quarantined_at, called_ae) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
                           "ON CONFLICT DO UPDATE "
                           "SET removed_at = NULL, quarantined_at = ?8 WHERE removed_at IS NOT NULL",
                           VALUES(value_text(file->path), value_text(file->original_path), value_text(file->series_uid),
                                  value_text(file->sop_instance_uid), value_text(code_name(file->code)),
                                  value_text(file->message), value_int(lacking), value_time(now_ms),
                                  value_text(file->called_ae ? file->called_ae : "")));
}

static int
add_quarantine(struct queue *queue, const struct queue_quarantine *file, int64_t now_ms)
{
    struct series_row row = {0};
    const int absent = queue_read_series(queue, file->series_uid, &row);
    const int lacking = absent < 0 ? absent : is_lacking(queue, file, &row);
    int rc = lacking < 0 ? lacking : quarantine_store(queue, file, lacking, now_ms);
    if (rc <= 0)
        return rc; /* reported before */
    rc = database_run(&queue->db, "DELETE FROM removal WHERE path IN (?1, ?1 || '.reason.json')",
                      VALUES(value_text(file->path)));
    if (rc < 0)
        return rc;
    char detail[512];
    snprintf(detail, sizeof detail, "%s: %s", code_name(file->code), file->path);
    struct queue_event event = {.kind = "QUARANTINED", .series_id = row.id, .detail = detail};
    rc = queue_add_event(queue, &event, now_ms);
    if (rc == 0 && !absent && file->code == CODE_DUPLICATE_UID_DIFFERENT)
        rc = database_run(&queue->db, "UPDATE series SET duplicate_conflicts = duplicate_conflicts + 1 WHERE id = ?",
                          VALUES(value_int(row.id)));
    if (rc == 0 && !absent && lacking) {
        /* Counts as an arrival; a series that was complete is inspected again. */
        rc = database_run(&queue->db, "UPDATE series SET last_seen_at = ?2 WHERE id = ?1",
                          VALUES(value_int(row.id), value_time(now_ms)));
        if (rc == 0 && row.state == SERIES_SETTLED && !row.removed)
            rc = queue_reopen_series(queue, &row, "INSTANCE", "a damaged instance", now_ms);
    }
    return rc;
}

int
queue_add_quarantine(struct queue *queue, const struct queue_quarantine *file, int64_t now_ms)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, add_quarantine(queue, file, now_ms));
}

int
queue_has_quarantine(struct queue *queue, const char *path)
{
    int64_t id;
    return database_get(&queue->db,
                        "SELECT id FROM quarantine WHERE path = ?1 UNION ALL "
                        "SELECT id FROM removal WHERE path = ?1 LIMIT 1",
                        VALUES(value_text(path)), &id);
}

/* ------------------------------------------------------------------------- release, forget ---- */

#define RELEASED_FIELDS(FIELD)                                                                                         \
    FIELD(TEXT, path, "path")                                                                                          \
    FIELD(TEXT, original_path, "original_path")                                                                        \
    FIELD(TEXT, called_ae, "called_ae")                                                                                \
    FIELD(TEXT, code, "code")                                                                                          \
    FIELD(BOOL, removed, "removed_at IS NOT NULL")
#define RELEASED_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_released, member)},

static const struct database_shape released_shape =
    DATABASE_SHAPE("quarantine", struct queue_released, RELEASED_FIELDS(RELEASED_FIELD));

int
queue_find_released(struct queue *queue, int64_t id, struct queue_released *released)
{
    *released = (struct queue_released){0};
    int rc = queue_read_row(queue, "SELECT " RELEASED_FIELDS(DATABASE_COLUMN) "NULL FROM quarantine WHERE id = ?",
                            VALUES(value_int(id)), &released_shape, released);
    return rc == 1 ? database_refuse(&queue->db, -ENOENT, "there is no quarantined file %lld", (long long)id) : rc;
}

DATABASE_CLEAR(queue_released_clear, queue_released, released_shape)

/* Adds an event of the file's series, if it is known: "12 (NOT_DICOM) by root". */
static int
quarantine_note(struct queue *queue, const char *kind, int64_t id, const char *code, const char *by, int64_t now_ms)
{
    char detail[256];
    int64_t series_id = 0;
    int rc = database_get(&queue->db,
                          "SELECT s.id FROM quarantine q JOIN series s ON s.series_uid = q.series_uid WHERE q.id = ?",
                          VALUES(value_int(id)), &series_id);
    if (rc < 0)
        return rc;
    snprintf(detail, sizeof detail, "%lld (%s) by %s", (long long)id, code, by);
    const struct queue_event event = {.kind = kind, .series_id = series_id, .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

/* Marks the file for removal, if it was kept and is still there. */
static int
quarantine_mark_file(struct queue *queue, int64_t id, const struct queue_released *released, int64_t now_ms)
{
    return released->removed || !*released->path ? 0
                                                 : stock_mark_quarantine(queue, &(struct queue_sweep){0}, id, now_ms);
}

int
queue_release_quarantine(struct queue *queue, int64_t id, const char *by, int64_t now_ms)
{
    struct queue_released released;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_find_released(queue, id, &released);
    if (rc == 0 && (released.removed || !*released.path) && by)
        rc = database_refuse(&queue->db, -EINVAL, "the file of %lld is not in quarantine any more", (long long)id);
    if (rc == 0 && by)
        rc = quarantine_note(queue, "QUARANTINE_RELEASED", id, released.code, by, now_ms);
    if (rc == 0)
        rc = quarantine_mark_file(queue, id, &released, now_ms);
    queue_released_clear(&released);
    return queue_leave(queue, rc);
}

int
queue_forget_quarantine(struct queue *queue, int64_t id, const char *by, int64_t now_ms)
{
    struct queue_released released;
    int64_t series;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_find_released(queue, id, &released);
    if (rc == 0)
        rc = database_get(&queue->db,
                          "SELECT s.id FROM quarantine q JOIN series s ON s.series_uid = "
                          "q.series_uid WHERE q.id = ? AND q.lacking AND s.removed_at IS NULL "
                          "AND s.missing_accepted_by = ''",
                          VALUES(value_int(id)), &series);
    if (rc == 1)
        rc = database_refuse(&queue->db, -EPERM,
                             "the series lacks the instance of file %lld: send it again, take the "
                             "series without it (noctule complete --accept-missing), or purge the series",
                             (long long)id);
    if (rc == 0)
        rc = quarantine_note(queue, "QUARANTINE_FORGOTTEN", id, released.code, by, now_ms);
    if (rc == 0)
        rc = quarantine_mark_file(queue, id, &released, now_ms);
    if (rc == 0)
        rc = database_run(&queue->db, "DELETE FROM quarantine WHERE id = ?", VALUES(value_int(id)));
    queue_released_clear(&released);
    return queue_leave(queue, rc);
}

/* -------------------------------------------------------------------------------- reasons ---- */

struct reason {
    char *code, *message, *original_path, *series_uid, *sop_instance_uid;
};

#define REASON_FIELD(member)                                                                                           \
    {                                                                                                                  \
        DATABASE_TEXT, offsetof(struct reason, member)                                                                 \
    }
#define REASON_COLUMN(member) "json_extract(text, '$." #member "'), "

static const struct database_shape reason_shape =
    DATABASE_SHAPE("reason", struct reason, REASON_FIELD(code), REASON_FIELD(message), REASON_FIELD(original_path),
                   REASON_FIELD(series_uid), REASON_FIELD(sop_instance_uid));

int
queue_adopt_quarantine(struct queue *queue, const char *path, const char *text, int64_t now_ms)
{
    struct reason reason = {0};
    int rc = queue_read_row(queue,
                            "SELECT " REASON_COLUMN(code) REASON_COLUMN(message) REASON_COLUMN(original_path)
                                REASON_COLUMN(series_uid)
                                    REASON_COLUMN(sop_instance_uid) "NULL FROM (SELECT CASE WHEN json_valid(?1) THEN "
                                                                    "?1 ELSE '{}' END AS text)",
                            VALUES(value_text(text)), &reason_shape, &reason);
    if (rc < 0)
        return rc;
    const enum code code = code_find(reason.code);
    const struct queue_quarantine file = {
        .path = path,
        .original_path = reason.original_path,
        .series_uid = reason.series_uid,
        .sop_instance_uid = reason.sop_instance_uid,
        .code = code ? code : CODE_FILE_UNREADABLE,
        .message = code ? reason.message
                        : "The service was stopped before it had noted why it refused this file. Send it again."};
    rc = queue_add_quarantine(queue, &file, now_ms);
    database_clear_row(&reason_shape, &reason);
    return rc;
}

/* --------------------------------------------------------------------------------- lacking ---- */

int
queue_cure(struct queue *queue, const char *series_uid, const char *sop_instance_uid)
{
    return database_run(&queue->db,
                        "UPDATE quarantine SET lacking = 0 "
                        "WHERE series_uid = ? AND sop_instance_uid = ? AND lacking",
                        VALUES(value_text(series_uid), value_text(sop_instance_uid)));
}

#define LACKING_FIELDS(FIELD)                                                                                          \
    FIELD(INT64, count, "count(*) OVER ()")                                                                            \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(TEXT, path, "path")                                                                                          \
    FIELD(TEXT, sop_instance_uid, "sop_instance_uid")                                                                  \
    FIELD(TEXT, code, "code")                                                                                          \
    FIELD(TEXT, message, "message")
#define LACKING_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_lacking, member)},

static const struct database_shape lacking_shape =
    DATABASE_SHAPE("quarantine", struct queue_lacking, LACKING_FIELDS(LACKING_FIELD));

int
queue_find_lacking(struct queue *queue, const char *series_uid, struct queue_lacking *lacking)
{
    *lacking = (struct queue_lacking){0};
    int rc =
        queue_read_row(queue,
                       "SELECT " LACKING_FIELDS(DATABASE_COLUMN) "NULL FROM quarantine "
                                                                 "WHERE series_uid = ? AND lacking ORDER BY id LIMIT 1",
                       VALUES(value_text(series_uid)), &lacking_shape, lacking);
    return rc == 1 ? 0 : rc;
}

DATABASE_CLEAR(queue_lacking_clear, queue_lacking, lacking_shape)
