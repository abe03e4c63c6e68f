/* prior_rows.c - the result of an earlier study that a job is compared with. */
#include "db/queue/queue_private.h"

/* A date YYYYMMDD as a day; NULL if it is none. */
#define DAY(date) "julianday(substr(" date ", 1, 4) || '-' || substr(" date ", 5, 2) || '-' || substr(" date ", 7))"

/* The programs that made the masks of a job, with their weights; NULL: none. */
#define PROGRAMS(job)                                                                                                  \
    "(SELECT group_concat(program || ' ' || identity) FROM (SELECT m.program, r.identity FROM job_mask m "             \
    "JOIN program_run r ON r.id = m.run_id WHERE m.job_id = " job ".id ORDER BY m.program))"

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
queue_find_prior(struct queue *queue, int64_t job_id, struct queue_prior *prior)
{
    *prior = (struct queue_prior){0};
    const int rc = queue_read_row(
        queue,
        "SELECT o.id, CAST(" DAY("s.study_date") " - " DAY("p.study_date") " AS INTEGER), " PROGRAMS(
            "o") " IS " PROGRAMS("n") ", p.study_date, c.text "
                                      "FROM job n JOIN series s ON s.id = n.series_id "
                                      "JOIN series p ON p.patient_id = s.patient_id AND p.study_uid <> s.study_uid "
                                      "JOIN job o ON o.series_id = p.id AND o.pipeline = n.pipeline AND o.stack = "
                                      "n.stack "
                                      "JOIN settings c ON c.id = o.settings_id "
                                      "WHERE n.id = ?1 AND s.patient_id <> '' AND o.state IN ('DONE', 'EMPTY') AND "
                                      "o.superseded_by IS NULL "
                                      "AND " DAY("p.study_date") " < " DAY(
                                          "s.study_date") " "
                                                          "ORDER BY p.study_date DESC, p.description = s.description "
                                                          "DESC, o.id DESC LIMIT 1",
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
    return queue_list(
        queue,
        "SELECT g.tracking_uid, g.label, o.id, CAST(" DAY("s.study_date") " - " DAY(
            "p.study_date") " AS INTEGER), " PROGRAMS("o") " IS " PROGRAMS("n") ", p.study_date, c.text "
                                                                                "FROM job n JOIN series "
                                                                                "s ON s.id = n.series_id "
                                                                                "JOIN series p ON "
                                                                                "p.patient_id = "
                                                                                "s.patient_id AND "
                                                                                "p.study_uid <> "
                                                                                "s.study_uid "
                                                                                "JOIN job o ON "
                                                                                "o.series_id = p.id JOIN "
                                                                                "segment g ON g.job_id = "
                                                                                "o.id AND g.tracking_uid "
                                                                                "<> '' "
                                                                                "JOIN settings c ON c.id "
                                                                                "= o.settings_id "
                                                                                "WHERE n.id = ?1 AND "
                                                                                "s.patient_id <> '' AND "
                                                                                "o.state IN ('DONE', "
                                                                                "'EMPTY') "
                                                                                "AND o.superseded_by IS "
                                                                                "NULL AND " DAY(
                                                                                    "p.study_"
                                                                                    "date") " < " DAY("s.study_date") " "
                                                                                                                      "ORDE"
                                                                                                                      "R "
                                                                                                                      "BY "
                                                                                                                      "p."
                                                                                                                      "stud"
                                                                                                                      "y_"
                                                                                                                      "date"
                                                                                                                      " DES"
                                                                                                                      "C, "
                                                                                                                      "o."
                                                                                                                      "id "
                                                                                                                      "DESC"
                                                                                                                      ", "
                                                                                                                      "g."
                                                                                                                      "numb"
                                                                                                                      "er "
                                                                                                                      "LIMI"
                                                                                                                      "T "
                                                                                                                      "?2",
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
