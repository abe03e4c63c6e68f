/*
 * programs.h - runs of the site's programs: plans them for the jobs that need their masks, chooses the process and the GPU,
 * and records how they end. Loop thread only; calls that change the queue do so in the open batch.
 *
 * The role "program" executes them (service/program), one run per process at a time; compute.programs processes.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAMS_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAMS_H

#include "service/common/jobs/job_file.h"
#include "service/daemon/child_pool.h"
#include "service/daemon/core.h"

struct programs;

/* Does not start a process: programs_reload() does so if the configuration has programs. */
int programs_open(struct core *core, struct programs **programs);
/* NULL is allowed. */
void programs_close(struct programs *programs);
/* Applies the configuration in force. */
void programs_reload(struct programs *programs);

/* -------------------------------------------------------------------------- program_plan.c ---- */

/*
 * Plans the runs that a job needs and that do not exist. The job must be READY, or wait for programs. It becomes READY if
 * all masks are there, and DELAYED with PROGRAM_WAITING if one is missing. It fails with the code of a run that has failed;
 * `revive` repeats that run instead. Returns 0 or -errno.
 */
int programs_plan(struct core *core, int64_t job_id, bool revive);

/* noctule retry --program: plans the runs of a READY job again, although their masks are there. Returns 0 or -errno. */
int programs_again(struct core *core, int64_t job_id, const char *by);

/*
 * Finds the masks for the file of a READY job that is about to start. Returns -ENODATA if one is missing: then the job is
 * DELAYED, or has failed. The caller must free the masks with job_masks_free().
 */
int programs_masks(struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline,
                   struct job_mask **masks, size_t *count);
void job_masks_free(struct job_mask *masks, size_t count);

/*
 * Jobs that run on other machines only (Slurm) make their masks themselves: they wait for no READY run, and programs_masks()
 * gives them masks without a path. Marks these runs as RUNNING there. Must follow the job's start. Returns 0 or -errno.
 */
int programs_carry(struct core *core, int64_t job_id);

/* ------------------------------------------------------------------------------ programs.c ---- */

/* Starts runs while processes and GPUs are free, and records those that ended. Must be called before each commit. */
void programs_before_commit(struct programs *programs);
/* Checks deadlines and runs to stop. Must be called each second. */
void programs_tick(struct programs *programs);
/* Stops all runs. They return to the queue. */
void programs_stop_all(struct programs *programs);
/* Returns the number of runs that the daemon must wait for: running, or ended but not recorded. */
size_t programs_unrecorded(const struct programs *programs);

/* Returns whether the slot of the pool belongs to a program process. */
bool programs_owns(const struct programs *programs, int slot);
void programs_frame(struct programs *programs, int slot, struct proto_reader *reader);
void programs_gone(struct programs *programs, int slot, const struct pool_gone *gone);
/* Events of a worker: its RESERVED, and its start. */
void programs_reserved(struct programs *programs, size_t worker, struct proto_reader *reader);
void programs_worker_ready(struct programs *programs, size_t worker);

/* At start, before a child runs: removes work folders, and folders of runs without a row. */
void programs_sweep(const char *root, struct queue *queue);

#endif
