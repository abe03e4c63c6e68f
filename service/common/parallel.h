/*
 * parallel.h - a loop whose iterations are shared by several threads.
 *
 * Indices are issued in ascending order. If iteration k fails, all iterations below k have begun
 * and run to their end. The lowest failing index is therefore the same in every run.
 */
#ifndef NOCTULE_SERVICE_COMMON_PARALLEL_H
#define NOCTULE_SERVICE_COMMON_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct parallel {
    int64_t count;
    const atomic_bool *stop; /* set by the owner: no further iteration begins; NULL: never */
    /* Runs in each thread. Must call parallel_take until it returns false. */
    void (*body)(struct parallel *loop, void *context);
    void *context;

    atomic_llong next;
    atomic_bool failed;
};

/* Runs the body in at most `threads` threads, including the caller's. Uses fewer if threads cannot be created. */
void parallel_run(struct parallel *loop, int threads);

/* Sets the next index. Returns false at the end, after a failed iteration, or if the loop was stopped. */
bool parallel_take(struct parallel *loop, int64_t *index);
/* Prevents further iterations after a failure. */
void parallel_fail(struct parallel *loop);
/* Returns whether *stop was set. */
bool parallel_stopped(const struct parallel *loop);

/* Returns the number of processors that this process may use, at least 1. */
int parallel_processors(void);

#endif
