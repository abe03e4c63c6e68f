/*
 * web_alerts.h - the list of alerts as the web process has it: the daemon sends its own each second, the database has the
 * others. One thread at a time.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_ALERTS_H
#define NOCTULE_SERVICE_WEB_WEB_ALERTS_H

#include "service/common/alert/alert_list.h"
#include "service/common/wire/messages.h"

#include <stdio.h>

#define PAGE_ALERTS_SECONDS 10 /* after which a silent daemon is an alert */

struct page_alerts {
    char *lines; /* the daemon's latest ALERTS; NULL: none */
    int64_t received_ms;
    struct alerts list; /* made at made_ms; both times are of clock_steady_ms, 0: never */
    int64_t made_ms;
};

/* Takes an ALERTS message. Another one is latched in the reader as an error. */
void page_alerts_receive(struct page_alerts *alerts, struct proto_reader *reader, int64_t now_ms);

/* Makes the list, unless it was made less than a second ago. Returns 0 or -errno with a message. */
int page_alerts_make(struct page_alerts *alerts, const struct conf *conf, struct report *report,
                     int64_t now_ms, struct error *error);
void page_alerts_clear(struct page_alerts *alerts);

/*
 * /readyz: a line per alert, "ID: message (attention, since WHEN)". with_subject: ids in full; else their kinds alone,
 * which name nothing of the site. Returns whether the service is ready: no alert is broken, acknowledged or not.
 */
bool page_alerts_write(const struct alerts *alerts, bool with_subject, FILE *out);

#endif
