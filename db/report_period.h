/*
 * report_period.h - the report of a night: what became of what came in a time, as tables that whoever prints
 * them need not understand.
 *
 * Asked of the public views like all of report.h, at one moment. A night belongs to the caller and
 * does not change; texts are as the database has them, foreign ones included: escape them.
 */
#ifndef NOCTULE_DB_REPORT_PERIOD_H
#define NOCTULE_DB_REPORT_PERIOD_H

#include "base/error.h"
#include "db/iso_time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

/* The tables in their order: those of one row, which are always there, are what the night came to. */
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
    const char *key;   /* in JSON, a promise */
    const char *title; /* for people, with the unit */

    enum night_kind {
        NIGHT_TEXT,
        NIGHT_NUMBER,
        NIGHT_TIME,
        NIGHT_SHARE, /* from 0 to 1 */
        NIGHT_REMEDY /* what to do about the code that the query has there */
    } kind;

    bool below;  /* too long for a column of a terminal; behind those that are not */
    bool silent; /* not told where it is 0 */
};

struct night_table {
    const char *key;     /* in JSON */
    const char *heading; /* for people */
    const char *hint;    /* what to do with what it lists; NULL: each row says it, or nothing */
    bool one;            /* row, always */
    const struct night_column *columns;
    size_t column_count;
    char **cells; /* row by row; NULL: not known */
    size_t row_count;
};

struct night {
    char since[ISO_TIME_SIZE], until[ISO_TIME_SIZE]; /* without the latter */
    int64_t step_seconds;                            /* from one row of NIGHT_HOURS to the next */
    struct night_table tables[NIGHT_TABLE_COUNT];
};

/*
 * What came from one time on until before another, Unix milliseconds. Free with
 * night_free. -EINVAL where the time ends before it begins, or is longer than a year.
 */
int report_night(struct report *report, int64_t since_ms, int64_t until_ms, struct night **night,
                 struct error *error);
void night_free(struct night *night);

/* The text of a cell, NULL where it is not known; `key` of a column that the table has. */
const char *night_cell(const struct night_table *table, size_t row, const char *key);
/* The same as a number; 0 where it is not known. */
double night_number(const struct night_table *table, size_t row, const char *key);

#endif
