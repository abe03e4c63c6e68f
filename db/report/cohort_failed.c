/* cohort_failed.c - the jobs and series that a cohort lacks, and its counts; see cohort.h. */
#include "db/report/cohort.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The patient of a series `s`. */
#define WHO          "iif(s.patient_id = '', s.study_uid, s.patient_id)"

#define HAS_FEATURES "EXISTS (SELECT 1 FROM feature f WHERE f.job_id = j.id)"

static const char counts_sql[] = "SELECT count(*), count(DISTINCT " WHO "), "
                                 "coalesce(sum(s.patient_id GLOB 'h:' || replace(hex(zeroblob(12)), '0', '[0-9a-f]')), "
                                 "0), coalesce(sum(s.patient_id = ''), 0) " COHORT_JOBS "AND " HAS_FEATURES;

/*
 * Series without a job count if they have a modality that the pipeline measures. If they were not
 * refused, they count only if their patient is not in the table.
 */
static const char failed_sql[] =
    "WITH present(who) AS MATERIALIZED (SELECT DISTINCT " WHO " " COHORT_JOBS "AND " HAS_FEATURES "), "
    "measured(modality) AS MATERIALIZED (SELECT DISTINCT s.modality FROM job j JOIN series s ON s.id = j.series_id "
    "WHERE j.pipeline = ?1), "
    "selected AS (SELECT * FROM series WHERE iif(?3 IS NULL, modality IN measured OR NOT EXISTS (SELECT 1 FROM "
    "measured), "
    "modality = ?3) AND (?2 IS NULL OR coalesce(settled_at, last_seen_at) >= ?2)), "
    "failed(series_id, stack, job, state, code, message, file) AS ("
    /* jobs */
    "SELECT s.id, j.stack, j.id, j.state, j.code, j.message, j.file_a FROM job j JOIN series s ON s.id = j.series_id "
    "WHERE j.pipeline = ?1 AND (?2 IS NULL OR coalesce(j.ended_at, j.created_at) >= ?2) "
    "AND (?3 IS NULL OR s.modality = ?3) AND (?4 OR j.superseded_by IS NULL) "
    "AND (j.state NOT IN ('DONE', 'EMPTY') OR NOT " HAS_FEATURES ") "
    /* refused stacks of series with others */
    "UNION ALL SELECT s.id, x.name, NULL, 'REFUSED', x.code, x.message, x.file_a FROM selected s "
    "JOIN stack x ON x.series_id = s.id AND x.revision = s.revision "
    "WHERE s.state = 'SETTLED' AND NOT x.accepted AND NOT x.passed_over "
    /* whole series */
    "UNION ALL SELECT s.id, '', NULL, v.state, v.code, v.message, v.file_a FROM selected s "
    "JOIN v_series v ON v.series_uid = s.series_uid WHERE (v.state <> 'SETTLED' OR v.jobs = 0) "
    "AND (v.state = 'REFUSED' AND v.passed_over = 0 OR " WHO " NOT IN present)) "
    "SELECT s.patient_id, " COHORT_SOURCE ", s.study_uid, s.series_uid, s.modality, f.stack, f.job, f.state, f.code, "
    "CASE WHEN f.message <> '' THEN f.message WHEN f.state = 'GATHERING' THEN 'The series is still being received.' "
    "WHEN f.state = 'SETTLED' THEN 'The series has no job.' "
    "WHEN f.state IN ('DONE', 'EMPTY') THEN 'The job has no features: its pipeline had no texture.' "
    "WHEN f.state IN ('READY', 'DELAYED', 'RUNNING') THEN 'The job has not ended.' ELSE '' END, "
    "f.file, " WHO " AS who, " WHO " NOT IN present FROM failed f JOIN series s ON s.id = f.series_id "
    /* files of no known series */
    "UNION ALL SELECT '', '', '', q.series_uid, '', '', NULL, 'UNREADABLE', q.code, q.message, q.path, '', 0 "
    "FROM quarantine q WHERE ?3 IS NULL AND (?2 IS NULL OR q.quarantined_at >= ?2) "
    "AND q.code NOT IN ('NOT_DICOM', 'SOP_CLASS_UNSUPPORTED', 'OWN_RESULT') "
    "AND NOT EXISTS (SELECT 1 FROM series s WHERE s.series_uid = q.series_uid) "
    "ORDER BY who, 4, 6, 7";

enum { COLUMNS = 11, STATE = 7, WHO_COLUMN = 11, MISSING_COLUMN = 12 };

/* Prints rows of failed_sql, and counts patients and states. */
static int
write_rows(struct report *report, sqlite3_stmt *rows, FILE *out, struct report_cohort_counts *counts)
{
    struct {
        char name[16];
        int64_t count;
    } states[16] = {0};

    char who[300] = "";
    size_t used = 0;
    int rc;
    while ((rc = database_step(&report->db, rows)) == 1) {
        const char *state = report_text(rows, STATE);
        size_t at = 0;
        while (at + 1 < sizeof states / sizeof *states && states[at].count && strcmp(states[at].name, state) != 0)
            at++;
        snprintf(states[at].name, sizeof states[at].name, "%s", state);
        states[at].count++;
        counts->failed++;
        if (sqlite3_column_int(rows, MISSING_COLUMN) && strcmp(report_text(rows, WHO_COLUMN), who) != 0)
            counts->missing++;
        snprintf(who, sizeof who, "%s", report_text(rows, WHO_COLUMN));
        for (int i = 0; out && i < COLUMNS; i++) {
            text_csv(out, report_text(rows, i));
            fputs(i + 1 < COLUMNS ? "," : "\r\n", out);
        }
    }
    for (size_t i = 0; i < sizeof states / sizeof *states && states[i].count && used < sizeof counts->states; i++)
        used += (size_t)snprintf(counts->states + used, sizeof counts->states - used, "%s%" PRId64 " %s", i ? ", " : "",
                                 states[i].count, states[i].name);
    return rc;
}

int
cohort_write_failed(struct report *report, const struct database_value values[4], FILE *out,
                    struct report_cohort_counts *counts)
{
    sqlite3_stmt *rows;
    *counts = (struct report_cohort_counts){0};
    int rc = database_query(&report->db, counts_sql, values, 4, &rows);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, rows);
    if (rc == 1) {
        counts->jobs = sqlite3_column_int64(rows, 0);
        counts->patients = sqlite3_column_int64(rows, 1);
        counts->hashed = sqlite3_column_int64(rows, 2);
        counts->unnamed = sqlite3_column_int64(rows, 3);
        counts->plain = counts->jobs - counts->hashed - counts->unnamed;
    }
    sqlite3_finalize(rows);
    if (rc < 0)
        return rc;
    if (out)
        fputs("patient,source,study_uid,series_uid,modality,stack,job,state,code,message,file\r\n", out);
    rc = database_query(&report->db, failed_sql, values, 4, &rows);
    if (rc < 0)
        return rc;
    rc = write_rows(report, rows, out, counts);
    sqlite3_finalize(rows);
    return rc;
}
