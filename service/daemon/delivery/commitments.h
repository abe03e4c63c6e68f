/*
 * commitments.h - storage commitment reports that arrive after the delivery, mostly on an association of their own, and
 * reports that never arrive.
 *
 * A delivery that was SENT with its commitment REQUESTED occupies no memory here: only its row waits. After a negative
 * report, or without a report within the destination's commit_seconds, the object is sent again.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_COMMITMENTS_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_COMMITMENTS_H

#include "service/daemon/delivery/delivery_attempt.h"

struct commitments;

/* Opens the recorder of commitment reports. `deliveries` are the running delivery attempts. Returns 0 or -ENOMEM. */
int commitments_open(struct core *core, const struct attempts *deliveries, struct commitments **commitments);
void commitments_close(struct commitments *commitments);

/* Handles COMMITTED. A report from the receiver is answered with STORED once its rows are on disk. */
void commitments_handle(struct commitments *commitments, struct proto_reader *reader, bool by_receiver);
/* Drops the replies that the receiver waited for. */
void commitments_receiver_gone(struct commitments *commitments);

/* Writes the reports. Must be called before a commit, after the delivery attempts are written. */
void commitments_write(struct commitments *commitments);
/* Finds overdue commitments, now and then. */
void commitments_tick(struct commitments *commitments);

#endif
