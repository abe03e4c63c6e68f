/*
 * local_executor.h - jobs in the workers of this machine: a worker has slots, each runs a job at a
 * time. What the workers say of their jobs, and their deaths, come here.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_LOCAL_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_JOBS_LOCAL_EXECUTOR_H

#include "service/daemon/jobs/executor.h"

struct local_executor;

int local_executor_open(struct core *core, struct local_executor **local);
/* NULL is allowed. */
void local_executor_close(struct local_executor *local);

/* What jobs.c knows of it. */
struct executor *local_executor_base(struct local_executor *local);

/* A worker, by its number in workers.h. An unknown or impossible frame is latched as an error in
 * the reader. */
void local_executor_worker_ready(struct local_executor *local, size_t worker);
void local_executor_worker_gone(struct local_executor *local, size_t worker,
                                const struct pool_gone *gone);
void local_executor_frame(struct local_executor *local, size_t worker, struct proto_reader *reader);

#endif
