/*
 * report_print.h - `noctule report`: the tables of db/report_period.h and what is not well, as text, JSON and a page.
 *
 * Everything that came from images, senders and people is escaped once per kind of output
 * (service/common/html/). What cannot be written shows in the stream, which is the caller's.
 */
#ifndef NOCTULE_SERVICE_CLI_REPORT_REPORT_PRINT_H
#define NOCTULE_SERVICE_CLI_REPORT_REPORT_PRINT_H

#include "db/report_period.h"
#include "service/cli/alert_print.h"

#include <stdio.h>

struct night_report {
    const struct night *night;
    const struct cli_alerts *alerts; /* now */
    const char *root;                /* the folder that paths are relative to */
    bool attention;                  /* somebody has to look at something */
};

void night_write_text(const struct night_report *report, FILE *out);
void night_write_json(const struct night_report *report, FILE *out);
/* One file that needs no other: styles, charts and a bounded number of previews are within. */
void night_write_html(const struct night_report *report, FILE *out);

/* The page, whole or not at all; EXIT_OK, or EXIT_PARTIAL after a complaint. */
int night_save(const struct night_report *report, const char *path);
/* Text and page to the site's command; EXIT_OK, or EXIT_PARTIAL after a complaint. */
int night_send(const struct night_report *report, const char *command);

/* The previews of jobs that are under review, as many as may be, with what was found. */
void night_html_previews(const struct night_report *report, FILE *out);

#endif
