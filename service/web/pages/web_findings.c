/*
 * web_findings.c - found and expected: the volume and the mean of each segment of a job with their expected ranges, and
 * the expectations that are broken. A table on the page of a job; beside a decision, a list with the broken ones first.
 */
#include "service/web/pages/web_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number with its expected range. */
struct finding {
    const char *segment, *measure, *unit;
    double found, low, high;
    bool is_bounded;  /* low and high are known */
    const char *text; /* of a broken expectation, or NULL */
};

/* Returns whether the number is outside its range. An empty segment breaks one expectation, whatever its numbers are. */
static bool
finding_is_outside(const struct finding *finding)
{
    return finding->is_bounded && (finding->found < finding->low || finding->found > finding->high);
}

/* Draws the range as a band in the middle half of a bar, and the number as a mark within the bar. */
static void
finding_put_bar(const struct finding *finding, FILE *out)
{
    const double span = finding->high - finding->low;
    const double at = span > 0                         ? 25 + 50 * (finding->found - finding->low) / span
                      : finding->found == finding->low ? 50
                                                       : 99;
    const double shown = at < 3 ? 3 : at > 97 ? 97 : at;
    if (!finding->is_bounded || !isfinite(span) || !isfinite(at))
        return;
    fprintf(out,
            "<svg class=\"j-bar\" aria-hidden=\"true\"><rect class=\"track\" y=\"7\" width=\"100%%\" height=\"4\"/>"
            "<rect class=\"band\" x=\"25%%\" y=\"5\" width=\"50%%\" height=\"8\"/>"
            "<svg x=\"%.1f%%\" y=\"9\" overflow=\"visible\"><circle class=\"%s\" r=\"4.5\"/></svg></svg>",
            shown, finding->text || finding_is_outside(finding) ? "broken" : "mark");
}

/* Writes a number with its unit; no text if it is not a number. */
static void
finding_put_number(const struct finding *finding, FILE *out)
{
    if (isfinite(finding->found))
        fprintf(out, "%.6g%s%s", finding->found, *finding->unit ? " " : "", finding->unit);
}

static void
finding_put_state(const struct finding *finding, FILE *out)
{
    if (finding->text || finding_is_outside(finding))
        fputs("<strong class=\"failed\">Not as expected</strong> ", out);
    if (finding->text)
        html_untrusted(finding->text, out);
    else if (finding->is_bounded && isfinite(finding->found) && !finding_is_outside(finding))
        fputs("as expected", out);
}

static void
finding_put_row(const struct finding *finding, FILE *out)
{
    fputs("<tr><td data-t=\"Segment\">", out);
    html_untrusted(finding->segment, out);
    fprintf(out, "</td><td data-t=\"Measure\">%s</td><td class=\"n\" data-t=\"Found\">", finding->measure);
    finding_put_number(finding, out);
    fputs("</td><td class=\"n\" data-t=\"Expected\">", out);
    if (finding->is_bounded)
        fprintf(out, "%.6g to %.6g", finding->low, finding->high);
    fputs("</td><td class=\"j-range\" data-t=\"Range\">", out);
    finding_put_bar(finding, out);
    fputs("</td><td data-t=\"State\">", out);
    finding_put_state(finding, out);
    fputs("</td></tr>\n", out);
}

static void
finding_put_item(const struct finding *finding, FILE *out)
{
    fputs("<li><strong>", out);
    html_untrusted(finding->segment, out);
    fprintf(out, "</strong>%s%s <span class=\"nowrap\">", *finding->segment && *finding->measure ? ", " : "",
            finding->measure);
    finding_put_number(finding, out);
    fputs("</span>", out);
    if (finding->is_bounded)
        fprintf(out, " <span class=\"dim nowrap\">expected %.6g to %.6g</span>", finding->low, finding->high);
    finding_put_bar(finding, out);
    finding_put_state(finding, out);
    fputs("</li>\n", out);
}

/* ------------------------------------------------------------------------------------- rows --- */

struct job_findings {
    struct report_table segments, breaches;
    struct conf_pipeline *pipeline; /* of the job; NULL: its settings are of an older version */
    const char *head;               /* before the first one */
    void (*put)(const struct finding *finding, FILE *out);

    enum { FINDINGS_ALL, FINDINGS_BROKEN, FINDINGS_EXPECTED } which;

    int count;
    FILE *out;
};

static void
findings_put_one(struct job_findings *all, const struct finding *finding)
{
    const bool is_broken = finding->text || finding_is_outside(finding);
    if (all->which != FINDINGS_ALL && (all->which == FINDINGS_BROKEN ? !is_broken : is_broken || !finding->is_bounded))
        return;
    if (all->count++ == 0)
        fputs(all->head, all->out);
    all->put(finding, all->out);
}

/* Returns the expectation of a segment in the settings; NULL: none. Regions of objects have other numbers, so labels count. */
static const struct conf_expect *
findings_expect(const struct conf_pipeline *pipeline, const char *label)
{
    for (size_t i = 0; pipeline && i < pipeline->segment_count; i++)
        if (strcmp(pipeline->segments[i].label, label) == 0)
            return pipeline->segments[i].expect;
    return NULL;
}

/* Returns the text of the broken expectation of a segment; NULL: it is not broken. Marks its row as used. */
static const char *
findings_breach(const struct report_table *breaches, const char *label, const char *expectation, bool *used)
{
    for (size_t i = 0; i < breaches->row_count; i++) {
        const char *own = report_cell(breaches, i, "label"), *kind = report_cell(breaches, i, "expectation");
        if (own && kind && strcmp(own, label) == 0 && strcmp(kind, expectation) == 0) {
            used[i] = true;
            return report_cell(breaches, i, "text");
        }
    }
    return NULL;
}

static void
findings_put_measure(struct job_findings *all, size_t row, const char *measure, const struct conf_bounds *bounds,
                     bool *used)
{
    const bool is_volume = strcmp(measure, "volume") == 0;
    const char *label = report_cell_text(&all->segments, row, "label"),
               *unit = report_cell_text(&all->segments, row, "unit");
    const char *found = report_cell(&all->segments, row, is_volume ? "volume_ml" : "mean");
    const struct finding finding = {.segment = label,
                                    .measure = measure,
                                    .unit = is_volume ? "ml" : unit,
                                    .found = found ? strtod(found, NULL) : NAN,
                                    .low = bounds ? bounds->at[0] : 0,
                                    .high = bounds ? bounds->at[1] : 0,
                                    .is_bounded = bounds != NULL,
                                    .text =
                                        findings_breach(&all->breaches, label, is_volume ? "volume_ml" : "mean", used)};
    findings_put_one(all, &finding);
}

/* The other broken expectations, whose numbers only their rows have. */
static void
findings_put_others(struct job_findings *all, const bool *used)
{
    const struct report_table *breaches = &all->breaches;
    for (size_t i = 0; i < breaches->row_count; i++) {
        const char *found = report_cell(breaches, i, "found");
        const char *low = report_cell(breaches, i, "low"), *high = report_cell(breaches, i, "high");
        const struct finding finding = {.segment = report_cell_text(breaches, i, "label"),
                                        .measure = report_cell_text(breaches, i, "expectation"),
                                        .unit = "",
                                        .found = found ? strtod(found, NULL) : NAN,
                                        .low = low ? strtod(low, NULL) : 0,
                                        .high = high ? strtod(high, NULL) : 0,
                                        .is_bounded = low && high,
                                        .text = report_cell_text(breaches, i, "text")};
        if (!used[i])
            findings_put_one(all, &finding);
    }
}

static void
findings_put_all(struct job_findings *all)
{
    bool used[PAGE_ROWS + 1] = {false};
    for (size_t row = 0; row < all->segments.row_count; row++) {
        const struct conf_expect *expect =
            findings_expect(all->pipeline, report_cell_text(&all->segments, row, "label"));
        const bool is_expected = expect && expect->volume_ml.given;
        if (is_expected || report_cell(&all->segments, row, "volume_ml")) /* a segment of a 2-D image has none */
            findings_put_measure(all, row, "volume", is_expected ? &expect->volume_ml : NULL, used);
        if (expect && expect->mean.given)
            findings_put_measure(all, row, "mean", &expect->mean, used);
    }
    findings_put_others(all, used);
}

/* ---------------------------------------------------------------------------------- sections -- */

static void
findings_put_table(struct job_findings *all)
{
    all->head = "<section><h2>Found and expected</h2>\n<table class=\"rows\"><thead><tr><th scope=\"col\">Segment</th>"
                "<th scope=\"col\">Measure</th><th scope=\"col\" class=\"n\">Found</th><th scope=\"col\" class=\"n\">"
                "Expected</th><th scope=\"col\">Range</th><th scope=\"col\">State</th></tr></thead>\n<tbody>";
    all->put = finding_put_row;
    findings_put_all(all);
    fputs(all->count > 0 ? "</tbody></table></section>\n" : "", all->out);
}

static void
findings_put_list(struct job_findings *all)
{
    all->head = all->breaches.row_count > 0 ? "<section class=\"found broken\"><h2>Found and expected</h2><ul>"
                                            : "<section class=\"found\"><h2>Found and expected</h2><ul>";
    all->put = finding_put_item;
    all->which = FINDINGS_BROKEN;
    findings_put_all(all);
    all->which = FINDINGS_EXPECTED;
    findings_put_all(all);
    fputs(all->count > 0 ? "</ul></section>\n" : "", all->out);
}

int
web_findings_put(const struct web_view *view, int64_t job, enum web_findings_form form, struct error *error)
{
    const struct report_query query = {.after = "", .job = job};
    struct report *report = view->web->report;
    struct report_table settings = {0};
    struct job_findings all = {.out = view->out};
    struct error why;
    int rc = report_page(report, WEB_JOB_SEGMENTS, &query, &all.segments, error);
    if (rc >= 0)
        rc = report_page(report, WEB_JOB_BREACHES, &query, &all.breaches, error);
    if (rc >= 0)
        rc = report_page(report, WEB_JOB_SETTINGS, &query, &settings, error);
    if (rc >= 0 && settings.row_count > 0)
        conf_pipeline_from_text(report_cell(&settings, 0, "settings"), &all.pipeline, &why);
    if (rc >= 0 && all.segments.row_count + all.breaches.row_count > 0)
        form == WEB_FINDINGS_TABLE ? findings_put_table(&all) : findings_put_list(&all);
    conf_pipeline_free(all.pipeline);
    report_table_free(&all.segments);
    report_table_free(&all.breaches);
    report_table_free(&settings);
    return rc < 0 ? rc : 0;
}
