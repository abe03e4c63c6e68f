/*
 * pull_order.h - adds a batch of items of noctule pull, as an operator requests it. Loop thread
 * only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_ORDER_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_ORDER_H

#include "service/common/wire/messages.h"
#include "service/daemon/core.h"

/*
 * Adds the batch in the open transaction. Returns 0, or -errno if it was rejected. Sets `reply` to
 * the reply; "": use the queue's reason. Accession numbers are stored before their rows are on
 * disk; if the rows are lost, a sweep removes them.
 */
int pull_order(struct core *core, const struct message_pull *message, const char *by, char *reply,
               size_t size);

#endif
