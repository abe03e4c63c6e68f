/*
 * slurm_executor.h - the executor for jobs in Slurm, whose attempts outlive the daemon. The Slurm role (service/slurm),
 * a child process, makes their folders, calls Slurm and fetches results. The executor here sends its requests and
 * handles its replies.
 *
 * A task is one Slurm job with the attempts that run in it. All of them share a nonce, which is committed with their
 * rows before any request is sent:
 *
 *     PICKED (rows committed) --tick--> SENT
 *     SENT --SUBMITTED, its number--> SUBMITTED --squeue: ended or missing--> over
 *     SENT --SUBMITTED, rejected--> attempts returned, and task freed
 *     SENT --the role died or is unsure--> UNSURE
 *     adopted without a number at the start --> UNSURE
 *     over --no attempts left--> freed
 *
 *     UNSURE --squeue: present--> SUBMITTED
 *     UNSURE --squeue: missing, and no manifest--> attempts returned, and task freed
 *
 * The state in squeue is only a hint. The manifest of an attempt decides: it is searched while the task runs and when
 * it is over. An attempt without a manifest is lost when its task is over. Slurm may report states late, and the share
 * may show a manifest late, so a COMPLETED task gets one minute. A returned or cancelled task may still run, on a node
 * that cannot be reached: its nonce is void then. Tasks in squeue that are no longer known are cancelled.
 *
 * A job that can only run in Slurm runs its programs on the node: it carries their runs (queue_carry_run), and its job
 * file has masks without a path. The masks come back with the results.
 *
 * Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_H

#include "service/daemon/jobs/executor.h"

struct slurm_executor;

int slurm_executor_open(struct core *core, struct slurm_executor **slurm);
/* NULL is allowed. */
void slurm_executor_close(struct slurm_executor *slurm);
struct executor *slurm_executor_base(struct slurm_executor *slurm);

/* Takes over the tasks that the last daemon left in Slurm, and starts the role. Returns 0 or -errno. */
int slurm_executor_start(struct slurm_executor *slurm);
/* Follows a change of the configuration: restarts the role's process, or ends it. */
void slurm_executor_reload(struct slurm_executor *slurm);

/* Returns the slot of the role's process; -1: not added yet. */
int slurm_executor_slot(const struct slurm_executor *slurm);
/* Events of that slot. An unknown or invalid frame sets the reader's error. */
void slurm_executor_frame(struct slurm_executor *slurm, struct proto_reader *reader);
void slurm_executor_gone(struct slurm_executor *slurm);

/* Returns the reason why no job is submitted to Slurm, and its start in Unix milliseconds; or "". */
const char *slurm_executor_problem(const struct slurm_executor *slurm, int64_t *since_ms);

#endif
