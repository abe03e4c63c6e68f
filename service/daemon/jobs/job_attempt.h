/*
 * job_attempt.h - one run of a job: what the worker tells of it, and what becomes of the job.
 *
 *     ended as       recorded as
 *     DONE           DONE with its results and features
 *     EMPTY          EMPTY with its features
 *     REVIEW         REVIEW with its results and features, and no deliveries
 *     RETRY          DELAYED, after the last attempt FAILED
 *     REJECTED       FAILED
 *     CRASHED        DELAYED and alone from now on, after the last attempt FAILED
 *     RETURNED       READY, the attempt not counted
 *     CANCELLED      nothing: the row says so already; the output is removed
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOB_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOB_ATTEMPT_H

#include "service/common/wire/messages.h"
#include "service/daemon/attempt.h"

enum job_end {
    JOB_END_DONE,
    JOB_END_EMPTY,
    JOB_END_REVIEW,
    JOB_END_RETRY,
    JOB_END_REJECTED,
    JOB_END_CRASHED,
    JOB_END_RETURNED,
    JOB_END_CANCELLED,
};

#define JOB_STAGE 16 /* room for the name of a stage */

/* Where a job runs; no two that are RUNNING have the same name and slot. */
struct job_place {
    char name[24]; /* of the worker, in the job's row: "worker-0" */
    size_t worker;
    int32_t slot;
    char nonce[33]; /* of an attempt on another machine; "" */
};

struct executor;
struct cluster_task;

struct job_attempt {
    struct attempt base; /* its id is the job's */
    int32_t number;      /* of attempts, this one counted */
    struct executor *executor;
    void (*recorded)(
        const struct job_attempt *attempt); /* how it ended is on disk; NULL: nobody asks */
    struct job_place place;
    bool alone;
    bool started;                  /* by its executor */
    bool cancelled;                /* recorded so already: what is told of it does not matter */
    double deadline_seconds;       /* of its pipeline; 0: jobs.deadline_seconds */
    bool overdue;                  /* and told to stop */
    uint64_t deadline_at, stop_at; /* of the loop's clock; stop_at 0: not told to stop */
    char stage[JOB_STAGE];         /* that its worker is at; "": it has not told yet */
    int64_t stage_ms;              /* since when, Unix time */
    bool stage_noted;              /* its row says so, or will with the batch */
    /* Of one in Slurm, and cluster/'s: NULL, or its task. */
    struct cluster_task *task;
    struct job_attempt *next_of_task;
    bool
        collecting; /* it was asked whether it has ended: its output folder is being filled, perhaps */
    uint64_t asked_at;  /* of the loop's clock */
    int64_t asked_poll; /* after which of the polls */
    enum job_end end;
    /* With all attempts used up it fails; false for a job that may have died of another's fault,
     * which gets one more attempt, alone. */
    bool last_chance;
    enum code code;
    const char *message, *file_a, *file_b; /* why; "": nothing to say */
    char own_message[256];
    struct queue_figures figures;
    struct queue_result *results;
    size_t result_count;
    /* As they came, frame by frame; they count when it ends as DONE, EMPTY or REVIEW. */
    struct feature *features;
    size_t feature_count;
    struct queue_histogram *histograms;
    size_t histogram_count;
    struct queue_segment *segments;
    size_t segment_count;
    struct queue_breach *breaches;
    size_t breach_count;
    size_t measurement_bytes; /* of their frames */
    bool out_of_memory;       /* for some of them */
    struct job_frame *frames; /* of the worker, and paths: all strings above point into them */
};

extern const struct attempt_type job_attempt_type;

/* For a job that is being started; NULL: no memory. */
struct job_attempt *job_attempt_new(struct attempts *attempts, int64_t job, int32_t number);

/* What it is at, for its row to say (jobs_tick). 0, or -EBADMSG: that is no stage's name. */
int job_attempt_hear_progress(struct job_attempt *attempt, const struct message_progress *told);

/*
 * Fills the attempt from a DONE that was read: 0 and how it ended, -EBADMSG for what cannot be,
 * -ENOMEM.
 */
int job_attempt_read_done(struct job_attempt *attempt, struct proto_reader *reader,
                          struct message_done *told, enum job_end *end);
/* The same, but for want of memory it ends as RETRY: 0 or -EBADMSG. */
int job_attempt_hear_done(struct job_attempt *attempt, struct proto_reader *reader,
                          struct message_done *told, enum job_end *end);
/*
 * Keeps a measurement (message_is_measurement) that was read until the job has ended: recorded with DONE,
 * EMPTY and REVIEW, dropped otherwise. Returns 0, or -EBADMSG if it is of another job (or `attempt` is NULL),
 * impossible or one too many. If there is no memory, job_attempt_read_done returns -ENOMEM.
 */
int job_attempt_read_measurements(struct job_attempt *attempt, struct proto_reader *reader,
                                  union message_any *told);
/* The daemon's own word for it instead. */
void job_attempt_blame(struct job_attempt *attempt, enum code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* It goes back as if it had not been begun. */
void job_attempt_return(struct job_attempt *attempt, const char *why);

/* What was read of it is freed: it is told from the beginning, or not any more. */
void job_attempt_forget_report(struct job_attempt *attempt);

/* It ended so, as far as the daemon is concerned: see attempt.h. */
void job_attempt_end(struct job_attempt *attempt, enum job_end end, bool last_chance);

#endif
