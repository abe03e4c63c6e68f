/* feature_lists.c - the features of a job: as tables for people, and one by one for documents. */
#include "db/report/report_private.h"

#include "db/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ?1: the job, ?2: the segment or NULL. */
#define OF_JOB "WHERE job = ?1 AND (?2 IS NULL OR segment = ?2)"

/* ------------------------------------------------------------------------------- one by one --- */

static int
take_features(struct report *report, const struct database_value values[2],
              int (*take)(void *context, const struct feature *feature), void *context)
{
    sqlite3_stmt *row;
    int rc = database_query(&report->db,
                            "SELECT segment, label, family, name, meaning, ibsi_code, value, reason, unit, "
                            "settings FROM v_features " OF_JOB " ORDER BY place",
                            values, 2, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1) {
        const struct feature feature = {
            .segment = sqlite3_column_int(row, 0),
            .label = report_text(row, 1),
            .family = report_text(row, 2),
            .name = report_text(row, 3),
            .meaning = report_text(row, 4),
            .ibsi = report_text(row, 5),
            .value = sqlite3_column_double(row, 6),
            .missing_reason = report_text(row, 7),
            .unit = report_text(row, 8),
            .settings = report_text(row, 9),
        };
        rc = take(context, &feature);
        if (rc < 0) {
            database_refuse(&report->db, rc, "%s", strerror(-rc));
            break;
        }
    }
    sqlite3_finalize(row);
    return rc;
}

/* --------------------------------------------------------------------------------- for people - */

/* Prints the job, and the reason if it has no features. */
static const char summary_sql[] =
    "SELECT 'Job ' || job || ', pipeline ' || pipeline || ': ' || "
    "CASE WHEN features > 0 THEN features || CASE features WHEN 1 THEN ' feature' "
    "ELSE ' features' END "
    "WHEN EXISTS (SELECT 1 FROM v_pattern_histograms h WHERE h.job = j.job) "
    "THEN 'pattern histograms and no features' "
    "WHEN state IN ('DONE', 'EMPTY') THEN 'no features, it has neither texture nor quantities' "
    "WHEN state = 'REVIEW' THEN 'the job is under review, and its features count once it is "
    "accepted; they are in outbox/' || job "
    "WHEN state IN ('FAILED', 'CANCELLED', 'REJECTED') "
    "THEN 'no features, the job is ' || state || ' (' || code || ')' "
    "ELSE 'no features yet, the job is ' || state END FROM v_jobs j WHERE job = ?";

static int
print_text(struct report *report, int64_t job_id, const struct database_value values[2], FILE *out)
{
    const struct report_selection histograms = {&report_histograms, values, 2};
    sqlite3_stmt *groups;
    int rc = report_print_lines(report, summary_sql, VALUES(value_int(job_id)), out);
    if (rc == 0)
        rc = database_query(&report->db,
                            "SELECT " FEATURE_HEADING " AS heading, max(reason <> ''), segment FROM v_features " OF_JOB
                            " GROUP BY segment, heading ORDER BY min(place)",
                            values, 2, &groups);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, groups)) == 1) {
        const char *heading = report_text(groups, 0);
        const struct database_value of_group[] = {value_int(job_id), value_int(sqlite3_column_int64(groups, 2)),
                                                  value_text(heading)};
        struct report_list list = report_feature_group;
        list.column_count -= !sqlite3_column_int(groups, 1); /* the last column has reasons */
        char *printable = report_printable(heading);
        rc = printable ? report_print_rows(report, &(struct report_selection){&list, of_group, COLUMN_COUNT(of_group)},
                                           printable, out)
                       : database_refuse(&report->db, -ENOMEM, "out of memory");
        free(printable);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(groups);
    return rc ? rc : report_print_rows(report, &histograms, report_histograms.heading, out);
}

/* ---------------------------------------------------------------------------- either of them -- */

/* Returns -ENOENT if the job has features but none of this segment. */
static int
expect_measured(struct report *report, int64_t job_id, int64_t segment, const struct database_value values[2])
{
    int64_t missing;
    int rc = report_expect_job(report, job_id);
    if (rc == 0)
        rc = database_get(&report->db,
                          "WITH measured AS (SELECT segment FROM v_features WHERE job = ?1 "
                          "UNION SELECT segment FROM v_pattern_histograms WHERE job = ?1) "
                          "SELECT 1 WHERE EXISTS (SELECT 1 FROM measured) AND ?2 NOT IN (SELECT segment FROM measured)",
                          values, 2, &missing);
    if (rc != 1)
        return rc;
    if (segment == 0)
        return database_refuse(&report->db, -ENOENT, "job %lld did not measure the whole volume", (long long)job_id);
    return database_refuse(&report->db, -ENOENT, "job %lld did not measure a segment %lld", (long long)job_id,
                           (long long)segment);
}

/*
 * Calls `take` with each, or prints tables if it is NULL. Reads in one transaction: all rows are of
 * one moment.
 */
static int
report_measured(struct report *report, int64_t job_id, int64_t segment,
                int (*take)(void *context, const struct feature *feature), void *context, FILE *out)
{
    const struct database_value values[] = {value_int(job_id),
                                            segment == REPORT_ALL_SEGMENTS ? value_null() : value_int(segment)};
    int rc = database_script(&report->db, "BEGIN");
    if (rc < 0)
        return rc;
    rc = expect_measured(report, job_id, segment, values);
    if (rc == 0)
        rc = take ? take_features(report, values, take, context) : print_text(report, job_id, values, out);
    database_quietly(&report->db, "COMMIT");
    return rc;
}

int
report_features(struct report *report, int64_t job_id, int64_t segment, FILE *out, struct error *error)
{
    int rc = report_measured(report, job_id, segment, NULL, NULL, out);
    return report_conclude(report, out, rc, error);
}

int
report_each_feature(struct report *report, int64_t job_id, int64_t segment,
                    int (*take)(void *context, const struct feature *feature), void *context, struct error *error)
{
    int rc = report_measured(report, job_id, segment, take, context, NULL);
    return report_conclude(report, NULL, rc, error);
}
