/* report_table.c - tables for people: columns as wide as their cells, or as the terminal allows. */
#include "db/report/report_private.h"

#include "base/terminal.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_LEAST = 12 }; /* a UID that is cut further cannot be recognised */

#define ELLIPSIS "\xe2\x80\xa6"

char *
report_printable(const char *text)
{
    char *copy = iso_time_localise(text);
    if (!copy)
        return NULL;
    for (char *c = copy; *c;) {
        const size_t length = text_line_length(c);
        if (length == 0)
            *c = ' ';
        c += length ? length : 1;
    }
    return copy;
}

/* Returns the number of characters: continuation bytes of UTF-8 have no width. */
static int
display_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

struct table {
    const struct report_column *columns;
    size_t column_count;
    char **cells; /* by row; the titles first */
    size_t row_count, row_capacity;
};

static void
free_table(struct table *table)
{
    for (size_t i = 0; i < table->row_count * table->column_count; i++)
        free(table->cells[i]);
    free(table->cells);
}

/* Adds a row; NULL: the titles. */
static int
table_add_row(struct report *report, struct table *table, sqlite3_stmt *row)
{
    if (table->row_count == table->row_capacity) {
        size_t wanted = table->row_capacity ? 2 * table->row_capacity : 64;
        char **grown = realloc(table->cells, wanted * table->column_count * sizeof *grown);
        if (!grown)
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        table->cells = grown;
        table->row_capacity = wanted;
    }
    char **cells = table->cells + table->row_count * table->column_count;
    for (size_t i = 0; i < table->column_count; i++) {
        cells[i] = report_printable(row ? report_text(row, (int)i) : table->columns[i].title);
        if (!cells[i]) {
            while (i > 0)
                free(cells[--i]);
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        }
    }
    table->row_count++;
    return 0;
}

static int
read_table(struct report *report, const struct report_selection *selection, struct table *table)
{
    sqlite3_stmt *statement;
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    for (size_t i = 0; i < table->column_count; i++)
        sqlite3_str_appendf(sql, "%s %s", i ? "," : "SELECT", table->columns[i].expression);
    sqlite3_str_appendf(sql, " FROM %s %s", selection->view, selection->tail);
    int rc = report_start(report, sql, selection, &statement);
    if (rc < 0)
        return rc;
    rc = table_add_row(report, table, NULL);
    while (rc == 0 && (rc = database_step(&report->db, statement)) == 1)
        rc = table_add_row(report, table, statement);
    sqlite3_finalize(statement);
    return rc;
}

static int
column_width(const struct table *table, size_t column)
{
    int widest = 0;
    for (size_t row = 0; row < table->row_count; row++) {
        int width = display_width(table->cells[row * table->column_count + column]);
        if (width > widest)
            widest = width;
    }
    return widest;
}

static bool
can_shrink(const struct table *table, size_t column)
{
    return !(table->columns[column].kind & (REPORT_NUMBER | REPORT_WHOLE));
}

/*
 * Returns the width of a line with each column at most as wide as `widths`, or with `least` as
 * narrow as possible; -1: left out.
 */
static int
line_width(const struct table *table, const int *widths, bool least)
{
    int whole = -2;
    for (size_t i = 0; i < table->column_count; i++)
        if (widths[i] >= 0)
            whole += 2 + (least && can_shrink(table, i) && widths[i] > COLUMN_LEAST ? COLUMN_LEAST
                                                                                    : widths[i]);
    return whole;
}

static void
leave_columns_out(const struct table *table, int *widths, int room)
{
    for (size_t i = table->column_count; i-- > 0 && line_width(table, widths, true) > room;)
        if (table->columns[i].kind & REPORT_DROP)
            widths[i] = -1;
}

/* Narrows the widest columns until a line fits, or all have their minimum. */
static void
shorten_columns(const struct table *table, int *widths, int room)
{
    for (int left = line_width(table, widths, false) - room; left > 0; left--) {
        size_t widest = table->column_count;
        for (size_t i = 0; i < table->column_count; i++)
            if (can_shrink(table, i) && widths[i] > COLUMN_LEAST &&
                (widest == table->column_count || widths[i] > widths[widest]))
                widest = i;
        if (widest == table->column_count)
            return;
        widths[widest]--;
    }
}

/* Returns the start of the nth character. */
static const char *
nth_character(const char *text, int n)
{
    for (; *text && n > 0; n--)
        for (text++; ((unsigned char)*text & 0xc0) == 0x80; text++)
            ;
    return text;
}

/* Cuts in the middle, where UIDs of one sender differ least. */
static void
print_cell(FILE *out, const char *cell, int width)
{
    const int all = display_width(cell), head = width / 2;
    if (all <= width)
        fputs(cell, out);
    else
        fprintf(out, "%.*s" ELLIPSIS "%s", (int)(nth_character(cell, head) - cell), cell,
                nth_character(cell, all - (width - head - 1)));
}

/* Writes spaces only before further text: no line ends in spaces. */
static void
print_line(FILE *out, const struct table *table, char *const *cells, const int *widths)
{
    int spaces = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        if (widths[i] < 0)
            continue;
        int width = display_width(cells[i]), padding = width < widths[i] ? widths[i] - width : 0;
        bool right = table->columns[i].kind & REPORT_NUMBER;
        if (cells[i][0]) {
            fprintf(out, "%*s", spaces + (right ? padding : 0), "");
            print_cell(out, cells[i], widths[i]);
            spaces = right ? 0 : padding;
        } else {
            spaces += padding;
        }
        spaces += 2;
    }
    fputc('\n', out);
}

static int
print_table(struct report *report, const struct table *table, FILE *out)
{
    int *widths = calloc(table->column_count, sizeof *widths);
    if (!widths)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    for (size_t i = 0; i < table->column_count; i++)
        widths[i] = column_width(table, i);
    leave_columns_out(table, widths, terminal_columns(out));
    shorten_columns(table, widths, terminal_columns(out));
    for (size_t row = 0; row < table->row_count; row++)
        print_line(out, table, table->cells + row * table->column_count, widths);
    free(widths);
    return 0;
}

int
report_print_table(struct report *report, const struct report_selection *selection,
                   const char *heading, const struct report_column *columns, size_t column_count,
                   FILE *out)
{
    struct table table = {.columns = columns, .column_count = column_count};
    int rc = read_table(report, selection, &table);
    if (rc == 0 && (table.row_count > 1 || !heading)) {
        if (heading)
            fprintf(out, "\n%s\n", heading);
        rc = print_table(report, &table, out);
    }
    free_table(&table);
    return rc;
}
