/*
 * pull_scheduler.h - the daemon's dealings with archives that are asked for studies (noctule pull): one item at a time of each source, in
 * its window and at its pace, by a courier of its own. What starts is looked for once a second, and when one has ended.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_SCHEDULER_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_SCHEDULER_H

#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

struct pulls;

int pulls_open(struct core *core, struct pulls **pulls);
/* NULL is allowed. */
void pulls_close(struct pulls *pulls);

/* FOUND and MOVED; an unknown or impossible frame is latched as an error in the reader. */
void pulls_frame(struct pulls *pulls, struct proto_reader *reader);
/* Of any courier. */
void pulls_courier_gone(struct pulls *pulls, int slot, const struct pool_gone *gone);

/* The last changes of a batch. */
void pulls_before_commit(struct pulls *pulls);
void pulls_tick(struct pulls *pulls);
/* The sources may be others now. 0, or -ENOMEM: nothing begins until a tick has done it. */
int pulls_reload(struct pulls *pulls);

/* Whose courier is in this slot; "" for none. */
const char *pulls_served_from(const struct pulls *pulls, int slot);
/* Under way, or ended and not recorded. */
size_t pulls_unrecorded(const struct pulls *pulls);

/* In the open batch: 0, or -errno when it was refused; *say is what to tell whoever asks. */
int pulls_cancel(struct pulls *pulls, int64_t batch, const char *by, char *say, size_t size);

#endif
