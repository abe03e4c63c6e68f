/* html_report.c - figures, charts and tables of a report. */
#include "service/common/html/html.h"

static void
html_report_charts(const struct night *night, FILE *out)
{
    static const struct html_chart charts[] = {
        {"Complete series", "accepted", "refused", "accepted", "refused"},
        {"Finished jobs", "done", "failed", "done", "failed"},
        {"Free space, GiB", "free_gib", NULL, NULL, NULL},
    };
    const struct night_table *hours = &night->tables[NIGHT_HOURS];
    fputs("<section><div class=\"charts\">\n", out);
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++)
        html_chart(hours, &charts[i], out);
    fputs("</div></section>\n", out);
}

void
html_report_figures(const struct night *night, FILE *out)
{
    fputs("<div class=\"ones\">\n", out);
    for (int i = 0; i < NIGHT_TABLE_COUNT; i++)
        if (night->tables[i].one)
            html_figures(&night->tables[i], out);
    fputs("</div>\n", out);
    html_report_charts(night, out);
}

void
html_report_tables(const struct night *night, const struct html_link *links, FILE *out)
{
    for (int i = 0; i < NIGHT_TABLE_COUNT; i++)
        if (!night->tables[i].one && night->tables[i].row_count > 0 && i != NIGHT_HOURS &&
            i != NIGHT_REVIEW)
            html_table(&night->tables[i], links, out);
}
