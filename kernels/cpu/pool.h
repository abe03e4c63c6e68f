/*
 * pool.h - the threads of a device on the host.
 *
 * Work is offered, never assigned: a body runs on the calling thread and on every pool thread that
 * happens to be free, and the bodies share the work among themselves. So a call makes progress even
 * while all pool threads serve another lane, and results must not depend on who did what.
 */
#ifndef NOCTULE_CPU_POOL_H
#define NOCTULE_CPU_POOL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpu_pool;

/* threads counts the caller: a pool of 1 has no threads of its own. 0 or a negative errno. */
int cpu_pool_open(int threads, struct cpu_pool **pool);
void cpu_pool_close(struct cpu_pool *pool);

/*
 * Runs body on this thread and on free pool threads. A body returns only when no work is left to
 * begin; cpu_pool_run returns when every body has.
 */
void cpu_pool_run(struct cpu_pool *pool, void (*body)(void *context), void *context);

/* body(context, i) for every i in 0 .. count - 1, each once, in any order, on any thread. */
void cpu_pool_for(struct cpu_pool *pool, int64_t count, void (*body)(void *context, int64_t i),
                  void *context);

#ifdef __cplusplus
}
#endif
#endif
