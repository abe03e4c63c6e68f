/*
 * listener.h - the DICOM ports. Accepts connections, and uses a thread only once the association request has arrived.
 *
 * A silent connection uses a descriptor and 200 bytes, for acse_seconds or until it is displaced by others. It delays
 * no other connection. Data other than an A-ASSOCIATE-RQ is answered with an abort, and a caller that is not admitted
 * is rejected, both on the loop. Unknown callers thus take no thread and no association from peers.
 *
 * All functions must be called on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_LISTENER_H
#define NOCTULE_SERVICE_RECEIVER_NET_LISTENER_H

#include "service/common/settings.h"
#include "service/receiver/net/caller_counts.h"
#include "service/receiver/net/receive.h"

struct listener;

/* Creates the listener. The loop is woken when associations have ended. Borrows `callers`, which
 * counts rejected callers. Returns 0 or -errno. */
int listener_open(uv_loop_t *loop, struct receive_queue *queue, struct callers *callers, struct listener **listener);
/* Opens and closes ports according to the settings. A port whose address does not change stays
 * open. Existing associations keep their settings. If a port cannot be opened, the error is logged
 * and opening is retried every few seconds. */
void listener_configure(struct listener *listener, struct settings *settings);

/* Returns whether a configured port is not open, and writes the reason. */
bool listener_lacks(const struct listener *listener, char *why, size_t size);

/* Stops accepting connections. Associations end after their current message. */
void listener_stop(struct listener *listener);
/* Returns whether all associations have ended, after listener_stop. */
bool listener_idle(const struct listener *listener);
/* Closes the listener. Must be idle; the loop can then end. */
void listener_close(struct listener *listener);
void listener_free(struct listener *listener); /* after the loop has ended; NULL is allowed */

#endif
