/*
 * report_text.c - the report for a terminal. Lines have at widest 80 characters, except for longer
 * words.
 */
#include "service/cli/report/report_print.h"

#include "service/common/html/html.h"

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

/* Adds a text with its times as local ones, and breaks the line before a word that does not fit. */
static void
paragraph_add(struct paragraph *p, const char *text)
{
    char *localised = iso_time_localise(text);
    const char *rest = localised ? localised : text;
    while (*rest) {
        size_t bytes = 0, length;
        int width = 0; /* of the next word, in characters */
        for (; rest[bytes] && rest[bytes] != ' '; bytes += length, width++)
            report_character(rest + bytes, &length);
        if (width > 0 && p->column > p->indent && p->column + 1 + width > LINE_WIDTH) {
            fprintf(p->out, "\n%*s", p->indent, "");
            p->column = p->indent;
        } else if (width > 0 && p->column > p->indent) {
            fputc(' ', p->out);
            p->column++;
        }
        for (size_t i = 0; i < bytes; i += length) {
            if (report_character(rest + i, &length) > 0)
                fwrite(rest + i, 1, length, p->out);
            else
                fputc('?', p->out);
        }
        p->column += width;
        rest += bytes + (rest[bytes] == ' ');
    }
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
text_one(const struct report_table *table, FILE *out)
{
    struct paragraph p = paragraph_begin(out, LABEL, table->list->heading);
    const char *before = "";
    for (size_t i = 0; i < table->list->column_count; i++) {
        char buffer[SHOWN_CELL], item[128];
        const char *shown = shown_cell(table, 0, i, buffer);
        if (!shown)
            continue;
        fputs(before, out);
        p.column += (int)strlen(before);
        snprintf(item, sizeof item, "%s %s", shown, table->list->columns[i].title);
        paragraph_add(&p, item);
        before = ",";
    }
    fputs(*before ? "\n" : "not known\n", out);
}

static void
text_below(const struct report_table *table, size_t row, FILE *out)
{
    for (size_t i = 0; i < table->list->column_count; i++) {
        char buffer[SHOWN_CELL], label[32];
        const struct report_column *column = &table->list->columns[i];
        const char *shown = (column->form & REPORT_BELOW) ? shown_cell(table, row, i, buffer) : NULL;
        if (!shown)
            continue;
        snprintf(label, sizeof label, "      %s:", column->title);
        struct paragraph p = paragraph_begin(out, 20, label);
        paragraph_add(&p, shown);
        fputc('\n', out);
    }
}

static void
text_list(const struct report_table *table, FILE *out)
{
    static const struct report_layout layout = {
        .max_rows = MAX_SHOWN, .indent = "  ", .empty = "-", .below = text_below};

    fprintf(out, "\n%s\n", table->list->heading);
    report_table_print(table, &layout, out);
    if (table->row_count > MAX_SHOWN)
        fprintf(out, "  and %zu more\n", table->row_count - MAX_SHOWN);
    if (table->list->hint)
        fprintf(out, "  See %s\n", table->list->hint);
}

void
report_write_text(const struct report_content *report, FILE *out)
{
    const struct report_period *period = report->period;
    const struct alerts *alerts = &report->alerts->list;
    char since[SHOWN_TIME], until[SHOWN_TIME];
    shown_time(period->since, since);
    shown_time(period->until, until);
    fprintf(out, "Noctule, %s to %s\n%s\n\n", since, until,
            report->attention ? "An operator must act." : "Nothing needs attention.");
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
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
    fputs(alerts->count > 0 ? "\n" : "", out);
    for (int i = 0; i < PERIOD_COUNT; i++)
        if (period->tables[i].list->shape == REPORT_FIGURES)
            text_one(&period->tables[i], out);
    for (int i = 0; i < PERIOD_COUNT; i++)
        if (period->tables[i].list->shape != REPORT_FIGURES && period->tables[i].row_count > 0 && i != PERIOD_HOURS)
            text_list(&period->tables[i], out);
}
