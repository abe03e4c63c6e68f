/*
 * notification.h - passes single events to the commands of `notify`.
 *
 * A command receives a JSON object on its standard input: ids, codes and states, no patient data. One command runs at a
 * time. A command that does not end with 0 receives the same events again, with growing waits, and is an alert. The
 * database has the last event that each command received, so that a restart loses none; an event whose run was cut off
 * is passed again. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_NOTIFICATION_H
#define NOCTULE_SERVICE_DAEMON_NOTIFICATION_H

#include "service/daemon/core.h"

struct notifications;

int notifications_open(struct core *core, struct notifications **notifications);
/* Ends a command that runs; the loop must run once more to free it. NULL is allowed. */
void notifications_close(struct notifications *notifications);

/* Must be called after each change of the configuration. */
void notifications_reload(struct notifications *notifications);
/* Must be called once a second. */
void notifications_tick(struct notifications *notifications);

#endif
