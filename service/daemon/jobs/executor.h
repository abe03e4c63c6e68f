/*
 * executor.h - where jobs run. jobs.c knows which are READY, makes their attempts and records how
 * they ended; an executor has the places in which they run, and hears how they do.
 *
 *     takes    may jobs of this pipeline run here?
 *     room     how many of the foremost jobs it wants to choose from
 *     pick     which of these it takes now, and where
 *              - the attempts are committed as RUNNING, each in its place -
 *     start    run it
 *     stop     it is not wanted any more: cancelled, and is to end soon; or the daemon stops
 *     tick     now and then: deadlines
 *     ended    of each attempt that was started, once: the executor calls job_attempt_end
 *
 * local_executor.c runs jobs in the workers of this machine. They do not outlive the daemon, so
 * queue_recover takes all that are RUNNING at its start back. cluster/ hands them to Slurm, where they
 * do: it takes them over at the start (cluster_adopt). Executors are asked in the order in which jobs_open
 * was given them, the local one first.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_EXECUTOR_H
#define NOCTULE_SERVICE_DAEMON_JOBS_EXECUTOR_H

#include "service/daemon/jobs/job_attempt.h"
#include "service/daemon/jobs/scheduler.h"

#define EXECUTOR_MAX_JOBS  64 /* to choose from here, where those that fit are not the foremost */
#define EXECUTOR_COUNT     2
#define EXECUTOR_MAX_PICKS SCHED_MAX_SLOTS

struct executor {
    const struct executor_ops *ops;
    const char *name; /* "local": in the rows of its jobs */
    bool outlives;    /* what runs there runs on when the daemon ends */
    struct core *core;
    struct attempts *attempts; /* of all jobs; set by jobs_open */
};

struct executor_pick {
    size_t job; /* its index */
    struct job_place place;
};

struct executor_ops {
    bool (*takes)(const struct executor *executor, const struct conf_pipeline *pipeline);
    size_t (*room)(const struct executor *executor); /* how many could start now, if all fit */
    /*
     * Jobs, at most as many as room said or EXECUTOR_MAX_JOBS, are in the order in which they should run;
     * those with a not_before_ms wait for that time. Fills picks (room for EXECUTOR_MAX_PICKS) and
     * returns how many. Where room said less than EXECUTOR_MAX_JOBS, it may be asked again with more of
     * them, before any is started.
     */
    size_t (*pick)(struct executor *executor, const struct queue_job *jobs, size_t count,
                   struct executor_pick *picks);
    /* 0, or -errno: it is not run. */
    int (*start)(struct executor *executor, struct job_attempt *attempt);
    void (*stop)(struct executor *executor, struct job_attempt *attempt);
    void (*tick)(struct executor *executor);
};

#endif
