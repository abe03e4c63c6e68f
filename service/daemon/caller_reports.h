/*
 * caller_reports.h - callers that the receiver rejected: become rows, and cease to be alerts once the configuration admits them.
 * One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CALLER_REPORTS_H
#define NOCTULE_SERVICE_DAEMON_CALLER_REPORTS_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

/* CALLERS; a broken frame is latched as an error in the reader. */
void callers_frame(struct core *core, struct proto_reader *reader);

/* Decides anew which callers the configuration in force admits. 0 or -errno of the queue. */
int callers_set(struct core *core);

#endif
