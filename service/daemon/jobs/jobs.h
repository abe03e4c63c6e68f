/*
 * jobs.h - passes READY jobs to the executors and records the outcomes.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOBS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOBS_H

#include "service/daemon/jobs/executor.h"

/* Opens the jobs. The caller owns the executors and the array, and must close the executors after
 * the jobs. */
int jobs_open(struct core *core, struct executor *const executors[EXECUTOR_COUNT],
              struct jobs **jobs);
/* NULL is allowed. */
void jobs_close(struct jobs *jobs);

/* Records finished jobs, and starts jobs when core->jobs_due. Must be called before a commit. */
void jobs_before_commit(struct jobs *jobs);
/* Checks deadlines and stops, and stores the stages of running jobs. Must be called each second. */
void jobs_tick(struct jobs *jobs);

/* Stops a job that was CANCELLED in the open batch, once that is committed. */
void jobs_stop(struct jobs *jobs, int64_t job);
/* Stops several jobs and frees the list. */
void jobs_stop_superseded(struct jobs *jobs, struct queue_ids *ids);
/* Stops all running jobs. They return to the queue. */
void jobs_stop_all(struct jobs *jobs);

size_t jobs_running(const struct jobs *jobs);
/* Returns the number of jobs that the daemon must wait for: running here, or ended but not
 * recorded. */
size_t jobs_unrecorded(const struct jobs *jobs);

#endif
