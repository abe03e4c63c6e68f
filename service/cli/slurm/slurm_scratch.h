/*
 * slurm_scratch.h - a folder of this node that a step computes in: scratch/noctule-step-XXXXXX, locked while it is in use, so
 * that what a killed step left can be told from what another one is at.
 */
#ifndef NOCTULE_SERVICE_CLI_SLURM_SLURM_SCRATCH_H
#define NOCTULE_SERVICE_CLI_SLURM_SLURM_SCRATCH_H

#include "base/error.h"

struct scratch {
    char *path;    /* NULL: it is not open */
    char *results; /* below it, for the job's output */
    int fd;
};

/* Makes it below `where`. 0 or -errno; scratch_close either way. */
int scratch_open(struct scratch *scratch, const char *where, struct error *error);
/* Removes what one job left in it. */
void scratch_clear(const struct scratch *scratch);
/* Removes it with all that is in it. */
void scratch_close(struct scratch *scratch);
/* Removes what steps that were killed left below `where`, as far as it is this user's. */
void scratch_sweep(const char *where);

#endif
