/* series_rows.c - instances, series, stacks: the edges of a series (see transaction.c). */
#include "db/queue/edges.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------- instances -- */

const char *const queue_series_states[] = {"GATHERING", "SETTLED", "REFUSED"};

static const struct database_shape series_row_shape =
    DATABASE_SHAPE("series", struct series_row, {DATABASE_INT64, offsetof(struct series_row, id)},
                   {DATABASE_INT32, offsetof(struct series_row, revision)},
                   {DATABASE_NAME(queue_series_states), offsetof(struct series_row, state)},
                   {DATABASE_BOOL, offsetof(struct series_row, removed)});

int
queue_read_series(struct queue *queue, const char *series_uid, struct series_row *row)
{
    return queue_read_row(queue, "SELECT id, revision, state, removed_at IS NOT NULL FROM series WHERE series_uid = ?",
                          VALUES(value_text(series_uid)), &series_row_shape, row);
}

/* Stores all fields of series_about.def. */
static int
set_series_about(struct queue *queue, int64_t series_id, const struct series_about *about)
{
    static const char update[] = "UPDATE series SET "
#define ABOUT(name, keyword, identifies) #name " = ?, "
#include "base/series_about.def"
                                 "id = id WHERE id = ?"; /* id = id: after the last comma */
    if (!about)
        return 0;
    const struct database_value values[] = {
#define ABOUT(name, keyword, identifies) value_text(about->name),
#include "base/series_about.def"
        value_int(series_id)};
    return database_run(&queue->db, update, values, sizeof values / sizeof *values);
}

static int
insert_series(struct queue *queue, const struct queue_instance *instance, int64_t now_ms, struct series_row *row)
{
    int rc = database_change(&queue->db,
                             "INSERT INTO series (series_uid, study_uid, modality, body_part, description, state, "
                             "revision, instances, frames, expected_instances, first_seen_at, last_seen_at, "
                             "frame_of_reference) "
                             "VALUES (?1, ?2, ?3, ?4, ?5, 'GATHERING', 1, 0, 0, 0, ?6, ?6, ?7)",
                             VALUES(value_text(instance->series_uid), value_text(instance->study_uid),
                                    value_text(instance->modality), value_text(instance->body_part),
                                    value_text(instance->series_description), value_time(now_ms),
                                    value_text(instance->frame_of_reference)));
    if (rc < 0)
        return rc;
    *row = (struct series_row){.id = sqlite3_last_insert_rowid(queue->db.handle), .revision = 1};
    rc = set_series_about(queue, row->id, instance->about);
    if (rc < 0)
        return rc;
    struct queue_event event = {.kind = "INSTANCE",
                                .series_id = row->id,
                                .to_state = "GATHERING",
                                .detail = "the first instance of a new series"};
    return queue_add_event(queue, &event, now_ms);
}

int
queue_reopen_series(struct queue *queue, struct series_row *row, const char *kind, const char *why, int64_t now_ms)
{
    int rc =
        database_run(&queue->db,
                     "UPDATE series SET state = 'GATHERING', revision = revision + 1, settled_at = NULL, "
                     "evidence = '', code = '', message = '', missing_accepted_by = '', "
                     "instances = iif(removed_at IS NULL, instances, 0), "
                     "frames = iif(removed_at IS NULL, frames, 0), "
                     "missing_files = iif(removed_at IS NULL, missing_files, 0), "
                     "expected_instances = iif(removed_at IS NULL, expected_instances, 0), removed_at = NULL "
                     "WHERE id = ? AND state = ? AND revision = ?",
                     VALUES(value_int(row->id), value_text(queue_series_states[row->state]), value_int(row->revision)));
    if (rc == 0 && row->removed) /* the new files must not be removed after the old ones */
        rc = database_run(&queue->db,
                          "DELETE FROM removal WHERE path = (SELECT 'series/' || series_uid FROM series WHERE id = ?)",
                          VALUES(value_int(row->id)));
    if (rc < 0)
        return rc;
    row->removed = false;
    row->revision++;
    char detail[160];
    snprintf(detail, sizeof detail, "%s: revision %d", why, row->revision);
    struct queue_event event = {.kind = kind,
                                .series_id = row->id,
                                .from_state = queue_series_states[row->state],
                                .to_state = "GATHERING",
                                .detail = detail};
    row->state = SERIES_GATHERING;
    return queue_add_event(queue, &event, now_ms);
}

int
queue_revise_series(struct queue *queue, int64_t series_id, const char *why, int64_t now_ms)
{
    struct series_row row;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_read_row(queue, "SELECT id, revision, state, removed_at IS NOT NULL FROM series WHERE id = ?",
                        VALUES(value_int(series_id)), &series_row_shape, &row);
    const bool revises = rc == 0 && row.state == SERIES_SETTLED && !row.removed;
    if (revises)
        rc = database_run(&queue->db, "UPDATE series SET last_seen_at = ?2 WHERE id = ?1",
                          VALUES(value_int(series_id), value_time(now_ms)));
    if (revises && rc == 0)
        rc = queue_reopen_series(queue, &row, "OBJECT", why, now_ms);
    rc = queue_leave(queue, rc < 0 ? rc : 0);
    return rc < 0 ? rc : !revises;
}

static int
insert_instance(struct queue *queue, const struct queue_instance *instance, const struct series_row *row,
                int64_t now_ms)
{
    int rc =
        database_change(&queue->db,
                        "INSERT INTO instance (series_id, revision, sop_instance_uid, sop_class_uid, "
                        "transfer_syntax_uid, path, source, size_bytes, frames, received_at, replaced, "
                        "original_path, sha256) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        VALUES(value_int(row->id), value_int(row->revision), value_text(instance->sop_instance_uid),
                               value_text(instance->sop_class_uid), value_text(instance->transfer_syntax_uid),
                               value_text(instance->path), value_text(instance->source), value_int(instance->size),
                               value_int(instance->frames), value_time(now_ms), value_int(instance->replaced),
                               value_text(instance->original_path), value_text(instance->sha256)));
    if (rc < 0)
        return rc;
    return database_run(&queue->db,
                        "UPDATE series SET instances = instances + 1, frames = frames + ?2, "
                        "expected_instances = max(expected_instances, ?3), last_seen_at = ?4, "
                        "called_ae = iif(sender = '', ?5, called_ae), "
                        "sender = iif(sender = '', ?6, sender) WHERE id = ?1",
                        VALUES(value_int(row->id), value_int(instance->frames), value_int(instance->expected_instances),
                               value_time(now_ms), value_text(instance->called_ae), value_text(instance->sender)));
}

/* Notes that the file of a known instance arrived again. Returns 1 if it was missing. */
static int
bring_back(struct queue *queue, struct series_row *row, int64_t instance_id, int64_t now_ms)
{
    int rc = database_change(&queue->db, "UPDATE instance SET missing = 0 WHERE id = ? AND missing",
                             VALUES(value_int(instance_id)));
    if (rc <= 0)
        return rc;
    rc = database_change(&queue->db,
                         "UPDATE series SET missing_files = missing_files - 1, last_seen_at = ?2 WHERE id = ?1",
                         VALUES(value_int(row->id), value_time(now_ms)));
    if (rc < 0)
        return rc;
    /* The missing file may be the reason for a refusal or for missing results. */
    int64_t found;
    rc = row->state == SERIES_REFUSED;
    if (row->state == SERIES_SETTLED)
        rc = database_get(&queue->db, "SELECT 1 FROM job WHERE series_id = ? AND revision = ? AND state = 'FAILED'",
                          VALUES(value_int(row->id), value_int(row->revision)), &found);
    if (rc == 1)
        rc = queue_reopen_series(queue, row, "INSTANCE", "a missing file returned", now_ms);
    return rc < 0 ? rc : 1;
}

/* Returns whether the file was found at a restart, not received. */
static bool
is_recovered(const struct queue_instance *instance)
{
    return instance->source && strcmp(instance->source, QUEUE_SOURCE_RECOVERED) == 0;
}

static int
replace_instance(struct queue *queue, const struct queue_instance *instance, struct series_row *row,
                 int64_t instance_id, int64_t now_ms)
{
    /* Attributes of the series come from its corrected instances. */
    int rc =
        database_run(&queue->db,
                     "UPDATE series SET study_uid = ?2, modality = ?3, body_part = ?4, description = ?5, "
                     "frames = series.frames + ?6 - i.frames, missing_files = missing_files - i.missing, "
                     "expected_instances = max(expected_instances, ?7), last_seen_at = ?8 "
                     "FROM instance i WHERE i.id = ?1 AND series.id = i.series_id",
                     VALUES(value_int(instance_id), value_text(instance->study_uid), value_text(instance->modality),
                            value_text(instance->body_part), value_text(instance->series_description),
                            value_int(instance->frames), value_int(instance->expected_instances), value_time(now_ms)));
    if (rc == 0)
        rc = set_series_about(queue, row->id, instance->about);
    if (rc == 0 && row->state != SERIES_GATHERING)
        rc = queue_reopen_series(queue, row, "INSTANCE", "a replaced instance", now_ms);
    if (rc == 0)
        rc = database_run(&queue->db,
                          "UPDATE instance SET revision = ?2, sop_class_uid = ?3, transfer_syntax_uid = ?4, "
                          "path = ?5, source = ?6, size_bytes = ?7, frames = ?8, received_at = ?9, "
                          "replaced = ?10, original_path = ?11, sha256 = ?12, missing = 0 WHERE id = ?1",
                          VALUES(value_int(instance_id), value_int(row->revision), value_text(instance->sop_class_uid),
                                 value_text(instance->transfer_syntax_uid), value_text(instance->path),
                                 value_text(instance->source), value_int(instance->size), value_int(instance->frames),
                                 value_time(now_ms), value_int(instance->replaced), value_text(instance->original_path),
                                 value_text(instance->sha256)));
    struct queue_event event = {
        .kind = "INSTANCE_REPLACED", .series_id = row->id, .detail = instance->sop_instance_uid};
    return rc < 0 ? rc : queue_add_event(queue, &event, now_ms);
}

static int
note_same_file(struct queue *queue, const struct queue_instance *instance, struct series_row *row, int64_t instance_id,
               int64_t now_ms, enum queue_arrival *arrival)
{
    int returned = bring_back(queue, row, instance_id, now_ms);
    if (returned < 0)
        return returned;
    *arrival = returned ? QUEUE_RETURNED : QUEUE_KNOWN;
    /* Completes the source or the original of a known instance. */
    int rc =
        database_run(&queue->db,
                     "UPDATE instance SET source = iif(source = '" QUEUE_SOURCE_RECOVERED "', ?2, source), "
                     "original_path = iif(?3 = '', original_path, ?3) WHERE id = ?1 "
                     "AND (source = '" QUEUE_SOURCE_RECOVERED "' AND source <> ?2 "
                     "  OR ?3 <> '' AND original_path <> ?3)",
                     VALUES(value_int(instance_id), value_text(instance->source), value_text(instance->original_path)));
    const char *const sha256 = instance->sha256 ? instance->sha256 : "";
    if (rc == 0 && (returned || *sha256)) /* a new file may hold the same data set in other bytes */
        rc = database_run(&queue->db, "UPDATE instance SET sha256 = ?2 WHERE id = ?1",
                          VALUES(value_int(instance_id), value_text(sha256)));
    /* A file of another source was sent again; else it is reported again after a restart. */
    int64_t found;
    int resent = returned;
    if (rc == 0 && !returned && !is_recovered(instance))
        resent = database_get(&queue->db, "SELECT 1 FROM instance WHERE id = ? AND source <> ?",
                              VALUES(value_int(instance_id), value_text(instance->source)), &found);
    if (rc < 0 || resent <= 0)
        return rc < 0 ? rc : resent;
    struct queue_event event = {.kind = returned ? "INSTANCE_RETURNED" : "INSTANCE_KNOWN",
                                .series_id = row->id,
                                .detail = instance->sop_instance_uid};
    return queue_add_event(queue, &event, now_ms);
}

/* After a crash both files exist: the replaced one may be reported after the one that replaced it. */
static int
note_known_instance(struct queue *queue, const struct queue_instance *instance, struct series_row *row,
                    int64_t instance_id, int64_t now_ms, enum queue_arrival *arrival)
{
    int64_t newer;
    int rc = database_get(&queue->db, "SELECT ?2 - replaced FROM instance WHERE id = ?1",
                          VALUES(value_int(instance_id), value_int(instance->replaced)), &newer);
    if (rc < 0)
        return rc;
    if (newer == 0)
        return note_same_file(queue, instance, row, instance_id, now_ms, arrival);
    *arrival = newer > 0 ? QUEUE_REPLACED : QUEUE_KNOWN;
    return newer > 0 ? replace_instance(queue, instance, row, instance_id, now_ms) : 0;
}

static int
add_instance(struct queue *queue, const struct queue_instance *instance, int64_t now_ms, enum queue_arrival *arrival,
             int64_t *series_id)
{
    struct series_row row = {0};
    int64_t known = 0;
    int absent = queue_read_series(queue, instance->series_uid, &row);
    if (absent < 0)
        return absent;
    *series_id = row.id;
    *arrival = QUEUE_KNOWN;
    int rc = 0;
    if (is_recovered(instance)) {
        /* It may lie where it must still be removed: no peer sent it again. */
        int64_t to_go = 0;
        rc = database_get(&queue->db, "SELECT count(*) FROM removal WHERE path = 'series/' || ?",
                          VALUES(value_text(instance->series_uid)), &to_go);
        if (rc < 0 || to_go > 0)
            return rc < 0 ? rc : 0;
    }
    if (!absent)
        rc = database_get(&queue->db, "SELECT id FROM instance WHERE series_id = ? AND sop_instance_uid = ?",
                          VALUES(value_int(row.id), value_text(instance->sop_instance_uid)), &known);
    if (rc < 0)
        return rc;
    *arrival = QUEUE_NEW;
    if (known) {
        rc = note_known_instance(queue, instance, &row, known, now_ms, arrival);
    } else {
        if (absent)
            rc = insert_series(queue, instance, now_ms, &row);
        else if (row.state != SERIES_GATHERING)
            rc = queue_reopen_series(queue, &row, "INSTANCE",
                                     row.removed ? "sent again after its files were removed" : "a late instance",
                                     now_ms);
        if (rc >= 0)
            rc = insert_instance(queue, instance, &row, now_ms);
    }
    *series_id = row.id;
    if (rc >= 0)
        rc = queue_keep_in_mind(queue, instance->source, &instance->kept, instance->path);
    return rc < 0 ? rc : queue_cure(queue, instance->series_uid, instance->sop_instance_uid);
}

int
queue_add_instance(struct queue *queue, const struct queue_instance *instance, int64_t now_ms,
                   enum queue_arrival *arrival, int64_t *series_id)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, add_instance(queue, instance, now_ms, arrival, series_id));
}

int
queue_paths(struct queue *queue, const char *after, size_t limit, char ***paths, size_t *count)
{
    return queue_list(queue,
                      "SELECT path FROM instance WHERE path > ?1 AND NOT missing UNION ALL "
                      "SELECT path FROM object WHERE path > ?1 AND NOT missing "
                      "AND removed_at IS NULL ORDER BY path LIMIT ?2",
                      VALUES(value_text(after), queue_row_limit(limit)), &database_string, paths, count);
}

/* Reads in portions, with no statement open meanwhile: the visitor may change the queue. */
int
queue_each_path(struct queue *queue, int (*visit)(void *context, const char *path), void *context)
{
    char *after = strdup("");
    if (!after)
        return database_refuse(&queue->db, -ENOMEM, "out of memory");
    int rc = 0;
    for (size_t count = 1; rc == 0 && count > 0;) {
        char **paths;
        rc = queue_list(queue,
                        "SELECT path FROM instance WHERE path > ?1 UNION ALL "
                        "SELECT path FROM object WHERE path > ?1 AND removed_at IS NULL ORDER BY path LIMIT 256",
                        VALUES(value_text(after)), &database_string, &paths, &count);
        if (rc < 0)
            break;
        for (size_t i = 0; i < count; i++) {
            if (rc == 0)
                rc = visit(context, paths[i]);
            free(after);
            after = paths[i];
        }
        free(paths);
    }
    free(after);
    return rc;
}

int
queue_report_missing(struct queue *queue, const char *path, int64_t now_ms)
{
    int64_t series_id;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc =
        database_get(&queue->db, "SELECT series_id FROM instance WHERE path = ?", VALUES(value_text(path)), &series_id);
    if (rc == 0) {
        rc = queue_object_missing(queue, path, now_ms);
        if (rc == 1)
            rc = database_refuse(&queue->db, -ENOENT, "no instance lies at %s", path);
        return queue_leave(queue, rc);
    }
    if (rc > 0)
        rc = database_change(&queue->db, "UPDATE instance SET missing = 1 WHERE path = ? AND NOT missing",
                             VALUES(value_text(path)));
    if (rc > 0) { /* 0: known already, one event is enough */
        const struct queue_event event = {.kind = "INSTANCE_MISSING", .series_id = series_id, .detail = path};
        rc = database_run(&queue->db, "UPDATE series SET missing_files = missing_files + 1 WHERE id = ?",
                          VALUES(value_int(series_id)));
        if (rc == 0)
            rc = queue_add_event(queue, &event, now_ms);
    }
    return queue_leave(queue, rc);
}

/* ----------------------------------------------------------------------------------- series -- */

#define SERIES_INBOX                                                                                                   \
    "coalesce(iif(sender = '', (SELECT substr(source, 7) FROM instance WHERE series_id = "                             \
    "series.id AND source LIKE 'inbox:%' ORDER BY instance.id LIMIT 1), ''), '')"

/* The members of a struct queue_series. */
#define SERIES_FIELDS(FIELD)                                                                                           \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(INT32, revision, "revision")                                                                                 \
    FIELD(TEXT, state, "state")                                                                                        \
    FIELD(TEXT, series_uid, "series_uid")                                                                              \
    FIELD(TEXT, modality, "modality")                                                                                  \
    FIELD(TEXT, body_part, "body_part")                                                                                \
    FIELD(TEXT, description, "description")                                                                            \
    FIELD(TEXT, called_ae, "called_ae")                                                                                \
    FIELD(TEXT, sender, "sender")                                                                                      \
    FIELD(TEXT, inbox, SERIES_INBOX)                                                                                   \
    FIELD(INT32, instances, "instances")                                                                               \
    FIELD(INT32, frames, "frames")                                                                                     \
    FIELD(INT32, expected_instances, "expected_instances")                                                             \
    FIELD(INT32, missing_files, "missing_files")                                                                       \
    FIELD(BOOL, removed, "removed_at IS NOT NULL")                                                                     \
    FIELD(TIME, first_seen_ms, "first_seen_at")                                                                        \
    FIELD(TIME, last_seen_ms, "last_seen_at")                                                                          \
    FIELD(BOOL, complete_requested, "complete_requested")                                                              \
    FIELD(TEXT, missing_accepted_by, "missing_accepted_by")
#define SERIES_COLUMNS                  SERIES_FIELDS(DATABASE_COLUMN) "NULL FROM series "
#define SERIES_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_series, member)},

static const struct database_shape series_shape =
    DATABASE_SHAPE("series", struct queue_series, SERIES_FIELDS(SERIES_FIELD));

DATABASE_CLEAR(queue_series_clear, queue_series, series_shape)

int
queue_gathering(struct queue *queue, struct queue_series **series, size_t *count)
{
    return queue_list(queue, "SELECT " SERIES_COLUMNS "WHERE state = 'GATHERING' ORDER BY last_seen_at, id", NO_VALUES,
                      &series_shape, series, count);
}

#define STACK_FIELDS(FIELD)                                                                                            \
    FIELD(TEXT, name, "k.name")                                                                                        \
    FIELD(BOOL, accepted, "k.accepted")                                                                                \
    FIELD(INT32, planes, "k.planes")                                                                                   \
    FIELD(TEXT, code, "k.code")                                                                                        \
    FIELD(TEXT, message, "k.message")                                                                                  \
    FIELD(TEXT, options, "k.options")
#define STACK_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_stored_stack, member)},

static const struct database_shape stack_shape =
    DATABASE_SHAPE("stack", struct queue_stored_stack, STACK_FIELDS(STACK_FIELD));

DATABASE_CLEAR(queue_stored_stack_clear, queue_stored_stack, stack_shape)

int
queue_series_stacks(struct queue *queue, int64_t series_id, struct queue_stored_stack **stacks, size_t *count)
{
    return queue_list(queue,
                      "SELECT " STACK_FIELDS(DATABASE_COLUMN) "NULL FROM stack k JOIN series s "
                                                              "ON s.id = k.series_id AND s.revision = k.revision "
                                                              "WHERE s.id = ? AND s.state <> 'GATHERING' ORDER BY k.id",
                      VALUES(value_int(series_id)), &stack_shape, stacks, count);
}

int
queue_get_series(struct queue *queue, int64_t series_id, struct queue_series *series)
{
    int rc = queue_read_row(queue, "SELECT " SERIES_COLUMNS "WHERE id = ?", VALUES(value_int(series_id)), &series_shape,
                            series);
    return rc == 1 ? edge_no_such(queue, &series_shape, series_id) : rc;
}

int
queue_refuse_removed(struct queue *queue, const char *series_uid)
{
    return database_refuse(&queue->db, -ESTALE, "%s: the files of series %s are removed; send them again",
                           code_name(CODE_SERIES_REMOVED), series_uid);
}

/* Returns -ENOENT if there is no such series. */
static int
series_expect(struct queue *queue, const char *series_uid, struct series_row *row)
{
    int rc = queue_read_series(queue, series_uid, row);
    return rc == 1 ? database_refuse(&queue->db, -ENOENT, "there is no series %s", series_uid) : rc;
}

int
queue_find_series(struct queue *queue, const char *series_uid, int64_t *series_id)
{
    struct series_row row;
    int rc = series_expect(queue, series_uid, &row);
    if (rc == 0)
        *series_id = row.id;
    return rc;
}

int
queue_series_bytes(struct queue *queue, int64_t series_id, int64_t *bytes)
{
    int rc = database_get(&queue->db, "SELECT coalesce(sum(size_bytes), 0) FROM instance WHERE series_id = ?",
                          VALUES(value_int(series_id)), bytes);
    return rc < 0 ? rc : 0;
}

static const struct database_shape file_shape =
    DATABASE_SHAPE("instance", struct queue_file, {DATABASE_TEXT, offsetof(struct queue_file, path)},
                   {DATABASE_TEXT, offsetof(struct queue_file, sha256)});

int
queue_series_files(struct queue *queue, int64_t series_id, struct queue_file **files, size_t *count)
{
    return queue_list(queue, "SELECT path, sha256 FROM instance WHERE series_id = ? ORDER BY path",
                      VALUES(value_int(series_id)), &file_shape, files, count);
}

DATABASE_CLEAR(queue_file_clear, queue_file, file_shape)

static int
insert_stack(struct queue *queue, int64_t series_id, int32_t revision, const struct queue_stack *stack)
{
    bool refused = stack->code != CODE_NONE;
    if (stack->accepted == refused || (stack->accepted && stack->passed_over))
        return database_refuse(&queue->db, -EINVAL, "stack '%s' must be either accepted or have a code", stack->name);
    return database_run(
        &queue->db,
        "INSERT INTO stack (series_id, revision, name, accepted, planes, columns, rows, "
        "spacing_mm, code, message, file_a, file_b, split_by, passed_over, temporal_positions, "
        "announced_temporal_positions, options, column_mm, row_mm, orientation, cosines) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        VALUES(value_int(series_id), value_int(revision), value_text(stack->name), value_int(stack->accepted),
               value_int(stack->planes), value_int(stack->columns), value_int(stack->rows),
               value_real(isfinite(stack->spacing_mm) ? stack->spacing_mm : 0.0), value_text(code_name(stack->code)),
               value_text(stack->message), value_text(stack->file_a), value_text(stack->file_b),
               value_text(stack->split_by), value_int(stack->passed_over), value_int(stack->times),
               value_int(stack->times_announced), value_text(stack->options), value_length(stack->pixel_mm[0]),
               value_length(stack->pixel_mm[1]), value_text(stack->orientation), value_text(stack->cosines)));
}

static int
series_settle(struct queue *queue, int64_t series_id, int32_t revision, const char *evidence,
              const struct queue_stack *stacks, size_t stack_count, int64_t now_ms)
{
    bool accepted = false;
    for (size_t i = 0; i < stack_count; i++)
        accepted |= stacks[i].accepted;
    const char *state = accepted ? "SETTLED" : "REFUSED";
    int rc = database_change(
        &queue->db,
        "UPDATE series SET state = ?3, evidence = ?4, settled_at = ?5, "
        "complete_requested = 0 "
        "WHERE id = ?1 AND revision = ?2 AND state = 'GATHERING'",
        VALUES(value_int(series_id), value_int(revision), value_text(state), value_text(evidence), value_time(now_ms)));
    if (rc < 0)
        return rc;
    if (rc == 0) {
        int64_t now;
        rc = database_get(&queue->db, "SELECT revision FROM series WHERE id = ?", VALUES(value_int(series_id)), &now);
        if (rc <= 0)
            return rc < 0 ? rc : edge_no_such(queue, &series_shape, series_id);
        return database_refuse(&queue->db, -EAGAIN,
                               "series %lld does not gather for revision %d: it is at revision %d%s",
                               (long long)series_id, revision, (int)now, now == revision ? " and has settled" : "");
    }
    rc = 0;
    for (size_t i = 0; rc == 0 && i < stack_count; i++)
        rc = insert_stack(queue, series_id, revision, &stacks[i]);
    if (rc < 0)
        return rc;
    struct queue_event event = {.kind = accepted ? "SERIES_SETTLED" : "SERIES_REFUSED",
                                .series_id = series_id,
                                .from_state = "GATHERING",
                                .to_state = state,
                                .detail = evidence};
    return queue_add_event(queue, &event, now_ms);
}

int
queue_settle(struct queue *queue, int64_t series_id, int32_t revision, const char *evidence,
             const struct queue_stack *stacks, size_t stack_count, int64_t now_ms)
{
    int rc = queue_enter(queue);
    return rc < 0
               ? rc
               : queue_leave(queue, series_settle(queue, series_id, revision, evidence, stacks, stack_count, now_ms));
}

int
queue_flag_series(struct queue *queue, int64_t series_id, enum code code, const char *message, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db, "UPDATE series SET code = ?2, message = ?3 WHERE id = ?1 AND state <> 'GATHERING'",
                         VALUES(value_int(series_id), value_text(code_name(code)), value_text(message)));
    const struct queue_event event = {.kind = code_name(code), .series_id = series_id, .detail = message};
    if (rc == 0)
        rc = database_refuse(&queue->db, -EAGAIN, "series %lld has not settled", (long long)series_id);
    else if (rc > 0)
        rc = queue_add_event(queue, &event, now_ms);
    return queue_leave(queue, rc);
}

/* ----------------------------------------------------------------------------- an operator -- */

/* Returns 1 if a new inspection may end differently, else -EAGAIN with the reason. */
static int
may_judge_again(struct queue *queue, const struct series_row *row, const struct queue_complete *complete)
{
    int64_t found;
    int rc = database_get(&queue->db, "SELECT 1 FROM series WHERE id = ? AND code <> ''", VALUES(value_int(row->id)),
                          &found);
    if (rc != 0)
        return rc;
    rc = database_get(&queue->db,
                      "SELECT 1 FROM stack WHERE series_id = ? AND revision = ? "
                      "AND code = 'INCOMPLETE_SERIES' LIMIT 1",
                      VALUES(value_int(row->id), value_int(row->revision)), &found);
    if (rc < 0 || (rc == 1 && complete->accept_missing))
        return rc;
    if (rc == 0 && row->state == SERIES_REFUSED)
        return 1; /* the configuration or the program may have changed */
    return database_refuse(&queue->db, -EAGAIN, "series %s is %s already%s", complete->series_uid,
                           queue_series_states[row->state], rc == 1 ? ": --accept-missing takes it as it is" : "");
}

static int
series_request_complete(struct queue *queue, const struct queue_complete *complete, int64_t now_ms)
{
    struct series_row row;
    char detail[128];
    const char *by = complete->by && *complete->by ? complete->by : "an operator";
    snprintf(detail, sizeof detail,
             complete->accept_missing ? "%s accepts the missing instances" : "%s declares it complete", by);
    struct queue_event event = {.kind = complete->accept_missing ? "MISSING_ACCEPTED" : "COMPLETE_REQUESTED",
                                .detail = detail};
    int rc = series_expect(queue, complete->series_uid, &row);
    if (rc < 0)
        return rc;
    const bool judged = row.state != SERIES_GATHERING;
    if (row.removed)
        return queue_refuse_removed(queue, complete->series_uid);
    if (judged) {
        rc = may_judge_again(queue, &row, complete);
        if (rc == 1)
            rc = queue_reopen_series(queue, &row, event.kind, detail, now_ms);
        if (rc < 0)
            return rc;
    }
    rc = database_change(&queue->db,
                         "UPDATE series SET complete_requested = 1, "
                         "missing_accepted_by = iif(?2 AND missing_accepted_by = '', ?3, missing_accepted_by) "
                         "WHERE id = ?1 AND (NOT complete_requested OR (?2 AND missing_accepted_by = ''))",
                         VALUES(value_int(row.id), value_int(complete->accept_missing), value_text(by)));
    if (rc <= 0 || judged)
        return rc < 0 ? rc : 0; /* requested before, or recorded by the event of the edge */
    event.series_id = row.id;
    return queue_add_event(queue, &event, now_ms);
}

int
queue_request_complete(struct queue *queue, const struct queue_complete *complete, int64_t now_ms)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, series_request_complete(queue, complete, now_ms));
}
