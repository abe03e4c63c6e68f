/*
 * executor.h - where jobs run. jobs.c knows which are READY, makes their attempts and records how
 * they ended; an executor has the places in which they run, and hears how they do.
 *
 *     room     may it take a job now?
 *     pick     which of these it takes now, and where
 *              - the attempts are committed as RUNNING, each in its place -
 *     start    run it
 *     stop     it is not wanted any more (cancelled, or the daemon stops), and is to end soon
 *     tick     now and then: deadlines
 *     ended    of each attempt that was started, once: the executor calls job_attempt_end
 *
 * The one there is runs jobs in the workers of this machine: local_executor.c. They do not outlive
 * the daemon, so queue_recover takes all that are RUNNING at its start back; an executor whose jobs
 * do will have to be asked there.
 */
#ifndef NOCTULE_EXECUTOR_H
#define NOCTULE_EXECUTOR_H

#include "service/daemon/jobs/job_attempt.h"
#include "service/daemon/jobs/scheduler.h"

#define EXECUTOR_MAX_JOBS  64 /* to choose from: more than slots, so that alone ones show */
#define EXECUTOR_MAX_PICKS SCHED_MAX_SLOTS

struct executor {
    const struct executor_ops *ops;
    struct core *core;
    struct attempts *attempts; /* of all jobs; set by jobs_open */
};

struct executor_pick {
    size_t job; /* its index */
    struct job_place place;
};

struct executor_ops {
    bool (*room)(const struct executor *executor);
    /*
     * Jobs, at most EXECUTOR_MAX_JOBS, are in the order in which they should run; those with a
     * not_before_ms wait for that time. Fills picks (room for EXECUTOR_MAX_PICKS) and returns how
     * many.
     */
    size_t (*pick)(struct executor *executor, const struct queue_job *jobs, size_t count,
                   struct executor_pick *picks);
    /* 0, or -errno: it is not run. */
    int (*start)(struct executor *executor, struct job_attempt *attempt);
    void (*stop)(struct executor *executor, struct job_attempt *attempt);
    void (*tick)(struct executor *executor);
};

#endif
