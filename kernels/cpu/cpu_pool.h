/*
 * cpu_pool.h - the host threads of a device.
 *
 * Work is offered, not assigned: a body runs on the calling thread and on every idle pool thread,
 * and the bodies share the work among themselves. A call therefore makes progress even while all
 * pool threads serve other lanes. Results must not depend on the distribution of work.
 */
#ifndef NOCTULE_KERNELS_CPU_CPU_POOL_H
#define NOCTULE_KERNELS_CPU_CPU_POOL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpu_pool;

/* Opens a pool. `threads` includes the caller: a pool of 1 creates no threads. Returns 0 or a
 * negative errno. */
int cpu_pool_open(int threads, struct cpu_pool **pool);
void cpu_pool_close(struct cpu_pool *pool);

/* Runs body on this thread and on idle pool threads. A body must return only if no work is left to
 * begin. Returns after every body has. */
void cpu_pool_run(struct cpu_pool *pool, void (*body)(void *context), void *context);

/* Calls body(context, i) once for every i in 0 .. count - 1, in any order, on any thread. */
void cpu_pool_for(struct cpu_pool *pool, int64_t count, void (*body)(void *context, int64_t i), void *context);

#ifdef __cplusplus
}
#endif
#endif
