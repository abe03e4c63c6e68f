/*
 * pull_queue.c - see db/pull_queue.h.
 *
 *                +---------+ --start_pull, attempts+1--> +---------+ --pull_found--> +--------+
 *   -add_pulls-> | WAITING | <-delay_pull--------------- | FINDING |                 | MOVING |
 *                |         | <-return_pull, attempts-1-- |         |                 |        |
 *                |         | <-recover------------------ +---------+                 |        |
 *                |         | <-delay_pull, return_pull, recover--------------------- |        |
 *                +---------+                                                         +--------+
 *
 *     WAITING, FINDING, MOVING --end_pull-----> DONE, NOT_FOUND, PARTIAL, FAILED
 *     WAITING, FINDING, MOVING --cancel_pulls-> CANCELLED
 *
 * The arrived instances of an item are counted in the store, from any sender. Instances that were
 * stored before need not be sent, and a retry after a crash requests only missing ones.
 */
#include "db/pull_queue.h"

#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

const char *const queue_pull_states[] = {
    [QUEUE_PULL_WAITING] = "WAITING", [QUEUE_PULL_FINDING] = "FINDING",     [QUEUE_PULL_MOVING] = "MOVING",
    [QUEUE_PULL_DONE] = "DONE",       [QUEUE_PULL_NOT_FOUND] = "NOT_FOUND", [QUEUE_PULL_PARTIAL] = "PARTIAL",
    [QUEUE_PULL_FAILED] = "FAILED",   [QUEUE_PULL_CANCELLED] = "CANCELLED",
};

static const char *const pull_keys[] = {
    [QUEUE_PULL_ACCESSION] = "accession",
    [QUEUE_PULL_STUDY] = "study",
    [QUEUE_PULL_SERIES] = "series",
    [QUEUE_PULL_PRIOR] = "prior",
};

const char *
queue_pull_key_name(enum queue_pull_key key)
{
    return (size_t)key < COUNT_OF(pull_keys) ? pull_keys[key] : "unknown";
}

bool
queue_pull_key_find(const char *name, enum queue_pull_key *key)
{
    for (size_t i = 0; i < QUEUE_PULL_PRIOR; i++)
        if (strcmp(name, pull_keys[i]) == 0) {
            *key = (enum queue_pull_key)i;
            return true;
        }
    return false;
}

/* ----------------------------------------------------------------------------------- rows --- */

#define PULL_ROW(FIELD)                                                                                                \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(NAME(queue_pull_states), state, "state")                                                                     \
    FIELD(INT32, attempts, "attempts")
#define PULL_ROW_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct edge_row, member)},

static const struct database_shape pull_row_shape = DATABASE_SHAPE("item", struct edge_row, PULL_ROW(PULL_ROW_FIELD));
static const struct machine machine_pull = {"SELECT " PULL_ROW(DATABASE_COLUMN) "NULL FROM pull WHERE id = ?",
                                            &pull_row_shape, queue_pull_states};

#define OPEN (IN(QUEUE_PULL_WAITING) | IN(QUEUE_PULL_FINDING) | IN(QUEUE_PULL_MOVING))
#define BUSY (IN(QUEUE_PULL_FINDING) | IN(QUEUE_PULL_MOVING))

#define PULL_FIELDS(FIELD)                                                                                             \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(INT64, batch, "batch")                                                                                       \
    FIELD(INT32, line, "line")                                                                                         \
    FIELD(TEXT, source, "source")                                                                                      \
    FIELD(NAME(pull_keys), key, "key")                                                                                 \
    FIELD(TEXT, identifier, "identifier")                                                                              \
    FIELD(INT32, attempts, "attempts")                                                                                 \
    FIELD(TIME, since_ms, "since_at")
#define PULL_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_pull, member)},

static const struct database_shape pull_shape = DATABASE_SHAPE("item", struct queue_pull, PULL_FIELDS(PULL_FIELD));

/* The number of stored instances and annotation objects of a part p. */
#define ARRIVED                                                                                                        \
    "((SELECT coalesce(sum(s.instances - s.missing_files), 0) FROM series s "                                          \
    "  WHERE s.study_uid = p.study_uid AND p.series_uid IN ('', s.series_uid) "                                        \
    "  AND s.removed_at IS NULL) + "                                                                                   \
    "(SELECT count(*) FROM object o WHERE o.study_uid = p.study_uid "                                                  \
    "  AND p.series_uid IN ('', o.series_uid) AND o.removed_at IS NULL AND NOT o.missing))"

/* The number of instances of a part p that arrived and are not kept. */
#define UNWANTED                                                                                                       \
    "(SELECT count(*) FROM pull_unwanted u WHERE u.study_uid = p.study_uid "                                           \
    "  AND p.series_uid IN ('', u.series_uid))"

#define PART_FIELDS(FIELD)                                                                                             \
    FIELD(TEXT, study_uid, "p.study_uid")                                                                              \
    FIELD(TEXT, series_uid, "p.series_uid")                                                                            \
    FIELD(INT64, expected, "coalesce(p.expected, -1)")                                                                 \
    FIELD(INT64, arrived, ARRIVED)                                                                                     \
    FIELD(INT64, unwanted, UNWANTED)
#define PART_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_pull_part, member)},

static const struct database_shape part_shape = DATABASE_SHAPE("part", struct queue_pull_part, PART_FIELDS(PART_FIELD));

DATABASE_CLEAR(queue_pull_clear, queue_pull, pull_shape)

/* ---------------------------------------------------------------------------------- adding -- */

int
queue_next_batch(struct queue *queue, int64_t *batch)
{
    *batch = 0;
    int rc = database_get(&queue->db, "SELECT seq FROM sqlite_sequence WHERE name = 'pull'", NO_VALUES, batch);
    ++*batch;
    return rc < 0 ? rc : 0;
}

static int
pull_note_batch(struct queue *queue, const char *kind, int64_t batch, int64_t count, const char *source, const char *by,
                int64_t now_ms)
{
    char words[256];
    snprintf(words, sizeof words, "batch %lld: %lld item%s%s%s, by %s", (long long)batch, (long long)count,
             count == 1 ? "" : "s", *source ? " of " : "", source, by);
    const struct queue_event event = {.kind = kind, .detail = words};
    return queue_add_event(queue, &event, now_ms);
}

int
queue_add_pulls(struct queue *queue, int64_t batch, const char *source, const char *by,
                const struct queue_pull_wish *wishes, size_t count, int64_t now_ms)
{
    int64_t next;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_next_batch(queue, &next);
    if (rc == 0 && (count == 0 || batch != next))
        rc = database_refuse(&queue->db, -EINVAL, "nothing is asked for, or not as the next batch");
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = database_run(&queue->db,
                          "INSERT INTO pull (batch, line, source, key, identifier, state, due_at, asked_by, "
                          "created_at, list_line) VALUES (?1, ?2, ?3, ?4, ?5, 'WAITING', ?6, ?7, ?6, ?8)",
                          VALUES(value_int(batch), value_int((int64_t)i), value_text(source),
                                 value_text(queue_pull_key_name(wishes[i].key)), value_text(wishes[i].identifier),
                                 value_time(now_ms), value_text(by), value_int(wishes[i].list_line)));
    if (rc == 0)
        rc = pull_note_batch(queue, "PULL_ADDED", batch, (int64_t)count, source, by, now_ms);
    return queue_leave(queue, rc);
}

/* ------------------------------------------------------------------------------- what is due  */

int
queue_next_pull(struct queue *queue, const char *source, struct queue_pull *pull, int64_t *due_ms)
{
    int rc = queue_read_row(
        queue,
        "SELECT " PULL_FIELDS(
            DATABASE_COLUMN) "NULL FROM pull WHERE id = coalesce("
                             "(SELECT id FROM pull INDEXED BY pull_due_prior WHERE state = 'WAITING' AND key = 'prior' "
                             "  AND source = ?1 AND due_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now') "
                             "  ORDER BY due_at, id LIMIT 1), "
                             "(SELECT id FROM pull INDEXED BY pull_due WHERE state = 'WAITING' AND source = ?1 "
                             "  ORDER BY due_at, id LIMIT 1))",
        VALUES(value_text(source)), &pull_shape, pull);
    if (rc)
        return rc;
    rc = queue_read_row(queue, "SELECT due_at FROM pull WHERE id = ?", VALUES(value_int(pull->id)), &database_time,
                        due_ms);
    if (rc < 0)
        queue_pull_clear(pull);
    return rc;
}

int
queue_last_move(struct queue *queue, const char *source, int64_t *at_ms)
{
    *at_ms = 0;
    return queue_read_row(queue, "SELECT max(moved_at) FROM pull WHERE source = ? AND moved_at IS NOT NULL",
                          VALUES(value_text(source)), &database_time, at_ms);
}

int
queue_pulled_sources(struct queue *queue, char ***sources, size_t *count)
{
    return queue_list(queue, "SELECT DISTINCT source FROM pull WHERE state = 'WAITING' ORDER BY source", NO_VALUES,
                      &database_string, sources, count);
}

/* ---------------------------------------------------------------------------------- edges --- */

/* "item 3: CODE: message"; absent parts are left out. */
static int
pull_taken(struct queue *queue, int changed, const struct edge_row *row, int to, const char *kind, enum code code,
           const char *message, int64_t now_ms)
{
    char why[512], words[640];
    const char *reason = edge_words(code, message, why, sizeof why);
    snprintf(words, sizeof words, "item %lld%s%s", (long long)row->id, *reason ? ": " : "", reason);
    return edge_taken(queue, changed, row, to, kind, CODE_NONE, words, now_ms);
}

int
queue_start_pull(struct queue *queue, int64_t id, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_pull, id, IN(QUEUE_PULL_WAITING), &row);
    if (rc < 0)
        return rc;
    const int changed =
        database_change(&queue->db,
                        "UPDATE pull SET state = 'FINDING', attempts = attempts + 1, started_at = ?3, "
                        "since_at = coalesce(since_at, ?3), code = '', message = '' WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(&row), value_time(now_ms)));
    return queue_leave(queue,
                       pull_taken(queue, changed, &row, QUEUE_PULL_FINDING, "PULL_STARTED", CODE_NONE, "", now_ms));
}

/* Sums the counters of its parts. The expected number is known only if it is known of all parts. */
static int
pull_count(struct queue *queue, int64_t id)
{
    return database_run(&queue->db,
                        "UPDATE pull SET (expected, arrived) = (SELECT iif(count(*) = count(p.expected), "
                        "sum(p.expected), NULL), coalesce(sum(" ARRIVED "), 0) FROM pull_part p "
                        "WHERE p.pull_id = ?1) WHERE id = ?1",
                        VALUES(value_int(id)));
}

int
queue_pull_found(struct queue *queue, int64_t id, const struct queue_pull_part *parts, size_t count, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_pull, id, IN(QUEUE_PULL_FINDING), &row);
    if (rc < 0)
        return rc;
    const int changed = database_change(&queue->db, "UPDATE pull SET state = 'MOVING' WHERE id = ?1 AND state = ?2",
                                        VALUES(EDGE_GUARD(&row)));
    rc = pull_taken(queue, changed, &row, QUEUE_PULL_MOVING, "PULL_FOUND", CODE_NONE, "", now_ms);
    if (rc == 0)
        rc = database_run(&queue->db, "DELETE FROM pull_part WHERE pull_id = ?", VALUES(value_int(id)));
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = database_run(&queue->db,
                          "INSERT INTO pull_part (pull_id, study_uid, series_uid, expected) VALUES (?, ?, ?, ?)",
                          VALUES(value_int(id), value_text(parts[i].study_uid), value_text(parts[i].series_uid),
                                 value_known(parts[i].expected)));
    if (rc == 0)
        rc = pull_count(queue, id);
    return queue_leave(queue, rc);
}

int
queue_pull_parts(struct queue *queue, int64_t id, struct queue_pull_part **parts, size_t *count)
{
    return queue_list(queue,
                      "SELECT " PART_FIELDS(DATABASE_COLUMN) "NULL FROM pull_part p "
                                                             "WHERE p.pull_id = ? ORDER BY p.study_uid, p.series_uid",
                      VALUES(value_int(id)), &part_shape, parts, count);
}

DATABASE_FREE(queue_pull_parts_free, queue_pull_part, part_shape)

int
queue_add_unwanted(struct queue *queue, const struct queue_unwanted *instance)
{
    return queue_change(queue,
                        "INSERT OR IGNORE INTO pull_unwanted (sop_instance_uid, sop_class_uid, series_uid, "
                        "study_uid, pull_id) SELECT ?1, ?2, ?3, ?4, id FROM pull INDEXED BY pull_open "
                        "WHERE ended_at IS NULL AND state = 'MOVING' AND NOT EXISTS (SELECT 1 FROM instance "
                        "WHERE sop_instance_uid = ?1) AND EXISTS (SELECT 1 FROM pull_part "
                        "WHERE pull_id = pull.id AND study_uid = ?4 AND series_uid IN ('', ?3)) ORDER BY id LIMIT 1",
                        VALUES(value_text(instance->sop_instance_uid), value_text(instance->sop_class_uid),
                               value_text(instance->series_uid), value_text(instance->study_uid)));
}

int
queue_note_move(struct queue *queue, int64_t id, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_pull, id, IN(QUEUE_PULL_MOVING), &row);
    if (rc < 0)
        return rc;
    return queue_leave(queue, database_run(&queue->db, "UPDATE pull SET moved_at = ?2 WHERE id = ?1",
                                           VALUES(value_int(id), value_time(now_ms))));
}

/* -> WAITING. `less`: number of attempts to subtract. */
static int
pull_wait(struct queue *queue, const struct edge_row *row, int64_t due_ms, int less, enum code code,
          const char *message, const char *kind, int64_t now_ms)
{
    const int changed = database_change(
        &queue->db,
        "UPDATE pull SET state = 'WAITING', due_at = ?3, attempts = max(0, attempts - ?4), "
        "code = ?5, message = ?6 WHERE id = ?1 AND state = ?2",
        VALUES(EDGE_GUARD(row), value_time(due_ms), value_int(less), value_text(code_name(code)), value_text(message)));
    int rc = pull_taken(queue, changed, row, QUEUE_PULL_WAITING, kind, code, message, now_ms);
    return rc == 0 ? pull_count(queue, row->id) : rc;
}

int
queue_delay_pull(struct queue *queue, int64_t id, int64_t due_ms, bool counted, enum code code, const char *message,
                 int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_pull, id, BUSY, &row);
    return rc < 0 ? rc
                  : queue_leave(queue, pull_wait(queue, &row, due_ms, !counted, code, message, "PULL_DELAYED", now_ms));
}

int
queue_return_pull(struct queue *queue, int64_t id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_pull, id, BUSY, &row);
    return rc < 0 ? rc : queue_leave(queue, pull_wait(queue, &row, now_ms, 1, CODE_NONE, why, "PULL_RETURNED", now_ms));
}

static int
pull_recover(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return pull_wait(queue, row, now_ms, 0, CODE_NONE, "it was under way when the daemon ended", "PULL_RECOVERED",
                     now_ms);
}

int
queue_recover_pulls(struct queue *queue, int64_t now_ms)
{
    int64_t count;
    return edge_for_each(queue, &machine_pull,
                         "SELECT id FROM pull INDEXED BY pull_open WHERE ended_at IS NULL "
                         "AND state <> 'WAITING' ORDER BY id",
                         NO_VALUES, pull_recover, now_ms, &count);
}

static int
pull_end(struct queue *queue, const struct edge_row *row, enum queue_pull_state state, enum code code,
         const char *message, int64_t now_ms)
{
    char kind[32];
    snprintf(kind, sizeof kind, "PULL_%s", queue_pull_states[state]);
    const int changed = database_change(&queue->db,
                                        "UPDATE pull SET state = ?3, ended_at = ?4, code = ?5, message = ?6 "
                                        "WHERE id = ?1 AND state = ?2",
                                        VALUES(EDGE_GUARD(row), value_text(queue_pull_states[state]),
                                               value_time(now_ms), value_text(code_name(code)), value_text(message)));
    int rc = pull_taken(queue, changed, row, (int)state, kind, code, message, now_ms);
    return rc == 0 ? pull_count(queue, row->id) : rc;
}

int
queue_end_pull(struct queue *queue, int64_t id, enum queue_pull_state state, enum code code, const char *message,
               int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_pull, id, OPEN, &row);
    return rc < 0 ? rc : queue_leave(queue, pull_end(queue, &row, state, code, message, now_ms));
}

/* -------------------------------------------------------------------------------- batches --- */

static int
pull_cancel(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return pull_end(queue, row, QUEUE_PULL_CANCELLED, CODE_CANCELLED, "cancelled by an operator", now_ms);
}

int
queue_cancel_pulls(struct queue *queue, int64_t batch, const char *by, int64_t now_ms, struct queue_ids *busy,
                   int64_t *count)
{
    *busy = (struct queue_ids){0};
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    int64_t open;
    rc = database_get(&queue->db,
                      "SELECT count(*) FILTER (WHERE ended_at IS NULL) FROM pull "
                      "WHERE batch = ? HAVING count(*) > 0",
                      VALUES(value_int(batch)), &open);
    if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "there is no batch %lld", (long long)batch);
    else if (rc == 1 && open == 0)
        rc = database_refuse(&queue->db, -EAGAIN, "all of batch %lld has ended", (long long)batch);
    if (rc >= 0)
        rc = queue_list(queue, "SELECT id FROM pull WHERE batch = ? AND state IN ('FINDING', 'MOVING')",
                        VALUES(value_int(batch)), &database_id, &busy->at, &busy->count);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_pull, "SELECT id FROM pull WHERE batch = ? AND ended_at IS NULL ORDER BY id",
                           VALUES(value_int(batch)), pull_cancel, now_ms, count);
    if (rc == 0)
        rc = pull_note_batch(queue, "PULL_CANCEL", batch, *count, "", by, now_ms);
    return queue_leave(queue, rc);
}

int
queue_pulls_need_keys(struct queue *queue, int64_t batch)
{
    int64_t id;
    return database_get(&queue->db,
                        "SELECT id FROM pull WHERE batch = ? AND key = 'accession' "
                        "AND ended_at IS NULL LIMIT 1",
                        VALUES(value_int(batch)), &id);
}
