/*
 * inspection.h - inspects complete series: the receiver finds the stacks of slices in their files,
 * and the result settles the series.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_INSPECTION_H
#define NOCTULE_SERVICE_DAEMON_SERIES_INSPECTION_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

struct inspections;

int inspections_open(struct core *core, struct inspections **inspections);
/* Frees asynchronously. NULL is allowed. */
void inspections_close(struct inspections *inspections);

/* Request a check for complete series: soon, or later after an instance has arrived. */
void inspections_check(struct inspections *inspections);
void inspections_check_later(struct inspections *inspections);

/* Handles INSPECTED. A broken frame sets the reader's error. */
void inspections_frame(struct inspections *inspections, struct proto_reader *reader);
/* Sets whether the receiver accepts slices. While it does not, a series cannot count as
 * complete. */
void inspections_listening(struct inspections *inspections, bool listening);
/* Handles the end of the receiver. crashed: one of the inspected files may be the cause. */
void inspections_receiver_gone(struct inspections *inspections, bool crashed);
/* Shifts times after the clock was set. */
void inspections_clock_was_set(struct inspections *all, int64_t by_ms);
/* Kills the receiver if an inspection takes too long. Must be called now and then. */
void inspections_tick(struct inspections *inspections);

#endif
