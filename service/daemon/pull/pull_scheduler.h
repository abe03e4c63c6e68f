/*
 * pull_scheduler.h - retrieves studies from archives (noctule pull): one item at a time per source, within its window
 * and rate, by a sender process of its own. Checks for items to start once per second, and whenever one has ended.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_SCHEDULER_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_SCHEDULER_H

#include "service/common/wire/messages.h"
#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

struct pulls;

int pulls_open(struct core *core, struct pulls **pulls);
/* NULL is allowed. */
void pulls_close(struct pulls *pulls);

/* Handles FOUND and MOVED. An unknown or invalid frame sets the reader's error. */
void pulls_frame(struct pulls *pulls, struct proto_reader *reader);
/* Handles the end of any sender. */
void pulls_sender_gone(struct pulls *pulls, int slot, const struct pool_gone *gone);

/* Must be called before a commit. */
void pulls_before_commit(struct pulls *pulls);
void pulls_tick(struct pulls *pulls);
/* Follows a change of sources. Returns 0, or -ENOMEM: then no item starts until a tick has succeeded. */
int pulls_reload(struct pulls *pulls);

/* Returns the source that the sender in this slot serves, or "". */
const char *pulls_served_from(const struct pulls *pulls, int slot);
/* Returns the number of items that are under way, or ended and not recorded. */
size_t pulls_unrecorded(const struct pulls *pulls);

/* Cancels a batch in the open transaction. Returns 0, or -errno if it was rejected. Sets `reply` to the reply. */
int pulls_cancel(struct pulls *pulls, int64_t batch, const char *by, char *reply, size_t size);

/* --------------------------------------------------------------------------- pull_order.c ---- */

/* Adds the batch in the open transaction. Returns 0, or -errno if it was rejected. Sets `reply` to the reply; "": use
 * the queue's reason. Accession numbers are stored before their rows are on disk; if the rows are lost, a sweep removes
 * them. */
int pull_order(struct core *core, const struct message_pull *message, const char *by, char *reply, size_t size);

#endif
