/* slurm_executor_private.h - what the parts of cluster/ share: slurm_executor.c, slurm_send.c, slurm_receive.c, slurm_ends.c. */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_PRIVATE_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_EXECUTOR_PRIVATE_H

#include "service/daemon/slurm/slurm_executor.h"
#include "service/daemon/slurm/slurm_nodes.h"
#include "service/daemon/slurm/slurm_tasks.h"

#define CLUSTER_COLLECTS 256 /* asked at a time */

struct cluster {
    struct executor base;
    int slot; /* of the child; -1: there is none yet */
    struct tasks tasks;
    struct nodes nodes;
    size_t collecting;            /* attempts that were asked for */
    struct job_attempt *reported; /* whose measurements and DONE come now; NULL: none */
    int64_t polls;                /* the number of the last */
    int64_t looked;               /* the last that told all */
    bool polling;
    uint64_t polled_at, poll_due; /* of the loop's clock, as hold_until */
    uint64_t hold_until;          /* nothing is submitted before; 0: it may be */
    int refusals;                 /* in a row */
    bool away;         /* Slurm could not be asked the last time: polls go on until it can */
    char trouble[640]; /* "": none */
    int64_t trouble_since_ms;
};

/* ------------------------------------------------------------------------------ slurm_send.c ---- */

bool cluster_hears(const struct cluster *cluster); /* its child */
void cluster_poll(struct cluster *cluster);
/* Tasks that were picked: the foremost, as many as may be on their way at a time. All are given back when Slurm takes
 * nothing now. */
void cluster_submit_picked(struct cluster *cluster);
/* Attempts that are to be asked for, once after each poll: as many as may be asked at a time, oldest tasks first. */
void cluster_collect(struct cluster *cluster);
void cluster_cancel(const struct cluster *cluster, int64_t slurm_id);
void cluster_dismiss(const struct cluster *cluster, const struct job_attempt *attempt, bool well);

/* -------------------------------------------------------------------------------- slurm_ends.c ---- */

/* It leaves its task. Its folder goes once how it ended is on disk: until then a daemon that dies finds it again. */
void cluster_end(struct cluster *cluster, struct job_attempt *attempt, enum job_end end,
                 bool last_chance);
void cluster_give_back(struct cluster *cluster, struct job_attempt *attempt, const char *why);
/* Its task is over, and there is no manifest of it: what that is put down to. */
void cluster_lose(struct cluster *cluster, struct job_attempt *attempt);
/* All that is in it; with the last one it is gone. */
void cluster_give_task_back(struct cluster *cluster, struct cluster_task *task, const char *why);
/* Nothing came of it at all: all are given back, and nothing is submitted for a while. */
void cluster_refused(struct cluster *cluster, struct cluster_task *task, enum code code,
                     const char *message);
/* The share, or this machine, has no room for it now: given back likewise. */
void cluster_put_off(struct cluster *cluster, struct job_attempt *attempt, enum code code,
                     const char *message);
/* Slurm cannot be asked, or (NONE) it can again. */
void cluster_tell_trouble(struct cluster *cluster, enum code code, const char *message);
/* Forgets a task that is over, or that Slurm never had, once it has no attempts. */
void cluster_drop_if_done(struct cluster *cluster, struct cluster_task *task);

#endif
