/*
 * report_print.h - `noctule report`: the tables of db/report_lists.h and the alerts, as text, JSON
 * and HTML.
 *
 * Text from images, senders and people is escaped once per output format (service/common/html/).
 * The caller must check its stream for write errors.
 */
#ifndef NOCTULE_SERVICE_CLI_REPORT_REPORT_PRINT_H
#define NOCTULE_SERVICE_CLI_REPORT_REPORT_PRINT_H

#include "db/report_lists.h"
#include "service/cli/alert_print.h"

#include <stdio.h>

struct report_content {
    const struct report_period *period;
    const struct cli_alerts *alerts; /* current alerts */
    const char *root;                /* folder of the relative paths */
    bool attention;                  /* an operator must act */
};

void report_write_text(const struct report_content *report, FILE *out);
void report_write_json(const struct report_content *report, FILE *out);
/* Writes one self-contained file with styles, charts and a limited number of previews. */
void report_write_html(const struct report_content *report, FILE *out);

/* Writes the HTML file, completely or not at all. Returns EXIT_OK, or EXIT_PARTIAL after an error
 * message. */
int report_save(const struct report_content *report, const char *path);
/* Passes text and HTML to the site's command. Returns EXIT_OK, or EXIT_PARTIAL after an error
 * message. */
int report_send(const struct report_content *report, const char *command);

/* Writes the previews of jobs under review with their findings, up to the limit. */
void report_html_previews(const struct report_content *report, FILE *out);

#endif
