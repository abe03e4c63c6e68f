/* jobs.h - READY jobs go to the executor, what comes back becomes a state. */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOBS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOBS_H

#include "service/daemon/jobs/executor.h"

/* The executors and the array stay the caller's, who closes them after the jobs. */
int jobs_open(struct core *core, struct executor *const executors[EXECUTOR_COUNT],
              struct jobs **jobs);
/* NULL is allowed. */
void jobs_close(struct jobs *jobs);

/* The last changes of a batch: records what ended, starts what can start when core->jobs_due. */
void jobs_before_commit(struct jobs *jobs);
/* Each second: jobs and stops that take too long, and what the others are at. */
void jobs_tick(struct jobs *jobs);

/* The job was CANCELLED in the open batch: its executor is told once that is committed. */
void jobs_stop(struct jobs *jobs, int64_t job);
/* The same of several; frees the list. */
void jobs_stop_superseded(struct jobs *jobs, struct queue_ids *ids);
/* Stops everything that runs; what is stopped so is given back. */
void jobs_stop_all(struct jobs *jobs);

size_t jobs_running(const struct jobs *jobs);
/* What the daemon cannot end without: running here, or ended but not yet recorded. */
size_t jobs_unrecorded(const struct jobs *jobs);

#endif
