/* pull_order.h - a batch of items of noctule pull, as an operator asks for it. One thread: the loop's. */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_ORDER_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_ORDER_H

#include "service/common/wire/messages.h"
#include "service/daemon/core.h"

/*
 * In the open batch: 0, or -errno when it was refused; *say is what to tell whoever asks, "" for the queue's words. Accession
 * numbers are in the vault before their rows are on disk; where those do not come to be, it is swept.
 */
int pull_order(struct core *core, const struct message_pull *told, const char *by, char *say,
               size_t size);

#endif
