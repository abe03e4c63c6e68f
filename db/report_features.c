/*
 * report_features.c - what a job measured, for people and for programs.
 */
#include "report_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ?1: the job, ?2: the segment or NULL. */
#define OF_JOB   "WHERE job = ?1 AND (?2 IS NULL OR segment = ?2)"
#define IN_ORDER OF_JOB " ORDER BY place"

/* ------------------------------------------------------------------------------------ numbers - */

/* SQLite's own texts of numbers, also those within JSON, have 15 digits. */
static void
exact(sqlite3_context *context, int count, sqlite3_value **values)
{
    char text[40];
    (void)count;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return; /* the answer is NULL, too */
    snprintf(text, sizeof text, "%.17g", sqlite3_value_double(values[0]));
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

int
report_add_exact(struct database *db)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc =
        sqlite3_create_function_v2(db->handle, "exact", 1, flags, NULL, exact, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : database_failed(db);
}

/* --------------------------------------------------------------------------------------- JSON - */

static int
print_json(struct report *report, const struct report_selection *features, FILE *out)
{
    sqlite3_stmt *statement;
    int rc = database_query(
        &report->db,
        "SELECT json_object('segment_number', nullif(segment, 0), 'label', nullif(label, ''), "
        "'name', name, 'meaning', nullif(meaning, ''), 'family', nullif(family, ''), "
        "'ibsi_code', nullif(ibsi_code, ''), 'value', json(exact(value)), "
        "'reason', nullif(reason, ''), 'unit', nullif(unit, ''), "
        "'aggregation', nullif(aggregation, ''), "
        "'aggregation_ibsi_code', nullif(aggregation_ibsi_code, ''), "
        "'discretisation', nullif(discretisation, ''), 'levels', levels, "
        "'bin_width', json(exact(bin_width)), "
        "'range', json('[' || exact(range_low) || ',' || exact(range_high) || ']'), "
        "'distance', distance, "
        "'symmetric', json(CASE symmetric WHEN 1 THEN 'true' WHEN 0 THEN 'false' END), "
        "'directions', nullif(directions, '')) FROM v_features " IN_ORDER,
        features->values, features->count, &statement);
    if (rc < 0)
        return rc;
    rc = report_print_rows(report, statement, out);
    sqlite3_finalize(statement);
    return rc;
}

/* ---------------------------------------------------------------------------------------- CSV - */

static void
print_field(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"%c" : "%c", *text);
    fputc('"', out);
}

/* RFC 4180. */
static void
print_record(FILE *out, sqlite3_stmt *row)
{
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        const unsigned char *text = sqlite3_column_text(row, i);
        if (i > 0)
            fputc(',', out);
        print_field(out, text ? (const char *)text : "");
    }
    fputs("\r\n", out);
}

static void
print_header(FILE *out, sqlite3_stmt *row)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", sqlite3_column_name(row, i));
    fputs("\r\n", out);
}

static int
print_csv(struct report *report, const struct report_selection *features, FILE *out)
{
    sqlite3_stmt *statement;
    int rc = database_query(
        &report->db,
        "SELECT nullif(segment, 0) AS segment_number, label, name, meaning, family, ibsi_code, "
        "exact(value) AS value, reason, unit, aggregation, aggregation_ibsi_code, discretisation, "
        "levels, exact(bin_width) AS bin_width, exact(range_low) AS range_low, "
        "exact(range_high) AS range_high, distance, "
        "CASE symmetric WHEN 1 THEN 'true' WHEN 0 THEN 'false' END AS symmetric, directions "
        "FROM v_features " IN_ORDER,
        features->values, features->count, &statement);
    if (rc < 0)
        return rc;
    print_header(out, statement);
    while ((rc = database_step(&report->db, statement)) == 1)
        print_record(out, statement);
    sqlite3_finalize(statement);
    return rc;
}

/* --------------------------------------------------------------------------------- for people - */

/* What all features of a table have in common, in words. */
#define HEADING                                                                                    \
    "CASE WHEN segment = 0 THEN 'Whole volume' ELSE 'Segment ' || segment END "                    \
    "|| CASE WHEN label <> '' THEN ', ' || label ELSE '' END || ': ' || family "                   \
    "|| CASE WHEN aggregation <> '' THEN ', ' || aggregation ELSE '' END "                         \
    "|| CASE WHEN aggregation_ibsi_code <> '' THEN ' (' || aggregation_ibsi_code || ')' "          \
    "   ELSE '' END "                                                                              \
    "|| coalesce(', distance ' || distance, '') "                                                  \
    "|| CASE WHEN directions <> '' THEN ', directions ' || directions ELSE '' END "                \
    "|| CASE symmetric WHEN 1 THEN ', symmetric' WHEN 0 THEN ', directional' ELSE '' END "         \
    "|| CASE WHEN discretisation <> '' THEN ', ' || discretisation ELSE '' END "                   \
    "|| coalesce(', ' || levels || ' levels', '') "                                                \
    "|| CASE WHEN bin_width THEN ', bins of ' || printf('%.10g', bin_width) ELSE '' END "          \
    "|| CASE WHEN range_low IS NOT NULL THEN ', values from ' || printf('%.10g', range_low) "      \
    "   || ' to ' || printf('%.10g', range_high) ELSE '' END"

static const struct report_column feature_columns[] = {
    {"FEATURE", "name", false},
    {"VALUE",
     "CASE WHEN value = round(value) AND abs(value) < 1e15 THEN printf('%d', value) "
     "WHEN value IS NOT NULL THEN printf('%.6g', value) END",
     true},
    {"UNIT", "unit", false},
    {"IBSI", "ibsi_code", false},
    {"NO VALUE BECAUSE", "reason", false},
};

static const struct report_column histogram_columns[] = {
    {"SEGMENT", "CASE WHEN segment = 0 THEN 'volume' ELSE segment END", true},
    {"LABEL", "label", false},
    {"PATTERN", "pattern", false},
    {"SETTINGS", "settings", false},
    {"VOXELS", "(SELECT sum(value) FROM json_each(counts))", true},
};

static int
print_group(struct report *report, int64_t job_id, sqlite3_stmt *group, FILE *out)
{
    const char *heading = (const char *)sqlite3_column_text(group, 0);
    const struct database_value values[] = {value_int(job_id), value_text(heading)};
    struct report_selection rows = {
        .view = "v_features",
        .tail = "WHERE job = ?1 AND " HEADING " = ?2 ORDER BY place",
        .values = values,
        .count = COLUMN_COUNT(values),
    };
    char *printable = report_printable(heading ? heading : "");
    if (!printable)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    int rc = report_print_table(report, &rows, printable, feature_columns,
                                COLUMN_COUNT(feature_columns), out);
    free(printable);
    return rc;
}

static int
print_groups(struct report *report, int64_t job_id, const struct report_selection *features,
             FILE *out)
{
    sqlite3_stmt *groups;
    int rc = database_query(&report->db,
                            "SELECT " HEADING " AS heading FROM v_features " OF_JOB
                            " GROUP BY heading ORDER BY min(place)",
                            features->values, features->count, &groups);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, groups)) == 1) {
        rc = print_group(report, job_id, groups, out);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(groups);
    return rc;
}

/* A line about the job, with the reason where it has measured nothing. */
static int
print_summary(struct report *report, int64_t job_id, FILE *out)
{
    sqlite3_stmt *row;
    int rc = database_start(
        &report->db,
        "SELECT 'Job ' || job || ', pipeline ' || pipeline || ': ' || "
        "CASE WHEN features > 0 THEN features || ' features' "
        "WHEN EXISTS (SELECT 1 FROM v_pattern_histograms h WHERE h.job = j.job) "
        "THEN 'pattern histograms and no features' "
        "WHEN state IN ('DONE', 'EMPTY') THEN 'no features, it has no texture group' "
        "WHEN state IN ('FAILED', 'CANCELLED') "
        "THEN 'no features, the job is ' || state || ' (' || code || ')' "
        "ELSE 'no features yet, the job is ' || state END FROM v_jobs j WHERE job = ?",
        VALUES(value_int(job_id)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    const unsigned char *text = rc == 1 ? sqlite3_column_text(row, 0) : NULL;
    char *printable = report_printable(text ? (const char *)text : "");
    if (printable)
        fprintf(out, "%s\n", printable);
    free(printable);
    database_end(row);
    return rc < 0 ? rc : 0;
}

static int
print_text(struct report *report, int64_t job_id, const struct report_selection *features,
           FILE *out)
{
    struct report_selection histograms = *features;
    histograms.view = "v_pattern_histograms";
    histograms.tail = OF_JOB " ORDER BY segment, pattern, settings";
    int rc = print_summary(report, job_id, out);
    if (rc == 0)
        rc = print_groups(report, job_id, features, out);
    if (rc == 0)
        rc = report_print_table(report, &histograms, "Pattern histograms", histogram_columns,
                                COLUMN_COUNT(histogram_columns), out);
    return rc;
}

/* ------------------------------------------------------------------------------- one or the other
 */

/* Where a job has measured anything, it has measured this segment. */
static int
expect_segment(struct report *report, int64_t job_id, int64_t segment)
{
    int64_t missing;
    int rc = database_get(
        &report->db,
        "WITH measured AS (SELECT segment FROM v_features WHERE job = ?1 "
        "UNION SELECT segment FROM v_pattern_histograms WHERE job = ?1) "
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM measured) AND ?2 NOT IN (SELECT segment FROM "
        "measured)",
        VALUES(value_int(job_id), value_int(segment)), &missing);
    if (rc != 1)
        return rc;
    if (segment == 0)
        return database_refuse(&report->db, -ENOENT, "job %lld did not measure the whole volume",
                               (long long)job_id);
    return database_refuse(&report->db, -ENOENT, "job %lld did not measure a segment %lld",
                           (long long)job_id, (long long)segment);
}

static int
print_features(struct report *report, int64_t job_id, int64_t segment, enum report_format format,
               FILE *out)
{
    bool all = segment == REPORT_ALL_SEGMENTS;
    const struct database_value values[] = {value_int(job_id),
                                            all ? value_null() : value_int(segment)};
    struct report_selection features = {"v_features", IN_ORDER, values, COLUMN_COUNT(values)};
    int rc = report_expect_job(report, job_id);
    if (rc == 0 && !all)
        rc = expect_segment(report, job_id, segment);
    if (rc < 0)
        return rc;
    if (format == REPORT_JSON)
        return print_json(report, &features, out);
    if (format == REPORT_CSV)
        return print_csv(report, &features, out);
    return print_text(report, job_id, &features, out);
}

/* In one read transaction: all of it is of the same moment. */
int
report_features(struct report *report, int64_t job_id, int64_t segment, enum report_format format,
                FILE *out, char *reason, size_t reason_size)
{
    int rc = database_script(&report->db, "BEGIN");
    if (rc == 0) {
        rc = print_features(report, job_id, segment, format, out);
        database_quietly(&report->db, "COMMIT");
    }
    return report_conclude(report, out, rc, reason, reason_size);
}
