/*
 * report_period_private.h - the queries behind the tables of a report period. Private to
 * db/report/.
 */
#ifndef NOCTULE_DB_REPORT_REPORT_PERIOD_PRIVATE_H
#define NOCTULE_DB_REPORT_REPORT_PERIOD_PRIVATE_H

#include "db/report/report_private.h"
#include "db/report_period.h"

struct night_source {
    struct night_table table; /* without rows */
    /* ?1: since, ?2: until, ?3: the step; one result column per table column, in order */
    const char *sql;
};

/* Appends a row to the table. Returns 0 or -errno. */
int night_add_row(struct report *report, struct night_table *table, sqlite3_stmt *row);
void night_table_free(struct night_table *table);

/*
 * A column: its key, its title for people and its kind (in the line, below it, or left out at 0).
 */
#define COLUMN(key_, title_, kind_)                                                                \
    {                                                                                              \
        .key = #key_, .title = (title_), .kind = NIGHT_##kind_                                     \
    }
#define BELOW(key_, title_, kind_)                                                                 \
    {                                                                                              \
        .key = #key_, .title = (title_), .kind = NIGHT_##kind_, .below = true                      \
    }
#define SILENT(key_, title_, kind_)                                                                \
    {                                                                                              \
        .key = #key_, .title = (title_), .kind = NIGHT_##kind_, .silent = true                     \
    }

extern const struct night_source night_sources[NIGHT_TABLE_COUNT];

#endif
