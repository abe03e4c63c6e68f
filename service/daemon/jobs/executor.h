/*
 * executor.h - the interface of job executors. jobs.c knows the READY jobs, creates their attempts and records their
 * outcomes. An executor provides the slots in which jobs run, and receives their reports.
 *
 *     takes    returns whether jobs of this pipeline may run here
 *     room     returns how many of the first jobs it wants to choose from
 *     pick     chooses jobs to start now, and their slots
 *              - the attempts are committed as RUNNING, each in its slot -
 *     start    runs the job
 *     stop     ends a job soon: it was cancelled, or the daemon stops
 *     tick     checks deadlines, now and then
 *     ended    the executor must call job_attempt_end() once for each started attempt
 *
 * local_executor.c runs jobs in the workers of this machine. Workers end with the daemon, so queue_recover() returns
 * all jobs that are RUNNING at its start. slurm/ submits jobs to Slurm, where they outlive the daemon:
 * slurm_executor_adopt() takes them over at the start. jobs.c calls the executors in the order given to jobs_open(),
 * the local one first.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_JOBS_EXECUTOR_H

#include "service/daemon/jobs/job_attempt.h"
#include "service/daemon/jobs/scheduler.h"

#define EXECUTOR_MAX_JOBS  64 /* choices offered if the first jobs do not fit */
#define EXECUTOR_COUNT     2
#define EXECUTOR_MAX_PICKS SCHED_MAX_SLOTS

struct executor {
    const struct executor_ops *ops;
    const char *name; /* "local": stored in the rows of its jobs */
    bool outlives;    /* its jobs continue when the daemon ends */
    struct core *core;
    struct attempts *attempts; /* of all jobs; set by jobs_open() */
};

struct executor_pick {
    size_t job; /* index */
    struct job_place place;
};

struct executor_ops {
    bool (*takes)(const struct executor *executor, const struct conf_pipeline *pipeline);
    /* number of jobs that could start now, if all fit */
    size_t (*room)(const struct executor *executor);
    /* Fills picks (room for EXECUTOR_MAX_PICKS) and returns their number. `jobs` are in the order in which they should
     * run, at most as many as room() returned or EXECUTOR_MAX_JOBS; those with a not_before_ms wait for that time. If
     * room() returned less than EXECUTOR_MAX_JOBS, it may be called again with more jobs before any is started. */
    size_t (*pick)(struct executor *executor, const struct queue_job *jobs, size_t count, struct executor_pick *picks);
    /* Returns 0, or -errno if the job does not run. */
    int (*start)(struct executor *executor, struct job_attempt *attempt);
    void (*stop)(struct executor *executor, struct job_attempt *attempt);
    void (*tick)(struct executor *executor);
};

/* ------------------------------------------------------------------------ local_executor.c ---- */

/*
 * Runs jobs in the workers of this machine. A worker has slots, and each slot runs one job at a time. Handles the
 * workers' reports about jobs, and their deaths.
 */

struct local_executor;

int local_executor_open(struct core *core, struct local_executor **local);
/* NULL is allowed. */
void local_executor_close(struct local_executor *local);

/* Returns the executor's interface for jobs.c. */
struct executor *local_executor_base(struct local_executor *local);

/* Events of a worker, by its number in workers.h. An unknown or invalid frame sets the reader's error. */
void local_executor_worker_ready(struct local_executor *local, size_t worker);
void local_executor_worker_gone(struct local_executor *local, size_t worker, const struct pool_gone *gone);
void local_executor_frame(struct local_executor *local, size_t worker, struct proto_reader *reader);

#endif
