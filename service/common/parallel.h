/*
 * parallel.h - a loop whose rounds are taken by several threads.
 *
 * Indices are handed out in ascending order, so once round k has failed every round below k has
 * been begun and runs to its end: the lowest failing index is the same on every run.
 */
#ifndef NOCTULE_SERVICE_COMMON_PARALLEL_H
#define NOCTULE_SERVICE_COMMON_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct parallel {
    int64_t count;
    const atomic_bool *stop; /* set from outside: no further round begins; NULL: never */
    /* One thread's share: takes rounds until there are none. */
    void (*body)(struct parallel *loop, void *context);
    void *context;

    atomic_llong next;
    atomic_bool failed;
};

/* Runs the body in up to `threads` threads, the caller's among them; fewer when none can be had. */
void parallel_run(struct parallel *loop, int threads);

/* The next index; false when there is none, a round has failed, or the loop was stopped. */
bool parallel_take(struct parallel *loop, int64_t *index);
/* Lets no further round begin. */
void parallel_fail(struct parallel *loop);
/* Was it told to stop from outside? */
bool parallel_stopped(const struct parallel *loop);

/* Processors this process may run on: at least 1. */
int parallel_processors(void);

#endif
