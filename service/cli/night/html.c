/*
 * html.c - the report as a page: one file without scripts and without anything from elsewhere, which the
 * policy in its head forbids beside. It follows the reader's light or dark, a phone's width, and prints.
 */
#include "service/cli/night/night.h"

#include "service/common/html/html.h"
#include "service/common/troubles.h"

#include <string.h>

static void
night_html_troubles(const struct cli_troubles *troubles, FILE *out)
{
    fputs("<ul>", out);
    for (int level = TROUBLE_BROKEN; level >= TROUBLE_JOBS_WAIT; level--) {
        for (size_t i = 0; i < troubles->count; i++) {
            const struct cli_trouble *trouble = &troubles->items[i];
            if (trouble->level != level)
                continue;
            fprintf(out, "<li class=\"%s\"><span class=\"level\">%s</span> ",
                    cli_trouble_levels[level].word, cli_trouble_levels[level].heading);
            html_foreign(trouble->text, out);
            fputs("</li>\n", out);
        }
    }
    fputs("</ul>", out);
}

static void
night_html_head(const struct night_report *report, FILE *out)
{
    char times[4][SHOWN_MINUTE];
    for (int i = 0; i < 4; i++)
        shown_minute(i % 2 ? report->night->until : report->night->since, i < 2, times[i]);
    const bool here = strcmp(times[0], times[2]) != 0 || strcmp(times[1], times[3]) != 0;
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'unsafe-inline'; img-src data:\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"generator\" content=\"noctule " NOCTULE_VERSION "\">\n"
            "<title>Noctule, %s to %s</title>\n<style>\n%s</style></head>\n<body><main>\n"
            "<h1>Noctule report</h1><p>%s to %s %s</p>\n",
            times[0], times[1], html_style, times[0], times[1], here ? "by the clock here" : "UTC");
    if (here)
        fprintf(out, "<p class=\"faint small\">%s to %s UTC, as all times below</p>\n", times[2],
                times[3]);
    fprintf(out, "<section class=\"verdict%s\"><p>%s</p>", report->attention ? " bad" : "",
            report->attention ? "Somebody should look at this." : "Nothing needs attention.");
    night_html_troubles(report->troubles, out);
    fputs("</section>\n", out);
}

void
night_write_html(const struct night_report *report, FILE *out)
{
    const struct night *night = report->night;
    night_html_head(report, out);
    html_night_figures(night, out);
    night_html_previews(report, out);
    html_night_tables(night, NULL, out);
    fputs("</main></body></html>\n", out);
}
