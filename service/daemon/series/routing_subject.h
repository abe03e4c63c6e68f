/*
 * routing_subject.h - converts a stored series to the input of rules.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_ROUTING_SUBJECT_H
#define NOCTULE_SERVICE_DAEMON_SERIES_ROUTING_SUBJECT_H

#include "db/queue.h"
#include "service/common/routing/routing_rules.h"

/* Returns the series without its stacks. Borrows the strings of both arguments. */
struct rules_series routing_subject(const struct conf *conf, const struct queue_series *series);

#endif
