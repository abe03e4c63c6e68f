/*
 * report_private.h - what the parts of the report share: report.c (life, JSON, the night),
 * report_table.c, lists.c, alert_rows.c, job_details.c and feature_lists.c. Private to db/.
 */
#ifndef NOCTULE_DB_REPORT_REPORT_PRIVATE_H
#define NOCTULE_DB_REPORT_REPORT_PRIVATE_H

#include "db/database.h"
#include "db/iso_time.h"
#include "db/report.h"

#include <time.h>

/* When queries end by themselves. */
struct report_limit {
    struct timespec until;
    bool over;
};

struct report {
    struct database db;
    struct report_limit limit;
};

/* Some rows of a view, or all: what stands behind FROM, and the values of its parameters. */
struct report_selection {
    const char *view;
    const char *tail; /* "WHERE ... ORDER BY ... LIMIT ..." */
    const struct database_value *values;
    size_t count;
};

/* Prepares the text, which is freed, with the selection's values; sqlite3_finalize the statement.
 */
int report_start(struct report *report, sqlite3_str *sql, const struct report_selection *selection,
                 sqlite3_stmt **statement);
/* "" for NULL. */
const char *report_text(sqlite3_stmt *row, int column);

/* What stands in a column, and what becomes of it where a line does not fit the terminal. */
enum {
    REPORT_TEXT = 0,   /* is shortened in its middle */
    REPORT_NUMBER = 1, /* stands to the right, and stays as it is */
    REPORT_WHOLE = 2,  /* stays as it is */
    REPORT_DROP = 4    /* is left out, the last column first */
};

struct report_column {
    const char *title;      /* with the unit */
    const char *expression; /* SQL over the view */
    unsigned kind;          /* of the above, together */
};

/* Of eta_seconds and the like, as `eta`: "12.34 s", "3 min 20 s", "5 h 2 min". */
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

/* `heading`: NULL, or a line above; with one, a table without rows is not printed at all. On a terminal columns are
 * left out and shortened for a line to fit. */
int report_print_table(struct report *report, const struct report_selection *selection,
                       const char *heading, const struct report_column *columns,
                       size_t column_count, FILE *out);
/* With the columns that deliveries have everywhere. */
int report_print_deliveries(struct report *report, const struct report_selection *selection,
                            const char *heading, FILE *out);

/* All columns of the selection: an array of objects, or the one object, in which each of `parts` is
 * an array of the objects of another view; v_results is called "results" there. */
int report_print_json(struct report *report, const struct report_selection *selection, bool one,
                      const struct report_selection *parts, size_t part_count, FILE *out);
/* The columns of the first row that are not NULL, a line each. `sql`: static. */
int report_print_lines(struct report *report, const char *sql, const struct database_value *values,
                       size_t count, FILE *out);

/* Returns a text for people, malloc'd: times are local, and a control character (C0, DEL, C1) becomes a space, so that
 * no text moves a cursor. */
char *report_printable(const char *text);

/* -ENOENT unless there is such a job. */
int report_expect_job(struct report *report, int64_t job_id);

/* What the caller gets: the reason in its buffer, and a failed write (`out` may be NULL) told like any
 * other failure. */
int report_conclude(struct report *report, FILE *out, int rc, struct error *error);

#endif
