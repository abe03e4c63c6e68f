/*
 * object_rows.c - annotation objects: stored like images, tied to series by their references.
 *
 * A tie is not a row but a query, so the order of arrival does not matter. Which of two objects is
 * the later version depends on these two alone, not on the stored series.
 */
#include "db/queue/queue_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ ties -- */

#define OBJECTS_OF_SERIES                                                                                              \
    "SELECT r.object_id FROM series s "                                                                                \
    "CROSS JOIN object_reference r ON r.kind = 'series' AND r.uid = s.series_uid "                                     \
    "WHERE s.id = ?1 "                                                                                                 \
    "UNION SELECT r.object_id FROM instance i "                                                                        \
    "CROSS JOIN object_reference r ON r.kind = 'instance' AND r.uid = i.sop_instance_uid "                             \
    "WHERE i.series_id = ?1 "                                                                                          \
    "UNION SELECT r.object_id FROM series s "                                                                          \
    "CROSS JOIN object_reference r ON r.kind = 'frame' AND r.uid = s.frame_of_reference "                              \
    "WHERE s.id = ?1 AND s.frame_of_reference <> ''"

int
queue_object_series(struct queue *queue, int64_t object_id, struct queue_ids *series)
{
    return queue_list(queue, SERIES_OF_OBJECT " ORDER BY 1", VALUES(value_int(object_id)), &database_id, &series->at,
                      &series->count);
}

int
queue_series_objects(struct queue *queue, int64_t series_id, struct queue_ids *objects)
{
    return queue_list(queue,
                      "SELECT id FROM object WHERE removed_at IS NULL "
                      "AND id IN (" OBJECTS_OF_SERIES " UNION SELECT o.id FROM series s "
                      "JOIN object o ON o.series_uid = s.series_uid WHERE s.id = ?1) ORDER BY id",
                      VALUES(value_int(series_id)), &database_id, &objects->at, &objects->count);
}

#define OBJECT_IS_INPUT "NOT own AND NOT missing AND superseded_by IS NULL AND removed_at IS NULL"

static const struct database_shape input_shape = DATABASE_SHAPE(
    "object", struct queue_input, {DATABASE_TEXT, offsetof(struct queue_input, path)},
    {DATABASE_TEXT, offsetof(struct queue_input, kind)}, {DATABASE_TEXT, offsetof(struct queue_input, sender)});

int
queue_series_inputs(struct queue *queue, int64_t series_id, struct queue_input **inputs, size_t *count)
{
    return queue_list(queue,
                      "SELECT path, kind, sender FROM object WHERE " OBJECT_IS_INPUT " AND id IN (" OBJECTS_OF_SERIES
                      ") ORDER BY path",
                      VALUES(value_int(series_id)), &input_shape, inputs, count);
}

DATABASE_CLEAR(queue_input_clear, queue_input, input_shape)

int
queue_object_is_input(struct queue *queue, int64_t object_id)
{
    int64_t found;
    return database_get(&queue->db, "SELECT 1 FROM object WHERE id = ? AND " OBJECT_IS_INPUT,
                        VALUES(value_int(object_id)), &found);
}

/* -------------------------------------------------------------------------------- versions -- */

/*
 * The earlier versions of object ?1: its named predecessors, and objects of the same kind and label
 * whose references it all has. Reports of one series are independent of each other.
 */
static const char object_versions_sql[] =
    "SELECT o.id FROM object_reference r CROSS JOIN object o ON o.sop_instance_uid = r.uid "
    "WHERE r.object_id = ?1 AND r.kind = 'predecessor' AND o.id <> ?1 "
    "AND o.superseded_by IS NULL "
    "UNION SELECT o.id FROM object n "
    "CROSS JOIN object_reference mine ON mine.object_id = n.id "
    "CROSS JOIN object_reference r ON r.kind = mine.kind AND r.uid = mine.uid "
    "CROSS JOIN object o ON o.id = r.object_id "
    "WHERE n.id = ?1 AND o.id <> ?1 AND mine.kind <> 'predecessor' AND n.kind <> 'sr' "
    "AND o.kind = n.kind AND o.superseded_by IS NULL AND o.own = n.own AND o.label = n.label "
    "AND (o.series_uid = n.series_uid OR o.label <> '' AND o.sender = n.sender) "
    "AND NOT EXISTS (SELECT 1 FROM object_reference other WHERE other.object_id = o.id "
    "  AND other.kind <> 'predecessor' AND NOT EXISTS (SELECT 1 FROM object_reference same "
    "    WHERE same.kind = other.kind AND same.uid = other.uid AND same.object_id = n.id))";

static int
object_find_versions(struct queue *queue, int64_t object_id)
{
    struct queue_ids versions;
    int rc = queue_list(queue, object_versions_sql, VALUES(value_int(object_id)), &database_id, &versions.at,
                        &versions.count);
    for (size_t i = 0; rc == 0 && i < versions.count; i++) {
        /* Of two objects, the one that names the other as predecessor is the later; else the one that arrived later. */
        rc = database_run(&queue->db,
                          "UPDATE object SET superseded_by = iif(id = ?1, ?2, ?1) WHERE superseded_by IS NULL "
                          "AND id = (SELECT iif(n.made <> '' AND n.made < o.made, n.id, o.id) "
                          "  FROM object n, object o WHERE n.id = ?1 AND o.id = ?2)",
                          VALUES(value_int(object_id), value_int(versions.at[i])));
    }
    free(versions.at);
    return rc;
}

/* ---------------------------------------------------------------------------------- adding -- */

struct object_row {
    int64_t id;
    int32_t replaced;
    bool missing, removed;
    bool sent; /* it arrived over the network */
};

static const struct database_shape object_row_shape = DATABASE_SHAPE(
    "object", struct object_row, {DATABASE_INT64, offsetof(struct object_row, id)},
    {DATABASE_INT32, offsetof(struct object_row, replaced)}, {DATABASE_BOOL, offsetof(struct object_row, missing)},
    {DATABASE_BOOL, offsetof(struct object_row, removed)}, {DATABASE_BOOL, offsetof(struct object_row, sent)});

static int
object_read(struct queue *queue, const struct queue_object *object, struct object_row *row)
{
    return queue_read_row(queue,
                          "SELECT id, replaced, missing, removed_at IS NOT NULL, sender <> '' FROM object "
                          "WHERE series_uid = ? AND sop_instance_uid = ?",
                          VALUES(value_text(object->series_uid), value_text(object->sop_instance_uid)),
                          &object_row_shape, row);
}

int
queue_object_note(struct queue *queue, const char *kind, int64_t object_id, const char *detail, int64_t now_ms)
{
    struct queue_ids series;
    int rc = queue_object_series(queue, object_id, &series);
    struct queue_event event = {.kind = kind, .detail = detail};
    for (size_t i = 0; rc == 0 && i < series.count; i++) {
        event.series_id = series.at[i];
        rc = queue_add_event(queue, &event, now_ms);
    }
    if (rc == 0 && series.count == 0)
        rc = queue_add_event(queue, &event, now_ms);
    free(series.at);
    return rc;
}

/* Adds a row, or replaces the file of its row. */
static int
object_write(struct queue *queue, const struct queue_object *object, int64_t now_ms)
{
    return database_run(
        &queue->db,
        "INSERT INTO object (series_uid, sop_instance_uid, sop_class_uid, transfer_syntax_uid, "
        "study_uid, kind, label, description, made, path, source, original_path, sender, "
        "size_bytes, replaced, received_at, own, person) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
        "EXISTS (SELECT 1 FROM result WHERE sop_instance_uid = ?2 AND sop_instance_uid <> '') "
        /* A copy that a person corrected may stay in the series of the result. */
        "OR ?17 = '' AND EXISTS (SELECT 1 FROM result WHERE series_uid = ?1 AND series_uid <> ''), ?17) "
        "ON CONFLICT (series_uid, sop_instance_uid) DO UPDATE SET "
        "sop_class_uid = excluded.sop_class_uid, study_uid = excluded.study_uid, "
        "transfer_syntax_uid = excluded.transfer_syntax_uid, kind = excluded.kind, "
        "label = excluded.label, description = excluded.description, made = excluded.made, "
        "path = excluded.path, source = excluded.source, "
        "original_path = excluded.original_path, sender = excluded.sender, "
        "size_bytes = excluded.size_bytes, replaced = excluded.replaced, "
        "received_at = excluded.received_at, person = excluded.person, missing = 0, superseded_by = NULL, "
        "removed_at = NULL",
        VALUES(value_text(object->series_uid), value_text(object->sop_instance_uid), value_text(object->sop_class_uid),
               value_text(object->transfer_syntax_uid), value_text(object->study_uid), value_text(object->kind),
               value_text(object->label), value_text(object->description), value_text(object->made),
               value_text(object->path), value_text(object->source),
               value_text(object->original_path ? object->original_path : ""), value_text(object->sender),
               value_int(object->size), value_int(object->replaced), value_time(now_ms), value_text(object->person)));
}

static int
object_store(struct queue *queue, const struct queue_object *object, const char *event, int64_t now_ms)
{
    struct object_row row;
    char detail[128];
    /* The removal of an earlier file must not remove the new one. */
    int rc = database_run(&queue->db, "DELETE FROM removal WHERE path = ?", VALUES(value_text(object->path)));
    if (rc == 0)
        rc = object_write(queue, object, now_ms);
    if (rc == 0)
        rc = object_read(queue, object, &row);
    if (rc == 0) {
        /* Adds references from lines "kind uid". */
        const char *lines = object->references;
        char kind[16], uid[80];
        int length = 0;
        rc = database_run(&queue->db, "DELETE FROM object_reference WHERE object_id = ?", VALUES(value_int(row.id)));
        for (; rc == 0 && sscanf(lines, "%15s %79s%n", kind, uid, &length) == 2; lines += length)
            rc = database_run(&queue->db,
                              "INSERT INTO object_reference (kind, uid, object_id) VALUES (?, ?, ?) "
                              "ON CONFLICT DO NOTHING",
                              VALUES(value_text(kind), value_text(uid), value_int(row.id)));
    }
    if (rc == 0)
        rc = object_find_versions(queue, row.id);
    snprintf(detail, sizeof detail, "%s %s", object->kind, object->sop_instance_uid);
    return rc ? rc : queue_object_note(queue, event, row.id, detail, now_ms);
}

/* Completes the source and the sender of a known object; jobs may wait for the sender. */
static int
object_note_known(struct queue *queue, const struct queue_object *object, const struct object_row *row,
                  enum queue_arrival *arrival)
{
    const bool says_more = !row->sent && object->sender && *object->sender;
    *arrival = row->missing || says_more ? QUEUE_RETURNED : QUEUE_KNOWN;
    int rc = database_run(&queue->db,
                          "UPDATE object SET missing = 0, "
                          "source = iif(source = '" QUEUE_SOURCE_RECOVERED "', ?2, source), "
                          "sender = iif(sender = '', ?3, sender), "
                          "original_path = iif(?4 = '', original_path, ?4) WHERE id = ?1",
                          VALUES(value_int(row->id), value_text(object->source), value_text(object->sender),
                                 value_text(object->original_path)));
    return rc == 0 && says_more ? object_find_versions(queue, row->id) : rc;
}

static int
object_add(struct queue *queue, const struct queue_object *object, int64_t now_ms, enum queue_arrival *arrival)
{
    struct object_row row = {0};
    int64_t found;
    const int absent = object_read(queue, object, &row);
    int rc = absent < 0 ? absent : 0;
    *arrival = QUEUE_KNOWN;
    /* Skips a file found in the place from which it must still be removed: no peer sent it again. */
    if (rc == 0 && strcmp(object->source, QUEUE_SOURCE_RECOVERED) == 0)
        rc = database_get(&queue->db, "SELECT 1 FROM removal WHERE path IN (?1, 'series/' || ?2) LIMIT 1",
                          VALUES(value_text(object->path), value_text(object->series_uid)), &found);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (absent || row.removed || object->replaced > row.replaced) {
        *arrival = absent || row.removed ? QUEUE_NEW : QUEUE_REPLACED;
        return object_store(queue, object, *arrival == QUEUE_NEW ? "OBJECT" : "OBJECT_REPLACED", now_ms);
    }
    return object->replaced < row.replaced ? 0 : object_note_known(queue, object, &row, arrival);
}

int
queue_add_object(struct queue *queue, const struct queue_object *object, int64_t now_ms, enum queue_arrival *arrival,
                 int64_t *object_id)
{
    struct object_row row = {0};
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = object_add(queue, object, now_ms, arrival);
    if (rc == 0)
        rc = queue_keep_in_mind(queue, object->source, &object->kept, object->path);
    if (rc == 0)
        rc = queue_cure(queue, object->series_uid, object->sop_instance_uid);
    if (rc == 0)
        rc = object_read(queue, object, &row);
    rc = rc == 1 ? 0 : rc; /* to be removed, and without a row */
    *object_id = row.id;
    return queue_leave(queue, rc);
}

/* -------------------------------------------------------------------------------- the file -- */

int
queue_object_missing(struct queue *queue, const char *path, int64_t now_ms)
{
    int64_t id;
    int rc = database_get(&queue->db, "SELECT id FROM object WHERE path = ? AND removed_at IS NULL",
                          VALUES(value_text(path)), &id);
    if (rc <= 0)
        return rc < 0 ? rc : 1;
    rc = database_change(&queue->db, "UPDATE object SET missing = 1 WHERE id = ? AND NOT missing",
                         VALUES(value_int(id)));
    return rc <= 0 ? rc : queue_object_note(queue, "OBJECT_MISSING", id, path, now_ms);
}
