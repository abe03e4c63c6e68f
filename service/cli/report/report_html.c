/*
 * report_html.c - the report as one HTML file without scripts or external resources; the policy in
 * its head forbids both. The style supports light and dark mode, phones and printing.
 */
#include "service/cli/report/report_print.h"

#include "service/common/html/html.h"

void
report_write_html(const struct report_content *report, FILE *out)
{
    const struct report_period *period = report->period;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"generator\" content=\"noctule " NOCTULE_VERSION "\">\n<title>Noctule report</title>\n<style>\n",
          out);
    fputs(html_style, out);
    fputs("</style></head>\n<body>", out);
    html_sprite(out);
    fputs("<main><div class=\"title\"><h1>Noctule report</h1><span class=\"dim\">", out);
    html_time(period->since, out);
    fputs(" to ", out);
    html_time(period->until, out);
    fprintf(out, "</span></div>\n<div class=\"verdict %s\">", report->attention ? "bad" : "good");
    html_icon(report->attention ? MARK_FAILED : MARK_DONE, out);
    fprintf(out, "<strong>%s</strong></div>\n",
            report->attention ? "An operator must act." : "Nothing needs attention.");
    fputs("<section><h2>Alerts</h2>", out);
    if (html_alerts(&report->alerts->list, false, NULL, NULL, out) == 0)
        fputs("<p class=\"dim\">No alert.</p>", out);
    fputs("</section>\n<section><h2>Waiting</h2>", out);
    if (html_alerts(&report->alerts->list, true, NULL, NULL, out) == 0)
        fputs("<p class=\"dim\">No job and no result waits for a condition.</p>", out);
    fputs("</section>\n", out);
    html_report_figures(period, NULL, out);
    report_html_previews(report, out);
    html_report_tables(period, NULL, out);
    fputs("</main></body></html>\n", out);
}
