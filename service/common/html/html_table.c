/* html_table.c - tables and figures as HTML. */
#include "service/common/html/html.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 50 /* rows of a table that are written */

/* Writes a cell's text, as a link if the column has one. */
static void
html_cell(const struct report_table *table, size_t row, size_t column, const struct html_link *links, FILE *out)
{
    char buffer[SHOWN_CELL];
    const char *shown = shown_cell(table, row, column, buffer);
    while (shown && links && links->key && strcmp(links->key, table->list->columns[column].key) != 0)
        links++;
    const char *href = shown && links && links->key ? links->href : NULL;
    if (href) {
        fprintf(out, "<a href=\"%s", href);
        html_query(shown, out);
        fputs("\">", out);
    }
    if (shown && table->list->columns[column].form & REPORT_SHARE) {
        const double percent = 100.0 * strtod(shown, NULL);
        fprintf(out, "<progress max=\"100\" value=\"%.0f\">%.0f %%</progress>", percent, percent);
    } else {
        html_untrusted(shown ? shown : "\xe2\x80\x93", out);
    }
    fputs(href ? "</a>" : "", out);
}

static void
html_lines(const struct report_table *table, size_t row, bool all, const struct html_link *links, FILE *out)
{
    fputs("<dl class=\"below\">", out);
    for (size_t i = 0; i < table->list->column_count; i++) {
        char buffer[SHOWN_CELL];
        const struct report_column *column = &table->list->columns[i];
        if ((!all && !(column->form & REPORT_BELOW)) || !shown_cell(table, row, i, buffer))
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

static void
html_row(const struct report_table *table, size_t row, const struct html_link *links, FILE *out)
{
    const bool below = html_has_below(table);
    fputs(below ? "<tbody><tr class=\"head\">" : "<tr>", out);
    int columns = 1;
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        if ((column->form & REPORT_BELOW))
            continue;
        fputs(column->form & REPORT_NUMBER       ? "<td class=\"n\">"
              : column->form & REPORT_TIME       ? "<td class=\"t\">"
              : strcmp(column->key, "code") == 0 ? "<td class=\"code\">"
                                                 : "<td>",
              out);
        html_cell(table, row, i, links, out);
        fputs("</td>", out);
        columns++;
    }
    fputs("<td></td>", out); /* takes the remaining width */
    fputs("</tr>\n", out);
    if (!below)
        return;
    fprintf(out, "<tr class=\"last\"><td colspan=\"%d\">", columns);
    html_lines(table, row, false, links, out);
    fputs("</td></tr></tbody>\n", out);
}

void
html_table(const struct report_table *table, const struct html_link *links, FILE *out)
{
    const size_t rows = table->row_count < MAX_ROWS ? table->row_count : MAX_ROWS;
    const bool below = html_has_below(table);
    fputs("<section><h2>", out);
    html_text(table->list->heading, out);
    fputs("</h2>\n<div class=\"wide\"><table>", out);
    fputs("<thead><tr>", out);
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        if (column->form & REPORT_BELOW)
            continue;
        fputs(column->form & REPORT_NUMBER ? "<th class=\"n\">" : "<th>", out);
        html_text(column->title, out);
        fputs("</th>", out);
    }
    fputs("<th></th></tr></thead>\n", out);
    fputs(below ? "" : "<tbody>", out);
    for (size_t row = 0; row < rows; row++)
        html_row(table, row, links, out);
    fputs(below ? "</table></div>" : "</tbody></table></div>", out);
    if (rows < table->row_count)
        fprintf(out, "<p class=\"faint\">and %zu more</p>", table->row_count - rows);
    if (table->list->hint) {
        fputs("<p class=\"hint small faint\">See <code>", out);
        html_text(table->list->hint, out);
        fputs("</code></p>", out);
    }
    fputs("</section>\n", out);
}

void
html_figures(const struct report_table *table, FILE *out)
{
    static const char *const alarms[] = {"failed", "refused", "review", "quarantined"};

    fprintf(out, "<section><h2>%s</h2><dl>", table->list->heading);
    for (size_t i = 0; i < table->list->column_count; i++) {
        char buffer[SHOWN_CELL];
        const struct report_column *column = &table->list->columns[i];
        const char *shown = shown_cell(table, 0, i, buffer);
        if (!shown)
            continue;
        bool is_alarm = false;
        for (size_t k = 0; k < sizeof alarms / sizeof *alarms; k++)
            is_alarm = is_alarm || (strcmp(column->key, alarms[k]) == 0 && strcmp(shown, "0") != 0);
        fprintf(out, "<div%s><dt>%s</dt><dd>", is_alarm ? " class=\"alarm\"" : "", column->title);
        html_text(shown, out);
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
    html_lines(table, 0, true, links, out);
    fputs("</section>\n", out);
}
