/*
 * report_previews.c - results under review with their previews, embedded in the page. Number and
 * size are limited so that mail servers accept the page.
 */
#include "service/cli/report/report_print.h"

#include "service/common/html/html.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PREVIEWS      12
#define MAX_PREVIEW_BYTES (1024 * 1024)
#define MAX_BYTES         (6 * 1024 * 1024)

static void
preview_caption(const struct report_table *table, size_t row, FILE *out)
{
    static const char *const keys[] = {"message", "series_description", "series_uid"};
    fputs("<figcaption><strong>Job ", out);
    html_text(report_cell(table, row, "job"), out);
    fputs(", ", out);
    html_text(report_cell(table, row, "pipeline"), out);
    fputs("</strong>", out);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = report_cell(table, row, keys[i]);
        if (!text || !*text)
            continue;
        fprintf(out, "<br><bdi%s>", i == 2 ? " class=\"uid dim\"" : "");
        html_text(text, out);
        fputs("</bdi>", out);
    }
    fputs("</figcaption>", out);
}

static void
report_preview_figures(const struct report_content *report, size_t count, FILE *out)
{
    const struct report_table *table = &report->period->tables[PERIOD_REVIEW];
    size_t room = MAX_BYTES;
    fputs("<div class=\"looks\">\n", out);
    for (size_t row = 0; row < count; row++) {
        unsigned char *bytes = NULL;
        const char *path = report_cell(table, row, "preview_path");
        const size_t max_bytes = room < MAX_PREVIEW_BYTES ? room : MAX_PREVIEW_BYTES;
        size_t size = 0;
        if (!path || html_read_preview(report->root, path, max_bytes, &bytes, &size) != 0)
            size = 0;
        fputs("<figure>", out);
        if (size > 0) {
            html_png(bytes, size, "Preview of the segments", out);
            free(bytes);
        } else {
            fputs("<p class=\"dim small\">no preview, or it is too large for the page</p>", out);
        }
        room -= size;
        preview_caption(table, row, out);
        fputs("</figure>\n", out);
    }
    fputs("</div>", out);
}

void
report_html_previews(const struct report_content *report, FILE *out)
{
    const struct report_table *table = &report->period->tables[PERIOD_REVIEW];
    const size_t count = table->row_count < MAX_PREVIEWS ? table->row_count : MAX_PREVIEWS;
    if (count == 0)
        return;
    fprintf(out, "<section><h2>%s</h2>\n", table->list->heading);
    report_preview_figures(report, count, out);
    if (count < table->row_count)
        fprintf(out, "<p class=\"dim\">and %zu more: <code>noctule review</code></p>", table->row_count - count);
    fputs("<p class=\"hint\">See <code>", out);
    html_text(table->list->hint, out);
    fputs("</code></p></section>\n", out);
}
