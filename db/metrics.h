/*
 * metrics.h - figures for monitoring: the table metrics.def, and what the database has for its rows.
 *
 * What is counted since a time is counted by events, whose numbers ascend.
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

#define METRIC_BOUNDS 12 /* of buckets, at most; ascending, and 0 behind the last */

struct metric {
    const char *name, *label, *help; /* label: "" where there is none */
    enum metric_kind kind;
    const double *bounds; /* of a histogram; NULL: it is none */
};

extern const struct metric metric_table[METRIC_COUNT];

/* The last event that there is. 0 or -errno. */
int report_last_event(struct report *report, int64_t *event, struct error *error);

/* Calls take with each row of the metric, counting events behind `after` up to `until`; its negative errno ends it. */
int report_each_sample(struct report *report, enum metric_name name, int64_t after, int64_t until,
                       int (*take)(void *context, const char *label, double value), void *context,
                       struct error *error);

#endif
