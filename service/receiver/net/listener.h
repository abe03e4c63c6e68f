/*
 * listener.h - the DICOM ports: accepts connections, waits until each has said what it wants, and
 * only then spends a thread on it.
 *
 * A connection that says nothing holds a descriptor and 200 bytes, for acse_seconds or until too
 * many others wait as well, and delays nobody. What greets with something else than an
 * A-ASSOCIATE-RQ is aborted, and who is not to be admitted rejected, from here: strangers cost the
 * peers no thread and no association.
 *
 * Belongs to the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_LISTENER_H
#define NOCTULE_SERVICE_RECEIVER_NET_LISTENER_H

#include "service/common/settings.h"
#include "service/common/wire/proto.h"
#include "service/receiver/net/receive.h"

struct listener;

/* The loop turns after associations have ended. */
int listener_open(uv_loop_t *loop, struct receiver *receiver, struct listener **listener);
/*
 * Opens and closes ports as the settings say; a port whose address stays is kept open throughout.
 * Associations that are open keep the settings they began with. A port that cannot be opened is
 * logged, and tried again every few seconds.
 */
void listener_configure(struct listener *listener, struct settings *settings);

/* Which port that is configured is not open, and why; false: all are. */
bool listener_lacks(const struct listener *listener, char *why, size_t size);

/* As callers_report. */
bool listener_report_callers(struct listener *listener, int64_t now_ms, struct proto_writer *writer,
                             int64_t *wait_ms);

/* No connection is accepted any more; associations end with their message under way. */
void listener_stop(struct listener *listener);
/* After listener_stop: are all associations over? */
bool listener_idle(const struct listener *listener);
/* Once it is idle: lets the loop end. */
void listener_close(struct listener *listener);
void listener_free(struct listener *listener); /* once the loop is over; NULL is allowed */

#endif
