/* job_rows.c - the edges of a job (see transaction.c), and the choice of the next job. */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ adding - */

/* Returns -ESTALE if the files of the series are removed. */
static int
job_expect_files(struct queue *queue, int64_t series_id)
{
    char *series_uid;
    int rc = queue_read_row(queue, "SELECT series_uid FROM series WHERE id = ? AND removed_at IS NOT NULL",
                            VALUES(value_int(series_id)), &database_string, &series_uid);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = queue_refuse_removed(queue, series_uid);
    free(series_uid);
    return rc;
}

/* Finds the reason why the guarded INSERT found no such stack. */
static int
job_explain_no_stack(struct queue *queue, const struct queue_new_job *job)
{
    int64_t now;
    int rc = job_expect_files(queue, job->series_id);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT revision FROM series WHERE id = ?", VALUES(value_int(job->series_id)),
                          &now);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return database_refuse(&queue->db, -ENOENT, "there is no series %lld", (long long)job->series_id);
    return database_refuse(&queue->db, -EAGAIN,
                           "series %lld (now at revision %d) has not settled at revision %d with "
                           "an accepted stack '%s'",
                           (long long)job->series_id, (int)now, job->revision, job->stack ? job->stack : "");
}

int
queue_settings_row(struct queue *queue, const char *text, int64_t *id)
{
    int rc = database_get(&queue->db, "SELECT id FROM settings WHERE text = ?", VALUES(value_text(text)), id);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = database_run(&queue->db, "INSERT INTO settings (text) VALUES (?)", VALUES(value_text(text)));
    *id = sqlite3_last_insert_rowid(queue->db.handle);
    return rc;
}

static int
job_insert(struct queue *queue, const struct queue_new_job *job, int64_t now_ms, int64_t *job_id)
{
    int64_t settings_row;
    int rc = queue_settings_row(queue, job->settings, &settings_row);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db,
                         "INSERT INTO job (series_id, revision, stack, pipeline, settings_id, state, priority, "
                         "created_at, ready_at, done_by_at, rule, corrects, correction, prior_item) "
                         "SELECT k.series_id, k.revision, k.name, ?4, ?5, 'READY', ?6, ?7, ?7, ?8, "
                         "coalesce(?9, (SELECT rule FROM job WHERE id = ?10), ''), "
                         "coalesce(?11, (SELECT corrects FROM job WHERE id = ?10)), "
                         "coalesce(?12, (SELECT correction FROM job WHERE id = ?10)), "
                         "(SELECT prior_item FROM job WHERE id = ?11) "
                         "FROM stack k JOIN series s ON s.id = k.series_id AND s.revision = k.revision "
                         "WHERE k.series_id = ?1 AND k.revision = ?2 AND k.name = ?3 AND k.accepted "
                         "AND s.state = 'SETTLED' AND s.removed_at IS NULL",
                         VALUES(value_int(job->series_id), value_int(job->revision), value_text(job->stack),
                                value_text(job->pipeline), value_int(settings_row), value_int(job->priority),
                                value_time(now_ms), value_optional_time(job->done_by_ms), value_optional(job->rule),
                                value_id(job->retry_of), value_id(job->corrects), value_id(job->correction)));
    if (rc < 0)
        return rc;
    if (rc == 0)
        return job_explain_no_stack(queue, job);
    *job_id = sqlite3_last_insert_rowid(queue->db.handle);
    char detail[256];
    const bool asked = job->asked && *job->asked;
    snprintf(detail, sizeof detail, "%s%s%s", job->pipeline, asked ? ", " : "", asked ? job->asked : "");
    struct queue_event event = {.kind = "JOB_ADDED",
                                .series_id = job->series_id,
                                .job_id = *job_id,
                                .to_state = queue_job_state_name(QUEUE_READY),
                                .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

int
job_await(struct queue *queue, const struct edge_row *row, enum code code, const char *lacks, int64_t until_ms,
          int64_t now_ms)
{
    int changed = database_change(
        &queue->db,
        "UPDATE job SET state = 'DELAYED', not_before_at = ?3, code = ?5, "
        "message = ?4 WHERE id = ?1 AND state = ?2",
        VALUES(EDGE_GUARD(row), code == CODE_PROGRAM_WAITING ? value_text(QUEUE_NO_LIMIT) : value_time(until_ms),
               value_text(lacks), value_text(code_name(code))));
    return edge_taken(queue, changed, row, QUEUE_DELAYED, "JOB_WAITS", code, lacks, now_ms);
}

/* -> CANCELLED, from any state that is not final. */
static int
job_cancel(struct queue *queue, const struct edge_row *row, const char *kind, enum code code, const char *why,
           int64_t now_ms)
{
    int changed =
        database_change(&queue->db,
                        "UPDATE job SET state = 'CANCELLED', ended_at = ?3, not_before_at = NULL, code = ?4, "
                        "message = ?5, file_a = '', file_b = '' WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(row), value_time(now_ms), value_text(code_name(code)), value_text(why)));
    return edge_taken(queue, changed, row, QUEUE_CANCELLED, kind, code, why, now_ms);
}

int
job_supersede(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    char why[128] = "requested again: another job replaces it";
    if (row->revision < row->series_revision)
        snprintf(why, sizeof why, "late or replaced slices arrived: revision %d of the series replaces it",
                 row->series_revision);
    return job_cancel(queue, row, "JOB_SUPERSEDED", CODE_SUPERSEDED, why, now_ms);
}

#define JOB_UNFINISHED "('READY', 'DELAYED', 'RUNNING')"

/* Cancels unfinished jobs that `job` replaces; the ids of running ones go into *running. */
static int
job_supersede_unfinished(struct queue *queue, const struct queue_new_job *job, int64_t now_ms,
                         struct queue_ids *running)
{
    int rc = queue_list(
        queue,
        "SELECT id FROM job WHERE series_id = ? AND revision <= ? AND stack = ? "
        "AND pipeline = ? AND state IN " JOB_UNFINISHED " ORDER BY id",
        VALUES(value_int(job->series_id), value_int(job->revision), value_text(job->stack), value_text(job->pipeline)),
        &database_id, &running->at, &running->count);
    size_t kept = 0;
    for (size_t i = 0; rc == 0 && i < running->count; i++) {
        struct edge_row row;
        rc = edge_read_row(queue, &machine_job, running->at[i], &row);
        if (rc == 0)
            rc = job_supersede(queue, &row, now_ms);
        if (rc == 0 && row.state == QUEUE_RUNNING)
            running->at[kept++] = row.id;
    }
    running->count = kept;
    return rc;
}

int
job_add(struct queue *queue, const struct queue_new_job *job, int64_t now_ms, int64_t *job_id,
        struct queue_ids *running)
{
    /*
     * Finds the job that makes the new one unnecessary: it waits or runs with these settings, or
     * ended with them while no other is unfinished.
     */
    int rc = database_get(&queue->db,
                          "SELECT j.id FROM job j JOIN settings t ON t.id = j.settings_id "
                          "WHERE j.series_id = ?1 AND j.revision = ?2 AND j.stack = ?3 AND j.pipeline = ?4 "
                          "AND t.text = ?5 AND j.superseded_by IS NULL AND (j.state IN " JOB_UNFINISHED " OR NOT ?6 "
                          "AND NOT EXISTS (SELECT 1 FROM job u WHERE u.series_id = ?1 AND u.revision = ?2 "
                          "  AND u.stack = ?3 AND u.pipeline = ?4 AND u.state IN " JOB_UNFINISHED ")) "
                          "ORDER BY j.state IN ('FAILED', 'CANCELLED', 'REJECTED'), j.id DESC LIMIT 1",
                          VALUES(value_int(job->series_id), value_int(job->revision), value_text(job->stack),
                                 value_text(job->pipeline), value_text(job->settings), value_int(job->again)),
                          job_id);
    if (rc == 1 && !job->correction)
        return database_refuse(&queue->db, -EEXIST, "job %lld is it already", (long long)*job_id);
    *job_id = 0;
    if (rc < 0 || job->dry_run)
        return rc;
    rc = job_supersede_unfinished(queue, job, now_ms, running);
    if (rc == 0)
        rc = job_insert(queue, job, now_ms, job_id);
    if (rc == 0 && job->lacks) {
        struct edge_row row;
        rc = edge_read_row(queue, &machine_job, *job_id, &row);
        if (rc == 0)
            rc = job_await(queue, &row, job->lacks_code, job->lacks, job->until_ms, now_ms);
    }
    if (rc < 0)
        return rc;
    /*
     * Supersedes jobs of older revisions, and jobs of the same revision without a result. Jobs of this revision that
     * ended well or are under review stay current until the new one has ended well (queue_job_stands).
     */
    rc = database_run(&queue->db,
                      "UPDATE job SET superseded_by = n.id FROM job n "
                      "WHERE n.id = ? AND job.series_id = n.series_id AND job.stack = n.stack "
                      "AND job.pipeline = n.pipeline AND (job.revision < n.revision "
                      "OR job.revision = n.revision AND job.state IN ('FAILED', 'CANCELLED', 'REJECTED')) "
                      "AND job.superseded_by IS NULL",
                      VALUES(value_int(*job_id)));
    return rc < 0 ? rc : queue_close_reviews(queue, *job_id, now_ms);
}

int
job_copy_masks(struct queue *queue, int64_t from, int64_t to)
{
    return database_run(&queue->db,
                        "INSERT INTO job_mask SELECT ?2, m.program, m.run_id FROM job_mask m "
                        "JOIN program_run r ON r.id = m.run_id WHERE m.job_id = ?1 AND r.state = 'DONE' "
                        "AND r.superseded_by IS NULL AND r.removed_at IS NULL",
                        VALUES(value_int(from), value_int(to)));
}

int
job_leave_added(struct queue *queue, int rc, struct queue_ids *running)
{
    rc = queue_leave(queue, rc);
    if (rc < 0 || running->count == 0) {
        free(running->at);
        *running = (struct queue_ids){0};
    }
    return rc;
}

int
queue_add_job(struct queue *queue, const struct queue_new_job *job, int64_t now_ms, int64_t *job_id,
              struct queue_ids *superseded_running)
{
    *superseded_running = (struct queue_ids){0};
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = job_add(queue, job, now_ms, job_id, superseded_running);
    return job_leave_added(queue, rc, superseded_running);
}

/* ---------------------------------------------------------------------------------- starting - */

int
job_give_up(struct queue *queue, const struct edge_row *row, enum code code, const char *words, int64_t now_ms)
{
    int changed =
        database_change(&queue->db,
                        "UPDATE job SET state = 'FAILED', ended_at = ?3, not_before_at = NULL, code = ?4, "
                        "message = iif(code = 'PROGRAM_WAITING', '', message || ' ') || ?5 "
                        "WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(row), value_time(now_ms), value_text(code_name(code)), value_text(words)));
    return edge_taken(queue, changed, row, QUEUE_FAILED, "JOB_FAILED", code, words, now_ms);
}

static int
job_give_up_object(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return job_give_up(queue, row, CODE_OBJECT_MISSING,
                       "An object that its pipeline names (v_objects) did not come within "
                       "patience_seconds. Send it; the series is then processed anew.",
                       now_ms);
}

static int
job_give_up_study(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    return job_give_up(queue, row, CODE_STUDY_INCOMPLETE,
                       "It did not come within patience_seconds, or was refused. Send it, then retry the job.", now_ms);
}

int
job_resume(struct queue *queue, const struct edge_row *row, const char *kind, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'READY', ready_at = ?3, code = '', "
                                  "message = '', not_before_at = NULL, started_at = NULL "
                                  "WHERE id = ?1 AND state = ?2 AND code IN " QUEUE_AWAITING,
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_READY, kind, CODE_NONE, "", now_ms);
}

/* An object that is missing again after the job waited for a program is past its limit of time. */
int
queue_job_lacks(struct queue *queue, int64_t job_id, enum code code, const char *lacks, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_DELAYED), &row);
    if (rc == 0 && lacks)
        rc = database_run(&queue->db,
                          "UPDATE job SET code = ?3, message = ?4, not_before_at = CASE 'PROGRAM_WAITING' "
                          "WHEN ?3 THEN '" QUEUE_NO_LIMIT "' WHEN code THEN ?5 ELSE not_before_at END "
                          "WHERE id = ?1 AND state = ?2 AND code IN " QUEUE_AWAITING,
                          VALUES(EDGE_GUARD(&row), value_text(code_name(code)), value_text(lacks), value_time(now_ms)));
    else if (rc == 0)
        rc = job_resume(queue, &row, "JOB_OBJECT_CAME", now_ms);
    return queue_leave(queue, rc);
}

static const struct database_shape companion_shape =
    DATABASE_SHAPE("companion", struct queue_companion, {DATABASE_INT64, offsetof(struct queue_companion, id)},
                   {DATABASE_TEXT, offsetof(struct queue_companion, modality)},
                   {DATABASE_TEXT, offsetof(struct queue_companion, body_part)},
                   {DATABASE_TEXT, offsetof(struct queue_companion, description)});

DATABASE_CLEAR(queue_companion_clear, queue_companion, companion_shape)

int
queue_companions(struct queue *queue, int64_t series_id, struct queue_companion **companions, size_t *count)
{
    return queue_list(queue,
                      "SELECT o.id, o.modality, o.body_part, o.description FROM series s "
                      "JOIN series o ON o.study_uid = s.study_uid AND o.id <> s.id "
                      "WHERE s.id = ? AND o.state = 'SETTLED' AND o.removed_at IS NULL ORDER BY o.id",
                      VALUES(value_int(series_id)), &companion_shape, companions, count);
}

int
queue_study_waiting(struct queue *queue, int64_t series_id, struct queue_ids *jobs)
{
    return queue_list(queue,
                      "SELECT j.id FROM series s "
                      "JOIN series o ON o.study_uid = s.study_uid AND o.id <> s.id "
                      "JOIN job j ON j.series_id = o.id AND j.revision = o.revision "
                      "WHERE s.id = ? AND j.state = 'DELAYED' AND j.code = 'STUDY_WAITING' ORDER BY j.id",
                      VALUES(value_int(series_id)), &database_id, &jobs->at, &jobs->count);
}

int
queue_series_jobs(struct queue *queue, int64_t series_id, struct queue_job **jobs, size_t *count)
{
    return queue_list(queue,
                      "SELECT " JOB_COLUMNS "WHERE j.series_id = ? AND j.revision = s.revision "
                      "AND j.superseded_by IS NULL ORDER BY j.id",
                      VALUES(value_int(series_id)), &job_shape, jobs, count);
}

static int
make_due(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'READY', ready_at = ?3, "
                                  "not_before_at = NULL, started_at = NULL "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_READY, "JOB_DUE", CODE_NONE, "", now_ms);
}

/*
 * The candidates for the next start, as `first`: of each pipeline that is not held and has an open window, the first
 * READY jobs per priority and those with a deadline. One of them must be the foremost by age. Jobs of series that are
 * being received for a newer revision, and held jobs, are left out.
 *
 * Jobs behind the candidates are not read: reading 100,000 jobs at each turn would take all of the
 * daemon's time. ?1 is the limit, ?2 the time, ?3 the milliseconds of ageing, ?4 the pipelines to
 * leave out. INDEXED BY and CROSS JOIN: without statistics SQLite reads and sorts all READY jobs.
 *
 * Jobs that wait for a READY run are candidates in the same way, for the start of the run. IS: the condition of job r, with
 * that of both indexes.
 */
#define JOB_MAY_START                                                                                                  \
    "  AND (r.revision = x.revision OR x.state <> 'GATHERING') "                                                       \
    "  AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.kind = 'job' "                                                     \
    "    AND h.name = CAST(r.id AS TEXT)) "
#define JOB_FIRST_OF(INDEX, BY_INDEX, IS)                                                                              \
    "WITH RECURSIVE waiting(name) AS (VALUES ('') UNION ALL "                                                          \
    "SELECT (SELECT r.pipeline FROM job r INDEXED BY " INDEX " WHERE " IS                                              \
    "  AND r.pipeline > name ORDER BY r.pipeline LIMIT 1) FROM waiting WHERE name IS NOT NULL), "                      \
    "pipelines(name) AS (SELECT name FROM waiting WHERE name <> '' "                                                   \
    "  AND instr(?4, char(10) || name || char(10)) = 0 "                                                               \
    "  AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.kind IN ('queue', 'jobs') "                                        \
    "    OR h.kind = 'pipeline' AND h.name = waiting.name) "                                                           \
    "  AND NOT EXISTS (SELECT 1 FROM pipeline_window w WHERE w.pipeline = waiting.name "                               \
    "    AND NOT w.is_open)), "                                                                                        \
    "ranks(name, priority) AS (SELECT name, (SELECT r.priority FROM job r INDEXED BY " INDEX "  WHERE " IS             \
    " AND r.pipeline = name ORDER BY r.priority DESC LIMIT 1) FROM pipelines "                                         \
    "UNION ALL SELECT name, (SELECT r.priority FROM job r INDEXED BY " INDEX "  WHERE " IS                             \
    " AND r.pipeline = name AND r.priority < ranks.priority "                                                          \
    "  ORDER BY r.priority DESC LIMIT 1) FROM ranks WHERE priority IS NOT NULL), "                                     \
    "first(id) AS (SELECT j.id FROM ranks k CROSS JOIN job j WHERE j.id IN ("                                          \
    "  SELECT r.id FROM job r INDEXED BY " INDEX " JOIN series x ON x.id = r.series_id "                               \
    "  WHERE " IS " AND r.pipeline = k.name AND r.priority = k.priority " JOB_MAY_START "  ORDER BY r.id LIMIT ?1) "   \
    "UNION SELECT j.id FROM pipelines p CROSS JOIN job j WHERE j.id IN ("                                              \
    "  SELECT r.id FROM job r INDEXED BY " BY_INDEX " JOIN series x ON x.id = r.series_id "                            \
    "  WHERE " IS " AND r.done_by_at > ?2 AND r.pipeline = p.name " JOB_MAY_START                                      \
    "  ORDER BY r.done_by_at, r.id LIMIT ?1)) "
#define JOB_FIRST JOB_FIRST_OF("job_ready", "job_done_by", "r.state = 'READY'")
/* ?5: the kinds of runs to leave out. */
#define RUN_MAY_START "g.state = 'READY' AND instr(?5, char(10) || g.program || ' ' || g.ran_as || char(10)) = 0 "
#define JOB_FIRST_WAITING                                                                                              \
    JOB_FIRST_OF("job_waits", "job_waits_done_by",                                                                     \
                 "r.state = 'DELAYED' AND r.code = 'PROGRAM_WAITING' "                                                 \
                 "AND EXISTS (SELECT 1 FROM job_mask m JOIN program_run g ON g.id = m.run_id "                         \
                 "  WHERE m.job_id = r.id AND " RUN_MAY_START ")")

/* A deadline in the past does not count: it would delay jobs that can still be in time. */
#define JOB_ORDER                                                                                                      \
    "ORDER BY iif(j.done_by_at > ?2, j.done_by_at, 'never'), j.priority "                                              \
    "+ iif(?3 > 0, max(0, julianday(?2) - julianday(j.created_at)) * 86400000.0 / ?3, 0) DESC, "                       \
    "j.id LIMIT ?1"

int
queue_ready(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit, const char *except,
            struct queue_job **jobs, size_t *count)
{
    const struct database_value values[] = {queue_row_limit(limit), value_time(now_ms), value_int(ageing_ms),
                                            value_text(except)};
    *jobs = NULL;
    *count = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    int64_t moved;
    rc = edge_for_each(queue, &machine_job,
                       "SELECT id FROM job INDEXED BY job_delayed "
                       "WHERE state = 'DELAYED' AND not_before_at <= ? "
                       "AND code = 'OBJECT_WAITING' ORDER BY not_before_at, id",
                       VALUES(value_time(now_ms)), job_give_up_object, now_ms, &moved);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_job,
                           "SELECT id FROM job INDEXED BY job_delayed "
                           "WHERE state = 'DELAYED' AND not_before_at <= ? "
                           "AND code = 'STUDY_WAITING' ORDER BY not_before_at, id",
                           VALUES(value_time(now_ms)), job_give_up_study, now_ms, &moved);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_job,
                           "SELECT id FROM job INDEXED BY job_delayed "
                           "WHERE state = 'DELAYED' AND not_before_at <= ? "
                           "ORDER BY not_before_at, id",
                           VALUES(value_time(now_ms)), make_due, now_ms, &moved);
    /* Jobs of an older revision are superseded when they would be next. */
    for (moved = 1; rc == 0 && moved > 0;)
        rc = edge_for_each(queue, &machine_job,
                           JOB_FIRST "SELECT j.id FROM first f CROSS JOIN job j ON j.id = f.id "
                                     "JOIN series s ON s.id = j.series_id "
                                     "WHERE j.revision < s.revision ORDER BY j.id",
                           values, 4, job_supersede, now_ms, &moved);
    rc = queue_leave(queue, rc);
    if (rc < 0)
        return rc;
    return queue_list(queue, JOB_FIRST "SELECT " JOB_COLUMNS_OF("first f CROSS JOIN job j ON j.id = f.id") JOB_ORDER,
                      values, 4, &job_shape, jobs, count);
}

int
job_first_runs(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit, const char *except,
               struct queue_ids *runs)
{
    const struct database_value values[] = {queue_row_limit(limit), value_time(now_ms), value_int(ageing_ms),
                                            value_text(""), value_text(except)};
    int rc = 0;
    for (int64_t moved = 1; rc == 0 && moved > 0;)
        rc = edge_for_each(queue, &machine_job,
                           JOB_FIRST_WAITING "SELECT j.id FROM first f CROSS JOIN job j ON j.id = f.id "
                                             "JOIN series s ON s.id = j.series_id "
                                             "WHERE j.revision < s.revision ORDER BY j.id",
                           values, 5, job_supersede, now_ms, &moved);
    return rc < 0 ? rc
                  : queue_list(queue,
                               JOB_FIRST_WAITING
                               "SELECT m.run_id FROM first f CROSS JOIN job j ON j.id = f.id "
                               "CROSS JOIN job_mask m ON m.job_id = j.id CROSS JOIN program_run g ON g.id = m.run_id "
                               "WHERE " RUN_MAY_START JOB_ORDER,
                               values, 5, &database_id, &runs->at, &runs->count);
}

int
queue_next_due(struct queue *queue, int64_t *due_ms)
{
    int rc = queue_read_row(queue,
                            "SELECT not_before_at FROM job INDEXED BY job_delayed WHERE state = 'DELAYED' "
                            "AND not_before_at < '" QUEUE_NO_LIMIT "' ORDER BY not_before_at LIMIT 1",
                            NO_VALUES, &database_time, due_ms);
    return rc == 1 ? database_refuse(&queue->db, -ENOENT, "no job is delayed") : rc;
}

int
queue_earlier_results(struct queue *queue, int64_t job_id, char ***earlier, size_t *count)
{
    return queue_list(queue,
                      "SELECT f.name || ' ' || f.sop || ' ' || f.series || ' ' || f.study "
                      "|| ' ' || f.class || coalesce(' ' || r.sop_instance_uid || ' ' || r.series_uid || ' ' "
                      "|| o.study_uid || ' ' || r.sop_class_uid, '') "
                      "FROM (SELECT replace(r.path, 'outbox/' || r.job_id || '/', '') AS name, max(r.id), "
                      "  r.sop_instance_uid AS sop, r.series_uid AS series, o.study_uid AS study, "
                      "  r.sop_class_uid AS class, r.replaces AS replaces FROM job n "
                      "  JOIN job o ON o.series_id = n.series_id AND o.stack = n.stack "
                      "  AND o.pipeline = n.pipeline AND o.id < n.id AND o.state = 'DONE' "
                      "  JOIN result r ON r.job_id = o.id AND +r.sop_instance_uid <> '' "
                      "  WHERE n.id = ?1 GROUP BY 1) f "
                      "LEFT JOIN result r ON r.id = (SELECT max(id) FROM result "
                      "  WHERE sop_instance_uid = f.replaces AND sop_instance_uid <> '') "
                      "LEFT JOIN job o ON o.id = r.job_id ORDER BY f.name",
                      VALUES(value_int(job_id)), &database_string, earlier, count);
}

int
queue_start_at(struct queue *queue, int64_t job_id, const struct queue_lane *place, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_READY), &row);
    if (rc < 0)
        return rc;
    if (row.revision != row.series_revision)
        return queue_leave(queue, database_refuse(&queue->db, -EAGAIN,
                                                  "job %lld is for revision %d, its series is at %d by now",
                                                  (long long)job_id, row.revision, row.series_revision));
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'RUNNING', attempts = attempts + 1, worker = ?3, lane = ?4, "
                                  "started_at = ?5, code = '', message = '', file_a = '', file_b = '', executor = ?6, "
                                  "nonce = ?7, slurm_id = NULL, submitted_at = NULL, node = '', slurm_reason = '', "
                                  "stage = '', stage_at = NULL, "
                                  "study_uid = (SELECT study_uid FROM series WHERE id = job.series_id) "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_text(place->worker), value_int(place->lane),
                                         value_time(now_ms), value_text(place->executor), value_text(place->nonce)));
    if (changed == -EEXIST)
        changed = database_refuse(&queue->db, -EBUSY, "lane %d of %s runs a job already", place->lane, place->worker);
    char words[128];
    snprintf(words, sizeof words, "%s, lane %d, attempt %d", place->worker, place->lane, row.attempts + 1);
    return queue_leave(queue, edge_taken(queue, changed, &row, QUEUE_RUNNING, "JOB_STARTED", CODE_NONE, words, now_ms));
}

int
queue_start_job(struct queue *queue, int64_t job_id, const char *worker, int32_t lane, int64_t now_ms)
{
    const struct queue_lane place = {worker, lane, "local", ""};
    return queue_start_at(queue, job_id, &place, now_ms);
}

int
queue_set_stage(struct queue *queue, int64_t job_id, const char *stage, int64_t since_ms)
{
    return queue_change(queue, "UPDATE job SET stage = ?2, stage_at = ?3 WHERE id = ?1 AND state = 'RUNNING'",
                        VALUES(value_int(job_id), value_text(stage), value_time(since_ms)));
}

/* ------------------------------------------------------------------------------------ ending - */

int
queue_job_stands(struct queue *queue, int64_t job_id, int64_t now_ms)
{
    int rc = database_run(&queue->db,
                          "UPDATE job SET superseded_by = n.id FROM job n "
                          "WHERE n.id = ? AND job.series_id = n.series_id AND job.stack = n.stack "
                          "AND job.pipeline = n.pipeline AND job.revision = n.revision "
                          "AND job.id < n.id AND job.superseded_by IS NULL",
                          VALUES(value_int(job_id)));
    if (rc == 0)
        rc = queue_close_reviews(queue, job_id, now_ms);
    return rc == 0 ? queue_withdraw_superseded(queue, job_id, now_ms) : rc;
}

static int
job_finish(struct queue *queue, const struct edge_row *row, const struct queue_finish *finish, int64_t now_ms)
{
    static const char *const kinds[] = {
        [QUEUE_DONE] = "JOB_DONE", [QUEUE_EMPTY] = "JOB_EMPTY", [QUEUE_REVIEW] = "JOB_REVIEW"};
    const struct queue_figures *f = finish->figures;
    const struct queue_voxels *v = &f->voxel;
    int changed = database_change(
        &queue->db,
        "UPDATE job SET state = ?3, ended_at = ?4, read_seconds = ?5, compute_seconds = ?6, "
        "write_seconds = ?7, verify_seconds = ?8, total_seconds = ?9, voxels = ?10, "
        "segmented_voxels = ?11, peak_bytes = ?12, backend = ?13, note = ?14, code = ?15, "
        "message = ?16, spacing_x_mm = ?17, spacing_y_mm = ?18, spacing_z_mm = ?19, "
        "source_x_mm = ?20, source_y_mm = ?21, source_step_min_mm = ?22, "
        "source_step_max_mm = ?23, straightened = ?24, kernel = ?25, kvp = ?26, "
        "slice_thickness_min_mm = ?27, slice_thickness_max_mm = ?28, pixel_values = ?29, "
        "pixel_intensity = ?30, spacing_source = ?31 WHERE id = ?1 AND state = ?2",
        VALUES(EDGE_GUARD(row), value_text(queue_job_state_name(finish->state)), value_time(now_ms),
               value_seconds(f->read_seconds), value_seconds(f->compute_seconds), value_seconds(f->write_seconds),
               value_seconds(f->verify_seconds), value_seconds(f->total_seconds), value_known(f->voxels),
               value_known(f->segmented_voxels), value_known(f->peak_bytes), value_text(f->backend),
               value_text(f->note), value_text(code_name(finish->code)), value_text(finish->message),
               value_length(v->spacing[0]), value_length(v->spacing[1]), value_length(v->spacing[2]),
               value_length(v->source_spacing[0]), value_length(v->source_spacing[1]), value_length(v->source_steps[0]),
               value_length(v->source_steps[1]), value_optional(v->straightened), value_optional(v->kernel),
               value_length(v->kvp), value_length(v->thickness[0]), value_length(v->thickness[1]),
               value_optional(v->pixel_values), value_optional(v->pixel_intensity), value_optional(v->spacing_source)));
    int rc = edge_taken(queue, changed, row, (int)finish->state, kinds[finish->state], finish->code, finish->message,
                        now_ms);
    for (size_t i = 0; rc == 0 && i < finish->result_count; i++) {
        const struct queue_result *r = &finish->results[i];
        rc = database_run(&queue->db,
                          "INSERT INTO result (job_id, kind, path, sop_class_uid, sop_instance_uid, series_uid, "
                          "size_bytes, frames, created_at, replaces) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                          VALUES(value_int(row->id), value_text(r->kind), value_text(r->path),
                                 value_text(r->sop_class_uid), value_text(r->sop_instance_uid),
                                 value_text(r->series_uid), value_int(r->size), value_int(r->frames),
                                 value_time(now_ms), value_text(r->replaces)));
        if (rc == 0)
            rc = queue_add_deliveries(queue, sqlite3_last_insert_rowid(queue->db.handle), r, now_ms);
    }
    if (rc == 0 && finish->result_count > 0)
        rc = queue_add_images(queue, row->id, &finish->results[0], now_ms);
    if (rc == 0)
        rc = queue_add_features(queue, row->id, finish->figures);
    return rc == 0 && finish->state != QUEUE_REVIEW ? queue_job_stands(queue, row->id, now_ms) : rc;
}

/* Checks the members of an end. Results under review must have no destinations. */
static bool
job_finish_is_sound(const struct queue_finish *finish)
{
    if (finish->state != QUEUE_REVIEW)
        return finish->state == (finish->result_count ? QUEUE_DONE : QUEUE_EMPTY);
    for (size_t i = 0; i < finish->result_count; i++)
        if (finish->results[i].destination_count > 0)
            return false;
    return finish->code == CODE_EXPECTATION_BROKEN || finish->code == CODE_CORRECTED;
}

int
queue_finish_job(struct queue *queue, int64_t job_id, const struct queue_finish *finish, int64_t now_ms)
{
    struct edge_row row;
    if (!job_finish_is_sound(finish))
        return database_refuse(&queue->db, -EINVAL,
                               "a job ends as DONE with results, as EMPTY without, or as REVIEW "
                               "with a reason and no deliveries, not as %s with %zu",
                               queue_job_state_name(finish->state), finish->result_count);
    int64_t found;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_RUNNING), &row);
    if (rc < 0)
        return rc;
    if (finish->state != QUEUE_REVIEW)
        rc = database_get(&queue->db, "SELECT 1 FROM job WHERE id = ? AND corrects NOTNULL", VALUES(value_int(job_id)),
                          &found);
    if (rc == 1)
        rc = database_refuse(&queue->db, -EINVAL, "job %lld measured corrected masks and must end under review",
                             (long long)job_id);
    return queue_leave(queue, rc ? rc : job_finish(queue, &row, finish, now_ms));
}

static int
job_fail(struct queue *queue, const struct edge_row *row, enum code code, const char *message, const char *file_a,
         const char *file_b, int64_t now_ms)
{
    int changed =
        database_change(&queue->db,
                        "UPDATE job SET state = 'FAILED', ended_at = ?3, code = ?4, message = ?5, file_a = ?6, "
                        "file_b = ?7 WHERE id = ?1 AND state = ?2",
                        VALUES(EDGE_GUARD(row), value_time(now_ms), value_text(code_name(code)), value_text(message),
                               value_text(file_a), value_text(file_b)));
    return edge_taken(queue, changed, row, QUEUE_FAILED, "JOB_FAILED", code, message, now_ms);
}

int
queue_fail_job(struct queue *queue, int64_t job_id, enum code code, const char *message, const char *file_a,
               const char *file_b, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_RUNNING), &row);
    if (rc < 0)
        return rc;
    /* An image may have been replaced while it ran: the newer revision of the series has its own job. */
    if (row.revision < row.series_revision)
        rc = job_supersede(queue, &row, now_ms);
    else
        rc = job_fail(queue, &row, code, message, file_a, file_b, now_ms);
    return queue_leave(queue, rc);
}

int
queue_delay_job(struct queue *queue, int64_t job_id, int64_t not_before_ms, bool alone, enum code code,
                const char *message, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_RUNNING), &row);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'DELAYED', not_before_at = ?3, alone = ?4, "
                                  "code = ?5, message = ?6 WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_time(not_before_ms), value_int(alone),
                                         value_text(code_name(code)), value_text(message)));
    return queue_leave(queue, edge_taken(queue, changed, &row, QUEUE_DELAYED, "JOB_DELAYED", code, message, now_ms));
}

int
queue_return_job(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_RUNNING), &row);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'READY', ready_at = ?3, "
                                  "started_at = NULL, attempts = attempts - 1 "
                                  "WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(&row), value_time(now_ms)));
    return queue_leave(queue, edge_taken(queue, changed, &row, QUEUE_READY, "JOB_RETURNED", CODE_NONE, why, now_ms));
}

/* --------------------------------------------------------------- the operator's, the restart's */

int
queue_cancel_job(struct queue *queue, int64_t job_id, int64_t now_ms, bool *was_running)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_READY) | IN(QUEUE_DELAYED) | IN(QUEUE_RUNNING), &row);
    if (rc < 0)
        return rc;
    *was_running = row.state == QUEUE_RUNNING;
    return queue_leave(queue,
                       job_cancel(queue, &row, "JOB_CANCELLED", CODE_CANCELLED, "cancelled by an operator", now_ms));
}

/* Returns -ESTALE if a newer job or revision exists, or its files are removed. */
static int
job_expect_current(struct queue *queue, const struct edge_row *row)
{
    int64_t by;
    if (row->revision != row->series_revision)
        return database_refuse(&queue->db, -ESTALE,
                               "job %lld is for revision %d, its series is at %d by now: retry the job of that one",
                               (long long)row->id, row->revision, row->series_revision);
    int rc = database_get(&queue->db, "SELECT superseded_by FROM job WHERE id = ? AND superseded_by NOTNULL",
                          VALUES(value_int(row->id)), &by);
    return rc == 1  ? database_refuse(&queue->db, -ESTALE, "job %lld took the place of job %lld: retry that one",
                                      (long long)by, (long long)row->id)
           : rc < 0 ? rc
                    : job_expect_files(queue, row->series_id);
}

static int
job_retry(struct queue *queue, const struct edge_row *row, const struct queue_retry *retry, int64_t now_ms,
          int64_t *job_id, struct queue_ids *running)
{
    struct queue_job job;
    int rc = job_expect_current(queue, row);
    if (rc == 0)
        rc = queue_get_job(queue, row->id, &job);
    if (rc < 0)
        return rc;
    const bool changed = retry->settings && strcmp(retry->settings, job.settings) != 0;
    const bool has_output = (IN(QUEUE_DONE) | IN(QUEUE_EMPTY) | IN(QUEUE_REVIEW) | IN(QUEUE_REJECTED)) & IN(row->state);
    *job_id = row->id;
    if (!changed && !has_output && ((IN(QUEUE_READY) | IN(QUEUE_RUNNING)) & IN(row->state)))
        rc = edge_wrong_state(queue, row);
    else if (!changed && !has_output) /* in the same row: it has no result that could be lost */
        rc = edge_taken(queue,
                        database_change(&queue->db,
                                        "UPDATE job SET state = 'READY', attempts = 0, ready_at = ?3, "
                                        "started_at = NULL, ended_at = NULL, not_before_at = NULL, "
                                        "prior_until_at = iif(state = 'DELAYED' AND code = 'PRIOR_WAITING', ?3, NULL), "
                                        "code = '', message = '', file_a = '', file_b = '' "
                                        "WHERE id = ?1 AND state = ?2",
                                        VALUES(EDGE_GUARD(row), value_time(now_ms))),
                        row, QUEUE_READY, "JOB_RETRIED", CODE_NONE, "an operator's retry", now_ms);
    else if (!changed && !retry->again && !row->removed)
        rc = database_refuse(&queue->db, -EEXIST, "job %lld is %s with this pipeline already", (long long)row->id,
                             queue_job_state_name(job.state));
    else {
        char asked[64];
        snprintf(asked, sizeof asked, "an operator's retry of job %lld", (long long)job.id);
        const struct queue_new_job new_job = {
            .series_id = job.series_id,
            .revision = job.revision,
            .stack = job.stack,
            .pipeline = job.pipeline,
            .settings = retry->settings ? retry->settings : job.settings,
            .priority = job.priority,
            .done_by_ms = job.done_by_ms,
            .again = true,
            .asked = asked,
            .retry_of = job.id,
        };
        rc = job_add(queue, &new_job, now_ms, job_id, running);
        if (rc == 0 && !changed) /* it takes the stored masks */
            rc = job_copy_masks(queue, row->id, *job_id);
    }
    queue_job_clear(&job);
    return rc;
}

int
queue_retry_job(struct queue *queue, const struct queue_retry *retry, int64_t now_ms, int64_t *job_id,
                struct queue_ids *superseded_running)
{
    struct edge_row row;
    *superseded_running = (struct queue_ids){0};
    int rc = edge_enter(queue, &machine_job, retry->job_id, ~0u, &row);
    if (rc < 0)
        return rc;
    rc = job_retry(queue, &row, retry, now_ms, job_id, superseded_running);
    return job_leave_added(queue, rc, superseded_running);
}

int
queue_set_priority(struct queue *queue, int64_t job_id, int32_t priority, const char *by, int64_t now_ms)
{
    struct edge_row row;
    char words[256];
    int64_t before = 0;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_READY) | IN(QUEUE_DELAYED), &row);
    if (rc < 0)
        return rc;
    rc = database_get(&queue->db, "SELECT priority FROM job WHERE id = ?", VALUES(value_int(job_id)), &before);
    if (rc >= 0)
        rc = database_run(&queue->db, "UPDATE job SET priority = ? WHERE id = ?",
                          VALUES(value_int(priority), value_int(job_id)));
    snprintf(words, sizeof words, "%lld to %d, by %s", (long long)before, priority, by);
    if (rc == 0)
        rc = edge_note(queue, &row, NULL, NULL, "JOB_PRIORITY", CODE_NONE, words, now_ms);
    return queue_leave(queue, rc);
}

static int
job_recover_as_ready(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE job SET state = 'READY', ready_at = ?3, "
                                  "started_at = NULL WHERE id = ?1 AND state = ?2",
                                  VALUES(EDGE_GUARD(row), value_time(now_ms)));
    return edge_taken(queue, changed, row, QUEUE_READY, "JOB_RECOVERED", CODE_NONE,
                      "it was running when the daemon ended", now_ms);
}

static int
job_recover_as_failed(struct queue *queue, const struct edge_row *row, int64_t now_ms)
{
    char message[160];
    snprintf(message, sizeof message,
             "the daemon ended while the job ran, and that was attempt %d, the last one allowed", row->attempts);
    return job_fail(queue, row, CODE_CRASHED, message, "", "", now_ms);
}

int
queue_recover(struct queue *queue, int32_t max_attempts, int64_t now_ms, int32_t *returned)
{
    int64_t failed, running = 0;
    *returned = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_recover_deliveries(queue, now_ms);
    if (rc == 0)
        rc = queue_recover_pulls(queue, now_ms);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_job,
                           "SELECT id FROM job WHERE state = 'RUNNING' AND executor = 'local' "
                           "AND attempts >= ? ORDER BY id",
                           VALUES(value_int(max_attempts)), job_recover_as_failed, now_ms, &failed);
    if (rc == 0)
        rc = edge_for_each(queue, &machine_job,
                           "SELECT id FROM job WHERE state = 'RUNNING' AND executor = 'local' ORDER BY id", NO_VALUES,
                           job_recover_as_ready, now_ms, &running);
    rc = queue_leave(queue, rc);
    if (rc == 0)
        *returned = (int32_t)running;
    return rc;
}
