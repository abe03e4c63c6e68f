/*
 * metrics.h - metrics for monitoring: the table metrics.def, and the rows that the database has for
 * it.
 *
 * Counters count events. The numbers of events ascend.
 */
#ifndef NOCTULE_DB_METRICS_H
#define NOCTULE_DB_METRICS_H

#include "base/error.h"

#include <stdint.h>

struct report;

enum metric_name {

#define METRIC(kind, name, ...) METRIC_##name,
#include "db/metrics.def"
#undef METRIC
    METRIC_COUNT,
};

enum metric_kind {
    METRIC_GAUGE,
    METRIC_COUNTER,
    METRIC_HISTOGRAM,
    METRIC_OWN_GAUGE,
    METRIC_OWN_COUNTER,
    METRIC_OWN_HISTOGRAM
};

#define METRIC_BOUNDS 12 /* the maximum number of buckets; ascending, 0 after the last */

struct metric {
    const char *name, *label, *help; /* label: "" if the metric has none */
    enum metric_kind kind;
    const double *bounds; /* of a histogram; else NULL */
};

extern const struct metric metric_table[METRIC_COUNT];

/* Reads the number of the last event. Returns 0 or -errno. */
int report_last_event(struct report *report, int64_t *event, struct error *error);

/*
 * Calls `take` with each row of the metric, counting events after `after` up to `until`. A negative
 * errno of `take` ends it.
 */
int report_each_sample(struct report *report, enum metric_name name, int64_t after, int64_t until,
                       int (*take)(void *context, const char *label, double value), void *context, struct error *error);

#endif
