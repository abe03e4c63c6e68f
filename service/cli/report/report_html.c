/*
 * report_html.c - the report as one HTML file without scripts or external resources; the policy in
 * its head forbids both. The style supports light and dark mode, phones and printing.
 */
#include "service/cli/report/report_print.h"

#include "service/common/html/html.h"

#include <string.h>

void
report_write_html(const struct report_content *report, FILE *out)
{
    const struct report_period *period = report->period;
    char since[SHOWN_TIME], until[SHOWN_TIME];
    shown_time(period->since, since);
    shown_time(period->until, until);
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'unsafe-inline'; img-src data:\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"generator\" content=\"noctule " NOCTULE_VERSION "\">\n"
            "<title>Noctule, %s to %s</title>\n<style>\n%s</style></head>\n<body><main>\n"
            "<h1>Noctule report</h1><p>%s to %s</p>\n",
            since, until, html_style, since, until);
    fprintf(out, "<section class=\"verdict%s\"><p>%s</p>", report->attention ? " bad" : "",
            report->attention ? "An operator must act." : "Nothing needs attention.");
    html_alerts(&report->alerts->list, out);
    fputs("</section>\n", out);
    html_report_figures(period, out);
    report_html_previews(report, out);
    html_report_tables(period, NULL, out);
    fputs("</main></body></html>\n", out);
}
