/* web_review.c - results under review with their previews. */
#include "service/web/web_view.h"

#include <inttypes.h>
#include <stdlib.h>

static void
review_line(const struct report_table *table, size_t row, const char *key, const char *class, FILE *out)
{
    const char *text = report_cell(table, row, key);
    if (!text || !*text)
        return;
    fprintf(out, "<br><span class=\"%s\">", class);
    html_untrusted(text, out);
    fputs("</span>", out);
}

static void
review_figure(const struct web_view *view, const struct report_table *table, size_t row)
{
    FILE *out = view->out;
    const char *job = report_cell(table, row, "job"), *uid = report_cell(table, row, "series_uid");
    const int64_t number = strtoll(job, NULL, 10);
    fprintf(out, "<figure><a href=\"job?id=%" PRId64 "\">", number);
    if (web_preview_is_there(view->web, number))
        web_preview_image(view, number);
    else
        fputs("<span class=\"small\">no preview</span>", out);
    fprintf(out, "</a><figcaption><strong><a href=\"job?id=%" PRId64 "\">Job %" PRId64 "</a>, ", number, number);
    html_text(report_cell(table, row, "pipeline"), out);
    fputs("</strong>", out);
    review_line(table, row, "message", "found", out);
    review_line(table, row, "outdated", "code", out);
    review_line(table, row, "modality", "dim", out);
    review_line(table, row, "series_description", "dim", out);
    fputs("<br><a class=\"uid\" href=\"series?uid=", out);
    html_query(uid, out);
    fputs("\">", out);
    html_text(uid, out);
    fputs("</a></figcaption></figure>\n", out);
}

int
web_view_review(const struct web_view *view, struct error *error)
{
    struct report_table list;
    const struct report_query query = web_view_query(view, WEB_REVIEW);
    const int rc = report_page(view->web->report, WEB_REVIEW, &query, &list, error);
    if (rc < 0)
        return rc;
    fprintf(view->out, "<section><h2>%s</h2>\n<div class=\"looks\">", list.list->heading);
    for (size_t row = 0; row < list.row_count; row++)
        review_figure(view, &list, row);
    fputs("</div>", view->out);
    if (list.row_count == 0)
        fputs("<p class=\"dim\">no results under review</p>", view->out);
    else
        fprintf(view->out, "<p class=\"hint\">See <code>%s</code></p>", list.list->hint);
    fputs("</section>\n", view->out);
    web_view_more(view, &list);
    report_table_free(&list);
    return 0;
}
