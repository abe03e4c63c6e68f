/* prior_rows.c - the result of an earlier study that a job is compared with. */
#include "db/pull_queue.h"
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>

/* A date YYYYMMDD as a day; NULL if it is none. */
#define DAY(date) "julianday(substr(" date ", 1, 4) || '-' || substr(" date ", 5, 2) || '-' || substr(" date ", 7))"

/* The programs that made the masks of a job, with their weights; NULL: none. */
#define PROGRAMS(job)                                                                                                  \
    "(SELECT group_concat(program || ' ' || identity) FROM (SELECT m.program, r.identity FROM job_mask m "             \
    "JOIN program_run r ON r.id = m.run_id WHERE m.job_id = " job ".id ORDER BY m.program))"

#define DAY_S      DAY("s.study_date")
#define DAY_P      DAY("p.study_date")
#define PROGRAMS_N PROGRAMS("n")
#define PROGRAMS_O PROGRAMS("o")

/* The comparison of job n of series s with the earlier job o of series p, as a struct queue_prior, and its tables. */
#define PRIOR_FIELDS                                                                                                   \
    "o.id, CAST(" DAY_S " - " DAY_P " AS INTEGER), " PROGRAMS_O " IS " PROGRAMS_N ", p.study_date, c.text "
#define PRIOR_JOBS                                                                                                     \
    "FROM job n JOIN series s ON s.id = n.series_id JOIN series p ON " SAME_PATIENT                                    \
    "JOIN job o ON o.series_id = p.id JOIN settings c ON c.id = o.settings_id "
#define PRIOR_IS_VALID                                                                                                 \
    "s.patient_id <> '' AND o.state IN ('DONE', 'EMPTY') AND o.superseded_by IS NULL AND " DAY_P " < " DAY_S " "

/* Two series of one Patient ID, unless both have an issuer of it, and these differ. */
#define SAME_PATIENT                                                                                                   \
    "p.patient_id = s.patient_id AND p.study_uid <> s.study_uid AND (p.patient_issuer = s.patient_issuer OR "          \
    "p.patient_issuer = '' OR s.patient_issuer = '') "

static const struct database_shape prior_shape = DATABASE_SHAPE(
    "earlier study", struct queue_prior, {DATABASE_INT64, offsetof(struct queue_prior, job)},
    {DATABASE_INT32, offsetof(struct queue_prior, days)}, {DATABASE_BOOL, offsetof(struct queue_prior, same_programs)},
    {DATABASE_TEXT, offsetof(struct queue_prior, study_date)}, {DATABASE_TEXT, offsetof(struct queue_prior, settings)});

static const struct database_shape value_shape = DATABASE_SHAPE(
    "earlier value", struct queue_prior_value, {DATABASE_TEXT, offsetof(struct queue_prior_value, label)},
    {DATABASE_TEXT, offsetof(struct queue_prior_value, name)},
    {DATABASE_TEXT, offsetof(struct queue_prior_value, unit)},
    {DATABASE_REAL, offsetof(struct queue_prior_value, value)});

DATABASE_CLEAR(queue_prior_clear, queue_prior, prior_shape)
DATABASE_FREE(queue_free_prior_values, queue_prior_value, value_shape)

int
queue_find_prior(struct queue *queue, int64_t job_id, bool missed, struct queue_prior *prior)
{
    *prior = (struct queue_prior){0};
    const int rc = missed ? 1
                          : queue_read_row(queue,
                                           "SELECT " PRIOR_FIELDS PRIOR_JOBS "WHERE n.id = ?1 AND " PRIOR_IS_VALID
                                           "AND o.pipeline = n.pipeline AND o.stack = n.stack "
                                           "ORDER BY p.study_date DESC, p.description = s.description DESC, o.id DESC "
                                           "LIMIT 1",
                                           VALUES(value_int(job_id)), &prior_shape, prior);
    if (rc < 0)
        return rc;
    return queue_change(queue, "UPDATE job SET prior_id = ?2 WHERE id = ?1",
                        VALUES(value_int(job_id), value_id(prior->job)));
}

static const struct database_shape tracked_shape = DATABASE_SHAPE(
    "earlier segment", struct queue_tracked, {DATABASE_TEXT, offsetof(struct queue_tracked, uid)},
    {DATABASE_TEXT, offsetof(struct queue_tracked, label)}, {DATABASE_INT64, offsetof(struct queue_tracked, prior.job)},
    {DATABASE_INT32, offsetof(struct queue_tracked, prior.days)},
    {DATABASE_BOOL, offsetof(struct queue_tracked, prior.same_programs)},
    {DATABASE_TEXT, offsetof(struct queue_tracked, prior.study_date)},
    {DATABASE_TEXT, offsetof(struct queue_tracked, prior.settings)});

DATABASE_FREE(queue_free_tracked, queue_tracked, tracked_shape)

int
queue_tracked_segments(struct queue *queue, int64_t job_id, struct queue_tracked **segments, size_t *count)
{
    return queue_list(queue,
                      "SELECT g.tracking_uid, g.label, " PRIOR_FIELDS PRIOR_JOBS "JOIN segment g ON g.job_id = o.id "
                      "WHERE n.id = ?1 AND " PRIOR_IS_VALID "AND g.tracking_uid <> '' "
                      "ORDER BY p.study_date DESC, o.id DESC, g.number LIMIT ?2",
                      VALUES(value_int(job_id), value_int(QUEUE_TRACKED_MAX)), &tracked_shape, segments, count);
}

int
queue_prior_values(struct queue *queue, int64_t job_id, struct queue_prior_value **values, size_t *count)
{
    return queue_list(
        queue,
        "SELECT label, 'volume', 'ml', volume_ml FROM segment WHERE job_id = ?1 AND volume_ml IS NOT NULL "
        "UNION ALL SELECT d.label, d.name, d.unit, f.value FROM feature f "
        "JOIN feature_definition d ON d.id = f.definition_id "
        "WHERE f.job_id = ?1 AND d.family = 'quantity' AND f.value IS NOT NULL ORDER BY 1, 2",
        VALUES(value_int(job_id)), &value_shape, values, count);
}

/* ------------------------------------------------------------------- from an archive ---- */

int
queue_order_prior(struct queue *queue, int64_t job_id, const char *source, int64_t now_ms)
{
    int64_t batch;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_next_batch(queue, &batch);
    const int added =
        rc < 0 ? rc
               : database_change(
                     &queue->db,
                     "INSERT INTO pull (batch, line, source, key, identifier, state, due_at, asked_by, created_at) "
                     "SELECT ?2, 0, ?3, 'prior', s.series_uid, 'WAITING', ?4, 'job ' || j.id, ?4 "
                     "FROM job j JOIN series s ON s.id = j.series_id "
                     "WHERE j.id = ?1 AND j.prior_item IS NULL AND s.patient_id <> '' "
                     "AND " DAY_S " IS NOT NULL AND NOT EXISTS ("
                     "  SELECT 1 FROM pull_part t JOIN pull p ON p.id = t.pull_id WHERE t.study_uid = s.study_uid "
                     "  AND p.key = 'prior' AND p.created_at <= s.first_seen_at)",
                     VALUES(value_int(job_id), value_int(batch), value_text(source), value_time(now_ms)));
    if (added <= 0)
        return queue_leave(queue, added);
    rc = database_run(&queue->db, "UPDATE job SET prior_item = ?2 WHERE id = ?1",
                      VALUES(value_int(job_id), value_int(batch)));
    char words[128];
    snprintf(words, sizeof words, "item %lld of %s: the earlier study", (long long)batch, source);
    const struct queue_event event = {.kind = "PULL_ADDED", .job_id = job_id, .detail = words};
    return queue_leave(queue, rc == 0 ? queue_add_event(queue, &event, now_ms) : rc);
}

/* The enum queue_prior_state of job j, as if its wait had no limit. A series that is being received may get a job. */
#define PRIOR_STATE                                                                                                    \
    "coalesce((SELECT CASE WHEN p.ended_at IS NULL THEN 1 WHEN p.state NOT IN ('DONE', 'NOT_FOUND') THEN 2 "           \
    "ELSE EXISTS (SELECT 1 FROM pull_part t JOIN series x ON x.study_uid = t.study_uid WHERE t.pull_id = p.id "        \
    "  AND x.removed_at IS NULL AND (x.state = 'GATHERING' OR EXISTS (SELECT 1 FROM job o INDEXED BY job_series "      \
    "WHERE o.series_id = x.id "                                                                                        \
    "    AND o.pipeline = j.pipeline AND o.state IN ('READY', 'DELAYED', 'RUNNING')))) END "                           \
    "FROM pull p WHERE p.id = j.prior_item), 0)"

struct prior_wait {
    int64_t state, until_ms, item;
    char *source;
};

static const struct database_shape prior_wait_shape = DATABASE_SHAPE(
    "wait for an earlier study", struct prior_wait, {DATABASE_INT64, offsetof(struct prior_wait, state)},
    {DATABASE_TIME, offsetof(struct prior_wait, until_ms)}, {DATABASE_INT64, offsetof(struct prior_wait, item)},
    {DATABASE_TEXT, offsetof(struct prior_wait, source)});

static void prior_wait_clear(struct prior_wait *wait);
DATABASE_CLEAR(prior_wait_clear, prior_wait, prior_wait_shape)

/* READY -> DELAYED. */
static int
prior_wait_begin(struct queue *queue, int64_t job_id, const struct prior_wait *wait, int64_t now_ms)
{
    char text[256];
    struct edge_row row;
    int rc = edge_enter(queue, &machine_job, job_id, IN(QUEUE_READY), &row);
    if (rc < 0)
        return rc;
    snprintf(
        text, sizeof text,
        "It waits for the latest earlier study of the patient: item %lld of %s (noctule pull), and its jobs of this "
        "pipeline.",
        (long long)wait->item, wait->source);
    rc = database_run(&queue->db, "UPDATE job SET prior_until_at = ?2 WHERE id = ?1",
                      VALUES(value_int(job_id), value_time(wait->until_ms)));
    return queue_leave(queue, rc == 0 ? job_await(queue, &row, CODE_PRIOR_WAITING, text, wait->until_ms, now_ms) : rc);
}

int
queue_await_prior(struct queue *queue, int64_t job_id, int64_t wait_ms, int64_t now_ms, enum queue_prior_state *state)
{
    struct prior_wait wait = {0};
    *state = QUEUE_PRIOR_READY;
    int rc = queue_read_row(queue,
                            "SELECT " PRIOR_STATE ", j.prior_until_at, coalesce(j.prior_item, 0), "
                            "coalesce((SELECT source FROM pull WHERE id = j.prior_item), '') FROM job j WHERE j.id = ?",
                            VALUES(value_int(job_id)), &prior_wait_shape, &wait);
    if (rc)
        return rc < 0 ? rc : -ENOENT;
    *state = (enum queue_prior_state)wait.state;
    if (*state == QUEUE_PRIOR_AWAITED) {
        if (!wait.until_ms)
            wait.until_ms = now_ms + wait_ms;
        if (now_ms >= wait.until_ms)
            *state = QUEUE_PRIOR_MISSED;
        else
            rc = prior_wait_begin(queue, job_id, &wait, now_ms);
    }
    prior_wait_clear(&wait);
    return rc;
}

int
queue_priors_ready(struct queue *queue, struct queue_ids *jobs)
{
    return queue_list(queue,
                      "SELECT j.id FROM job j INDEXED BY job_waits_prior WHERE j.state = 'DELAYED' "
                      "AND j.code = 'PRIOR_WAITING' AND " PRIOR_STATE " <> 1 ORDER BY j.id",
                      NO_VALUES, &database_id, &jobs->at, &jobs->count);
}

int
queue_resume_priors(struct queue *queue, const struct queue_ids *jobs, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < jobs->count && rc == 0; i++) {
        struct edge_row row;
        rc = edge_expect(queue, &machine_job, jobs->at[i], IN(QUEUE_DELAYED), &row);
        if (rc == 0)
            rc = job_resume(queue, &row, "JOB_PRIOR_CAME", now_ms);
        if (rc == -EAGAIN) /* it ended or started meanwhile */
            rc = 0;
    }
    return queue_leave(queue, rc);
}

int
queue_prior_file(struct queue *queue, int64_t pull_id, char **path)
{
    *path = NULL;
    return queue_read_row(queue,
                          "SELECT i.path FROM job j JOIN instance i ON i.series_id = j.series_id "
                          "WHERE j.prior_item = ? AND j.state IN ('READY', 'DELAYED', 'RUNNING') AND NOT i.missing "
                          "ORDER BY i.id LIMIT 1",
                          VALUES(value_int(pull_id)), &database_string, path);
}
