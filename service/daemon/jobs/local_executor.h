/*
 * local_executor.h - runs jobs in the workers of this machine. A worker has slots, and each slot runs one job at a
 * time. Handles the workers' reports about jobs, and their deaths.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_LOCAL_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_JOBS_LOCAL_EXECUTOR_H

#include "service/daemon/jobs/executor.h"

struct local_executor;

int local_executor_open(struct core *core, struct local_executor **local);
/* NULL is allowed. */
void local_executor_close(struct local_executor *local);

/* Returns the executor's interface for jobs.c. */
struct executor *local_executor_base(struct local_executor *local);

/* Events of a worker, by its number in workers.h. An unknown or invalid frame sets the reader's error. */
void local_executor_worker_ready(struct local_executor *local, size_t worker);
void local_executor_worker_gone(struct local_executor *local, size_t worker, const struct pool_gone *gone);
void local_executor_frame(struct local_executor *local, size_t worker, struct proto_reader *reader);

#endif
