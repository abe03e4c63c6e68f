/*
 * slurm_executor_private.h - shared by the parts of slurm/: slurm_executor.c, slurm_send.c,
 * slurm_receive.c, slurm_ends.c.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_PRIVATE_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_PRIVATE_H

#include "service/daemon/slurm/slurm_executor.h"
#include "service/daemon/slurm/slurm_nodes.h"
#include "service/daemon/slurm/slurm_tasks.h"

#define CLUSTER_COLLECTS 256 /* attempts per round of COLLECT */

struct cluster {
    struct executor base;
    int slot; /* of the role's process; -1: not added yet */
    struct tasks tasks;
    struct nodes nodes;
    size_t collecting; /* attempts with a pending COLLECT */
    struct job_attempt
        *reported;  /* attempt of the measurements and DONE that arrive now, or NULL */
    int64_t polls;  /* number of the last poll */
    int64_t looked; /* number of the last complete poll */
    bool polling;
    uint64_t polled_at, poll_due; /* in the loop's clock, as hold_until */
    uint64_t hold_until;          /* no submission before; 0: no hold */
    int refusals;                 /* rejections in a row */
    bool away;                    /* the last call of Slurm failed: polls continue */
    char trouble[640];            /* "": no problem */
    int64_t trouble_since_ms;
};

/* ------------------------------------------------------------------------ slurm_send.c ---- */

bool cluster_hears(const struct cluster *cluster); /* its process is ready */
void cluster_poll(struct cluster *cluster);
/* Submits the first picked tasks, as many as may be sent at a time. Returns all of them to the
 * queue while Slurm rejects tasks. */
void cluster_submit_picked(struct cluster *cluster);
/* Sends COLLECT for attempts that need it, once after each poll: oldest tasks first, up to the
 * limit. */
void cluster_collect(struct cluster *cluster);
void cluster_cancel(const struct cluster *cluster, int64_t slurm_id);
void cluster_dismiss(const struct cluster *cluster, const struct job_attempt *attempt, bool well);

/* ------------------------------------------------------------------------ slurm_ends.c ---- */

/* Ends an attempt and removes it from its task. Its folder is removed after the outcome is on disk:
 * until then a restarted daemon finds it again. */
void cluster_end(struct cluster *cluster, struct job_attempt *attempt, enum job_end end,
                 bool last_chance);
void cluster_give_back(struct cluster *cluster, struct job_attempt *attempt, const char *why);
/* Ends an attempt without a manifest as lost, after its task is over. */
void cluster_lose(struct cluster *cluster, struct job_attempt *attempt);
/* Returns all attempts of the task, and frees it with the last one. */
void cluster_give_task_back(struct cluster *cluster, struct cluster_task *task, const char *why);
/* Returns all attempts of a rejected task and holds submissions for a while. */
void cluster_refused(struct cluster *cluster, struct cluster_task *task, enum code code,
                     const char *message);
/* Returns an attempt because the share or this machine lacks space or memory, and holds
 * submissions. */
void cluster_put_off(struct cluster *cluster, struct job_attempt *attempt, enum code code,
                     const char *message);
/* Reports that Slurm cannot be called, or (NONE) that it works again. */
void cluster_tell_trouble(struct cluster *cluster, enum code code, const char *message);
/* Frees a task without attempts that is over, or that Slurm never had. */
void cluster_drop_if_done(struct cluster *cluster, struct cluster_task *task);

#endif
