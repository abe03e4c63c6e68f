/*
 * slurm_step.h - runs attempts of jobs on a node: `noctule run-job`, started by a scheduler
 * (service/common/slurm).
 *
 * A job runs as in a worker (job_lane.h), with its output in a local folder. The results are copied
 * to the shared folder, and the manifest is written last. An attempt with a manifest is not run
 * again. A voided attempt gets no output.
 *
 * Landlock and seccomp confine the process as they confine a worker, because images are foreign
 * data. Programs of the site run before the job, by a process that was forked before
 * (service/common/program/broker.h). Their masks are files of the results: NAME.mask, with the
 * NAME.outcome of the run and the end of the program's output, NAME.output.txt.
 */
#ifndef NOCTULE_SERVICE_CLI_SLURM_SLURM_STEP_H
#define NOCTULE_SERVICE_CLI_SLURM_SLURM_STEP_H

#include "service/cli/program_masks.h"
#include "service/cli/scratch.h"
#include "service/common/confine/confine_places.h"
#include "service/pipeline/job_lane.h"

enum step_end {
    STEP_PUBLISHED, /* it has a manifest, from this or another process */
    STEP_VOID,      /* it was voided */
    STEP_LEFT,      /* no manifest: a signal ended it, or the shared folder cannot be written */
};

/* The work of the process. Must be valid during slurm_step_open only. */
struct step_task {
    const char *where;    /* local folder for computations */
    const char *series;   /* read images below it in place; NULL: all were copied */
    bool programs;        /* attempts may run programs of the site */
    char *const *folders; /* of attempts: the only folders that can be written */
    size_t folder_count;
};

struct job_step {
    struct scratch scratch;
    struct error scratch_error; /* reason if scratch is not open */
    struct mask_maker masks;    /* its broker is NULL if no attempt runs programs */
    enum confine_role role;
    char node[128]; /* name of the node in the scheduler */
    /* set by a signal: the running attempt is left, later ones are returned */
    const atomic_bool *terminated;
    /* Kept from the last attempt for the next one with the same request: */
    struct job_device *device;
    struct job_lane *lane;
    struct kernels_device_options opened;
    char backend[16];
    int64_t memory_bytes;
    bool calls_filtered; /* true after the first device is open */
    bool device_lost;
    struct error device_error;
};

/* Prepares and confines the process. Must be called once, before other threads start. Returns 0, or
 * -errno after logging that confinement failed. The caller must call slurm_step_close in either
 * case. */
int slurm_step_open(struct job_step *step, const struct step_task *task, const atomic_bool *terminated);
/* Runs one attempt in the folder `path`. `error` gets the reason if it was left, or the failure of
 * the manifest. */
enum step_end slurm_step_run(struct job_step *step, const char *path, struct error *error);
void slurm_step_close(struct job_step *step);

/* Stops the running job. Signal handlers may call it after they set *terminated. */
void slurm_step_interrupt(void);

#endif
