/*
 * jobs.h - the daemon's dealings with the workers: READY jobs go to idle lanes, what comes back
 * becomes a state.
 */
#ifndef NOCTULE_JOBS_H
#define NOCTULE_JOBS_H

#include "service/common/proto.h"
#include "service/daemon/core.h"

int jobs_open(struct core *core, struct jobs **jobs);
/* NULL is allowed. */
void jobs_close(struct jobs *jobs);

/* A worker, by its number in workers.h. An unknown or impossible frame is latched as an error in
 * the reader. */
void jobs_worker_ready(struct jobs *jobs, size_t worker);
void jobs_worker_gone(struct jobs *jobs, size_t worker, const struct pool_gone *gone);
void jobs_frame(struct jobs *jobs, size_t worker, struct proto_reader *reader);

/* The last changes of a batch: records what ended, starts what can start when core->jobs_due. */
void jobs_before_commit(struct jobs *jobs);
/* Now and then: jobs and stops that take too long. */
void jobs_tick(struct jobs *jobs);

/* The job was CANCELLED in the open transaction: its worker is told once that is committed. */
void jobs_stop(struct jobs *jobs, int64_t job);
/* Tells the workers to stop everything they run; what they stop is given back. */
void jobs_stop_all(struct jobs *jobs);

size_t jobs_running(const struct jobs *jobs);
/* Ended, but not yet recorded. */
size_t jobs_unrecorded(const struct jobs *jobs);

#endif
