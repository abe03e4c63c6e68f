/*
 * slurm_executor.h - the executor for jobs in Slurm, whose attempts outlive the daemon. The Slurm
 * role (service/slurm), a child process, makes their folders, calls Slurm and fetches results. The
 * executor here sends its requests and handles its replies.
 *
 * A task is one Slurm job with the attempts that run in it. All of them share a nonce, which is
 * committed with their rows before any request is sent:
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
 * The state in squeue is only a hint. The manifest of an attempt decides: it is searched while the
 * task runs and when it is over. An attempt whose task is over and which has no manifest is lost.
 * Slurm may report states late, and the share may show a manifest late, so a COMPLETED task gets
 * one minute. A returned or cancelled task may still run, on a node that cannot be reached: its
 * nonce is void then. Tasks in squeue that are no longer known are cancelled.
 *
 * Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_H

#include "service/daemon/jobs/executor.h"

struct cluster;

int cluster_open(struct core *core, struct cluster **cluster);
/* NULL is allowed. */
void cluster_close(struct cluster *cluster);
struct executor *cluster_base(struct cluster *cluster);

/* Takes over the tasks that the last daemon left in Slurm, and starts the role. Returns 0 or
 * -errno. */
int cluster_start(struct cluster *cluster);
/* Follows a change of the configuration: restarts the role's process, or ends it. */
void cluster_reload(struct cluster *cluster);

/* Returns the slot of the role's process; -1: not added yet. */
int cluster_slot(const struct cluster *cluster);
/* Events of that slot. An unknown or invalid frame sets the reader's error. */
void cluster_frame(struct cluster *cluster, struct proto_reader *reader);
void cluster_gone(struct cluster *cluster);

/* Returns the reason why no job is submitted to Slurm, or "". */
const char *cluster_trouble(const struct cluster *cluster);
/* Returns the start of that problem in Unix milliseconds; 0: no problem. */
int64_t cluster_trouble_since(const struct cluster *cluster);

#endif
