/*
 * program_plan.h - the runs of programs that jobs need: finds them, makes them, ties jobs to them. Loop thread only; calls
 * change the queue in the open batch. They return 0 or -errno.
 *
 * A job that is tied to a DONE run keeps its mask, even if the program has changed since: a retry repeats the job only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_PLAN_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_PLAN_H

#include "db/program_rows.h"
#include "service/common/jobs/job_file.h"
#include "service/daemon/core.h"

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

/*
 * Jobs that run on other machines only (Slurm) make their masks themselves: they wait for no READY run, and programs_masks()
 * gives them masks without a path. Marks these runs as RUNNING there. Must follow the job's start. Returns 0 or -errno.
 */
int programs_carry(struct core *core, int64_t job_id);

/* Plans the runs of waiting jobs again that lack one of this program; NULL: of all waiting jobs. */
int programs_plan_waiting(struct core *core, const char *program);
/* Cancels a run that must not take place as planned, and plans again for the jobs that wait for it. */
int programs_replan(struct core *core, int64_t run_id, const char *program, const char *why);

#endif
