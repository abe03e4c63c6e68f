/*
 * slurm.h - Slurm by its commands: sbatch, squeue, scancel. libslurm is under the GPL, so it is not
 * linked; and its commands are what a site's own wrappers and plugins know.
 *
 * squeue is asked for five columns of text. Its JSON changes from release to release (job_state was a
 * word up to 22.05, and is a list from 23.02 on) and is 55 times as long (docs/measurements.md).
 *
 * Calls block, at most SLURM_SECONDS each; any thread that is no loop's. Failures have a code:
 * SLURM_UNAVAILABLE, or SLURM_REFUSED.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_H

#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

#define SLURM_SECONDS     60.0
#define SLURM_TRY_SECONDS 4.0 /* for somebody who waits for it */
#define SLURM_NAME_SIZE   64
/* Threads of the child that hands over, polls and brings results, and how many of them may hand over at a time: that reads all
 * images of a task, and may take minutes. The rest is there for polls. */
#define SLURM_THREADS "16"
#define SLURM_SUBMITS 12

/* What sbatch is told of a Slurm job. */
struct slurm_order {
    const char *name;           /* of the Slurm job; of all that a daemon submits the same */
    const char *comment;        /* what it is found by: an attempt's nonce */
    const char *exclude;        /* nodes, with commas between; "" */
    const char *output;         /* the file for what it writes */
    const char *script;         /* slurm_write_script's */
    const char *series;         /* where images lie that nodes see; "": they see none */
    const char *const *folders; /* of attempts */
    size_t folder_count;
};

/* The script that sbatch wants: it becomes its arguments. Durable, in place of one that is there. */
int slurm_write_script(const char *path);

/*
 * 0 and its id. A failure by -ETIMEDOUT, and any that is not SLURM_REFUSED, leaves open whether Slurm has it: only its queue
 * says so.
 */
int slurm_submit(const struct conf_slurm *conf, const struct slurm_order *order, int64_t *id,
                 struct error *error);

/* Would it take a job as they are submitted? It is asked, and none is submitted: 0 or -errno. */
int slurm_try(const struct conf_slurm *conf, struct error *error);
/* MinJobAge, in seconds, and MaxJobCount of its configuration. */
int slurm_settings(int64_t *min_job_age, int64_t *max_job_count, struct error *error);

/* A Slurm job, in Slurm's words. Strings are in the text that was read. */
struct slurm_job {
    int64_t id;
    const char *state, *comment, *node, *reason;
};

/*
 * Calls back for each Slurm job of that name that Slurm knows, also of those that ended less than
 * MinJobAge ago. What is no such line makes the whole fail: half a queue would look like jobs that are gone.
 */
int slurm_list(const char *name, void (*job)(void *context, const struct slurm_job *job),
               void *context, struct error *error);
/* The same of a text, which is cut to pieces. */
int slurm_read_list(char *text, void (*job)(void *context, const struct slurm_job *job),
                    void *context, struct error *error);

/* All of them; those that are not there any more are no failure. */
int slurm_cancel(const int64_t *ids, size_t count, struct error *error);

/* Does a Slurm job in this state run, wait or come to its end yet? False: it has ended. */
bool slurm_lives(const char *state);

#endif
