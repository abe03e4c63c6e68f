/*
 * step.h - attempts of jobs on a node: `noctule run-job`, which a scheduler starts (service/common/attempt).
 *
 * A job runs as in a worker (job_lane.h), into a folder of this node; what came of it is copied to the shared
 * one, and then the manifest says so. Of an attempt that has a manifest already nothing is done; of one that
 * was given up nothing is written.
 */
#ifndef NOCTULE_STEP_H
#define NOCTULE_STEP_H

#include "service/pipeline/job_lane.h"

enum step_end {
    STEP_TOLD, /* its manifest says how it ended, whoever wrote it */
    STEP_VOID, /* it was given up */
    STEP_LEFT, /* without a manifest: it was told to end, or the shared folder cannot be written */
};

struct job_step {
    const char *scratch;           /* a folder of this node */
    char node[128];                /* what the scheduler calls it */
    const atomic_bool *terminated; /* told to end: what runs is left, what follows is given back */
    /* Of the attempt before, for the next one that asks for the same: */
    struct job_device *device;
    struct job_lane *lane;
    struct kernels_device_options opened;
    char backend[16];
    int64_t memory_bytes;
    bool device_lost;
    struct error device_error;
};

void step_init(struct job_step *step, const char *scratch, const atomic_bool *terminated);
/* One attempt, by the path of its folder; `error` says why it was left, or what its manifest says of a failure. */
enum step_end step_run(struct job_step *step, const char *path, struct error *error);
void step_release(struct job_step *step);

/* To be called by the handlers of TERM and the like, once *terminated is set. */
void step_interrupt(void);

#endif
