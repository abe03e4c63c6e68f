/*
 * program_rows.h - runs of the site's programs and the masks that jobs take from them. Errors, times and threads: see
 * queue.h.
 *
 *               need                 start, attempts + 1            finish
 *    (no row) ---------> READY ----------------------------> RUNNING ---------> DONE     waiting jobs: DELAYED -> READY
 *                        ^ ^ <------ return, attempts - 1 --- | | |
 *                        | | <------ recover (restart) -------+ | +---fail---> FAILED   waiting jobs: DELAYED -> FAILED
 *                        | +--due-- DELAYED <---- delay --------+
 *                        +--need of a retry--- FAILED, CANCELLED
 *     READY, DELAYED, RUNNING ---cancel (no job waits any more)---> CANCELLED
 *     DONE ---again (noctule retry --program)---> a new READY run, which supersedes it
 *
 * A run is one execution for a stack: (series, revision, stack, program, grid, identity). Jobs of several pipelines share
 * it. A job waits in DELAYED with PROGRAM_WAITING. `finish` and `fail` change the run and its jobs in one transaction.
 */
#ifndef NOCTULE_DB_PROGRAM_ROWS_H
#define NOCTULE_DB_PROGRAM_ROWS_H

#include "db/queue.h"

/* The result of the last check of a program of the configuration. */
struct queue_program {
    const char *name;
    const char *identity; /* of its options, its file and its weights (SHA-256); "": unknown */
    const char *program_sha256, *weights_sha256;
    const char *sandbox; /* "bubblewrap", "own", "weak", "container"; "": no sandbox is possible */
    const char *message;
    int64_t weights_bytes;
    enum code code; /* CODE_NONE: it can run */
};

/* Replaces the rows of all programs. Adds the daemon's events PROGRAM_READY and PROGRAM_BROKEN if a code changed. */
int queue_set_programs(struct queue *queue, const struct queue_program *programs, size_t count, int64_t now_ms);

enum queue_run_state {
    QUEUE_RUN_READY,
    QUEUE_RUN_RUNNING,
    QUEUE_RUN_DELAYED,
    QUEUE_RUN_DONE,
    QUEUE_RUN_FAILED,
    QUEUE_RUN_CANCELLED
};

struct queue_run {
    int64_t id, series_id;
    int32_t revision, attempts;
    char *series_uid, *stack;
    char *program;  /* name */
    char *settings; /* conf_program_to_text */
    char *pipeline; /* conf_pipeline_to_text: its options for stack and grid apply */
    char *grid, *identity;
    char *path;   /* of its folder with the mask, relative to the root; "": no mask, or it is superseded or removed */
    char *sha256; /* of the mask */
    char *ran_as; /* "", "shared", "whole", "cpu": of the next or last attempt */
    char *message;
    enum queue_run_state state;
    enum code code;
    int64_t not_before_ms;
    int32_t slot;    /* of a RUNNING one on this machine */
    int64_t carrier; /* the job in Slurm that runs it; 0: unset */
};

void queue_run_clear(struct queue_run *run);
/* Frees an array of runs with its elements. */
void queue_runs_free(struct queue_run *runs, size_t count);

/* The output of a program that a job needs. */
struct queue_need {
    int64_t series_id;
    int32_t revision;
    const char *stack, *program;
    const char *settings, *pipeline; /* as in struct queue_run */
    const char *grid;                /* conf_grid_text */
    const char *identity;            /* of the program; must be known */
};

/* Finds the current run for the need, and adds a READY one if it does not exist. revive: sets a FAILED or CANCELLED one to
 * READY with 0 attempts (a CANCELLED one always). Cleared by queue_run_clear(). */
int queue_need_run(struct queue *queue, const struct queue_need *need, bool revive, int64_t now_ms,
                   struct queue_run *run);
/* Ties a job to the run of one of its programs, in place of another one, which is released. A CANCELLED run becomes READY:
 * the job that has just been added may have superseded the last one that needed it. */
int queue_tie_run(struct queue *queue, int64_t job_id, int64_t run_id, int64_t now_ms);
/* Finds the runs of a job, by the name of the program. The caller must free them with queue_runs_free(). */
int queue_job_runs(struct queue *queue, int64_t job_id, struct queue_run **runs, size_t *count);
/* READY -> DELAYED with PROGRAM_WAITING, without a limit of time. */
int queue_job_awaits_programs(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms);
/* DELAYED with PROGRAM_WAITING -> FAILED: its run has failed before, or the program is unknown. */
int queue_fail_waiting(struct queue *queue, int64_t job_id, enum code code, const char *why, int64_t now_ms);
/* Finds jobs that wait with PROGRAM_WAITING and are tied to no run of the program: its identity was unknown, or its run was
 * cancelled. NULL: all jobs that wait with this code. */
int queue_jobs_without_run(struct queue *queue, const char *program, struct queue_ids *jobs);

/* Sets DELAYED runs that are due to READY, and finds READY ones in the order of the best job that waits for them and is not
 * held: deadline, priority, age. `except`: lines "\nprogram ran_as\n" of runs to leave out. The caller must free them with
 * queue_runs_free(). */
int queue_ready_runs(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit, const char *except,
                     struct queue_run **runs, size_t *count);
/* Finds the time at which the next DELAYED run is due; 0: no run is delayed. */
int queue_next_run_due(struct queue *queue, int64_t *due_ms);

/* The following are edges. They return -EAGAIN if the run is in another state. */

/* ran_as: where this attempt computes. gpu: UUID, or "". */
int queue_start_run(struct queue *queue, int64_t run_id, int slot, const char *gpu, const char *ran_as, int64_t now_ms);
/* The run takes place in Slurm, as part of this job. */
int queue_carry_run(struct queue *queue, int64_t run_id, int64_t job_id, int64_t now_ms);
/* This and queue_delay_run() cancel the run if no unfinished job needs it. */
int queue_return_run(struct queue *queue, int64_t run_id, const char *why, int64_t now_ms);

/* The end of an attempt. */
struct queue_run_end {
    enum code code;
    const char *message;
    const char *sha256, *sandbox;               /* of the mask in programs/<id>; "" if unknown */
    int64_t size, labels, labelled, peak_bytes; /* -1: not measured */
    double write_seconds, program_seconds, read_seconds;
    int starts;
};

/* From a struct with these members: the report of a process, or a file. Its strings are borrowed. */
#define QUEUE_RUN_END(from)                                                                                            \
    ((struct queue_run_end){.message = "",                                                                             \
                            .sha256 = (from)->sha256,                                                                  \
                            .sandbox = (from)->sandbox,                                                                \
                            .size = (from)->size,                                                                      \
                            .labels = (from)->labels,                                                                  \
                            .labelled = (from)->labelled,                                                              \
                            .peak_bytes = (from)->peak_bytes,                                                          \
                            .write_seconds = (from)->write_seconds,                                                    \
                            .program_seconds = (from)->program_seconds,                                                \
                            .read_seconds = (from)->read_seconds,                                                      \
                            .starts = (int)(from)->starts})

/* Sets jobs to READY that have all masks, and counts them. */
int queue_finish_run(struct queue *queue, int64_t run_id, const struct queue_run_end *end, int64_t now_ms,
                     int64_t *released);
/* ran_as: where the next attempt computes. counts: this attempt counts against max_attempts. */
int queue_delay_run(struct queue *queue, int64_t run_id, int64_t not_before_ms, const char *ran_as, bool counts,
                    const struct queue_run_end *end, int64_t now_ms);
/* Fails the waiting jobs with the same code and message, and counts them. */
int queue_fail_run(struct queue *queue, int64_t run_id, const struct queue_run_end *end, int64_t now_ms,
                   int64_t *failed);
/* Unties the jobs that wait for it: queue_jobs_without_run(). */
int queue_cancel_run(struct queue *queue, int64_t run_id, const char *why, int64_t now_ms);
/* Adds a READY run that supersedes a DONE one, whose files are removed once no RUNNING job uses them. The ties of jobs that
 * have not ended move to it. Sets *again_id. */
int queue_again_run(struct queue *queue, int64_t run_id, const char *by, int64_t now_ms, int64_t *again_id);

/* The attempts that a program may have. */
struct queue_run_limit {
    const char *program;
    int max_attempts;
};

/* At start, after queue_recover(): local RUNNING runs become READY again, or fail with CRASHED at the limit of their
 * program. A program without a limit is not configured any more. */
int queue_recover_runs(struct queue *queue, const struct queue_run_limit *limits, size_t count, int64_t now_ms,
                       int *returned);
/* Finds RUNNING runs on this machine that no unfinished job needs. */
int queue_runs_to_stop(struct queue *queue, struct queue_ids *runs);
/* Returns 1 if the run keeps the folder programs/<id>, 0 if not, or -errno; for the removal of folders without rows. */
int queue_run_has_files(struct queue *queue, int64_t run_id);

#endif
