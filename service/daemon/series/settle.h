/*
 * settle.h - decides the outcome of an inspected series: SETTLED with the jobs of its rules or AE
 * title, or REFUSED.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_SETTLE_H
#define NOCTULE_SERVICE_DAEMON_SERIES_SETTLE_H

#include "service/common/routing/routing_rules.h"
#include "service/daemon/core.h"

/*
 * Settles the series in the open batch and appends to `evidence` (SERIES_EVIDENCE bytes). `facts`
 * (NULL: unknown) has one entry per stack. Rejects accepted stacks if the series lacks instances,
 * which the inspection cannot see. Returns 0, -EAGAIN if the series is no longer being received, or
 * another -errno. On an error the caller must abort the batch: otherwise a settled series without
 * jobs would be forgotten.
 */
int settle_series(struct core *core, const struct queue_series *series, char *evidence,
                  struct queue_stack *stacks, const struct rules_facts *facts, size_t count);

#endif
