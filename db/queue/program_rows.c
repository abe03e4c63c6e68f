/* program_rows.c - runs of the site's programs; see db/program_rows.h for their edges. */
#include "db/program_rows.h"

#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const run_states[] = {
    [QUEUE_RUN_READY] = "READY", [QUEUE_RUN_RUNNING] = "RUNNING", [QUEUE_RUN_DELAYED] = "DELAYED",
    [QUEUE_RUN_DONE] = "DONE",   [QUEUE_RUN_FAILED] = "FAILED",   [QUEUE_RUN_CANCELLED] = "CANCELLED",
};

static const char *const run_codes[] = {
    [CODE_NONE] = "",
#define CODE(name, kind, where, meaning, remedy) [CODE_##name] = #name,
#include "base/codes.def"
#undef CODE
};

#define RUN_ROW(FIELD)                                                                                                 \
    FIELD(INT64, id, "r.id")                                                                                           \
    FIELD(INT64, series_id, "r.series_id")                                                                             \
    FIELD(NAME(run_states), state, "r.state")                                                                          \
    FIELD(INT32, attempts, "r.attempts")                                                                               \
    FIELD(INT32, revision, "r.revision")                                                                               \
    FIELD(INT32, series_revision, "s.revision")
#define RUN_ROW_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct edge_row, member)},

static const struct database_shape run_row_shape = DATABASE_SHAPE("run", struct edge_row, RUN_ROW(RUN_ROW_FIELD));
const struct machine machine_run = {
    "SELECT " RUN_ROW(DATABASE_COLUMN) "NULL FROM program_run r JOIN series s ON s.id = r.series_id WHERE r.id = ?",
    &run_row_shape, run_states};

#define RUN_FIELDS(FIELD)                                                                                              \
    FIELD(INT64, id, "r.id")                                                                                           \
    FIELD(INT64, series_id, "r.series_id")                                                                             \
    FIELD(INT32, revision, "r.revision")                                                                               \
    FIELD(INT32, attempts, "r.attempts")                                                                               \
    FIELD(TEXT, series_uid, "s.series_uid")                                                                            \
    FIELD(TEXT, stack, "r.stack")                                                                                      \
    FIELD(TEXT, program, "r.program")                                                                                  \
    FIELD(TEXT, settings, "t.text")                                                                                    \
    FIELD(TEXT, pipeline, "p.text")                                                                                    \
    FIELD(TEXT, grid, "r.grid")                                                                                        \
    FIELD(TEXT, identity, "r.identity")                                                                                \
    FIELD(TEXT, path, "iif(" RUN_HAS_MASK ", 'programs/' || r.id, '')")                                                \
    FIELD(TEXT, sha256, "r.sha256")                                                                                    \
    FIELD(TEXT, ran_as, "r.ran_as")                                                                                    \
    FIELD(TEXT, message, "r.message")                                                                                  \
    FIELD(NAME(run_states), state, "r.state")                                                                          \
    FIELD(NAME(run_codes), code, "r.code")                                                                             \
    FIELD(TIME, not_before_ms, "r.not_before_at")                                                                      \
    FIELD(INT32, slot, "r.slot")                                                                                       \
    FIELD(INT64, carrier, "iif(r.state = 'RUNNING', r.carrier_job_id, NULL)")
#define RUN_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_run, member)},
#define RUN_COLUMNS_OF(source)                                                                                         \
    RUN_FIELDS(DATABASE_COLUMN)                                                                                        \
    "NULL FROM " source " CROSS JOIN series s ON s.id = r.series_id CROSS JOIN settings t ON t.id = r.settings_id "    \
    "CROSS JOIN settings p ON p.id = r.pipeline_id "
#define RUN_COLUMNS "SELECT " RUN_COLUMNS_OF("program_run r")

static const struct database_shape run_shape = DATABASE_SHAPE("run", struct queue_run, RUN_FIELDS(RUN_FIELD));

DATABASE_CLEAR(queue_run_clear, queue_run, run_shape)

void
queue_runs_free(struct queue_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        queue_run_clear(&runs[i]);
    free(runs);
}

/* -------------------------------------------------------------------------------- programs --- */

static int
program_store(struct queue *queue, const struct queue_program *program, int64_t now_ms)
{
    int64_t same;
    char detail[160];
    int rc = database_get(&queue->db, "SELECT 1 FROM program WHERE name = ? AND code = ?",
                          VALUES(value_text(program->name), value_text(code_name(program->code))), &same);
    if (rc < 0)
        return rc;
    const bool changed = rc == 0;
    rc = database_run(&queue->db,
                      "INSERT INTO program (name, identity, program_sha256, weights_sha256, weights_bytes, sandbox, "
                      "code, message, since_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                      "identity = excluded.identity, program_sha256 = excluded.program_sha256, "
                      "weights_sha256 = excluded.weights_sha256, weights_bytes = excluded.weights_bytes, "
                      "sandbox = excluded.sandbox, code = excluded.code, message = excluded.message, "
                      "since_at = iif(code = excluded.code, since_at, excluded.since_at)",
                      VALUES(value_text(program->name), value_text(program->identity),
                             value_text(program->program_sha256), value_text(program->weights_sha256),
                             value_int(program->weights_bytes), value_text(program->sandbox),
                             value_text(code_name(program->code)), value_text(program->message), value_time(now_ms)));
    if (rc < 0 || !changed)
        return rc;
    const bool broken = program->code != CODE_NONE;
    snprintf(detail, sizeof detail, "%s%s%s", program->name, broken ? ", " : "", code_name(program->code));
    const struct queue_event event = {.kind = broken ? "PROGRAM_BROKEN" : "PROGRAM_READY", .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

int
queue_set_programs(struct queue *queue, const struct queue_program *programs, size_t count, int64_t now_ms)
{
    char **stored;
    size_t stored_count;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_list(queue, "SELECT name FROM program", NO_VALUES, &database_string, &stored, &stored_count);
    for (size_t i = 0; rc == 0 && i < stored_count; i++) {
        bool is_configured = false;
        for (size_t k = 0; k < count; k++)
            is_configured |= strcmp(programs[k].name, stored[i]) == 0;
        if (!is_configured)
            rc = database_run(&queue->db, "DELETE FROM program WHERE name = ?", VALUES(value_text(stored[i])));
    }
    database_free_rows(&database_string, stored, stored_count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = program_store(queue, &programs[i], now_ms);
    return queue_leave(queue, rc);
}

/* ----------------------------------------------------------------------------------- needs --- */

#define RUN_OF_NEED                                                                                                    \
    "series_id = ?1 AND revision = ?2 AND stack = ?3 AND program = ?4 AND grid = ?5 AND identity = ?6 "                \
    "AND superseded_by IS NULL AND removed_at IS NULL"
#define NEED_KEY(need)                                                                                                 \
    value_int((need)->series_id), value_int((need)->revision), value_text((need)->stack), value_text((need)->program), \
        value_text((need)->grid), value_text((need)->identity)

static int
run_note_planned(struct queue *queue, int64_t run_id, int64_t series_id, const char *detail, int64_t now_ms)
{
    const struct queue_event event = {.kind = "PROGRAM_PLANNED",
                                      .series_id = series_id,
                                      .run_id = run_id,
                                      .to_state = run_states[QUEUE_RUN_READY],
                                      .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

/* FAILED | CANCELLED -> READY, as if it had not run. */
static int
run_revive(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE program_run SET state = 'READY', attempts = 0, ran_as = '', ready_at = ?3, "
                                  "started_at = NULL, ended_at = NULL, code = '', message = '' "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_RUN_READY, "PROGRAM_PLANNED", CODE_NONE, "again", now_ms);
}

/* An unfinished run gets the present settings: they may have other limits with the same identity. */
static int
run_need(struct queue *queue, const struct queue_need *need, bool revive, int64_t now_ms, int64_t *id)
{
    struct edge_row row;
    int64_t settings, pipeline;
    int rc = queue_settings_row(queue, need->settings, &settings);
    if (rc == 0)
        rc = queue_settings_row(queue, need->pipeline, &pipeline);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT id FROM program_run WHERE " RUN_OF_NEED, VALUES(NEED_KEY(need)), id);
    if (rc == 0) {
        rc = database_change(&queue->db,
                             "INSERT INTO program_run (series_id, revision, stack, program, grid, identity, "
                             "settings_id, pipeline_id, state, created_at, ready_at) "
                             "SELECT k.series_id, k.revision, k.name, ?4, ?5, ?6, ?7, ?8, 'READY', ?9, ?9 "
                             "FROM stack k JOIN series s ON s.id = k.series_id AND s.revision = k.revision "
                             "WHERE k.series_id = ?1 AND k.revision = ?2 AND k.name = ?3 AND k.accepted "
                             "AND s.removed_at IS NULL",
                             VALUES(NEED_KEY(need), value_int(settings), value_int(pipeline), value_time(now_ms)));
        if (rc <= 0)
            return rc < 0
                       ? rc
                       : database_refuse(&queue->db, -EAGAIN, "series %lld has no such stack at revision %d any more",
                                         (long long)need->series_id, need->revision);
        *id = sqlite3_last_insert_rowid(queue->db.handle);
        return run_note_planned(queue, *id, need->series_id, need->program, now_ms);
    }
    if (rc == 1)
        rc = edge_read_row(queue, &machine_run, *id, &row);
    if (rc == 0 && (row.state == QUEUE_RUN_CANCELLED || (revive && row.state == QUEUE_RUN_FAILED)))
        rc = run_revive(queue, &row, now_ms);
    if (rc == 0)
        rc = database_run(&queue->db,
                          "UPDATE program_run SET settings_id = ?2, pipeline_id = ?3 "
                          "WHERE id = ?1 AND state IN ('READY', 'DELAYED')",
                          VALUES(value_int(*id), value_int(settings), value_int(pipeline)));
    return rc;
}

int
queue_need_run(struct queue *queue, const struct queue_need *need, bool revive, int64_t now_ms, struct queue_run *run)
{
    int64_t id = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_leave(queue, run_need(queue, need, revive, now_ms, &id));
    return rc == 0 ? queue_read_row(queue, RUN_COLUMNS "WHERE r.id = ?", VALUES(value_int(id)), &run_shape, run) : rc;
}

/* ------------------------------------------------------------------------------------ ties --- */

#define JOB_IS_UNFINISHED "j.state IN ('READY', 'DELAYED', 'RUNNING')"
#define JOBS_OF_RUN       "SELECT 1 FROM job_mask o JOIN job j ON j.id = o.job_id WHERE o.run_id = r.id "

static int
run_drop(struct queue *queue, const struct edge_row *row, const char *why, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE program_run SET state = 'CANCELLED', not_before_at = NULL, ended_at = ?3, "
                                  "code = '', message = ?4 WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms), value_text(why)));
    return edge_taken(queue, changed, row, QUEUE_RUN_CANCELLED, "PROGRAM_CANCELLED", CODE_NONE, why, now_ms);
}

static int
run_drop_unneeded(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return run_drop(queue, row, "no job needs it any more", now_ms);
}

/* RUNNING -> READY. uncounted: attempts that did not take place. */
static int
run_back(struct queue *queue, const struct edge_row *row, int uncounted, const char *kind, const char *why,
         int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE program_run SET state = 'READY', ready_at = ?3, started_at = NULL, "
                                  "carrier_job_id = NULL, attempts = attempts - ?4 WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms), value_int(uncounted)));
    return edge_taken(queue, changed, row, QUEUE_RUN_READY, kind, CODE_NONE, why, now_ms);
}

static int
run_put_down(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return run_back(queue, row, 0, "PROGRAM_RETURNED", "the job in Slurm that ran it made no mask", now_ms);
}

static int
run_remove_files(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int rc = database_run(&queue->db, "INSERT INTO removal (path) VALUES ('programs/' || ?) ON CONFLICT DO NOTHING",
                          VALUES(value_int(row->id)));
    return rc < 0 ? rc
                  : database_run(&queue->db, "UPDATE program_run SET removed_at = ?2 WHERE id = ?1",
                                 VALUES(value_int(row->id), value_time(now_ms)));
}

/* Releases the runs of a job, and a run; 0: unset. */
static int
runs_release(struct queue *queue, int64_t job_id, int64_t run_id, int64_t now_ms)
{
#define RELEASED "r.id IN (SELECT run_id FROM job_mask WHERE job_id = ?1 UNION SELECT ?2) "
    const struct database_value ids[] = {value_int(job_id), value_int(run_id)};
    int64_t count;
    int rc = edge_for_each(queue, &machine_run,
                           "SELECT r.id FROM program_run r WHERE r.carrier_job_id = ?1 AND r.state = 'RUNNING' "
                           "AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?1 AND state = 'RUNNING')",
                           ids, 1, run_put_down, now_ms, &count);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_run,
                           "SELECT r.id FROM program_run r WHERE " RELEASED "AND r.state IN ('READY', 'DELAYED') "
                           "AND NOT EXISTS (" JOBS_OF_RUN "AND " JOB_IS_UNFINISHED ")",
                           ids, 2, run_drop_unneeded, now_ms, &count);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_run,
                           "SELECT r.id FROM program_run r WHERE " RELEASED "AND r.superseded_by IS NOT NULL "
                           "AND r.removed_at IS NULL AND NOT EXISTS (" JOBS_OF_RUN "AND j.state = 'RUNNING')",
                           ids, 2, run_remove_files, now_ms, &count);
    return rc;
#undef RELEASED
}

int
job_release_runs(struct queue *queue, int64_t job_id, int64_t now_ms)
{
    return runs_release(queue, job_id, 0, now_ms);
}

/* Another job of the same batch may have released the run since it was found. */
static int
run_tie(struct queue *queue, int64_t job_id, int64_t run_id, int64_t now_ms)
{
    struct edge_row row;
    int64_t before = 0;
    int rc = edge_read_row(queue, &machine_run, run_id, &row);
    if (rc == 0 && row.state == QUEUE_RUN_CANCELLED)
        rc = run_revive(queue, &row, now_ms);
    if (rc == 0)
        rc = database_get(&queue->db,
                          "SELECT m.run_id FROM job_mask m JOIN program_run r ON r.id = ?2 "
                          "WHERE m.job_id = ?1 AND m.program = r.program",
                          VALUES(value_int(job_id), value_int(run_id)), &before);
    if (rc >= 0)
        rc = database_run(&queue->db,
                          "INSERT INTO job_mask SELECT ?1, program, id FROM program_run WHERE id = ?2 "
                          "ON CONFLICT DO UPDATE SET run_id = excluded.run_id",
                          VALUES(value_int(job_id), value_int(run_id)));
    return rc == 0 ? runs_release(queue, 0, before, now_ms) : rc;
}

int
queue_tie_run(struct queue *queue, int64_t job_id, int64_t run_id, int64_t now_ms)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, run_tie(queue, job_id, run_id, now_ms));
}

int
queue_job_runs(struct queue *queue, int64_t job_id, struct queue_run **runs, size_t *count)
{
    return queue_list(
        queue,
        "SELECT " RUN_COLUMNS_OF(
            "job_mask m CROSS JOIN program_run r ON r.id = m.run_id") "WHERE m.job_id = ? ORDER BY m.program",
        VALUES(value_int(job_id)), &run_shape, runs, count);
}

int
queue_job_awaits_programs(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_READY), &row);
    return rc < 0 ? rc : queue_leave(queue, job_await(queue, &row, CODE_PROGRAM_WAITING, why, 0, now_ms));
}

int
queue_fail_waiting(struct queue *queue, int64_t job_id, enum code code, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int64_t waits;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_DELAYED), &row);
    if (rc < 0)
        return rc;
    rc = database_get(&queue->db, "SELECT 1 FROM job WHERE id = ? AND code = 'PROGRAM_WAITING'",
                      VALUES(value_int(job_id)), &waits);
    if (rc >= 0)
        rc = rc == 1 ? job_give_up(queue, &row, code, why, now_ms) : edge_wrong_state(queue, &row);
    return queue_leave(queue, rc);
}

int
queue_jobs_without_run(struct queue *queue, const char *program, struct queue_ids *jobs)
{
    return queue_list(queue,
                      "SELECT j.id FROM job j INDEXED BY job_waits WHERE j.state = 'DELAYED' "
                      "AND j.code = 'PROGRAM_WAITING' AND (?1 IS NULL OR NOT EXISTS "
                      "(SELECT 1 FROM job_mask WHERE job_id = j.id AND program = ?1)) ORDER BY j.id",
                      VALUES(value_optional(program)), &database_id, &jobs->at, &jobs->count);
}

/* -------------------------------------------------------------------------------- starting --- */

static int
run_make_due(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE program_run SET state = 'READY', ready_at = ?3, not_before_at = NULL, "
                                  "started_at = NULL WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_RUN_READY, "PROGRAM_DUE", CODE_NONE, "", now_ms);
}

int
queue_ready_runs(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit, const char *except,
                 struct queue_run **runs, size_t *count)
{
    struct queue_rows rows = {.shape = &run_shape};
    struct queue_ids first = {0};
    int64_t due;
    int rc = queue_enter(queue);
    if (rc < 0)
        return queue_settle_rows(&rows, rc, runs, count);
    rc = edge_for_each(queue, &machine_run,
                       "SELECT id FROM program_run INDEXED BY program_run_delayed WHERE state = 'DELAYED' "
                       "AND not_before_at <= ? ORDER BY not_before_at, id",
                       VALUES(value_time(now_ms)), run_make_due, now_ms, &due);
    if (rc == 0)
        rc = job_first_runs(queue, now_ms, ageing_ms, limit, except, &first);
    rc = queue_leave(queue, rc);
    for (size_t i = 0; rc == 0 && i < first.count; i++) {
        bool is_listed = false; /* several jobs may wait for it */
        for (size_t k = 0; k < i; k++)
            is_listed |= first.at[k] == first.at[i];
        if (!is_listed)
            rc = queue_append_rows(queue, RUN_COLUMNS "WHERE r.id = ?", VALUES(value_int(first.at[i])), &rows);
    }
    free(first.at);
    return queue_settle_rows(&rows, rc, runs, count);
}

int
queue_next_run_due(struct queue *queue, int64_t *due_ms)
{
    *due_ms = 0;
    int rc = queue_read_row(queue,
                            "SELECT not_before_at FROM program_run INDEXED BY program_run_delayed "
                            "WHERE state = 'DELAYED' ORDER BY not_before_at LIMIT 1",
                            NO_VALUES, &database_time, due_ms);
    return rc < 0 ? rc : 0;
}

/* One of slot and carrier is NULL. */
static int
run_begin(struct queue *queue, int64_t run_id, struct database_value slot, struct database_value carrier,
          const char *gpu, const char *ran_as, int64_t now_ms)
{
    struct edge_row row;
    char words[96];
    int rc = edge_enter(queue, &machine_run, run_id, IN(QUEUE_RUN_READY), &row);
    if (rc < 0)
        return rc;
    if (row.revision != row.series_revision)
        return queue_leave(queue, database_refuse(&queue->db, -EAGAIN,
                                                  "run %lld is for revision %d, its series is at %d by now",
                                                  (long long)run_id, row.revision, row.series_revision));
    int changed = database_change(
        &queue->db,
        "UPDATE program_run SET state = 'RUNNING', attempts = attempts + 1, slot = ?3, "
        "carrier_job_id = ?4, gpu = ?5, ran_as = ?6, started_at = ?7, code = '', "
        "message = '' WHERE id = ?1 AND state = ?2",
        VALUES(EDGE_GUARD(&row), slot, carrier, value_text(gpu), value_text(ran_as), value_time(now_ms)));
    if (changed == -EEXIST)
        changed = database_refuse(&queue->db, -EBUSY, "slot %lld runs a program already", (long long)slot.as.i);
    snprintf(words, sizeof words, "%s %lld, attempt %d%s%s", slot.kind == VALUE_NULL ? "job" : "slot",
             (long long)(slot.kind == VALUE_NULL ? carrier.as.i : slot.as.i), row.attempts + 1, *ran_as ? ", " : "",
             ran_as);
    return queue_leave(
        queue, edge_taken(queue, changed, &row, QUEUE_RUN_RUNNING, "PROGRAM_STARTED", CODE_NONE, words, now_ms));
}

int
queue_start_run(struct queue *queue, int64_t run_id, int slot, const char *gpu, const char *ran_as, int64_t now_ms)
{
    return run_begin(queue, run_id, value_int(slot), value_null(), gpu, ran_as, now_ms);
}

int
queue_carry_run(struct queue *queue, int64_t run_id, int64_t job_id, int64_t now_ms)
{
    return run_begin(queue, run_id, value_null(), value_int(job_id), "", "", now_ms);
}

/* ---------------------------------------------------------------------------------- ending --- */

int
queue_return_run(struct queue *queue, int64_t run_id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_run, run_id, IN(QUEUE_RUN_RUNNING), &row);
    if (rc < 0)
        return rc;
    rc = run_back(queue, &row, 1, "PROGRAM_RETURNED", why, now_ms);
    return queue_leave(queue, rc < 0 ? rc : runs_release(queue, 0, run_id, now_ms));
}

/* Records the end of the attempt, in the transaction of its edge. */
static int
run_store_end(struct queue *queue, int64_t run_id, const struct queue_run_end *end)
{
    return database_run(&queue->db,
                        "UPDATE program_run SET code = ?2, message = ?3, sandbox = ?4, write_seconds = ?5, "
                        "program_seconds = ?6, read_seconds = ?7, peak_bytes = ?8, starts = starts + ?9 WHERE id = ?1",
                        VALUES(value_int(run_id), value_text(code_name(end->code)), value_text(end->message),
                               value_text(end->sandbox), value_seconds(end->write_seconds),
                               value_seconds(end->program_seconds), value_seconds(end->read_seconds),
                               value_known(end->peak_bytes), value_int(end->starts)));
}

static int
job_mask_came(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return job_resume(queue, row, "JOB_MASK_CAME", now_ms);
}

#define WAITING_JOBS                                                                                                   \
    "SELECT j.id FROM job_mask m CROSS JOIN job j ON j.id = m.job_id WHERE m.run_id = ? AND j.state = 'DELAYED' "      \
    "AND j.code = 'PROGRAM_WAITING' "

int
queue_finish_run(struct queue *queue, int64_t run_id, const struct queue_run_end *end, int64_t now_ms,
                 int64_t *released)
{
    struct edge_row row;
    *released = 0;
    int rc = edge_enter(queue, &machine_run, run_id, IN(QUEUE_RUN_RUNNING), &row);
    if (rc < 0)
        return rc;
    rc = run_store_end(queue, run_id, end);
    if (rc == 0) {
        int changed =
            database_change(&queue->db,
                            "UPDATE program_run SET state = 'DONE', ended_at = ?3, sha256 = ?4, "
                            "size_bytes = ?5, labels = ?6, labelled_voxels = ?7 "
                            "WHERE id = ?1 AND state = ?2",
                            VALUES(EDGE_GUARD(&row), value_time(now_ms), value_text(end->sha256), value_int(end->size),
                                   value_known(end->labels), value_known(end->labelled)));
        rc = edge_taken(queue, changed, &row, QUEUE_RUN_DONE, "PROGRAM_DONE", CODE_NONE, "", now_ms);
    }
    if (rc == 0)
        rc =
            edge_for_each(queue, &machine_job,
                          WAITING_JOBS "AND NOT EXISTS (SELECT 1 FROM job_mask o JOIN program_run r ON r.id = o.run_id "
                                       "WHERE o.job_id = j.id AND NOT (" RUN_HAS_MASK ")) ORDER BY j.id",
                          VALUES(value_int(run_id)), job_mask_came, now_ms, released);
    return queue_leave(queue, rc);
}

int
queue_delay_run(struct queue *queue, int64_t run_id, int64_t not_before_ms, const char *ran_as, bool counts,
                const struct queue_run_end *end, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_run, run_id, IN(QUEUE_RUN_RUNNING), &row);
    if (rc < 0)
        return rc;
    rc = run_store_end(queue, run_id, end);
    if (rc == 0) {
        int changed = database_change(
            &queue->db,
            "UPDATE program_run SET state = 'DELAYED', not_before_at = ?3, ran_as = ?4, "
            "attempts = attempts - ?5, carrier_job_id = NULL WHERE id = ?1 AND state = ?2",
            VALUES(EDGE_GUARD(&row), value_time(not_before_ms), value_text(ran_as), value_int(!counts)));
        rc = edge_taken(queue, changed, &row, QUEUE_RUN_DELAYED, "PROGRAM_DELAYED", end->code, end->message, now_ms);
    }
    return queue_leave(queue, rc < 0 ? rc : runs_release(queue, 0, run_id, now_ms));
}

/* Late slices may have made a newer revision, with its own job. */
static int
run_fail_jobs(struct queue *queue, int64_t run_id, const struct queue_run_end *end, int64_t now_ms, int64_t *failed)
{
    struct queue_ids jobs;
    int rc =
        queue_list(queue, WAITING_JOBS "ORDER BY j.id", VALUES(value_int(run_id)), &database_id, &jobs.at, &jobs.count);
    for (size_t i = 0; rc == 0 && i < jobs.count; i++) {
        struct edge_row row;
        rc = edge_read_row(queue, &machine_job, jobs.at[i], &row);
        if (rc == 0 && row.revision < row.series_revision)
            rc = job_supersede(queue, &row, now_ms);
        else if (rc == 0)
            rc = job_give_up(queue, &row, end->code, end->message, now_ms);
    }
    *failed = (int64_t)jobs.count;
    free(jobs.at);
    return rc;
}

static int
run_fail(struct queue *queue, const struct edge_row *row, const struct queue_run_end *end, int64_t now_ms,
         int64_t *failed)
{
    int rc = run_store_end(queue, row->id, end);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE program_run SET state = 'FAILED', ended_at = ?3 WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    rc = edge_taken(queue, changed, row, QUEUE_RUN_FAILED, "PROGRAM_FAILED", end->code, end->message, now_ms);
    return rc < 0 ? rc : run_fail_jobs(queue, row->id, end, now_ms, failed);
}

int
queue_fail_run(struct queue *queue, int64_t run_id, const struct queue_run_end *end, int64_t now_ms, int64_t *failed)
{
    struct edge_row row;
    *failed = 0;
    int rc = edge_enter(queue, &machine_run, run_id, IN(QUEUE_RUN_RUNNING), &row);
    return rc < 0 ? rc : queue_leave(queue, run_fail(queue, &row, end, now_ms, failed));
}

int
queue_cancel_run(struct queue *queue, int64_t run_id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_run, run_id,
                        IN(QUEUE_RUN_READY) | IN(QUEUE_RUN_DELAYED) | IN(QUEUE_RUN_RUNNING), &row);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db,
                      "DELETE FROM job_mask WHERE run_id = ? AND EXISTS "
                      "(SELECT 1 FROM job j WHERE j.id = job_mask.job_id AND " JOB_IS_UNFINISHED ")",
                      VALUES(value_int(run_id)));
    return queue_leave(queue, rc < 0 ? rc : run_drop(queue, &row, why, now_ms));
}

/* Only one run of a need can be current: the old one refers to itself until the new one exists. */
static int
run_again(struct queue *queue, const struct edge_row *row, const char *by, int64_t now_ms, int64_t *again_id)
{
    char words[160];
    int rc = database_change(&queue->db,
                             "UPDATE program_run SET superseded_by = id WHERE id = ?1 AND state = ?2 "
                             "AND superseded_by IS NULL AND removed_at IS NULL",
                             VALUES(EDGE_GUARD(row)));
    if (rc <= 0)
        return rc < 0 ? rc
                      : database_refuse(&queue->db, -EAGAIN, "run %lld is superseded or removed", (long long)row->id);
    rc = database_run(&queue->db,
                      "INSERT INTO program_run (series_id, revision, stack, program, grid, identity, settings_id, "
                      "pipeline_id, state, created_at, ready_at) SELECT series_id, revision, stack, program, grid, "
                      "identity, settings_id, pipeline_id, 'READY', ?2, ?2 FROM program_run WHERE id = ?1",
                      VALUES(value_int(row->id), value_time(now_ms)));
    *again_id = sqlite3_last_insert_rowid(queue->db.handle);
    if (rc == 0)
        rc = database_run(&queue->db, "UPDATE program_run SET superseded_by = ?2 WHERE id = ?1",
                          VALUES(value_int(row->id), value_int(*again_id)));
    snprintf(words, sizeof words, "run %lld again, by %s", (long long)row->id, by);
    if (rc == 0)
        rc = run_note_planned(queue, *again_id, row->series_id, words, now_ms);
    snprintf(words, sizeof words, "run %lld replaces it, by %s", (long long)*again_id, by);
    return rc < 0 ? rc : edge_note(queue, row, NULL, NULL, "PROGRAM_AGAIN", CODE_NONE, words, now_ms);
}

int
queue_again_run(struct queue *queue, int64_t run_id, const char *by, int64_t now_ms, int64_t *again_id)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_run, run_id, IN(QUEUE_RUN_DONE), &row);
    if (rc < 0)
        return rc;
    rc = run_again(queue, &row, by, now_ms, again_id);
    if (rc == 0) /* a RUNNING job has read the old mask */
        rc = database_run(&queue->db,
                          "UPDATE job_mask SET run_id = ?2 WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM job j "
                          "WHERE j.id = job_mask.job_id AND j.state IN ('READY', 'DELAYED'))",
                          VALUES(value_int(run_id), value_int(*again_id)));
    return queue_leave(queue, rc < 0 ? rc : runs_release(queue, 0, run_id, now_ms));
}

/* -------------------------------------------------------------------------------- restarts --- */

static int
run_recover_as_ready(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return run_back(queue, row, 0, "PROGRAM_RECOVERED", "it was running when the daemon ended", now_ms);
}

static int
run_recover_as_failed(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int64_t failed;
    char message[160];
    const struct queue_run_end end = {.code = CODE_CRASHED,
                                      .message = message,
                                      .peak_bytes = -1,
                                      .write_seconds = -1,
                                      .program_seconds = -1,
                                      .read_seconds = -1};
    snprintf(message, sizeof message,
             "run %lld: the daemon ended while the program ran, and that was attempt %d, the last one allowed",
             (long long)row->id, row->attempts);
    return run_fail(queue, row, &end, now_ms, &failed);
}

int
queue_recover_runs(struct queue *queue, const struct queue_run_limit *limits, size_t limit_count, int64_t now_ms,
                   int *returned)
{
#define RUNNING_HERE "FROM program_run r INDEXED BY program_run_slot WHERE r.state = 'RUNNING' AND r.slot IS NOT NULL "
    int64_t count, running = 0;
    *returned = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < limit_count && rc == 0; i++)
        rc = edge_for_each(queue, &machine_run,
                           "SELECT r.id " RUNNING_HERE "AND r.program = ? AND r.attempts >= ? ORDER BY r.id",
                           VALUES(value_text(limits[i].program), value_int(limits[i].max_attempts)),
                           run_recover_as_failed, now_ms, &count);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_run, "SELECT r.id " RUNNING_HERE "ORDER BY r.id", NO_VALUES,
                           run_recover_as_ready, now_ms, &running);
    if (rc == 0) /* also those of jobs that were refused as duplicates */
        rc = edge_for_each(queue, &machine_run,
                           "SELECT r.id FROM program_run r INDEXED BY program_run_open WHERE r.ended_at IS NULL "
                           "AND r.state <> 'RUNNING' AND NOT EXISTS (" JOBS_OF_RUN "AND " JOB_IS_UNFINISHED ") "
                           "ORDER BY r.id",
                           NO_VALUES, run_drop_unneeded, now_ms, &count);
    rc = queue_leave(queue, rc);
    if (rc == 0)
        *returned = (int)running;
    return rc;
}

int
queue_runs_to_stop(struct queue *queue, struct queue_ids *runs)
{
    return queue_list(queue,
                      "SELECT r.id " RUNNING_HERE "AND NOT EXISTS (" JOBS_OF_RUN "AND " JOB_IS_UNFINISHED ") "
                      "ORDER BY r.id",
                      NO_VALUES, &database_id, &runs->at, &runs->count);
#undef RUNNING_HERE
}

int
queue_run_has_files(struct queue *queue, int64_t run_id)
{
    int64_t found;
    return database_get(&queue->db,
                        "SELECT 1 FROM program_run WHERE id = ? AND state IN ('DONE', 'FAILED', 'DELAYED') "
                        "AND removed_at IS NULL",
                        VALUES(value_int(run_id)), &found);
}
