/*
 * option_report.c - the options of the report of each report period.
 */
#include "config/options/option_sections.h"

static const struct option_row report_rows[] = {
    {ROW(conf_report, moments, at), "\"07:00\"", LIMITS(5, 200),
     .help = "end of each report period, in local time or in a time zone, such as \"Mon-Fri 07:00 "
             "Europe/Berlin\"; adds a row to v_nights and sends the report; a missed report is "
             "sent after the next start"},
    {ROW(conf_report, text, command), "", LIMITS(1, 4000),
     .help = "command for /bin/sh that delivers the report: text on standard input, HTML in the "
             "file $NOCTULE_REPORT_HTML; by default none"},
    {ROW(conf_report, number, timeout_seconds), "300.0", LIMITS(1, 3600),
     .help = "max time for making the report and running the command; then the command is stopped"},
};

const struct option_section option_report = {SECTION(report_rows, conf_report)};
