/*
 * web_metrics.h - metrics in Prometheus' text format (version 0.0.4): those of db/metrics.h, read
 * at each request, and those of the web UI.
 *
 * Counters start at zero with the process. One thread at a time may use it.
 */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_METRICS_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_METRICS_H

#include "db/metrics.h"
#include "service/common/alert/alert_list.h"

#include <stdio.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct web_metrics;

/* Opens the metrics and counts from now on. Returns 0 or -errno with a message. */
int web_metrics_open(struct report *report, struct web_metrics **opened, struct error *error);
void web_metrics_close(struct web_metrics *metrics); /* NULL is allowed */

/* Adds to a counter or histogram of the web UI. Without memory, the value is lost. */
void web_metrics_add(struct web_metrics *metrics, enum metric_name name, const char *label, double value);

/* Reads new values of the database and writes all metrics. Returns 0 or -errno with a message. */
int web_metrics_write(struct web_metrics *metrics, struct report *report, const struct alerts *alerts, FILE *out,
                      struct error *error);

#endif
