/*
 * slurm_tasks.h - Slurm jobs, as the daemon knows them, and their attempts: a table by nonce. Nothing here tells anybody.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_TASKS_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_TASKS_H

#include "service/daemon/jobs/job_attempt.h"

#define TASK_BUCKETS   4096
#define TASK_NODE_SIZE 64

enum task_phase { TASK_PICKED, TASK_SENT, TASK_UNSURE, TASK_SUBMITTED };

struct cluster_task {
    struct cluster_task *next, *next_in_bucket;
    char nonce[33];
    enum task_phase phase;
    int64_t slurm_id;   /* 0: not known */
    int64_t first_poll; /* the first that can know of it */
    int64_t seen_poll;  /* the last that did */
    bool to_collect;    /* some of its attempts are to be asked for since the last poll */
    bool over;          /* Slurm says so, or does not know it */
    bool cancelled;     /* it is to end: none of its attempts is wanted */
    uint64_t over_at;   /* of the loop's clock */
    char state[24];     /* Slurm's word; "": not seen yet, or not there any more */
    char node[TASK_NODE_SIZE], reason[64];
    size_t size; /* attempts that it was made of */
    struct job_attempt *attempts;
};

struct tasks {
    struct cluster_task *first, *last, *buckets[TASK_BUCKETS]; /* in the order of their making */
    size_t count;
};

/* NULL: no memory. */
struct cluster_task *tasks_add(struct tasks *tasks, const char *nonce, enum task_phase phase);
/* NULL: there is none. */
struct cluster_task *tasks_find(const struct tasks *tasks, const char *nonce);
/* It has no attempts. */
void tasks_remove(struct tasks *tasks, struct cluster_task *task);
void tasks_free(struct tasks *tasks);

/* The last to join is the last to run. */
void task_join(struct cluster_task *task, struct job_attempt *attempt);
/* Before it ends: it may be freed then. */
void task_leave(struct job_attempt *attempt);

#endif
