/*
 * known.h - tells the intake what is taken in already, so that it neither opens it nor reports it anew: files that
 * inboxes keep, as they were then, and files in series/ that have rows. The rows are written with the instance's,
 * so what is told is on disk; whatever is not told is looked at.
 *
 * Not before the audit is over: a file that is missing is brought back by its original. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_KNOWN_H
#define NOCTULE_SERVICE_DAEMON_SERIES_KNOWN_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

struct known;

int known_open(struct core *core, struct known **known);
void known_close(struct known *known); /* NULL is allowed */

/* ASK_KNOWN or FORGET. */
void known_frame(struct known *known, struct proto_reader *reader);
void known_audited(struct known *known);
/* The next one is told from the beginning. */
void known_intake_gone(struct known *known);

#endif
