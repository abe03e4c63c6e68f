/*
 * settle.h - what becomes of a series that was inspected: SETTLED with the jobs that its rules or
 * its AE title ask for, or REFUSED.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_SETTLE_H
#define NOCTULE_SERVICE_DAEMON_SERIES_SETTLE_H

#include "service/common/routing/routing_rules.h"
#include "service/daemon/core.h"

/*
 * In the open batch; on an error it has to be aborted: a settled series without its jobs would be
 * forgotten. `evidence` (SERIES_EVIDENCE bytes) is added to; `facts` (NULL: not known) are of each stack; stacks that were accepted are refused
 * where the series lacks instances, which the inspection knows nothing of. -EAGAIN: the series gathers
 * no more.
 */
int settle_series(struct core *core, const struct queue_series *series, char *evidence,
                  struct queue_stack *stacks, const struct rules_facts *facts, size_t count);

#endif
