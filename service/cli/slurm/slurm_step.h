/*
 * slurm_step.h - attempts of jobs on a node: `noctule run-job`, which a scheduler starts (service/common/slurm).
 *
 * A job runs as in a worker (job_lane.h), into a folder of this node; what came of it is copied to the shared
 * one, and then the manifest says so. Of an attempt that has a manifest already nothing is done; of one that
 * was given up nothing is written.
 *
 * It is confined as a worker is, by Landlock and seccomp: images are foreign bytes on a node, too.
 */
#ifndef NOCTULE_SERVICE_CLI_SLURM_SLURM_STEP_H
#define NOCTULE_SERVICE_CLI_SLURM_SLURM_STEP_H

#include "service/cli/slurm/slurm_scratch.h"
#include "service/common/confine/confine_places.h"
#include "service/pipeline/job_lane.h"

enum step_end {
    STEP_TOLD, /* its manifest says how it ended, whoever wrote it */
    STEP_VOID, /* it was given up */
    STEP_LEFT, /* without a manifest: it was told to end, or the shared folder cannot be written */
};

/* What the process is for. Borrowed, for step_open alone. */
struct step_task {
    const char *where;    /* a folder of this node, to compute in */
    const char *series;   /* what is below it is read where it lies; NULL: all of it was copied */
    char *const *folders; /* of attempts: no others can be written */
    size_t folder_count;
};

struct job_step {
    struct scratch scratch;
    struct error scratch_error; /* why there is none */
    enum confine_role role;
    char node[128];                /* what the scheduler calls it */
    const atomic_bool *terminated; /* told to end: what runs is left, what follows is given back */
    /* Of the attempt before, for the next one that asks for the same: */
    struct job_device *device;
    struct job_lane *lane;
    struct kernels_device_options opened;
    char backend[16];
    int64_t memory_bytes;
    bool calls_filtered; /* once the first device is open */
    bool device_lost;
    struct error device_error;
};

/* Once, before there are other threads: from then on the process may do what its attempts need, and no more. 0, or -errno, which
 * is in the log: it could not be confined. step_close either way. */
int step_open(struct job_step *step, const struct step_task *task, const atomic_bool *terminated);
/* One attempt, by the path of its folder; `error` says why it was left, or what its manifest says of a failure. */
enum step_end step_run(struct job_step *step, const char *path, struct error *error);
void step_close(struct job_step *step);

/* To be called by the handlers of TERM and the like, once *terminated is set. */
void step_interrupt(void);

#endif
