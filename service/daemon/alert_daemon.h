/* alert_daemon.h - the alerts that only the daemon can raise: for PING's answer, the web page and acknowledgements. */
#ifndef NOCTULE_SERVICE_DAEMON_ALERT_DAEMON_H
#define NOCTULE_SERVICE_DAEMON_ALERT_DAEMON_H

#include "service/common/alert/alert_list.h"
#include "service/daemon/core.h"

/* Adds them to the list, with the reason for which ready jobs wait. */
void daemon_alerts_add(const struct core *core, struct alerts *alerts);

/* Sends ALERTS to the web page, if it runs, and ends acknowledgements of alerts that the daemon has cleared. */
void daemon_alerts_tick(struct core *core);
/* Sends ALERTS alone. */
void daemon_alerts_send(const struct core *core);

/* Acknowledges an alert of the whole list, or ends its acknowledgement. Returns 0, -ENOENT, -EPERM if its kind may not be
 * acknowledged, or another -errno, with a message. */
struct message_ack;
int daemon_alerts_acknowledge(struct core *core, const struct message_ack *asked, const char *by,
                              struct error *error);

#endif
