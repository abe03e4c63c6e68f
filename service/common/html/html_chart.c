/* html_chart.c - bar charts of a table as inline SVG. The widths are shares, so that a chart fits each page. */
#include "service/common/html/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEIGHT 132.0
#define FLOOR  112.0
#define TOP    10.0
#define LEFT   6.0 /* percent: the place of the axis */

struct chart_drawing {
    const struct report_table *table;
    const struct html_chart *chart;
    double max;
    int groups;      /* stacks per row */
    int64_t step_ms; /* between two rows */
    FILE *out;
};

static double
chart_value(const struct chart_drawing *d, size_t row, size_t bar)
{
    return report_number(d->table, row, d->chart->bars[bar].key);
}

/* Rounds up to 2, 4 or 10 times a power of ten, so that half of it is whole. */
static double
chart_round_up(double value)
{
    double power = 1.0;
    while (power * 10.0 <= value)
        power *= 10.0;
    if (value <= power && power > 1.0)
        return power;
    if (value <= 2.0 * power)
        return 2.0 * power;
    return value <= 4.0 * power ? 4.0 * power : 10.0 * power;
}

/* Returns the total of the stack that begins with a bar. */
static double
chart_stack(const struct chart_drawing *d, size_t row, size_t first)
{
    double sum = chart_value(d, row, first);
    for (size_t bar = first + 1; bar < d->chart->bar_count && !d->chart->bars[bar].beside; bar++)
        sum += chart_value(d, row, bar);
    return sum;
}

static int64_t
chart_time(const struct chart_drawing *d, size_t row)
{
    int64_t ms = 0;
    iso_time_to_ms(report_cell(d->table, row, "at"), &ms);
    return ms;
}

/* Writes the address of the list that a stack counts. */
static void
chart_link(const struct chart_drawing *d, size_t row, const struct html_bar *bar)
{
    char since[ISO_TIME_SIZE], before[ISO_TIME_SIZE];
    const int64_t from = chart_time(d, row);
    if (iso_time_from_ms(from, since) != 0 || iso_time_from_ms(from + d->step_ms, before) != 0)
        return;
    fprintf(d->out, "<a href=\"%s&amp;%ssince=%s&amp;%sbefore=%s\">", bar->href, bar->times, since, bar->times, before);
}

static void
chart_name(const struct chart_drawing *d, size_t row, size_t first)
{
    char at[32] = "";
    const time_t seconds = (time_t)(chart_time(d, row) / 1000);
    struct tm here;
    if (localtime_r(&seconds, &here))
        strftime(at, sizeof at, d->step_ms < 86400000 ? "%-d %b %H:%M" : "%-d %b", &here);
    fprintf(d->out, "<title>%s:", at);
    for (size_t bar = first; bar < d->chart->bar_count && (bar == first || !d->chart->bars[bar].beside); bar++)
        fprintf(d->out, "%s %g %s", bar > first ? "," : "", chart_value(d, row, bar), d->chart->bars[bar].word);
    fputs("</title>", d->out);
}

/* Draws a stack, from its first bar. Returns the bar after it. */
static size_t
chart_draw_stack(const struct chart_drawing *d, size_t row, size_t first, int group)
{
    const double slot = (100.0 - LEFT) / (double)d->table->row_count;
    const double width = slot * 0.84 / d->groups, x = LEFT + slot * ((double)row + 0.08) + width * group;
    const bool is_link = d->chart->bars[first].href && chart_stack(d, row, first) > 0.0;
    double base = FLOOR;
    size_t bar = first;
    if (is_link)
        chart_link(d, row, &d->chart->bars[first]);
    else
        fputs("<g>", d->out);
    chart_name(d, row, first);
    for (; bar < d->chart->bar_count && (bar == first || !d->chart->bars[bar].beside); bar++) {
        const double height = chart_value(d, row, bar) / d->max * (FLOOR - TOP);
        base -= height;
        if (height > 0.0)
            fprintf(d->out, "<rect class=\"%s\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" height=\"%.1f\"/>",
                    d->chart->bars[bar].class, x, base, width * 0.96, height);
    }
    fputs(is_link ? "</a>" : "</g>", d->out);
    return bar;
}

static void
chart_draw_axes(const struct chart_drawing *d)
{
    for (int line = 0; line <= 2; line++) {
        const double share = line / 2.0, y = FLOOR - share * (FLOOR - TOP);
        fprintf(d->out,
                "<line class=\"grid\" x1=\"%g%%\" x2=\"100%%\" y1=\"%g\" y2=\"%g\"/><text x=\"0\" y=\"%g\">%g</text>\n",
                LEFT, y, y, y + 4.0, share * d->max);
    }
    /* hours if the columns are hours, otherwise days */
    const size_t rows = d->table->row_count, every = (rows + 5) / 6;
    for (size_t row = 0; row < rows; row += every) {
        char at[32];
        struct tm here;
        const time_t seconds = (time_t)(chart_time(d, row) / 1000);
        if (localtime_r(&seconds, &here) &&
            strftime(at, sizeof at, d->step_ms < 86400000 ? "%H:%M" : "%-d %b", &here) > 0)
            fprintf(d->out, "<text x=\"%.2f%%\" y=\"%g\">%s</text>\n",
                    LEFT + (100.0 - LEFT) / (double)rows * (double)row, FLOOR + 16.0, at);
    }
}

static void
chart_legend(const struct html_chart *chart, FILE *out)
{
    if (chart->bar_count < 2)
        return;
    fputs("<div class=\"legend\">", out);
    for (size_t bar = 0; bar < chart->bar_count; bar++)
        fprintf(out,
                "<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"%s\" width=\"12\" "
                "height=\"12\"/></svg>%s</span>",
                chart->bars[bar].class, chart->bars[bar].word);
    fputs("</div>\n", out);
}

void
html_chart(const struct report_table *table, const struct html_chart *chart, FILE *out)
{
    struct chart_drawing d = {table, chart, 0.0, 1, 3600000, out};
    for (size_t bar = 1; bar < chart->bar_count; bar++)
        d.groups += chart->bars[bar].beside;
    for (size_t row = 0; row < table->row_count; row++)
        for (size_t bar = 0; bar < chart->bar_count; bar++)
            if (bar == 0 || chart->bars[bar].beside)
                d.max = fmax(d.max, chart_stack(&d, row, bar));
    d.max = chart_round_up(d.max);
    if (table->row_count > 1)
        d.step_ms = chart_time(&d, 1) - chart_time(&d, 0);
    fprintf(out, "<figure>%s%s%s\n", chart->has_caption ? "<figcaption>" : "", chart->has_caption ? chart->title : "",
            chart->has_caption ? "</figcaption>" : "");
    chart_legend(chart, out);
    fprintf(out, "<svg class=\"chart\" height=\"%g\" role=\"group\" aria-label=\"%s\">\n", HEIGHT, chart->title);
    chart_draw_axes(&d);
    for (size_t row = 0; row < table->row_count; row++) {
        int group = 0;
        for (size_t bar = 0; bar < chart->bar_count; group++)
            bar = chart_draw_stack(&d, row, bar, group);
        fputc('\n', out);
    }
    fputs("</svg></figure>\n", out);
}
