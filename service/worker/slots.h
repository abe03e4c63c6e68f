/*
 * slots.h - the threads of a worker that run one job each at a time, and their queue.
 *
 * All calls must be made from one thread, the worker's loop. Any thread may call `wake` when
 * slots_next_event() has an event.
 */
#ifndef NOCTULE_SERVICE_WORKER_SLOTS_H
#define NOCTULE_SERVICE_WORKER_SLOTS_H

#include "service/pipeline/pipeline.h"

struct slots;

struct slots_options {
    const char *device; /* "cpu", or the UUID of a GPU */
    int threads;        /* of a job that runs alone; 0: one per processor */
    int64_t max_bytes;  /* memory limit of each slot; 0: the machine's memory */
    int count;
    int64_t keep_bytes;  /* pinned memory that each slot takes at its start and keeps; 0: not used */
    double rest_seconds; /* without a job, after which a slot frees the memory beyond keep_bytes */
    void (*wake)(void *context);
    void *context;
};

/* Opens the device, and a thread per slot. Returns 0, or -errno with `error` set. */
int slots_open(const struct slots_options *options, struct slots **slots, struct error *error);
const char *slots_description(const struct slots *slots);

/*
 * Returns whether the device failed during a job, which has COMPUTE_DEVICE_LOST. Other running jobs
 * continue to their end. No job starts any more, and queued and new ones are returned.
 */
bool slots_device_lost(struct slots *slots);

/* Queues a job. A slot reads its spec from `file` when it takes the job. Returns 0 or -ENOMEM. */
int slots_run(struct slots *slots, int64_t job, const char *file);
/* Ends a job as soon as possible. It gets its SLOTS_DONE like any other. */
void slots_stop(struct slots *slots, int64_t job);
/* Returns all queued jobs: each gets a SLOTS_DONE with STOPPED. */
void slots_return_queued(struct slots *slots);
/* Returns whether no job is running, queued, or ended without its event taken. */
bool slots_idle(struct slots *slots);

/*
 * Makes all slots leave `bytes` of GPU memory to all other programs; 0: no memory. Slots without a job free memory now,
 * the others at the end of their job. Results in one SLOTS_RESERVED, once that much is free, or can never be. A call
 * before that replaces the last one.
 */
void slots_leave(struct slots *slots, int64_t token, int64_t bytes);

enum slots_event_kind { SLOTS_PROGRESS, SLOTS_DONE, SLOTS_RESERVED };

struct slots_event {
    enum slots_event_kind kind;
    int64_t job;
    const char *stage; /* SLOTS_PROGRESS only; static string */
    double fraction;
    struct pipeline_report report; /* SLOTS_DONE only; the caller must clear it */
    /* SLOTS_RESERVED only: free memory of the GPU, including that of the slots */
    int64_t token, free_bytes;
    bool enough;
};

/* Takes the next event; returns false without one. Progress is reported at the start of a
 * stage, then at most five times per second and job, and never after SLOTS_DONE. */
bool slots_next_event(struct slots *slots, struct slots_event *event);

/* Stops all jobs, waits for the threads, closes the device. NULL is allowed. */
void slots_close(struct slots *slots);

#endif
