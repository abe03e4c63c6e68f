/*
 * slurm_scratch.h - a local folder in which a step computes: scratch/noctule-step-XXXXXX. It is
 * locked while in use, so that other steps can remove folders of killed ones.
 */
#ifndef NOCTULE_SERVICE_CLI_SLURM_SLURM_SCRATCH_H
#define NOCTULE_SERVICE_CLI_SLURM_SLURM_SCRATCH_H

#include "base/error.h"

struct scratch {
    char *path;    /* NULL: not open */
    char *results; /* inside it, for the job's output */
    int fd;
};

/* Creates the folder below `where`. Returns 0 or -errno with a message. The caller must call
 * slurm_scratch_close in either case. */
int slurm_scratch_open(struct scratch *scratch, const char *where, struct error *error);
/* Removes the files of one job. */
void slurm_scratch_clear(const struct scratch *scratch);
/* Removes the folder with its content. */
void slurm_scratch_close(struct scratch *scratch);
/* Removes folders of killed steps of this user below `where`. */
void slurm_scratch_sweep(const char *where);

#endif
