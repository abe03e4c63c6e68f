/*
 * slurm_executor.h - jobs in Slurm: the executor whose attempts outlive the daemon. The child `cluster` (service/slurm)
 * makes their folders, asks Slurm and brings results; here is decided what it is asked for, and what comes of it.
 *
 * A task is one Slurm job with the attempts that travel in it. All share a nonce, which is committed with their rows
 * before anybody is told:
 *
 *               --tick--> SENT --SUBMITTED, its number--> SUBMITTED --squeue: ended, or not there--> over
 *     PICKED               |  --SUBMITTED, refused-----> attempts given back, and gone
 *     (rows are committed) |                                                             over: gone once
 *                          +--the child died, or does not know--> UNSURE                 no attempt is left
 *     adopted without a number at the start --------------------> UNSURE
 *
 *     UNSURE --squeue: there--> SUBMITTED
 *     UNSURE --squeue: not there, and no manifest--> attempts given back, and gone
 *
 * What squeue says is a hint, the truth about an attempt is its manifest: looked for while its task runs and when it
 * is over. An attempt whose task is over, and which has no manifest, is lost; Slurm may be slow to say so, and the
 * share to show a manifest, so a task that Slurm calls COMPLETED is given a minute. A task that is given back, or a
 * cancelled one, may run all the same, on a node that nobody reaches: its nonce is void then. Squeue shows those that
 * are not ours any more, and they are cancelled.
 *
 * One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_H

#include "service/daemon/jobs/executor.h"

struct cluster;

int cluster_open(struct core *core, struct cluster **cluster);
/* NULL is allowed. */
void cluster_close(struct cluster *cluster);
struct executor *cluster_base(struct cluster *cluster);

/* Takes over what was in Slurm when the last daemon ended, and begins. 0 or -errno. */
int cluster_start(struct cluster *cluster);
/* The configuration is another: the child begins anew, or goes. */
void cluster_reload(struct cluster *cluster);

/* Its child's slot; -1: there is none yet. */
int cluster_slot(const struct cluster *cluster);
/* An unknown or impossible frame is latched as an error in the reader. */
void cluster_frame(struct cluster *cluster, struct proto_reader *reader);
void cluster_gone(struct cluster *cluster);

/* Why nothing goes to Slurm though it should; "": all is well. */
const char *cluster_trouble(const struct cluster *cluster);
/* Unix milliseconds; 0: none. */
int64_t cluster_trouble_since(const struct cluster *cluster);

#endif
