/*
 * web_review.c - results under review: the waiting ones, one of them with its picture and earlier results, and the forms
 * of the decision.
 */
#include "service/web/pages/web_view.h"

#include "service/web/decide/web_decide.h"
#include "service/web/server/web_assets.h"
#include "service/web/viewer/web_viewer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct review {
    const struct web_view *view;
    struct report_table waiting, decided, job, before, correction, reasons;
};

static void
review_free(struct review *review)
{
    struct report_table *tables[] = {&review->waiting, &review->decided,    &review->job,
                                     &review->before,  &review->correction, &review->reasons};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i]->list) /* it was read */
            report_table_free(tables[i]);
}

/* Reads the lists of the requested job, or of the oldest one. */
static int
review_read(struct review *review, struct error *error)
{
    struct report *report = review->view->web->report;
    struct report_query query = web_view_query(review->view, WEB_REVIEW);
    int rc = report_page(report, WEB_REVIEW, &query, &review->waiting, error);
    if (rc == 0)
        rc = report_page(report, WEB_REVIEW_DECIDED, &(struct report_query){.after = "", .text = {"", ""}},
                         &review->decided, error);
    if (query.job == 0 && review->waiting.row_count > 0)
        query.job = strtoll(report_cell_text(&review->waiting, 0, "job"), NULL, 10);
    query.after = "";
    if (rc == 0)
        rc = report_page(report, WEB_REVIEW_JOB, &query, &review->job, error);
    if (rc == 0)
        rc = report_page(report, WEB_REVIEW_BEFORE, &query, &review->before, error);
    if (rc == 0)
        rc = report_page(report, WEB_CORRECTION, &query, &review->correction, error);
    return rc ? rc : report_page(report, WEB_REVIEW_REASONS, &query, &review->reasons, error);
}

/* Writes an escaped cell. */
static void
review_text(const struct review *review, const struct report_table *table, size_t row, const char *key)
{
    html_untrusted(report_cell_text(table, row, key), review->view->out);
}

/* ------------------------------------------------------------------------------- decided ---- */

static void
review_write_decided(const struct review *review)
{
    FILE *out = review->view->out;
    const struct report_table *table = &review->decided;
    if (table->row_count == 0)
        return;
    fputs("<section class=\"undo\"><h2>Decided, and can be undone</h2><ul>", out);
    for (size_t row = 0; row < table->row_count; row++) {
        char subject[32];
        const char *job = report_cell_text(table, row, "job");
        snprintf(subject, sizeof subject, "job %.20s", job);
        fprintf(out, "<li><span><a href=\"job?id=%s\">Job %s</a>, ", job, job);
        review_text(review, table, row, "pipeline");
        fputs(": ", out);
        review_text(review, table, row, "by");
        fprintf(out, " %sed it. Final at ", report_cell_text(table, row, "decision"));
        html_time(report_cell_text(table, row, "final"), out);
        fputs("</span>", out);
        web_form_write(review->view, "undo", subject, "Undo");
        fputs("</li>", out);
    }
    fputs("</ul></section>\n", out);
}

/* ------------------------------------------------------------------------------- waiting ---- */

static void
review_write_waiting(const struct review *review)
{
    FILE *out = review->view->out;
    const struct report_table *table = &review->waiting;
    const char *shown = review->job.row_count > 0 ? report_cell_text(&review->job, 0, "job") : "";
    fputs("<nav class=\"pending\" aria-label=\"Results under review\"><h2>Waiting</h2><ol>", out);
    for (size_t row = 0; row < table->row_count; row++) {
        const char *job = report_cell_text(table, row, "job");
        fprintf(out, "<li><a href=\"review?id=%s\"%s><strong>%s ", job,
                strcmp(job, shown) == 0 ? " aria-current=\"true\"" : "", job);
        review_text(review, table, row, "pipeline");
        fputs("</strong> <span class=\"small dim\">", out);
        html_time(report_cell_text(table, row, "since"), out);
        fputs("</span><br><span class=\"small\">", out);
        review_text(review, table, row, "message");
        fputs("</span></a></li>", out);
    }
    fputs("</ol>", out);
    web_view_more(review->view, table);
    fputs("</nav>\n", out);
}

/* -------------------------------------------------------------------------------- result ---- */

static void
review_write_before(const struct review *review)
{
    FILE *out = review->view->out;
    const struct report_table *table = &review->before;
    if (table->row_count < 2) /* only the result itself */
        return;
    fputs("<section class=\"before\"><h2>Earlier results</h2><div class=\"looks\">", out);
    for (size_t row = 0; row < table->row_count; row++) {
        const char *which = report_cell_text(table, row, "which");
        const int64_t job = strtoll(report_cell_text(table, row, "job"), NULL, 10);
        fputs("<figure>", out);
        if (web_preview_is_there(review->view->web, job))
            web_preview_image(review->view, job);
        fputs("<figcaption>", out);
        if (strcmp(which, "this") == 0)
            fputs("<strong>This result</strong>", out);
        else if (strcmp(which, "revision") == 0)
            fprintf(out, "<a href=\"job?id=%" PRId64 "\">Revision %s</a>, %s", job,
                    report_cell_text(table, row, "revision"), report_cell_text(table, row, "state"));
        else
            fprintf(out, "<a href=\"job?id=%" PRId64 "\">Last accepted result</a> of this patient, ", job);
        if (strcmp(which, "patient") == 0)
            html_time(report_cell_text(table, row, "ended"), out);
        fputs("<br>", out);
        review_text(review, table, row, "label");
        fprintf(out, ": %s %s</figcaption></figure>\n", report_cell_text(table, row, "volume"),
                report_cell_text(table, row, "change"));
    }
    fputs("</div></section>\n", out);
}

static void
review_write_result(const struct review *review)
{
    FILE *out = review->view->out;
    const char *job = report_cell_text(&review->job, 0, "job");
    const int64_t number = strtoll(job, NULL, 10);
    fprintf(out, "<div class=\"result\"><h2>Job %s, ", job);
    review_text(review, &review->job, 0, "pipeline");
    if (*report_cell_text(&review->job, 0, "series_description")) {
        fputs(": ", out);
        review_text(review, &review->job, 0, "series_description");
    }
    fprintf(out, "</h2><p><a href=\"job?id=%s\">Details of the job</a> <a class=\"uid\" href=\"series?uid=", job);
    html_query(report_cell_text(&review->job, 0, "series_uid"), out);
    fputs("\">", out);
    html_text(report_cell_text(&review->job, 0, "series_uid"), out);
    fputs("</a></p>\n", out);
    web_assets_put(WEB_ASSET_VIEWER_STYLE, out);
    web_viewer_put(review->view, number, "review");
    web_correction_put(review->view, &review->correction);
    review_write_before(review);
    fputs("</div>\n", out);
}

/* ------------------------------------------------------------------------------ decision ---- */

/* Writes the forms, or why there are none. uploads: corrected masks are being received. */
static void
review_write_forms(const struct review *review, bool uploads)
{
    char subject[32], back[48] = "review";
    FILE *out = review->view->out;
    const struct report_table *job = &review->job;
    const char *version = report_cell_text(job, 0, "version"), *next = report_cell_text(job, 0, "next");
    const bool outdated = report_number(job, 0, "outdated") != 0;
    snprintf(subject, sizeof subject, "job %.20s", report_cell_text(job, 0, "job"));
    if (*next)
        snprintf(back, sizeof back, "review?id=%.20s", next);
    if (*report_cell_text(job, 0, "decision")) {
        fputs("<p>", out);
        review_text(review, job, 0, "by");
        fprintf(out, " %sed it.</p>", report_cell_text(job, 0, "decision"));
        return;
    }
    if (*report_cell_text(job, 0, "correction_job")) {
        const char *correction = report_cell_text(job, 0, "correction_job");
        fprintf(out,
                "<p>A person corrected its masks. Decide on <a href=\"review?id=%s\">job %s</a>, which measures them. "
                "If that one is rejected, this one can be decided again.</p>",
                correction, correction);
        return;
    }
    if (outdated)
        fputs("<p>Late slices have arrived since. It can only be rejected, and a new job replaces it.</p>", out);
    bool may = false;
    if (!outdated && web_form_begin(review->view, "accept", subject, back)) {
        may = true;
        web_form_field(out, "seen", version);
        fputs("<button class=\"yes\" data-key=\"a\">Accept</button></form>\n", out);
    }
    if (web_form_begin(review->view, "reject", subject, back)) {
        may = true;
        web_form_field(out, "seen", version);
        fputs("<label for=\"reason\">Reason (needed to reject)</label><input id=\"reason\" name=\"reason\" required "
              "maxlength=\"400\" "
              "list=\"reasons\" autocomplete=\"off\" data-key=\"r\"><datalist id=\"reasons\">",
              out);
        for (size_t row = 0; row < review->reasons.row_count; row++) {
            fputs("<option value=\"", out);
            html_text(report_cell_text(&review->reasons, row, "reason"), out);
            fputs("\">", out);
        }
        fprintf(
            out,
            "</datalist><button class=\"no\">Reject</button></form>\n<p class=\"small dim\">%s decides. Name, time and "
            "reason are stored. A decision can be undone for %g s; then an accepted result is sent, and a rejected "
            "one is not. A reason must not name patients.</p>",
            review->view->request->person->name, review->view->web->conf->page.undo_seconds);
    }
    if (!uploads)
        web_upload_form(review->view, job);
    if (!may)
        fprintf(out,
                "<p class=\"small dim\">Decide with <code>noctule accept %s</code> or <code>noctule reject %s "
                "REASON</code>. Here, the option page.may allows it to persons who are reviewers.</p>",
                report_cell_text(job, 0, "job"), report_cell_text(job, 0, "job"));
}

static void
review_write_link(const struct review *review, const char *key, const char *rel, const char *label)
{
    const char *job = report_cell_text(&review->job, 0, key);
    if (*job)
        fprintf(review->view->beside, "<a class=\"button\" rel=\"%s\" href=\"review?id=%s\">%s</a> ", rel, job, label);
}

static int
review_write_job(const struct review *review, struct error *error)
{
    FILE *out = review->view->out, *beside = review->view->beside;
    if (!*report_cell_text(&review->job, 0, "decision"))
        fprintf(beside, "<span class=\"dim\">%s of %s, oldest first</span>", report_cell_text(&review->job, 0, "place"),
                report_cell_text(&review->job, 0, "waiting"));
    fputs("<span class=\"act\">", beside);
    review_write_link(review, "previous", "prev", "Previous");
    review_write_link(review, "next", "next", "Next");
    fputs("</span>", beside);
    fputs("<div class=\"reviewing\">", out);
    review_write_waiting(review);
    review_write_result(review);
    fputs("<div class=\"decision\">", out);
    const int rc = web_findings_put(review->view, strtoll(report_cell_text(&review->job, 0, "job"), NULL, 10),
                                    WEB_FINDINGS_LIST, error);
    fputs("<section class=\"forms\"><h2>Decision</h2>", out);
    const int pending = web_upload_pending(review->view, *review->view->job, error);
    review_write_forms(review, pending > 0);
    fputs("</section>", out);
    review_write_decided(review); /* here the picture keeps its place */
    fputs("</div></div>\n", out);
    web_assets_put(WEB_ASSET_REVIEW_SCRIPT, out);
    return rc ? rc : pending < 0 ? pending : 0;
}

int
web_view_review(const struct web_view *view, struct error *error)
{
    struct review review = {.view = view};
    const int64_t job = web_request_number(view->request, REQUEST_id);
    int rc = review_read(&review, error);
    if (rc == 0) {
        if (review.job.row_count > 0) {
            *view->job = strtoll(report_cell_text(&review.job, 0, "job"), NULL, 10);
            rc = review_write_job(&review, error);
        } else {
            review_write_decided(&review);
            if (job)
                fprintf(view->out, "<p><a href=\"job?id=%" PRId64 "\">Job %" PRId64 "</a> is not under review.</p>",
                        job, job);
            if (review.waiting.row_count > 0)
                review_write_waiting(&review);
            else
                fputs("<section><p class=\"dim\">No result is under review. One appears here if it breaks an "
                      "expectation of its pipeline.</p></section>\n",
                      view->out);
        }
    }
    review_free(&review);
    return rc;
}
