/*
 * programs.h - runs of the site's programs: makes them for the jobs that need their masks, chooses the process and the GPU,
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
void programs_close(struct programs *programs);
/* Applies the configuration in force. */
void programs_reload(struct programs *programs);

/* The stack of a job that exists or is being added. */
struct programs_subject {
    int64_t series_id;
    int32_t revision;
    const char *stack;
};

/*
 * Finds what a job of this pipeline lacks of its programs. Makes their runs unless `dry`. Sets *code to CODE_NONE if all
 * masks are there or the pipeline names no program; to PROGRAM_WAITING with a text for the job; or to the code with which a
 * run has failed. `runs` receives the ids of the runs, for queue_tie_run() once the job has an id.
 */
int programs_need(struct core *core, const struct programs_subject *subject, const struct conf_pipeline *pipeline,
                  bool dry, enum code *code, char text[256], struct queue_ids *runs);

/*
 * Finds the masks for the file of a job that is about to start. Returns -ENODATA if one is missing: then the job is DELAYED,
 * or has failed. The caller must free the masks with job_masks_free().
 */
int programs_masks(struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline,
                   struct job_mask **masks, size_t *count);
void job_masks_free(struct job_mask *masks, size_t count);

/* noctule retry --program: runs the programs of a job again. The caller then retries the job. */
int programs_again(struct core *core, int64_t job_id, const char *by);

/* Starts runs while processes and GPUs are free, and records those that ended. Called before each commit. */
void programs_before_commit(struct programs *programs);
/* Called each second: limits of waiting, runs to stop, processes that do not respond. */
void programs_tick(struct programs *programs);

/* Returns whether the slot of the pool belongs to a program process. */
bool programs_owns(const struct programs *programs, int slot);
void programs_frame(struct programs *programs, int slot, struct proto_reader *reader);
void programs_gone(struct programs *programs, int slot, const struct pool_gone *gone);
/* A RESERVED of a worker. */
void programs_reserved(struct programs *programs, size_t worker, struct proto_reader *reader);

/* At start, before a child runs: removes work folders, and folders of runs without a row. */
void programs_sweep(const char *root, struct queue *queue);

#endif
