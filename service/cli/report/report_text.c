/*
 * report_text.c - the report for a terminal. Lines have at widest 80 characters, except for longer
 * words.
 */
#include "service/cli/report/report_print.h"

#include "service/common/html/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WIDTH 80
#define LABEL      12 /* "Deliveries  " */
#define MAX_SHOWN  8  /* max rows of a table */

/* A paragraph in progress. */
struct paragraph {
    FILE *out;
    int indent, column;
};

static int
paragraph_word(const char *text, size_t *bytes)
{
    int width = 0;
    size_t length;
    *bytes = 0;
    while (text[*bytes] && text[*bytes] != ' ') {
        shown_character(text + *bytes, &length);
        *bytes += length;
        width++;
    }
    return width;
}

static void
paragraph_print(struct paragraph *p, const char *text, size_t bytes)
{
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        if (shown_character(text + i, &length) > 0)
            fwrite(text + i, 1, length, p->out);
        else
            fputc('?', p->out);
    }
}

/* Adds words, and breaks the line before a word that does not fit. */
static void
paragraph_add_words(struct paragraph *p, const char *text)
{
    while (*text) {
        size_t bytes;
        const int width = paragraph_word(text, &bytes);
        if (width > 0 && p->column > p->indent && p->column + 1 + width > LINE_WIDTH) {
            fprintf(p->out, "\n%*s", p->indent, "");
            p->column = p->indent;
        } else if (width > 0 && p->column > p->indent) {
            fputc(' ', p->out);
            p->column++;
        }
        paragraph_print(p, text, bytes);
        p->column += width;
        text += bytes + (text[bytes] == ' ');
    }
}

/* Adds a text with its times as local ones. */
static void
paragraph_add(struct paragraph *p, const char *text)
{
    char *localised = iso_time_localise(text);
    paragraph_add_words(p, localised ? localised : text);
    free(localised);
}

static struct paragraph
paragraph_begin(FILE *out, int indent, const char *label)
{
    fprintf(out, "%-*s", indent, label);
    return (struct paragraph){out, indent, indent};
}

/* "Jobs        12 done, 0 failed, 3.2 s (median)" */
static void
text_one(const struct night_table *table, FILE *out)
{
    struct paragraph p = paragraph_begin(out, LABEL, table->heading);
    const char *before = "";
    for (size_t i = 0; i < table->column_count; i++) {
        char buffer[SHOWN_CELL], item[128];
        const char *shown = shown_cell(table, 0, i, buffer);
        if (!shown)
            continue;
        fputs(before, out);
        p.column += (int)strlen(before);
        snprintf(item, sizeof item, "%s %s", shown, table->columns[i].title);
        paragraph_add(&p, item);
        before = ",";
    }
    fputs(*before ? "\n" : "not known\n", out);
}

static int
cell_width(const char *text)
{
    int width = 0;
    size_t length;
    for (; *text; text += length, width++)
        shown_character(text, &length);
    return width;
}

static int
column_needs(const struct night_table *table, size_t column, size_t rows)
{
    int widest = cell_width(table->columns[column].title);
    for (size_t row = 0; row < rows; row++) {
        char buffer[SHOWN_CELL];
        const char *shown = shown_cell(table, row, column, buffer);
        const int width = shown ? cell_width(shown) : 0;
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void
text_cell(struct paragraph *p, const char *text, int width, bool right)
{
    const int wide = cell_width(text), padding = width > wide ? width - wide : 0;
    fprintf(p->out, "  %*s", right ? padding : 0, "");
    paragraph_print(p, text, strlen(text));
    fprintf(p->out, "%*s", right ? 0 : padding, "");
}

/* Row -1 is the titles. */
static void
text_line(const struct night_table *table, int row, size_t rows, FILE *out)
{
    struct paragraph p = {.out = out};
    size_t count = table->column_count;
    while (count > 0 && table->columns[count - 1].below)
        count--;
    for (size_t i = 0; i < count; i++) {
        char buffer[SHOWN_CELL];
        const struct night_column *column = &table->columns[i];
        const bool right = column->kind == NIGHT_NUMBER;
        const char *text = row < 0 ? column->title : shown_cell(table, (size_t)row, i, buffer);
        text_cell(&p, text ? text : "-", right || i + 1 < count ? column_needs(table, i, rows) : 0,
                  right);
    }
    fputc('\n', out);
}

static void
text_below(const struct night_table *table, size_t row, FILE *out)
{
    for (size_t i = 0; i < table->column_count; i++) {
        char buffer[SHOWN_CELL], label[32];
        const struct night_column *column = &table->columns[i];
        const char *shown = column->below ? shown_cell(table, row, i, buffer) : NULL;
        if (!shown)
            continue;
        snprintf(label, sizeof label, "      %s:", column->title);
        struct paragraph p = paragraph_begin(out, 20, label);
        paragraph_add(&p, shown);
        fputc('\n', out);
    }
}

static void
text_list(const struct night_table *table, FILE *out)
{
    const size_t rows = table->row_count < MAX_SHOWN ? table->row_count : MAX_SHOWN;
    fprintf(out, "\n%s\n", table->heading);
    text_line(table, -1, rows, out);
    for (size_t row = 0; row < rows; row++) {
        text_line(table, (int)row, rows, out);
        text_below(table, row, out);
    }
    if (rows < table->row_count)
        fprintf(out, "  and %zu more\n", table->row_count - rows);
    if (table->hint)
        fprintf(out, "  See %s\n", table->hint);
}

static void
text_alert(const struct alert *alert, FILE *out)
{
    char *remedy = alert->severity == ALERT_WAITS ? NULL : cli_alert_remedy(alert);
    struct paragraph p = paragraph_begin(out, LABEL, cli_alert_heading(alert));
    paragraph_add(&p, alert->text);
    fputc('\n', out);
    if (remedy) {
        p = paragraph_begin(out, LABEL, "");
        paragraph_add(&p, remedy);
        fputc('\n', out);
    }
    free(remedy);
}

static void
text_alerts(const struct alerts *alerts, FILE *out)
{
    for (size_t i = 0; i < alerts->count; i++)
        text_alert(&alerts->items[i], out);
}

static void
text_head(const struct report_content *report, FILE *out)
{
    char since[SHOWN_TIME], until[SHOWN_TIME];
    shown_time(report->night->since, since);
    shown_time(report->night->until, until);
    fprintf(out, "Noctule, %s to %s\n", since, until);
    fprintf(out, "%s\n\n",
            report->attention ? "An operator must act." : "Nothing needs attention.");
}

void
report_write_text(const struct report_content *report, FILE *out)
{
    const struct night *night = report->night;
    text_head(report, out);
    text_alerts(&report->alerts->list, out);
    fputs(report->alerts->list.count > 0 ? "\n" : "", out);
    for (int i = 0; i < NIGHT_TABLE_COUNT; i++)
        if (night->tables[i].one)
            text_one(&night->tables[i], out);
    for (int i = 0; i < NIGHT_TABLE_COUNT; i++)
        if (!night->tables[i].one && night->tables[i].row_count > 0 && i != NIGHT_HOURS)
            text_list(&night->tables[i], out);
}
