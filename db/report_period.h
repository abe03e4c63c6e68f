/*
 * report_period.h - the report of a period: all that arrived in it and its state, as tables for any
 * printer.
 *
 * Read from the public views at one moment, like all of report.h. A struct night belongs to the
 * caller and does not change. Texts are as in the database, foreign ones included: the printer must
 * escape them.
 */
#ifndef NOCTULE_DB_REPORT_PERIOD_H
#define NOCTULE_DB_REPORT_PERIOD_H

#include "base/error.h"
#include "db/iso_time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

/* The tables in their order. Those of one row are always there: they are the totals. */
#define NIGHT_TABLES(TABLE)                                                                        \
    TABLE(SERIES)                                                                                  \
    TABLE(JOBS)                                                                                    \
    TABLE(DELIVERIES)                                                                              \
    TABLE(FILES)                                                                                   \
    TABLE(DISK)                                                                                    \
    TABLE(FAILED)                                                                                  \
    TABLE(REVIEW)                                                                                  \
    TABLE(UNDELIVERED)                                                                             \
    TABLE(UNPULLED)                                                                                \
    TABLE(REFUSED)                                                                                 \
    TABLE(QUARANTINED)                                                                             \
    TABLE(SENDERS)                                                                                 \
    TABLE(CALLERS)                                                                                 \
    TABLE(UNRULED)                                                                                 \
    TABLE(PULLED)                                                                                  \
    TABLE(PIPELINES)                                                                               \
    TABLE(SEGMENTS)                                                                                \
    TABLE(COMPUTE)                                                                                 \
    TABLE(SLOWEST)                                                                                 \
    TABLE(HOURS)
#define NIGHT_TABLE_NAME(name) NIGHT_##name,

enum night_table_name { NIGHT_TABLES(NIGHT_TABLE_NAME) NIGHT_TABLE_COUNT };

struct night_column {
    const char *key;   /* in JSON; must not change */
    const char *title; /* for people, with the unit */

    enum night_kind {
        NIGHT_TEXT,
        NIGHT_NUMBER,
        NIGHT_TIME,
        NIGHT_SHARE, /* from 0 to 1 */
        NIGHT_REMEDY /* the remedy of the code that the query has there */
    } kind;

    bool below;  /* too long for a column of a terminal; must follow the short ones */
    bool silent; /* not printed if it is 0 */
};

struct night_table {
    const char *key;     /* in JSON */
    const char *heading; /* for people */
    const char
        *hint; /* the remedy for all its rows; NULL: each row has its own, or there is none */
    bool one;  /* exactly one row */
    const struct night_column *columns;
    size_t column_count;
    char **cells; /* by row; NULL: not known */
    size_t row_count;
};

struct night {
    char since[ISO_TIME_SIZE], until[ISO_TIME_SIZE]; /* excludes `until` */
    int64_t step_seconds;                            /* between two rows of NIGHT_HOURS */
    struct night_table tables[NIGHT_TABLE_COUNT];
};

/*
 * Reads all that arrived from `since_ms` on until before `until_ms`, in Unix milliseconds. Free
 * with night_free(). Returns -EINVAL if the period ends before it begins, or is longer than a year.
 */
int report_night(struct report *report, int64_t since_ms, int64_t until_ms, struct night **night,
                 struct error *error);
void night_free(struct night *night);

/* Returns the text of a cell, NULL if it is not known. The table must have a column `key`. */
const char *night_cell(const struct night_table *table, size_t row, const char *key);
/* Returns a cell as a number; 0 if it is not known. */
double night_number(const struct night_table *table, size_t row, const char *key);

#endif
