/*
 * arrivals.h - the daemon's dealings with the intake: instances and quarantined files become rows,
 * series that have come to rest are inspected and get their jobs.
 */
#ifndef NOCTULE_ARRIVALS_H
#define NOCTULE_ARRIVALS_H

#include "service/common/proto.h"
#include "service/daemon/core.h"

int arrivals_open(struct core *core, struct arrivals **arrivals);
/* Frees asynchronously. NULL is allowed. */
void arrivals_close(struct arrivals *arrivals);

/* The intake's slot. An unknown frame is latched as an error in the reader. */
void arrivals_intake_ready(struct arrivals *arrivals);
void arrivals_intake_gone(struct arrivals *arrivals);
void arrivals_frame(struct arrivals *arrivals, struct proto_reader *reader);

/* core_closed may have changed: tells the intake to pause or to resume. */
void arrivals_pause_or_resume(struct arrivals *arrivals, const char *why);

/* Something may have settled: look soon. */
void arrivals_look(struct arrivals *arrivals);
/* Now and then: inspections that take too long. */
void arrivals_tick(struct arrivals *arrivals);

#endif
