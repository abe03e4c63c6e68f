/* alert_print.h - the list of alerts for commands: status, report, doctor. */
#ifndef NOCTULE_SERVICE_CLI_ALERT_PRINT_H
#define NOCTULE_SERVICE_CLI_ALERT_PRINT_H

#include "service/cli/line/line.h"
#include "service/common/alert/alert_list.h"
#include "service/common/json.h"

struct cli_alerts {
    const char *daemon; /* "running", "starting" ... (cli_no_answer) */
    struct alerts list;
};

/* By enum alert_severity: as a line begins, in JSON, and for --check. */
struct cli_alert_word {
    const char *heading, *word, *verdict;
    enum cli_style style;
};

extern const struct cli_alert_word cli_alert_words[];

/* Queries the daemon, then adds the database's. Without a report: what the daemon reports. Clear it either way. */
int cli_alerts_collect(struct cli_alerts *alerts, const struct conf *conf, struct report *report,
                       struct error *error);
void cli_alerts_clear(struct cli_alerts *alerts);

/* "Known" of an acknowledged one. */
const char *cli_alert_heading(const struct alert *alert);
/* The second line of an alert: its id, then the remedy or the acknowledgement. malloc'd; NULL: no memory. */
char *cli_alert_remedy(const struct alert *alert);

/* "daemon", "alerts" and, for earlier scripts, "troubles" of the object that is open. */
void cli_alerts_to_json(const struct cli_alerts *alerts, struct json *json);

/* " (since 2026-01-31T02:03:04.567Z)", or "". */
#define CLI_SINCE 40
const char *cli_alert_since(const struct alert *alert, char text[CLI_SINCE]);

#endif
