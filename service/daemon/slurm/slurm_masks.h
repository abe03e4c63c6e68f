/*
 * slurm_masks.h - takes over the masks of programs that ran on a node, as part of a job (queue_carry_run).
 *
 * The results of such a job have NAME.mask, NAME.outcome and NAME.output.txt (service/cli/slurm/slurm_step.h).
 *
 * Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_MASKS_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_MASKS_H

#include "service/daemon/core.h"

/* Moves the masks of runs that the job carried from its results to their folders, and records that they have ended well.
 * Must be called in the batch that records a result of the job (DONE, EMPTY, REVIEW), before that. Returns 0 or -errno;
 * -EBADMSG: the results lack a mask. If the batch is lost, the next call finds the files moved. */
int slurm_masks_take(struct core *core, int64_t job);

#endif
