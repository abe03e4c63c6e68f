/* web_job.c - the page of a job: slices, results, deliveries, timeline, provenance, events. */
#include "service/web/decide/web_decide.h"
#include "service/web/pages/web_similar.h"
#include "service/web/server/web_assets.h"
#include "service/web/viewer/web_viewer.h"

#include "db/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a list of the job. */
static int
job_read(const struct web_view *view, enum report_list_name name, struct report_table *table, struct error *error)
{
    const struct report_query query = {.after = "", .job = web_request_number(view->request, REQUEST_id)};
    return report_page(view->web->report, name, &query, table, error);
}

static int
job_correction(const struct web_view *view, struct error *error)
{
    struct report_table table;
    const int rc = job_read(view, WEB_CORRECTION, &table, error);
    if (rc < 0)
        return rc;
    web_correction_put(view, &table);
    report_table_free(&table);
    return 0;
}

/* -------------------------------------------------------------------------- results, timeline -- */

static void
job_put_result(const struct report_table *table, size_t row, bool exists, FILE *out)
{
    const char *path = report_cell(table, row, "path"), *uid = report_cell(table, row, "sop_instance_uid");
    const char *frames = report_cell(table, row, "frames"), *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path ? path : "", *kind = report_cell(table, row, "kind");
    fputs("<tr><td data-t=\"Result\">", out);
    html_text(kind ? kind : "", out);
    fputs("</td><td class=\"n\" data-t=\"Frames\">", out);
    html_text(frames ? frames : "", out);
    fprintf(out, "</td><td class=\"n\" data-t=\"KiB\">%s</td><td data-t=\"File\">",
            report_cell_text(table, row, "size"));
    if (exists && uid && *uid) {
        fputs("<a href=\"api/v1/results/", out);
        html_query(uid, out);
        fputs("?format=dicom\" download=\"", out);
        html_text(name, out);
        fputs("\">", out);
        html_text(name, out);
        fputs("</a>", out);
    } else {
        html_untrusted(name, out); /* the folder of images has the name of a UID: broken if need be */
    }
    fputs("</td></tr>\n", out);
}

static int
job_results(const struct web_view *view, const struct report_table *job, struct error *error)
{
    struct report_table table;
    const int rc = job_read(view, WEB_JOB_RESULTS, &table, error);
    if (rc < 0)
        return rc;
    if (table.row_count > 0) {
        fputs("<section><h2>Results</h2>\n<table class=\"rows\"><thead><tr><th scope=\"col\">Result</th><th "
              "scope=\"col\" "
              "class=\"n\">Frames</th><th scope=\"col\" class=\"n\">KiB</th><th "
              "scope=\"col\">File</th></tr></thead>\n<tbody>",
              view->out);
        for (size_t row = 0; row < table.row_count; row++)
            job_put_result(&table, row, report_cell(job, 0, "removed") == NULL, view->out);
        fputs("</tbody></table></section>\n", view->out);
    }
    report_table_free(&table);
    return 0;
}

static void
job_put_step(const struct report_table *table, size_t row, double total, FILE *out)
{
    const char *at = report_cell(table, row, "since"), *what = report_cell(table, row, "what");
    const bool goes_on = report_cell(table, row, "ends") == NULL;
    const double begins = report_number(table, row, "begins");
    const double took = fmax(0, report_number(table, row, goes_on ? "now" : "ends") - begins);
    const double left = 100 * fmin(begins / total, 0.99);
    fputs("<tr><td class=\"nowrap\" data-t=\"Step\">", out);
    html_untrusted(report_cell(table, row, "step"), out);
    fprintf(
        out,
        "</td><td class=\"j-range\" data-t=\"Time\"><svg class=\"j-bar\" aria-hidden=\"true\"><rect class=\"track\" "
        "y=\"7\" width=\"100%%\" height=\"4\"/><rect class=\"%s\" x=\"%.2f%%\" y=\"4\" width=\"%.2f%%\" "
        "height=\"10\"/></svg></td><td class=\"n\" data-t=\"Took\">",
        goes_on ? "step on" : "step", left, goes_on ? 100 - left : fmin(100 - left, 100 * fmax(took / total, 0.005)));
    html_duration(took, out);
    fprintf(out, "%s</td><td class=\"t\" data-t=\"Began\">", goes_on ? ", goes on" : "");
    if (at)
        html_time(at, out);
    fputs("</td><td data-t=\"Detail\">", out);
    if (what && *what)
        html_untrusted(what, out);
    fputs("</td></tr>\n", out);
}

static int
job_steps(const struct web_view *view, struct error *error)
{
    struct report_table table;
    double total = 0.001;
    bool goes_on = false;
    const int rc = job_read(view, WEB_JOB_STEPS, &table, error);
    if (rc < 0)
        return rc;
    for (size_t row = 0; row < table.row_count; row++) {
        const bool ended = report_cell(&table, row, "ends") != NULL;
        total = fmax(total, report_number(&table, row, ended ? "ends" : "begins"));
        goes_on |= !ended;
    }
    if (goes_on)
        total /= 0.8; /* the rest of the bar is for steps that go on */
    fprintf(
        view->out,
        "<section><h2>%s</h2>\n<table class=\"rows\"><thead><tr><th scope=\"col\">Step</th><th scope=\"col\">Time</th>"
        "<th scope=\"col\" class=\"n\">Took</th><th scope=\"col\">Began</th><th scope=\"col\">Detail</th></tr>"
        "</thead>\n<tbody>",
        table.list->heading);
    for (size_t row = 0; row < table.row_count; row++)
        job_put_step(&table, row, total, view->out);
    fputs("</tbody></table></section>\n", view->out);
    report_table_free(&table);
    return 0;
}

/* ------------------------------------------------------------------------------------- viewer -- */

/* Writes the address of the site's viewer, with the UIDs of the images. */
static void
job_put_address(const char *template, const char *study, const char *series, FILE *out)
{
    while (*template) {
        const char *const names[2] = {"{study_uid}", "{series_uid}"}, *const values[2] = {study, series};
        const size_t plain = strcspn(template, "{");
        size_t taken = plain;
        char text[1024];
        snprintf(text, sizeof text, "%.*s", (int)plain, template);
        html_text(text, out);
        for (int i = 0; i < 2 && taken == plain; i++) {
            if (strncmp(template + plain, names[i], strlen(names[i])) == 0) {
                html_query(values[i], out);
                taken += strlen(names[i]);
            }
        }
        if (taken == plain && template[plain])
            taken++; /* no other brace is accepted */
        template += taken;
    }
}

static int
job_open_in_viewer(const struct web_view *view, const char *series_uid, struct error *error)
{
    const char *template = view->web->conf->page.viewer;
    const struct report_query query = {.after = "", .text = {series_uid, ""}};
    struct report_table series;
    if (!template || !*template || !series_uid)
        return 0;
    const int rc = report_page(view->web->report, WEB_SERIES, &query, &series, error);
    if (rc < 0)
        return rc;
    const char *study = series.row_count > 0 ? report_cell(&series, 0, "study_uid") : NULL;
    if (study && *study) {
        fputs("<div class=\"act\"><a class=\"button\" rel=\"noreferrer\" href=\"", view->beside);
        job_put_address(template, study, series_uid, view->beside);
        fputs("\">Open in viewer</a></div>\n", view->beside);
    }
    report_table_free(&series);
    return 0;
}

/* --------------------------------------------------------------------------------------- page -- */

/* Writes the state and what the job is of beside the title. */
static void
job_put_subtitle(const struct report_table *job, FILE *out)
{
    static const char *const keys[] = {"pipeline", "series_description", "modality"};
    const char *state = report_cell(job, 0, "state"), *created = report_cell(job, 0, "created");
    if (state)
        html_state(state, out);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = report_cell(job, 0, keys[i]);
        if (!text || !*text)
            continue;
        fputs("<span class=\"dim\">", out);
        html_untrusted(text, out);
        fputs("</span>", out);
    }
    fputs("<span class=\"dim\">", out);
    if (created)
        html_time(created, out);
    fputs("</span>", out);
}

static int
job_put_all(const struct web_view *view, const struct report_table *job, struct error *error)
{
    FILE *out = view->out;
    const char *state = report_cell(job, 0, "state");
    job_put_subtitle(job, view->beside);
    if (state && strcmp(state, "REVIEW") == 0)
        fprintf(view->beside, "<a class=\"button\" href=\"review?id=%" PRId64 "\">Review</a>",
                web_request_number(view->request, REQUEST_id));
    int rc = job_open_in_viewer(view, report_cell(job, 0, "series_uid"), error);
    if (rc == 0 && state && (strcmp(state, "DONE") == 0 || strcmp(state, "EMPTY") == 0))
        rc = web_similar_link(view, web_request_number(view->request, REQUEST_id), error);
    fputs("<div class=\"columns\"><div class=\"stack\">", out);
    web_viewer_put(view, web_request_number(view->request, REQUEST_id), "job");
    if (rc == 0)
        rc = web_upload_section(view, web_request_number(view->request, REQUEST_id), error);
    if (rc == 0)
        rc = job_correction(view, error);
    if (rc == 0)
        rc = web_findings_put(view, web_request_number(view->request, REQUEST_id), WEB_FINDINGS_TABLE, error);
    if (rc == 0)
        rc = web_view_list(view, WEB_JOB_SEGMENTS, NULL, error);
    if (rc == 0)
        rc = web_view_list(view, WEB_JOB_QUANTITIES, NULL, error);
    if (rc == 0)
        rc = job_steps(view, error);
    if (rc == 0)
        rc = web_view_list(view, WEB_JOB_EVENTS, NULL, error);
    fputs("</div><div class=\"stack\">", out);
    if (rc == 0)
        html_details(job, web_view_links, out);
    if (rc == 0)
        rc = job_results(view, job, error);
    if (rc == 0)
        rc = web_view_list(view, WEB_JOB_DELIVERIES, NULL, error);
    fputs("</div></div>", out);
    return rc;
}

int
web_view_job(const struct web_view *view, struct error *error)
{
    static const enum report_list_name continued[] = {WEB_JOB_SEGMENTS, WEB_JOB_QUANTITIES, WEB_JOB_DELIVERIES,
                                                      WEB_JOB_EVENTS, REPORT_LIST_COUNT};
    struct report_table job;
    int rc = job_read(view, WEB_JOB, &job, error);
    if (rc < 0)
        return rc;
    web_assets_put(WEB_ASSET_VIEWER_STYLE, view->out);
    *view->job = job.row_count > 0 ? web_request_number(view->request, REQUEST_id) : 0;
    if (job.row_count == 0)
        rc = error_set(error, -ENOENT, CODE_NONE, "not found in the database");
    else if (*view->request->values[REQUEST_list])
        rc = web_view_lists(view, continued, error);
    else if ((rc = web_job_buttons(view, web_request_number(view->request, REQUEST_id), error)) == 0)
        rc = job_put_all(view, &job, error);
    report_table_free(&job);
    return rc;
}
