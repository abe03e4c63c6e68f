/*
 * web_cohort.c - the page Cohort: which results differ from the others of their pipeline? A histogram and a scatter
 * plot of two measures of a segment, and the farthest results with their jobs.
 */
#include "service/web/pages/web_view.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS       24
#define OUTLIER    3.5 /* robust standard deviations from the median */
#define MAD_UNIT   1.4826
#define LISTED     25

#define PLOT_LEFT  12.0 /* percent */
#define PLOT_FLOOR 240.0
#define PLOT_TOP   12.0

static const struct cohort_measure {
    const char *key, *name, *unit; /* unit NULL: that of the values */
} cohort_measures[] = {
    {"volume_ml", "volume", "ml"}, {"mean", "mean", NULL}, {"minimum", "minimum", NULL}, {"maximum", "maximum", NULL}};

enum { MEASURES = sizeof cohort_measures / sizeof *cohort_measures };

/* The values of a measure. */
struct cohort_axis {
    const struct cohort_measure *measure;
    double *values, median, spread; /* spread: in robust standard deviations; 0: all are equal */
    double low, high;               /* of the axis */
    const struct conf_bounds *expected;
};

struct web_cohort {
    const struct report_table *table;
    const char *pipeline, *segment, *unit;
    struct cohort_axis x, y;
    double *distance; /* of a row, the larger one of both axes */
    size_t *order;    /* rows, the farthest first */
    size_t outliers;
};

static int
cohort_compare(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double
cohort_median(double *sorted, size_t count)
{
    qsort(sorted, count, sizeof *sorted, cohort_compare);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0;
}

/* Returns 0 or -ENOMEM. */
static int
cohort_read_axis(const struct report_table *table, struct cohort_axis *axis)
{
    const size_t count = table->row_count;
    double *sorted = calloc(count, sizeof *sorted);
    axis->values = calloc(count, sizeof *axis->values);
    if (!sorted || !axis->values) {
        free(sorted);
        return -ENOMEM;
    }
    axis->low = INFINITY;
    axis->high = -INFINITY;
    for (size_t row = 0; row < count; row++) {
        sorted[row] = axis->values[row] = report_number(table, row, axis->measure->key);
        axis->low = fmin(axis->low, axis->values[row]);
        axis->high = fmax(axis->high, axis->values[row]);
    }
    axis->median = cohort_median(sorted, count);
    for (size_t row = 0; row < count; row++)
        sorted[row] = fabs(axis->values[row] - axis->median);
    axis->spread = MAD_UNIT * cohort_median(sorted, count);
    free(sorted);
    if (axis->expected && axis->expected->given) {
        axis->low = fmin(axis->low, axis->expected->at[0]);
        axis->high = fmax(axis->high, axis->expected->at[1]);
    }
    const double margin = axis->high > axis->low ? 0.04 * (axis->high - axis->low) : fmax(fabs(axis->low) * 0.1, 0.5);
    axis->low = axis->low >= 0.0 ? fmax(axis->low - margin, 0.0) : axis->low - margin;
    axis->high += margin;
    return 0;
}

static double
cohort_distance(const struct cohort_axis *axis, size_t row)
{
    const double far = fabs(axis->values[row] - axis->median);
    return far == 0.0 ? 0.0 : axis->spread > 0.0 ? far / axis->spread : INFINITY;
}

/* Sorts the rows by their distance. Returns 0 or -ENOMEM. */
static int
cohort_rank(struct web_cohort *cohort)
{
    const size_t count = cohort->table->row_count;
    cohort->distance = calloc(count, sizeof *cohort->distance);
    cohort->order = calloc(count, sizeof *cohort->order);
    if (!cohort->distance || !cohort->order)
        return -ENOMEM;
    for (size_t row = 0; row < count; row++) {
        cohort->distance[row] = fmax(cohort_distance(&cohort->x, row), cohort_distance(&cohort->y, row));
        cohort->outliers += cohort->distance[row] > OUTLIER;
    }
    /* Only the farthest are listed: selection of LISTED rows. */
    for (size_t row = 0; row < count; row++)
        cohort->order[row] = row;
    for (size_t place = 0; place < count && place < LISTED; place++)
        for (size_t row = place + 1; row < count; row++)
            if (cohort->distance[cohort->order[row]] > cohort->distance[cohort->order[place]]) {
                const size_t moved = cohort->order[place];
                cohort->order[place] = cohort->order[row];
                cohort->order[row] = moved;
            }
    return 0;
}

/* ----------------------------------------------------------------------------------- drawing ---- */

static double
cohort_x(const struct cohort_axis *axis, double value)
{
    return PLOT_LEFT + (100.0 - PLOT_LEFT) * (value - axis->low) / (axis->high - axis->low);
}

static double
cohort_y(const struct cohort_axis *axis, double value)
{
    return PLOT_FLOOR - (PLOT_FLOOR - PLOT_TOP) * (value - axis->low) / (axis->high - axis->low);
}

static const char *
cohort_unit(const struct web_cohort *cohort, const struct cohort_axis *axis)
{
    const char *unit = axis->measure->unit ? axis->measure->unit : cohort->unit;
    return unit && strcmp(unit, "1") != 0 ? unit : "";
}

/* Writes "volume (ml)", with a capital if it is a title. */
static void
cohort_name(const struct web_cohort *cohort, const struct cohort_axis *axis, bool is_title, FILE *out)
{
    const char *name = axis->measure->name, *unit = cohort_unit(cohort, axis);
    fprintf(out, "%c%s", is_title ? toupper(name[0]) : name[0], name + 1);
    if (*unit) {
        fputs(" (", out);
        html_text(unit, out);
        fputs(")", out);
    }
}

/* Returns the distance of marks of an axis: at most five, at 1, 2 or 5 times a power of ten. */
static double
cohort_step(const struct cohort_axis *axis)
{
    const double rough = (axis->high - axis->low) / 4.0, power = pow(10.0, floor(log10(rough)));
    return rough <= power         ? power
           : rough <= 2.0 * power ? 2.0 * power
           : rough <= 5.0 * power ? 5.0 * power
                                  : 10.0 * power;
}

static void
cohort_open_plot(const struct web_cohort *cohort, const char *heading, const char *beside, FILE *out)
{
    fprintf(out,
            "<section><header><h2>%s</h2><span class=\"more\">%s</span></header><figure>"
            "<svg class=\"chart\" height=\"%g\" role=\"group\" aria-label=\"%s\">\n",
            heading, beside, PLOT_FLOOR + 24.0, heading);
    const struct cohort_axis *x = &cohort->x;
    if (x->expected && x->expected->given)
        fprintf(out, "<rect class=\"band\" x=\"%.2f%%\" y=\"%g\" width=\"%.2f%%\" height=\"%g\"/>",
                cohort_x(x, x->expected->at[0]), PLOT_TOP,
                cohort_x(x, x->expected->at[1]) - cohort_x(x, x->expected->at[0]), PLOT_FLOOR - PLOT_TOP);
    const double step = cohort_step(x);
    for (long mark = lround(ceil(x->low / step)); (double)mark * step <= x->high; mark++) {
        const double value = (double)mark * step;
        fprintf(out, "<text x=\"%.2f%%\" y=\"%g\" text-anchor=\"%s\">%g</text>", cohort_x(x, value), PLOT_FLOOR + 18.0,
                cohort_x(x, value) > 95.0 ? "end" : "middle", value);
    }
}

static void
cohort_draw_line(double y, double value, FILE *out)
{
    fprintf(
        out,
        "<line class=\"grid\" x1=\"%g%%\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"0\" y=\"%.1f\">%.4g</text>",
        PLOT_LEFT, y, y, y + 4.0, value);
}

static void
cohort_histogram(const struct web_cohort *cohort, FILE *out)
{
    char heading[128], beside[128];
    size_t bins[BINS] = {0}, max = 1;
    const struct cohort_axis *x = &cohort->x;
    for (size_t row = 0; row < cohort->table->row_count; row++) {
        const int bin = (int)(BINS * (x->values[row] - x->low) / (x->high - x->low));
        bins[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    }
    for (int i = 0; i < BINS; i++)
        max = bins[i] > max ? bins[i] : max;
    max += max % 2;
    snprintf(heading, sizeof heading, "Distribution of the %s", x->measure->name);
    snprintf(beside, sizeof beside, "median %.4g %s", x->median, cohort_unit(cohort, x));
    cohort_open_plot(cohort, heading, beside, out);
    for (int i = 0; i <= 2; i++)
        cohort_draw_line(PLOT_FLOOR - (PLOT_FLOOR - PLOT_TOP) * i / 2.0, (double)max * i / 2.0, out);
    const double width = (100.0 - PLOT_LEFT) / BINS;
    for (int i = 0; i < BINS; i++) {
        const double height = (PLOT_FLOOR - PLOT_TOP) * (double)bins[i] / (double)max;
        if (bins[i] > 0)
            fprintf(out,
                    "<g><title>%zu results from %.4g to %.4g</title><rect class=\"c1\" x=\"%.2f%%\" y=\"%.1f\" "
                    "width=\"%.2f%%\" height=\"%.1f\"/></g>\n",
                    bins[i], x->low + (x->high - x->low) * i / BINS, x->low + (x->high - x->low) * (i + 1) / BINS,
                    PLOT_LEFT + width * i, PLOT_FLOOR - height, width * 0.94, height);
    }
    fputs("</svg><p class=\"dim small\">across: ", out);
    cohort_name(cohort, x, false, out);
    fprintf(out, "; up: results%s</p></figure></section>\n",
            x->expected && x->expected->given ? "; green: expected" : "");
}

/* Draws the outliers, with links to their jobs. */
static void
cohort_outliers(const struct web_cohort *cohort, FILE *out)
{
    for (size_t place = 0; place < cohort->table->row_count && place < LISTED; place++) {
        const size_t row = cohort->order[place];
        if (cohort->distance[row] <= OUTLIER)
            return;
        const double x = cohort_x(&cohort->x, cohort->x.values[row]), y = cohort_y(&cohort->y, cohort->y.values[row]);
        const char *job = report_cell(cohort->table, row, "job");
        fprintf(
            out,
            "<a href=\"job?id=%s\"><title>job %s</title><svg x=\"%.2f%%\" y=\"%.1f\" overflow=\"visible\"><path "
            "class=\"cf\" d=\"M0 -6l6 6-6 6-6-6z\"/><text x=\"%d\" y=\"4\" text-anchor=\"%s\">%s</text></svg></a>\n",
            job, job, x, y, x > 85.0 ? -10 : 10, x > 85.0 ? "end" : "start", job);
    }
}

static void
cohort_scatter(const struct web_cohort *cohort, FILE *out)
{
    char heading[128], beside[64];
    const size_t count = cohort->table->row_count;
    snprintf(heading, sizeof heading, "%s and %s", cohort->x.measure->name, cohort->y.measure->name);
    heading[0] = (char)toupper(heading[0]);
    snprintf(beside, sizeof beside, "%zu result%s, %zu outlier%s", count, count == 1 ? "" : "s", cohort->outliers,
             cohort->outliers == 1 ? "" : "s");
    cohort_open_plot(cohort, heading, beside, out);
    const double step = cohort_step(&cohort->y);
    for (long mark = lround(ceil(cohort->y.low / step)); (double)mark * step <= cohort->y.high; mark++)
        cohort_draw_line(cohort_y(&cohort->y, (double)mark * step), (double)mark * step, out);
    for (size_t row = 0; row < count; row++)
        if (cohort->distance[row] <= OUTLIER)
            fprintf(out, "<circle class=\"dot\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"3.5\"/>",
                    cohort_x(&cohort->x, cohort->x.values[row]), cohort_y(&cohort->y, cohort->y.values[row]));
    cohort_outliers(cohort, out);
    fputs("</svg><p class=\"dim small\">across: ", out);
    cohort_name(cohort, &cohort->x, false, out);
    fputs("; up: ", out);
    cohort_name(cohort, &cohort->y, false, out);
    fprintf(out, "; diamonds: more than %g robust standard deviations from the median</p></figure></section>\n",
            OUTLIER);
}

static void
cohort_deviation(const struct cohort_axis *axis, size_t row, FILE *out)
{
    const double far = cohort_distance(axis, row);
    if (isinf(far))
        fprintf(out, "%s: the others are equal", axis->measure->name);
    else
        fprintf(out, "%s %.1f", axis->measure->name, far);
}

static void
cohort_list(const struct web_cohort *cohort, FILE *out)
{
    fputs("<section><h2>Farthest from the median</h2><table class=\"rows\"><thead><tr><th scope=\"col\">State</th>"
          "<th scope=\"col\">Job</th>",
          out);
    const struct cohort_axis *axes[] = {&cohort->x, &cohort->y};
    for (int i = 0; i < 2; i++) {
        fputs("<th scope=\"col\" class=\"n\">", out);
        cohort_name(cohort, axes[i], true, out);
        fputs("</th>", out);
    }
    fputs(
        "<th scope=\"col\">Deviation</th><th scope=\"col\">Scanner</th><th scope=\"col\">Description</th></tr></thead>"
        "<tbody>\n",
        out);
    for (size_t place = 0; place < cohort->table->row_count && place < LISTED; place++) {
        const size_t row = cohort->order[place];
        const char *job = report_cell(cohort->table, row, "job");
        if (place >= 5 && cohort->distance[row] <= OUTLIER)
            break;
        fputs("<tr><td>", out);
        html_state(report_cell(cohort->table, row, "state"), out);
        fprintf(out, "</td><td data-t=\"Job\"><a href=\"job?id=%s\">%s</a></td>", job, job);
        for (int i = 0; i < 2; i++)
            fprintf(out, "<td class=\"n\" data-t=\"%s\">%.6g</td>", axes[i]->measure->name, axes[i]->values[row]);
        fputs("<td data-t=\"Deviation\">", out);
        const bool by_x = cohort_distance(&cohort->x, row) >= cohort_distance(&cohort->y, row);
        cohort_deviation(by_x ? &cohort->x : &cohort->y, row, out);
        fputs("</td><td data-t=\"Scanner\">", out);
        html_untrusted(report_cell(cohort->table, row, "scanner") ? report_cell(cohort->table, row, "scanner") : "",
                       out);
        fputs("</td><td class=\"cut\">", out);
        html_untrusted(
            report_cell(cohort->table, row, "description") ? report_cell(cohort->table, row, "description") : "", out);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table><footer>Deviation: distance from the median in robust standard deviations (1.4826 times the "
          "median absolute deviation). All values: <code>noctule cohort</code></footer></section>\n",
          out);
}

/* -------------------------------------------------------------------------------------- form ---- */

static void
cohort_select(const char *name, const char *title, const struct cohort_measure *chosen, FILE *out)
{
    fprintf(out, "<label>%s<select name=\"%s\">", title, name);
    for (int i = 0; i < MEASURES; i++)
        fprintf(out, "<option value=\"%s\"%s>%s</option>", cohort_measures[i].key,
                &cohort_measures[i] == chosen ? " selected" : "", cohort_measures[i].name);
    fputs("</select></label>\n", out);
}

/* Writes the form. A choice is "PIPELINE/SEGMENT". */
static void
cohort_form(const struct report_table *choices, const struct web_cohort *cohort, FILE *out)
{
    fputs("<section><form class=\"filters\" action=\"cohort\"><label>Pipeline, segment<select name=\"of\">", out);
    for (size_t row = 0; row < choices->row_count; row++) {
        const char *pipeline = report_cell(choices, row, "pipeline"), *segment = report_cell(choices, row, "label");
        fputs("<option value=\"", out);
        html_text(pipeline, out);
        fputs("/", out);
        html_text(segment, out);
        fprintf(out, "\"%s>",
                strcmp(pipeline, cohort->pipeline) == 0 && strcmp(segment, cohort->segment) == 0 ? " selected" : "");
        html_text(pipeline, out);
        fputs(", ", out);
        html_text(segment, out);
        fputs("</option>", out);
    }
    fputs("</select></label>\n", out);
    cohort_select("x", "Measure", cohort->x.measure, out);
    cohort_select("y", "Against", cohort->y.measure, out);
    fputs("<button class=\"primary\">Show</button></form></section>\n", out);
}

static const struct cohort_measure *
cohort_find_measure(const char *key, int fallback)
{
    for (int i = 0; i < MEASURES; i++)
        if (strcmp(cohort_measures[i].key, key) == 0)
            return &cohort_measures[i];
    return &cohort_measures[fallback];
}

/* Finds the limits of the configuration for a measure; NULL: none. */
static const struct conf_bounds *
cohort_expected(const struct conf *conf, const struct web_cohort *cohort, const struct cohort_axis *axis)
{
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        const struct conf_pipeline *pipeline = &conf->pipelines[i];
        const size_t segment = conf_find_segment(pipeline, cohort->segment);
        if (strcmp(pipeline->name, cohort->pipeline) != 0 || segment >= pipeline->segment_count)
            continue;
        const struct conf_expect *expect = pipeline->segments[segment].expect;
        if (!expect)
            return NULL;
        return strcmp(axis->measure->key, "volume_ml") == 0 ? &expect->volume_ml
               : strcmp(axis->measure->key, "mean") == 0    ? &expect->mean
                                                            : NULL;
    }
    return NULL;
}

static int
cohort_draw(const struct web_view *view, struct web_cohort *cohort, struct error *error)
{
    cohort->unit = report_cell(cohort->table, 0, "unit");
    cohort->x.expected = cohort_expected(view->web->conf, cohort, &cohort->x);
    cohort->y.expected = cohort_expected(view->web->conf, cohort, &cohort->y);
    int rc = cohort_read_axis(cohort->table, &cohort->x);
    if (rc == 0)
        rc = cohort_read_axis(cohort->table, &cohort->y);
    if (rc == 0)
        rc = cohort_rank(cohort);
    if (rc == 0) {
        fputs("<div class=\"columns even\">\n", view->out);
        cohort_histogram(cohort, view->out);
        cohort_scatter(cohort, view->out);
        fputs("</div>\n", view->out);
        cohort_list(cohort, view->out);
    }
    free(cohort->x.values);
    free(cohort->y.values);
    free(cohort->distance);
    free(cohort->order);
    return rc ? error_set_system(error, rc, "draw the cohort") : 0;
}

int
web_view_cohort(const struct web_view *view, struct error *error)
{
    struct report_table choices, table;
    const struct web_request *request = view->request;
    web_reports_chips(view, "cohort");
    int rc = report_page(view->web->report, WEB_COHORT_SEGMENTS, &(struct report_query){0}, &choices, error);
    if (rc < 0)
        return rc;
    char *of = strdup(request->values[REQUEST_of]), *slash = of ? strchr(of, '/') : NULL;
    struct web_cohort cohort = {.pipeline = "",
                                .segment = "",
                                .x = {.measure = cohort_find_measure(request->values[REQUEST_x], 0)},
                                .y = {.measure = cohort_find_measure(request->values[REQUEST_y], 1)}};
    if (slash) {
        *slash = '\0';
        cohort.pipeline = of;
        cohort.segment = slash + 1;
    } else if (choices.row_count > 0) {
        cohort.pipeline = report_cell(&choices, 0, "pipeline");
        cohort.segment = report_cell(&choices, 0, "label");
    }
    if (choices.row_count == 0) {
        fputs("<section><p class=\"dim\">No segment was measured yet. The values of segments appear here, with results "
              "that "
              "differ from the others of their pipeline.</p></section>\n",
              view->out);
    } else {
        cohort_form(&choices, &cohort, view->out);
        rc = report_page(view->web->report, WEB_COHORT,
                         &(struct report_query){.text = {cohort.pipeline, cohort.segment}}, &table, error);
        if (rc == 0) {
            cohort.table = &table;
            if (table.row_count > 0)
                rc = cohort_draw(view, &cohort, error);
            else
                fputs("<section><p class=\"dim\">No result has this segment.</p></section>\n", view->out);
            report_table_free(&table);
        }
    }
    report_table_free(&choices);
    free(of);
    return rc;
}
