/*
 * report_private.h - shared by the parts of the report: report.c (opening, JSON, status), lists.c
 * (reading), list_rows.c (all lists), list_text.c (printing). Private to db/.
 */
#ifndef NOCTULE_DB_REPORT_REPORT_PRIVATE_H
#define NOCTULE_DB_REPORT_REPORT_PRIVATE_H

#include "db/database.h"
#include "db/iso_time.h"
#include "db/report.h"
#include "db/report_lists.h"

#include <time.h>

/* The time at which queries end. */
struct report_limit {
    struct timespec until;
    bool over;
};

struct report {
    struct database db;
    struct report_limit limit;
    char *sql[REPORT_LIST_COUNT]; /* of the lists of report_lists.h that were read; else NULL */
};

/* Rows of a list: those with these parameters. */
struct report_selection {
    const struct report_list *list;
    const struct database_value *values;
    size_t count;
};

/*
 * Prepares the text with the selection's values, and frees the text. Free the statement with
 * sqlite3_finalize().
 */
int report_start(struct report *report, sqlite3_str *sql, const struct report_selection *selection,
                 sqlite3_stmt **statement);
/* Returns "" for NULL. */
const char *report_text(sqlite3_stmt *row, int column);

/* Formats eta_seconds and the like as `eta`: "12.34 s", "3 min 20 s", "5 h 2 min". */
#define WHOLE(name) "CAST(" #name "_seconds + 0.5 AS INTEGER)"
#define DURATION(name)                                                                                                 \
    "CASE WHEN " #name "_seconds < 120 THEN printf('%.2f s', " #name "_seconds) "                                      \
    "WHEN " WHOLE(name) " < 7200 "                                                                                     \
                        "THEN printf('%d min %d s', " WHOLE(name) " / 60, " WHOLE(                                     \
                            name) " % 60) "                                                                            \
                                  "WHEN " #name "_seconds IS NOT NULL "                                                \
                                  "THEN printf('%d h %d min', " WHOLE(name) " / 3600, " WHOLE(name) " % 3600 / 60) "   \
                                                                                                    "END AS " #name

#define COLUMN_COUNT(columns) (sizeof(columns) / sizeof *(columns))

/* The parts of a job. */
enum report_part {
    REPORT_RESULTS,
    REPORT_DELIVERIES,
    REPORT_EVENTS,
    REPORT_SEGMENTS,
    REPORT_BREACHES, /* only in JSON */
    REPORT_AUDIT,
    REPORT_PARTS
};

extern const struct report_list report_parts[REPORT_PARTS];
extern const struct report_list report_configured, report_reviews;

/* The features of ?1, a job, and ?2, a segment, with ?3, common properties as text. */
extern const struct report_list report_feature_group;
extern const struct report_list report_histograms; /* ?1: the job, ?2: the segment or NULL */

#define FEATURE_HEADING                                                                                                \
    "CASE WHEN segment = 0 THEN 'Whole volume' ELSE 'Segment ' || segment END "                                        \
    "|| CASE WHEN label <> '' THEN ', ' || label ELSE '' END || ': ' || family "                                       \
    "|| CASE WHEN aggregation <> '' THEN ', ' || aggregation ELSE '' END "                                             \
    "|| CASE WHEN aggregation_ibsi_code <> '' THEN ' (' || aggregation_ibsi_code || ')' "                              \
    "   ELSE '' END "                                                                                                  \
    "|| coalesce(', distance ' || distance, '') "                                                                      \
    "|| CASE WHEN directions <> '' THEN ', directions ' || directions ELSE '' END "                                    \
    "|| CASE symmetric WHEN 1 THEN ', symmetric' WHEN 0 THEN ', directional' ELSE '' END "                             \
    "|| CASE WHEN discretisation <> '' THEN ', ' || discretisation ELSE '' END "                                       \
    "|| coalesce(', ' || levels || ' levels', '') "                                                                    \
    "|| CASE WHEN bin_width THEN ', bins of ' || printf('%.10g', bin_width) ELSE '' END "                              \
    "|| CASE WHEN range_low IS NOT NULL THEN ', values from ' || printf('%.10g', range_low) "                          \
    "   || ' to ' || printf('%.10g', range_high) ELSE '' END "                                                         \
    "|| CASE WHEN other_settings <> '' THEN ', ' || other_settings ELSE '' END"

/* Reads the column `id` of all rows. Adds to the array, also if it fails. Returns 0 or -errno. */
int report_browse_ids(struct report *report, const struct report_list *list, const struct report_browse *wanted,
                      char ***ids, size_t *count);

/* Adds the row of a statement that has the columns of the list, then its mark if it has one. */
int report_add_row(struct report *report, struct report_table *table, sqlite3_stmt *row);

/*
 * Prints a list as text. `heading`: NULL, or a line above it; with a heading, a list without rows
 * is not printed.
 */
int report_print_rows(struct report *report, const struct report_selection *selection, const char *heading, FILE *out);

/*
 * Prints all columns of the view: an array of objects, or the one object. Each of `parts` is an
 * array of objects of another view; v_results is named "results" there.
 */
int report_print_json(struct report *report, const struct report_selection *selection, bool one,
                      const struct report_list *parts, size_t part_count, FILE *out);
/*
 * Appends an expression of an object with all columns of the view, without its end. Returns 0 or -errno.
 */
int report_append_object(struct report *report, sqlite3_str *sql, const char *view);
/* Prints the columns of the first row that are not NULL, one per line. `sql` must be static. */
int report_print_lines(struct report *report, const char *sql, const struct database_value *values, size_t count,
                       FILE *out);

/*
 * Returns a malloc'd text with a space for each control character (C0, DEL, C1), so that no text can move a cursor.
 * report_printable() also makes times local.
 */
char *report_harmless(const char *text);
char *report_printable(const char *text);

/* Returns -ENOENT if there is no such job. */
int report_expect_job(struct report *report, int64_t job_id);

/*
 * Copies the reason into the caller's buffer, and reports a failed write to `out` (which may be
 * NULL) like any other error.
 */
int report_conclude(struct report *report, FILE *out, int rc, struct error *error);

#endif
