/*
 * report.c - the options of the report of each report period.
 */
#include "config/options/sections.h"

static const struct option_row report_rows[] = {
    {"at", &option_moments, AT(struct conf_report, at), "\"07:00\"", LIMITS(5, 200),
     .help =
         "when a night ends, by the clock here or of the zone that is named, such as \"Mon-Fri "
         "07:00 "
         "Europe/Berlin\": then it gets its row in v_nights, and is reported; what was missed is "
         "made up for at the next start"},
    {"command", &option_text, AT(struct conf_report, command), "", LIMITS(1, 4000),
     .help = "what /bin/sh runs with the report: its text on standard input, its page in the file "
             "$NOCTULE_REPORT_HTML; nothing when not given"},
    {"timeout_seconds", &option_number, AT(struct conf_report, timeout_seconds), "300.0",
     LIMITS(1, 3600), .help = "for the report to be made and the command to end; then it is ended"},
};

const struct option_section option_report = {ROWS(report_rows), .size = sizeof(struct conf_report)};
