/*
 * job_attempt.h - one run of a job: the worker's reports, and the state that they lead to.
 *
 *     ended as       recorded as
 *     DONE           DONE with its results and features
 *     EMPTY          EMPTY with its features
 *     REVIEW         REVIEW with its results and features, and no deliveries
 *     RETRY          DELAYED, after the last attempt FAILED
 *     REJECTED       FAILED
 *     CRASHED        DELAYED and alone from now on, after the last attempt FAILED
 *     RETURNED       READY, the attempt not counted
 *     CANCELLED      not recorded: the row is CANCELLED already; the output is removed
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

#define JOB_STAGE 16 /* room for a stage's name */

/* The place in which a job runs. No two RUNNING jobs may have the same name and slot. */
struct job_place {
    char name[24]; /* of the worker, stored in the job's row: "worker-0" */
    size_t worker;
    int32_t slot;
    char nonce[33]; /* of an attempt on another machine; "" here */
};

struct executor;
struct slurm_task;

struct job_attempt {
    struct attempt base; /* its id is the job's */
    int32_t number;      /* of attempts, including this one */
    struct executor *executor;
    /* Called when the outcome is on disk; may be NULL. */
    void (*recorded)(const struct job_attempt *attempt);
    struct job_place place;
    bool alone;
    bool started;                  /* by its executor */
    bool cancelled;                /* already recorded as cancelled: its report is ignored */
    double deadline_seconds;       /* of its pipeline; 0: jobs.deadline_seconds applies */
    bool overdue;                  /* past its deadline, STOP_JOB was sent */
    uint64_t deadline_at, stop_at; /* in the loop's clock; stop_at 0: STOP_JOB was not sent */
    char stage[JOB_STAGE];         /* current stage; "": not reported yet */
    int64_t stage_ms;              /* its start, Unix time */
    bool stage_noted;              /* stored in the row, or in the open batch */
    /* Slurm only, owned by slurm/: the task, or NULL. */
    struct slurm_task *task;
    struct job_attempt *next_of_task;
    bool collecting;        /* the Slurm role checks for its end and may be filling its output folder */
    uint64_t requested_at;  /* time of that check, in the loop's clock */
    int64_t requested_poll; /* poll after which it was sent */
    enum job_end end;
    /* Whether the job fails if all attempts are used up. False for a job that another job may have crashed: it gets one
     * more attempt, alone. */
    bool last_chance;
    enum code code;
    const char *message, *file_a, *file_b; /* the reason; "": no reason */
    char own_message[256];
    struct queue_figures figures;
    struct queue_result *results;
    size_t result_count;
    /* As received, frame by frame; used if the job ends as DONE, EMPTY or REVIEW. */
    struct feature *features;
    size_t feature_count;
    struct queue_histogram *histograms;
    size_t histogram_count;
    struct queue_segment *segments;
    size_t segment_count;
    struct queue_breach *breaches;
    size_t breach_count;
    size_t measurement_bytes; /* of their frames */
    bool out_of_memory;       /* a measurement was lost */
    struct job_frame *frames; /* frames of the worker, and paths: they hold all strings above */
};

extern const struct attempt_type job_attempt_type;

/* Creates the attempt of a job that is being started. NULL: no memory. */
struct job_attempt *job_attempt_new(struct attempts *attempts, int64_t job, int32_t number);

/* Keeps the reported stage, for jobs_tick() to store. Returns 0, or -EBADMSG for an impossible name. */
int job_attempt_on_progress(struct job_attempt *attempt, const struct message_progress *message);

/* Fills the attempt from a DONE message. Returns 0 and the outcome, which is RETRY if there is no memory, or -EBADMSG
 * for impossible values. */
int job_attempt_on_done(struct job_attempt *attempt, struct proto_reader *reader, struct message_done *message,
                        enum job_end *end);
/* Keeps a measurement (message_is_measurement) until the job has ended: recorded with DONE, EMPTY and REVIEW, dropped
 * otherwise. Returns 0, or -EBADMSG if it is of another job (or `attempt` is NULL), impossible or one too many. If
 * there is no memory, DONE ends the job as RETRY later. */
int job_attempt_read_measurements(struct job_attempt *attempt, struct proto_reader *reader, union message_any *message);
/* Sets the code and message that the daemon found itself. */
void job_attempt_set_reason(struct job_attempt *attempt, enum code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns the deadline of the job's pipeline, or jobs.deadline_seconds. */
double job_attempt_deadline(const struct job_attempt *attempt);
/* Returns the job as if it had not begun. */
void job_attempt_return(struct job_attempt *attempt, const char *why);

/* Frees the report that was read: the report is repeated, or not needed. */
void job_attempt_clear_report(struct job_attempt *attempt);

/* Ends the attempt with this outcome: see attempt.h. */
void job_attempt_end(struct job_attempt *attempt, enum job_end end, bool last_chance);

#endif
