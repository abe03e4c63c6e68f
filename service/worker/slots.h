/*
 * slots.h - the threads of a worker that run jobs, one at a time each, and the queue before them.
 *
 * All calls below are made by one thread, the worker's loop; `wake` is called by any thread when
 * there is something for slots_next_event.
 */
#ifndef NOCTULE_SERVICE_WORKER_SLOTS_H
#define NOCTULE_SERVICE_WORKER_SLOTS_H

#include "service/pipeline/pipeline.h"

struct slots;

struct slots_options {
    const char *device; /* "cpu", or the UUID of a GPU */
    int threads;        /* of a job that runs alone; 0: one a processor */
    int64_t most_bytes; /* of memory that each may take; 0: what there is */
    int count;
    int64_t
        keep_bytes; /* of memory that each takes at its start, beside all else, and keeps; 0: none */
    double
        rest_seconds; /* without a job, until a slot gives back what its largest took beyond that */
    void (*wake)(void *context);
    void *context;
};

/* Opens the device, a slot and a thread for each. 0 or -errno with the error filled. */
int slots_open(const struct slots_options *options, struct slots **slots, struct error *error);
const char *slots_description(const struct slots *slots);

/*
 * The device has failed under a job, which says so (COMPUTE_DEVICE_LOST): what other slots run goes
 * on to its end, nothing new begins, and what waits or comes is given back.
 */
bool slots_lost(struct slots *slots);

/* Queues a job: its spec is read from `file` when a slot takes it. 0 or -ENOMEM. */
int slots_run(struct slots *slots, int64_t job, const char *file);
/* Ends a job as soon as it can be ended; it gets its SLOTS_DONE like any other. */
void slots_stop(struct slots *slots, int64_t job);
/* Gives back all jobs that no slot has begun: each gets a SLOTS_DONE with STOPPED. */
void slots_give_back(struct slots *slots);
/* No job is running, queued, or waiting to be told of. */
bool slots_idle(struct slots *slots);

enum slots_event_kind { SLOTS_PROGRESS, SLOTS_DONE };

struct slots_event {
    enum slots_event_kind kind;
    int64_t job;
    const char *stage; /* SLOTS_PROGRESS; static text */
    double fraction;
    struct pipeline_report report; /* SLOTS_DONE; the caller clears it */
};

/* The next thing to tell of; false when there is none. Progress comes when a stage begins, then
 * at most five times a second and job, and never after its DONE. */
bool slots_next_event(struct slots *slots, struct slots_event *event);

/* Stops every job, waits for the threads, closes the device. NULL is allowed. */
void slots_close(struct slots *slots);

#endif
