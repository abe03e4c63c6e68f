/*
 * arrivals.h - the daemon's dealings with the intake: instances and quarantined files become rows.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_ARRIVALS_H
#define NOCTULE_SERVICE_DAEMON_SERIES_ARRIVALS_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

/* The intake's slot. An unknown frame is latched as an error in the reader. */
void arrivals_intake_ready(struct core *core);
void arrivals_intake_gone(struct core *core, const struct pool_gone *gone);
void arrivals_frame(struct core *core, struct proto_reader *reader);

/* core_closed may have changed: tells the intake to pause or to resume. */
void arrivals_pause_or_resume(struct core *core, const char *why);

#endif
