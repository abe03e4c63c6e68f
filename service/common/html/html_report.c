/* html_report.c - figures, charts and tables of a report. */
#include "service/common/html/html.h"

void
html_report_figures(const struct report_period *period, const html_report_links *links, FILE *out)
{
    static const struct html_bar series[] = {{.key = "accepted", .word = "accepted", .class = "c2"},
                                             {.key = "refused", .word = "refused", .class = "cf"}};
    static const struct html_bar jobs[] = {{.key = "done", .word = "done", .class = "c2"},
                                           {.key = "failed", .word = "failed", .class = "cf"}};
    static const struct html_bar disk[] = {{.key = "free_gib", .word = "GiB free", .class = "c1"}};
    static const struct html_chart charts[] = {
        {"Complete series", true, series, 2}, {"Finished jobs", true, jobs, 2}, {"Free space, GiB", true, disk, 1}};

    fputs("<div class=\"tiles\">\n", out);
    for (int i = 0; i < PERIOD_COUNT; i++)
        if (period->tables[i].list->shape == REPORT_FIGURES)
            html_figures(&period->tables[i], links ? (*links)[i] : NULL, out);
    fputs("</div>\n<div class=\"tiles\">\n", out);
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        fputs("<section>", out);
        html_chart(&period->tables[PERIOD_HOURS], &charts[i], out);
        fputs("</section>\n", out);
    }
    fputs("</div>\n", out);
}

void
html_report_tables(const struct report_period *period, const html_report_links *links, FILE *out)
{
    for (int i = 0; i < PERIOD_COUNT; i++)
        if (period->tables[i].list->shape != REPORT_FIGURES && period->tables[i].row_count > 0 && i != PERIOD_HOURS &&
            i != PERIOD_REVIEW)
            html_table(&period->tables[i], links ? (*links)[i] : NULL, NULL, out);
}
