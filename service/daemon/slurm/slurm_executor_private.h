/*
 * slurm_executor_private.h - shared by the parts of slurm/: slurm_executor.c, slurm_send.c, slurm_receive.c,
 * slurm_ends.c.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_PRIVATE_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_PRIVATE_H

#include "service/daemon/slurm/slurm_executor.h"
#include "service/daemon/slurm/slurm_nodes.h"
#include "service/daemon/slurm/slurm_tasks.h"

#define SLURM_MAX_COLLECTS 256 /* attempts per round of COLLECT */

struct slurm_executor {
    struct executor base;
    int slot; /* of the role's process; -1: not added yet */
    struct tasks tasks;
    struct nodes nodes;
    size_t collecting; /* attempts with a pending COLLECT */
    /* attempt of the measurements and DONE that arrive now, or NULL */
    struct job_attempt *reported;
    int64_t polls;         /* number of the last poll */
    int64_t complete_poll; /* number of the last complete poll */
    bool polling;
    uint64_t polled_at, poll_due; /* in the loop's clock, as hold_until */
    uint64_t hold_until;          /* no submission before; 0: no hold */
    int refusals;                 /* rejections in a row */
    bool unreachable;             /* the last call of Slurm failed: polls continue */
    char problem[640];            /* "": no problem */
    int64_t problem_since_ms;
};

/* ------------------------------------------------------------------------ slurm_send.c ---- */

bool slurm_is_ready(const struct slurm_executor *slurm); /* its process is ready */
void slurm_send_poll(struct slurm_executor *slurm);
/* Submits the first picked tasks, as many as may be sent at a time. Returns all of them to the queue while Slurm
 * rejects tasks. */
void slurm_submit_picked(struct slurm_executor *slurm);
/* Sends COLLECT for attempts that need it, once after each poll: oldest tasks first, up to the limit. */
void slurm_collect(struct slurm_executor *slurm);
void slurm_send_cancel(const struct slurm_executor *slurm, int64_t slurm_id);
void slurm_send_dismiss(const struct slurm_executor *slurm, const struct job_attempt *attempt, bool well);

/* ------------------------------------------------------------------------ slurm_ends.c ---- */

/* Ends an attempt and removes it from its task. Its folder is removed after the outcome is on disk: until then a
 * restarted daemon finds it again. */
void slurm_end(struct slurm_executor *slurm, struct job_attempt *attempt, enum job_end end, bool last_chance);
void slurm_return(struct slurm_executor *slurm, struct job_attempt *attempt, const char *why);
/* Ends an attempt without a manifest as lost, after its task is over. */
void slurm_lose(struct slurm_executor *slurm, struct job_attempt *attempt);
/* Returns all attempts of the task, and frees it with the last one. */
void slurm_return_task(struct slurm_executor *slurm, struct slurm_task *task, const char *why);
/* Returns all attempts of a rejected task and holds submissions for a while. */
void slurm_reject_task(struct slurm_executor *slurm, struct slurm_task *task, enum code code, const char *message);
/* Returns an attempt because the share or this machine lacks space or memory, and holds submissions. */
void slurm_postpone(struct slurm_executor *slurm, struct job_attempt *attempt, enum code code, const char *message);
/* Reports that Slurm cannot be called, or (NONE) that it works again. */
void slurm_report_problem(struct slurm_executor *slurm, enum code code, const char *message);
/* Frees a task without attempts that is over, or that Slurm never had. */
void slurm_drop_if_done(struct slurm_executor *slurm, struct slurm_task *task);

#endif
