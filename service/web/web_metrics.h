/*
 * web_metrics.h - figures for monitoring, in Prometheus' text format (version 0.0.4): those of db/metrics.h, gathered when they
 * are asked for, and what the page counts itself.
 *
 * What is counted is counted since the page began. One thread.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_METRICS_H
#define NOCTULE_SERVICE_WEB_WEB_METRICS_H

#include "db/metrics.h"
#include "service/common/alert/alert_list.h"

#include <stdio.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics;

/* Counts what happens from now on. 0 or -errno. */
int metrics_open(struct report *report, struct metrics **opened, struct error *error);
void metrics_close(struct metrics *metrics); /* NULL is allowed */

/* One more of the page's own, or one more thing measured. What there is no memory for is not counted. */
void metrics_add(struct metrics *metrics, enum metric_name name, const char *label, double value);

/* Looks at what happened meanwhile, and writes all. */
int metrics_write(struct metrics *metrics, struct report *report, const struct alerts *alerts,
                  FILE *out, struct error *error);

#endif
