/* html_chart.c - bar charts of a report as inline SVG, with `bad` stacked on `good`. */
#include "service/common/html/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH  340.0
#define HEIGHT 150.0
#define LEFT   34.0 /* x of the axis */
#define FLOOR  126.0
#define TOP    10.0
#define KEY(c)                                                                                                         \
    "<svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"" c "\" width=\"12\" height=\"12\"/></svg>"

struct chart_drawing {
    const struct report_table *table;
    const struct html_chart *chart;
    double max;
    FILE *out;
};

static double
chart_value(const struct chart_drawing *d, size_t row, const char *key)
{
    return key ? report_number(d->table, row, key) : 0.0;
}

/* Rounds up to 1, 2 or 5 times a power of ten, at least 1. */
static double
chart_round_up(double value)
{
    double power = 1.0;
    while (power * 10.0 <= value)
        power *= 10.0;
    if (value <= power)
        return power;
    if (value <= 2.0 * power)
        return 2.0 * power;
    return value <= 5.0 * power ? 5.0 * power : 10.0 * power;
}

static double
chart_bar(const struct chart_drawing *d, size_t row, const char *key, const char *class, double base)
{
    const double slot = (WIDTH - LEFT) / (double)d->table->row_count;
    const double height = chart_value(d, row, key) / d->max * (FLOOR - TOP);
    if (height > 0.0)
        fprintf(d->out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>", class,
                LEFT + slot * ((double)row + 0.1), base - height, slot * 0.8, height);
    return base - height;
}

static void
chart_column(const struct chart_drawing *d, size_t row)
{
    char at[SHOWN_TIME];
    shown_time(report_cell(d->table, row, "at"), at);
    fprintf(d->out, "<g><title>%s: %g", at, chart_value(d, row, d->chart->good));
    if (d->chart->bad)
        fprintf(d->out, " %s, %g %s", d->chart->good_as, chart_value(d, row, d->chart->bad), d->chart->bad_as);
    fputs("</title>", d->out);
    const double base = chart_bar(d, row, d->chart->good, "c2", FLOOR);
    chart_bar(d, row, d->chart->bad, "cf", base);
    fputs("</g>\n", d->out);
}

void
html_chart(const struct report_table *table, const struct html_chart *chart, FILE *out)
{
    struct chart_drawing d = {table, chart, 1.0, out};
    double max = 0.0;
    for (size_t row = 0; row < table->row_count; row++)
        max = fmax(max, chart_value(&d, row, chart->good) + chart_value(&d, row, chart->bad));
    d.max = chart_round_up(max);
    fprintf(out, "<figure><figcaption>%s</figcaption><div class=\"legend\">", chart->title);
    if (chart->bad)
        fprintf(out, "<span>" KEY("c2") "%s</span><span>" KEY("cf") "%s</span>", chart->good_as, chart->bad_as);
    fputs("</div>\n", out);
    fprintf(out, "<svg class=\"chart\" viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", WIDTH, HEIGHT,
            chart->title);
    for (int line = 0; line <= 2; line++) {
        const double share = line / 2.0, y = FLOOR - share * (FLOOR - TOP);
        if (line != 1 || fmod(d.max, 2.0) == 0.0)
            fprintf(out,
                    "<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\"/>"
                    "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
                    LEFT, WIDTH, y, y, LEFT - 5.0, y + 4.0, share * d.max);
    }
    for (size_t row = 0; row < table->row_count; row++)
        chart_column(&d, row);
    /* Label hours if the columns are hours, otherwise days. */
    const size_t rows = d.table->row_count, step = (rows + 5) / 6;
    const char *first = rows > 1 ? report_cell(d.table, 0, "at") : "",
               *next = rows > 1 ? report_cell(d.table, 1, "at") : "";
    int64_t from = 0, to = 0;
    iso_time_to_ms(first, &from);
    iso_time_to_ms(next, &to);
    const bool by_hour = to - from < 86400000;
    for (size_t row = 0; row < rows; row += step) {
        char at[SHOWN_TIME];
        const double slot = (WIDTH - LEFT) / (double)rows;
        shown_time(report_cell(d.table, row, "at"), at);
        if (strlen(at) >= 16)
            fprintf(d.out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%.5s</text>\n",
                    LEFT + slot * ((double)row + 0.5), FLOOR + 16.0, by_hour ? at + 11 : at + 5);
    }
    fputs("</svg></figure>\n", out);
}
