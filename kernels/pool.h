/*
 * pool.h - the threads of a CPU device.
 *
 * Work is offered, never assigned: a body runs on the calling thread and on every pool thread that
 * happens to be free, and the bodies share the work among themselves. So a call makes progress even
 * while all pool threads serve another lane, and results must not depend on who did what.
 */
#ifndef NOCTULE_POOL_H
#define NOCTULE_POOL_H

#include <stdint.h>

struct pool;

/* threads counts the caller: a pool of 1 has no threads of its own. 0 or a negative errno. */
int pool_open(int threads, struct pool **pool);
void pool_close(struct pool *pool);

/*
 * Runs body on this thread and on free pool threads. A body returns only when no work is left to
 * begin; pool_run returns when every body has.
 */
void pool_run(struct pool *pool, void (*body)(void *context), void *context);

/* body(context, i) for every i in 0 .. count - 1, each once, in any order, on any thread. */
void pool_for(struct pool *pool, int64_t count, void (*body)(void *context, int64_t i),
              void *context);

#endif
