/*
 * scheduler.h - which job runs next, and where? Pure: no I/O, no clock.
 *
 * Jobs come in the order in which they should run and are given to the workers with the fewest
 * busy slots. A job that must run alone (it was there when a worker crashed) waits for an empty
 * worker; that worker takes nothing else until then, so that a busy night cannot starve it. A job
 * that has failed in a worker runs elsewhere, and waits for it, as long as there is an elsewhere.
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
    int avoid; /* the worker that it failed in; -1: none */
};

struct sched_slot {
    int worker;
    bool usable; /* its worker is up and may be given work */
    int64_t job; /* 0: idle */
    bool alone;  /* the job it runs must have no other beside it */
};

struct sched_assignment {
    size_t job, slot; /* indices */
};

/*
 * Fills assignments (room for slot_count) and returns how many. closed: nothing may start (drain,
 * disk low).
 */
size_t sched_pick(const struct sched_job *jobs, size_t job_count, const struct sched_slot *slots,
                  size_t slot_count, bool closed, int64_t now_ms,
                  struct sched_assignment *assignments);

#define SCHED_MAX_SLOTS 256

#endif
