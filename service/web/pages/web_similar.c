/* web_similar.c - see web_similar.h. A row of pictures: the region, then those with the most similar texture. */
#include "service/web/pages/web_similar.h"

#include "service/common/similar_document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 12

static const char *const by_titles[] = {"LBP", "TLBAP", "LANADP", "All patterns", "GLCM features"};

/* Returns a parameter of the request, or "". */
static const char *
similar_parameter(const struct web_view *view, const char *name)
{
    const struct web_request *request = view->request;
    for (size_t i = 0; i < request->parameter_count && i < WEB_PARAMETERS; i++)
        if (strcmp(request->parameters[i].name, name) == 0)
            return request->parameters[i].value;
    return "";
}

/* --------------------------------------------------------------------------------------- page - */

struct similar_page {
    const struct web_view *view;
    int64_t job;
    struct report_similar_query query;
    const char *segment; /* of the request; "" */
};

static void
similar_put_chip(const struct similar_page *page, int by, const char *segment, const char *spacing, bool is_here,
                 const char *title)
{
    FILE *out = page->view->out;
    fprintf(out, "<a class=\"chip\" href=\"similar?id=%" PRId64 "&amp;by=%s", page->job, report_similar_by_words[by]);
    if (*segment) {
        fputs("&amp;segment=", out);
        html_query(segment, out);
    }
    fprintf(out, "%s\"%s>", spacing, is_here ? " aria-current=\"page\"" : "");
    html_untrusted(title, out);
    fputs("</a>", out);
}

static void
similar_put_chips(const struct similar_page *page, const struct report_table *regions)
{
    FILE *out = page->view->out;
    const char *spacing = page->query.any_spacing ? "&amp;spacing=any" : "";
    fputs("<nav class=\"chips\" aria-label=\"Compared values\">", out);
    for (int by = SIMILAR_PATTERNS; by >= 0; by--)
        similar_put_chip(page, by, page->segment, spacing, by == page->query.by, by_titles[by]);
    similar_put_chip(page, SIMILAR_GLCM, page->segment, spacing, page->query.by == SIMILAR_GLCM,
                     by_titles[SIMILAR_GLCM]);
    similar_put_chip(page, page->query.by, page->segment, page->query.any_spacing ? "" : "&amp;spacing=any",
                     page->query.any_spacing, "Any pixel spacing");
    fputs("</nav>\n", out);
    if (regions->row_count < 2)
        return;
    fputs("<nav class=\"chips\" aria-label=\"Region\">", out);
    for (size_t row = 0; row < regions->row_count; row++) {
        const char *segment = report_cell_text(regions, row, "segment"),
                   *label = report_cell_text(regions, row, "label");
        const bool is_here = *page->segment ? strcmp(segment, page->segment) == 0 : row == 0;
        similar_put_chip(page, page->query.by, segment, spacing, is_here, *label ? label : "Whole volume");
    }
    fputs("</nav>\n", out);
}

static void
similar_put_picture(const struct web_view *view, int64_t job)
{
    if (web_preview_is_there(view->web, job))
        web_preview_image(view, job);
    else
        fputs("<p class=\"dim\">no preview</p>", view->out);
}

static void
similar_put_card(const struct similar_page *page, const struct report_table *table, size_t row)
{
    const struct web_view *view = page->view;
    const int64_t job = (int64_t)report_number(table, row, "job");
    const char *label = report_cell_text(table, row, "label"), *volume = report_cell(table, row, "volume_ml");
    fprintf(view->out, "<li><a href=\"job?id=%" PRId64 "\">", job);
    similar_put_picture(view, job);
    fprintf(view->out, "<strong>%.4f</strong> job %" PRId64 "</a><p>", report_number(table, row, "distance"), job);
    html_untrusted(*label ? label : "Whole volume", view->out);
    if (volume)
        fprintf(view->out, ", %.4g ml", strtod(volume, NULL));
    fputs("</p><p class=\"dim small\">", view->out);
    html_untrusted(report_cell_text(table, row, "pipeline"), view->out);
    fputs(", ", view->out);
    html_time(report_cell_text(table, row, "measured_at"), view->out);
    fputs("<br>", view->out);
    html_untrusted(report_cell_text(table, row, "series_description"), view->out);
    fputs("</p><p class=\"small\">", view->out);
    html_untrusted(report_cell_text(table, row, "why"), view->out);
    fputs("</p></li>\n", view->out);
}

static void
similar_put_answer(const struct similar_page *page, const struct report_table *table,
                   const struct report_similar_found *found)
{
    FILE *out = page->view->out;
    fputs("<p class=\"dim\">", out);
    html_untrusted(found->settings, out);
    fprintf(out, "; distance %s: 0 is equal. ", found->distance);
    similar_put_counts(found, out);
    fputs("<br>" SIMILAR_MEANING "<br>", out);
    fputs(page->query.by == SIMILAR_GLCM
              ? "Below each region: its three largest differences from this region, in standard deviations (SD)."
              : "Below each region: the three codes that differ most, with their shares in this region and in the "
                "other one.",
          out);
    fputs("</p>\n<ol class=\"alike\"><li class=\"own\">", out);
    similar_put_picture(page->view, page->job);
    fprintf(out, "<strong>This region</strong> <a href=\"job?id=%" PRId64 "\">job %" PRId64 "</a><p>", page->job,
            page->job);
    html_untrusted(*found->label ? found->label : "Whole volume", out);
    fputs("</p></li>\n", out);
    for (size_t row = 0; row < table->row_count; row++)
        similar_put_card(page, table, row);
    fputs("</ol>\n", out);
    if (table->row_count == 0)
        fputs("<p class=\"dim\">No other region has the same settings.</p>\n", out);
}

int
web_view_similar(const struct web_view *view, struct error *error)
{
    struct similar_page page = {.view = view,
                                .job = web_request_number(view->request, REQUEST_id),
                                .segment = similar_parameter(view, "segment")};
    const char *by = similar_parameter(view, "by");
    struct report_similar_found found;
    struct report_table regions, table;
    page.query = (struct report_similar_query){
        .job = page.job,
        .segment = *page.segment ? page.segment : NULL,
        .first = true,
        .by = similar_find_word(report_similar_by_words, *by ? by : NULL, SIMILAR_PATTERNS),
        .distance = -1,
        .any_spacing = strcmp(similar_parameter(view, "spacing"), "any") == 0,
        .limit = SHOWN,
    };
    if (page.query.by < 0)
        return error_set(error, -ENOENT, CODE_NONE, "these values cannot be compared");
    int rc = report_similar_regions(view->web->report, page.job, page.query.by, &regions, error);
    if (rc < 0)
        return rc;
    *view->job = page.job;
    fprintf(view->beside, "<span class=\"dim\">job <a href=\"job?id=%" PRId64 "\">%" PRId64 "</a></span>", page.job,
            page.job);
    fputs("<section class=\"similar\">", view->out);
    similar_put_chips(&page, &regions);
    report_table_free(&regions);
    rc = report_similar(view->web->report, &page.query, &table, &found, error);
    if (rc == 0) {
        similar_put_answer(&page, &table, &found);
        report_table_free(&table);
    } else if (rc == -ENOENT || rc == -EINVAL) { /* the other values may be there */
        fputs("<p class=\"dim\">", view->out);
        html_untrusted(error->message, view->out);
        fputs(".</p>", view->out);
        rc = 0;
    }
    fputs("</section>\n", view->out);
    return rc;
}

int
web_similar_link(const struct web_view *view, int64_t job, struct error *error)
{
    struct report_table regions = {0};
    int rc = 0;
    int by = SIMILAR_PATTERNS;
    for (; rc == 0 && by <= SIMILAR_GLCM; by++) {
        rc = report_similar_regions(view->web->report, job, by, &regions, error);
        if (rc < 0)
            return rc;
        const bool any = regions.row_count > 0;
        report_table_free(&regions);
        if (any) {
            fprintf(view->beside, "<a class=\"button\" href=\"similar?id=%" PRId64 "&amp;by=%s\">Similar texture</a>",
                    job, report_similar_by_words[by]);
            return 0;
        }
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------- API - */

enum { SIMILAR_SEGMENT, SIMILAR_BY, SIMILAR_DISTANCE, SIMILAR_PIPELINE, SIMILAR_SPACING, SIMILAR_MAX };
const struct api_parameter web_similar_parameters[] = {
    [SIMILAR_SEGMENT] = {.key = "segment", .help = "Number or label of the region; needed if the job has several"},
    [SIMILAR_BY] = {.key = "by", .help = "Compared values; the default is patterns", .words = report_similar_by_words},
    [SIMILAR_DISTANCE] = {.key = "distance",
                          .help = "The default is chi-square, of glcm euclidean",
                          .words = report_similar_distance_words},
    [SIMILAR_PIPELINE] = {.key = "pipeline", .help = "Only regions of this pipeline"},
    [SIMILAR_SPACING] = {.key = "spacing",
                         .help = "Max difference of the pixel spacing in percent, or any; default 0",
                         .pattern = "^(any|[0-9]{1,2}(\\.[0-9]{1,6})?|100)$"},
    [SIMILAR_MAX] = {.key = "limit", .help = "Max number of rows; default 10", .most = SIMILAR_LIMIT},
    {.key = NULL},
};

int
web_similar_answer(struct api_call *call, struct error *error)
{
    const char *const *values = call->values;
    const char *limit = values[SIMILAR_MAX];
    struct report_similar_found found;
    struct report_table table;
    struct report_similar_query query = {
        .job = call->reply->job,
        .segment = values[SIMILAR_SEGMENT],
        .by = similar_find_word(report_similar_by_words, values[SIMILAR_BY], SIMILAR_PATTERNS),
        .distance = similar_find_word(report_similar_distance_words, values[SIMILAR_DISTANCE], -1),
        .pipeline = values[SIMILAR_PIPELINE],
        .limit = limit ? strtoll(limit, NULL, 10) : 0,
    };
    if (similar_read_spacing(values[SIMILAR_SPACING], &query) < 0)
        return error_set(error, -EINVAL, CODE_NONE,
                         "parameter spacing: \"any\" or a percentage of 0 to 100 is expected");
    const int rc = report_similar(call->web->report, &query, &table, &found, error);
    if (rc)
        return rc;
    if (strncmp(call->type, "text/csv", 8) == 0)
        similar_to_csv(&table, call->out);
    else
        similar_to_json(&table, &found, &query, call->out);
    report_table_free(&table);
    return 0;
}
