/*
 * job_windows.h - the windows of the pipelines: tells the queue which of them are open, whenever one opens or closes,
 * the configuration changes or the clock is set. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOB_WINDOWS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOB_WINDOWS_H

#include "service/daemon/core.h"

/* At once, in the open transaction or in one of its own: 0 or -errno. */
int windows_set(struct core *core);
/* Each second, and after what may have changed them (core->windows_due_ms = 0). */
void windows_tick(struct core *core);

/* When what the pipeline does for a series that is complete now is wanted; 0: whenever. */
int64_t windows_done_by(const struct conf_pipeline *pipeline, int64_t now_ms);

#endif
