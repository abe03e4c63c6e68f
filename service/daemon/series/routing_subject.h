/* routing_subject.h - a stored series as rules see it. */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_ROUTING_SUBJECT_H
#define NOCTULE_SERVICE_DAEMON_SERIES_ROUTING_SUBJECT_H

#include "db/queue.h"
#include "service/common/routing/routing_rules.h"

/* Without its stacks; borrows the texts of both. */
struct rules_series subject_of(const struct conf *conf, const struct queue_series *series);

#endif
