/*
 * inspection.h - series that have come to rest: the intake is asked which stacks of slices their
 * files make, and what it says settles them.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_INSPECTION_H
#define NOCTULE_SERVICE_DAEMON_SERIES_INSPECTION_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

struct inspections;

int inspections_open(struct core *core, struct inspections **inspections);
/* Frees asynchronously. NULL is allowed. */
void inspections_close(struct inspections *inspections);

/* Something may have come to rest: look soon; or later, after an instance has come. */
void inspections_look(struct inspections *inspections);
void inspections_look_for_news(struct inspections *inspections);

/* INSPECTED; a broken one is latched as an error in the reader. */
void inspections_frame(struct inspections *inspections, struct proto_reader *reader);
/* Does the intake take slices? As long as it does not, a series cannot be called complete. */
void inspections_listening(struct inspections *inspections, bool listening);
/* crashed: perhaps of what it read. */
void inspections_intake_gone(struct inspections *inspections, bool crashed);
/* Now and then: those that take too long. */
/* The clock was set. */
void inspections_clock_was_set(struct inspections *all, int64_t by_ms);
void inspections_tick(struct inspections *inspections);

#endif
