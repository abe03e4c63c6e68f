/* html_table.c - tables, figures and details as HTML. */
#include "service/common/html/html.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 50 /* rows of a table that are written */

/* Writes a title in capitals with lower case after the first letter, except in abbreviations and in units in brackets. */
static void
html_title(const char *title, FILE *out)
{
    static const char *const kept[] = {"AE", "IBSI", "SOP", "UID"};
    const bool capitals = isupper((unsigned char)title[0]) != 0;
    for (const char *word = title; *word;) {
        const size_t length = strcspn(word, " ");
        bool lowers = capitals && *word != '(';
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            lowers = lowers && !(strlen(kept[i]) == length && strncmp(word, kept[i], length) == 0);
        for (size_t i = 0; i <= length && word[i]; i++)
            fputc(lowers && word + i != title ? tolower((unsigned char)word[i]) : word[i], out);
        word += length + (word[length] == ' ');
    }
}

/* Returns NULL if the column has no link. */
static const struct html_link *
html_find_link(const struct html_link *links, const char *key)
{
    while (links && links->key && strcmp(links->key, key) != 0)
        links++;
    return links && links->key ? links : NULL;
}

static bool
html_is_written(const struct report_table *table, size_t row, size_t column)
{
    const char *text = table->cells[row * table->list->column_count + column];
    const unsigned form = (unsigned)table->list->columns[column].form;
    return text && *text && !(form & REPORT_HIDDEN) && !(form & REPORT_SILENT && strcmp(text, "0") == 0);
}

/*
 * Writes an address with the values of the columns that it is of: "code&state" adds the code, then "&state=" and the state. Of
 * several, an empty value is "-", and a later one without a value is left out.
 */
static void
html_address(const struct report_table *table, size_t row, const char *text, const struct html_link *link, FILE *out)
{
    fputs(link->href, out);
    if (!link->of)
        html_query(text, out);
    for (const char *of = link->of; of && *of; of += *of == '&') {
        char key[32];
        const int length = (int)strcspn(of, "&");
        snprintf(key, sizeof key, "%.*s", length, of);
        const char *value = report_cell(table, row, key);
        if (of > link->of && value)
            fprintf(out, "&amp;%s=", key);
        html_query(!value ? "" : *value || !strchr(link->of, '&') ? value : "-", out);
        of += length;
    }
}

/* Writes a cell's text, as a link if the column has one. */
static void
html_cell(const struct report_table *table, size_t row, size_t column, const struct html_link *links, FILE *out)
{
    const struct report_column *of = &table->list->columns[column];
    const char *text = table->cells[row * table->list->column_count + column];
    if (!html_is_written(table, row, column))
        return;
    const struct html_link *link = html_find_link(links, of->key);
    if (link && link->of && strcmp(text, "0") == 0)
        link = NULL;
    if (link) {
        fputs("<a href=\"", out);
        html_address(table, row, text, link, out);
        fputs("\">", out);
    }
    if (of->form & REPORT_SHARE) {
        const double percent = 100.0 * strtod(text, NULL);
        fprintf(out, "<progress max=\"100\" value=\"%.0f\" aria-label=\"%.0f %%\">%.0f %%</progress>", percent, percent,
                percent);
    } else if (strcmp(of->key, "state") == 0) {
        html_state(text, out);
    } else if (of->form & REPORT_TIME) {
        html_time(text, out);
    } else {
        html_untrusted(text, out);
    }
    fputs(link ? "</a>" : "", out);
}

/* Writes the cells of a row as names and values, except one column: all, or those below the row. */
static void
html_lines(const struct report_table *table, size_t row, size_t but, bool all, const struct html_link *links, FILE *out)
{
    fputs("<dl>", out);
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        if (i == but || (!all && !(column->form & REPORT_BELOW)) || !html_is_written(table, row, i))
            continue;
        const size_t length = strlen(column->key);
        const bool is_uid = length >= 4 && strcmp(column->key + length - 4, "_uid") == 0;
        fprintf(out, "<dt>%s</dt><dd%s>", column->title, is_uid ? " class=\"uid\"" : "");
        html_cell(table, row, i, links, out);
        fputs("</dd>", out);
    }
    fputs("</dl>", out);
}

static bool
html_has_below(const struct report_table *table)
{
    for (size_t i = 0; i < table->list->column_count; i++)
        if (table->list->columns[i].form & REPORT_BELOW)
            return true;
    return false;
}

/* Returns the column whose value stands for those below the row: the message, else the first; column_count if there is
 * none. */
static size_t
html_first_below(const struct report_table *table, size_t row)
{
    size_t first = table->list->column_count;
    for (size_t i = table->list->column_count; i-- > 0;) {
        const struct report_column *column = &table->list->columns[i];
        if (!(column->form & REPORT_BELOW) || !html_is_written(table, row, i))
            continue;
        if (strcmp(column->key, "message") == 0)
            return i;
        first = i;
    }
    return first;
}

/* Writes the last cell: one value, which unfolds the others. */
static void
html_rest(const struct report_table *table, size_t row, const struct html_link *links, FILE *out)
{
    const size_t first = html_first_below(table, row);
    fputs("<td class=\"rest\">", out);
    if (first < table->list->column_count) {
        const struct report_column *column = &table->list->columns[first];
        fputs("<details><summary>", out);
        if (strcmp(column->key, "message") != 0)
            fprintf(out, "<span class=\"key\">%s</span> ", column->title);
        html_cell(table, row, first, NULL, out); /* a link would not unfold */
        fputs("</summary>", out);
        html_lines(table, row, html_find_link(links, column->key) ? table->list->column_count : first, false, links,
                   out);
        fputs("</details>", out);
    }
    fputs("</td>", out);
}

static void
html_row(const struct report_table *table, size_t row, const struct html_link *links,
         const struct html_buttons *buttons, FILE *out)
{
    fputs("<tr>", out);
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        if (column->form & REPORT_BELOW || report_is_spare(table, i))
            continue;
        const char *class = column->form & REPORT_NUMBER       ? " class=\"n\""
                            : column->form & REPORT_TIME       ? " class=\"t\""
                            : strcmp(column->key, "code") == 0 ? " class=\"code\""
                                                               : "";
        fprintf(out, "<td%s data-t=\"", class);
        html_title(column->title, out);
        fputs("\">", out);
        html_cell(table, row, i, links, out);
        fputs("</td>", out);
    }
    if (html_has_below(table))
        html_rest(table, row, links, out);
    if (buttons) {
        fputs("<td class=\"acts\">", out);
        buttons->write(buttons->context, table, row);
        fputs("</td>", out);
    }
    fputs("</tr>\n", out);
}

void
html_table(const struct report_table *table, const struct html_link *links, const struct html_buttons *buttons,
           FILE *out)
{
    const size_t rows = table->row_count < MAX_ROWS ? table->row_count : MAX_ROWS;
    fprintf(out, "<section id=\"%s\"><h2>", table->list->key);
    html_text(table->list->heading, out);
    fputs("</h2>\n<table class=\"rows\"><thead><tr>", out);
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        if (column->form & REPORT_BELOW || report_is_spare(table, i))
            continue;
        fputs(column->form & REPORT_NUMBER ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">", out);
        html_title(column->title, out);
        fputs("</th>", out);
    }
    fputs(html_has_below(table) ? "<th scope=\"col\">Details</th>" : "", out);
    fputs(buttons ? "<th scope=\"col\">Decide</th>" : "", out);
    fputs("</tr></thead>\n<tbody>", out);
    for (size_t row = 0; row < rows; row++)
        html_row(table, row, links, buttons, out);
    fputs("</tbody></table>", out);
    if (rows < table->row_count || table->list->hint) {
        fputs("<footer>", out);
        if (rows < table->row_count)
            fprintf(out, "and %zu more%s", table->row_count - rows, table->list->hint ? ". " : "");
        if (table->list->hint) {
            fputs("See <code>", out);
            html_text(table->list->hint, out);
            fputs("</code>", out);
        }
        fputs("</footer>", out);
    }
    fputs("</section>\n", out);
}

void
html_figures(const struct report_table *table, const struct html_link *links, FILE *out)
{
    static const char *const alarms[] = {"failed", "refused", "review", "quarantined"};

    fprintf(out, "<section><h2>%s</h2><dl class=\"figures\">", table->list->heading);
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        if (!html_is_written(table, 0, i))
            continue;
        bool is_alarm = false;
        for (size_t k = 0; k < sizeof alarms / sizeof *alarms; k++)
            is_alarm = is_alarm || (strcmp(column->key, alarms[k]) == 0 && strcmp(table->cells[i], "0") != 0);
        fprintf(out, "<div%s><dt>%s</dt><dd>", is_alarm ? " class=\"alarm\"" : "", column->title);
        html_cell(table, 0, i, links, out);
        fputs("</dd></div>", out);
    }
    fputs("</dl></section>\n", out);
}

void
html_details(const struct report_table *table, const struct html_link *links, FILE *out)
{
    fputs("<section><h2>", out);
    html_text(table->list->heading, out);
    fputs("</h2>\n", out);
    html_lines(table, 0, table->list->column_count, true, links, out);
    fputs("</section>\n", out);
}
