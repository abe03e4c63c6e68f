/* alert_print.h - alerts for the commands status, report and doctor. */
#ifndef NOCTULE_SERVICE_CLI_ALERT_PRINT_H
#define NOCTULE_SERVICE_CLI_ALERT_PRINT_H

#include "service/cli/line/line.h"
#include "service/common/alert/alert_list.h"
#include "service/common/json.h"

struct cli_alerts {
    const char *daemon; /* "running", "starting", or a state of cli_no_answer */
    struct alerts list;
};

/* Words for each enum alert_severity: at the start of a line, and for --check. */
struct cli_alert_word {
    const char *heading, *verdict;
    enum cli_style style;
};

extern const struct cli_alert_word cli_alert_words[];

/* Collects the alerts of the daemon, then those of the database. If report is NULL, only the daemon
 * is queried. Returns 0 or -errno with a message. The caller must clear the list in either case. */
int cli_alerts_collect(struct cli_alerts *alerts, const struct conf *conf, struct report *report, struct error *error);

/* Returns "Known" for an acknowledged alert, else the heading of its severity. */
const char *cli_alert_heading(const struct alert *alert);
/* Returns the second line of an alert: its id with the remedy or the acknowledgement. Returns NULL
 * without memory. The caller must free it with free(). */
char *cli_alert_remedy(const struct alert *alert);

/* Writes "daemon", "alerts" and, for earlier scripts, "troubles" into the open JSON object. */
void cli_alerts_to_json(const struct cli_alerts *alerts, struct json *json);

/* Returns " (since 2026-01-31T02:03:04.567Z)", or "" if the time is unknown. */
#define CLI_SINCE 40
const char *cli_alert_since(const struct alert *alert, char text[CLI_SINCE]);

#endif
