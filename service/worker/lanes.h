/*
 * lanes.h - the threads of a worker that run jobs, one at a time each, and the queue before them.
 *
 * All calls below are made by one thread, the worker's loop; `wake` is called by any thread when
 * there is something for lanes_next_event.
 */
#ifndef NOCTULE_LANES_H
#define NOCTULE_LANES_H

#include "service/pipeline/pipeline.h"

struct lanes;

struct lanes_options {
    const char *device; /* "cpu", or the UUID of a GPU */
    int threads;        /* of each job; 0: one a processor */
    int count;
    void (*wake)(void *context);
    void *context;
};

/* Opens the device, a lane and a thread for each. 0 or -errno with the error filled. */
int lanes_open(const struct lanes_options *options, struct lanes **lanes, struct error *error);
const char *lanes_description(const struct lanes *lanes);

/*
 * The device has failed under a job, which says so (COMPUTE_DEVICE_LOST): what other lanes run goes
 * on to its end, nothing new begins, and what waits or comes is given back.
 */
bool lanes_lost(struct lanes *lanes);

/* Queues a job: its spec is read from `file` when a lane takes it. 0 or -ENOMEM. */
int lanes_run(struct lanes *lanes, int64_t job, const char *file);
/* Ends a job as soon as it can be ended; it gets its LANES_DONE like any other. */
void lanes_stop(struct lanes *lanes, int64_t job);
/* Gives back all jobs that no lane has begun: each gets a LANES_DONE with STOPPED. */
void lanes_give_back(struct lanes *lanes);
/* No job is running, queued, or waiting to be told of. */
bool lanes_idle(struct lanes *lanes);

enum lanes_event_kind { LANES_PROGRESS, LANES_DONE };

struct lanes_event {
    enum lanes_event_kind kind;
    int64_t job;
    const char *stage; /* LANES_PROGRESS; static text */
    double fraction;
    struct pipeline_report report; /* LANES_DONE; the caller clears it */
};

/* The next thing to tell of; false when there is none. Progress comes at most five times a second
 * and job, and never after its DONE. */
bool lanes_next_event(struct lanes *lanes, struct lanes_event *event);

/* Stops every job, waits for the threads, closes the device. NULL is allowed. */
void lanes_close(struct lanes *lanes);

#endif
