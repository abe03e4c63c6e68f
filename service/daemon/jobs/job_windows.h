/*
 * job_windows.h - time windows of the pipelines: updates the open windows in the queue whenever one
 * opens or closes, the configuration changes or the clock is set. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOB_WINDOWS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOB_WINDOWS_H

#include "service/daemon/core.h"

/* Updates them now, in the open transaction or in one of its own. Returns 0 or -errno. */
int windows_set(struct core *core);
/* Updates them if due. Must be called each second, and after windows_due_ms was set to 0. */
void windows_tick(struct core *core);

/* Returns the deadline of the pipeline's jobs for a series that is complete now; 0: no deadline. */
int64_t windows_deadline(const struct conf_pipeline *pipeline, int64_t now_ms);

#endif
