/*
 * caller_reports.h - records callers that the receiver rejected, and clears their alerts once the
 * configuration admits them. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CALLER_REPORTS_H
#define NOCTULE_SERVICE_DAEMON_CALLER_REPORTS_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

/* Reads CALLERS. A broken frame sets the reader's error. */
void callers_frame(struct core *core, struct proto_reader *reader);

/* Checks again which callers the configuration in force admits. Returns 0 or -errno of the
 * queue. */
int callers_set(struct core *core);

#endif
