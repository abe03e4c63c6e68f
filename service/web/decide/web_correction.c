/* web_correction.c - corrected masks beside those that they correct: pictures, volumes, persons. */
#include "service/web/pages/web_view.h"

#include <stdlib.h>
#include <string.h>

static void
correction_put_picture(const struct web_view *view, const struct report_table *table, const char *key,
                       const char *words)
{
    const char *job = report_cell_text(table, 0, key);
    const int64_t number = strtoll(job, NULL, 10);
    fputs("<figure>", view->out);
    if (web_preview_is_there(view->web, number))
        web_preview_image(view, number);
    fprintf(view->out, "<figcaption>%s: <a href=\"job?id=%s\">job %s</a></figcaption></figure>\n", words, job, job);
}

static void
correction_put_row(const struct report_table *table, size_t row, FILE *out)
{
    const bool is_drawn = strcmp(report_cell_text(table, row, "method"), "object") == 0;
    fputs("<tr><td data-t=\"Segment\">", out);
    html_untrusted(report_cell_text(table, row, "label"), out);
    fprintf(out,
            "</td><td class=\"n\" data-t=\"Before (ml)\">%s</td><td class=\"n\" data-t=\"After (ml)\">%s</td>"
            "<td class=\"n\" data-t=\"Change\">%s</td><td data-t=\"Mask\">%s</td></tr>\n",
            report_cell_text(table, row, "before"), report_cell_text(table, row, "after"),
            report_cell_text(table, row, "change"), is_drawn ? "corrected" : "computed again");
}

void
web_correction_put(const struct web_view *view, const struct report_table *table)
{
    FILE *out = view->out;
    if (table->row_count == 0)
        return;
    const char *person = report_cell_text(table, 0, "person"), *by = report_cell_text(table, 0, "reviewed_by");
    fputs("<section class=\"before\"><h2>Corrected masks</h2><p>", out);
    fprintf(out, "%s from ",
            strcmp(report_cell_text(table, 0, "kind"), "seg") == 0 ? "Segmentation" : "RT Structure Set");
    if (*person)
        html_untrusted(person, out);
    else
        fputs("a person who is not named", out);
    if (*report_cell_text(table, 0, "sender")) {
        fputs(", sent by ", out);
        html_untrusted(report_cell_text(table, 0, "sender"), out);
    }
    if (*report_cell_text(table, 0, "uploader")) {
        fputs(", uploaded by ", out);
        html_untrusted(report_cell_text(table, 0, "uploader"), out);
    }
    fputs(". ", out);
    html_state(report_cell_text(table, 0, "state"), out);
    if (*by) {
        fputs(" decided by ", out);
        html_untrusted(by, out);
    }
    const char *state = report_cell_text(table, 0, "state");
    if (strcmp(state, "READY") == 0 || strcmp(state, "RUNNING") == 0 || strcmp(state, "DELAYED") == 0)
        fprintf(out, ". <a href=\"job?id=%s\">Job %s</a> measures them, and then comes under review",
                report_cell_text(table, 0, "job"), report_cell_text(table, 0, "job"));
    fputs("</p><div class=\"looks\">", out);
    correction_put_picture(view, table, "corrects", "Before");
    correction_put_picture(view, table, "job", "After");
    fputs("</div>\n<table class=\"rows\"><thead><tr><th scope=\"col\">Segment</th><th scope=\"col\" class=\"n\">Before "
          "(ml)</th><th scope=\"col\" class=\"n\">After (ml)</th><th scope=\"col\" class=\"n\">Change</th><th "
          "scope=\"col\">Mask</th></tr></thead>\n<tbody>",
          out);
    for (size_t row = 0; row < table->row_count; row++)
        if (*report_cell_text(table, row, "label"))
            correction_put_row(table, row, out);
    fputs("</tbody></table></section>\n", out);
}
