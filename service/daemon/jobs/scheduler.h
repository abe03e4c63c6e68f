/*
 * scheduler.h - selects the next jobs and their slots. Pure: no I/O, no clock.
 *
 * Jobs come in the order in which they should run and go to the workers with the fewest busy slots. A job that must run
 * alone (it was running when a worker crashed) waits for an empty worker. That worker accepts no other job until then,
 * so that a full queue cannot starve it. A job that failed in a worker runs in another one, and waits for it, if there
 * is one.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_SCHEDULER_H
#define NOCTULE_SERVICE_DAEMON_JOBS_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched_job {
    int64_t id;
    int64_t not_before_ms; /* 0: now */
    bool alone;
    int avoid; /* number of the worker it failed in; -1: not failed */
};

struct sched_slot {
    int worker;
    bool usable; /* its worker is ready and may get jobs */
    int64_t job; /* 0: idle */
    bool alone;  /* its job must have no neighbour */
};

struct sched_assignment {
    size_t job, slot; /* indices */
};

/* Fills assignments (room for slot_count) and returns their number. closed: no job may start (drain, disk low). */
size_t sched_pick(const struct sched_job *jobs, size_t job_count, const struct sched_slot *slots, size_t slot_count,
                  bool closed, int64_t now_ms, struct sched_assignment *assignments);

#define SCHED_MAX_SLOTS 256

#endif
