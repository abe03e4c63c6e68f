/*
 * deadline_alerts.h - pipelines that cannot finish their jobs by their deadline, whatever else is
 * queued. Their window does not open before the deadline, or is shorter than one job takes by
 * v_measured. The alert comes before any job is late.
 */
#ifndef NOCTULE_SERVICE_COMMON_ALERT_DEADLINE_ALERTS_H
#define NOCTULE_SERVICE_COMMON_ALERT_DEADLINE_ALERTS_H

#include "config/config.h"

struct report;

/*
 * Calls `take` for each such pipeline. If it returns a negative errno, the loop ends and returns
 * that. Without a report, job durations are unknown. If `queued`, it also reports pipelines whose
 * queued jobs need more time than the window is open until the deadline. For windows that the
 * daemon knows, v_wanted reports those.
 */
int deadline_alerts_each(const struct conf *conf, struct report *report, bool queued,
                         int64_t now_ms,
                         int (*take)(void *context, const char *pipeline, const char *text),
                         void *context);

#endif
