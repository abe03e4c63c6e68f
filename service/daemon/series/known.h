/*
 * known.h - sends the receiver the files that are already stored, so that it neither opens nor reports them again:
 * files that inboxes keep, with their state at import, and files in series/ that have rows. These rows are written
 * together with the instance's row, so each file sent is on disk. The receiver scans all others.
 *
 * Waits for the end of the audit, because a missing file is restored from its original. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_KNOWN_H
#define NOCTULE_SERVICE_DAEMON_SERIES_KNOWN_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

struct known;

int known_open(struct core *core, struct known **known);
void known_close(struct known *known); /* NULL is allowed */

/* Handles ASK_KNOWN and FORGET. */
void known_frame(struct known *known, struct proto_reader *reader);
/* Sends the next portion if it was requested. Must be called when the audit is over. */
void known_answer(struct known *known);
/* Resets the position: the next receiver gets the list from the beginning. */
void known_receiver_gone(struct known *known);

#endif
