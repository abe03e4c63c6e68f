/*
 * web_alerts.h - the alerts of the web UI. The daemon sends its own alerts each second; the others
 * come from the database. One thread at a time may use it.
 */
#ifndef NOCTULE_SERVICE_WEB_PAGES_WEB_ALERTS_H
#define NOCTULE_SERVICE_WEB_PAGES_WEB_ALERTS_H

#include "service/common/alert/alert_list.h"
#include "service/common/wire/messages.h"

#include <stdio.h>

#define WEB_ALERTS_SECONDS 10 /* time after which a silent daemon is an alert */

struct web_alerts {
    char *lines; /* last ALERTS of the daemon, or NULL */
    int64_t received_ms;
    struct alerts list; /* made at made_ms; both times are of clock_steady_ms, 0: never */
    int64_t made_ms;
};

/* Takes an ALERTS message. Another message sets the error of the reader. */
void web_alerts_receive(struct web_alerts *alerts, struct proto_reader *reader, int64_t now_ms);

/* Makes the list, unless it is less than a second old. Returns 0 or -errno with a message. */
int web_alerts_make(struct web_alerts *alerts, const struct conf *conf, struct report *report, int64_t now_ms,
                    struct error *error);
void web_alerts_clear(struct web_alerts *alerts);

/* Writes /readyz: a line per alert, "ID: message (attention, since WHEN)". If with_subject is
 * false, writes only the kinds, which name no destination or pipeline. Returns whether the service
 * is ready: no alert is broken, even an acknowledged one. */
bool web_alerts_write(const struct alerts *alerts, bool with_subject, FILE *out);

#endif
