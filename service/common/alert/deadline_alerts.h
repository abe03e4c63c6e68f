/*
 * deadline_alerts.h - pipelines that cannot end their jobs by their deadline, whatever else the queue holds. Their window does not
 * open before it, or is shorter than a job takes by v_measured. Known before any job is late.
 */
#ifndef NOCTULE_SERVICE_COMMON_ALERT_DEADLINE_ALERTS_H
#define NOCTULE_SERVICE_COMMON_ALERT_DEADLINE_ALERTS_H

#include "config/config.h"

struct report;

/*
 * Calls take per such pipeline; its negative errno ends the loop and is returned. Without a report no duration is known.
 * queued: also report pipelines whose queued jobs take longer than the window is open until then; for windows that the
 * daemon has, v_wanted reports them.
 */
int done_by_each_doubt(const struct conf *conf, struct report *report, bool queued, int64_t now_ms,
                       int (*take)(void *context, const char *pipeline, const char *text),
                       void *context);

#endif
