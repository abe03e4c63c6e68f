/* slurm_tasks.h - table of Slurm jobs and their attempts, indexed by nonce. Sends no messages. */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_TASKS_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_TASKS_H

#include "service/daemon/jobs/job_attempt.h"

#define TASK_BUCKETS   4096
#define TASK_NODE_SIZE 64

enum task_phase { TASK_PICKED, TASK_SENT, TASK_UNSURE, TASK_SUBMITTED };

struct slurm_task {
    struct slurm_task *next, *next_in_bucket;
    char nonce[33];
    enum task_phase phase;
    int64_t slurm_id;   /* 0: unknown */
    int64_t first_poll; /* first poll that can contain it */
    int64_t seen_poll;  /* last poll that contained it */
    bool to_collect;    /* some attempts need COLLECT since the last poll */
    bool over;          /* Slurm reports its end, or does not know it */
    bool cancelled;     /* it must end: all its attempts are cancelled */
    uint64_t over_at;   /* in the loop's clock */
    char state[24];     /* Slurm's state; "": not seen yet, or no longer listed */
    char node[TASK_NODE_SIZE], reason[64];
    size_t size; /* number of attempts at its start */
    struct job_attempt *attempts;
};

struct tasks {
    struct slurm_task *first, *last, *buckets[TASK_BUCKETS]; /* in the order of creation */
    size_t count;
};

/* Adds a task. NULL: no memory. */
struct slurm_task *tasks_add(struct tasks *tasks, const char *nonce, enum task_phase phase);
/* Returns the task, or NULL. */
struct slurm_task *tasks_find(const struct tasks *tasks, const char *nonce);
/* Frees a task. It must have no attempts. */
void tasks_remove(struct tasks *tasks, struct slurm_task *task);

/* Adds an attempt. The attempts run in this order. */
void task_join(struct slurm_task *task, struct job_attempt *attempt);
/* Must be called before the attempt ends, since that may free it. */
void task_leave(struct job_attempt *attempt);

#endif
