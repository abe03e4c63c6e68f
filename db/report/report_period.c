/* report_period.c - see db/report_period.h. report_period_tables.c has the queries. */
#include "db/report/report_period_private.h"

#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY_SECONDS 86400

/* The maximum number of rows of a table. */
#define MOST_ROWS 1000

static const char *
cell_text(const struct night_column *column, sqlite3_stmt *row, int i)
{
    if (column->kind == NIGHT_REMEDY)
        return code_remedy(code_find(report_text(row, i)));
    return report_text(row, i);
}

int
night_add_row(struct report *report, struct night_table *table, sqlite3_stmt *row)
{
    const size_t used = table->row_count * table->column_count;
    char **grown = reallocarray(table->cells, used + table->column_count, sizeof *grown);
    if (!grown)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    table->cells = grown;
    memset(grown + used, 0, table->column_count * sizeof *grown);
    table->row_count++;
    for (size_t i = 0; i < table->column_count; i++) {
        if (sqlite3_column_type(row, (int)i) == SQLITE_NULL)
            continue;
        grown[used + i] = strdup(cell_text(&table->columns[i], row, (int)i));
        if (!grown[used + i])
            return database_refuse(&report->db, -ENOMEM, "out of memory");
    }
    return 0;
}

static int
night_read_table(struct report *report, const char *sql, const struct database_value *values,
                 size_t count, struct night_table *table)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, sql, values, count, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1 && table->row_count < MOST_ROWS)
        if ((rc = night_add_row(report, table, row)) < 0)
            break;
    database_end(row);
    return rc < 0 ? rc : 0;
}

/* Reads all tables at one moment. */
static int
night_read(struct report *report, struct night *night)
{
    const struct database_value values[] = {value_text(night->since), value_text(night->until),
                                            value_int(night->step_seconds)};
    int rc = database_script(&report->db, "BEGIN");
    if (rc < 0)
        return rc;
    for (int i = 0; i < NIGHT_TABLE_COUNT && rc == 0; i++) {
        night->tables[i] = night_sources[i].table;
        rc = night_read_table(report, night_sources[i].sql, values, 3, &night->tables[i]);
    }
    database_quietly(&report->db, "COMMIT");
    return rc;
}

/* Returns hours for a short period, else days, or weeks. */
static int64_t
night_step(int64_t seconds)
{
    if (seconds <= 3 * DAY_SECONDS)
        return 3600;
    return seconds <= 60 * DAY_SECONDS ? DAY_SECONDS : 7 * DAY_SECONDS;
}

static int
night_span(struct report *report, struct night *night, int64_t since_ms, int64_t until_ms)
{
    const int64_t seconds = (until_ms - since_ms) / 1000;
    if (since_ms >= until_ms || seconds > 366LL * DAY_SECONDS ||
        iso_time_from_ms(since_ms, night->since) != 0 ||
        iso_time_from_ms(until_ms, night->until) != 0)
        return database_refuse(&report->db, -EINVAL,
                               "a report is of a time that ends after it begins, and of a year at "
                               "most");
    night->step_seconds = night_step(seconds);
    return 0;
}

int
report_night(struct report *report, int64_t since_ms, int64_t until_ms, struct night **night,
             struct error *error)
{
    struct night *made = calloc(1, sizeof *made);
    int rc = made ? night_span(report, made, since_ms, until_ms)
                  : database_refuse(&report->db, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = night_read(report, made);
    if (rc < 0) {
        night_free(made);
        made = NULL;
    }
    *night = made;
    return report_conclude(report, NULL, rc, error);
}

void
night_table_free(struct night_table *table)
{
    for (size_t i = 0; i < table->row_count * table->column_count; i++)
        free(table->cells[i]);
    free(table->cells);
}

void
night_free(struct night *night)
{
    for (int i = 0; night && i < NIGHT_TABLE_COUNT; i++)
        night_table_free(&night->tables[i]);
    free(night);
}

const char *
night_cell(const struct night_table *table, size_t row, const char *key)
{
    size_t column = 0;
    while (strcmp(table->columns[column].key, key) != 0)
        column++;
    return table->cells[row * table->column_count + column];
}

double
night_number(const struct night_table *table, size_t row, const char *key)
{
    const char *text = night_cell(table, row, key);
    return text ? strtod(text, NULL) : 0.0;
}
