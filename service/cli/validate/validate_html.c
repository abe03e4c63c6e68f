/* validate_html.c - the page of a validation: its decision, its ranges, its cases, and pictures of the worst. */
#include "service/cli/validate/validate_result.h"

#include "service/common/html/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORST = 5, MAX_PICTURE = 4 << 20 };

static void
validate_put_cell(const char *text, FILE *out)
{
    fputs("<td>", out);
    html_untrusted(text, out);
    fputs("</td>", out);
}

static void
validate_put_number(int digits, double value, FILE *out)
{
    fputs("<td>", out);
    if (!isnan(value))
        fprintf(out, "%.*f", digits, value);
    fputs("</td>", out);
}

static void
validate_put_heads(const char *title, const char *const *heads, FILE *out)
{
    fprintf(out, "<h2>%s</h2>\n<table><tr>", title);
    for (; *heads; heads++)
        fprintf(out, "<th>%s</th>", *heads);
    fputs("</tr>\n", out);
}

static void
validate_put_ranges(const struct validate_result *result, FILE *out)
{
    static const char *const heads[] = {"scanner", "kernel",     "slices",  "patients",
                                        "DONE",    "noise from", "to (HU)", NULL};
    validate_put_heads("Images", heads, out);
    for (size_t i = 0; i < result->range_count; i++) {
        const struct validate_range *range = &result->ranges[i];
        const struct trust_images *images = &range->first->images;
        char scanner[600];
        snprintf(scanner, sizeof scanner, "%s %s", images->manufacturer, images->model);
        fputs("<tr>", out);
        validate_put_cell(scanner, out);
        validate_put_cell(images->kernel, out);
        validate_put_cell(trust_thickness(images->slice_mm), out);
        fprintf(out, "<td>%zu%s</td><td>%zu of %zu</td>", range->patients,
                range->patients < VALIDATE_RANGE_PATIENTS ? " (5 are needed)" : "", range->done, range->cases);
        validate_put_number(1, range->noise[0], out);
        validate_put_number(1, range->noise[1], out);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static void
validate_put_cases(const struct validate_run *run, FILE *out)
{
    static const char *const heads[] = {"case",      "outcome, segment", "checks",    "Dice", "surface Dice",
                                        "95 % (mm)", "volume ratio",     "bias (ml)", NULL};
    validate_put_heads("Cases", heads, out);
    for (size_t i = 0; i < run->count; i++) {
        const struct validate_case *own = &run->cases[i];
        fputs("<tr>", out);
        validate_put_cell(own->unit->output + strlen(run->output), out);
        fprintf(out, "<td>%s%s%s</td>", own->outcome, own->other ? ", other region" : "", own->wrong ? ", WRONG" : "");
        validate_put_cell(own->checks, out);
        fputs("</tr>\n", out);
        for (size_t k = 0; k < own->rows.count; k++) {
            const struct compare_row *row = &own->rows.items[k];
            fputs("<tr><td></td>", out);
            validate_put_cell(row->regions[AGREEMENT_FOUND], out);
            if (row->error.code != CODE_NONE) {
                validate_put_cell(row->error.message, out);
            } else {
                fputs("<td></td>", out);
                validate_put_number(4, row->agreement.dice, out);
                validate_put_number(4, row->agreement.surface_dice, out);
                validate_put_number(2, row->agreement.distance_95, out);
                validate_put_number(4, row->agreement.ratio, out);
                validate_put_number(2, row->agreement.bias_ml, out);
            }
            fputs("</tr>\n", out);
        }
    }
    fputs("</table>\n", out);
}

static int
validate_compare_margins(const void *a, const void *b)
{
    const struct validate_case *const *one = a, *const *other = b;
    return ((*one)->margin > (*other)->margin) - ((*one)->margin < (*other)->margin);
}

static void
validate_put_pictures(const struct validate_run *run, FILE *out)
{
    const struct validate_case **worst = calloc(run->count + 1, sizeof(struct validate_case *));
    size_t count = 0;
    for (size_t i = 0; i < run->count && worst; i++)
        if (isfinite(run->cases[i].margin))
            worst[count++] = &run->cases[i];
    if (worst)
        qsort(worst, count, sizeof *worst, validate_compare_margins);
    fputs("<h2>Lowest agreement</h2>\n<div class=\"looks\">\n", out);
    for (size_t i = 0; i < count && i < WORST; i++) {
        unsigned char *bytes = NULL;
        size_t size;
        fputs("<figure>", out);
        if (html_read_preview(worst[i]->unit->output, "preview.png", MAX_PICTURE, &bytes, &size) == 0)
            html_png(bytes, size, "Preview of the segments and their references", out);
        free(bytes);
        fputs("<figcaption>", out);
        html_untrusted(worst[i]->unit->output + strlen(run->output), out);
        fprintf(out, ": %s</figcaption></figure>\n", worst[i]->outcome);
    }
    fputs("</div>\n", out);
    free(worst);
}

void
validate_put_html(const struct validate_run *run, const struct validate_result *result, FILE *out)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Validation of ", out);
    html_text(run->pipeline->name, out);
    fprintf(out, "</title><style>%s</style></head><body>\n<h1>Validation of ", html_style);
    html_text(run->pipeline->name, out);
    fprintf(out, ": %s</h1>\n<p>", result->passed ? "passed" : "not passed");
    html_text(result->why, out);
    fprintf(out,
            "</p>\n<p>noctule " NOCTULE_VERSION
            ". %zu patients, %zu of %zu results DONE; %zu of %zu of other regions DONE; %zu wrong and DONE.",
            result->patients, result->done, result->cases, result->others_done, result->others, result->wrong);
    if (!isnan(result->share_95))
        fprintf(out, " With 95 %% confidence, at most %.1f %% of results are wrong and DONE.", 100 * result->share_95);
    fputs("</p>\n", out);
    validate_put_ranges(result, out);
    validate_put_cases(run, out);
    validate_put_pictures(run, out);
    fputs("</body></html>\n", out);
}
