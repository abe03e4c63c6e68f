/* jobs.h - jobs: passes READY jobs to the executors, records the outcomes, adds jobs on request. */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOBS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOBS_H

#include "service/common/routing/routing_result.h"
#include "service/common/wire/messages.h"
#include "service/daemon/core.h"
#include "service/daemon/jobs/awaited.h"
#include "service/daemon/jobs/executor.h"

#include <stdint.h>

/* Opens the jobs. The caller owns the executors and the array, and must close the executors after the jobs. */
int jobs_open(struct core *core, struct executor *const executors[EXECUTOR_COUNT], struct jobs **jobs);
/* NULL is allowed. */
void jobs_close(struct jobs *jobs);

/* Records finished jobs, and starts jobs when core->jobs_due. Must be called before a commit. */
void jobs_before_commit(struct jobs *jobs);
/* Checks deadlines and stops, and stores the stages of running jobs. Must be called each second. */
void jobs_tick(struct jobs *jobs);

/* Stops a job that was CANCELLED in the open batch, once that is committed. */
void jobs_stop(struct jobs *jobs, int64_t job);
/* Stops several jobs and frees the list. */
void jobs_stop_superseded(struct jobs *jobs, struct queue_ids *ids);
/* Stops all running jobs. They return to the queue. */
void jobs_stop_all(struct jobs *jobs);

size_t jobs_running(const struct jobs *jobs);
/* Returns the number of jobs that the daemon must wait for: running here, or ended but not recorded. */
size_t jobs_unrecorded(const struct jobs *jobs);

/* -------------------------------------------------------------------------- job_windows.c ---- */

/* Updates them now, in the open transaction or in one of its own. Returns 0 or -errno. */
int windows_set(struct core *core);
/* Updates them if due. Must be called each second, and after windows_due_ms was set to 0. */
void windows_tick(struct core *core);

/* Returns the deadline of the pipeline's jobs for a series that is complete now; 0: no deadline. */
int64_t windows_deadline(const struct conf_pipeline *pipeline, int64_t now_ms);

/* ------------------------------------------------------------------------------- submit.c ---- */

/* Adds the jobs in the open batch. Returns 0, or -errno if the request was rejected. *body lists one line per job,
 * gives the reason of the rejection, or is a JSON object. The caller must free it. NULL if the database cannot be
 * written (core_is_transient). */
int submit_series(struct core *core, const struct message_submit *submit, const char *by, char **body);

/* --------------------------------------------------------------------------- routing_job.c ---- */

/* Jobs of a routing result (service/common/routing/routing_result.h). */

/* One job to add. */
struct routing_job {
    const char *stack;
    const struct rules_pick *pick;
    bool again, dry_run; /* as in queue_new_job */
    const char *asked;   /* as in queue_new_job */
    int64_t id;          /* of the new job, or with -EEXIST of the existing one */
    /* The missing inputs of a new job, as code and text; "": it can start. */
    enum code lacks_code;
    char lacks[AWAITED_TEXT];
};

/* Adds a job in the open batch, as queue_add_job() does, and stops superseded jobs. */
int routing_add_job(struct core *core, const struct queue_series *series, struct routing_job *job);

/* --------------------------------------------------------------------------- corrections.c ---- */

/*
 * Corrected masks: a SEG or RTSTRUCT whose regions have names of segments of a result under review.
 *
 * A job measures these masks in place of those of the result, and ends under review. The result stays under review: a
 * rejection of the correction returns to it, and an acceptance supersedes it.
 */

/*
 * Handles a new annotation object. `regions` has the names of its regions, a line each. `only` is the job for which a
 * person uploaded it, or 0; the audit has a row for any other. Sets *is_correction if a job measures its masks. An object
 * that cannot be used makes an event CORRECTION_REFUSED. An object that a pipeline of its series reads is input, not a
 * correction, unless it refers to a result. Returns 0 or -errno.
 */
int corrections_object_arrived(struct core *core, int64_t object_id, const struct queue_object *object,
                               const char *regions, int64_t only, bool *is_correction);

/* Checks whether an object that is not stored would be measured for the job, and changes nothing. Returns 0, -EINVAL with
 * a code and a message, or another -errno. */
int corrections_try(struct core *core, const struct queue_object *object, const char *regions, int64_t job,
                    struct error *refusal);

#endif
