#include "service/daemon/slurm/slurm_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hashes a nonce, which consists of random digits. */
static size_t
task_bucket(const char *nonce)
{
    char digits[4] = "";
    snprintf(digits, sizeof digits, "%.3s", nonce);
    return strtoul(digits, NULL, 16) % TASK_BUCKETS;
}

struct slurm_task *
tasks_add(struct tasks *tasks, const char *nonce, enum task_phase phase)
{
    struct slurm_task *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    struct slurm_task **bucket = &tasks->buckets[task_bucket(nonce)];
    snprintf(task->nonce, sizeof task->nonce, "%s", nonce);
    task->phase = phase;
    task->next_in_bucket = *bucket;
    *bucket = task;
    if (tasks->last)
        tasks->last->next = task;
    else
        tasks->first = task;
    tasks->last = task;
    tasks->count++;
    return task;
}

struct slurm_task *
tasks_find(const struct tasks *tasks, const char *nonce)
{
    struct slurm_task *task = tasks->buckets[task_bucket(nonce)];
    while (task && strcmp(task->nonce, nonce) != 0)
        task = task->next_in_bucket;
    return task;
}

void
tasks_remove(struct tasks *tasks, struct slurm_task *task)
{
    struct slurm_task **place = &tasks->first, *before = NULL;
    for (; *place != task; place = &before->next)
        before = *place;
    *place = task->next;
    if (tasks->last == task)
        tasks->last = before;
    place = &tasks->buckets[task_bucket(task->nonce)];
    while (*place != task)
        place = &(*place)->next_in_bucket;
    *place = task->next_in_bucket;
    tasks->count--;
    free(task);
}

void
task_join(struct slurm_task *task, struct job_attempt *attempt)
{
    struct job_attempt **place = &task->attempts;
    while (*place)
        place = &(*place)->next_of_task;
    attempt->task = task;
    attempt->next_of_task = NULL;
    *place = attempt;
    task->size++;
}

void
task_leave(struct job_attempt *attempt)
{
    struct job_attempt **place = &attempt->task->attempts;
    while (*place != attempt)
        place = &(*place)->next_of_task;
    *place = attempt->next_of_task;
    attempt->task = NULL;
}
