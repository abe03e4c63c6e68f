/* alert_daemon.h - alerts that only the daemon can raise, for the reply to PING, the web UI and acknowledgements. */
#ifndef NOCTULE_SERVICE_DAEMON_ALERT_DAEMON_H
#define NOCTULE_SERVICE_DAEMON_ALERT_DAEMON_H

#include "service/common/alert/alert_list.h"
#include "service/daemon/core.h"

/* Adds the daemon's alerts to the list, with the reason why ready jobs wait. */
void alert_daemon_add(const struct core *core, struct alerts *alerts);

/* Sends ALERTS to the web UI process, if it runs, and ends acknowledgements of alerts that the daemon has cleared. */
void alert_daemon_tick(struct core *core);
/* Stores the alerts that have begun, become worse or ended since the last call, an event per alert. Reasons why work
 * waits are no such alerts. Does nothing in the first minute of the daemon, because alerts of its start end by
 * themselves. */
void alert_daemon_record(struct core *core);
/* Sends ALERTS without ending acknowledgements. */
void alert_daemon_send(const struct core *core);

/* Acknowledges an alert of the complete list, or ends its acknowledgement. Returns 0, -ENOENT if there is no such
 * alert, -EPERM if its kind may not be acknowledged, or another -errno. Sets `error` on failure. */
struct message_ack;
int alert_daemon_acknowledge(struct core *core, const struct message_ack *request, const char *by, struct error *error);

#endif
