/*
 * programs.h - runs of the site's programs, which jobs need (program_plan.h): chooses the process and the GPU of each, and
 * records how it ends. Loop thread only; calls that change the queue do so in the open batch.
 *
 * The role "program" executes them (service/program), one run per process at a time; compute.programs processes.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAMS_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAMS_H

#include "service/daemon/child_pool.h"
#include "service/daemon/core.h"

struct programs;

/* At start: local runs of the last daemon become READY again, or fail at the limit of their program. Counts the former. */
int programs_recover(struct core *core, int64_t now_ms, int *returned);

/* Does not start a process: programs_reload() does so if the configuration has programs. */
int programs_open(struct core *core, struct programs **programs);
/* NULL is allowed. */
void programs_close(struct programs *programs);
/* Applies the configuration in force. */
void programs_reload(struct programs *programs);

/* Starts runs while processes and GPUs are free, and records those that ended. Must be called before each commit. */
void programs_before_commit(struct programs *programs);
/* Checks deadlines and runs to stop. Must be called each second. */
void programs_tick(struct programs *programs);
/* Stops all runs. They return to the queue. */
void programs_stop_all(struct programs *programs);
/* Returns the number of runs that the daemon must wait for: running, or ended but not recorded. */
size_t programs_unrecorded(const struct programs *programs);

/* Returns whether the slot of the pool belongs to a program process. */
bool programs_owns(const struct programs *programs, int slot);
void programs_frame(struct programs *programs, int slot, struct proto_reader *reader);
void programs_gone(struct programs *programs, int slot, const struct pool_gone *gone);
/* Events of a worker: its RESERVED, and its start. */
void programs_reserved(struct programs *programs, size_t worker, struct proto_reader *reader);
void programs_worker_ready(struct programs *programs, size_t worker);

/* At start, before a child runs: removes work folders, and folders of runs without a row. */
void programs_sweep(const char *root, struct queue *queue);

#endif
