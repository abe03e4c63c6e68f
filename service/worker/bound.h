/*
 * bound.h - what a worker may have of memory.
 *
 * What was not counted before a job began (files as they are decoded, results as they are written) cannot take more:
 * then memory runs out for this worker and its job (OUT_OF_MEMORY), not for the machine.
 */
#ifndef NOCTULE_SERVICE_WORKER_BOUND_H
#define NOCTULE_SERVICE_WORKER_BOUND_H

#include <stdint.h>

/*
 * So many bytes beyond what the process has now, for good. Once its device is open: a driver of GPUs maps what it never
 * touches. 0 or -errno.
 */
int bound_memory(int64_t more);

#endif
