/*
 * report_private.h - shared by the parts of the report: report.c (opening, JSON, status),
 * report_table.c, lists.c, alert_rows.c, job_details.c and feature_lists.c. Private to db/.
 */
#ifndef NOCTULE_DB_REPORT_REPORT_PRIVATE_H
#define NOCTULE_DB_REPORT_REPORT_PRIVATE_H

#include "db/database.h"
#include "db/iso_time.h"
#include "db/report.h"

#include <time.h>

/* The time at which queries end. */
struct report_limit {
    struct timespec until;
    bool over;
};

struct report {
    struct database db;
    struct report_limit limit;
};

/* Selected rows of a view: the text after FROM, and the values of its parameters. */
struct report_selection {
    const char *view;
    const char *tail; /* "WHERE ... ORDER BY ... LIMIT ..." */
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

/* The kind of a column, and how it is fitted to the width of a terminal. */
enum {
    REPORT_TEXT = 0,   /* shortened in its middle */
    REPORT_NUMBER = 1, /* right-aligned, not shortened */
    REPORT_WHOLE = 2,  /* not shortened */
    REPORT_DROP = 4    /* left out if the line is too long, the last such column first */
};

struct report_column {
    const char *title;      /* with the unit */
    const char *expression; /* SQL over the view */
    unsigned kind;          /* several joined by OR */
};

/* Formats eta_seconds and the like as `eta`: "12.34 s", "3 min 20 s", "5 h 2 min". */
#define WHOLE(name) "CAST(" #name "_seconds + 0.5 AS INTEGER)"
#define DURATION(name)                                                                             \
    "CASE WHEN " #name "_seconds < 120 THEN printf('%.2f s', " #name "_seconds) "                  \
    "WHEN " WHOLE(name) " < 7200 "                                                                 \
                        "THEN printf('%d min %d s', " WHOLE(name) " / 60, " WHOLE(                 \
                            name) " % 60) "                                                        \
                                  "WHEN " #name "_seconds IS NOT NULL "                            \
                                  "THEN printf('%d h %d min', " WHOLE(name) " / 3600, " WHOLE(     \
                                      name) " % 3600 / 60) "                                       \
                                            "END AS " #name

#define COLUMN_COUNT(columns) (sizeof(columns) / sizeof *(columns))

/*
 * Prints a table. `heading`: NULL, or a line above it; with a heading, a table without rows is not
 * printed. On a terminal, columns are left out and shortened until a line fits.
 */
int report_print_table(struct report *report, const struct report_selection *selection,
                       const char *heading, const struct report_column *columns,
                       size_t column_count, FILE *out);
/* Prints deliveries with the columns that they have in all lists. */
int report_print_deliveries(struct report *report, const struct report_selection *selection,
                            const char *heading, FILE *out);

/*
 * Prints all columns of the selection: an array of objects, or the one object. Each of `parts` is
 * an array of objects of another view; v_results is named "results" there.
 */
int report_print_json(struct report *report, const struct report_selection *selection, bool one,
                      const struct report_selection *parts, size_t part_count, FILE *out);
/* Prints the columns of the first row that are not NULL, one per line. `sql` must be static. */
int report_print_lines(struct report *report, const char *sql, const struct database_value *values,
                       size_t count, FILE *out);

/*
 * Returns a malloc'd text for people: local times, and a space for each control character (C0, DEL,
 * C1), so that no text can move a cursor.
 */
char *report_printable(const char *text);

/* Returns -ENOENT if there is no such job. */
int report_expect_job(struct report *report, int64_t job_id);

/*
 * Copies the reason into the caller's buffer, and reports a failed write to `out` (which may be
 * NULL) like any other error.
 */
int report_conclude(struct report *report, FILE *out, int rc, struct error *error);

#endif
