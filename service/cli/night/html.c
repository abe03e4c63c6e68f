/*
 * html.c - the report as a page: one file without scripts and without anything from elsewhere, which the
 * policy in its head forbids beside. It follows the reader's light or dark, a phone's width, and prints.
 */
#include "service/cli/night/night.h"

#include "service/common/troubles.h"

#include <string.h>

#define MOST_SHOWN 50 /* rows of a table */

void
night_html_text(const char *text, FILE *out)
{
    size_t length;
    for (; *text; text += length) {
        if (night_character(text, &length) == 0)
            fputs((unsigned char)*text < 0x80 ? " " : "&#xFFFD;", out);
        else if (strchr("<>&\"'", *text))
            fprintf(out, "&#%d;", *text);
        else
            fwrite(text, 1, length, out);
    }
}

/* Foreign text turns the direction of none but itself. */
static void
html_bdi(const char *text, FILE *out)
{
    fputs("<bdi>", out);
    night_html_text(text, out);
    fputs("</bdi>", out);
}

/* -------------------------------------------------------------------------------- the tables -- */

static bool
html_is_uid(const struct night_column *column)
{
    const size_t length = strlen(column->key);
    return length >= 4 && strcmp(column->key + length - 4, "_uid") == 0;
}

static void
html_titles(const struct night_table *table, FILE *out)
{
    fputs("<thead><tr>", out);
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].below)
            continue;
        fputs(table->columns[i].kind == NIGHT_NUMBER ? "<th class=\"n\">" : "<th>", out);
        night_html_text(table->columns[i].title, out);
        fputs("</th>", out);
    }
    fputs("<th></th></tr></thead>\n", out);
}

static int
html_cells(const struct night_table *table, size_t row, FILE *out)
{
    int count = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        char buffer[NIGHT_SHOWN];
        const struct night_column *column = &table->columns[i];
        const char *shown = column->below ? NULL : night_shown(table, row, i, buffer);
        if (column->below)
            continue;
        fputs(column->kind == NIGHT_NUMBER       ? "<td class=\"n\">"
              : strcmp(column->key, "code") == 0 ? "<td class=\"code\">"
                                                 : "<td>",
              out);
        html_bdi(shown ? shown : "\xe2\x80\x93", out);
        fputs("</td>", out);
        count++;
    }
    fputs("<td></td>", out); /* takes the room that is left */
    return count + 1;
}

static void
html_below(const struct night_table *table, size_t row, FILE *out)
{
    fputs("<dl class=\"below\">", out);
    for (size_t i = 0; i < table->column_count; i++) {
        char buffer[NIGHT_SHOWN];
        const struct night_column *column = &table->columns[i];
        const char *shown = column->below ? night_shown(table, row, i, buffer) : NULL;
        if (!shown)
            continue;
        fprintf(out, "<dt>%s</dt><dd%s>", column->title,
                html_is_uid(column) ? " class=\"uid\"" : "");
        html_bdi(shown, out);
        fputs("</dd>", out);
    }
    fputs("</dl>", out);
}

static bool
html_has_below(const struct night_table *table)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].below)
            return true;
    return false;
}

static void
html_row(const struct night_table *table, size_t row, FILE *out)
{
    const bool below = html_has_below(table);
    fputs(below ? "<tbody><tr class=\"head\">" : "<tr>", out);
    const int columns = html_cells(table, row, out);
    fputs("</tr>\n", out);
    if (!below)
        return;
    fprintf(out, "<tr class=\"last\"><td colspan=\"%d\">", columns);
    html_below(table, row, out);
    fputs("</td></tr></tbody>\n", out);
}

static void
html_table(const struct night_table *table, FILE *out)
{
    const size_t rows = table->row_count < MOST_SHOWN ? table->row_count : MOST_SHOWN;
    const bool below = html_has_below(table);
    fputs("<section><h2>", out);
    night_html_text(table->heading, out);
    fputs("</h2>\n<div class=\"wide\"><table>", out);
    html_titles(table, out);
    fputs(below ? "" : "<tbody>", out);
    for (size_t row = 0; row < rows; row++)
        html_row(table, row, out);
    fputs(below ? "</table></div>" : "</tbody></table></div>", out);
    if (rows < table->row_count)
        fprintf(out, "<p class=\"faint\">and %zu more</p>", table->row_count - rows);
    if (table->hint) {
        fputs("<p class=\"hint small faint\">See <code>", out);
        night_html_text(table->hint, out);
        fputs("</code></p>", out);
    }
    fputs("</section>\n", out);
}

/* What is wrong when it is not 0. */
static bool
html_is_alarm(const struct night_column *column, const char *shown)
{
    static const char *const alarms[] = {"failed", "refused", "review", "quarantined"};
    for (size_t i = 0; i < sizeof alarms / sizeof *alarms; i++)
        if (strcmp(column->key, alarms[i]) == 0)
            return strcmp(shown, "0") != 0;
    return false;
}

static void
html_one(const struct night_table *table, FILE *out)
{
    fprintf(out, "<section><h2>%s</h2><dl>", table->heading);
    for (size_t i = 0; i < table->column_count; i++) {
        char buffer[NIGHT_SHOWN];
        const struct night_column *column = &table->columns[i];
        const char *shown = night_shown(table, 0, i, buffer);
        if (!shown)
            continue;
        fprintf(out, "<div%s><dt>%s</dt><dd>",
                html_is_alarm(column, shown) ? " class=\"alarm\"" : "", column->title);
        night_html_text(shown, out);
        fputs("</dd></div>", out);
    }
    fputs("</dl></section>\n", out);
}

/* ---------------------------------------------------------------------------------- the page -- */

static void
html_troubles(const struct cli_troubles *troubles, FILE *out)
{
    fputs("<ul>", out);
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_JOBS_WAIT; level--) {
        for (size_t i = 0; i < troubles->count; i++) {
            const struct cli_trouble *trouble = &troubles->items[i];
            if (trouble->level != level)
                continue;
            fprintf(out, "<li class=\"%s\"><span class=\"level\">%s</span> ",
                    cli_trouble_levels[level].word, cli_trouble_levels[level].heading);
            html_bdi(trouble->text, out);
            fputs("</li>\n", out);
        }
    }
    fputs("</ul>", out);
}

static void
html_head(const struct night_report *report, FILE *out)
{
    char times[4][NIGHT_MINUTE];
    for (int i = 0; i < 4; i++)
        night_minute(i % 2 ? report->night->until : report->night->since, i < 2, times[i]);
    const bool here = strcmp(times[0], times[2]) != 0 || strcmp(times[1], times[3]) != 0;
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'unsafe-inline'; img-src data:\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"generator\" content=\"noctule " NOCTULE_VERSION "\">\n"
            "<title>Noctule, %s to %s</title>\n<style>\n%s</style></head>\n<body><main>\n"
            "<h1>Noctule report</h1><p>%s to %s %s</p>\n",
            times[0], times[1], night_html_style, times[0], times[1],
            here ? "by the clock here" : "UTC");
    if (here)
        fprintf(out, "<p class=\"faint small\">%s to %s UTC, as all times below</p>\n", times[2],
                times[3]);
    fprintf(out, "<section class=\"verdict%s\"><p>%s</p>", report->attention ? " bad" : "",
            report->attention ? "Somebody should look at this." : "Nothing needs attention.");
    html_troubles(report->troubles, out);
    fputs("</section>\n", out);
}

static void
html_charts(const struct night *night, FILE *out)
{
    static const struct night_chart charts[] = {
        {"Series that settled", "accepted", "refused", "accepted", "refused"},
        {"Jobs that ended", "done", "failed", "ran to their end", "failed"},
        {"Free space, GiB", "free_gib", NULL, NULL, NULL},
    };
    const struct night_table *hours = &night->tables[NIGHT_HOURS];
    fputs("<section><div class=\"charts\">\n", out);
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++)
        night_html_chart(hours, &charts[i], out);
    fputs("</div></section>\n", out);
}

void
night_write_html(const struct night_report *report, FILE *out)
{
    const struct night *night = report->night;
    html_head(report, out);
    fputs("<div class=\"ones\">\n", out);
    for (int i = 0; i < NIGHT_TABLE_COUNT; i++)
        if (night->tables[i].one)
            html_one(&night->tables[i], out);
    fputs("</div>\n", out);
    html_charts(night, out);
    night_html_previews(report, out);
    for (int i = 0; i < NIGHT_TABLE_COUNT; i++)
        if (!night->tables[i].one && night->tables[i].row_count > 0 && i != NIGHT_HOURS &&
            i != NIGHT_REVIEW)
            html_table(&night->tables[i], out);
    fputs("</main></body></html>\n", out);
}
