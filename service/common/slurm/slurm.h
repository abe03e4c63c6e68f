/*
 * slurm.h - Slurm through its commands sbatch, squeue and scancel. libslurm is under the GPL and
 * must not be linked. Sites also adapt the commands with wrappers and plugins.
 *
 * squeue prints five columns of text. Its JSON changes between releases (job_state was a string up
 * to 22.05 and is a list from 23.02 on) and is 55 times as long (docs/measurements.md).
 *
 * Calls block, at most SLURM_SECONDS each, and must not run in the thread of an event loop.
 * Failures have the code SLURM_UNAVAILABLE or SLURM_REFUSED.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_H

#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

#define SLURM_SECONDS     60.0
#define SLURM_TRY_SECONDS 4.0 /* for a user who waits for the answer */
#define SLURM_NAME_SIZE   64
/* Number of threads of the child that submits, polls and collects results, and the max number that may submit at a
 * time. A submission reads all images of a task and may take minutes, so the other threads stay free for polls. */
#define SLURM_THREADS "16"
#define SLURM_SUBMITS 12

/* The parameters of a Slurm job for sbatch. */
struct slurm_order {
    const char *name;           /* name of the Slurm job, the same for all jobs of a daemon */
    const char *comment;        /* an attempt's nonce, by which the job is found */
    const char *exclude;        /* nodes, separated by commas, or "" */
    const char *output;         /* the file for the job's standard output and error */
    const char *script;         /* written by slurm_write_script */
    const char *series;         /* folder of images that the nodes can read, or "" */
    bool programs;              /* an attempt runs programs of the site */
    const char *const *folders; /* of the attempts */
    size_t folder_count;
};

/* Writes the script for sbatch, which executes its arguments. Durable; replaces an existing file.
 * Returns 0 or -errno. */
int slurm_write_script(const char *path);

/* Submits a job. Returns 0 and sets *id. After a failure other than SLURM_REFUSED, including
 * -ETIMEDOUT, Slurm may still have the job. The caller must then check Slurm's queue. */
int slurm_submit(const struct conf_slurm *conf, const struct slurm_order *order, int64_t *id, struct error *error);

/* Checks with sbatch --test-only whether Slurm would accept a job. Submits none. Returns 0 or
 * -errno. */
int slurm_try(const struct conf_slurm *conf, struct error *error);
/* Reads MinJobAge, in seconds, and MaxJobCount of Slurm's configuration. */
int slurm_settings(int64_t *min_job_age, int64_t *max_job_count, struct error *error);

/* A Slurm job with Slurm's own terms. The strings point into the text that was read. */
struct slurm_job {
    int64_t id;
    const char *state, *comment, *node, *reason;
};

/* Calls `job` for each Slurm job of that name in Slurm's queue, including jobs that ended less than MinJobAge ago.
 * Fails if any line is invalid, since jobs missing from a partial list would look finished. */
int slurm_list(const char *name, void (*job)(void *context, const struct slurm_job *job), void *context,
               struct error *error);

/* Cancels a job. Returns 0 also if it no longer exists. */
int slurm_cancel(int64_t id, struct error *error);

/* Returns whether a job in this state waits, runs or is about to end. False: it has ended. */
bool slurm_is_alive(const char *state);

#endif
