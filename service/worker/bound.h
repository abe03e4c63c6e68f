/*
 * bound.h - limits the memory of a worker.
 *
 * Memory that is not counted before a job begins (decoded files, written results) cannot exceed the
 * limit: the job then fails with OUT_OF_MEMORY, and the machine keeps its memory.
 */
#ifndef NOCTULE_SERVICE_WORKER_BOUND_H
#define NOCTULE_SERVICE_WORKER_BOUND_H

#include <stdint.h>

/*
 * Limits the process permanently to `more` bytes beyond its current use. Must be called after its
 * device is open, since a GPU driver maps memory that it never uses. Returns 0 or -errno.
 */
int bound_memory(int64_t more);

#endif
