/*
 * arrivals.h - handles the receiver's reports: received instances and quarantined files become
 * rows.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_ARRIVALS_H
#define NOCTULE_SERVICE_DAEMON_SERIES_ARRIVALS_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

/* Events of the receiver's slot. An unknown frame sets the reader's error. */
void arrivals_receiver_ready(struct core *core);
void arrivals_receiver_gone(struct core *core, const struct pool_gone *gone);
void arrivals_frame(struct core *core, struct proto_reader *reader);

/* Sends PAUSE or RESUME to the receiver if reception must stop or may continue. */
void arrivals_pause_or_resume(struct core *core, const char *why);

#endif
