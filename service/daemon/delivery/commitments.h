/*
 * commitments.h - storage commitment after the fact: what peers report, mostly on an
 * association of their own, and what they never report.
 *
 * A delivery that was SENT with its commitment REQUESTED waits here for nothing: the row waits. A
 * report that says no, or none within the destination's commit_seconds, sends the object again.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_COMMITMENTS_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_COMMITMENTS_H

#include "service/daemon/delivery/delivery_attempt.h"

struct commitments;

/* The attempts are those at deliveries. */
int commitments_open(struct core *core, const struct attempts *deliveries,
                     struct commitments **commitments);
void commitments_close(struct commitments *commitments);

/* COMMITTED; the intake's is answered with STORED once its rows are on disk. */
void commitments_handle(struct commitments *commitments, struct proto_reader *reader,
                        bool by_intake);
/* Nobody waits for the answers any more. */
void commitments_intake_gone(struct commitments *commitments);

/* Writes what was reported; among the last changes of a batch, after the attempts at deliveries. */
void commitments_write(struct commitments *commitments);
/* Now and then: finds those that are overdue. */
void commitments_tick(struct commitments *commitments);

#endif
