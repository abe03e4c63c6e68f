/*
 * list_text.c - lists as text for people: columns as wide as their cells, or as the terminal
 * allows.
 */
#include "db/report/report_private.h"

#include "base/terminal.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_LEAST = 12 }; /* a UID that is cut further cannot be recognised */

#define ELLIPSIS "\xe2\x80\xa6"

/*
 * Detects U+061C, U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069: direction marks and line
 * ends.
 */
static bool
character_turns(const unsigned char *c)
{
    if (c[0] == 0xd8)
        return c[1] == 0x9c;
    if (c[0] != 0xe2)
        return false;
    if (c[1] == 0x80)
        return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae);
    return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
}

size_t
report_character(const char *text, size_t *length)
{
    const size_t bytes = text_utf8_length(text);
    *length = bytes ? bytes : 1;
    if (text_line_length(text) == 0 || character_turns((const unsigned char *)text))
        return 0;
    return bytes;
}

/* Returns the text, or NULL for NULL. */
static char *
report_without_controls(char *text)
{
    size_t length;
    for (char *c = text; c && *c; c += length)
        if (report_character(c, &length) == 0)
            memset(c, ' ', length);
    return text;
}

char *
report_harmless(const char *text)
{
    return report_without_controls(strdup(text));
}

char *
report_printable(const char *text)
{
    return report_without_controls(iso_time_localise(text));
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

/* A table in print: the texts of its titles and of the rows, and the widths of the columns. */
struct text {
    const struct report_column *columns;
    size_t column_count, row_count; /* with the titles */
    char **cells;
    int *widths; /* -1: left out */
};

static bool
can_shrink(const struct text *text, size_t column)
{
    return !(text->columns[column].form & (REPORT_NUMBER | REPORT_WHOLE | REPORT_TIME));
}

/* Returns the width of a line with its columns, or with `least` as narrow as possible. */
static int
line_width(const struct text *text, bool least)
{
    int whole = -2;
    for (size_t i = 0; i < text->column_count; i++)
        if (text->widths[i] >= 0)
            whole +=
                2 + (least && can_shrink(text, i) && text->widths[i] > COLUMN_LEAST ? COLUMN_LEAST : text->widths[i]);
    return whole;
}

/*
 * Leaves columns out until a line fits at its narrowest. Then narrows the widest columns until it
 * fits, or all have their minimum.
 */
static void
fit_columns(struct text *text, int room)
{
    for (size_t i = text->column_count; i-- > 0 && line_width(text, true) > room;)
        if (text->columns[i].form & REPORT_DROP)
            text->widths[i] = -1;
    for (int left = line_width(text, false) - room; left > 0; left--) {
        size_t widest = text->column_count;
        for (size_t i = 0; i < text->column_count; i++)
            if (can_shrink(text, i) && text->widths[i] > COLUMN_LEAST &&
                (widest == text->column_count || text->widths[i] > text->widths[widest]))
                widest = i;
        if (widest == text->column_count)
            return;
        text->widths[widest]--;
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

/*
 * Writes spaces only before further text: no line ends in spaces. Cuts a cell in the middle, where
 * UIDs of one sender differ least.
 */
static void
print_line(const struct text *text, size_t row, const char *indent, FILE *out)
{
    int spaces = 0;
    fputs(indent, out);
    for (size_t i = 0; i < text->column_count; i++) {
        if (text->widths[i] < 0)
            continue;
        const char *cell = text->cells[row * text->column_count + i];
        const int width = display_width(cell), room = text->widths[i], head = room / 2;
        const int padding = width < room ? room - width : 0;
        const bool right = text->columns[i].form & REPORT_NUMBER;
        if (*cell)
            fprintf(out, "%*s", spaces + (right ? padding : 0), "");
        if (width <= room)
            fputs(cell, out);
        else
            fprintf(out, "%.*s" ELLIPSIS "%s", (int)(nth_character(cell, head) - cell), cell,
                    nth_character(cell, width - (room - head - 1)));
        spaces = 2 + (!*cell ? spaces + padding : right ? 0 : padding);
    }
    fputc('\n', out);
}

/* Makes the titles and the texts of the rows printable, and measures their columns. */
static int
text_make(struct text *text, const struct report_table *table, const struct report_layout *layout)
{
    const size_t stride = table->list->column_count;
    text->cells = calloc(text->row_count * text->column_count + 1, sizeof *text->cells);
    text->widths = calloc(text->column_count + 1, sizeof *text->widths);
    if (!text->cells || !text->widths)
        return -ENOMEM;
    for (size_t i = 0; i < text->row_count * text->column_count; i++) {
        const size_t row = i / text->column_count, column = i % text->column_count;
        const char *cell = row == 0 ? text->columns[column].title : table->cells[(row - 1) * stride + column];
        const bool silent = cell && text->columns[column].form & REPORT_SILENT;
        text->cells[i] = report_printable(cell && *cell && !(silent && strcmp(cell, "0") == 0) ? cell : layout->empty);
        if (!text->cells[i])
            return -ENOMEM;
        const int width = display_width(text->cells[i]);
        if (width > text->widths[column])
            text->widths[column] = width;
    }
    for (size_t i = 0; i < text->column_count; i++)
        if (report_is_spare(table, i))
            text->widths[i] = -1;
    return 0;
}

int
report_table_print(const struct report_table *table, const struct report_layout *layout, FILE *out)
{
    const size_t rows = table->row_count < layout->max_rows ? table->row_count : layout->max_rows;
    struct text text = {
        .columns = table->list->columns, .column_count = table->list->column_count, .row_count = rows + 1};
    while (layout->below && text.column_count > 0 && text.columns[text.column_count - 1].form & REPORT_BELOW)
        text.column_count--;
    const int rc = text_make(&text, table, layout);
    if (rc == 0)
        fit_columns(&text, terminal_columns(out));
    for (size_t row = 0; rc == 0 && row <= rows; row++) {
        print_line(&text, row, layout->indent, out);
        if (row > 0 && layout->below)
            layout->below(table, row - 1, out);
    }
    for (size_t i = 0; text.cells && i < text.row_count * text.column_count; i++)
        free(text.cells[i]);
    free(text.cells);
    free(text.widths);
    return rc;
}
